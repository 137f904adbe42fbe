"""Text to token ids and back: one class for byte, character and BPE vocabularies and for anyone's tokenizer.json.

A tokenizer is a file in the ``tokenizer.json`` format of the Hugging Face tokenizers library, whatever made it. The
three vocabularies made here share their layout: byte-level ones hold the 256 bytes under their own values, then
end-of-text, then the merges in the order they were learned (Sennrich et al. 2016, algorithm 1; on bytes as in
Radford et al. 2019, section 2.2), so that ``bytes`` is ``bpe`` before its first merge.
"""

import hashlib
import json
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import decoders, models, pre_tokenizers, processors, trainers

from gnomon.data.files import atomic
from gnomon.data.pieces import BYTE_ALPHABET, Pieces, decoder_steps, tabulate
from gnomon.data.sentencepiece import read_model
from gnomon.errors import BadInput, BadValue, GnomonError

END_OF_TEXT = "<|endoftext|>"
UNKNOWN = "\N{REPLACEMENT CHARACTER}"
END_MARKS = (END_OF_TEXT, "</s>", "<eos>", "<|end_of_text|>", "<|im_end|>")  # looked for where no config names one
MASK_MARKS = ("[MASK]", "<mask>")  # BERT's, RoBERTa's
GPT2_FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
SENTENCEPIECE_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
MOST_TOKENS = 2**24  # the library reserves room for all of them before it begins
VISIBLE = {i: 0x2400 + i for i in range(33)} | {0x20: 0x2423, 0x7F: 0x2421}  # control pictures; ␣ for the space


class Tokenizer:
    """Text to token ids and back.

    >>> tokenizer = Tokenizer.bytes()
    >>> tokenizer.encode("niño")
    [110, 105, 195, 177, 111]
    >>> tokenizer.decode([110, 105, 195, 177, 111])
    'niño'

    A control string such as ``<|endoftext|>`` inside a text is text: it becomes ordinary tokens, never the control
    id, unless ``special=True`` asks for it. No token is ever added that the text does not hold.
    """

    def __init__(
        self, given: str | tokenizers.Tokenizer, end_mark: str | None = None, chat_template: str | None = None
    ) -> None:
        """Take the text of a ``tokenizer.json``, or the library's object; ``end_mark`` names end-of-text where its name
        is an unusual one. ``chat_template``: how a conversation becomes a text, in Jinja, see ``gnomon.data.chat``."""
        spec = json.loads(given if isinstance(given, str) else given.to_str())
        decoder_steps(spec)
        # A file may carry truncation and padding from its last use: both would change texts in silence.
        self._text = json.dumps(spec | {"truncation": None, "padding": None}, ensure_ascii=False)
        self._core = tokenizers.Tokenizer.from_str(given) if isinstance(given, str) else given
        self._core.no_truncation()
        self._core.no_padding()
        vocab = self._core.get_vocab(with_added_tokens=True)
        self.vocab_size: int = 1 + max(vocab.values(), default=-1)  #: ids run from 0 to vocab_size - 1
        self.eos_id: int | None = _end_of_text(vocab, end_mark)  #: the id of end-of-text, if there is one
        self.chat_template = chat_template

    @classmethod
    def bytes(cls) -> "Tokenizer":
        """256 byte ids equal to the byte values, and end-of-text (256)."""
        return cls._byte_level([])

    @classmethod
    def bpe(cls, texts: Iterable[str], vocab_size: int = 512) -> "Tokenizer":
        """Byte-level BPE learned from ``texts``: 256 bytes, end-of-text, then merges up to ``vocab_size`` ids.

        The same texts in the same order give the same tokenizer. Any text round-trips. The vocabulary stays smaller
        when the texts run out of pairs to merge. Words are cut out by GPT-2's pattern first, so no merge crosses them.
        """
        if vocab_size < 257:
            raise BadValue(f"vocab_size is {vocab_size}, but 256 bytes and end-of-text need 257: choose 257 or more")
        if vocab_size > MOST_TOKENS:
            raise BadValue(f"vocab_size is {vocab_size}, but no text has that many pairs: choose at most {MOST_TOKENS}")
        learner = tokenizers.Tokenizer(models.BPE())
        learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        learner.train_from_iterator(
            texts, trainers.BpeTrainer(vocab_size=vocab_size - 1, initial_alphabet=alphabet, show_progress=False)
        )
        return cls._byte_level([(left, right) for left, right in json.loads(learner.to_str())["model"]["merges"]])

    @classmethod
    def characters(cls, texts: Iterable[str]) -> "Tokenizer":
        """One id for each character seen in ``texts``, in code point order, then unknown (U+FFFD) and end-of-text."""
        seen = sorted(set().union(*texts) - {UNKNOWN})
        vocab = {character: i for i, character in enumerate([*seen, UNKNOWN])}
        core = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token=UNKNOWN))
        core.decoder = decoders.Fuse()
        core.add_special_tokens([END_OF_TEXT])
        return cls(core.to_str())

    @classmethod
    def from_vocab_merges(cls, vocab: str | Path, merges: str | Path) -> "Tokenizer":
        """Byte-level BPE from the two files GPT-2 is published as: ``vocab.json`` (token -> id) and ``merges.txt``."""
        try:
            core = tokenizers.Tokenizer(models.BPE.from_file(str(vocab), str(merges)))
        except Exception as error:  # the library raises bare Exception for a missing or malformed file
            raise BadInput(f"cannot read a BPE vocabulary from {vocab} and {merges}: {error}") from error
        return cls._complete(core, cut_words=True)

    @classmethod
    def from_sentencepiece(cls, path: str | Path) -> "Tokenizer":
        """A SentencePiece ``.model`` file; its begin-of-text token, if it has one, stands in ``frame``."""
        found = read_model(path)
        texts = [piece.text for piece in found.vocabulary.pieces]
        begin, end = (texts[i] if 0 <= i < len(texts) else None for i in (found.bos_id, found.eos_id))
        core = found.vocabulary.core()
        return cls(begun_with(core, begin).to_str(), end)

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a ``tokenizer.json`` or a folder that holds one; ``tokenizer_config.json`` there names end-of-text and
        holds the chat template.

        A folder without it may hold GPT-2's pair instead (vocab.json and merges.txt, or encoder.json and vocab.bpe) or
        a SentencePiece model (tokenizer.model or spiece.model); ``path`` may be such a model too.
        """
        file = _file(path)
        for model in (file, *map(file.with_name, SENTENCEPIECE_FILES)):
            if model.suffix == ".model" and model.exists() and (model == file or not file.exists()):
                return cls.from_sentencepiece(model)._as_configured(model)
        for vocab, merges in GPT2_FILES:
            if not file.exists() and file.with_name(vocab).exists() and file.with_name(merges).exists():
                return cls.from_vocab_merges(file.with_name(vocab), file.with_name(merges))._as_configured(file)
        try:
            return cls(file.read_text(encoding="utf-8"), *_configured(file))
        except OSError as error:
            raise BadInput(f"cannot read the tokenizer {file}: {error.strerror}") from error
        except GnomonError as error:
            raise BadInput(f"{file}: {error}") from error
        except Exception as error:  # the library raises bare Exception for a malformed file
            raise BadInput(f"{file} is not a tokenizer.json: {error}") from error

    def _as_configured(self, file: Path) -> "Tokenizer":
        """With the end-of-text token and the chat template that are told beside ``file``."""
        mark, template = _configured(file)
        return Tokenizer(self.to_json(), mark or self._end_mark, template)

    @classmethod
    def _byte_level(cls, merges: list[tuple[str, str]]) -> "Tokenizer":
        letters = [*BYTE_ALPHABET, END_OF_TEXT, *(left + right for left, right in merges)]
        vocab = {token: i for i, token in enumerate(letters)}
        return cls._complete(tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges)), cut_words=bool(merges))

    @classmethod
    def _complete(cls, core: tokenizers.Tokenizer, cut_words: bool) -> "Tokenizer":
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=cut_words)
        core.decoder = decoders.ByteLevel()
        core.add_special_tokens([mark for mark in END_MARKS if core.token_to_id(mark) is not None])
        return cls(core.to_str())

    def with_mask(self) -> "Tokenizer":
        """This tokenizer with a control token [MASK] after all others; itself where it has a mask already."""
        if self.mask_id is not None:
            return self
        core = tokenizers.Tokenizer.from_str(self.to_json())
        core.add_special_tokens([MASK_MARKS[0]])
        return Tokenizer(core.to_str(), self._end_mark, self.chat_template)

    def to_json(self) -> str:
        """The text of the ``tokenizer.json``."""
        return json.dumps(self._spec, ensure_ascii=False, indent=2) + "\n"

    def save(self, path: str | Path) -> Path:
        """Write ``tokenizer.json`` into the folder ``path`` (or to ``path`` itself where it ends in .json), atomically.

        A ``tokenizer_config.json`` goes beside it, which names end-of-text to us and to the transformers library, and
        holds the chat template.
        Returns the file written.
        """
        file = _file(path)
        if file.name == "tokenizer.json":
            config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": self._end_mark}
            config |= {} if self.chat_template is None else {"chat_template": self.chat_template}
            with atomic(file.with_name("tokenizer_config.json")) as out:
                out.write((json.dumps(config, indent=2) + "\n").encode())
        with atomic(file) as out:
            out.write(self.to_json().encode())
        return file

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Token ids of ``text``; ``special=True`` reads control strings in it as control ids."""
        core = self._core if special else self._reading_text
        try:
            ids: list[int] = core.encode(text, add_special_tokens=False).ids
        except TypeError as error:
            raise _not_text([text]) from error
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, on all cores."""
        try:
            encodings = self._reading_text.encode_batch_fast(texts, add_special_tokens=False)
        except TypeError as error:
            raise _not_text(texts) from error
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: Iterable[int], special: bool = False) -> str:
        """The text of ``ids``; bytes that are not UTF-8 become U+FFFD, control ids nothing (or their names)."""
        shown = [i for i in self.check(ids) if special or i not in self.control_ids]
        return self.pieces.join(shown).decode("utf-8", errors="replace")

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """Each token as a reader can tell it from its neighbours: ``␣world``, ``␊``, ``\\xe2`` for a lone byte.

        Blanks and control characters are shown as Unicode's control pictures. Control ids show their names.
        """
        return [self.pieces.rest[i].decode("utf-8", "backslashreplace").translate(VISIBLE) for i in self.check(ids)]

    def byte_lengths(self) -> "np.ndarray[Any, np.dtype[np.int64]]":
        """(V,) the UTF-8 bytes each id adds to a text, for bits per byte; control ids add 0.

        Exact for byte-level and character vocabularies. The unknown token counts 1, the least that it can stand for,
        so that bits per byte is never flattered by characters the vocabulary does not know.
        """
        lengths = np.array([len(piece) for piece in self.pieces.rest], dtype=np.int64)
        lengths[list(self.control_ids)] = 0
        if self.unk_id is not None:
            lengths[self.unk_id] = 1
        return lengths

    def check(self, ids: Iterable[int]) -> list[int]:
        """The same ids as ints; BadValue names the first that is outside the vocabulary."""
        known = [int(i) for i in ids]
        for at, i in enumerate(known):
            if not 0 <= i < self.vocab_size:
                raise BadValue(f"token id {i} at position {at} is outside the vocabulary of {self.vocab_size} tokens")
        return known

    @property
    def _spec(self) -> dict[str, Any]:
        """The ``tokenizer.json`` as objects: ten times the room of its text, so made when they are asked for."""
        spec: dict[str, Any] = json.loads(self._text)
        return spec

    @cached_property
    def kind(self) -> str:
        """What the vocabulary holds: "bytes", "characters", "bpe", or the model type of a foreign file."""
        spec = self._spec
        model = spec["model"]
        if model["type"] == "BPE" and not model["merges"]:
            return "bytes" if "ByteLevel" in decoder_steps(spec) else "characters"
        return str(model["type"]).lower()

    @cached_property
    def control_ids(self) -> frozenset[int]:
        """The ids that stand for no text."""
        return frozenset(self.controls.values())

    @cached_property
    def controls(self) -> dict[str, int]:
        """The control tokens by name."""
        return {token["content"]: token["id"] for token in self._spec["added_tokens"] if token["special"]}

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The control ids that models of this vocabulary expect before and after a text: begin-of-text, or [CLS] and
        [SEP]. Empty for a vocabulary that does not say so."""
        whole = self._core.encode("x", add_special_tokens=True).ids
        inside = [at for at, i in enumerate(whole) if i not in self.control_ids]
        return (whole[: inside[0]], whole[inside[-1] + 1 :]) if inside else ([], [])

    @cached_property
    def mask_id(self) -> int | None:
        """The id that stands for a token to be guessed, if there is one."""
        return next((self.controls[mark] for mark in MASK_MARKS if mark in self.controls), None)

    @cached_property
    def unk_id(self) -> int | None:
        """The id of everything the vocabulary does not know, if there is such an id."""
        model = self._spec["model"]
        name = model.get("unk_token")
        unk: int | None = model.get("unk_id") if name is None else self._core.token_to_id(name)
        return unk

    @cached_property
    def pieces(self) -> Pieces:
        """What each id adds to a text."""
        return tabulate(self._core, self.vocab_size, self.control_ids)

    @cached_property
    def sha256(self) -> str:
        """Fingerprint of everything that decides which ids a text gets."""
        spec = self._spec
        content = [spec[key] for key in ("added_tokens", "normalizer", "pre_tokenizer", "model", "decoder")]
        return hashlib.sha256(json.dumps([content, self.eos_id]).encode()).hexdigest()

    @cached_property
    def _reading_text(self) -> tokenizers.Tokenizer:
        return tokenizers.Tokenizer.from_str(json.dumps(_without_controls(self._spec)))

    @property
    def _end_mark(self) -> str | None:
        return None if self.eos_id is None else self._core.id_to_token(self.eos_id)

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer, (self.to_json(), self._end_mark, self.chat_template)

    def __repr__(self) -> str:
        return f"Tokenizer(kind={self.kind!r}, vocab_size={self.vocab_size}, eos_id={self.eos_id})"


def _end_of_text(vocab: dict[str, int], mark: str | None) -> int | None:
    """The id of ``mark``; where none is given, of the first customary name that the vocabulary holds."""
    if mark is not None and mark not in vocab:
        raise BadValue(f"the end-of-text token is said to be {mark!r}, which is not in the vocabulary")
    return next((vocab[name] for name in ([mark] if mark else END_MARKS) if name in vocab), None)


def hidden_name(i: int) -> str:
    """The name under which `encode` knows a control id; texts cannot hold it (U+10FFFF is no character)."""
    return f"\U0010ffff{i}\U0010ffff"


def _without_controls(spec: dict[str, Any]) -> dict[str, Any]:
    """The same tokenizer with its control tokens under names that no text holds, so that a text cannot call them.

    It is not enough to tell the library that they are ordinary: a unigram or word vocabulary lists them among its
    words. The unknown token keeps its name, by which the model finds it.
    """
    unk = spec["model"].get("unk_token")
    names = {t["content"]: hidden_name(t["id"]) for t in spec["added_tokens"] if t["special"]}
    names.pop(unk, None)
    vocab = spec["model"]["vocab"]
    if isinstance(vocab, dict):
        renamed: Any = {names.get(name, name): i for name, i in vocab.items()}
    else:
        renamed = [[names.get(name, name), score] for name, score in vocab]
    added = [token | {"content": names.get(token["content"], token["content"])} for token in spec["added_tokens"]]
    return spec | {"model": spec["model"] | {"vocab": renamed}, "added_tokens": added}


def _file(path: str | Path) -> Path:
    path = Path(path)
    return path if path.suffix in (".json", ".model") else path / "tokenizer.json"


def _configured(file: Path) -> tuple[str | None, str | None]:
    """The end-of-text token that a ``tokenizer_config.json`` beside ``file`` names, as a string or an added token, and
    the chat template there or in a file of its own."""
    beside, apart = file.with_name("tokenizer_config.json"), file.with_name("chat_template.jinja")
    template = apart.read_text(encoding="utf-8") if apart.is_file() else None
    if not beside.is_file():
        return None, template
    try:
        config = json.loads(beside.read_text(encoding="utf-8"))
    except ValueError as error:
        raise BadInput(f"{beside} is not JSON: {error}") from error
    mark, held = config.get("eos_token"), config.get("chat_template")
    if isinstance(held, list):  # several, by name
        held = {each.get("name"): each.get("template") for each in held}.get("default")
    return mark.get("content") if isinstance(mark, dict) else mark, template or held


def begun_with(core: tokenizers.Tokenizer, mark: str | None) -> tokenizers.Tokenizer:
    """The same tokenizer of the library, saying that texts begin with this control token."""
    if mark is not None:
        post = processors.TemplateProcessing(single=f"{mark} $A", special_tokens=[(mark, core.token_to_id(mark))])
        core.post_processor = post
    return core


def _not_text(texts: Sequence[str]) -> BadValue:
    """Say which text the library refused: not a string, or a lone surrogate, which no UTF-8 text can hold."""
    for text in texts:
        if not isinstance(text, str):
            return BadValue(f"a text is a str, but {type(text).__name__} was given")
        for at, character in enumerate(text):
            if 0xD800 <= ord(character) < 0xE000:
                return BadValue(
                    f"character {at} of the text is the lone surrogate U+{ord(character):04X}, which UTF-8 "
                    "cannot hold: replace it, for example with text.encode('utf-8', 'replace').decode()"
                )
    return BadValue("the texts are not a list of str")
