"""Faults planted in the tiny Transformer, each a method or two."""

import torch
from tiny import Tiny
from torch.nn import functional as F


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
