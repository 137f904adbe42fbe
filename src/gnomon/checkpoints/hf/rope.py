"""RoPE's settings in Hugging Face configs, in both of their spellings.

until transformers 4   rope_theta, partial_rotary_factor, and rope_scaling = {"rope_type" (or "type"), ...}
since transformers 5   rope_parameters = {"rope_theta", "rope_type", ...}, or one such object per type of layer

Both are read; the first is written, because both versions of that library read it.
"""

from collections.abc import Callable, Mapping
from typing import Any

from gnomon.checkpoints.hf.keys import SEQUENCE, Keys
from gnomon.errors import BadInput, BadValue, unknown
from gnomon.positions import Spec, get
from gnomon.positions.scaling import scaling

LENGTH = "original_max_position_embeddings"


def read_rope(keys: Keys, d_head: int, base: float = 10000.0, layer_type: str | None = None) -> Spec:
    """The encoding of a config, or of its layers of one type; `base` where the config names none."""
    new, old = keys.part("rope_parameters"), keys.part("rope_scaling")
    if new is not None and layer_type is not None and new.has(layer_type):
        new = new.part(layer_type)
    own = old if new is None else new
    theta = keys.get("rope_theta", float, base)
    share = keys.get("partial_rotary_factor", float, 1.0)
    options: dict[str, Any] = {}
    if own is not None:
        theta, share = own.get("rope_theta", float, theta), own.get("partial_rotary_factor", float, share)
        scaled = _scaling(own, keys)
        options = {} if scaled is None else {"scaling": scaled}
        if scaled is not None and scaled["kind"] == "proportional":
            share = 1.0  # the same key has the share of pairs there
    if new is not None and old is not None and _scaling(old, keys) != options.get("scaling"):
        raise BadInput(f"{keys.file}: rope_parameters and rope_scaling say different things")
    if not 0 < share <= 1:
        raise BadInput(f"{keys.file}: partial_rotary_factor is a share of a head, above 0 and at most 1; got {share}")
    return rope(theta, int(d_head * share), d_head, **options)


def rope(base: float, rotary_dim: int, d_head: int, **options: Any) -> Spec:
    """RoPE by the options that differ from the defaults, so that equal encodings are equal Specs."""
    if base != 10000.0:
        options["base"] = base
    if rotary_dim != d_head:
        options["rotary_dim"] = rotary_dim
    return get("rope", **options)


def _scaling(part: Keys, keys: Keys) -> dict[str, Any] | None:
    """The context scaling that an object of settings describes, as plain data."""
    kind = part.first(("rope_type", "type"), str, "default")
    if kind not in _READERS:
        raise BadInput(f"{keys.file}: {unknown('rope_type', kind, _READERS)}")
    settings = _READERS[kind](part, keys)
    part.finish(every=True)
    if settings is None:
        return None
    try:
        return scaling({k: v for k, v in settings.items() if v is not None}).to_dict()
    except BadValue as error:
        raise BadInput(f"{keys.file}: {error}") from error


def _trained(part: Keys, keys: Keys) -> int:
    """The length that a model was trained on, before its context was scaled."""
    beside = keys.get(LENGTH, int, None)
    inside = part.get(LENGTH, int, None)
    return beside or inside or keys.size("max_position_embeddings")


def _ratio(part: Keys, keys: Keys) -> float:
    """factor, or where it is left out the longest text over the trained length."""
    given = part.get("factor", float, None)
    return keys.size("max_position_embeddings") / _trained(part, keys) if given is None else given


def _default(part: Keys, keys: Keys) -> None:
    part.ignore(LENGTH, "factor")


def _linear(part: Keys, keys: Keys) -> dict[str, Any]:
    part.ignore(LENGTH)
    return {"kind": "linear", "factor": part.get("factor", float)}


def _dynamic(part: Keys, keys: Keys) -> dict[str, Any]:
    part.ignore(LENGTH)  # that library computes this one from max_position_embeddings, whatever stands here
    length = keys.size("max_position_embeddings")
    return {"kind": "dynamic", "factor": part.get("factor", float), "original_length": length}


def _yarn(part: Keys, keys: Keys) -> dict[str, Any]:
    names = ("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim")
    return {
        "kind": "yarn", "factor": _ratio(part, keys), "original_length": _trained(part, keys),
        "truncate": part.get("truncate", bool, None), **{name: part.get(name, float, None) for name in names},
    }  # fmt: skip


def _llama3(part: Keys, keys: Keys) -> dict[str, Any]:
    ends = {name: part.get(name, float) for name in ("low_freq_factor", "high_freq_factor")}
    return {
        "kind": "llama3", "factor": part.get("factor", float), "original_length": _trained(part, keys), **ends
    }  # fmt: skip


def _longrope(part: Keys, keys: Keys) -> dict[str, Any]:
    factors = {name: part.get(name, SEQUENCE) for name in ("short_factor", "long_factor")}
    return {
        "kind": "longrope", "factor": _ratio(part, keys), "original_length": _trained(part, keys),
        "attention_factor": part.get("attention_factor", float, None), **factors,
    }  # fmt: skip


def _proportional(part: Keys, keys: Keys) -> dict[str, Any]:
    share = part.get("partial_rotary_factor", float, keys.get("partial_rotary_factor", float, None))
    return {"kind": "proportional", "factor": part.get("factor", float, None), "fraction": share}


_READERS: Mapping[str, Callable[[Keys, Keys], dict[str, Any] | None]] = {
    "default": _default, "linear": _linear, "dynamic": _dynamic, "yarn": _yarn, "llama3": _llama3,
    "longrope": _longrope, "su": _longrope, "proportional": _proportional,
}  # fmt: skip


def write_rope(spec: Spec, d_head: int, max_positions: int | None) -> dict[str, Any]:
    """The keys of a config for RoPE, with max_position_embeddings: what some scalings are computed from."""
    if spec.name != "rope":
        raise BadValue(f"position = {spec!r}: the family's positions are rotary")
    module: Any = spec.build(d_head=d_head)
    if module.pairing != "half":
        raise BadValue(
            "these files pair channel i with i + d/2; this model's rope is interleaved. Reorder the rows of its query "
            "and key weights with gnomon.positions.pairing_order first"
        )
    keys: dict[str, Any] = {"rope_theta": module.base}
    longest = max_positions or 2048
    if module.scaling is not None:
        told, plain = module.scaling.to_hf(), module.scaling.to_dict()
        if plain["kind"] == "ntk":
            keys["rope_theta"] = module.scaling.base(module.base, module.rotary_dim)
        else:
            keys["rope_scaling"] = told
        if plain["kind"] == "dynamic":
            longest = plain["original_length"]
    if module.rotary_dim != d_head:
        keys["partial_rotary_factor"] = module.rotary_dim / d_head
    return {**keys, "max_position_embeddings": longest}


__all__ = ["read_rope", "rope", "write_rope"]
