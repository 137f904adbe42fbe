"""What can be seen of somebody's module by asking it once: how many ids it knows, how far it reads, what it takes.

Nothing is guessed from names where a look at what happens can tell: the table of tokens is the nn.Embedding that was
given the ids, a table of positions is one that was given 0, 1, 2, ..; a mask is believed to be a mask of real tokens if
all ones change nothing.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from gnomon.audit.outside.answers import said
from gnomon.errors import BadValue
from gnomon.shapes import Float, Int

FAR = 48  #: tokens of the longest text that is tried; laws ask about fewer
SAY = "say how to ask it: Torch(model, forward=lambda model, ids: ...)"
PATTERN = (1, 0, 1, 1, 0, 0, 1, 0)  #: ids that every model knows, and no numbers of positions


@dataclass(frozen=True)
class Probe:
    """What one look showed.

    vocab      ids it knows
    embedding  path of the nn.Embedding that was given the ids, if there is one
    limit      positions there are, if there is an end within sight
    """

    vocab: int
    embedding: str | None
    limit: int | None


@torch.no_grad()
def probe(ask: Callable[[Int], Float], module: nn.Module, device: torch.device) -> Probe:
    """Ask a model about ids 0 and 1.

    Raises BadValue if it does not answer a text of one token, or not with logits.
    """
    reached = reach(ask, device)
    must_keep_ids(ask, min(reached, len(PATTERN)), device)
    if reached >= 3:
        must_read_rows(ask, device)
    ids = _ids(min(reached, len(PATTERN)), device)
    given: dict[str, Int] = {}

    def watch(path: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def hook(_: nn.Module, args: tuple[Any, ...]) -> None:
            if args and isinstance(args[0], torch.Tensor):
                given.setdefault(path, args[0])

        return hook

    embeddings = {path: m for path, m in module.named_modules() if isinstance(m, nn.Embedding)}
    hooks = [m.register_forward_pre_hook(watch(path)) for path, m in embeddings.items()]
    try:
        width = ask(ids).shape[-1]
    finally:
        for hook in hooks:
            hook.remove()
    tokens = next((path for path, got in given.items() if got.shape == ids.shape and torch.equal(got, ids)), None)
    ends = [embeddings[path].num_embeddings - int(got.flatten()[0]) for path, got in given.items() if _counts(got)]
    limit = min([*ends, *([reached] if reached < FAR else [])], default=None)
    return Probe(width if tokens is None else embeddings[tokens].num_embeddings, tokens, limit)


def reach(ask: Callable[[Int], Float], device: torch.device) -> int:
    """How many tokens it answers before it raises, FAR at most."""

    def answers(n: int) -> bool:
        try:
            ask(_ids(n, device))
        except BadValue:
            raise
        except Exception:  # whatever a model raises past its end
            return False
        return True

    if answers(FAR):
        return FAR
    try:
        ask(_ids(1, device))
    except BadValue:
        raise
    except Exception as raised:
        why = said(raised)
        raise BadValue(f"the model does not answer ids (1, 1), torch.int64 and below 2: {why}; {SAY}") from raised
    low, high = 1, FAR
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if answers(middle) else (low, middle)
    return low


def takes(module: nn.Module, ids: Int, **options: Int) -> bool:
    """Whether forward has parameters of these names, and these values for them change nothing, as they should."""
    if not all(has(module, name) for name in options):
        return False
    try:
        with torch.no_grad():
            return torch.allclose(logits_of(module(ids, **options), ids), logits_of(module(ids), ids), 1e-4, 1e-5)
    except Exception:  # whatever a model raises that means something else by these names
        return False


def has(module: nn.Module, name: str) -> bool:
    """Whether forward has a parameter of this name."""
    return name in inspect.signature(module.forward).parameters


def must_read_rows(ask: Callable[[Int], Float], device: torch.device) -> None:
    """Raise BadValue for a model of the older order (T, B): its last row depends on the first one, columns do not."""
    ids = torch.tensor([[1, 0, 0], [0, 1, 1]], device=device)

    def alike(a: Float, b: Float) -> bool:
        return torch.allclose(a, b, 1e-3, 1e-4)

    columns = ids.T.contiguous()
    try:
        rows = alike(ask(ids)[1:], ask(ids[1:]))
        turned = not rows and alike(ask(columns)[:, 1:], ask(columns[:, 1:]))
    except Exception:  # whatever a model raises at two rows is for the laws to tell
        return
    if turned:
        raise BadValue(
            "this model reads ids (T, B): hand them over so, "
            "Torch(model, forward=lambda model, ids: model(ids.T).transpose(0, 1))"
        )


def must_keep_ids(ask: Callable[[Int], Float], n: int, device: torch.device) -> None:
    """Raise BadValue for a model that writes into the ids (1, n) it is given: no question could be asked twice."""
    ids = _ids(n, device)
    ask(ids)
    if not torch.equal(ids, _ids(n, device)):
        raise BadValue(
            "this model writes into the ids it is given, which are its caller's: let forward work on ids.clone(), or "
            "hand it a copy, Torch(model, forward=lambda model, ids: model(ids.clone()))"
        )


def required(module: nn.Module) -> list[str]:
    """Names of those arguments of forward that have to be given."""
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(module.forward).parameters.values()
    return [p.name for p in parameters if p.kind in kinds and p.default is inspect.Parameter.empty]


def logits_of(out: Any, ids: Int) -> Float:
    """The logits (B, T, V), from what models return: a tensor, a tuple that begins with one, `logits` by name."""
    found = _first(out)
    found = found if isinstance(found, torch.Tensor) else getattr(found, "logits", found)
    if not isinstance(found, torch.Tensor) or found.dim() != 3 or not found.is_floating_point():
        shape = f"{found.dtype} {tuple(found.shape)}" if isinstance(found, torch.Tensor) else _words(found)
        raise BadValue(f"logits are a tensor (B, T, V) of floating point numbers, got {shape}; {SAY}")
    if found.shape[:2] != ids.shape:
        raise BadValue(f"ids {tuple(ids.shape)} gave logits {tuple(found.shape)}, not one row a token; {SAY}")
    return found


def _first(out: Any) -> Any:
    """What should be the logits; `out` itself where nothing in it is."""
    if isinstance(out, Mapping):
        return out.get("logits", out)
    return out[0] if isinstance(out, tuple | list) and out else out


def _words(found: Any) -> str:
    """Its class, and the names in it."""
    names = f" with {', '.join(map(repr, found)) or 'nothing'}" if isinstance(found, Mapping) else ""
    return f"{type(found).__name__}{names}"


def blocks_of(module: nn.Module) -> nn.ModuleList | None:
    """The list of parts of one class that holds most parameters; an nn.Sequential counts as one."""
    found = max(_lists(module), key=lambda parts: sum(p.numel() for p in parts.parameters()), default=None)
    return found if found is None or isinstance(found, nn.ModuleList) else nn.ModuleList(found)


def _lists(module: nn.Module) -> Iterator[nn.ModuleList | nn.Sequential]:
    for m in module.modules():
        parts = list(m) if isinstance(m, nn.ModuleList | nn.Sequential) else []
        alike = len({type(part) for part in parts}) == 1 and not isinstance(parts[0], nn.Linear)
        if isinstance(m, nn.ModuleList | nn.Sequential) and alike and next(parts[0].parameters(), None) is not None:
            yield m


def _ids(n: int, device: torch.device) -> Int:
    return torch.tensor(PATTERN, device=device).repeat(n // len(PATTERN) + 1)[None, :n]


def _counts(given: Int) -> bool:
    """Whether these are positions: each one more than that before it, alike in all rows, as distances are not."""
    if given.dim() == 0 or given.is_floating_point():
        return False
    rows = given.reshape(-1, given.shape[-1])
    return rows.shape[-1] > 1 and bool((rows.diff() == 1).all() and (rows == rows[0]).all())


__all__ = [
    "Probe",
    "blocks_of",
    "has",
    "logits_of",
    "must_keep_ids",
    "must_read_rows",
    "probe",
    "reach",
    "required",
    "takes",
]
