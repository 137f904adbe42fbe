"""Text to token ids and back: one class for byte, character and BPE vocabularies and for anyone's tokenizer.json.

A tokenizer is a file in the ``tokenizer.json`` format of the Hugging Face tokenizers library, whatever made it. The
three vocabularies made here share their layout: byte-level ones hold the 256 bytes under their own values, then
end-of-text, then the merges in the order they were learned (Sennrich et al. 2016, algorithm 1; on bytes as in
Radford et al. 2019, section 2.2), so that ``bytes`` is ``bpe`` before its first merge.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import index
from pathlib import Path
from typing import Any

import numpy as np
import tokenizers
from tokenizers import Regex, decoders, models, pre_tokenizers, trainers

from gnomon.data.files import atomic
from gnomon.data.published import (
    BPE_FILES,
    END_MARKS,
    END_OF_TEXT,
    ROLES,
    SENTENCEPIECE_FILES,
    build,
    read_folder,
)
from gnomon.data.token_bytes import BYTE_ALPHABET, TokenBytes, decoder_steps, tabulate
from gnomon.data.tokenizers_library import MOST_TOKENS, frame_of, open_tokenizer, translate_errors, without_controls
from gnomon.errors import BadInput, BadValue, GnomonError, each_text, must_be, unknown, wrong

UNKNOWN = "\N{REPLACEMENT CHARACTER}"
MASK_MARKS = ("[MASK]", "<mask>")  # BERT's, RoBERTa's
LONGEST_WORD = 512  # bytes of a word that merges are learned from: the learner's work grows with the square of it
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
        self,
        given: str | tokenizers.Tokenizer,
        names: Mapping[str, str] | None = None,
        chat_template: str | None = None,
    ) -> None:
        """Take the text of a ``tokenizer.json``, or the library's object.

        names           its control tokens by their parts ("bos_token", "eos_token", "unk_token", "pad_token" ...), as
                        ``tokenizer_config.json`` names them; end-of-text is found without where it has a customary name
        chat_template   how a conversation becomes a text, in Jinja, see ``gnomon.data.chat``

        Raises BadInput for what is no tokenizer, BadValue for names that are not in its vocabulary.
        """
        must_be("names", names, Mapping | None, "such as {'bos_token': '<s>', 'eos_token': '</s>'}")
        must_be("chat_template", chat_template, str | None)
        bare = isinstance(given, tokenizers.Tokenizer) and given.truncation is None and given.padding is None
        self._text, self._core = open_tokenizer(_text(given), given if bare else None)
        decoder_steps(
            {"decoder": None if self._core.decoder is None else json.loads(self._core.decoder.__getstate__())}
        )
        ids = self._core.get_vocab(with_added_tokens=True).values()
        self.vocab_size: int = 1 + max(ids, default=-1)  #: ids run from 0 to vocab_size - 1
        del ids
        if self.vocab_size > MOST_TOKENS:
            raise BadInput(f"the largest id is {self.vocab_size - 1}, but no vocabulary has more than {MOST_TOKENS}")
        self._call(names or {}, chat_template)

    def _call(self, names: Mapping[str, str], chat_template: str | None) -> None:
        self.names: Mapping[str, str] = _check_names(names, self._core)  #: the control tokens by their parts
        self.eos_id: int | None = self.named("eos_token")  #: the id of end-of-text, if there is one
        self.bos_id: int | None = self.named("bos_token")  #: of begin-of-text
        self.pad_id: int | None = self.named("pad_token")  #: of padding
        self.chat_template = chat_template

    def named(self, part: str) -> int | None:
        """The id of the control token that plays a part, such as "unk_token"; None where no token does."""
        i: int | None = self._core.token_to_id(self.names[part]) if part in self.names else None
        return i

    @classmethod
    def bytes(cls) -> "Tokenizer":
        """256 byte ids equal to the byte values, and end-of-text (256)."""
        return cls._byte_level([])

    @classmethod
    def bpe(cls, texts: Iterable[str], vocab_size: int = 512) -> "Tokenizer":
        """Byte-level BPE learned from ``texts``: 256 bytes, end-of-text, then merges up to ``vocab_size`` ids.

        The same texts in the same order give the same tokenizer. Any text round-trips. The vocabulary stays smaller
        when the texts run out of pairs to merge. Words are cut out by GPT-2's pattern first, so no merge crosses them;
        merges are learned from a word of more than 512 bytes as from several of at most that.
        """
        must_be("vocab_size", vocab_size, int)
        if vocab_size < 257:
            raise BadValue(f"vocab_size is {vocab_size}, but 256 bytes and end-of-text need 257: choose 257 or more")
        if vocab_size > MOST_TOKENS:
            raise BadValue(f"vocab_size is {vocab_size}, but no text has that many pairs: choose at most {MOST_TOKENS}")
        learner = tokenizers.Tokenizer(models.BPE())
        words = [pre_tokenizers.ByteLevel(add_prefix_space=False), _at_most(LONGEST_WORD)]
        learner.pre_tokenizer = pre_tokenizers.Sequence(words)
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        learner.train_from_iterator(
            each_text("texts", texts),
            trainers.BpeTrainer(vocab_size=vocab_size - 1, initial_alphabet=alphabet, show_progress=False),
        )
        return cls._byte_level([(left, right) for left, right in json.loads(learner.to_str())["model"]["merges"]])

    @classmethod
    def characters(cls, texts: Iterable[str]) -> "Tokenizer":
        """One id for each character seen in ``texts``, in code point order, then unknown (U+FFFD) and end-of-text."""
        seen = sorted(set().union(*each_text("texts", texts)) - {UNKNOWN})
        vocab = {character: i for i, character in enumerate([*seen, UNKNOWN])}
        core = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=[], unk_token=UNKNOWN))
        core.decoder = decoders.Fuse()
        core.add_special_tokens([END_OF_TEXT])
        return cls(core.to_str())

    @classmethod
    def from_vocab_merges(cls, vocab: str | Path, merges: str | Path) -> "Tokenizer":
        """Byte-level BPE from the two files GPT-2 is published as: ``vocab.json`` (token -> id) and ``merges.txt``.

        What stands around a text is said by the files beside them, see ``gnomon.data.published``.
        """
        return cls._published(Path(vocab), Path(merges))

    @classmethod
    def from_sentencepiece(cls, path: str | Path) -> "Tokenizer":
        """A SentencePiece ``.model`` file; what stands around a text is said by the files beside it, if there are any,
        see ``gnomon.data.published``; otherwise its begin-of-text token, if it has one, stands in ``frame``."""
        return cls._published(Path(path))

    @classmethod
    def load(cls, path: str | Path) -> "Tokenizer":
        """Read a ``tokenizer.json`` or a folder that holds one; ``tokenizer_config.json`` there names its control
        tokens and holds the chat template.

        A folder without it may hold another published form: vocab.json and merges.txt (or encoder.json and vocab.bpe),
        vocab.txt, or a SentencePiece model; ``path`` may be such a model too. See ``gnomon.data.published``.
        """
        must_be("path", path, str | Path)
        file = _file(path)
        if file.suffix == ".model":
            return cls._published(file)
        if not file.exists():
            for vocab, merges in BPE_FILES:
                if file.with_name(vocab).exists() and file.with_name(merges).exists():
                    return cls._published(file.with_name(vocab), file.with_name(merges))
            for name in ("vocab.txt", *SENTENCEPIECE_FILES):
                if file.with_name(name).exists():
                    return cls._published(file.with_name(name))
        folder = read_folder(file.parent)
        try:
            bare = cls(file.read_text(encoding="utf-8"))
            bare._call({**folder.known(bare._core), **folder.declared("eos_token")}, folder.chat_template)
            return bare
        except OSError as error:
            raise BadInput(f"cannot read the tokenizer {file}: {error.strerror}") from error
        except (GnomonError, UnicodeDecodeError) as error:
            raise BadInput(f"{file}: {error}") from error

    @classmethod
    def _published(cls, vocabulary: Path, merges: Path | None = None) -> "Tokenizer":
        core, folder = build(vocabulary, merges)
        try:
            return cls(core, {**folder.known(core), **folder.declared("eos_token")}, folder.chat_template)
        except GnomonError as error:
            raise BadInput(f"{vocabulary}: {error}") from error

    @classmethod
    def _byte_level(cls, merges: list[tuple[str, str]]) -> "Tokenizer":
        letters = [*BYTE_ALPHABET, END_OF_TEXT, *(left + right for left, right in merges)]
        vocab = {token: i for i, token in enumerate(letters)}
        core = tokenizers.Tokenizer(models.BPE(vocab=vocab, merges=merges))
        core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=bool(merges))
        core.decoder = decoders.ByteLevel()
        core.add_special_tokens([END_OF_TEXT])
        return cls(core)

    def with_mask(self) -> "Tokenizer":
        """This tokenizer with a control token [MASK] after all others; itself where it has a mask already."""
        if self.mask_id is not None:
            return self
        core = tokenizers.Tokenizer.from_str(self._text)
        core.add_special_tokens([MASK_MARKS[0]])
        return Tokenizer(core, {**self.names, "mask_token": MASK_MARKS[0]}, self.chat_template)

    def to_json(self) -> str:
        """The text of the ``tokenizer.json``."""
        return json.dumps(self._spec, ensure_ascii=False, indent=2) + "\n"

    def save(self, path: str | Path) -> Path:
        """Write ``tokenizer.json`` into the folder ``path`` (or to ``path`` itself where it ends in .json), atomically.

        A ``tokenizer_config.json`` goes beside it, which names the control tokens to us and to the transformers
        library, and holds the chat template.
        Returns the file written.
        """
        file = _file(path)
        if file.name == "tokenizer.json":
            config = {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": None, **self.names}
            config |= {} if self.chat_template is None else {"chat_template": self.chat_template}
            with atomic(file.with_name("tokenizer_config.json")) as out:
                out.write((json.dumps(config, indent=2) + "\n").encode())
        with atomic(file) as out:
            out.write(self.to_json().encode())
        return file

    def encode(self, text: str, special: bool = False) -> list[int]:
        """Token ids of ``text``; ``special=True`` reads control strings in it as control ids."""
        must_be("special", special, bool)
        core = self._core if special else self._reading_text
        try:
            with translate_errors("this text cannot be encoded"):
                ids: list[int] = core.encode(text, add_special_tokens=False).ids
        except BadInput as error:
            raise _not_text([text]) or error from error
        return ids

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text, on all cores."""
        try:
            with translate_errors("these texts cannot be encoded"):
                encodings = self._reading_text.encode_batch_fast(texts, add_special_tokens=False)
        except BadInput as error:
            raise _not_text(texts) or error from error
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
        try:
            known = [index(i) for i in ids]
        except TypeError as error:
            raise wrong("ids", ids, "the token ids of one text, whole numbers") from error
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
        """The ids that models of this vocabulary expect before and after a text: begin-of-text, or [CLS] and [SEP].
        Empty for a vocabulary that does not say so."""
        before, after = frame_of(self._spec["post_processor"])
        self.check([*before, *after])
        return before, after

    @cached_property
    def mask_id(self) -> int | None:
        """The id that stands for a token to be guessed, if there is one."""
        marks = (self.names.get("mask_token", ""), *MASK_MARKS)
        return next((self.controls[mark] for mark in marks if mark in self.controls), None)

    @cached_property
    def unk_id(self) -> int | None:
        """The id of everything the vocabulary does not know, if there is such an id."""
        model = self._spec["model"]
        name = model.get("unk_token")
        unk: int | None = model.get("unk_id") if name is None else self._core.token_to_id(name)
        return unk

    @cached_property
    def pieces(self) -> TokenBytes:
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
        return tokenizers.Tokenizer.from_str(json.dumps(without_controls(self._spec)))

    def __reduce__(self) -> tuple[Any, ...]:
        return Tokenizer, (self.to_json(), dict(self.names), self.chat_template)

    def __repr__(self) -> str:
        return f"Tokenizer(kind={self.kind!r}, vocab_size={self.vocab_size}, eos_id={self.eos_id})"


def _text(given: Any) -> str:
    if isinstance(given, str):
        return given
    if not isinstance(given, tokenizers.Tokenizer):
        raise BadValue(
            f"a tokenizer is the text of a tokenizer.json or an object of the tokenizers library, got "
            f"{type(given).__name__}: Tokenizer.load(FOLDER) reads a file"
        )
    text: str = given.to_str()
    return text


def _check_names(names: Mapping[str, str], core: tokenizers.Tokenizer) -> dict[str, str]:
    """The control tokens by their parts, and end-of-text among them, if it has a customary name."""
    for part, mark in names.items():
        if part not in ROLES:
            raise unknown("part of a control token", part, ROLES)
        if core.token_to_id(mark) is None:
            called = {"eos_token": "end-of-text", "bos_token": "begin-of-text"}.get(part, part)
            raise BadValue(f"the {called} token is said to be {mark!r}, which is not in the vocabulary")
    usual = next((mark for mark in END_MARKS if core.token_to_id(mark) is not None), None)
    return {**names, **({} if usual is None or "eos_token" in names else {"eos_token": usual})}


def _at_most(length: int) -> pre_tokenizers.PreTokenizer:
    """Cuts a longer word into pieces of this many bytes, each a letter of the byte alphabet."""
    return pre_tokenizers.Split(Regex(f".{{1,{length}}}"), "isolated")


def _file(path: str | Path) -> Path:
    path = Path(path)
    return path if path.suffix in (".json", ".model") else path / "tokenizer.json"


def _not_text(texts: Sequence[str]) -> BadValue | None:
    """Say which text the library refused: not a string, or a lone surrogate, which no UTF-8 text can hold."""
    for text in [texts] if isinstance(texts, str) else texts:
        if not isinstance(text, str):
            return BadValue(f"a text is a str, but {type(text).__name__} was given")
        for at, character in enumerate(text):
            if 0xD800 <= ord(character) < 0xE000:
                return BadValue(
                    f"character {at} of the text is the lone surrogate U+{ord(character):04X}, which UTF-8 "
                    "cannot hold: replace it, for example with text.encode('utf-8', 'replace').decode()"
                )
    return None
