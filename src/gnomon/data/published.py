"""Tokenizers as they are published besides ``tokenizer.json``: a vocabulary, and the class that uses it.

    vocab.json and merges.txt (encoder.json and vocab.bpe)     byte-level BPE: GPT-2, GPT-NeoX, Qwen, OPT, RoBERTa, BART
    vocab.txt                                                  WordPiece: BERT, DistilBERT, ELECTRA, MPNet
    tokenizer.model, spiece.model, sentencepiece.bpe.model     SentencePiece: Llama, Gemma, T5, ALBERT, mBART, PEGASUS
    sentencepiece.bpe.model and vocab.json                     SentencePiece under ids of their own: M2M-100

The vocabulary alone does not say what stands around a text, how a text is prepared, or which tokens are control tokens.
The class does: the one that ``tokenizer_config.json`` names, or the usual one of config.json's model_type. What the
classes of the transformers library do is written down here once.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import AddedToken, Regex, decoders, models, normalizers, pre_tokenizers

from gnomon.data.pretokenization import QWEN2, PreTokenizers, gpt2, pattern
from gnomon.data.renumbered import camembert, fairseq, m2m100, pegasus
from gnomon.data.sentencepiece import SPACE, UNKNOWN, ModelFile, read_model
from gnomon.data.tokenizers_library import translate_errors, with_frame
from gnomon.errors import BadInput, unknown

END_OF_TEXT = "<|endoftext|>"
END_MARKS = (END_OF_TEXT, "</s>", "<eos>", "<|end_of_text|>", "<|im_end|>")  # looked for where no config names one
#: the parts that a control token can have, by their names in tokenizer_config.json
ROLES = ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token")
BPE_FILES = (("vocab.json", "merges.txt"), ("encoder.json", "vocab.bpe"))
SENTENCEPIECE_FILES = ("tokenizer.model", "spiece.model", "sentencepiece.bpe.model")
#: files each of which, or each pair of which, is a whole tokenizer
TOKENIZER_FILES = (("tokenizer.json",), *BPE_FILES, ("vocab.txt",), *((name,) for name in SENTENCEPIECE_FILES))


@dataclass(frozen=True)
class TokenizerClass:
    """What a class of the transformers library does with a vocabulary.

    names      its control tokens, where no config names others
    around     the parts that stand before and after a text
    asks       whether add_bos_token and add_eos_token of the config decide what stands around a text; the value is what
               the first one is where the config does not say
    words      how a byte-level vocabulary cuts words; composed: whether texts are brought into Unicode's form NFC first
    marked     whether each word of a text gets SentencePiece's ▁, rather than the text once
    language   the code of the language that texts are in, where a code stands around them and no config says src_lang
    code       how a language is written as a token
    spaced     whether words are what stands between spaces of any kind, where each gets its ▁
    ids        how it numbers the pieces of a SentencePiece model, where not as the model does
    """

    names: Mapping[str, str]
    around: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    asks: bool | None = None
    words: Callable[[], PreTokenizers] = gpt2
    composed: bool = False
    marked: bool = False
    language: str | None = None
    code: str = "{}"
    spaced: bool = True
    ids: "Callable[[ModelFile, Folder], ModelFile] | None" = None


def _names(**parts: str) -> dict[str, str]:
    return {f"{part}_token": mark for part, mark in parts.items()}


_ENDED = _names(bos=END_OF_TEXT, eos=END_OF_TEXT, unk=END_OF_TEXT)
_LLAMA = _names(bos="<s>", eos="</s>", unk="<unk>")
_BART = _LLAMA | _names(sep="</s>", cls="<s>", pad="<pad>", mask="<mask>")
_QWEN = _names(eos=END_OF_TEXT, unk=END_OF_TEXT, pad=END_OF_TEXT)
_BERT = _names(unk="[UNK]", sep="[SEP]", pad="[PAD]", cls="[CLS]", mask="[MASK]")
_MPNET = _BART | _names(unk="[UNK]")
_ALBERT = _names(bos="[CLS]", eos="[SEP]", unk="<unk>", sep="[SEP]", pad="<pad>", cls="[CLS]", mask="[MASK]")
_M2M = _LLAMA | _names(sep="</s>", pad="<pad>")
_PEGASUS = _names(eos="</s>", unk="<unk>", pad="<pad>", mask="<mask_2>")
_WITHIN = (("cls_token",), ("sep_token",))
_BEGUN = (("bos_token",), ("eos_token",))
_SPOKEN = (("src_lang",), ("eos_token",))
_ROBERTA, _WORDPIECE = TokenizerClass(_BART, _WITHIN), TokenizerClass(_BERT, _WITHIN)
_T5 = TokenizerClass(_names(eos="</s>", unk="<unk>", pad="<pad>"), ((), ("eos_token",)), marked=True)

#: by the name of the class in the transformers library, without "Fast"
CLASSES: Mapping[str, TokenizerClass] = {
    "GPT2Tokenizer": TokenizerClass(_ENDED, asks=False),
    "GPTNeoXTokenizer": TokenizerClass(_ENDED | _names(pad="<|padding|>"), asks=False, composed=True),
    "Qwen2Tokenizer": TokenizerClass(_QWEN, asks=False, words=pattern(QWEN2), composed=True),
    "RobertaTokenizer": _ROBERTA,
    "BartTokenizer": _ROBERTA,
    **dict.fromkeys(("BertTokenizer", "DistilBertTokenizer", "ElectraTokenizer"), _WORDPIECE),
    "MPNetTokenizer": TokenizerClass(_MPNET, _WITHIN),
    "AlbertTokenizer": TokenizerClass(_ALBERT, _WITHIN, marked=True),
    **dict.fromkeys(("T5Tokenizer", "MT5Tokenizer"), _T5),
    "LlamaTokenizer": TokenizerClass(_LLAMA, asks=True),
    "GemmaTokenizer": TokenizerClass(
        _names(bos="<bos>", eos="<eos>", unk="<unk>", pad="<pad>", mask="<mask>"), asks=True
    ),
    "XLMRobertaTokenizer": TokenizerClass(_BART, _BEGUN, marked=True, ids=fairseq),
    "CamembertTokenizer": TokenizerClass(_BART, _BEGUN, marked=True, ids=camembert),
    "MBartTokenizer": TokenizerClass(
        _BART, ((), ("eos_token", "src_lang")), marked=True, language="en_XX", ids=fairseq
    ),
    "MBart50Tokenizer": TokenizerClass(_BART, _SPOKEN, marked=True, language="en_XX", spaced=False, ids=fairseq),
    "NllbTokenizer": TokenizerClass(_BART, _SPOKEN, marked=True, language="eng_Latn", spaced=False, ids=fairseq),
    "M2M100Tokenizer": TokenizerClass(_M2M, _SPOKEN, language="en", code="__{}__", ids=m2m100),
    "PegasusTokenizer": TokenizerClass(_PEGASUS, ((), ("eos_token",)), marked=True, spaced=False, ids=pegasus),
}
#: classes that say nothing but what their files do
ANY = ("PreTrainedTokenizerFast", "PreTrainedTokenizer", "TokenizersBackend", "AutoTokenizer")
GENERIC, GENERIC_PIECES = TokenizerClass({}, asks=False), TokenizerClass({}, asks=True)
_TYPES = {
    "GPT2Tokenizer": "gpt2 opt gpt_neo gptj phi gpt_bigcode starcoder2 granite",
    "GPTNeoXTokenizer": "gpt_neox mpt olmoe stablelm",
    "Qwen2Tokenizer": "qwen2 qwen3 qwen2_moe qwen3_moe",
    "RobertaTokenizer": "roberta",
    "BartTokenizer": "bart",
    "BertTokenizer": "bert distilbert electra",
    "MPNetTokenizer": "mpnet",
    "AlbertTokenizer": "albert",
    "T5Tokenizer": "t5 mt5",
    "GemmaTokenizer": "gemma gemma2 gemma3_text",
    "XLMRobertaTokenizer": "xlm-roberta",
    "CamembertTokenizer": "camembert",
    "MBartTokenizer": "mbart",
    "M2M100Tokenizer": "m2m_100",
    "PegasusTokenizer": "pegasus",
}
USUAL: Mapping[str, str] = {kind: name for name, kinds in _TYPES.items() for kind in kinds.split()}
#: model types whose published configs name classes that are not used: these are
INSTEAD: Mapping[str, str | None] = {"qwen2": "Qwen2Tokenizer", "phi3": None, "mistral": None}


@dataclass(frozen=True)
class Folder:
    """What the files beside a vocabulary say about it."""

    path: Path
    config: Mapping[str, Any]
    kind: TokenizerClass
    named: str | None  #: the class, where it is known
    chat_template: str | None

    @property
    def names(self) -> dict[str, str]:
        """The control tokens by their parts; those that the config names, and the class's own."""
        return {part: mark for part, mark in {**self.kind.names, **_declared(self.config)}.items() if mark is not None}

    def beside(self, name: str) -> dict[str, Any]:
        """What another file of the folder says; nothing where it is not there."""
        return _json(self.path / name)

    def known(self, core: tokenizers.Tokenizer) -> dict[str, str]:
        """Those of its control tokens that are in a vocabulary."""
        return {part: mark for part, mark in self.names.items() if core.token_to_id(mark) is not None}

    def declared(self, *parts: str) -> dict[str, str]:
        """Of these, what the config names: that has to be in the vocabulary."""
        return {part: mark for part, mark in _declared(self.config).items() if mark is not None and part in parts}

    def frame(self, vocab: Mapping[str, int]) -> tuple[list[str], list[str]]:
        """What stands around a text."""
        language = self.config.get("src_lang") or self.kind.language
        code = self.kind.code.format(language) if self.kind.language else ""
        if code and code not in vocab:
            raise BadInput(
                f"{self.path}: its src_lang is {str(language)[:80]!r}, a language without a token {code[:80]!r}"
            )
        names = {**self.names, "src_lang": code}
        first, last = self.kind.around
        if self.kind.asks is not None:
            first = ("bos_token",) if self.config.get("add_bos_token", self.kind.asks) else ()
            last = ("eos_token",) if self.config.get("add_eos_token", False) else ()
        before, after = ([names[part] for part in parts if part in names] for parts in (first, last))
        return [mark for mark in before if mark in vocab], [mark for mark in after if mark in vocab]


def read_folder(path: Path) -> Folder:
    """What the files of a folder say about its tokenizer. Raises BadInput for one that is damaged."""
    config = {**_json(path / "special_tokens_map.json"), **_json(path / "tokenizer_config.json")}
    model = _json(path / "config.json")
    kind = str(model.get("model_type"))
    named_class = config.get("tokenizer_class") or model.get("tokenizer_class") or USUAL.get(kind)
    named = INSTEAD.get(kind, None if named_class in ANY else named_class)
    named = str(named or "").removesuffix("Fast")
    return Folder(path, config, CLASSES.get(named, GENERIC), named or None, _template(path, config))


def _json(file: Path) -> dict[str, Any]:
    """What a file says; nothing where it is not there."""
    if not file.is_file():
        return {}
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"{file} is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise BadInput(f"{file} holds a {type(found).__name__}: an object was expected")
    return found


def _declared(config: Mapping[str, Any]) -> dict[str, str | None]:
    return {part: _mark(config[part]) for part in ROLES if part in config}


def _mark(given: Any) -> str | None:
    """A token as configs write it: a string, or an object."""
    mark = given.get("content") if isinstance(given, dict) else given
    return mark if isinstance(mark, str) else None


def _template(path: Path, config: Mapping[str, Any]) -> str | None:
    """The chat template, in a file of its own or in the config; of several, the default one."""
    apart = path / "chat_template.jinja"
    if apart.is_file():
        try:
            return apart.read_text(encoding="utf-8")
        except UnicodeDecodeError as error:
            raise BadInput(f"{apart} is not UTF-8: {error}") from error
    held = config.get("chat_template")
    if isinstance(held, list):  # several, by name
        held = {each.get("name"): each.get("template") for each in held if isinstance(each, dict)}.get("default")
    return held if isinstance(held, str) else None


# ------------------------------------------------------------------ vocabularies


def build(vocabulary: Path, merges: Path | None = None) -> tuple[tokenizers.Tokenizer, Folder]:
    """The tokenizer of a published vocabulary, as its class makes it, and what the files beside it say.

    vocabulary   vocab.json with its merges, vocab.txt, or a SentencePiece model

    Raises BadInput for files that are damaged, and for a class that is not known.
    """
    folder = read_folder(vocabulary.parent)
    if folder.named is not None and folder.named not in CLASSES:
        raise BadInput(
            f"{folder.path}: {unknown('tokenizer_class', folder.named, CLASSES)}. The transformers library can write "
            "it as tokenizer.json, which says all: AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER)"
        )
    with translate_errors(f"{vocabulary} cannot be used"):
        if merges is not None:
            core = _byte_level(vocabulary, merges, folder)
        elif vocabulary.suffix == ".txt":
            core = _wordpiece(vocabulary, folder)
        else:
            found = read_model(vocabulary)
            found = found if folder.kind.ids is None else folder.kind.ids(found, folder)
            folder = _add_model_names(folder, found)
            core = _sentencepiece(found, folder)
        _add(core, folder)
        before, after = folder.frame(core.get_vocab())
        return with_frame(core, before, after), folder


def _byte_level(vocab: Path, merges: Path, folder: Folder) -> tokenizers.Tokenizer:
    with translate_errors(f"cannot read a BPE vocabulary from {vocab} and {merges}"):
        core = tokenizers.Tokenizer(models.BPE.from_file(str(vocab), str(merges)))
    words = [*folder.kind.words()]
    if folder.config.get("add_prefix_space"):
        words[-1] = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=len(words) == 1)
    core.pre_tokenizer = words[0] if len(words) == 1 else pre_tokenizers.Sequence(words)
    core.normalizer = normalizers.NFC() if folder.kind.composed else None
    core.decoder = decoders.ByteLevel()
    return core


def _wordpiece(file: Path, folder: Folder) -> tokenizers.Tokenizer:
    words = [line.rstrip("\n") for line in file.read_text(encoding="utf-8").split("\n")]
    words = words[:-1] if words and not words[-1] else words
    vocab = {word: i for i, word in enumerate(words)}
    lower, accents = folder.config.get("do_lower_case", True), folder.config.get("strip_accents")
    core = tokenizers.Tokenizer(models.WordPiece(vocab, unk_token=folder.names["unk_token"]))
    core.normalizer = normalizers.BertNormalizer(
        clean_text=True,
        handle_chinese_chars=folder.config.get("tokenize_chinese_chars", True),
        strip_accents=accents,
        lowercase=lower,
    )
    core.pre_tokenizer, core.decoder = pre_tokenizers.BertPreTokenizer(), decoders.WordPiece()
    return core


def _add_model_names(folder: Folder, found: ModelFile) -> Folder:
    """The control tokens that a SentencePiece model names itself come before those of its class."""
    texts = [piece.text for piece in found.vocabulary.pieces]
    ids = {"bos_token": found.bos_id, "eos_token": found.eos_id}
    own = {part: texts[i] for part, i in ids.items() if 0 <= i < len(texts)}
    unknowns = [piece.text for piece in found.vocabulary.pieces if piece.kind == UNKNOWN]
    own |= {"unk_token": unknowns[0]} if unknowns else {}
    kind = GENERIC_PIECES if folder.named is None else folder.kind
    return replace(folder, kind=replace(kind, names={**kind.names, **own}))


def _sentencepiece(found: ModelFile, folder: Folder) -> tokenizers.Tokenizer:
    core = found.vocabulary.core()
    if folder.named == "LlamaTokenizer" and found.vocabulary.prefix:  # a space before the text, or each part of it
        scheme = "always" if folder.config.get("legacy") else "first"
        core.normalizer = None
        core.pre_tokenizer = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme=scheme, split=False)
    if not folder.kind.marked:
        return core
    core.normalizer = normalizers.Precompiled(found.vocabulary.charsmap) if found.vocabulary.charsmap else None
    if folder.named == "AlbertTokenizer":
        core.normalizer = normalizers.Sequence([*_plain_letters(folder.config), *filter(None, [core.normalizer])])
    space = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
    core.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    if not folder.kind.spaced:
        core.pre_tokenizer = space
        lines = [normalizers.Replace("\n", " ")] if folder.named == "PegasusTokenizer" else []
        steps = [*(lines if core.normalizer is None else [core.normalizer]), normalizers.Replace(Regex(" {2,}"), " ")]
        core.normalizer = normalizers.Sequence(steps)
    core.decoder = decoders.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
    if folder.named in ("T5Tokenizer", "MT5Tokenizer"):  # spans to be filled in, counted from the end
        extra = range(folder.config.get("extra_ids", 100))
        core.add_special_tokens([AddedToken(f"<extra_id_{i}>", normalized=False) for i in reversed(extra)])
    return core


def _plain_letters(config: Mapping[str, Any]) -> list[normalizers.Normalizer]:
    """What ALBERT does to a text first: one kind of quotation marks, no accents, small letters."""
    steps: list[normalizers.Normalizer] = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    if not config.get("keep_accents", False):
        steps += [normalizers.NFKD(), normalizers.StripAccents()]
    return [*steps, normalizers.Lowercase()] if config.get("do_lower_case", True) else steps


# ------------------------------------------------------------------ control tokens


def _add(core: tokenizers.Tokenizer, folder: Folder) -> None:
    """The tokens that the files beside a vocabulary add to it, at the ids they say, and those that control."""
    vocab = core.get_vocab()
    listed = {int(i): token for i, token in folder.config.get("added_tokens_decoder", {}).items()}
    listed |= {i: mark for mark, i in _json(folder.path / "added_tokens.json").items() if i not in listed}
    more = folder.config.get("additional_special_tokens", folder.config.get("extra_special_tokens")) or []
    special = {*folder.names.values(), *(_mark(token) for token in more)}
    for i in sorted(listed):
        token = _added(listed[i], special, folder)
        core.add_special_tokens([token]) if token.special else core.add_tokens([token])
        if core.token_to_id(token.content) != i:
            raise BadInput(
                f"{folder.path}: the token {token.content!r} is said to have the id {i}, but the vocabulary gives it "
                f"{core.token_to_id(token.content)}"
            )
    known = [mark for mark in dict.fromkeys(folder.names.values()) if mark in vocab]
    usual = [mark for mark in END_MARKS if mark in vocab] if folder.named is None else []
    core.add_special_tokens(
        [AddedToken(mark, normalized=False) for mark in dict.fromkeys([*known, *usual]) if mark not in _here(core)]
    )
    mask = folder.names.get("mask_token")
    if mask in vocab and not folder.kind.spaced and folder.kind.language:  # it takes the space before it along
        core.add_special_tokens([AddedToken(mask, normalized=False, lstrip=True)])
    core.add_special_tokens([_added(token, special, folder) for token in more if _mark(token) not in _here(core)])


def _here(core: tokenizers.Tokenizer) -> set[str]:
    return {token.content for token in core.get_added_tokens_decoder().values()}


def _added(given: Any, special: set[str | None], folder: Folder) -> AddedToken:
    mark = _mark(given)
    if mark is None:
        raise BadInput(f"{folder.path}: an added token is a text or an object with its content, got {str(given)[:80]}")
    options = given if isinstance(given, dict) else {}
    flags = {key: bool(options[key]) for key in ("single_word", "lstrip", "rstrip", "normalized") if key in options}
    control = mark in special or bool(options.get("special", False))
    return AddedToken(mark, **{"normalized": False, **flags}, special=control)


__all__ = [
    "BPE_FILES",
    "CLASSES",
    "END_MARKS",
    "END_OF_TEXT",
    "ROLES",
    "SENTENCEPIECE_FILES",
    "TOKENIZER_FILES",
    "Folder",
    "TokenizerClass",
    "build",
    "read_folder",
]
