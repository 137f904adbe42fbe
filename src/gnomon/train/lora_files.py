"""LoRA adapters as files of the peft library: adapter_config.json and adapter_model.safetensors, in both directions.

Names and shapes of the matrices are those of the model's family of Hugging Face files. Where one of theirs holds n of
ours (GPT-2's c_attn is our q, k and v), a change to it has n times the rank: the matrices A below one another, the
matrices B as blocks. Reading, each of ours keeps all of A, and its own rows of B.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnomon.checkpoints.hf.registry import family_for
from gnomon.checkpoints.hf.table import Columns, Line, PerExpert, Row, Transposed
from gnomon.checkpoints.native import draft, read_json, read_tensors, write_json, write_tensors
from gnomon.errors import BadInput, BadValue
from gnomon.linear import Linear
from gnomon.models import Model
from gnomon.models.meta import build_on_meta
from gnomon.train.lora import LoRALinear, lora_layers

CONFIG, WEIGHTS, PREFIX = "adapter_config.json", "adapter_model.safetensors", "base_model.model."
TASKS = {"tokens": "CAUSAL_LM", "classes": "SEQ_CLS", "spans": "TOKEN_CLS"}
# Settings of peft that change what is computed, and the values that mean what is here.
PLAIN: Mapping[str, tuple[object, ...]] = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "use_dora": (False, None),
    "modules_to_save": (None, []),
    "layer_replication": (None, []),
    "trainable_token_indices": (None, [], {}),
    "target_parameters": (None, []),
}


@dataclass(frozen=True)
class _Layer:
    """One of their modules, and ours whose weights it holds."""

    theirs: str
    ours: tuple[str, ...]
    entry: Line

    @property
    def turned(self) -> bool:
        """Whether their weight is (in, out)."""
        return isinstance(self.entry.transform, Columns | Transposed)


def save_lora(model: Model, folder: str | Path, base: str | None = None, family: str | None = None) -> Path:
    """Write the changes of a model as an adapter that peft loads; returns the folder.

    base    the name or path of the model that was fine-tuned, for whoever loads the adapter
    family  the model_type of its files; default: the first that can say what the model's config says

    BadValue for a model without changes, and where no family holds such a model.
    """
    found = lora_layers(model)
    if not found:
        raise BadValue("this model has no LoRA layers: add_lora makes some")
    config, tensors = model.config, {}
    ranks, alphas = {}, {}
    layers = [layer for layer in _layers(model, family) if any(name in found for name in layer.ours)]
    for layer in layers:
        parts = [found.get(name) for name in layer.ours]
        changed = [part for part in parts if part is not None]
        rank = sum(part.lora_a.shape[0] for part in changed)
        scale = changed[0].scale
        blocks = _blocks(model, layer, parts, rank, scale)
        b = layer.entry.transform.join(blocks, config)
        tensors[f"{PREFIX}{layer.theirs}.lora_A.weight"] = torch.cat([part.lora_a for part in changed])
        tensors[f"{PREFIX}{layer.theirs}.lora_B.weight"] = b.T if layer.turned else b
        ranks[layer.theirs], alphas[layer.theirs] = rank, scale * rank
    usual = max(set(ranks.values()), key=[*ranks.values()].count)
    alpha = next(alphas[name] for name, rank in ranks.items() if rank == usual)
    about = {
        "peft_type": "LORA",
        "task_type": TASKS.get(config.head),
        "base_model_name_or_path": base,
        "bias": "none",
        "r": usual,
        "lora_alpha": alpha,
        "lora_dropout": 0.0,
        "inference_mode": True,
        "target_modules": _targets(model, ranks, family),
        "fan_in_fan_out": any(layer.turned for layer in layers),
        "rank_pattern": {name: rank for name, rank in ranks.items() if rank != usual},
        "alpha_pattern": {name: a for name, a in alphas.items() if a != alpha},
    }
    with draft(folder) as new:
        write_json(new / CONFIG, about)
        write_tensors(new / WEIGHTS, tensors, {"format": "pt"})
    return Path(folder)


def load_lora(model: Model, folder: str | Path, family: str | None = None) -> Model:
    """Give a model the changes of an adapter, as peft or `save_lora` wrote it, in place; `merge_lora` adds them up.

    BadInput for an adapter that does not fit the model, or that is of another kind than plain LoRA.
    """
    folder = Path(folder)
    if not (folder / WEIGHTS).is_file():
        pickled = (
            "; its adapter_model.bin is a pickle file, which Gnomon never opens" if list(folder.glob("*.bin")) else ""
        )
        raise BadInput(f"{folder} holds no {WEIGHTS}{pickled}: save it with peft's safe_serialization")
    about, tensors = read_json(folder / CONFIG), read_tensors(folder / WEIGHTS)[0]
    for key, plain in PLAIN.items():
        if key in about and about[key] not in plain:
            raise BadInput(f"{folder / CONFIG}: {key} is {about[key]!r}, and only plain LoRA is read here")
    if lora_layers(model):
        raise BadValue("this model has LoRA layers already: merge them first (merge_lora)")
    left, changes = set(tensors), {}
    for layer in _layers(model, family):
        names = [f"{PREFIX}{layer.theirs}.lora_{which}.weight" for which in "AB"]
        if not all(name in tensors for name in names):
            continue
        left.difference_update(names)
        a, b = (tensors[name] for name in names)
        shapes = [(_linear(model, name).out_features, a.shape[0]) for name in layer.ours]
        if b.dim() != 2 or b.shape != (sum(rows for rows, _ in shapes), a.shape[0]):
            raise BadInput(f"{folder / WEIGHTS} does not fit the model: {names[1]} has shape {tuple(b.shape)}")
        scale = _scale(about, layer.theirs, a.shape[0])
        for name, rows in zip(
            layer.ours, layer.entry.transform.split(b.T if layer.turned else b, shapes, model.config), strict=True
        ):
            changes[name] = (a, rows, scale)
    if left or not changes:
        what = ", ".join(sorted(left)[:4]) or "no change at all"
        raise BadInput(f"{folder / WEIGHTS} does not fit the model: it holds {what}")
    return _give(model, changes, folder / WEIGHTS)


def _give(model: Model, changes: Mapping[str, tuple[Tensor, Tensor, float]], file: Path) -> Model:
    """The model with these A (r, in) and B (out, r), which are checked before anything changes."""
    for name, (a, _, _) in changes.items():
        if a.dim() != 2 or a.shape[1] != _linear(model, name).in_features:
            raise BadInput(f"{file} does not fit the model: the change to {name} has shape {tuple(a.shape)}")
    model.requires_grad_(False)
    for name, (a, b, scale) in changes.items():
        changed = LoRALinear(_linear(model, name), a.shape[0], scale)
        with torch.no_grad():
            changed.lora_a.copy_(a)
            changed.lora_b.copy_(b)
        model.set_submodule(name, changed)
    return model


def _layers(model: Model, family: str | None) -> Iterator[_Layer]:
    """Their modules that hold linear layers of the blocks, with a weight each."""
    names, parts = build_on_meta(model.config).state_dict(), dict(model.named_modules())
    for entry in family_for(model.config, family).lines(model.config, names):
        ours = tuple(name.removesuffix(".weight") for name in entry.ours)
        linear = all(isinstance(parts.get(name), Linear) for name in ours)
        if linear and entry.theirs.endswith(".weight") and not isinstance(entry.transform, PerExpert | Row):
            yield _Layer(entry.theirs.removesuffix(".weight"), ours, entry)


def _linear(model: Model, name: str) -> Linear:
    part = model.get_submodule(name)
    assert isinstance(part, Linear)
    return part


def _blocks(model: Model, layer: _Layer, parts: list[LoRALinear | None], rank: int, scale: float) -> list[Tensor]:
    """B of each of ours, (out, rank), with its columns beside those of the others and zeros elsewhere."""
    blocks, at = [], 0
    for name, part in zip(layer.ours, parts, strict=True):
        like = next(p for p in parts if p is not None).lora_b
        block = like.new_zeros(_linear(model, name).out_features, rank)
        if part is not None:
            block[:, at : at + part.lora_b.shape[1]] = part.lora_b.detach() * (part.scale / scale)
            at += part.lora_b.shape[1]
        blocks.append(block)
    return blocks


def _targets(model: Model, changed: Mapping[str, int], family: str | None) -> list[str]:
    """Their modules as peft names them: by the last word, where that means no other module."""
    words = {name.rpartition(".")[2] for name in changed}
    meant = {layer.theirs for layer in _layers(model, family) if layer.theirs.rpartition(".")[2] in words}
    return sorted(words) if meant == set(changed) else sorted(changed)


def _scale(about: Mapping[str, Any], name: str, rank: int) -> float:
    """alpha / r of a module, as patterns in the config have it."""

    def found(key: str, usual: Any) -> float:
        patterns = about.get(key) or {}
        fits = (value for pattern, value in patterns.items() if name == pattern or name.endswith(f".{pattern}"))
        return float(next(fits, usual))

    alpha, r = found("alpha_pattern", about.get("lora_alpha", 8)), found("rank_pattern", about.get("r", rank))
    if r != rank:
        raise BadInput(f"{CONFIG} says that the change to {name} has rank {r:g}, its file has {rank}")
    return alpha / (rank**0.5 if about.get("use_rslora") else rank)


__all__ = ["load_lora", "save_lora"]
