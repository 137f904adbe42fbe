"""What `gnomon train` trains on what: its settings, and how they become a tokenizer, a model and a task."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, make_dataclass, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import torch

from gnomon.cli.config import Resolved, plain_settings
from gnomon.data import Tokenizer
from gnomon.errors import BadInput, BadValue
from gnomon.layout import Layout
from gnomon.models import PRESETS, Model, ModelConfig, preset
from gnomon.models.config import as_position
from gnomon.models.presets import merge_settings
from gnomon.tasks import Kind, find
from gnomon.train import TrainConfig
from gnomon.train.memory_estimate import check_memory

RATES = {"gpt2-small": 6e-4}  # where TrainConfig's is too high: Brown et al. 2020, arXiv:2005.14165, table 2.1


@dataclass(frozen=True)
class TrainSettings:
    """The keys and tables of a run's TOML file, and of --set. Each kind of task adds the table of its name."""

    task: str = "text"
    preset: str | None = None  # of the model; the task's own where it is not given
    tokenizer: str = "bpe"
    vocab_size: int | None = None  # of a bpe vocabulary; the model's default where it is not given
    position: dict[str, Any] = field(default_factory=dict)  # name, and options of that encoding
    model: dict[str, Any] = field(default_factory=dict)  # changes to the preset
    train: TrainConfig = field(default_factory=TrainConfig)

    @property
    def kind(self) -> Kind:
        """The table of the task."""
        kind: Kind = getattr(self, self.task)
        return kind

    @property
    def base(self) -> dict[str, Any]:
        """The model before its changes."""
        return dict(self.kind.default_model) if self.preset is None else PRESETS[self.preset]


def settings_of(kind: type[Kind]) -> type[TrainSettings]:
    """Settings with a kind's defaults and its own table."""
    fields = [
        ("task", str, field(default=kind.name)),
        ("preset", str | None, field(default=kind.preset)),
        ("tokenizer", str, field(default=kind.default_tokenizer)),
        ("train", TrainConfig, field(default=kind.default_train)),
        (kind.name, kind, field(default_factory=kind)),
    ]
    return make_dataclass("TrainSettings", fields, bases=(TrainSettings,), frozen=True)


def chosen_kind(flag: str | None, file: Path | None, sets: Sequence[str]) -> type[Kind]:
    """The kind of task that the command line or the file names."""
    return find(flag or str(plain_settings(file, sets).get("task", TrainSettings.task)))


def complete_settings(resolved: Resolved[TrainSettings]) -> TrainSettings:
    """The settings, with the preset's rate where nobody chose one; BadValue for an unknown preset or encoding."""
    settings = resolved.config
    if "name" in settings.position:
        as_position(settings.position)
    if settings.preset is not None:
        preset(settings.preset)
    if settings.preset not in RATES or "train.lr" in resolved.origins:
        return settings
    return replace(settings, train=replace(settings.train, lr=RATES[settings.preset]))


def make_tokenizer(settings: TrainSettings) -> Tokenizer:
    """Learn a vocabulary from the training data, never from what is held out, or load one from a file or folder."""
    return settings.kind.vocabulary(_tokenizer(settings))


def _tokenizer(settings: TrainSettings) -> Tokenizer:
    if settings.tokenizer == "bytes":
        return Tokenizer.bytes()
    if settings.tokenizer == "characters":
        return Tokenizer.characters(settings.kind.texts())
    if settings.tokenizer == "bpe":
        size = settings.base["vocab_size"] if settings.vocab_size is None else settings.vocab_size
        return Tokenizer.bpe(settings.kind.texts(), size)
    if not Path(settings.tokenizer).exists():
        raise BadInput(
            f"there is no tokenizer {settings.tokenizer!r}: give bpe, bytes, characters, or a tokenizer.json"
        )
    return Tokenizer.load(settings.tokenizer)


def make_model(settings: TrainSettings, tokenizer: Tokenizer, device: torch.device) -> Model:
    """The preset with its changes, over this vocabulary, with first weights drawn from the seed, for a device."""
    base = settings.base
    changes = {"vocab_size": tokenizer.vocab_size, **settings.model}
    if settings.position:
        changes["position"] = settings.position
    config = _long_enough(ModelConfig.from_dict(merge_settings(base, changes)).fitted(tokenizer), settings)
    check_memory(config, settings.train, device)
    torch.manual_seed(settings.train.seed)
    model = settings.kind.new_model(config)
    model.check(Layout.dense(1, settings.train.length))
    model.tokenizer = tokenizer
    return model.to(device)


def _long_enough(config: ModelConfig, settings: TrainSettings) -> ModelConfig:
    """A table of positions has a row for each place of the rows that are trained on, unless its size was given. Without
    a table, the model is trained to the length of these rows, whatever the preset's is."""
    length = settings.train.length if config.recipe is None else config.recipe.reach(settings.train.length)
    has_rows = _has_rows(config)
    if "max_positions" in settings.model or (has_rows and (config.max_positions or 0) >= length):
        return config
    return replace(config, max_positions=length if has_rows else settings.train.length)


def lengthen(model: Model, length: int) -> None:
    """A model that is trained further on longer rows was trained to their length afterwards; BadValue where its table
    of positions has no place for them."""
    model.check(Layout.dense(1, length))
    c = model.config
    if not _has_rows(c) and c.max_positions is not None and c.max_positions < length:
        model.config = replace(c, max_positions=length)


def _has_rows(config: ModelConfig) -> bool:
    """Whether the encoding at the input has a table with a row for each position."""
    return "max_positions" in config.at_input.with_options(max_positions=1).options


def free_folder(settings: TrainSettings) -> Path:
    """runs/<preset>-<position> or runs/<task>, or the first of its numbered namesakes that does not exist yet."""
    named = str(settings.position.get("name", settings.base.get("position", "rope")))
    position = re.sub(r"[^\w.=-]+", "-", named).strip("-")  # a list of encodings is no name of a folder
    title = settings.kind.title() if settings.preset is None else f"{settings.preset}-{position}"
    first = Path("runs", title)
    numbered = (first.with_name(f"{first.name}-{n}") for n in count(2))
    return next(folder for folder in chain([first], numbered) if not folder.exists())


def sources_key(kind: type[Kind]) -> str:
    """The setting that the SOURCES of the command line are; BadValue for a kind that takes none."""
    if kind.takes is None:
        raise BadValue(f"the task {kind.name} makes its own data: leave the sources out")
    return f"{kind.name}.{kind.takes}"


__all__ = [
    "TrainSettings",
    "chosen_kind",
    "complete_settings",
    "free_folder",
    "lengthen",
    "make_model",
    "make_tokenizer",
    "settings_of",
    "sources_key",
]
