"""Ids of SentencePiece's pieces where a class numbers them in its own way, as its model was trained.

fairseq     its four control tokens first, then the pieces: XLM-RoBERTa, mBART, NLLB
camembert   the same, under names that are not used, as the model has <s> and </s> too
pegasus     103 ids that only pre-training used stand after padding and end
m2m100      the ids of a vocab.json beside the model, then the codes of languages
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from gnomon.data.sentencepiece import CONTROL, NORMAL, UNKNOWN, ModelFile, Piece
from gnomon.errors import BadInput, unknown

if TYPE_CHECKING:
    from gnomon.data.published import Folder

#: the languages of M2M-100 (Fan et al. 2020, arXiv:2010.11125) and of its WMT 2021 variant, in the order of their ids
LANGUAGES = {
    "m2m100": """af am ar ast az ba be bg bn br bs ca ceb cs cy da de el en es et fa ff fi fr fy ga gd gl gu ha he hi hr
        ht hu hy id ig ilo is it ja jv ka kk km kn ko lb lg ln lo lt lv mg mk ml mn mr ms my ne nl no ns oc or pa pl ps
        pt ro ru sd si sk sl so sq sr ss su sv sw ta th tl tn tr uk ur uz vi wo xh yi yo zh zu""",
    "wmt21": "en ha is ja cs ru zh de",
}


def fairseq(found: ModelFile, folder: "Folder") -> ModelFile:
    """Four control tokens, the pieces after the model's own three, codes of languages where the class has some, as the
    config lists them, and the mask."""
    listed = folder.config.get("additional_special_tokens") or [] if folder.kind.language else []
    marks = [code.get("content") if isinstance(code, dict) else code for code in listed]
    codes = [mark for mark in marks if isinstance(mark, str)]
    if folder.kind.language and folder.kind.language not in codes:
        raise BadInput(
            f"{folder.path}: {folder.named} has codes of languages, which its config lists as additional_special_tokens"
        )
    first = [*_controls(["<s>", "<pad>", "</s>"]), Piece("<unk>", 0.0, UNKNOWN)]
    return _with(found, [*first, *found.vocabulary.pieces[3:], *_controls([*codes, "<mask>"])], 0, 2)


def camembert(found: ModelFile, folder: "Folder") -> ModelFile:
    """fairseq's four control tokens, of which two are not used, the model's pieces, the first of them not used either,
    and the mask."""
    first = [*_controls(["<s>NOTUSED", "<pad>", "</s>NOTUSED"]), Piece("<unk>", 0.0, UNKNOWN)]
    pieces = [*_controls(["<unk>NOTUSED"]), *found.vocabulary.pieces[1:], *_controls(["<mask>"])]
    return _with(found, [*first, *pieces], -1, -1)  # the class names them


def pegasus(found: ModelFile, folder: "Folder") -> ModelFile:
    """Padding and end, the masks of a sentence and of a word, <unk_2> and so on, then the other pieces."""
    offset = folder.config.get("offset", 103)
    if type(offset) is not int or offset < 2:
        raise BadInput(
            f"{folder.path}: offset counts the ids before the pieces, at least 2 (usually 103); got {offset}"
        )
    names = folder.names
    first = [names["pad_token"], names["eos_token"], folder.config.get("mask_token_sent") or "<mask_1>"]
    first += [names["mask_token"], *(f"<unk_{i}>" for i in range(2, offset))]
    return _with(found, [*_controls(map(str, first)), *found.vocabulary.pieces[2:]], -1, 1)


def m2m100(found: ModelFile, folder: "Folder") -> ModelFile:
    """The ids of vocab.json; its tokens that the model does not have are control tokens. Then the languages."""
    own = {piece.text: piece for piece in found.vocabulary.pieces}
    tokens = _tokens(folder)
    ids = set(tokens)
    lost = [piece.text for piece in own.values() if piece.kind in (NORMAL, UNKNOWN) and piece.text not in ids]
    if lost:
        raise BadInput(f"{folder.path}: vocab.json has no id for {len(lost)} pieces of the model, such as {lost[0]!r}")
    kind = folder.config.get("language_codes", "m2m100")
    if kind not in LANGUAGES:
        raise BadInput(f"{folder.path}: {unknown('language_codes', str(kind), LANGUAGES)}")
    codes = [folder.kind.code.format(code) for code in LANGUAGES[kind].split()]
    pieces = [own.get(token, Piece(token, 0.0, CONTROL)) for token in tokens]
    return _with(found, [*pieces, *_controls(codes)], tokens.index("<s>"), tokens.index("</s>"))


def _tokens(folder: "Folder") -> list[str]:
    """The tokens of vocab.json in the order of their ids."""
    vocab = folder.beside("vocab.json")
    ids = list(vocab.values())
    if not all(type(i) is int for i in ids) or sorted(ids) != [*range(len(ids))] or not {"<s>", "</s>"} <= {*vocab}:
        raise BadInput(
            f"{folder.path}: {folder.named} has its ids in vocab.json: expected tokens there, <s> and </s> among them, "
            "with the ids from 0 on, each once"
        )
    return sorted(vocab, key=vocab.__getitem__)


def _controls(names: Iterable[str]) -> list[Piece]:
    return [Piece(name, 0.0, CONTROL) for name in names]


def _with(found: ModelFile, pieces: list[Piece], bos_id: int, eos_id: int) -> ModelFile:
    return ModelFile(replace(found.vocabulary, pieces=pieces), bos_id, eos_id)


__all__ = ["LANGUAGES", "camembert", "fairseq", "m2m100", "pegasus"]
