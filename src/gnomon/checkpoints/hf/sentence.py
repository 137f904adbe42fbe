"""How sentence-transformers makes a vector of a text: the modules after a body, and prompts, in files of their own.

    modules.json                          which modules there are: Transformer, Pooling, then Dense, Normalize
    1_Pooling/config.json                 the mean of the tokens' vectors, or the first
    2_Dense/config.json, model.safetensors   y = act(x W^T + b), which may be of another width: the head's pooler here
    config_sentence_transformers.json     "prompts": what is put before a text, by name, and the name of the usual one

Anything else is refused: a vector made another way would be near other vectors.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gnomon.checkpoints.native import read_json, write_json, write_tensors
from gnomon.checkpoints.weights import Weights
from gnomon.errors import BadInput
from gnomon.models import Model, ModelConfig
from gnomon.models.model_settings import HeadActivation, Pooling

MODULES, POOLING, PROMPTS = "modules.json", "1_Pooling/config.json", "config_sentence_transformers.json"
DENSE, NORMALIZE = "2_Dense", "3_Normalize"
FILES = (MODULES, POOLING, PROMPTS, f"{DENSE}/config.json", f"{DENSE}/model.safetensors", "sentence_bert_config.json")
MODES: Mapping[str, Pooling] = {"pooling_mode_mean_tokens": "mean", "pooling_mode_cls_token": "first"}
ACTIVATIONS: Mapping[str, HeadActivation] = {"Tanh": "tanh", "Identity": "identity", "ReLU": "relu", "GELU": "gelu"}
OURS = {"linear.weight": "head.pooler.weight", "linear.bias": "head.pooler.bias"}


@dataclass(frozen=True)
class Dense:
    """The layer after pooling."""

    folder: Path
    width: int
    activation: HeadActivation


@dataclass(frozen=True)
class Sentence:
    """What the files of a folder say of a text's vector."""

    pooling: Pooling
    dense: Dense | None = None
    unit: bool = False
    prompts: Mapping[str, str] = field(default_factory=dict)

    def settings(self, config: ModelConfig) -> ModelConfig:
        """The config of a body, with these modules as its head."""
        config = replace(config, unit=self.unit)
        if self.dense is None:
            return config
        return replace(config, pooler=True, d_pooled=self.dense.width, head_activation=self.dense.activation)

    def weights(self, dtype: torch.dtype) -> dict[str, Tensor]:
        """Ours, of the layer after pooling."""
        if self.dense is None:
            return {}
        file = self.dense.folder / "model.safetensors"
        found = Weights([file])
        if set(found.found) != set(OURS):
            raise BadInput(f"{file} holds {', '.join(sorted(found.found))}; a Dense module has {' and '.join(OURS)}")
        return {ours: found.tensor(name, dtype) for name, ours in OURS.items()}


def read(folder: Path) -> Sentence | None:
    """What a folder says of it; None where it says nothing. BadInput for a module that is not known here."""
    paths = _modules(folder)
    file = paths.get("Pooling", folder / "1_Pooling") / "config.json"
    if "Pooling" not in paths and not file.is_file():
        return None
    dense = _dense(paths["Dense"]) if "Dense" in paths else None
    _check_text(folder)
    return Sentence(_pooling(file), dense, "Normalize" in paths, _prompts(folder))


def _modules(folder: Path) -> dict[str, Path]:
    """The folders of the modules by the names of their classes, which come in the one order that is known."""
    if not (folder / MODULES).is_file():
        return {}
    try:
        listed = json.loads((folder / MODULES).read_bytes())
        found = [(str(module["type"]).rpartition(".")[2], str(module["path"])) for module in listed]
    except (OSError, ValueError, TypeError, KeyError, RecursionError) as error:
        raise BadInput(f"{folder / MODULES} is cut off, or no list of modules by type and path: {error}") from error
    if any("/" in path or "\\" in path or path in (".", "..") for _, path in found):
        raise BadInput(f"{folder / MODULES} names a folder outside of it: modules lie in folders with plain names")
    order = ["Transformer", "Pooling", "Dense", "Normalize"]
    names = [name for name, _ in found]
    if names != [name for name in order if name in names] or names[:2] != order[:2]:
        raise BadInput(f"{folder / MODULES} has {', '.join(names)}; {', '.join(order)} are known, in this order")
    return {name: folder / path for name, path in found}


def _pooling(file: Path) -> Pooling:
    data = read_json(file)
    chosen = [mode for mode, on in data.items() if mode.startswith("pooling_mode_") and on is True]
    if len(chosen) != 1 or chosen[0] not in MODES:
        raise BadInput(f"{file}: of its ways of pooling {' and '.join(MODES)} are known, got {chosen}")
    if data.get("include_prompt", True) is not True:
        raise BadInput(f"{file}: include_prompt is false, which leaves a prompt out of the mean; only true is known")
    return MODES[chosen[0]]


def _dense(folder: Path) -> Dense:
    data, file = read_json(folder / "config.json"), folder / "config.json"
    activation = str(data.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    width = data.get("out_features")
    if activation not in ACTIVATIONS or type(width) is not int or data.get("bias", True) is not True:
        known = ", ".join(ACTIVATIONS)
        raise BadInput(f"{file}: known are out_features, a bias, and an activation_function of {known}; got {data}")
    return Dense(folder, width, ACTIVATIONS[activation])


def _check_text(folder: Path) -> None:
    """BadInput where texts are lowered before the tokenizer sees them."""
    file = folder / "sentence_bert_config.json"
    if file.is_file() and read_json(file).get("do_lower_case", False) is not False:
        raise BadInput(f"{file}: do_lower_case makes texts small before the tokenizer reads them; only false is known")


def _prompts(folder: Path) -> dict[str, str]:
    """What is put before a text, by name; "" is the usual one."""
    file = folder / PROMPTS
    data = read_json(file) if file.is_file() else {}
    prompts, usual = data.get("prompts") or {}, data.get("default_prompt_name")
    texts = isinstance(prompts, dict) and all(isinstance(text, str) for text in prompts.values())
    if not texts or not (usual is None or usual in prompts):
        raise BadInput(f"{file}: prompts are texts by name, and default_prompt_name is one of these names")
    return {**prompts, **({} if usual is None else {"": prompts[usual]})}


# ------------------------------------------------------------------ writing


def body_of(config: ModelConfig) -> ModelConfig:
    """The config that config.json says, where modules of sentence-transformers say the rest."""
    if config.head != "pooled" or not (_has_dense(config) or config.unit):
        return config
    bare = replace(config, unit=False)
    return replace(bare, pooler=False, d_pooled=None, head_activation=None) if _has_dense(config) else bare


def _has_dense(config: ModelConfig) -> bool:
    """Whether a pooler is not the one that BERT has itself."""
    plain = config.pooling == "first" and config.d_pooled is None and config.head_activation in (None, "tanh")
    return config.head == "pooled" and config.pooler and (not plain or config.unit)


def write(new: Path, model: Model, config: ModelConfig, own: Mapping[str, Tensor]) -> None:
    """The files of a model whose vector is made in modules."""
    kinds = [("Transformer", ""), ("Pooling", "1_Pooling")]
    if _has_dense(config):
        kinds.append(("Dense", DENSE))
        _write_dense(new / DENSE, config, own)
    if config.unit:
        kinds.append(("Normalize", NORMALIZE))
    (new / POOLING).parent.mkdir()
    modes = {mode: config.pooling == kind for mode, kind in MODES.items()}
    write_json(new / POOLING, {"word_embedding_dimension": config.d_model, **modes})
    listed = [
        {"idx": n, "name": str(n), "path": path, "type": f"sentence_transformers.models.{kind}"}
        for n, (kind, path) in enumerate(kinds)
    ]
    (new / MODULES).write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
    if model.prompts:
        prompts = {name: text for name, text in model.prompts.items() if name}
        usual = next((name for name, text in prompts.items() if text == model.prompts.get("")), None)
        write_json(new / PROMPTS, {"prompts": prompts, "default_prompt_name": usual})


def _write_dense(folder: Path, config: ModelConfig, own: Mapping[str, Tensor]) -> None:
    folder.mkdir()
    names = {ours: name for name, ours in ACTIVATIONS.items()}
    activation = names[config.head_activation or "tanh"]
    place = "torch.nn.modules.linear" if activation == "Identity" else "torch.nn.modules.activation"
    about: dict[str, Any] = {
        "in_features": config.d_model,
        "out_features": config.d_model if config.d_pooled is None else config.d_pooled,
        "bias": True,
        "activation_function": f"{place}.{activation}",
    }
    write_json(folder / "config.json", about)
    write_tensors(folder / "model.safetensors", {name: own[ours] for name, ours in OURS.items()}, {"format": "pt"})


__all__ = ["FILES", "OURS", "POOLING", "Sentence", "body_of", "read", "write"]
