"""What a model hides: the vectors of some tokens are stirred as they leave their table, and nothing else may move."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from gnomon.shapes import Bool, Float, Int

MANY = 64  #: ids that are tried
TEXT, SLOT = 4, 1  #: tokens of a text, and which of them is stirred


@contextmanager
def perturb(
    tables: list[nn.Module], ids: Int, where: Bool, rng: torch.Generator, real: Bool | None = None
) -> Iterator[list[bool]]:
    """While a `with` lasts, vectors (B, T, D) that a table gives for these ids (B, T) are drawn anew where `where`
    (B, T) is True; whether one of the tables was given them is entered into the list. Ids that are not `real`, by
    default those that are stirred, may have been replaced by a padding id."""
    met: list[bool] = []
    real = ~where if real is None else real

    def hook(_: nn.Module, args: tuple[Any, ...], out: Any) -> Any:
        given = args[0] if args else None
        if not isinstance(given, torch.Tensor) or given.shape != ids.shape or not isinstance(out, torch.Tensor):
            return None
        if given.is_floating_point() or not torch.equal(given[real], ids[real]):
            return None
        met.append(True)
        noise = torch.randn(out.shape, generator=rng).to(out) * out.detach().abs().amax().clamp(min=1e-3)
        return torch.where(where[..., None], noise, out)

    handles = [table.register_forward_hook(hook) for table in tables]
    try:
        yield met
    finally:
        for handle in handles:
            handle.remove()


def vector_tables(module: nn.Module) -> list[nn.Module]:
    """Its tables of vectors."""
    return [part for part in module.modules() if isinstance(part, nn.Embedding)]


@torch.no_grad()
def tables_given(ask: Callable[[Int], Float], module: nn.Module, ids: Int) -> list[nn.Embedding]:
    """Those of a module's tables that are given these ids (B, T)."""
    found: list[nn.Embedding] = []
    nobody, rng = torch.zeros_like(ids, dtype=torch.bool), torch.Generator()
    for table in module.modules():
        if isinstance(table, nn.Embedding):
            with perturb([table], ids, nobody, rng) as met:
                ask(ids)
            found += [table] if met else []
    return found


def changed_tokens(before: Float, after: Float) -> Bool:
    """Which tokens' logits (B, T, V) differ by more than roundings: (B, T)."""
    slack = 1e3 * torch.finfo(before.dtype).eps * before.abs().amax()
    return (after - before).abs().amax(-1).nan_to_num(nan=1e9) > slack


@torch.no_grad()
def find_self_hiding_ids(
    ask: Callable[[Int], Float], module: nn.Module, vocab: int, device: torch.device, all_see: bool
) -> frozenset[int]:
    """Ids, of the first ones, whose tokens nobody else sees, as padding hides itself; none where it cannot be told.

    ask      ids (B, 4) -> logits (B, T, V), of these or, for a source, of another text
    all_see  whether every token of that other text might see them, rather than those behind them
    """
    tables, known = vector_tables(module), torch.arange(min(vocab, MANY), device=device)
    if vocab < TEXT + 2 or not tables:
        return frozenset()
    ids = (torch.arange(TEXT, device=device) + vocab - TEXT).expand(len(known), -1).clone()
    ids[:, SLOT] = known
    where = torch.zeros_like(ids, dtype=torch.bool)
    where[:, SLOT] = True
    try:
        before = ask(ids)
        with perturb(tables, ids, where, torch.Generator().manual_seed(0)) as met:
            after = ask(ids)
    except Exception:  # whatever a model raises at such a text
        return frozenset()
    if not met or not bool(before.isfinite().all()):
        return frozenset()
    others = changed_tokens(before, after)
    seen = others.any(1) if all_see else others[:, SLOT + 1 :].any(1)
    hidden = frozenset(known[~seen].tolist())
    return hidden if len(hidden) <= 3 < len(known) - len(hidden) else frozenset()


__all__ = ["changed_tokens", "find_self_hiding_ids", "perturb", "tables_given", "vector_tables"]
