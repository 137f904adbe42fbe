"""What an experiment does: everything that decides its numbers, as plain data that a file or a flag can set."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, get_args

from gnomon.blocks import Activation
from gnomon.device import resolve_device
from gnomon.embed.input import Combine
from gnomon.embed.table import Scale
from gnomon.errors import BadValue, unknown
from gnomon.glossary import synonyms
from gnomon.lab.exact.tasks import exact_tasks
from gnomon.norm import Norm
from gnomon.positions import Spec
from gnomon.positions.kinship import parameters
from gnomon.positions.notation import split
from gnomon.positions.registry import encoding, label, names, parse, parse_list

# The flattest and the one most in use come first: what a reader sees first is those two beside each other.
PUBLISHED = ("alibi", "rope", "t5", "sinusoidal", "none", "learned")
TEXT = "text"  #: the task of language modelling
PROTOCOLS = ("fixed", "sliding", "windows")
SWEEP_SEED = 1000  #: of the trials that choose a learning rate
ALL = "all"  #: stands for the standard grid where encodings are listed


def standard_encodings() -> tuple[str, ...]:
    """The standard grid: every known encoding that text alone is enough for, the six of PUBLISHED first. Those of your
    own are in it, where a model's sizes are enough to build them."""
    fit = [name for name in names() if encoding(name).for_text and parameters(encoding(name)) is not None]
    return tuple(dict.fromkeys([*PUBLISHED, *fit]))


@dataclass(frozen=True)
class Size:
    """The model but for its position: small enough to train within a minute on one core."""

    d_model: int = 128
    n_layers: int = 2
    n_heads: int = 4
    d_ff: int | None = None
    activation: Activation = "gelu"
    norm: Norm = "layernorm"
    embed_scale: Scale = "sqrt"  # with init_std = D^-0.5 tokens enter about as large as sinusoids do
    init_std: float = 0.088
    position_dim: int = 32  # channels beside the token's where position is concatenated

    def settings(self, combine: Combine = "add") -> dict[str, Any]:
        """As a model takes them; position_dim goes with a concatenation only."""
        return asdict(self) | {"combine": combine, "position_dim": self.position_dim if combine == "concat" else None}


@dataclass(frozen=True)
class Recipe:
    """How each model is trained; docs/lab.md says how these were chosen."""

    steps: int = 1200
    batch_size: int = 8  # windows of the training length
    lr: float = 6e-3  # the highest rate
    lr_of: dict[str, float] = field(default_factory=dict)  # of single encodings, by name
    warmup: int = 100  # steps up to the highest rate
    floor: float = 0.0  # the share of it left at the last step
    weight_decay: float = 0.1
    clip: float | None = 1.0  # longest gradient

    def rate_of(self, label: str, name: str | None = None) -> float:
        """The highest learning rate for an encoding, by its label or else its name."""
        return self.lr_of.get(label, self.lr_of.get(name or label, self.lr))


@dataclass(frozen=True)
class LabSettings:
    """An experiment: which encodings, how far past the training length, which model and training."""

    positions: tuple[str, ...] = PUBLISHED
    tasks: tuple[str, ...] = (TEXT,)  # language modelling, or names of tasks with exact answers
    combine: tuple[Combine, ...] = ("add",)  # how encodings that act at the input meet the token vectors
    train_length: int = 64
    train_lengths: tuple[int, ...] = ()  # besides train_length
    sizes: tuple[str, ...] = ()  # of the model, instead of `model`'s: LAYERSxWIDTH or LAYERSxWIDTHxHEADS
    factors: tuple[int, ...] = (1, 2, 4, 8, 16)  # of the training length, measured at
    seed: int = 0
    seeds: int = 1  # each encoding is trained from as many seeds, from `seed` on
    vocab_size: int = 512
    held_out: float = 0.05  # share of the text
    protocols: tuple[str, ...] = ("fixed",)  # of measuring, see protocols.py
    trained_at: tuple[int, ...] = ()  # multiples of the training length at which each is trained too, as a baseline
    rates: tuple[float, ...] = ()  # learning rates to choose from for each encoding, in a sweep of its own
    sweep_steps: int | None = None  # of that sweep; a third of the steps by default
    task_lengths: tuple[int, ...] = (10,)  # of tasks with exact answers: the longest question of training
    task_steps: int | None = None  # of their training
    blocks: int = 2  # of targets at the end of each held-out document, each a quarter of the longest context
    device: str = "cpu"  # or cuda, mps, auto; on a processor several small models train at once
    gpus: int = 1  # of each model's training; several run it under torchrun
    threads: int = 1  # of each model's training: the order of sums depends on it
    model: Size = field(default_factory=Size)
    train: Recipe = field(default_factory=Recipe)

    def __post_init__(self) -> None:
        listed = [standard_encodings() if text == ALL else (text,) for text in self.positions]
        object.__setattr__(self, "positions", tuple(dict.fromkeys(text for texts in listed for text in texts)))
        for name, least in {"train_length": 4, "seeds": 1, "blocks": 1, "threads": 1, "gpus": 1}.items():
            if getattr(self, name) < least:
                raise BadValue(f"{name} must be at least {least}, got {getattr(self, name)}")
        known = [TEXT, *exact_tasks()]
        for task in self.tasks:
            if task not in known:
                raise unknown("task", task, known)
        for way in self.protocols:
            if way not in PROTOCOLS:
                raise unknown("protocol", way, PROTOCOLS, synonyms())
        for text in self.sizes:
            size_of(text, self.model)
        if any(n < 4 for n in self.train_lengths) or any(n < 2 for n in self.trained_at):
            raise BadValue(
                "training lengths are 4 tokens or more, and trained_at lists multiples of 2 or more; "
                f"got {self.train_lengths} and {self.trained_at}"
            )
        for name in ("steps", "batch_size"):
            if getattr(self.train, name) < 1:
                raise BadValue(f"train.{name} must be at least 1, got {getattr(self.train, name)}")
        if not self.factors or min(self.factors) < 1:
            raise BadValue(f"factors are multiples of the training length, 1 or more each; got {self.factors}")
        if not self.positions:
            raise BadValue("an experiment needs at least one position encoding")
        for way in self.combine:
            if way not in get_args(Combine):
                raise unknown("way to combine", way, get_args(Combine), synonyms())
        for text in self.positions:
            parse_list(text)
        resolve_device(self.device)

    @property
    def lengths(self) -> list[int]:
        """Tokens given to the model at each measurement, the training length first."""
        return [self.train_length * factor for factor in sorted({1, *self.factors})]

    def trials(self) -> "list[Trial]":
        """The models to train. Ways to combine multiply only the encodings that act at the input."""
        return list(dict.fromkeys(self._grid()))

    def _grid(self) -> "Iterator[Trial]":
        for seed in range(self.seed, self.seed + self.seeds):
            for text in self.positions:
                specs = parse_list(text)
                for way in self.combine if specs[0].acts == "input" else ("add",):
                    yield Trial(label(*specs), way, seed)

    def fitted(self, text: str) -> tuple[Spec, ...]:
        """The encoding, or those that take turns over the layers, with tables fitted to the training length, where they
        have some and no size was given by hand.

        A learned table gets as many rows; the rest each encoding says itself (`options_for`). A recipe for position ids
        may reach further than that length.
        """
        specs, L = parse_list(text), self.train_length
        reach = max(L if spec.positions is None else spec.positions.reach(L) for spec in specs)
        return tuple(spec.with_options(max_positions=reach, **spec.cls.options_for(reach)) for spec in specs)

    def only(self, trial: "Trial") -> "LabSettings":
        """The same for one of its trials: all that decides its numbers, and nothing of the grid around it."""
        rate = self.train.rate_of(trial.position, self.fitted(trial.position)[0].name)
        return replace(
            self,
            positions=(trial.position,),
            combine=(trial.combine,),
            seed=trial.seed,
            seeds=1,
            rates=(),
            sweep_steps=None,
            trained_at=(),
            train=replace(self.train, lr=rate, lr_of={}),
        )

    def panels(self) -> "list[LabSettings]":
        """One experiment for each size of model and training length: within it, encodings and seeds are comparable."""
        lengths = dict.fromkeys([self.train_length, *self.train_lengths])
        models = [size_of(text, self.model) for text in self.sizes] or [self.model]
        alone = replace(self, train_lengths=(), sizes=(), tasks=(TEXT,), task_lengths=(), task_steps=None)
        if TEXT not in self.tasks:
            return []
        return [replace(alone, train_length=n, model=model) for model in models for n in lengths]

    def sweep(self) -> "dict[tuple[str, float], LabSettings]":
        """The trials that choose a learning rate for each encoding: (encoding, rate) -> what to train. Their seed is
        none that is reported, and only the training length is measured."""
        steps = self.sweep_steps or max(1, self.train.steps // 3)
        quick = replace(self.train, steps=steps, warmup=min(self.train.warmup, steps // 4), lr_of={})
        alone = replace(self, protocols=("fixed",), factors=(max(self.factors),), combine=("add",))
        return {
            (text, rate): replace(alone, train=replace(quick, lr=rate)).only(Trial(text, "add", SWEEP_SEED))
            for text in self.positions
            for rate in self.rates
        }

    def at_length(self, trial: "Trial", factor: int) -> "LabSettings":
        """The baseline of a trial: the same model trained at `factor` times the length, on as many tokens, and asked
        for the same targets."""
        mine, longest = self.only(trial), self.lengths[-1]
        length, t = self.train_length * factor, mine.train
        batch = max(1, t.batch_size // factor)
        steps = max(1, round(t.steps * t.batch_size * self.train_length / (batch * length)))
        recipe = replace(t, batch_size=batch, steps=steps, warmup=max(1, round(t.warmup * steps / t.steps)))
        return replace(mine, train_length=length, factors=(longest // length,), train=recipe, protocols=("fixed",))

    def to_dict(self) -> dict[str, Any]:
        """As JSON-ready data; `from_dict` brings it back."""
        return asdict(self)

    def plain(self) -> "LabSettings":
        """The same without the class of a preset, which only gives other defaults."""
        return LabSettings(**vars(self))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "LabSettings":
        """From such data."""
        plain: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in data.items()}
        plain |= {"model": Size(**data["model"]), "train": Recipe(**data["train"])}
        return cls(**plain)


@dataclass(frozen=True)
class StandardSettings(LabSettings):
    """The standard experiment: what it takes to claim an order of encodings, in about half an hour on two cores."""

    protocols: tuple[str, ...] = PROTOCOLS
    trained_at: tuple[int, ...] = (4,)
    rates: tuple[float, ...] = (3e-3, 6e-3, 1.2e-2)
    seeds: int = 5


PRESETS = {"quick": LabSettings, "standard": StandardSettings}


@dataclass(frozen=True)
class Trial:
    """One model to train: an encoding, how it is combined with the tokens, and a seed."""

    position: str
    combine: Combine
    seed: int

    @property
    def label(self) -> str:
        """What it is called in tables; seeds share it."""
        return self.position if self.combine == "add" else f"{self.position} {self.combine}"

    @property
    def folder(self) -> str:
        """Where it is kept, below the experiment's folder."""
        name = re.sub(r"[^\w.=-]+", "-", self.label).strip("-")
        return name if self.seed == 0 else f"{name}-seed{self.seed}"


def size_of(text: str, like: Size) -> Size:
    """The size that `2x128` or `2x128x4` names: layers, width and heads, by default one for every 32 channels. The rest
    is as in `like`, but for the scale of the first weights, which keeps its ratio to the width."""
    found = re.fullmatch(r"(\d+)x(\d+)(?:x(\d+))?", text.strip())
    if found is None:
        raise BadValue(f"a size is LAYERSxWIDTH or LAYERSxWIDTHxHEADS, such as 2x128 or 4x256x8; got {text!r}")
    layers, width = int(found[1]), int(found[2])
    heads = int(found[3] or max(1, width // 32))
    if not (layers and width and heads) or width % heads:
        raise BadValue(f"a size has layers, a width and heads that divide it, such as 4x256x8; got {text!r}")
    std = like.init_std * (like.d_model / width) ** 0.5
    return replace(like, d_model=width, n_layers=layers, n_heads=heads, d_ff=None, init_std=round(std, 4))


# ------------------------------------------------------------------ encodings as text


def as_text(position: str | Spec) -> str:
    """An encoding given by name or as a Spec, or a list of names, as text that leads back to it."""
    text = position if isinstance(position, str) else label(position)
    if isinstance(position, Spec) and parse(text) != position:
        raise BadValue(f"the lab writes encodings down as text, but {text} does not lead back to what was given")
    return text


def as_texts(positions: Sequence[str | Spec]) -> tuple[str, ...]:
    """The same for several."""
    return tuple(as_text(position) for position in positions)


__all__ = [
    "ALL",
    "PRESETS",
    "PROTOCOLS",
    "PUBLISHED",
    "TEXT",
    "LabSettings",
    "Recipe",
    "Size",
    "StandardSettings",
    "Trial",
    "as_texts",
    "parse_list",
    "size_of",
    "split",
    "standard_encodings",
]
