"""Mixtures of experts in GGUF: the keys `ARCH.expert_*`."""

from collections.abc import Mapping
from typing import Any

from gnomon.checkpoints.gguf.keys import Keys
from gnomon.errors import BadValue
from gnomon.models import ModelConfig

LENGTH, SHARED = "expert_feed_forward_length", "expert_shared_feed_forward_length"


def read_experts(keys: Keys, found: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """The setting `experts` of a file, with `more` that its family has; none where it has no experts."""
    n = keys.get("expert_count", int, 0)
    if not n:
        return {}
    sizes = {"n_experts": n, "top_k": keys.get("expert_used_count", int), "d_ff": keys.get(LENGTH, int, found["d_ff"])}
    return {"experts": {**sizes, **more}}


def write_experts(c: ModelConfig, width: bool = True) -> dict[str, Any]:
    """The same as keys. width: whether the family has a key for the width of an expert."""
    experts = c.mixture
    if experts is None:
        raise BadValue("experts = None: the family has several feed-forward networks in a layer")
    told: dict[str, Any] = {"expert_count": experts.n_experts, "expert_used_count": experts.top_k}
    return told | ({LENGTH: experts.d_ff} if width else {})


__all__ = ["SHARED", "read_experts", "write_experts"]
