"""A choice of an encoding, which a model builds: a class and its options."""

import inspect
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Self

import torch
from torch import nn

from gnomon.data import Tokenizer
from gnomon.errors import BadValue
from gnomon.positions.base import PositionEncoding, facts
from gnomon.positions.hooks import Acts
from gnomon.positions.ids import PositionIds
from gnomon.positions.sizes import check_numbers
from gnomon.show import card


@dataclass(frozen=True)
class Spec:
    """An encoding chosen but not yet built: a class, its options, and a recipe for the positions that it reads, if any.
    Two equal specs are the same choice."""

    cls: type[PositionEncoding]
    options: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    positions: PositionIds | None = None

    def __post_init__(self) -> None:
        """Raise BadValue for numbers with which no encoding can compute."""
        check_numbers(self.name, self.options)

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied and pickled (and with it a model): a read-only mapping cannot be."""
        return _spec, (self.cls, dict(self.options), self.positions)

    @property
    def name(self) -> str:
        """The name it was chosen by."""
        return self.cls.name

    @property
    def acts(self) -> Acts:
        """Where it acts: nowhere, input, rotation, score or attention."""
        return self.cls.acts

    def takes(self, option: str) -> bool:
        """Whether its class has this option."""
        return option in parameters_of(self.cls)

    def build(self, **sizes: Any) -> PositionEncoding:
        """Build the module. `sizes` are the model's (d_model, d_head, n_heads, n_layers, causal ...): the class
        takes those its constructor names, options given by hand win. Random parameters come from a stream of their
        own, so that the rest of a model starts with the same weights under every encoding."""
        wanted = parameters_of(self.cls)
        missing = [
            p
            for p, default in wanted.items()
            if default is inspect.Parameter.empty and p not in {**sizes, **self.options}
        ]
        if missing:
            raise BadValue(f"{self.name} needs {', '.join(missing)}; got {', '.join(sorted(sizes)) or 'nothing'}")
        check_numbers(self.name, sizes)
        try:
            return self._built(wanted, sizes)
        except BadValue:
            raise
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:  # what torch and Python say of it
            raise BadValue(f"{self!r} cannot be built: {error}") from error

    def _built(self, wanted: Mapping[str, Any], sizes: Mapping[str, Any]) -> PositionEncoding:
        with forked_rng():
            return self.cls(**{**{k: v for k, v in sizes.items() if k in wanted}, **self.options})

    def fitted(self, tokenizer: Tokenizer) -> Self:
        """The same choice, its recipe for positions fitted to a vocabulary."""
        return self if self.positions is None else replace(self, positions=self.positions.fitted(tokenizer))

    def with_options(self, **options: Any) -> Self:
        """The same choice with options added, those already given by hand kept."""
        known = parameters_of(self.cls)
        more = {k: v for k, v in options.items() if k in known}
        return replace(self, options=MappingProxyType({**more, **self.options}))

    def __hash__(self) -> int:
        return hash((self.cls, tuple(sorted((k, repr(v)) for k, v in self.options.items())), self.positions))

    def __repr__(self) -> str:
        recipe = {} if self.positions is None else {"positions": str(self.positions)}
        return f"{self.name}({', '.join(f'{k}={v!r}' for k, v in {**self.options, **recipe}.items())})"

    def _repr_html_(self) -> str:
        return card(repr(self), facts(self.cls))

    def to_dict(self) -> dict[str, Any]:
        """As plain data for config.json; `get(**data)` brings it back."""
        recipe = {} if self.positions is None else {"positions": self.positions.to_dict()}
        return {"name": self.name, **self.options, **recipe}


def _spec(cls: type[PositionEncoding], options: dict[str, Any], positions: PositionIds | None = None) -> Spec:
    """A Spec from a plain dict of options."""
    return Spec(cls, MappingProxyType(options), positions)


@contextmanager
def forked_rng() -> Iterator[None]:
    """Draw from a stream derived from torch's seed, leaving torch's own where it was.

    torch.manual_seed would also keep this seed for devices that are not in use yet, in place of the user's.
    """
    devices = range(torch.cuda.device_count()) if torch.cuda.is_available() and torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices=devices):
        seed = (torch.initial_seed() + 0x6E6F6D) % 2**63
        torch.default_generator.manual_seed(seed)
        if devices:
            torch.cuda.manual_seed_all(seed)
        yield


def parameters_of(cls: type[PositionEncoding]) -> dict[str, Any]:
    """The constructor's parameters and their defaults; none for a class that has no constructor of its own."""
    if cls.__init__ is nn.Module.__init__:
        return {}
    return {p.name: p.default for p in list(inspect.signature(cls.__init__).parameters.values())[1:]}


__all__ = ["Spec", "forked_rng", "parameters_of"]
