"""Small tokenizers of every family, and a cache of its own for each test."""

from collections.abc import Callable
from pathlib import Path

import pytest
import tokenizers
from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

from gnomon.data import Tokenizer

TEXTS = [
    "The dog bit the man; el perro mordió al hombre, o cachorro mordeu o homem.",
    "def visible(q, k):\n    return q.step >= k.step  # niño 世界 😀\n",
]


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GNOMON_CACHE", str(tmp_path / "cache"))


def sentencepiece_bpe() -> Tokenizer:
    """The form of Llama 2: a dummy space in front, ▁ for spaces, <0xNN> tokens for unknown bytes."""
    letters = sorted(set("▁" + "".join(TEXTS).replace(" ", "▁")) - set("世界😀ñ"))
    names = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *letters, "▁d", "og", "▁dog"]
    vocab = {name: i for i, name in enumerate(dict.fromkeys(names))}
    merges = [("▁", "d"), ("o", "g"), ("▁d", "og")]
    core = tokenizers.Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True))
    core.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    core.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    core.add_special_tokens(["<unk>", "<s>", "</s>"])
    return Tokenizer(core.to_str())


def wordpiece() -> Tokenizer:
    """The form of BERT: ## continues a word, decoding puts the spaces back and tidies punctuation."""
    core = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    core.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    core.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=200, special_tokens=["[UNK]", "[CLS]", "[SEP]"], show_progress=False)
    core.train_from_iterator(TEXTS, trainer)
    return Tokenizer(core.to_str())


def unigram() -> Tokenizer:
    """The form of T5: unigram pieces over words marked with ▁."""
    core = tokenizers.Tokenizer(models.Unigram())
    core.pre_tokenizer = pre_tokenizers.Metaspace()
    core.decoder = decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=120, special_tokens=["</s>", "<unk>"], unk_token="<unk>", show_progress=False
    )
    core.train_from_iterator(TEXTS, trainer)
    return Tokenizer(core.to_str())


def wordlevel() -> Tokenizer:
    """Whole words and no decoder: words are joined by single spaces."""
    core = tokenizers.Tokenizer(models.WordLevel({"dog": 0, "bites": 1, "man": 2, "?": 3}, unk_token="?"))
    core.pre_tokenizer = pre_tokenizers.Whitespace()
    return Tokenizer(core.to_str())


FAMILIES: dict[str, Callable[[], Tokenizer]] = {
    "bytes": Tokenizer.bytes,
    "bpe": lambda: Tokenizer.bpe(TEXTS * 3, vocab_size=300),
    "characters": lambda: Tokenizer.characters(TEXTS),
    "sentencepiece": sentencepiece_bpe,
    "wordpiece": wordpiece,
    "unigram": unigram,
    "wordlevel": wordlevel,
}


@pytest.fixture(scope="session")
def families() -> dict[str, Tokenizer]:
    """One small tokenizer of each family."""
    return {name: make() for name, make in FAMILIES.items()}


@pytest.fixture(scope="session", params=FAMILIES)
def any_tokenizer(request: pytest.FixtureRequest, families: dict[str, Tokenizer]) -> Tokenizer:
    """Each family in turn."""
    return families[request.param]


@pytest.fixture(scope="session", params=["bytes", "bpe"])
def byte_level(request: pytest.FixtureRequest, families: dict[str, Tokenizer]) -> Tokenizer:
    """The two vocabularies that round-trip any text."""
    return families[request.param]
