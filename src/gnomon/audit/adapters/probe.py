"""What can be seen of somebody's module by asking it once: how many ids it knows, how far it reads, what it takes.

Nothing is guessed from names where a look at what happens can tell: the table of tokens is the nn.Embedding that was
given the ids, a table of positions is one that was given 0, 1, 2, ..; a mask is believed to be a mask of real tokens if
all ones change nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from gnomon.audit.adapters.signature import has_parameter
from gnomon.audit.answers import error_text
from gnomon.errors import BadValue
from gnomon.shapes import Float, Int

FAR = 48  #: tokens of the longest text that is tried; laws ask about fewer
USED = (*range(1, 17), 24, 36)  #: lengths that laws ask about
FARTHEST = 257  #: one more than the tokens of the longest text that most laws ask about
SAY = "say how to ask it: Torch(model, forward=lambda model, ids: ...)"
PATTERN = (1, 0, 1, 1, 0, 0, 1, 0)  #: ids that every model knows, and no numbers of positions


@dataclass(frozen=True)
class Probe:
    """What one look showed.

    vocab      ids it knows
    embedding  path of the nn.Embedding that was given the ids, if there is one
    limit      positions there are, if there is an end within sight
    lengths    of the texts that it answers, of those up to FAR
    """

    vocab: int
    embedding: str | None
    limit: int | None
    lengths: frozenset[int]


@torch.no_grad()
def probe(ask: Callable[[Int], Float], module: nn.Module, device: torch.device) -> Probe:
    """Ask a model about ids 0 and 1.

    Raises BadValue if it answers no text, or not with logits.
    """
    lengths = answered_lengths(ask, device)
    n = max([k for k in lengths if k <= len(PATTERN)], default=min(lengths))
    must_keep_ids(ask, n, device)
    if 3 in lengths and 2 in lengths:
        must_read_rows(ask, device)
    ids = _ids(n, device)
    width, given = _watch_embeddings(ask, module, ids)
    tables = dict(module.named_modules())
    tokens = next((path for path, got in given.items() if any(torch.equal(x, ids) for x in got)), None)
    shorter = max([k for k in lengths if k < n], default=0)  # a table that is given the same then holds a source
    again = _watch_embeddings(ask, module, _ids(shorter, device))[1] if shorter else given
    ends = [
        len(tables[path].weight) - start
        for path, got in given.items()
        if (start := _start(got, n)) is not None and _start(again.get(path, []), shorter or n) is not None
    ]
    whole = lengths == frozenset(range(1, max(lengths) + 1))
    limit = min([*ends, *([max(lengths)] if whole and max(lengths) < FAR else [])], default=None)
    if limit is None and FAR in lengths:
        limit = end_beyond(ask, device)
    vocab = width if tokens is None else len(tables[tokens].weight)
    return Probe(vocab, tokens, limit, lengths)


def _watch_embeddings(ask: Callable[[Int], Float], module: nn.Module, ids: Int) -> tuple[int, dict[str, list[Int]]]:
    """The width of the logits of ids, and what each nn.Embedding was given, by its path."""
    given: dict[str, list[Int]] = {}

    def watch(path: str) -> Callable[[nn.Module, tuple[Any, ...]], None]:
        def hook(_: nn.Module, args: tuple[Any, ...]) -> None:
            if args and isinstance(args[0], torch.Tensor):
                given.setdefault(path, []).append(args[0])

        return hook

    embeddings = [(path, m) for path, m in module.named_modules() if isinstance(m, nn.Embedding)]
    hooks = [m.register_forward_pre_hook(watch(path)) for path, m in embeddings]
    try:
        return ask(ids).shape[-1], given
    finally:
        for hook in hooks:
            hook.remove()


def answered_lengths(ask: Callable[[Int], Float], device: torch.device) -> frozenset[int]:
    """The lengths, FAR at most, of the texts that it answers. One that is answered says nothing of another one, so
    each is asked where any of those that laws use is refused.

    Raises BadValue if none is answered, or none but a single token, with what it gives in place of logits.
    """
    refused: dict[int, Exception] = {}

    def answers(n: int) -> bool:
        try:
            ask(_ids(n, device))
        except Exception as raised:  # whatever a model raises at a length it is not made for
            refused[n] = raised
        return n not in refused

    answered = {n for n in (*USED, FAR) if answers(n)}
    if not refused:
        return frozenset(range(1, FAR + 1))
    answered |= {n for n in range(1, FAR) if n not in USED and answers(n)}
    unlike = next((raised for raised in refused.values() if isinstance(raised, BadValue)), None)
    if unlike is not None and answered <= {1}:
        raise unlike
    if not answered:
        why = refused[min(refused)]
        raise BadValue(
            f"the model answers no ids (1, n), torch.int64 and below 2, for any n up to {FAR}: {error_text(why)}; {SAY}"
        ) from why
    return frozenset(answered)


def end_beyond(ask: Callable[[Int], Float], device: torch.device) -> int | None:
    """The longest text that it answers, where there is one between FAR and FARTHEST and longer ones raise."""

    def answers(n: int) -> bool:
        try:
            ask(_ids(n, device))
        except (MemoryError, torch.cuda.OutOfMemoryError):
            return True
        except Exception:  # whatever a model raises past its end
            return False
        return True

    last, beyond = FAR, FARTHEST
    if answers(beyond):
        return None
    while beyond - last > 1:
        middle = (last + beyond) // 2
        last, beyond = (middle, beyond) if answers(middle) else (last, middle)
    return last


def accepts(module: nn.Module, ids: Int, **options: Int) -> bool:
    """Whether forward has parameters of these names, and these values for them change nothing, as they should."""
    if not all(has_parameter(module, name) for name in options):
        return False
    try:
        with torch.no_grad():
            return torch.allclose(logits_of(module(ids, **options), ids), logits_of(module(ids), ids), 1e-4, 1e-5)
    except Exception:  # whatever a model raises that means something else by these names
        return False


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


def logits_of(out: Any, ids: Int) -> Float:
    """The logits (B, T, V), from what models return: a tensor, a tuple that begins with one, `logits` by name."""
    found = _first(out)
    found = found if isinstance(found, torch.Tensor) else getattr(found, "logits", found)
    if isinstance(found, torch.Tensor) and found.dim() == 2 and len(found) == ids.numel():
        found = found.view(*ids.shape, -1)  # (B T, V), as a cross-entropy wants them
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


def _start(given: list[Int], n: int) -> int | None:
    """The first of the positions of n tokens that are among these: each one more than that before it, alike in all
    rows, as distances are not; None where there are none."""
    for x in given:
        rows = x.reshape(-1, n) if x.dim() and x.shape[-1] == n else x.new_zeros(1, 1)
        whole = n > 1 and not x.is_floating_point() and rows.shape[-1] == n
        if whole and bool((rows.diff() == 1).all() and (rows == rows[0]).all()):
            return int(rows[0, 0])
    return None


__all__ = [
    "Probe",
    "accepts",
    "answered_lengths",
    "blocks_of",
    "logits_of",
    "must_keep_ids",
    "must_read_rows",
    "probe",
]
