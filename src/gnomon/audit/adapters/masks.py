"""Masks that a forward wants to be given beside its texts: the conventions of tutorials are tried, and one is believed
if under it no token sees those to come, as without it, while those before are seen, and so is the source.

forward(src, trg, src_mask, trg_mask)   forward(ids, mask)
"""

import re
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters.signature import SOURCE, TARGET, kind, required_arguments, tensor_in
from gnomon.shapes import Bool, Float, Int

Shape = Callable[[Bool], Bool]  #: of what is seen (B, T, S), as somebody's attention wants it
SQUARE: tuple[Shape, ...] = (lambda seen: seen[:, None], lambda seen: seen, lambda seen: seen[0])
ROW: tuple[Shape, ...] = (lambda seen: seen[:, None, :1], lambda seen: seen[:, :1], lambda seen: seen[:, 0])
NAMED = re.compile(r"mask", re.IGNORECASE)


def find_mask_convention(module: nn.Module, device: torch.device) -> tuple[Callable[..., Any], bool] | None:
    """How to ask a model whose forward wants masks, as (model, source, ids) or (model, ids), and whether it has a
    source; None where its other arguments are no texts, or no convention makes it causal."""
    wanted = required_arguments(module)
    masks = [name for name in wanted if NAMED.search(name)]
    texts = [name for name in wanted if name not in masks]
    kinds = [kind(name) for name in texts]
    has_source = kinds in (["source", "target"], ["source", "text"], ["text", "target"])
    if not masks or not (has_source or kinds == ["text"]) or any("pad" in name.lower() for name in masks):
        return None
    for asked in _conventions(wanted, texts, masks):
        if _is_obeyed(asked, module, has_source, device):
            return asked, has_source
    return None


def _conventions(wanted: list[str], texts: list[str], masks: list[str]) -> Iterator[Callable[..., Any]]:
    """A way to ask for each shape and polarity of the masks."""
    for hidden, square, row in product((False, True), SQUARE, ROW):

        def asked(
            model: Any, *given: Int, open: bool = False, hidden: bool = hidden, square: Shape = square, row: Shape = row
        ) -> Any:
            named = dict(zip(texts, given, strict=True))
            B, T, S = len(given[0]), given[-1].shape[1], given[0].shape[1]
            ahead = torch.ones(T, T, dtype=torch.bool, device=given[0].device).tril().expand(B, -1, -1)
            ahead = ahead | open
            every = torch.ones(B, T, S, dtype=torch.bool, device=given[0].device)
            for name in masks:
                seen = row(every) if len(texts) > 1 and _is_of_source(name) else square(ahead)
                named[name] = seen ^ hidden
            return model(*(named[name] for name in wanted))

        yield asked


def _is_of_source(name: str) -> bool:
    words = set(re.findall(r"[a-z]+", name.lower()))
    return bool(words & (SOURCE | {"memory"})) and not words & TARGET


@torch.no_grad()
def _is_obeyed(asked: Callable[..., Any], module: nn.Module, has_source: bool, device: torch.device) -> bool:
    """Whether under this convention tokens see what they should and no more."""
    ids, source = (
        torch.tensor(x, device=device) for x in ([[1, 0, 1, 1], [0, 1, 1, 0]], [[0, 1, 1, 0, 1], [1, 1, 0, 1, 0]])
    )
    last, first, other = ids.clone(), ids.clone(), source.clone()
    last[:, -1], first[:, 0], other[:, 0] = 1 - ids[:, -1], 1 - ids[:, 0], 1 - source[:, 0]
    training = module.training

    def ask(text: Int, source: Int, open: bool = False) -> Float:
        found = tensor_in(asked(module.eval(), *([source.clone()] if has_source else []), text.clone(), open=open))
        if found is None or found.numel() % text.numel() or not bool(found.isfinite().all()):
            raise ValueError("no logits")
        return found.reshape(*text.shape, -1)

    try:
        want, ahead, past, of_other = ask(ids, source), ask(last, source), ask(first, source), ask(ids, other)
        unmasked, unmasked_ahead = ask(ids, source, True), ask(last, source, True)
    except Exception:  # whatever a model raises at masks of another shape
        return False
    finally:
        module.train(training)
    alike = torch.allclose(ahead[:, :-1], want[:, :-1], 1e-4, 1e-5)
    seen = not torch.allclose(past[:, -1], want[:, -1], 1e-4, 1e-5)
    matters = not torch.allclose(unmasked[:, :-1], unmasked_ahead[:, :-1], 1e-4, 1e-5)  # else it may be another mask
    return alike and seen and matters and (not has_source or not torch.equal(of_other, want))


__all__ = ["find_mask_convention"]
