"""Laws of the input layer: the scale counts once, padding is not trained, dropout acts once."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from gnomon.audit.law import Evidence, law
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int


@law(
    "the scale counts once",
    source="Vaswani et al. 2017, section 3.4: token vectors are multiplied by sqrt(d_model)",
    hint="multiply token vectors by sqrt(d_model) in one place",
    shrinks=False,
)
def scale_counts_once(t: Target, n: int) -> Evidence:
    """Tokens differ by s (E[a] - E[b]) where the first block reads them; s is 1, sqrt(D) or what was promised."""
    tokens, came = distances_of_pairs(t)
    s = float((tokens * came).sum() / (tokens * tokens).sum().clamp(min=1e-30))
    slack = max(2.0**-7, 64 * torch.finfo(t.dtype).eps)  # sqrt(D) rounded to bfloat16 is still sqrt(D)
    if not (came - s * tokens).norm() <= slack * came.norm():
        raise NotApplicable(f"{t.name} does more than multiply between its table and its first block, a norm perhaps")

    def is_near(scale: float) -> bool:
        return abs(s - scale) <= slack * abs(scale)

    root = t.promises_scale or math.sqrt(tokens.shape[-1])
    meant = [1.0, root] if t.promises_scale is None else [root]
    if not is_near(root**2) and t.promises_scale is None and not any(map(is_near, meant)):
        raise NotApplicable(f"token vectors of {t.name} are multiplied by {s:.4g}; nothing says what was meant")
    want = next(filter(is_near, meant), root)
    cause = f"token vectors are multiplied by {s:.4g}, not by {want:.4g}"
    if is_near(root**2):
        cause = f"scaled twice: token vectors are multiplied by {s:.4g}, which is {root:.4g} times {root:.4g}"
    return Evidence(torch.tensor(s), torch.tensor(want), tolerance=slack * abs(want), cause=cause)


def distances_of_pairs(t: Target) -> tuple[Float, Float]:
    """Of pairs of tokens in one place: how far apart their rows are, and what the first block is given (pairs, D)."""
    table = t.embedding().weight
    ids = t.ids(1, 4).expand(6, -1).clone()
    ids[:, 2] = t.ids(6, 1, stream=5)[:, 0]
    came = first_block_input(t, ids)[:, 2].detach().double()
    if not isinstance(table, torch.Tensor) or came.shape[-1] != table.shape[-1]:
        raise NotApplicable(f"vectors of {t.name} have another width when they reach its blocks")
    rows = table.detach()[ids[:, 2]].double()
    return rows[1:] - rows[0], came[1:] - came[0]


@law(
    "padding is not trained",
    "module",
    source="pytorch/pytorch#6411: padding_idx of nn.Embedding",
    hint="look token vectors up by calling the nn.Embedding: weight[ids] knows nothing of its padding_idx",
    shrinks=False,
)
def padding_is_not_trained(t: Target, n: int) -> Evidence:
    """Looking the padding token up sends no gradient into its row."""
    at = t.embedding()
    if not isinstance(at, nn.Embedding) or at.padding_idx is None:
        raise NotApplicable(f"{t.name} has no nn.Embedding with a padding_idx")
    if not at.weight.requires_grad:
        raise NotApplicable(f"the table of {t.name} is not trained")
    ids = t.ids(1, 4)
    ids[:, -1] = at.padding_idx
    with torch.enable_grad():
        x = first_block_input(t, ids)
        (grad,) = torch.autograd.grad((x * torch.randn_like(x)).sum(), at.weight)
    plain = F.embedding(ids, at.weight.detach())
    return Evidence(grad[at.padding_idx], torch.zeros_like(grad[0]), plain[0, 0], ids, tolerance=0.0)


@law(
    "dropout acts once",
    "module",
    source="Srivastava et al. 2014, section 4; a part that ends with dropout, put into one that begins with it",
    hint="drop out in one of the two places, and nowhere in evaluation: dropout_p has to be 0 there",
    shrinks=False,
)
def dropout_acts_once(t: Target, n: int) -> Evidence:
    """In training no dropout is given what another one just dropped; in evaluation none acts."""
    ids = t.ids(1, 4)
    training, evaluating = Dropped(), Dropped()
    try:
        with t.editable() as trained, training, track_module(trained.module, training):
            trained.module.train()
            trained.logits(ids)
    except Exception as raised:  # of a model that is not for training, or takes no hooks
        raise NotApplicable(f"{t.name} cannot be watched in training: {type(raised).__name__}: {raised}") from raised
    with evaluating, track_module(t.module, evaluating):
        t.logits(ids)
    if not training.seen and not evaluating.seen:
        raise NotApplicable(f"{t.name} has no dropout, or has it where it cannot be seen")
    twice, awake = training.twice, evaluating.seen
    causes = [f"dropout twice: {twice[0]}" if twice else "", f"dropout acts in evaluation: {awake[0]}" if awake else ""]
    got = torch.tensor([float(len(twice)), float(len(awake))])
    return Evidence(got, torch.zeros(2), tolerance=0.0, cause="; ".join(c for c in causes if c))


class Dropped(TorchFunctionMode):
    """Watches dropout while a `with` lasts, that of functions too.

    seen   the modules whose dropout acted, one entry a call
    twice  those that were given what another one had just dropped
    """

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.twice: list[str] = []
        self.inside: list[str] = []  #: names of the modules being called, the innermost last
        self._dropped: list[tuple[Float, str]] = []  # kept, so that no other tensor takes their place in memory

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run the function, and note it if it drops out."""
        kwargs = kwargs or {}
        out = func(*args, **kwargs)
        here = self.inside[-1] if self.inside else "the model"
        if func is F.dropout and _is_active(*args, **kwargs):
            given = args[0] if args else kwargs["input"]
            before = next((name for x, name in self._dropped if x is given), None)
            if before is not None:
                self.twice.append(f"{here} is given what {before} has dropped already")
            self.seen.append(here)
            self._dropped.append((out, here))
        if func is F.scaled_dot_product_attention and (args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)) > 0:
            self.seen.append(f"attention in {here}")
        return out


def _is_active(input: Float, p: float = 0.5, training: bool = True, inplace: bool = False) -> bool:
    """Of the arguments of F.dropout."""
    return training and p > 0


class Watch(Protocol):
    """What is told which module is being called: names, the innermost last."""

    inside: list[str]


@contextmanager
def track_module(module: nn.Module, watch: Watch) -> Iterator[None]:
    """Tell a watch which module is being called."""

    def enter(name: str) -> Callable[..., None]:
        return lambda *_: watch.inside.append(name)

    def leave(*_: Any) -> None:
        watch.inside.pop()

    hooks = [
        h
        for name, m in module.named_modules()
        if name
        for h in (m.register_forward_pre_hook(enter(name)), m.register_forward_hook(leave))
    ]
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


class _Reached(Exception):
    """The first block was reached: nothing after it matters."""


def first_block_input(t: Target, ids: Int) -> Float:
    """What the first block is given for these ids: (B, T, D)."""
    got: list[Float] = []

    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        got.extend(x for x in (*args, *kwargs.values()) if isinstance(x, torch.Tensor) and x.dim() == 3)
        raise _Reached

    handle = t.blocks()[0].register_forward_pre_hook(hook, with_kwargs=True)
    try:
        t.logits(ids)
    except _Reached:
        pass
    finally:
        handle.remove()
    if not got or got[0].shape[:2] != ids.shape:
        raise NotApplicable(f"the first block of {t.name} is given no vectors (B, T, D)")
    return got[0]


__all__ = [
    "Dropped",
    "Watch",
    "dropout_acts_once",
    "first_block_input",
    "padding_is_not_trained",
    "scale_counts_once",
    "track_module",
]
