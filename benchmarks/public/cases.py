"""Public implementations, each with the few lines that its user would write to have it audited.

A case is a function that returns what is handed to `gn.audit`. It runs in a process of its own, below its repository's
folder in sys.path, since many of them call their modules alike.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

import torch

VOCAB, PAD, D, HEADS, LAYERS = 31, 0, 32, 4, 2
SPECIAL = frozenset({PAD})  #: ids that laws are not to draw: padding hides itself in most encoder-decoders


@dataclass(frozen=True)
class Case:
    """One model of one repository.

    repository  owner/name at GitHub, and its folder
    name        which model of it
    make        what is audited
    below       folders of it where its modules lie
    stubs       modules it imports and the model does not need
    """

    repository: str
    name: str
    make: Callable[[], Any]
    below: tuple[str, ...] = ("",)
    stubs: tuple[str, ...] = ()

    def made(self, folder: Path) -> Any:
        """The target, its modules imported from the checkout in `folder`."""
        home = folder / self.repository
        if not home.is_dir():
            raise FileNotFoundError(home)
        sys.path[:0] = [str(home / part) for part in self.below]
        for stub in self.stubs:
            sys.modules.setdefault(stub, stub_of(stub))
        torch.manual_seed(0)
        return self.make()


def stub_of(name: str) -> Any:
    """A module in name only."""
    stub = MagicMock(name=name)
    stub.__spec__ = ModuleSpec(name, None)
    return stub


CASES: list[Case] = []
Make = Callable[[], Any]


def case(
    repository: str, name: str, below: tuple[str, ...] = ("",), stubs: tuple[str, ...] = ()
) -> Callable[[Make], Make]:
    """Enter a function into CASES."""

    def enter(make: Make) -> Make:
        CASES.append(Case(repository, name, make, below, stubs))
        return make

    return enter


def byte_masks() -> None:
    """Masks may be of uint8, as in the torch of their time."""
    for name in ("masked_fill", "masked_fill_"):
        fill = getattr(torch.Tensor, name)
        setattr(torch.Tensor, name, lambda x, mask, value, fill=fill: fill(x, mask.bool(), value))
    either = torch.Tensor.__or__
    torch.Tensor.__or__ = lambda a, b: either(a.bool(), b.bool()) if torch.uint8 in (a.dtype, b.dtype) else either(a, b)


def home_of(repository: str) -> Path:
    """The checkout that is being audited."""
    return next(Path(path) for path in sys.path if path.rstrip("/").endswith(repository))


__all__ = ["CASES", "Case", "byte_masks", "case", "home_of", "stub_of"]
