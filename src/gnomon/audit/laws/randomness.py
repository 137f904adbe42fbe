"""Why two like calls in evaluation mode differ: what is drawn, and where, and what is kept."""

from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_pre_hook, register_module_parameter_registration_hook
from torch.overrides import TorchFunctionMode

from gnomon.audit.laws.embedding import track_module
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Int

SEED = 20
FILLS = {"uniform_", "normal_", "trunc_normal_", "kaiming_uniform_", "xavier_uniform_"}  #: what layers are filled by


def explain_randomness(t: Target, ids: Int) -> str:
    """The reason, each as it was seen: with the same random numbers calls are alike unless something is kept."""
    torch.manual_seed(SEED)
    first = t.logits(ids)
    torch.manual_seed(SEED)
    if not torch.equal(first, t.logits(ids)):
        return _explain_state(t, ids)
    drawn, layers, strangers = _watch_call(t, ids)
    others = [draw for draw in drawn if not (layers and draw[0] in FILLS)]
    drops = [where for function, where in others if function == "dropout"]
    rest = [draw for draw in others if draw[0] != "dropout"]
    said = []
    if layers:
        said.append(f"forward makes new layers ({layers[0]}) and draws their weights: make them in __init__")
    if drops:
        said.append(
            f"dropout acts in {drops[0]} although the model is in evaluation mode: "
            f"{_explain_active_dropout(t, drops[0], strangers)}"
        )
    if rest and not drops:
        said.append(f"random numbers are drawn in evaluation mode: {rest[0][0]} in {rest[0][1]}")
    return "; ".join(said)


def _watch_call(t: Target, ids: Int) -> tuple[list[tuple[str, str]], list[str], bool]:
    """Of one call: what is drawn and in which module, classes of the layers that are made, and whether a Dropout is
    called that is no part of the model."""
    known = {id(m) for m in t.module.modules()} if "module" in t.can else set()
    strangers: list[bool] = []

    def look(module: nn.Module, _: object) -> None:
        strangers.append(isinstance(module, nn.Dropout) and id(module) not in known)

    handle = register_module_forward_pre_hook(look)
    try:
        with Drawn() as drawn, record_new_layers() as layers, track_module(t.module, drawn) if known else nullcontext():
            t.logits(ids)
    finally:
        handle.remove()
    return drawn.seen, layers, any(strangers)


def _explain_active_dropout(t: Target, where: str, stranger: bool) -> str:
    """Why a dropout acts there."""
    if stranger:
        return "a Dropout that is made in forward is in training mode for ever"
    if "module" in t.can and isinstance(dict(t.module.named_modules()).get(where), nn.Dropout):
        return "this part of it is in training mode"
    return "F.dropout needs training=self.training"


def _explain_state(t: Target, ids: Int) -> str:
    """What makes calls differ that draw the same numbers."""
    try:
        copies = [t.copy(), t.copy()]
    except NotApplicable:
        return ""
    outs = []
    for copied in copies:
        torch.manual_seed(SEED)
        outs.append(copied.logits(ids))
    if torch.equal(*outs):
        return "nothing is drawn, and calls differ all the same: the model keeps something from one call to the next"
    return "with the same random numbers fresh copies differ, too: memory is read that was never filled (torch.empty)"


class Drawn(TorchFunctionMode):
    """While a `with` lasts: functions that took random numbers, each with the module that called it."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, str]] = []
        self.inside: list[str] = []  #: names of the modules being called, the innermost last

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function, and note it if the generator moved."""
        before = torch.get_rng_state()
        out = func(*args, **(kwargs or {}))
        if not torch.equal(before, torch.get_rng_state()):
            name = "dropout" if func is F.dropout else getattr(func, "__name__", str(func))
            self.seen.append((name, self.inside[-1] if self.inside else "the model"))
        return out


@contextmanager
def record_new_layers() -> Iterator[list[str]]:
    """While a `with` lasts: classes of layers that were made, one entry a parameter."""
    seen: list[str] = []

    def note(module: nn.Module, _: str, __: object) -> None:
        seen.append(type(module).__name__)

    handle = register_module_parameter_registration_hook(note)
    try:
        yield seen
    finally:
        handle.remove()


__all__ = ["Drawn", "explain_randomness", "record_new_layers"]
