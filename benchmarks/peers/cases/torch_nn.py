"""Stacks of torch.nn: norms first and last, with and without the fast path, told `is_causal` and not."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from torch import nn

from cases.drawn import Case, drawn
from gnomon.audit.adapters.torch_nn import TorchNN

LAYER: Mapping[str, Any] = {"d_model": 32, "nhead": 4, "dim_feedforward": 64, "batch_first": True}
OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "norms last": {},
    "norms first": {"norm_first": True},
    "gelu": {"activation": "gelu"},
    "rows second": {"batch_first": False},
    "no bias": {"bias": False},
}


def _encoder(options: Mapping[str, Any], nested: bool, causal: bool, hinted: bool) -> Case:
    def make() -> TorchNN:
        layer = nn.TransformerEncoderLayer(**{**LAYER, **options})
        stack = drawn(partial(nn.TransformerEncoder, layer, 2, enable_nested_tensor=nested))
        return TorchNN(stack, causal=causal, hinted=hinted)

    return make


def _decoder(options: Mapping[str, Any], hinted: bool) -> Case:
    def make() -> TorchNN:
        layer = nn.TransformerDecoderLayer(**{**LAYER, **options})
        return TorchNN(drawn(partial(nn.TransformerDecoder, layer, 2)), hinted=hinted)

    return make


def _pair(options: Mapping[str, Any]) -> Case:
    def make() -> TorchNN:
        sizes = {"num_encoder_layers": 2, "num_decoder_layers": 2}
        return TorchNN(drawn(partial(nn.Transformer, **{**LAYER, **options, **sizes})))

    return make


CASES: Mapping[str, Case] = {
    **{f"encoder: {name}": _encoder(options, True, False, False) for name, options in OPTIONS.items()},
    **{
        f"encoder, no nested tensors: {name}": _encoder(OPTIONS[name], False, False, False)
        for name in ("norms last", "norms first")
    },
    **{f"causal encoder: {name}": _encoder(options, True, True, False) for name, options in OPTIONS.items()},
    "causal encoder: norms last, told is_causal": _encoder({}, True, True, True),
    "causal encoder: norms first, told is_causal": _encoder({"norm_first": True}, True, True, True),
    **{f"decoder: {name}": _decoder(options, False) for name, options in OPTIONS.items()},
    "decoder: norms last, told is_causal": _decoder({}, True),
    **{f"encoder-decoder: {name}": _pair(options) for name, options in OPTIONS.items()},
}
