"""Somebody's attention, read from outside: what its heads make of queries, keys and values that are handed to them.

Nobody says where a model keeps its queries, keys and values, so that is seen from the calls in the first block: three
nn.Linear that are given the same tensor (or one that is three times as wide), and the next one, which puts the heads
together. A reading is believed when values that are all 1 come out as all 1. Queries, keys and values are then drawn,
so that weights do not matter, and what the heads make of them is read before it is put together.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import torch
from torch import nn

from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float, Int

TOKENS = 4
Hook = Callable[[nn.Module, tuple[Any, ...], Any], Any]

# ---------------------------------------------------------------------- what is called in a block


@dataclass(frozen=True)
class Call:
    """A call of a part without parts, in the first block: what it was given and gave (B, T, ..)."""

    module: nn.Module
    given: Float
    gave: Float


def record_calls(t: Target, block: nn.Module, ids: Int) -> list[Call]:
    """The calls in this block, in their order."""
    calls: list[Call] = []

    def note(module: nn.Module, args: tuple[Any, ...], out: Any) -> None:
        if args and all(isinstance(x, torch.Tensor) and x.shape[:2] == ids.shape for x in (args[0], out)):
            calls.append(Call(module, args[0].detach(), out.detach()))

    leaves = [m for m in block.modules() if next(m.children(), None) is None]
    with install_hooks(dict.fromkeys(leaves, note)):
        t.logits(ids)
    return calls


@contextmanager
def install_hooks(hooks: dict[nn.Module, Hook]) -> Iterator[None]:
    """Forward hooks, while a `with` lasts."""
    with ExitStack() as stack:
        for module, hook in hooks.items():
            stack.callback(module.register_forward_hook(hook).remove)
        yield


def is_linear(t: Target, source: nn.Module, sink: nn.Module, ids: Int) -> bool:
    """Whether what `sink` is given is linear in what `source` gives: FNet's tokens meet so, attention's do not."""

    def given(size: float) -> Float:
        got: list[Float] = []

        def replace(_: nn.Module, __: tuple[Any, ...], out: Float) -> Float:
            return size * torch.randn(out.shape, generator=t.rng(1)).to(out)

        handle = sink.register_forward_pre_hook(lambda _, args: got.append(args[0].detach()))
        try:
            with install_hooks({source: replace}):
                t.logits(ids)
        finally:
            handle.remove()
        return got[0]

    zero, one, two = given(0.0), given(1.0), given(2.0)
    return torch.allclose(two - zero, 2 * (one - zero), rtol=1e-3, atol=1e-3 * float((one - zero).abs().amax()))


# ---------------------------------------------------------------------- one attention, read


class _Read(Exception):
    """What the heads made is known: nothing after it matters."""


@dataclass(frozen=True)
class AttentionProbe:
    """Heads by themselves: called with q, k, v (B, T, D) it gives what they make of them, before W_o.

    parts  the modules that give q, k, v, or the one that gives all
    out    the module W_o
    """

    target: Target
    parts: tuple[nn.Module, ...]
    out: nn.Module
    width: int

    def __call__(self, q: Float, k: Float, v: Float) -> Float:
        """(B, T, D) each -> (B, T, D)."""
        ids = self.target.ids(1, q.shape[1]).expand(len(q), -1)
        got: list[Float] = []

        def stop(_: nn.Module, args: tuple[Any, ...]) -> None:
            got.append(args[0].detach())
            raise _Read

        given = [torch.cat([q, k, v], -1)] if len(self.parts) == 1 else [q, k, v]
        handle = self.out.register_forward_pre_hook(stop)
        try:
            with install_hooks({part: _return_instead(x) for part, x in zip(self.parts, given, strict=True)}):
                self.target.logits(ids)
        except _Read:
            pass
        except Exception as odd:  # of a model that was given what its own matrices never give
            raise NotApplicable(f"the heads of {self.target.name} cannot be asked alone: {odd}") from odd
        finally:
            handle.remove()
        if not got:
            raise NotApplicable(f"the heads of {self.target.name} cannot be asked alone")
        return got[0]

    def is_believable(self) -> bool:
        """Whether values of 1 everywhere come out as 1 everywhere, and others do not."""
        q, k = (torch.randn(1, TOKENS, self.width, generator=self.target.rng(s)) for s in (1, 2))
        ones = torch.ones(1, TOKENS, self.width)
        q, k, ones = (x.to(self.target.device, self.target.dtype) for x in (q, k, ones))
        out, twice = self(q, k, ones), self(q, k, 2 * ones)
        slack = 64 * torch.finfo(self.target.dtype).eps
        return out.shape == ones.shape and bool(((out - 1).abs() <= slack).all() & ((twice - 2).abs() <= slack).all())

    def weights(self, q: Float, k: Float) -> Float:
        """What each channel's head weighs tokens by: q, k (B, T, D) -> (B, T, S, D), from values that are 1 at one
        token and 0 at the others."""
        one_token = torch.eye(TOKENS).to(q)[:, :, None].expand(-1, -1, self.width)
        return torch.stack([self(q, k, v.expand_as(q)) for v in one_token], 2)

    def head_width(self) -> int:
        """C, from channels that are weighed alike. Raise NotApplicable unless heads are slices of one width."""
        q, k = (torch.randn(1, TOKENS, self.width, generator=self.target.rng(s)).to(self.target.device) for s in (1, 2))
        seen = self.weights(q.to(self.target.dtype), k.to(self.target.dtype))[0].float()
        edges = [c + 1 for c in range(self.width - 1) if (seen[..., c] - seen[..., c + 1]).abs().amax() > 1e-3]
        widths = {b - a for a, b in pairwise([0, *edges, self.width])}
        if len(widths) != 1:
            raise NotApplicable(f"heads of {self.target.name} are not slices of one width")
        return widths.pop()

    def must_have_no_biases(self, C: int) -> None:
        """Raise NotApplicable if heads differ without any query, as under ALiBi and T5's biases."""
        nothing = torch.zeros(1, TOKENS, self.width).to(self.target.device, self.target.dtype)
        seen = self.weights(nothing, nothing)[0, ..., ::C]
        # no coarser than the law itself: a bias of half a per mille is already more than it tolerates
        if bool((seen - seen[..., :1]).abs().amax() > 64 * torch.finfo(self.target.dtype).eps):
            raise NotApplicable(f"each head of {self.target.name} has a bias of its own")

    def is_turned_across_heads(self, C: int) -> bool:
        """Whether queries are rotated over the whole width."""
        return turns_across_heads(self.turns(), C, self.spills())

    def spills(self) -> bool:
        """Whether a query of the first channel alone meets a key of channel D/2 alone, in another head."""
        q = torch.zeros(1, TOKENS, self.width).to(self.target.device, self.target.dtype)
        k = torch.zeros_like(q)
        q[..., 0], k[:, 0, self.width // 2] = 4, 4
        seen = self.weights(q, k)[0, 1]  # (S, D) of the query at position 1
        return bool((seen[0] - seen[1]).abs().amax() > 1e-3)

    def turns(self) -> Float:
        """(D): the cosine of what each channel of a query is turned by from position 0 to 1. Query and key are one
        channel wide, the key is at position 0 alone; scores at 1 and 2 are a cos(x) and a cos(2 x)."""
        D = self.width
        q = torch.eye(D)[:, None].expand(-1, TOKENS, -1) * 4
        k = torch.zeros(D, TOKENS, D)
        k[:, 0] = torch.eye(D) * 4
        q, k = (x.to(self.target.device, self.target.dtype) for x in (q, k))
        seen = self.weights(q, k).double().diagonal(dim1=0, dim2=3)  # (T, S, D): of each channel the head it is in
        score = (seen[1:3, 0].clamp(min=1e-9) / seen[1:3, 1].clamp(min=1e-9)).log()
        size = (-score[1] + (score[1] ** 2 + 8 * score[0] ** 2).sqrt()) / 2
        return score[0] / size.clamp(min=1e-9)


def turns_across_heads(cosines: Float, C: int, spills: bool) -> bool:
    """Whether pairs of channels were made over the whole width D, from what each of its D channels is turned by.

    Frequencies then fall over D rather than start anew in each head. Pairs (i, i + D/2) also take a query from one
    head to another, which is said by `spills`.
    """
    D = len(cosines)
    heads = cosines.view(-1, C)
    differ = bool(((heads - heads[0]).abs() > 1e-3).any())
    return (spills and _fall(cosines.view(2, D // 2).T)) or (differ and _fall(cosines.view(D // 2, 2)))


def _fall(pairs: Float) -> bool:
    """Whether both channels of each pair turn alike, and no pair faster than the one before it."""
    alike = bool(((pairs[:, 0] - pairs[:, 1]).abs() <= 1e-3).all())
    return alike and bool((pairs[:, 0].diff() >= -1e-3).all())


def _return_instead(x: Float) -> Hook:
    return lambda _, __, ___: x


def find_attention(t: Target) -> AttentionProbe:
    """The attention of the first block. Raise NotApplicable unless it is sure where q, k, v and W_o are."""
    if torch.finfo(t.dtype).eps > 1e-5:
        raise NotApplicable(f"{t.name} computes in {t.dtype}, too coarse to tell heads apart")
    calls = [c for c in record_calls(t, t.blocks()[0], t.ids(1, TOKENS)) if isinstance(c.module, nn.Linear)]
    for found in _candidates(t, calls):
        if found.is_believable():
            return found
    raise NotApplicable(f"{t.name} does not show which of its matrices make queries, keys and values")


def _candidates(t: Target, calls: list[Call]) -> Iterator[AttentionProbe]:
    """Three calls with one input and one width, or one three times as wide, and the next call. Nothing else may be
    given that input before it: a gate beside q, k and v may be as wide as they are."""
    for i in range(len(calls) - 1):
        width = calls[i].gave.shape[-1]
        if width % 3 == 0 and calls[i + 1].given.shape[-1] == width // 3 and _count_alike(calls, i, i + 1) == 1:
            yield AttentionProbe(t, (calls[i].module,), calls[i + 1].module, width // 3)
        three = calls[i : i + 3]
        alike = i + 3 < len(calls) and all(torch.equal(c.given, three[0].given) for c in three)
        one_width = alike and {c.gave.shape[-1] for c in three} == {calls[i + 3].given.shape[-1]}
        if one_width and _count_alike(calls, i, i + 3) == 3:
            # any two of them may be query and key; which one gives values is seen by what comes out
            for order in ((0, 1, 2), (1, 2, 0), (0, 2, 1)):
                yield AttentionProbe(t, tuple(three[j].module for j in order), calls[i + 3].module, width)


def _count_alike(calls: list[Call], i: int, end: int) -> int:
    """How many calls before `end` were given what call i was given."""
    return sum(torch.equal(call.given, calls[i].given) for call in calls[:end])


__all__ = ["TOKENS", "AttentionProbe", "Call", "find_attention", "is_linear", "record_calls", "turns_across_heads"]
