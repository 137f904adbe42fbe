"""Context scaling: other frequencies for RoPE, so that a model reads past the length it was trained on.

    theta'_i = f_i(theta_i),  cos and sin times `magnitude`;  a pair makes r_i = L theta_i / 2 pi turns within L tokens

    linear   theta / s                                    Chen et al. 2023, arXiv:2306.15595, section 2.3
    ntk      the base times s^(d / (d - 2))               bloc97 2023; see Peng et al. 2024, arXiv:2309.00071, 3.1
    yarn     theta / s blended into theta over the pairs  Peng et al. 2024, section 3.2, as its authors' code has it
    llama3   the same, blended over the turns r_i         Dubey et al. 2024, arXiv:2407.21783, as in Meta's code
    dynamic  ntk with an s that grows with the text       emozilla 2023; Peng et al. 2024, section 3.3
    longrope theta_i / lambda_i, searched, one list up    Ding et al. 2024, arXiv:2402.13753, section 3
             to the trained length, another past it
    proportional  theta / s of the fastest pairs, 0   Barbero et al. 2024, arXiv:2410.06205 (p-RoPE), as Hugging
             of the others, which see no position     Face's library has it

Dynamic and longrope depend on how long the text is. A text that outgrows a table has to be read again under the next
one, since deeper layers made their keys from what the old table gave; `regime` says which table a length has, and
models see to it.

Each is a small object: it computes, says what it does to which pair, and exports itself in Hugging Face's words.

>>> Linear(4.0).frequencies(10000.0, 4)
[0.25, 0.0025]
>>> scaling({"kind": "linear", "factor": 4.0})
Linear(factor=4.0)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, ClassVar

import torch

from gnomon.errors import BadValue, short_repr, unknown
from gnomon.settings import check_fields
from gnomon.shapes import Float, Int


@dataclass(frozen=True)
class Scaling(ABC):
    """Base of the methods. factor: how many times the trained length is to be read, s >= 1."""

    kind: ClassVar[str]
    factor: float

    def __post_init__(self) -> None:
        """Raise BadValue for what cannot be right."""
        check_fields(type(self), vars(self))
        if not (math.isfinite(self.factor) and self.factor >= 1):
            raise BadValue(
                f"a scaling factor is how many times the trained length is read, at least 1; got {self.factor}"
            )

    @abstractmethod
    def frequencies(self, base: float, d: int) -> list[float]:
        """theta'_i of the d / 2 pairs, in radians per token. d is the width that rotates."""

    @property
    def magnitude(self) -> float:
        """What cosines and sines are multiplied by; scores get its square."""
        return 1.0

    def regime(self, length: Int) -> Int | None:
        """Numbers that differ where texts of these lengths have different tables; None where all have one."""
        return None

    def frequencies_at(self, length: Int, base: float, d: int) -> Float | None:
        """theta' (..., d / 2) in float64 for texts of these lengths (...); None where all have one table."""
        return None

    def explain(self, base: float, d: int) -> list[float]:
        """Of every pair, how much slower it turns: 1 as trained, `factor` where stretched in full, inf where still."""
        both = zip(plain_frequencies(base, d), self.frequencies(base, d), strict=True)
        return [old / new if new else math.inf for old, new in both]

    def to_dict(self) -> dict[str, Any]:
        """As plain data; `scaling` brings it back."""
        return {"kind": self.kind, **{k: v for k, v in asdict(self).items() if v is not None}}

    @abstractmethod
    def to_hf(self) -> dict[str, Any]:
        """As Hugging Face's `rope_scaling`."""


@dataclass(frozen=True)
class Linear(Scaling):
    """Positions divided by the factor, in every pair alike (position interpolation)."""

    kind: ClassVar[str] = "linear"

    def frequencies(self, base: float, d: int) -> list[float]:
        """theta_i / s."""
        return [theta / self.factor for theta in plain_frequencies(base, d)]

    def to_hf(self) -> dict[str, Any]:
        """rope_type "linear"."""
        return {"rope_type": "linear", "factor": self.factor}


@dataclass(frozen=True)
class NTK(Scaling):
    """A larger base: the fastest pair stays as it is, the slowest is stretched by exactly the factor."""

    kind: ClassVar[str] = "ntk"

    def frequencies(self, base: float, d: int) -> list[float]:
        """Those of the larger base."""
        return plain_frequencies(self.base(base, d), d)

    def base(self, base: float, d: int) -> float:
        """base s^(d / (d - 2)): the only number that changes."""
        if d < 4:
            raise BadValue(
                f"ntk stretches the slowest pair and keeps the fastest, so it needs two pairs; got width {d}"
            )
        return float(base * self.factor ** (d / (d - 2)))

    def to_hf(self) -> dict[str, Any]:
        """There is no name for it: it is another `rope_theta`, see `base`."""
        return {"rope_type": "default"}


@dataclass(frozen=True)
class YaRN(Scaling):
    """Fast pairs as they are, slow pairs stretched, a ramp over the pairs between; and sharper attention.

    original_length   L, the length the model was trained on
    beta_fast         pairs that turn more often than this within L stay; beta_slow: those that turn less are stretched
    attention_factor  the magnitude, where it is not 0.1 ln s + 1 (section 3.4)
    mscale, mscale_all_dim   where both are given it is their ratio (DeepSeek's files)
    truncate          whether the ends of the ramp are whole pairs, as in the authors' code
    """

    kind: ClassVar[str] = "yarn"
    original_length: int
    beta_fast: float = 32.0
    beta_slow: float = 1.0
    attention_factor: float | None = None
    mscale: float | None = None
    mscale_all_dim: float | None = None
    truncate: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_length(self.original_length)
        if not self.beta_fast > self.beta_slow > 0:
            raise BadValue(f"beta_fast must exceed beta_slow, both above 0; got {self.beta_fast} and {self.beta_slow}")

    def frequencies(self, base: float, d: int) -> list[float]:
        """theta / s where the ramp is 1, theta where it is 0."""
        low, high = self.ramp(base, d)
        thetas = plain_frequencies(base, d)
        share = [min(max((i - low) / (high - low), 0.0), 1.0) for i in range(len(thetas))]
        return [theta / self.factor * g + theta * (1 - g) for theta, g in zip(thetas, share, strict=True)]

    def ramp(self, base: float, d: int) -> tuple[float, float]:
        """The pair up to which nothing changes, and that from which all is stretched."""

        def pair(turns: float) -> float:
            return d * math.log(self.original_length / (2 * math.pi * turns)) / (2 * math.log(base))

        low, high = pair(self.beta_fast), pair(self.beta_slow)
        low, high = (float(math.floor(low)), float(math.ceil(high))) if self.truncate else (low, high)
        low, high = max(low, 0.0), min(high, float(d - 1))
        return low, high + 0.001 if high == low else high

    @property
    def magnitude(self) -> float:
        """0.1 ln s + 1, unless the settings say otherwise."""
        if self.attention_factor is not None:
            return self.attention_factor
        if self.mscale and self.mscale_all_dim:
            return self._temperature(self.mscale) / self._temperature(self.mscale_all_dim)
        return self._temperature(1.0)

    def _temperature(self, scale: float) -> float:
        return 0.1 * scale * math.log(self.factor) + 1.0

    def to_hf(self) -> dict[str, Any]:
        """rope_type "yarn"."""
        options = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "original_length"}
        given = {k: v for k, v in options.items() if v is not None}
        return {"rope_type": "yarn", **given, "original_max_position_embeddings": self.original_length}


@dataclass(frozen=True)
class Llama3(Scaling):
    """Pairs that turn more than `high_freq_factor` times within L stay, those below `low_freq_factor` are stretched;
    between them the blend is linear in the number of turns."""

    kind: ClassVar[str] = "llama3"
    original_length: int
    low_freq_factor: float = 1.0
    high_freq_factor: float = 4.0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_length(self.original_length)
        if not self.high_freq_factor > self.low_freq_factor > 0:
            raise BadValue(
                "high_freq_factor must exceed low_freq_factor, both above 0; got "
                f"{self.high_freq_factor} and {self.low_freq_factor}"
            )

    def frequencies(self, base: float, d: int) -> list[float]:
        """theta where it is fast, theta / s where it is slow."""
        low, high = self.low_freq_factor, self.high_freq_factor
        out = []
        for theta in plain_frequencies(base, d):
            turns = self.original_length * theta / (2 * math.pi)
            kept = min(max((turns - low) / (high - low), 0.0), 1.0)
            out.append((1 - kept) * theta / self.factor + kept * theta)
        return out

    def to_hf(self) -> dict[str, Any]:
        """rope_type "llama3"."""
        return {
            "rope_type": "llama3",
            "factor": self.factor,
            "low_freq_factor": self.low_freq_factor,
            "high_freq_factor": self.high_freq_factor,
            "original_max_position_embeddings": self.original_length,
        }


@dataclass(frozen=True)
class DynamicNTK(Scaling):
    """As trained up to the trained length; past it an NTK base for the present length l: s = f l / L - (f - 1), as in
    Hugging Face's library.

    freeze   a length whose table is used for every text: no text is read twice, and none is read as it was trained
    """

    kind: ClassVar[str] = "dynamic"
    original_length: int
    freeze: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_length(self.original_length)
        if self.freeze is not None:
            check_length(self.freeze)

    def frequencies(self, base: float, d: int) -> list[float]:
        """Those of `factor` times the trained length, or of the frozen one."""
        length = round(self.factor * self.original_length) if self.freeze is None else self.freeze
        return self._at(torch.tensor(length, device="cpu"), base, d).tolist()

    def regime(self, length: Int) -> Int | None:
        """The length itself, past the trained one."""
        return None if self.freeze is not None else length.clamp(min=self.original_length)

    def frequencies_at(self, length: Int, base: float, d: int) -> Float | None:
        """Those of each length."""
        return None if self.freeze is not None else self._at(length, base, d)

    def _at(self, length: Int, base: float, d: int) -> Float:
        if d < 4:
            raise BadValue(f"dynamic ntk keeps the fastest pair and stretches the others; width {d} has no others")
        L = self.original_length
        s = self.factor * length.clamp(min=L).double() / L - (self.factor - 1)
        exponent = torch.arange(0, d, 2, dtype=torch.float64, device=length.device) / d
        return (base * s ** (d / (d - 2))).unsqueeze(-1) ** -exponent

    def to_hf(self) -> dict[str, Any]:
        """rope_type "dynamic"."""
        return {
            "rope_type": "dynamic",
            "factor": self.factor,
            "original_max_position_embeddings": self.original_length,
        }


@dataclass(frozen=True)
class LongRoPE(Scaling):
    """Searched factors for every pair: `short_factor` for texts up to the trained length, `long_factor` past it.

    factor            the longest text over the trained length, from which the magnitude is sqrt(1 + ln s / ln L)
    attention_factor  the magnitude, where it is another
    """

    kind: ClassVar[str] = "longrope"
    original_length: int
    short_factor: tuple[float, ...]
    long_factor: tuple[float, ...]
    attention_factor: float | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_length(self.original_length)
        for name in ("short_factor", "long_factor"):
            factors = tuple(float(x) for x in getattr(self, name))
            object.__setattr__(self, name, factors)
            if not factors or not all(math.isfinite(x) and x > 0 for x in factors):
                raise BadValue(f"{name} lists a number above 0 for every pair; got {getattr(self, name)!r}")

    def frequencies(self, base: float, d: int) -> list[float]:
        """Those past the trained length."""
        return self._divide(base, d, self.long_factor)

    def _divide(self, base: float, d: int, factors: tuple[float, ...]) -> list[float]:
        if len(factors) != d // 2:
            raise BadValue(f"longrope has {len(factors)} factors, but a width of {d} has {d // 2} pairs")
        return [theta / factor for theta, factor in zip(plain_frequencies(base, d), factors, strict=True)]

    def regime(self, length: Int) -> Int | None:
        """0 up to the trained length, 1 past it."""
        return (length > self.original_length).long()

    def frequencies_at(self, length: Int, base: float, d: int) -> Float | None:
        """One list or the other."""
        short, long = (
            torch.tensor(self._divide(base, d, factors), dtype=torch.float64, device=length.device)
            for factors in (self.short_factor, self.long_factor)
        )
        return torch.where((length > self.original_length).unsqueeze(-1), long, short)

    @property
    def magnitude(self) -> float:
        """sqrt(1 + ln s / ln L), unless the settings say otherwise."""
        if self.attention_factor is not None:
            return self.attention_factor
        return math.sqrt(1 + math.log(self.factor) / math.log(self.original_length)) if self.factor > 1 else 1.0

    def to_dict(self) -> dict[str, Any]:
        """As plain data."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in super().to_dict().items()}

    def to_hf(self) -> dict[str, Any]:
        """rope_type "longrope"."""
        given = {} if self.attention_factor is None else {"attention_factor": self.attention_factor}
        return {
            "rope_type": "longrope",
            "factor": self.factor,
            "short_factor": list(self.short_factor),
            "long_factor": list(self.long_factor),
            "original_max_position_embeddings": self.original_length,
            **given,
        }


@dataclass(frozen=True)
class Proportional(Scaling):
    """The fastest pairs turn, the slow ones stand still and see no position (p-RoPE; a model is trained with it).

    fraction   share of the pairs that turn, p, with the frequencies that they have in the whole head; a `rotary_dim`
               of RoPE turns as many channels, at the frequencies of a narrower head
    """

    kind: ClassVar[str] = "proportional"
    factor: float = 1.0
    fraction: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.fraction <= 1:
            raise BadValue(f"fraction is the share of pairs that turn, above 0 and at most 1; got {self.fraction}")

    def frequencies(self, base: float, d: int) -> list[float]:
        """theta / s, then zeros."""
        n = int(self.fraction * d // 2)
        if n == 0:
            raise BadValue(f"of {d // 2} pairs a fraction of {self.fraction} is none: give more, or position 'none'")
        return [theta / self.factor if i < n else 0.0 for i, theta in enumerate(plain_frequencies(base, d))]

    def to_hf(self) -> dict[str, Any]:
        """rope_type "proportional"."""
        stretched = {} if self.factor == 1 else {"factor": self.factor}
        return {"rope_type": "proportional", "partial_rotary_factor": self.fraction, **stretched}


SCALINGS: dict[str, type[Scaling]] = {
    cls.kind: cls for cls in (Linear, NTK, YaRN, Llama3, DynamicNTK, LongRoPE, Proportional)
}


def scaling(settings: Scaling | Mapping[str, Any]) -> Scaling:
    """The object for its plain data, {"kind": "yarn", "factor": 4.0, "original_length": 4096}."""
    if isinstance(settings, Scaling):
        return settings
    if not isinstance(settings, Mapping) or "kind" not in settings:
        raise BadValue(f"a context scaling is given as {{'kind': 'linear', 'factor': 2.0}}; got {short_repr(settings)}")
    if not isinstance(settings["kind"], str) or settings["kind"] not in SCALINGS:
        raise unknown("context scaling", str(settings["kind"]), SCALINGS)
    cls, options = SCALINGS[settings["kind"]], {k: v for k, v in settings.items() if k != "kind"}
    known = [f.name for f in fields(cls)]
    for option in options:
        if option not in known:
            raise unknown(f"setting of {cls.kind} scaling", option, known)
    try:
        return cls(**options)
    except (TypeError, OverflowError) as error:
        raise BadValue(f"{cls.kind} scaling takes {', '.join(known)}; got {short_repr(settings)}") from error


def scaling_hint(kind: str) -> str:
    """How a scaling is asked for by somebody who took it for an encoding."""
    example = {"factor": 4.0, "original_length": 4096, "short_factor": [1.0], "long_factor": [4.0], "fraction": 0.25}
    needed = [f.name for f in fields(SCALINGS[kind]) if f.default is MISSING or f.name == "fraction"]
    settings = {"kind": kind, **{name: example[name] for name in needed}}
    return f"it scales the context of rope: gn.positions.get('rope', scaling={settings})"


def plain_frequencies(base: float, d: int) -> list[float]:
    """theta_i = base^(-2i/d) of the d / 2 pairs."""
    return [base ** (-2 * i / d) for i in range(d // 2)]


def check_length(length: int) -> None:
    """Raise BadValue for a trained length that cannot be."""
    if length < 1:
        raise BadValue(f"original_length is the trained length in tokens, at least 1; got {length}")


__all__ = [
    "NTK",
    "SCALINGS",
    "DynamicNTK",
    "Linear",
    "Llama3",
    "LongRoPE",
    "Proportional",
    "Scaling",
    "YaRN",
    "plain_frequencies",
    "scaling",
]
