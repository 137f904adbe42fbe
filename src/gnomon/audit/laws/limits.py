"""Laws of the end: what becomes of a position that there is no row for."""

import torch

from gnomon.audit.law import Evidence, law
from gnomon.audit.laws.padding import is_close
from gnomon.audit.target import NotApplicable, Target
from gnomon.shapes import Float

LONGEST = 1100  #: tokens of a text that is still read to reach the end of a table
FAR = 4096  #: position asked for where no end is known


@law(
    "past the table is an error",
    source="tables read modulo their length, or at their last row for ever",
    hint="a position without a row must raise: look for %, clamp and min beside the table",
    shown_by="every encoding but none",
    shrinks=False,
)
def past_the_table_is_an_error(t: Target, n: int) -> Evidence:
    """Where a table of positions ends the model says so; elsewhere there is no end, and no position comes again."""
    if t.table_ends and t.limit is not None:
        return _ends(t, t.limit)
    return _goes_on(t, t.limit or FAR)


def _ends(t: Target, limit: int) -> Evidence:
    """0 if position `limit` raises, 1 if it is answered."""
    if t.device.type != "cpu":
        raise NotApplicable(f"on {t.device} a row that is not there ends the process: audit {t.name} on the CPU")
    _at(t, limit - 1)  # what it raises here, it does not raise for the end
    try:
        got = _at(t, limit)
    except NotApplicable:
        raise
    except Exception:
        return Evidence(torch.zeros(1), torch.zeros(1), None, tolerance=0.5)
    return Evidence(torch.ones(1), torch.zeros(1), None, tolerance=0.5, cause=_describe_overrun(t, limit, got))


def _at(t: Target, position: int) -> Float:
    """Logits (1, V) of a token at this position, read alone where the target takes positions."""
    if "positions" in t.can:
        return t.logits(t.ids(1, 1), positions=torch.full((1, 1), position, device=t.device))[:, -1]
    if position >= LONGEST:
        raise NotApplicable(f"{t.lacks('positions')}, and a text of {position + 1} tokens is too long for an audit")
    return t.logits(t.ids(1, position + 1))[:, -1]


def _describe_overrun(t: Target, limit: int, got: Float) -> str:
    """What a model does that answers where there is no row."""
    if "positions" not in t.can:
        return f"a text of {limit + 1} tokens is answered although there are {limit} positions"
    if not is_close(t, _at(t, 0), _at(t, limit - 1)):
        if is_close(t, got, _at(t, 0)):
            return f"position {limit} is taken for position 0: positions wrap"
        if is_close(t, got, _at(t, limit - 1)):
            return f"position {limit} is taken for {limit - 1}: positions are clamped"
    if is_close(t, got, _at(t, limit + 1)):
        return f"positions {limit} and {limit + 1} are answered alike: the last row, or another, is repeated in silence"
    return f"position {limit} is answered although there are {limit} positions"


def _goes_on(t: Target, end: int) -> Evidence:
    """0 if positions from `end` on give the logits of those from 0 on, 1 if they give others."""
    t.need("positions")
    first = t.ids(2, 1)
    ids = torch.cat([first, t.other(first)], 1)  # of two like tokens no distance shows

    def after(start: int) -> Float:
        """Logits (6, V) of a token at position start, start + 1 and start + 2, beside another at 0."""
        at = (torch.tensor([[0, start + i], [0, start + i]], device=t.device) for i in range(3))
        return torch.cat([t.logits(ids, positions=positions)[:, -1] for positions in at])

    here, one = after(0), torch.ones(1)  # asked first: what it raises here, it does not raise for being far away
    try:
        there = after(end)
    except Exception as raised:
        if t.limit is not None:
            raise
        raise NotApplicable(f"{t.name} ends before position {end}, and says so: {type(raised).__name__}") from raised
    between = float((here[2:4] - here[:2]).abs().amax())
    if between < 100 * t.tolerance(here):
        return Evidence(one, one, one, ids, 0.5)
    cause = f"positions from {end} on are taken for those from 0 on: they wrap"
    return Evidence(0 * one if is_close(t, there, here) else one, one, None, ids, 0.5, cause)


__all__ = ["past_the_table_is_an_error"]
