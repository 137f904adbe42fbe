"""Family: one kind of published checkpoint, as data. What each family is stands in a file of its own."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from gnomon.checkpoints.hf.keys import Keys
from gnomon.checkpoints.hf.table import Line, expand
from gnomon.models import ModelConfig


@dataclass(frozen=True)
class Family:
    """How one family writes its models down.

    name          its model_type
    read          its config.json -> our config
    write         our config -> its config.json, with its class under "architectures"; BadValue where it has no words
    table         its names and ours; heads: those of a head besides, by our name of it
    prefix        what the names of the body begin with in a file that also has a head, and not in a file of the body
    copies        those that a file must also hold where the head has a table of its own
    twins         names of further copies of a tensor -> its own name: a file may hold one, the other or both
    harmless      names (patterns) that may be in a file and are not weights, or not of what is read
    renamed       (old, new) parts of names, as older files have them
    norms         further lines, which depend on the config
    rank          of several families that can hold a model the one of the lowest rank is written, then the first by
                  name; 0 is for those that others extend
    """

    name: str
    read: Callable[[Keys], ModelConfig]
    write: Callable[[ModelConfig], dict[str, Any]]
    table: tuple[Line, ...]
    prefix: str = ""
    twins: Mapping[str, str] = field(default_factory=dict)
    copies: tuple[str, ...] = ()
    heads: Mapping[str, tuple[Line, ...]] = field(default_factory=dict)
    harmless: tuple[str, ...] = ()
    renamed: tuple[tuple[str, str], ...] = ()
    norms: Callable[[ModelConfig], tuple[Line, ...]] = lambda config: ()
    rank: int = 1

    def config(self, keys: Keys) -> ModelConfig:
        """The config of a model of this family, every key of its file read, refused or known to be harmless."""
        config = self.read(keys)
        both = config.architecture == "encoder-decoder"
        keys.must("is_encoder_decoder", both)
        keys.must("is_decoder", *((True, False) if config.causal and not both else (False,)))
        for name in ("add_cross_attention", "tie_encoder_decoder"):
            keys.must(name, False)
        for name in ("cross_attention_hidden_size", "per_layer_config"):
            keys.must(name)
        keys.must("pruned_heads", {})
        keys.finish(self.name)
        return config

    def lines(self, config: ModelConfig, names: Collection[str]) -> list[Line]:
        """The lines of a model with this config and these weights. BadValue for a weight without one."""
        return list(expand((*self.table, *self.norms(config), *self.heads.get(config.head, ())), names))

    def plain(self, name: str, bare: bool) -> str:
        """The name that the table has for a name in a file; bare: the file holds the body alone."""
        for old, new in self.renamed:
            name = name.replace(old, new)
        return f"{self.prefix}{name}" if bare else name

    def is_harmless(self, name: str) -> bool:
        """Whether a name that the table does not have may be left out."""
        return any(re.fullmatch(pattern, name) for pattern in self.harmless)


def lines(*parts: Line | list[Line]) -> tuple[Line, ...]:
    """A table from single lines and pairs of them."""
    return tuple(entry for part in parts for entry in (part if isinstance(part, list) else [part]))


ACTIVATIONS: Mapping[str, Any] = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}


def activation_name(ours: str, tanh: str = "gelu_pytorch_tanh") -> str:
    """Hugging Face's name of an activation."""
    return tanh if ours == "gelu_tanh" else ours


__all__ = ["ACTIVATIONS", "Family", "activation_name", "lines"]
