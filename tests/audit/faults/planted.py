"""Faults planted in the tiny Transformer, each a method or two, and the laws that must see them."""

from typing import Any

import torch
from tiny import Tiny, TinyTarget
from torch.nn import functional as F

from faults.fault import Fault
from gnomon.audit import Law
from gnomon.audit.laws import caches, history, limits, order, padding, precision, sources, windows


class WrongWayRound(Tiny):
    def order(self, real):
        return super().order(real).transpose(1, 2)


class SeesTheNext(Tiny):
    def order(self, real):
        return super().order(real) | torch.eye(real.shape[1], dtype=torch.bool).roll(1, 1).tril(1)


class NoMask(Tiny):
    def order(self, real):
        return torch.ones_like(super().order(real))


class NotItself(Tiny):
    def visible(self, real, docs=None):
        seen = self.order(real) & real[:, None] & ~torch.eye(real.shape[1], dtype=torch.bool)
        return seen | ~seen.any(-1, keepdim=True)  # what softmax makes of scores that are all -1e9


class NotItselfButNaN(Tiny):
    def visible(self, real, docs=None):
        return self.order(real) & real[:, None] & ~torch.eye(real.shape[1], dtype=torch.bool)


class LastSeesNothing(Tiny):
    def visible(self, real, docs=None):
        return super().visible(real, docs).transpose(1, 2) & ~torch.eye(real.shape[1], dtype=torch.bool)


class SeesItselfAlone(Tiny):
    def order(self, real):
        return torch.eye(real.shape[1], dtype=torch.bool).expand(len(real), -1, -1)


class PlacesFromTheLength(Tiny):
    def places(self, real, docs=None):
        return super().places(real, docs) - real.shape[1] + self.limit


class DynamicNTK(Tiny):
    """Angles that grow slower once a text is longer than the limit."""

    def angles(self, positions, width):
        longest = int(positions.max()) + 1
        return super().angles(positions, width) * min(1.0, self.limit / longest)


class KeepsTheLongest(Tiny):
    longest = 0

    def angles(self, positions, width):
        self.longest = max(self.longest, int(positions.max()) + 1)
        return super().angles(positions, width) * min(1.0, 30 / self.longest)


class KeepsAngles(Tiny):
    """Cosines of all angles so far, kept as they were made: in bfloat16 under autocast, without gradients in inference
    mode."""

    rounds = True

    def rotate(self, x, positions):
        longest = int(positions.max()) + 1
        if longest > len(getattr(self, "kept", ())):
            self.kept = super().angles(torch.arange(longest), x.shape[-1]).cos()
            if self.rounds and torch.is_autocast_enabled("cpu"):
                self.kept = self.kept.bfloat16().float()
        angle = self.angles(positions, x.shape[-1])[:, None]
        a, b = x.chunk(2, -1)
        cos = self.kept[: int(positions.max()) + 1]
        if not bool((positions == torch.arange(positions.shape[1])).all()):
            cos = self.kept[positions][:, None]
        sin = angle.sin().to(x.dtype)
        cos = cos.to(x.dtype)
        return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


class KeepsInferred(KeepsAngles):
    rounds = False


class BagOfWords(Tiny):
    def rotate(self, x, positions):
        return x


class RowZero(Tiny):
    def rotate(self, x, positions):
        return super().rotate(x, positions[:1].expand(x.shape[0], -1))


class AddsATable(Tiny):
    """A rotation, and a sinusoid that was to be off."""

    def start(self, ids, positions):
        angle = self.angles(positions, 16)
        return super().start(ids, positions) + torch.cat([angle.sin(), angle.cos()], -1)


class StepsAtZero(Tiny):
    def next_places(self, real, S):
        return torch.zeros_like(super().next_places(real, S))


class StepsDrift(Tiny):
    """Steps late in a text stand ever farther off."""

    def next_places(self, real, S):
        return super().next_places(real, S) + max(0, S - 20)


class StepsTooEarly(Tiny):
    def next_places(self, real, S):
        return super().next_places(real, S) - 1


class Forgets(Tiny):
    def read(self, past, ids, mask=None, *rest, **more):
        return super().read(None, ids, None if mask is None else mask[:, -ids.shape[1] :], *rest, **more)


class ChunksLookAhead(Tiny):
    def attend(self, block, x, positions, seen, past):
        return super().attend(block, x, positions, seen if past is None else torch.ones_like(seen), past)


class ChunksFromTheFirstKey(Tiny):
    def attend(self, block, x, positions, seen, past):
        if past is not None and seen.shape[1] > 1:
            seen = torch.ones_like(seen).tril()
        return super().attend(block, x, positions, seen, past)


class NumbersSlots(Tiny):
    def places(self, real, docs=None):
        return torch.arange(real.shape[1]).expand_as(real) if docs is None else super().places(real, docs)


class StepsNumberSlots(Tiny):
    def next_places(self, real, S):
        return torch.arange(S, real.shape[1]).expand(len(real), -1)


class DropsTheMask(Tiny):
    def read(self, past, ids, mask=None, *rest, **more):
        return super().read(past, ids, None, *rest, **more)


class HidesTheReal(Tiny):
    def read(self, past, ids, mask=None, *rest, **more):
        return super().read(past, ids, None if mask is None else ~mask, *rest, **more)


class SeesPadding(Tiny):
    """Padding takes no position, and is seen."""

    def order(self, real):
        return torch.ones(real.shape[1], real.shape[1], dtype=torch.bool).tril().expand(len(real), -1, -1)

    def visible(self, real, docs=None):
        return self.order(real)


class IgnoresPlaces(Tiny):
    """Positions given beside a mask are not used."""

    def read(self, past, ids, mask=None, positions=None, *rest, **more):
        at = torch.arange(ids.shape[1]).expand_as(ids) if mask is not None and past is None else positions
        return super().read(past, ids, mask, at, *rest, **more)


class SeesTheBatch(Tiny):
    def start(self, ids, positions):
        x = super().start(ids, positions)
        return x - 0.1 * x.mean(0, keepdim=True)


class DocumentsMeet(Tiny):
    def visible(self, real, docs=None):
        return super().visible(real)


class DocumentsGoOn(Tiny):
    def places(self, real, docs=None):
        return super().places(real)


class EmptyRowIsNaN(Tiny):
    def visible(self, real, docs=None):
        return self.order(real) & real[:, None]


class DropsForEver(Tiny):
    def drop(self, block, a):
        return F.dropout(a, 0.1)


class DividesByZero(Tiny):
    def start(self, ids, positions):
        return super().start(ids, positions) / positions[..., None]


class OneTooWide(Tiny):
    def order(self, real):
        self.window, width = self.window + 1, self.window
        seen = super().order(real)
        self.window = width
        return seen


class LosesAKey(Tiny):
    """A step does not see the oldest key of its window."""

    def attend(self, block, x, positions, seen, past):
        if past is not None and seen.shape[-1] > self.window:
            seen = seen & (seen.cumsum(-1) > 1)
        return super().attend(block, x, positions, seen, past)


class Wraps(Tiny):
    def start(self, ids, positions):
        return super().start(ids, positions % self.limit)


class Clamps(Tiny):
    def start(self, ids, positions):
        return super().start(ids, positions.clamp(max=self.limit - 1))


class WrappedRotation(Tiny):
    def angles(self, positions, width):
        return super().angles(positions % self.limit, width)


class AnglesInItsDtype(Tiny):
    def angles(self, positions, width):
        dtype = torch.bfloat16 if torch.is_autocast_enabled("cpu") else self.head.weight.dtype
        rate = 100.0 ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
        return positions[..., None].to(dtype) * rate.to(dtype)


class RatesInItsDtype(Tiny):
    def angles(self, positions, width):
        rate = 100.0 ** (-torch.arange(0, width, 2, dtype=torch.float32) / width)
        return positions[..., None].float() * rate.to(self.head.weight.dtype).float()


class DeafToItsSource(Tiny):
    def cross(self, block, x, told, source_mask):
        return torch.zeros_like(x)


class SourcePaddingSeen(Tiny):
    def cross(self, block, x, told, source_mask):
        return super().cross(block, x, told, None)


class SharesASource(Tiny):
    def cross(self, block, x, told, source_mask):
        return super().cross(block, x, told[:1].expand_as(told), source_mask)


class StepsDeafToTheSource(Tiny):
    def read(self, past, ids, *rest, source=None, source_mask=None, **more):
        source, source_mask = (source, source_mask) if past is None else (None, None)
        return super().read(past, ids, *rest, source=source, source_mask=source_mask, **more)


class HalfHidden(Tiny):
    """What is masked is hidden by a number that is not small enough."""

    hidden = -4.0


class StaysInPlace(TinyTarget):
    """Its cache is not reordered, but has as many rows as are asked for."""

    def reorder(self, state, index):
        return [tuple(x[torch.arange(len(index)) % len(x)] for x in layer) for layer in state]


class KeepsInside(TinyTarget):
    """It keeps its cache inside, and a plain read throws it away."""

    held = None

    def logits(self, *args, **more):
        self.held = None
        return super().logits(*args, **more)

    def step(self, state, *args, **more):
        logits, self.held = super().step(self.held if state else None, *args, **more)
        return logits, True


# ---------------------------------------------------------------------- which law must see which


def planted(
    law: Law,
    cls: type[Tiny],
    *args: Any,
    says: str = "",
    of: type[TinyTarget] = TinyTarget,
    can: frozenset[str] | None = None,
    **more: Any,
) -> Fault:
    """The fault of a class, or of a target, made with these arguments. `can`: what the target is able to do."""
    wrong = (cls if of is TinyTarget else of).__name__
    how = map(str, (*args, *more.items(), *([] if can is None else ["shy"])))
    name = ", ".join([f"{wrong} breaks {law.name}", *how])

    def make(broken: bool) -> TinyTarget:
        model = (cls if broken else Tiny)(*args, **more)
        return (of if broken else TinyTarget)(model, **({} if can is None else {"can": can}))

    return Fault(name, "planted", "", (law,), make, says=says)


FAULTS = [
    planted(history.logits_are_numbers, DividesByZero, says="a division by zero"),
    planted(history.logits_are_numbers, NotItselfButNaN, says="may not see even itself"),
    planted(history.logits_are_numbers, NotItselfButNaN, layers=1, says="may not see even itself"),
    planted(history.logits_are_numbers, LastSeesNothing, says="[11] get NaN"),
    planted(history.evaluation_is_deterministic, DropsForEver),
    planted(history.call_history, KeepsAngles, says="after one of 64 tokens under bfloat16 autocast"),
    planted(history.call_history, KeepsInferred, says="of 64 tokens in inference mode no gradient can be taken"),
    planted(history.call_history, KeepsTheLongest, says="tokens differ from those before it"),
    planted(order.causality, WrongWayRound, says="the wrong way round"),
    planted(order.causality, WrongWayRound, layers=1, says="the wrong way round"),
    planted(order.causality, SeesTheNext, says="sees the next one"),
    planted(order.causality, SeesTheNext, layers=1, says="sees the next one"),
    planted(order.causality, NoMask, says="no mask hides those to come"),
    planted(order.causality, NotItself, says="only the first token looks ahead"),
    planted(order.causality, HalfHidden),
    planted(order.the_past_is_seen, SeesItselfAlone),
    planted(order.the_past_is_seen, WrongWayRound),
    planted(order.prefix_is_beginning, PlacesFromTheLength, "sinusoid"),
    planted(order.prefix_is_beginning_past_the_limit, DynamicNTK),
    planted(order.prefix_is_beginning_past_the_limit, DynamicNTK, limit=500),
    planted(order.order_is_seen, BagOfWords, causal=False),
    planted(order.order_is_seen, BagOfWords, layers=1),
    planted(order.every_row_has_its_own_positions, RowZero),
    planted(order.shift, AddsATable),
    planted(caches.cached_is_full, StepsAtZero, says="stands at position 0"),
    planted(caches.cached_is_full, StepsAtZero, "table", says="stands at position 0"),
    planted(caches.cached_is_full, StepsDrift, says="drift in one of 64"),
    planted(caches.cached_is_full, StepsTooEarly, "table"),
    planted(caches.cached_is_full, Forgets, "none", says="itself alone"),
    planted(caches.chunks_are_whole, ChunksLookAhead, says="no causal mask"),
    planted(caches.chunks_are_whole, ChunksFromTheFirstKey),
    planted(caches.chunks_are_whole, StepsAtZero, says="single steps"),
    planted(caches.crossing_the_limit_in_decoding, DynamicNTK),
    planted(caches.crossing_the_limit_in_decoding, DynamicNTK, limit=4000),
    planted(caches.padded_rows_decode, StepsNumberSlots, "table", says="only the steps after it"),
    planted(caches.right_padded_rows_decode, StepsNumberSlots, says="only the steps after it"),
    planted(caches.a_plain_read_leaves_the_cache_alone, Tiny, of=KeepsInside),
    planted(caches.reorder_is_rerun, Tiny, says="as if nothing had been reordered", of=StaysInPlace),
    planted(caches.beam_with_cache_is_beam_without, Tiny, of=StaysInPlace),
    planted(padding.left_padding, NumbersSlots, "table", says="right once positions cumsum(mask) - 1 are given"),
    planted(padding.left_padding, DropsTheMask, says="the mask changes nothing"),
    planted(padding.left_padding, HidesTheReal, says="True is taken for padding"),
    planted(padding.left_padding, EmptyRowIsNaN, says="a row that sees nothing gives NaN"),
    planted(padding.left_padding_placed, EmptyRowIsNaN, says="a row that sees nothing gives NaN"),
    planted(padding.left_padding, SeesPadding, says="what stands in padded places is seen"),
    planted(padding.left_padding, NumbersSlots, "table", says="counts: positions", can=frozenset({"mask", "module"})),
    planted(padding.right_padding, DropsTheMask, causal=False, says="the mask changes nothing"),
    planted(padding.interior_padding, NumbersSlots, says="right once positions cumsum(mask) - 1 are given"),
    planted(padding.left_padding_placed, IgnoresPlaces, "table", says="not the ones used"),
    planted(padding.right_padding_placed, DropsTheMask, causal=False, says="the mask changes nothing"),
    planted(padding.interior_padding_placed, IgnoresPlaces),
    planted(padding.batch_mates, SeesTheBatch),
    planted(padding.packed_is_separate, DocumentsMeet, says="sees the one before it"),
    planted(padding.packed_is_separate, DocumentsGoOn, "table", says="do not start at position 0"),
    planted(padding.an_empty_row_is_harmless, EmptyRowIsNaN, says="softmax over nothing"),
    planted(padding.masked_tokens_get_no_gradient, SeesPadding),
    planted(windows.a_window_is_as_wide_as_it_says, OneTooWide, window=4, says="the window is 5 wide, not 4"),
    planted(windows.windows_reach_as_far_as_their_layers, OneTooWide, window=4),
    planted(windows.the_cache_keeps_the_window, LosesAKey, window=4),
    planted(limits.past_the_table_is_an_error, Wraps, "table", says="positions wrap"),
    planted(limits.past_the_table_is_an_error, Clamps, "table", says="positions are clamped"),
    planted(limits.past_the_table_is_an_error, WrappedRotation, says="they wrap"),
    planted(limits.past_the_table_is_an_error, Clamps, "table", says="a text of 65 tokens", can=frozenset()),
    planted(precision.bfloat16, AnglesInItsDtype, limit=2000, says="positions are held in"),
    planted(precision.bfloat16, RatesInItsDtype, limit=2000, says="rates of the angles"),
    planted(precision.float16, AnglesInItsDtype, limit=8000, says="positions are held in"),
    planted(precision.under_autocast, AnglesInItsDtype, limit=2000, says="positions are held in"),
    planted(sources.the_source_is_seen, DeafToItsSource, cross=True),
    planted(sources.source_padding_on_the_left, SourcePaddingSeen, cross=True),
    planted(sources.source_padding_on_the_right, SourcePaddingSeen, cross=True),
    planted(sources.rows_keep_their_source, SharesASource, cross=True),
    planted(sources.the_source_is_seen_through_the_cache, StepsDeafToTheSource, cross=True),
]
