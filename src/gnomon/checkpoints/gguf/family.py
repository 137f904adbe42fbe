"""Family: one kind of model that a GGUF file may hold, and its names for our weights. Each stands in families/.

llama.cpp gives the same part the same name in every family, so one table serves all. What differs: which rows are
written as one tensor, in which order the rows of queries and keys stand, and whether a norm's weight has its 1 added.
"""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import torch

from gnomon.checkpoints.gguf.keys import Keys
from gnomon.models import ModelConfig
from gnomon.positions.rope import Pairing, pairing_order
from gnomon.shapes import Int

Shapes = Mapping[str, tuple[int, ...]]
EXPERT = re.compile(r"experts\.\d+")

_WHOLE = {
    "input.tokens": "token_embd",
    "input.position": "position_embd",
    "input.norm": "token_embd_norm",
    "input.types": "token_types",
    "head": "output",
}
_IN_BLOCK = {
    "around_attention.norm": "attn_norm",
    "around_attention.norm_after": "post_attention_norm",
    "attention.q": "attn_q",
    "attention.k": "attn_k",
    "attention.v": "attn_v",
    "attention.out": "attn_output",
    "attention.q_norm": "attn_q_norm",
    "attention.k_norm": "attn_k_norm",
    "cross.q": "cross_attn_q",
    "cross.k": "cross_attn_k",
    "cross.v": "cross_attn_v",
    "cross.out": "cross_attn_o",
    "around_cross.norm": "cross_attn_norm",
    "around_ffn.norm": "ffn_norm",
    "around_ffn.norm_after": "post_ffw_norm",
    "ffn.gate": "ffn_gate",
    "ffn.up": "ffn_up",
    "ffn.down": "ffn_down",
    "ffn.router": "ffn_gate_inp",
    "ffn.shared_gate": "ffn_gate_inp_shexp",
    **{
        f"ffn.{kind}.{part}": f"ffn_{part}_{short}"
        for part in ("gate", "up", "down")
        for kind, short in (("experts.*", "exps"), ("shared", "shexp"))
    },
}
QKV = {f"attention.{part}": "attn_qkv" for part in "qkv"}
GATE_UP = {"ffn.gate": "ffn_up", "ffn.up": "ffn_up"}

#: settings that several families have
LLAMA = {"norm": "rmsnorm", "activation": "silu", "gated": True}
PLAIN = {"bias": False, "qkv_bias": False, "out_bias": False}
GPT = {"norm": "layernorm", "activation": "gelu_tanh", "bias": True, "qkv_bias": True, "out_bias": True}


def window_of_all(keys: Keys, found: Mapping[str, Any]) -> dict[str, Any]:
    """A window that every layer has."""
    window = keys.get("attention.sliding_window", int, 0)
    return {"window": window} if window else {}


def no_keys(config: ModelConfig) -> dict[str, Any]:
    """No keys of its own."""
    return {}


@dataclass(frozen=True)
class Family:
    """One family.

    arch      llama.cpp's name; stacks: how the names of a stack's tensors begin
    position  what kind its models may choose from; fixed: settings that all of them have
    read      its own keys -> settings, given those found so far; by default a window, which all layers have
    write     a config -> its own keys
    rows      the pairing in which queries and keys stand; fused: parts that are written as one tensor, in order
    partial   whether llama.cpp may turn a part of each head; of the other families it refuses to load such a file
    widths    whether the width of a head is always written; windows: whether it has words for a window
    longrope, tied   whether llama.cpp has LongRoPE for it, and a head that is the table of tokens; own_head: another
    still     whether some layers may have no position; truncates: whether YaRN has whole ends, as in llama.cpp
    renamed   names of parts in a block that differ from the usual ones, given the names of our weights
    rank      of several families that can hold a model the one of the lowest rank is written, then the first by name
    """

    arch: str
    position: Literal["rope", "learned", "alibi", "t5"]
    fixed: Mapping[str, Any]
    read: Callable[[Keys, Mapping[str, Any]], dict[str, Any]] = window_of_all
    write: Callable[[ModelConfig], dict[str, Any]] = no_keys
    rows: Pairing = "half"
    fused: Mapping[str, str] = field(default_factory=dict)
    partial: bool = False
    widths: bool = False
    windows: bool = False
    longrope: bool = False
    tied: bool = True
    own_head: bool = True
    still: bool = False
    truncates: bool = True
    renamed: Callable[[Collection[str]], Mapping[str, str]] = lambda names: {}
    rank: int = 1
    stacks: Mapping[str, str] = field(default_factory=lambda: {"stack": ""})

    @property
    def architecture(self) -> str:
        """Which of our three kinds of model it is."""
        kind: str = self.fixed.get("architecture", "decoder-only")
        return kind

    @property
    def eps_key(self) -> str:
        """The key of norm_eps."""
        kind = "layer_norm_rms" if self.fixed["norm"].startswith("rmsnorm") else "layer_norm"
        return f"attention.{kind}_epsilon"

    def name(self, ours: str, renamed: Mapping[str, str]) -> str | None:
        """The tensor that one of our weights is in; None for a weight that the family has no name for."""
        part, _, kind = ours.rpartition(".")
        if part in _WHOLE:
            return f"{_WHOLE[part]}.{kind}"
        stack, _, rest = part.partition(".")
        if (before := self.stacks.get(stack)) is None:
            return None
        if rest == "norm":
            return f"{before}output_norm.{kind}"
        if rest.startswith("positions."):  # a table of relative positions; that of all layers is kept in the first
            return f"{before}blk.{rest.removeprefix('positions.')}.attn_rel_b.{kind}"
        if not rest.startswith("blocks."):
            return None
        _, block, inner = rest.split(".", 2)
        if kind == "sinks":  # a weight of its own, not a module's
            return f"{before}blk.{block}.attn_sinks.weight"
        inner = EXPERT.sub("experts.*", inner)
        theirs = renamed.get(inner, self.fused.get(inner, _IN_BLOCK.get(inner)))
        return None if theirs is None else f"{before}blk.{block}.{theirs}.{kind}"

    def adds_one(self, ours: str) -> bool:
        """Whether the file holds 1 + w where we hold w."""
        return self.fixed["norm"] == "rmsnorm_plus_one" and "norm" in ours


@dataclass(frozen=True)
class Part:
    """Where one of our weights is: rows `first` to `first + rows` of a tensor."""

    tensor: str
    first: int
    rows: int


def parts(family: Family, shapes: Shapes) -> dict[str, Part]:
    """Where each of our weights is. Those that the family has no name for are left out."""
    order = ("attention.q", "attention.k", "attention.v", "ffn.gate", "ffn.up")
    rank = {part: n for n, part in enumerate(order)}
    filled: dict[str, int] = {}
    found = {}
    renamed = family.renamed(shapes.keys())
    for ours in sorted(shapes, key=lambda name: rank.get(name.rpartition(".")[0].split(".", 3)[-1], -1)):
        if (theirs := family.name(ours, renamed)) is not None:
            first, rows = filled.get(theirs, 0), stored_shape(ours, shapes[ours])[0]
            found[ours] = Part(theirs, first, rows)
            filled[theirs] = first + rows
    return found


def tensor_shapes(where: Mapping[str, Part], shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors that hold these parts."""
    whole: dict[str, tuple[int, ...]] = {}
    for ours, part in where.items():
        rows = max(part.first + part.rows, whole.get(part.tensor, (0,))[0])
        whole[part.tensor] = (rows, *stored_shape(ours, shapes[ours])[1:])
    n = {part.tensor: part.rows for ours, part in where.items() if EXPERT.search(ours) and len(shapes[ours]) == 2}
    return {name: (s[0] // n[name], n[name], *s[1:]) if name in n else s for name, s in whole.items()}


def stored_shape(ours: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """One of our shapes in rows of a tensor: a vector of an expert is a row, the matrix of one row a vector."""
    if EXPERT.search(ours) and len(shape) == 1:
        return (1, *shape)
    return shape[1:] if ours.endswith("shared_gate.weight") else shape


def row_order(family: Family, config: ModelConfig, ours: str, rows: int) -> Int | None:
    """Our row i is the file's row order[i]; None where the rows stand alike. Only what is rotated is reordered: the
    first `rotary_dim` rows of each head of queries and keys."""
    if not ours.endswith(
        tuple(f"attention.{part}.{kind}" for part in ("q", "k", "q_norm", "k_norm") for kind in KINDS)
    ):
        return None
    if family.position != "rope":
        return None
    layer = int(ours.split(".")[2])
    position = config.per_layer(config.n_layers)[layer]
    pairing = position.options.get("pairing", "half")
    if position.name != "rope" or pairing == family.rows:
        return None
    width = config.d_model // config.n_heads if config.d_head is None else config.d_head
    turned = rotary_width(position.options, width)
    one = torch.cat([pairing_order(turned, pairing), torch.arange(turned, width)])
    return (torch.arange(rows // width)[:, None] * width + one).flatten()


KINDS = ("weight", "bias")


def rotary_width(options: Mapping[str, Any], d_head: int) -> int:
    """How many channels of a head turn."""
    if options.get("fraction") is not None:
        return int(d_head * options["fraction"])
    return int(d_head if options.get("rotary_dim") is None else options["rotary_dim"])


__all__ = [
    "GATE_UP",
    "GPT",
    "LLAMA",
    "PLAIN",
    "QKV",
    "Family",
    "Part",
    "parts",
    "rotary_width",
    "row_order",
    "stored_shape",
    "tensor_shapes",
]
