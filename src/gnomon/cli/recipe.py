"""What `gnomon train` trains on what: its settings, and how they become text, a tokenizer and a model."""

from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from gnomon.cli.config import Resolved
from gnomon.data import Corpus, Tokenizer, TokenStore
from gnomon.errors import BadInput
from gnomon.layout import Layout
from gnomon.models import PRESETS, DecoderOnly, preset
from gnomon.train import State, TrainConfig

NOT_PATHS = ("-", "stdlib")
RATES = {"gpt2-small": 6e-4}  # where TrainConfig's is too high: Brown et al. 2020, arXiv:2005.14165, table 2.1


@dataclass(frozen=True)
class Text:
    """Where the text comes from and how much of it is held out."""

    sources: tuple[str, ...] = ("stdlib",)
    text_key: str = "text"
    held_out: float = 0.05

    def anywhere(self) -> "Text":
        """The same text, found from any folder."""
        found = tuple(s if s in NOT_PATHS else str(Path(s).absolute()) for s in self.sources)
        return Text(found, self.text_key, self.held_out)


@dataclass(frozen=True)
class Settings:
    """The tables and keys of a run's TOML file, and of --set."""

    preset: str = "mini-gpt"
    tokenizer: str = "bpe"
    vocab_size: int | None = None  # of a bpe vocabulary; the preset's where it is not given
    text: Text = field(default_factory=Text)
    position: dict[str, Any] = field(default_factory=dict)  # name, and options of that encoding
    model: dict[str, Any] = field(default_factory=dict)  # changes to the preset
    train: TrainConfig = field(default_factory=TrainConfig)


def settled(resolved: Resolved[Settings]) -> Settings:
    """The settings, with the preset's learning rate where nobody chose one; BadValue for an unknown preset."""
    settings = resolved.config
    preset(settings.preset)
    if settings.preset not in RATES or "train.lr" in resolved.origins:
        return settings
    return replace(settings, train=replace(settings.train, lr=RATES[settings.preset]))


def make_tokenizer(settings: Settings, training: Corpus) -> Tokenizer:
    """Learn a vocabulary from the training text, never from what is held out, or load one from a file or folder."""
    if settings.tokenizer == "bytes":
        return Tokenizer.bytes()
    if settings.tokenizer == "characters":
        return Tokenizer.characters(training.texts)
    if settings.tokenizer == "bpe":
        size = preset(settings.preset).vocab_size if settings.vocab_size is None else settings.vocab_size
        return Tokenizer.bpe(training.texts, size)
    if not Path(settings.tokenizer).exists():
        raise BadInput(
            f"there is no tokenizer {settings.tokenizer!r}: give bpe, bytes, characters, or a tokenizer.json"
        )
    return Tokenizer.load(settings.tokenizer)


def make_model(settings: Settings, tokenizer: Tokenizer) -> DecoderOnly:
    """The preset with its changes, over this vocabulary, with first weights drawn from the seed."""
    changes = {"vocab_size": tokenizer.vocab_size, **settings.model}
    if settings.position:
        changes["position"] = {"name": PRESETS[settings.preset]["position"], **settings.position}
    torch.manual_seed(settings.train.seed)
    model = DecoderOnly.from_preset(settings.preset, **changes)
    model.check(Layout.dense(1, settings.train.length))
    model.tokenizer = tokenizer
    return model


def tokenized(corpus: Corpus, tokenizer: Tokenizer, quiet: bool) -> TokenStore:
    """The corpus as token ids, encoded where the cache does not hold them yet."""
    with tqdm(total=0, desc="tokenizing", unit="B", unit_scale=True, leave=False, disable=quiet, delay=1) as bar:

        def progress(done: int, total: int) -> None:
            bar.total = total
            bar.update(done - bar.n)

        return TokenStore.open(corpus, tokenizer, progress=progress)


def free_folder(settings: Settings) -> Path:
    """runs/<preset>-<position>, or the first of its numbered namesakes that does not exist yet."""
    position = settings.position.get("name", PRESETS[settings.preset]["position"])
    first = Path("runs", f"{settings.preset}-{position}")
    numbered = (first.with_name(f"{first.name}-{n}") for n in count(2))
    return next(folder for folder in chain([first], numbered) if not folder.exists())


def origin_of(settings: Settings) -> dict[str, Any]:
    """What a resumed run is told about its text."""
    return {"preset": settings.preset, "text": asdict(settings.text.anywhere())}


def text_of(state: State, folder: Path) -> Text:
    """The text that a run was started on."""
    try:
        text = state.origin["text"]
        return Text(tuple(text["sources"]), text["text_key"], text["held_out"])
    except (KeyError, TypeError) as error:
        raise BadInput(
            f"{folder} does not say what text it was trained on, so it was not started by gnomon train: go on with "
            "gnomon.train.resume"
        ) from error


__all__ = [
    "Settings",
    "Text",
    "free_folder",
    "make_model",
    "make_tokenizer",
    "origin_of",
    "settled",
    "text_of",
    "tokenized",
]
