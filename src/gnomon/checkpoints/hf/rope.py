"""RoPE's settings in Hugging Face configs, in both of their spellings.

until transformers 4   rope_theta, partial_rotary_factor, and rope_scaling = {"rope_type" (or "type"), ...}
since transformers 5   rope_parameters = {"rope_theta", "rope_type", ...}, or one such object per type of layer

Both are read, together too where they agree; the first is written, because both versions of that library read it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from math import inf, nextafter
from typing import Any

from gnomon.checkpoints.hf.keys import SEQUENCE, Keys
from gnomon.errors import BadInput, BadValue, unknown
from gnomon.positions import Spec, get
from gnomon.positions.rope import Pairing
from gnomon.positions.scaling import scaling

LENGTH = "original_max_position_embeddings"
KINDS = ("linear", "dynamic", "yarn", "llama3", "longrope", "proportional")


@dataclass(frozen=True)
class Rotary:
    """Which of RoPE's settings a family's code in that library honours; what it ignores or cannot compute is refused.

    partial   whether it may turn a part of each head; the others turn the whole head, whatever the config says
    kinds     the scalings that it computes; renamed: those that it takes for another one
    base, share, length   what it takes where the config is silent: the base, the part of a head that turns, and the
                          trained length before scaling (None: max_position_embeddings)
    base_keys, share_keys   what it calls the first two
    repeats   names that it leaves out, under which a file may only say the same once more: the base, the share
    kind_keys what it calls the kind of a scaling; beside: whether the trained length may stand beside the scaling
    pairing   which channels turn together
    """

    partial: bool = False
    kinds: tuple[str, ...] = KINDS
    renamed: Mapping[str, str] | None = None
    base: float = 10000.0
    share: float = 1.0
    length: int | None = None
    base_keys: tuple[str, ...] = ("rope_theta",)
    share_keys: tuple[str, ...] = ("partial_rotary_factor",)
    repeats: tuple[str, str] | None = None
    kind_keys: tuple[str, ...] = ("rope_type", "type")
    beside: bool = True
    pairing: Pairing = "half"


#: for a config of whatever family: all that it says counts
ANY = Rotary(partial=True, renamed={"su": "longrope"})
#: by model_type
ROTARY: Mapping[str, Rotary] = {
    **dict.fromkeys(("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "granite"), Rotary()),
    **dict.fromkeys(("olmo2", "exaone4", "starcoder2", "falcon"), Rotary()),
    **dict.fromkeys(("qwen2_moe", "qwen3_moe", "olmoe"), Rotary()),
    "smollm3": Rotary(base=2000000.0),
    "gemma3_text": Rotary(base=1000000.0, kind_keys=("rope_type",), beside=False),
    "gemma3_text, layers with a window": Rotary(
        base_keys=("rope_local_base_freq",), share_keys=(), kind_keys=("rope_type",), beside=False
    ),
    "cohere": Rotary(base=500000.0, pairing="interleaved"),
    "ernie4_5": Rotary(base=500000.0, pairing="interleaved"),
    "cohere2": Rotary(pairing="interleaved"),
    "olmo3": Rotary(base=500000.0, kind_keys=("rope_type",)),
    "olmo3, layers with a window": Rotary(
        base=500000.0, base_keys=(), share_keys=(), kind_keys=("rope_type",), beside=False
    ),
    "modernbert": Rotary(base=160000.0, kinds=(), base_keys=("global_rope_theta",), share_keys=()),
    "modernbert, layers with a window": Rotary(kinds=(), base_keys=("local_rope_theta",), share_keys=()),
    "glm4": Rotary(partial=True, kinds=KINDS[:-1], share=0.5, pairing="interleaved"),
    "mixtral": Rotary(base=1000000.0),
    "gpt_oss": Rotary(base=150000.0),
    "gptj": Rotary(partial=True, kinds=(), pairing="interleaved"),
    "phi": Rotary(partial=True, kinds=KINDS[:-1], share=0.5),
    "stablelm": Rotary(partial=True, kinds=KINDS[:-1], share=0.25),
    "gpt_neox": Rotary(
        partial=True,
        kinds=KINDS[:-1],
        share=0.25,
        base_keys=("rotary_emb_base",),
        share_keys=("rotary_pct",),
        repeats=("rope_theta", "partial_rotary_factor"),
    ),
    "phi3": Rotary(partial=True, kinds=("longrope",), renamed={"su": "longrope", "yarn": "longrope"}, length=4096),
}


def read_rope(keys: Keys, d_head: int, rotary: Rotary, parts: Mapping[str, Keys | None] | None = None) -> Spec:
    """The encoding of a config.

    parts   the objects of settings by name, where it is not rope_parameters and rope_scaling
    """
    spelled = {name: keys.part(name) for name in ("rope_parameters", "rope_scaling")} if parts is None else parts
    own = {name: part for name, part in spelled.items() if part is not None}
    base = _stated(keys, own, "rope_theta", rotary.base_keys, rotary.base)
    share = _stated(keys, own, "partial_rotary_factor", rotary.share_keys, rotary.share)
    for name, value in zip(rotary.repeats or (), (base, share), strict=False):
        keys.must(name, value)
    read = {name: _scaling(part, keys, rotary) for name, part in own.items()}
    scaled = keys.agreed(read) if read else None
    if not 0 < share <= 1:
        raise BadInput(f"{keys.file}: partial_rotary_factor is a share of a head, above 0 and at most 1; got {share}")
    options: dict[str, Any] = {} if scaled is None else {"scaling": scaled}
    options |= {} if rotary.pairing == "half" else {"pairing": rotary.pairing}
    turned = d_head if scaled is not None and scaled["kind"] == "proportional" else int(d_head * share)
    if turned != d_head and not rotary.partial:
        raise BadInput(
            f"{keys.file}: partial_rotary_factor is {share}, which the transformers library ignores in this family, so "
            "what the model was trained with is not said. Take the key out, or take the model_type that turns a part "
            f"of each head: {' or '.join(_partial())}"
        )
    return rope(base, turned, d_head, **options)


def _stated(keys: Keys, parts: Mapping[str, Keys], name: str, beside: Iterable[str], default: float) -> float:
    """A number that the config itself may say under several names, and each object of settings under one."""
    values = {key: keys.get(key, float, default) for key in beside if key in keys.data}
    values |= {f"{where}.{name}": part.get(name, float, default) for where, part in parts.items() if name in part.data}
    return keys.agreed(values) if values else default


def _partial() -> list[str]:
    return [family for family, rotary in ROTARY.items() if rotary.partial]


def rope(base: float, rotary_dim: int, d_head: int, **options: Any) -> Spec:
    """RoPE by the options that differ from the defaults, so that equal encodings are equal Specs."""
    if base != 10000.0:
        options["base"] = base
    if rotary_dim != d_head:
        options["rotary_dim"] = rotary_dim
    return get("rope", **options)


def _scaling(part: Keys, keys: Keys, rotary: Rotary) -> dict[str, Any] | None:
    """The context scaling that an object of settings describes, as plain data."""
    word = part.first(rotary.kind_keys, str, "default")
    kind = (rotary.renamed or {}).get(word, word)
    known = ("default", *rotary.kinds)
    if kind not in known:
        raise BadInput(f"{keys.file}: {unknown('rope_type', word, known)}")
    settings = _READERS[kind](part, keys, rotary)
    part.finish()
    if settings is None:
        return None
    try:
        return scaling({k: v for k, v in settings.items() if v is not None}).to_dict()
    except BadValue as error:
        raise BadInput(f"{keys.file}: {error}") from error


def _trained_length(part: Keys, keys: Keys, rotary: Rotary) -> int | None:
    """The length that a model was trained on before its context was scaled, where the config says it."""
    beside = keys.get(LENGTH, int, None) if rotary.beside else None
    found = {LENGTH: beside or rotary.length, f"rope.{LENGTH}": part.get(LENGTH, int, None)}
    values = {where: value for where, value in found.items() if value is not None}
    return keys.agreed(values) if values else None


def _longest(keys: Keys) -> int:
    return keys.size("max_position_embeddings")


def _stretch(part: Keys, keys: Keys, rotary: Rotary) -> dict[str, Any]:
    """factor, or where it is left out the longest text over the trained length; and that length."""
    factor, trained = part.get("factor", float, None), _trained_length(part, keys, rotary)
    if factor is None and trained is not None:
        factor = _longest(keys) / max(trained, 1)
    return {"factor": factor, "original_length": _longest(keys) if trained is None else trained}


def _default(part: Keys, keys: Keys, rotary: Rotary) -> None:
    part.get(LENGTH, int, None)  # what it would be scaled from
    if (factor := part.get("factor", float, None)) not in (1.0, None):
        raise BadInput(f"{keys.file}: RoPE has a factor, {factor}, and no scaling: name it under rope_type")


def _linear(part: Keys, keys: Keys, rotary: Rotary) -> dict[str, Any]:
    part.get(LENGTH, int, None)
    return {"kind": "linear", "factor": part.get("factor", float)}


def _dynamic(part: Keys, keys: Keys, rotary: Rotary) -> dict[str, Any]:
    part.get(LENGTH, int, None)  # that library computes this one from max_position_embeddings, whatever stands here
    return {"kind": "dynamic", "factor": part.get("factor", float), "original_length": _longest(keys)}


def _yarn(part: Keys, keys: Keys, rotary: Rotary) -> dict[str, Any]:
    names = ("beta_fast", "beta_slow", "attention_factor", "mscale", "mscale_all_dim")
    numbers, stretch = {name: part.get(name, float, None) for name in names}, _stretch(part, keys, rotary)
    if stretch["factor"] is None:
        raise BadInput(f"{keys.file}: yarn needs its factor, or {LENGTH} to compute it from")
    return {"kind": "yarn", "truncate": part.get("truncate", bool, None), **numbers, **stretch}


def _llama3(part: Keys, keys: Keys, rotary: Rotary) -> dict[str, Any]:
    ends = {name: part.get(name, float) for name in ("low_freq_factor", "high_freq_factor")}
    return {"kind": "llama3", **_stretch(part, keys, rotary), **ends, "factor": part.get("factor", float)}


def _longrope(part: Keys, keys: Keys, rotary: Rotary) -> dict[str, Any]:
    factors = {name: part.get(name, SEQUENCE) for name in ("short_factor", "long_factor")}
    stretch, attention = _stretch(part, keys, rotary), part.get("attention_factor", float, None)
    return {"kind": "longrope", "attention_factor": attention, **factors, **stretch, "factor": stretch["factor"] or 1.0}


def _proportional(part: Keys, keys: Keys, rotary: Rotary) -> dict[str, Any]:
    """The share of a head is that of its pairs here; all of its channels turn, some of them by nothing."""
    share = part.get("partial_rotary_factor", float, None)
    beside = [keys.get(name, float, None) for name in rotary.share_keys]
    share = next((other for other in beside if other is not None), None) if share is None else share
    return {"kind": "proportional", "factor": part.get("factor", float, None), "fraction": share}


_READERS: Mapping[str, Callable[[Keys, Keys, Rotary], dict[str, Any] | None]] = {
    "default": _default,
    "linear": _linear,
    "dynamic": _dynamic,
    "yarn": _yarn,
    "llama3": _llama3,
    "longrope": _longrope,
    "proportional": _proportional,
}


# ------------------------------------------------------------------ writing


def write_rope(spec: Spec, d_head: int, max_positions: int | None, rotary: Rotary) -> dict[str, Any]:
    """The keys of a config for RoPE, with max_position_embeddings: what some scalings are computed from. BadValue for
    what this family's code in that library does not honour."""
    if spec.name != "rope":
        raise BadValue(f"position = {spec!r}: the family's positions are rotary")
    module: Any = spec.build(d_head=d_head)
    if module.pairing != rotary.pairing:
        pairs = {"half": "channel i with i + d/2", "interleaved": "channel 2i with 2i + 1"}[rotary.pairing]
        raise BadValue(
            f"these files pair {pairs}; this model's rope is {module.pairing}. Reorder the rows of its query and key "
            "weights with gnomon.positions.pairing_order first"
        )
    if module.rotary_dim != d_head and not rotary.partial:
        raise BadValue(
            f"position = {spec!r}: the transformers library turns all {d_head} channels of a head in this family, this "
            f"model {module.rotary_dim}"
        )
    keys: dict[str, Any] = {"rope_theta": module.base}
    longest = max_positions or 2048
    if module.scaling is not None:
        scaling, plain = module.scaling.to_hf(), module.scaling.to_dict()
        if plain["kind"] == "ntk":
            keys["rope_theta"] = module.scaling.base(module.base, module.rotary_dim)
        elif plain["kind"] not in rotary.kinds:
            raise BadValue(f"position = {spec!r}: this family is scaled by {' or '.join(rotary.kinds)}, or not at all")
        else:
            keys["rope_scaling"] = scaling
        if plain["kind"] == "dynamic":
            longest = plain["original_length"]
    if module.rotary_dim != d_head:
        keys["partial_rotary_factor"] = share_of(module.rotary_dim, d_head)
    return {**keys, "max_position_embeddings": longest}


def share_of(rotary_dim: int, d_head: int) -> float:
    """The share of a head of which every reader computes this width: int(d_head * share), not one less."""
    share = rotary_dim / d_head
    return share if int(d_head * share) == rotary_dim else nextafter(share, inf)


__all__ = ["ANY", "LENGTH", "ROTARY", "Rotary", "read_rope", "rope", "share_of", "write_rope"]
