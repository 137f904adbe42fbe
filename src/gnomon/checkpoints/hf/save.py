"""Writing a model as a folder that Hugging Face's library loads, with the same table of names read backwards."""

from contextlib import suppress
from pathlib import Path
from typing import Any

from torch import nn

from gnomon.checkpoints.hf import sentence
from gnomon.checkpoints.hf.load import GENERATION
from gnomon.checkpoints.hf.registry import family_for, fill_defaults
from gnomon.checkpoints.native import TOKENIZER, draft, unwrap, write_json, write_tensors
from gnomon.checkpoints.weights import INDEX, read_index
from gnomon.data import Tokenizer
from gnomon.errors import BadInput, check_arguments
from gnomon.models import Model, Writer
from gnomon.models.snapshot import snapshot


@check_arguments
def save_hf(model: nn.Module, folder: str | Path, family: str | None = None) -> Path:
    """Write config.json, model.safetensors and, with a tokenizer, tokenizer.json; returns the folder.

    family   the model_type to write it as; default: the first that can say all that the model's config says

    Raises BadValue where none can, and says what gets lost; also for a model that is not what its config builds. What
    the folder held stays whole until all is written.
    """
    inner = unwrap(model)
    found = snapshot(inner)
    whole_config, all_weights = found.config, {name: weight.detach() for name, weight in found.weights.items()}
    config = sentence.body_of(whole_config)
    apart = sentence.OURS.values() if whole_config.pooler and not config.pooler else ()
    own = {name: weight for name, weight in all_weights.items() if name not in apart}
    kind = family_for(config, family)
    about = kind.write(fill_defaults(config))
    tensors = {
        entry.theirs: entry.transform.join([own[name] for name in entry.ours], config)
        for entry in kind.lines(config, own)
    }
    if not config.tied:  # then that library ties nothing, not even the two sides' tables
        tensors |= {name: tensors[kind.twins[name]].clone() for name in kind.copies}
    if config.head == "pooled":  # the body alone, which has no name for itself
        tensors = {name.removeprefix(kind.prefix): tensor for name, tensor in tensors.items()}
    dtype = str(next(iter(own.values())).dtype).removeprefix("torch.")
    marks = _marks(inner, about)
    with draft(folder) as new:
        unknown = {} if inner.tokenizer is None else {"unk_token_id": _unknown(inner.tokenizer)}
        write_json(new / "config.json", {**about, **marks, **unknown, **_labels(inner), "torch_dtype": dtype})
        write_tensors(new / "model.safetensors", tensors, {"format": "pt"})
        if isinstance(inner, Writer):
            write_json(new / GENERATION, marks)
        if config.head == "pooled" and not config.pooler:
            sentence.write(new, inner, whole_config, all_weights)
        if inner.tokenizer is not None:
            inner.tokenizer.save(new)
        written = {str(path.relative_to(new)) for path in new.rglob("*")}
    _remove_old(Path(folder), written)
    return Path(folder)


def _remove_old(folder: Path, written: set[str]) -> None:
    """Remove what a model that was here before left, and what would be read as a part of the new one: its shards, how
    it made vectors and wrote texts, and what stood beside a tokenizer that was replaced."""
    old = {GENERATION, *sentence.FILES}
    if (folder / INDEX).is_file():
        with suppress(BadInput):
            old |= set(read_index(folder / INDEX).values())
        old.add(INDEX)
    if TOKENIZER in written:
        old |= {"special_tokens_map.json", "added_tokens.json", "chat_template.jinja", "chat_template.json"}
    for name in old - written:
        (folder / name).unlink(missing_ok=True)


def _labels(model: Model) -> dict[str, Any]:
    """The names of the classes, both ways."""
    if model.labels is None:
        return {}
    named = {str(n): label for n, label in enumerate(model.labels)}
    return {"id2label": named, "label2id": {label: n for n, label in enumerate(model.labels)}}


def _unknown(tokenizer: Tokenizer) -> int | None:
    """The id of what the vocabulary does not know; one may be named that no text needs, as byte-level ones do."""
    return tokenizer.named("unk_token") if tokenizer.unk_id is None else tokenizer.unk_id


def _marks(model: Model, about: dict[str, Any]) -> dict[str, Any]:
    """The ids of marks: those that the family needs, else those that the tokenizer names. Null says that there is none:
    a family's usual one may lie outside this vocabulary."""
    tokenizer = model.tokenizer
    begin, own, pad = (None,) * 3 if tokenizer is None else (tokenizer.bos_id, tokenizer.eos_id, tokenizer.pad_id)
    named = {"bos_token_id": begin, "pad_token_id": pad, "decoder_start_token_id": None}
    marks = {name: about.get(name, i) for name, i in named.items()}
    ends = list(dict.fromkeys(i for i in (own, *model.ends) if i is not None))
    marks["eos_token_id"] = ends if len(ends) > 1 else ends[0] if ends else None
    if model.start is not None:
        marks["decoder_start_token_id"] = model.start
    if model.first is not None:
        marks["forced_bos_token_id"] = model.first
    return marks


__all__ = ["save_hf"]
