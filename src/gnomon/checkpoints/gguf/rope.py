"""RoPE's settings in GGUF: the keys `ARCH.rope.*`, and factors of the pairs where a scaling is kept as a tensor.

rope_freqs.weight                        theta_i is divided by factor i: Llama-3's scaling, and any other that is fixed
rope_factors_long.weight, ..short.weight LongRoPE's two lists
"""

from collections.abc import Mapping
from dataclasses import replace
from math import isclose
from typing import Any

from gnomon.checkpoints.gguf.keys import Keys, shortest
from gnomon.errors import BadInput, BadValue
from gnomon.positions import Spec, get
from gnomon.positions.rope import RoPE
from gnomon.positions.scaling import Linear, Llama3, LongRoPE, Scaling, YaRN, scaling

FREQS, LONG, SHORT = "rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"
FACTORS = (FREQS, LONG, SHORT)
LLAMA3_LENGTH = 8192  # of all its models; the file does not say it
Factors = Mapping[str, list[float]]


def read_rope(keys: Keys, factors: Factors, d_head: int, length: int) -> Spec:
    """The encoding that the keys and the factors of the pairs describe. length: the longest text."""
    base = keys.get("rope.freq_base", float, 10000.0)
    turned = keys.get("rope.dimension_count", int, d_head)
    return rope(base, turned, d_head, _scaling(keys, factors, length))


def rope(base: float, rotary_dim: int, d_head: int, scaling: Scaling | None = None) -> Spec:
    """RoPE by the options that differ from the defaults, so that equal encodings are equal Specs."""
    options: dict[str, Any] = {} if base == 10000.0 else {"base": base}
    if rotary_dim != d_head:
        options["rotary_dim"] = rotary_dim
    if scaling is not None:
        options["scaling"] = scaling
    return get("rope", **options)


def _scaling(keys: Keys, factors: Factors, length: int) -> Scaling | None:
    kind = keys.get("rope.scaling.type", str, "none")
    factor = keys.get("rope.scaling.factor", float, keys.get("rope.scale_linear", float, 1.0))
    trained = keys.get("rope.scaling.original_context_length", int, length)
    attention = keys.get("rope.scaling.attn_factor", float, None)
    keys.must("rope.scaling.finetuned", True, False)
    keys.must("rope.scaling.yarn_log_multiplier", 0.0)
    try:
        if LONG in factors:
            stretch = max(length / trained, 1.0) if factor == 1.0 else factor
            long = LongRoPE(stretch, trained, tuple(factors[SHORT]), tuple(factors[LONG]))
            usual = attention is None or isclose(attention, long.magnitude, rel_tol=1e-6)
            return long if usual else replace(long, attention_factor=attention)
        if FREQS in factors:
            return _fixed(factors[FREQS], length)
        if kind == "yarn":
            fast, slow = (keys.get(f"rope.scaling.yarn_beta_{end}", float, None) for end in ("fast", "slow"))
            plain = YaRN(factor, trained, 32.0 if fast is None else fast, 1.0 if slow is None else slow)
            return plain if attention is None else replace(plain, attention_factor=attention * plain.magnitude)
        if kind == "linear" or factor != 1.0:
            return Linear(factor)
    except (BadValue, KeyError) as error:
        raise BadInput(f"{keys.path}: the scaling of its RoPE cannot be: {error}") from error
    if kind != "none":
        raise BadInput(f"{keys.path}: {keys.arch}.rope.scaling.type is {kind!r}; known: none, linear, yarn, longrope")
    return None


def _fixed(factors: list[float], length: int) -> Scaling:
    """Llama-3's scaling where these are its factors; else what divides each pair by its own."""
    most = shortest(max(factors))
    if most > 1:
        for base in (500000.0, 10000.0):
            known = Llama3(most, LLAMA3_LENGTH)
            if all(
                isclose(a, b, rel_tol=1e-5) for a, b in zip(known.explain(base, 2 * len(factors)), factors, strict=True)
            ):
                return known
    return LongRoPE(1.0, length, tuple(factors), tuple(factors), 1.0)


def with_truncation(spec: Spec, whole_ends: bool) -> Spec:
    """The same encoding whose YaRN has whole ends or not: llama.cpp always rounds them, whatever a family does."""
    known = spec.options.get("scaling")
    known = None if known is None else scaling(known)
    return (
        get("rope", **{**spec.options, "scaling": replace(known, truncate=whole_ends)})
        if isinstance(known, YaRN)
        else spec
    )


def describe_rope(spec: Spec, d_head: int) -> tuple[dict[str, Any], dict[str, list[float]]]:
    """The keys after `rope.` and the factors that say this; BadValue for a scaling that llama.cpp cannot compute."""
    if spec.name != RoPE.name:
        raise BadValue(f"{spec.name} is no rotation")
    built = spec.build(d_head=d_head)
    assert isinstance(built, RoPE)
    keys: dict[str, Any] = {"freq_base": float(built.base), "dimension_count": built.rotary_dim}
    match built.scaling:
        case None:
            return keys, {}
        case Linear(factor):
            return keys | {"scaling.type": "linear", "scaling.factor": factor}, {}
        case YaRN() as yarn if yarn.truncate:
            scaling = {"scaling.type": "yarn", "scaling.factor": yarn.factor}
            scaling["scaling.original_context_length"] = yarn.original_length
            if yarn.beta_fast != 32.0 or yarn.beta_slow != 1.0:
                scaling |= {"scaling.yarn_beta_fast": yarn.beta_fast, "scaling.yarn_beta_slow": yarn.beta_slow}
            usual = YaRN(yarn.factor, yarn.original_length).magnitude
            if not isclose(yarn.magnitude, usual):  # llama.cpp multiplies the usual magnitude by this
                scaling["scaling.attn_factor"] = yarn.magnitude / usual
            return keys | scaling, {}
        case LongRoPE() as long if long.short_factor != long.long_factor:
            scaling = {"scaling.original_context_length": long.original_length, "scaling.attn_factor": long.magnitude}
            return keys | scaling, {LONG: list(long.long_factor), SHORT: list(long.short_factor)}
        case Llama3() | LongRoPE(attention_factor=1.0) as fixed:
            return keys, {FREQS: fixed.explain(built.base, built.rotary_dim)}
    raise BadValue(f"llama.cpp does not compute {built.scaling}: it knows linear, yarn, llama3 and longrope")


__all__ = ["FACTORS", "LONG", "describe_rope", "read_rope", "rope", "with_truncation"]
