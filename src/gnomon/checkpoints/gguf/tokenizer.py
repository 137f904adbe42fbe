"""The tokenizer in a GGUF file's metadata, and ours as such metadata.

tokenizer.ggml.model   "gpt2": byte-level BPE, with merges; "llama" and "t5": SentencePiece's BPE and unigram, with
                       scores; "bert": WordPiece, whose tokens that begin a word are written with SentencePiece's
                       space, the others without "##"
tokenizer.ggml.pre     of the former: how a text is cut into words first
tokenizer.huggingface.json   the whole tokenizer.json, where a file carries it (ours do): nothing is lost then
"""

import base64
import json
import warnings
from collections.abc import Callable
from typing import Any

import tokenizers
from tokenizers import decoders as decoders_of
from tokenizers import models, normalizers, pre_tokenizers

from gnomon.checkpoints.gguf.header import GGUF
from gnomon.data import Tokenizer
from gnomon.data.pretokenization import BLOOM, LLAMA3, QWEN2, PreTokenizers, digits, gpt2, pattern
from gnomon.data.sentencepiece import (
    BYTE,
    CONTROL,
    NORMAL,
    SPACE,
    UNKNOWN,
    USER_DEFINED,
    Piece,
    SentencePiece,
    add_special_tokens,
)
from gnomon.data.token_bytes import BYTE_ALPHABET, decoder_steps
from gnomon.data.tokenizers_library import translate_errors, with_frame
from gnomon.errors import BadInput, BadValue, unknown

G, WHOLE, TEMPLATE = "tokenizer.ggml.", "tokenizer.huggingface.json", "tokenizer.chat_template"

#: how a text is cut into words, by tokenizer.ggml.pre
WORDS: dict[str, Callable[[], PreTokenizers]] = {
    **dict.fromkeys(("gpt-2", "default", "mpt", "olmo", "gptneox"), gpt2),
    **dict.fromkeys(("smollm", "starcoder", "refact", "command-r", "codeshell", "exaone"), digits),
    **dict.fromkeys(("llama-bpe", "llama3", "llama-v3", "smaug-bpe", "dbrx", "falcon3", "lfm2"), pattern(LLAMA3)),
    **dict.fromkeys(("qwen2", "deepseek-r1-qwen", "stablelm2"), pattern(QWEN2)),
    "bloom": pattern(BLOOM),
}
WHOLE_WORDS = ("llama-bpe", "llama3", "llama-v3")  # a word that is a token is that token, whatever the merges say
#: names of control tokens in tokenizer_config.json, and in tokenizer.ggml.NAME_token_id
PARTS = {
    "bos_token": "bos",
    "eos_token": "eos",
    "unk_token": "unknown",
    "sep_token": "seperator",
    "pad_token": "padding",
    "cls_token": "cls",
    "mask_token": "mask",
}
MARKED = (CONTROL, UNKNOWN)  # tokens of a WordPiece vocabulary that are written as they are
COMPOSED = ("qwen2", "deepseek-r1-qwen")  # texts are brought into Unicode's form NFC first


# ------------------------------------------------------------------ reading


def read_tokenizer(file: GGUF) -> Tokenizer | None:
    """The tokenizer of a file; None where it has none. Raises BadInput for a kind that is not known."""
    metadata = file.metadata
    kind, template = metadata.get(G + "model", "no_vocab"), metadata.get(TEMPLATE)
    if kind in ("no_vocab", "none"):
        return None
    if kind not in _READERS:
        raise BadInput(f"{file.path}: {unknown('tokenizer', str(kind), _READERS)}")
    tokens, kinds = _tokens(file)
    with translate_errors(f"{file.path}: its tokenizer cannot be used"):
        given = metadata.get(WHOLE) or _frame(_READERS[kind](file, tokens, kinds), kind, metadata, tokens)
        return Tokenizer(given, _names(metadata, tokens, kinds), template)


def _tokens(file: GGUF) -> tuple[list[str], list[int]]:
    tokens = file.metadata.get(G + "tokens")
    if not isinstance(tokens, list) or not all(isinstance(token, str) for token in tokens):
        raise BadInput(f"{file.path} has a tokenizer without {G}tokens")
    kinds = file.metadata.get(G + "token_type", [NORMAL] * len(tokens))
    if not isinstance(kinds, list) or len(kinds) != len(tokens):
        raise BadInput(f"{file.path}: {G}token_type does not have one kind for each of {len(tokens)} tokens")
    return tokens, kinds


def _control_token(metadata: dict[str, Any], tokens: list[str], which: str) -> str | None:
    """The token that plays a part, such as "bos"."""
    i = metadata.get(f"{G}{which}_token_id")
    return tokens[i] if isinstance(i, int) and 0 <= i < len(tokens) else None


def _names(metadata: dict[str, Any], tokens: list[str], kinds: list[int]) -> dict[str, str]:
    """The control tokens by their parts. A piece of text that is said to be one is a mistake of the file, but for the
    end of a text, which may be a line break."""
    found = {part: _control_token(metadata, tokens, which) for part, which in PARTS.items()}
    if metadata.get(G + "model") == "bert":  # [CLS] and [SEP] are also called the begin and the end of a text there
        begin, end = found.pop("bos_token"), found.pop("eos_token")
        found |= {"cls_token": found["cls_token"] or begin, "sep_token": found["sep_token"] or end}
    text = {token for token, kind in zip(tokens, kinds, strict=True) if kind in (NORMAL, BYTE)}
    return {
        part: mark for part, mark in found.items() if mark is not None and (part == "eos_token" or mark not in text)
    }


def _frame(core: tokenizers.Tokenizer, kind: str, metadata: dict[str, Any], tokens: list[str]) -> tokenizers.Tokenizer:
    """Texts stand between begin- and end-of-text where the file says so; where it says nothing, as llama.cpp has it."""
    usual = kind in ("llama", "bert") or metadata.get(G + "pre") in WHOLE_WORDS
    begin = _control_token(metadata, tokens, "bos") if metadata.get(G + "add_bos_token", usual) else None
    end = _control_token(metadata, tokens, "eos") if metadata.get(G + "add_eos_token", kind == "t5") else None
    if kind == "bert":
        begin = begin or _control_token(metadata, tokens, "cls")
        sep = _control_token(metadata, tokens, "seperator") or _control_token(metadata, tokens, "eos")
        end = sep if metadata.get(G + "add_sep_token", True) else None
    control = {token.content for token in core.get_added_tokens_decoder().values() if token.special}
    return with_frame(core, [begin] if begin in control else [], [end] if end in control else [])


def _byte_level(file: GGUF, tokens: list[str], kinds: list[int]) -> tokenizers.Tokenizer:
    pre = file.metadata.get(G + "pre", "default")
    if pre not in WORDS:
        raise BadInput(f"{file.path}: {unknown('way to cut words', str(pre), WORDS)}")
    if pre == "default" and file.metadata.get(G + "merges"):
        _warn(file)
    vocab: dict[str, int] = {}
    for i, token in enumerate(tokens):
        vocab.setdefault(token, i)
    merges = [tuple(merge.split(" ", 1)) for merge in file.metadata.get(G + "merges", [])]
    made = [pair for pair in merges if "".join(pair) in vocab]  # those of a bare vocabulary of bytes make none
    core = tokenizers.Tokenizer(models.BPE(vocab, made, ignore_merges=pre in WHOLE_WORDS))
    if pre in COMPOSED:
        core.normalizer = normalizers.NFC()
    core.pre_tokenizer = pre_tokenizers.Sequence(WORDS[pre]())
    core.decoder = decoders_of.ByteLevel()
    add_special_tokens(core, tokens, kinds)
    return core


def _warn(file: GGUF) -> None:
    problem = "says 'default'" if G + "pre" in file.metadata else "is missing"
    warnings.warn(
        f"{file.path} does not say how its vocabulary cuts a text into words ({G}pre {problem}): they are cut by "
        "GPT-2's pattern, and a text may get other tokens than those the model was trained on. If you know the family, "
        "write it into the file: gguf-new-metadata OLD NEW --pre-tokenizer llama-bpe (or qwen2, smollm ...)",
        stacklevel=2,
    )


def _sentencepiece(file: GGUF, tokens: list[str], kinds: list[int]) -> tokenizers.Tokenizer:
    scores = file.metadata.get(G + "scores", [])
    if str(file.metadata.get("general.architecture")).startswith("gemma"):  # its merges go by the order of the tokens
        scores = [-float(i) for i in range(len(tokens))]
        tokens = [SPACE * len(token) if token and not token.strip(" ") else token for token in tokens]
    if len(scores) != len(tokens):
        raise BadInput(f"{file.path}: {G}scores does not have one score for each of {len(tokens)} tokens")
    pieces = [Piece(*entry) for entry in zip(tokens, scores, kinds, strict=True)]
    return SentencePiece(pieces, prefix=bool(file.metadata.get(G + "add_space_prefix", True))).core()


def _wordpiece(file: GGUF, tokens: list[str], kinds: list[int]) -> tokenizers.Tokenizer:
    """A vocabulary without a capital letter is one of small letters without accents."""
    words = [
        token if kind in MARKED else token[1:] if token.startswith(SPACE) else f"##{token}"
        for token, kind in zip(tokens, kinds, strict=True)
    ]
    unknown = _control_token(file.metadata, words, "unknown") or "[UNK]"
    core = tokenizers.Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token=unknown))
    lower = all(word == word.lower() for word, kind in zip(words, kinds, strict=True) if kind not in MARKED)
    core.normalizer = normalizers.BertNormalizer(lowercase=lower)
    core.pre_tokenizer, core.decoder = pre_tokenizers.BertPreTokenizer(), decoders_of.WordPiece()
    add_special_tokens(core, words, [CONTROL if kind == UNKNOWN else kind for kind in kinds])
    return core


def _unigram(file: GGUF, tokens: list[str], kinds: list[int]) -> tokenizers.Tokenizer:
    """As T5's own: the text is cut at spaces, of which one stands before each word."""
    scores, charsmap = file.metadata.get(G + "scores", []), file.metadata.get(G + "precompiled_charsmap", [])
    if len(scores) != len(tokens):
        raise BadInput(f"{file.path}: {G}scores does not have one score for each of {len(tokens)} tokens")
    if not file.metadata.get(G + "add_space_prefix", True):
        raise BadInput(f"{file.path}: a tokenizer of T5 that puts no space before a text is not supported")
    pieces = [Piece(*entry) for entry in zip(tokens, scores, kinds, strict=True)]
    core = SentencePiece(pieces, kind="unigram").core()
    core.normalizer = normalizers.Precompiled(bytes(byte & 255 for byte in charsmap)) if charsmap else None
    space = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
    core.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), space])
    core.decoder = decoders_of.Metaspace(replacement=SPACE, prepend_scheme="always", split=True)
    return core


_READERS = {"t5": _unigram, "gpt2": _byte_level, "llama": _sentencepiece, "bert": _wordpiece}


# ------------------------------------------------------------------ writing


def describe_tokenizer(tokenizer: Tokenizer) -> dict[str, Any]:
    """The metadata that says this tokenizer, in ggml's words. Raises BadValue for one that ggml does not have."""
    spec = json.loads(tokenizer.to_json())
    kind = spec["model"]["type"]
    if kind == "WordPiece":
        metadata = _describe_wordpiece(tokenizer, spec)
    elif kind == "Unigram":
        metadata = _describe_unigram(tokenizer, spec)
    elif kind != "BPE":
        raise _missing_token(tokenizer, f"a model of type {kind}")
    elif "ByteLevel" in decoder_steps(spec):
        metadata = _describe_byte_level(tokenizer, spec)
    else:
        metadata = _describe_pieces(tokenizer, spec)
    before, after = tokenizer.frame
    ends = "add_sep_token" if kind == "WordPiece" else "add_eos_token"
    metadata |= {WHOLE: tokenizer.to_json(), G + "add_bos_token": bool(before), G + ends: bool(after)}
    vocab = {name: i for i, name in enumerate(metadata[G + "tokens"])}
    metadata |= {f"{G}{PARTS[part]}_token_id": vocab[mark] for part, mark in tokenizer.names.items()}
    metadata |= {G + "seperator_token_id": after[0]} if after and kind == "WordPiece" else {}
    metadata |= {G + "bos_token_id": before[0]} if before else {}
    return metadata if tokenizer.chat_template is None else metadata | {TEMPLATE: tokenizer.chat_template}


def _describe_byte_level(tokenizer: Tokenizer, spec: dict[str, Any]) -> dict[str, Any]:
    pre = spec["pre_tokenizer"]
    known = {json.dumps(_plain(pre_tokenizers.Sequence(words()))): name for name, words in reversed(WORDS.items())}
    whole = pre if pre["type"] == "Sequence" else {"type": "Sequence", "pretokenizers": [pre]}
    merges = [" ".join(pair) for pair in spec["model"]["merges"]]
    if merges:
        name = known.get(json.dumps(_comparable(whole)))
        if name is None:
            raise _missing_token(tokenizer, f"the way it cuts words, {pre}")
    else:  # bytes: words make no difference, and llama.cpp needs a merge, so it gets one that makes no token
        name, merges = "gpt-2", [f"{BYTE_ALPHABET[0]} {BYTE_ALPHABET[1]}"]
    return {G + "model": "gpt2", G + "pre": name, G + "merges": merges, **_describe_tokens(tokenizer, spec)}


def _plain(words: pre_tokenizers.Sequence) -> Any:
    core = tokenizers.Tokenizer(models.BPE())
    core.pre_tokenizer = words
    return _comparable(json.loads(core.to_str())["pre_tokenizer"])


def _comparable(sequence: dict[str, Any]) -> Any:
    """Without what only moves the offsets of tokens."""
    return [{k: v for k, v in part.items() if k != "trim_offsets"} for part in sequence["pretokenizers"]]


def _describe_pieces(tokenizer: Tokenizer, spec: dict[str, Any]) -> dict[str, Any]:
    if not spec["model"]["byte_fallback"]:
        raise _missing_token(tokenizer, "a vocabulary of characters without the bytes to fall back on")
    rank: dict[str, int] = {}
    for n, (left, right) in enumerate(spec["model"]["merges"]):
        rank.setdefault(left + right, n)
    metadata = _describe_tokens(tokenizer, spec)
    scores = [-float(rank.get(token, len(rank) + i)) for i, token in enumerate(metadata[G + "tokens"])]
    steps = json.dumps([spec["normalizer"], spec["pre_tokenizer"]])
    prefix = "Prepend" in steps or '"always"' in steps or '"first"' in steps
    return {**metadata, G + "model": "llama", G + "scores": scores, G + "add_space_prefix": prefix}


def _describe_wordpiece(tokenizer: Tokenizer, spec: dict[str, Any]) -> dict[str, Any]:
    if (prefix := spec["model"]["continuing_subword_prefix"]) != "##":
        raise _missing_token(tokenizer, f"words that go on with {prefix!r}")
    steps = [(spec[step] or {"type": "none"})["type"] for step in ("normalizer", "pre_tokenizer")]
    if steps != ["BertNormalizer", "BertPreTokenizer"]:
        raise _missing_token(tokenizer, f"a way to cut words other than BERT's, {' and '.join(steps)}")
    told = _describe_tokens(tokenizer, spec)
    kinds = [CONTROL if kind == UNKNOWN else kind for kind in told[G + "token_type"]]
    tokens = [
        token if kind in MARKED else token[2:] if token.startswith("##") else SPACE + token
        for token, kind in zip(told[G + "tokens"], kinds, strict=True)
    ]
    return {G + "model": "bert", G + "pre": "default", G + "tokens": tokens, G + "token_type": kinds}


def _describe_unigram(tokenizer: Tokenizer, spec: dict[str, Any]) -> dict[str, Any]:
    """llama.cpp's normaliser is a table of characters, and its words begin with a space."""
    words = spec["pre_tokenizer"] or {"type": "none"}
    steps = [part["type"] for part in words.get("pretokenizers", [words])]
    table = spec["normalizer"] or {"type": "Precompiled", "precompiled_charsmap": ""}
    if steps != ["WhitespaceSplit", "Metaspace"] or table["type"] != "Precompiled":
        raise _missing_token(
            tokenizer, f"a way to cut words other than T5's, {table['type']} and {' and '.join(steps)}"
        )
    listed = spec["model"]["vocab"]
    ids = {token: i for i, (token, _) in reversed([*enumerate(listed)])}
    unknown = listed[spec["model"]["unk_id"]][0]
    plain = {**spec, "model": {**spec["model"], "vocab": ids, "unk_token": unknown}}
    more = [-1000.0] * (tokenizer.vocab_size - len(listed))
    charsmap = base64.b64decode(table["precompiled_charsmap"] or "")
    return {
        **_describe_tokens(tokenizer, plain),
        G + "model": "t5",
        G + "pre": "default",
        G + "scores": [float(score) for _, score in listed] + more,
        G + "add_space_prefix": True,
        G + "remove_extra_whitespaces": True,
        **({G + "precompiled_charsmap": charsmap} if charsmap else {}),
    }


def _describe_tokens(tokenizer: Tokenizer, spec: dict[str, Any]) -> dict[str, Any]:
    """Tokens and their kinds, one for each id; ids without a token get one that no text holds."""
    tokens, kinds = [f"[PAD{i}]" for i in range(tokenizer.vocab_size)], [5] * tokenizer.vocab_size
    unk = spec["model"].get("unk_token")
    for token, i in spec["model"]["vocab"].items():
        byte = spec["model"].get("byte_fallback") and token.startswith("<0x") and len(token) == 6
        tokens[i], kinds[i] = token, BYTE if byte else UNKNOWN if token == unk else NORMAL
    for added in spec["added_tokens"]:
        tokens[added["id"]] = added["content"]
        if kinds[added["id"]] != UNKNOWN:
            kinds[added["id"]] = CONTROL if added["special"] else USER_DEFINED
    return {G + "tokens": tokens, G + "token_type": kinds}


def _missing_token(tokenizer: Tokenizer, what: str) -> BadValue:
    return BadValue(
        f"llama.cpp has no tokenizer like {tokenizer!r}: {what}. Set model.tokenizer = None to write the model alone"
    )


__all__ = ["describe_tokenizer", "read_tokenizer"]
