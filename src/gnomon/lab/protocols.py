"""How a language model is measured far past its training length: always on the same tokens.

Three protocols are in use, and their numbers must not be mixed:

    windows   cut the text into pieces of length l: many targets then have little context, which a longer l cures
    sliding   a window of length l moves by S targets: what deployment with a crop does
    fixed     the same targets at the end of long documents for every l; only the context in front of them varies

The lab's own is the third (Kazemnejad et al. 2023, arXiv:2305.19466, appendix F), the fair curve: whatever differs
between two lengths is what the model made of the longer context. At the training length it is the crop itself: the
model is given the last L tokens and nothing else. The other two are measured beside it where they are asked for; each
has numbers of its own (`in_windows`, `sliding`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.nn import functional as F

from gnomon.data import TokenStore, long_documents
from gnomon.data.store import Ints
from gnomon.errors import BadInput, BadValue
from gnomon.generate import evaluation_mode
from gnomon.layout import Layout
from gnomon.models import DecoderOnly
from gnomon.shapes import Float, Int
from gnomon.trace import Trace

Floats = np.ndarray[Any, np.dtype[np.float64]]
BATCH_TOKENS = 8192  # read in one forward
HEAD_TOKENS = 1024  # that the head answers at a time: logits are V numbers for each of them


@dataclass(frozen=True)
class Targets:
    """Blocks of n tokens at the end of held-out documents, each with the `longest` tokens that precede its last one.

    windows    (blocks, longest + 1) ids: the targets are the last n of each row
    document   (blocks,) which document each block is from, counted from 0 among those in use
    chosen     (documents,) the index in the store of each of these
    ends       (blocks,) where in its document each block ends
    n_bytes    (blocks, longest) UTF-8 bytes of windows[:, 1:]
    """

    windows: Ints
    document: Ints
    chosen: Ints
    ends: Ints
    n_bytes: Ints
    n: int

    @property
    def longest(self) -> int:
        """Most tokens that a model is given."""
        return int(self.windows.shape[1]) - 1

    @property
    def n_documents(self) -> int:
        """Documents that have targets."""
        return len(self.chosen)

    @property
    def n_tokens(self) -> int:
        """Targets in all."""
        return len(self.windows) * self.n

    @property
    def bytes_of_documents(self) -> Floats:
        """(documents,) bytes of each document's targets."""
        return self.by_document(self.n_bytes[:, -self.n :].sum(1))

    def by_document(self, values: Floats | Ints) -> Floats:
        """Sums over each document's blocks, (blocks,) -> (documents,)."""
        summed = np.zeros(self.n_documents)
        np.add.at(summed, self.document, values)
        return summed

    def bytes_by(self, protocol: str) -> Floats:
        """(documents,) bytes of the tokens that a protocol scores."""
        scored = {"fixed": self.n, "sliding": self.longest // 2, "windows": self.longest}[protocol]
        return self.by_document(self.n_bytes[:, -scored:].sum(1))

    def of(self, read: Floats) -> Floats:
        """(documents,) nats for each document's targets, from those of every token of the windows (blocks, longest)."""
        return self.by_document(read[:, -self.n :].sum(1))

    def tokens_read(self, lengths: Sequence[int]) -> int:
        """Tokens that a model reads when it is measured at these lengths, the first of them also far out."""
        per_target = sum(n / self.stride(n) for n in (*lengths, lengths[0]))
        return round(self.n_tokens * per_target)

    def tokens_in_windows(self, lengths: Sequence[int]) -> int:
        """The same for the protocols that cut the whole windows."""
        return len(self.windows) * self.longest * len(lengths)

    def stride(self, length: int) -> int:
        """How many targets are read off one window of `length` tokens: at most a quarter, so that each target has at
        least three quarters of the window in front of it, and the same at every length."""
        shares = [s for s in range(1, self.n + 1) if self.n % s == 0 and 4 * s <= max(4, length)]
        fits = self.longest - self.n + shares[-1] >= length
        return shares[-1] if fits else self.n


def choose_targets(store: TokenStore, train_length: int, factors: Sequence[int], per_document: int) -> Targets:
    """The last tokens of every document of at least `longest` + 1 tokens, up to `per_document` blocks of each.

    BadInput where no document is as long as that.
    """
    longest = train_length * max(factors)
    n = max(1, train_length // 4) * max(factors)
    chosen = long_documents(store, longest + 1)
    if not len(chosen):
        raise BadInput(_too_short(store, train_length, factors))
    windows, document, ends = [], [], []
    for number, index in enumerate(chosen.tolist()):
        tokens = store.document(index)
        for end in range(len(tokens), longest, -n)[:per_document]:
            windows.append(tokens[end - longest - 1 : end])
            document.append(number)
            ends.append(end)
    rows = np.stack(windows).astype(np.int64)
    return Targets(rows, np.array(document), chosen, np.array(ends), store.byte_lengths[rows[:, 1:]], n)


def _too_short(store: TokenStore, train_length: int, factors: Sequence[int]) -> str:
    longest, held = train_length * max(factors), int((store.ends - store.starts).max())
    possible = [f for f in factors if train_length * f < held]
    shorter = (held - 1) // max(factors)
    ways = ["give longer documents"]
    if shorter >= 4:
        ways.insert(0, f"take a training length of at most {shorter}")
    if possible:
        ways.insert(0, f"measure only up to {max(possible)} times the training length")
    return (
        f"no held-out document has the {longest + 1} tokens that measuring at {max(factors)} times {train_length} "
        f"needs: the longest of {store.n_documents} has {held}. {', or '.join(ways).capitalize()}"
    )


# ------------------------------------------------------------------ measuring


def has_positions(model: DecoderOnly, length: int, shift: int = 0) -> bool:
    """Whether the model's encoding has a meaning at these positions; a learned table ends somewhere."""
    try:
        model.check(_placed(length, shift))
    except BadValue:
        return False
    return True


def document_nats(model: DecoderOnly, targets: Targets, length: int, shift: int = 0) -> Floats:
    """(documents,) nats that the model pays for each document's targets, given `length` tokens in front of them.

    `shift` places the same tokens at positions shift .. shift + length - 1.
    """
    step, end = targets.stride(length), targets.windows.shape[1]
    nats = np.zeros(len(targets.windows))
    for stop in range(end - targets.n + step, end + 1, step):
        rows = targets.windows[:, stop - length - 1 : stop]
        nats += nats_per_token(model, rows, step, shift).sum(1)
    return targets.by_document(nats)


def in_windows(model: DecoderOnly, targets: Targets, length: int) -> Floats:
    """(documents,) nats for all tokens of the targets' windows, cut into pieces of `length`, each read alone."""
    rows = _pieces(targets.windows, length)
    read = nats_per_token(model, rows, length).reshape(len(targets.windows), -1)
    return targets.by_document(read.sum(1))


def _pieces(windows: Ints, length: int) -> Ints:
    """(blocks * pieces, length + 1): each piece begins with the last token of the one before."""
    starts = range(0, windows.shape[1] - length, length)
    return np.stack([windows[:, at : at + length + 1] for at in starts], axis=1).reshape(-1, length + 1)


def sliding(model: DecoderOnly, targets: Targets, length: int) -> Floats:
    """(documents,) nats for the second half of the targets' windows: a window of `length` moves by half of itself, and
    the last half of it is scored, so that each target has at least half of the window in front of it."""
    step, end = max(1, length // 2), targets.windows.shape[1]
    nats = np.zeros(len(targets.windows))
    for stop in range(end - targets.longest // 2 + step, end + 1, step):
        nats += nats_per_token(model, targets.windows[:, stop - length - 1 : stop], step).sum(1)
    return targets.by_document(nats)


def nats_by_position(model: DecoderOnly, targets: Targets, length: int) -> Floats:
    """(blocks, length) nats at each position of the targets' windows, cut to their first `length` tokens. Whole ones
    end in the targets: `targets.of(read)` is then what they cost at the longest length, without reading them twice."""
    return nats_per_token(model, targets.windows[:, : length + 1], length)


@torch.no_grad()
def far_attention(model: DecoderOnly, targets: Targets, near: int, windows: int = 4) -> float:
    """The share of attention that goes to tokens at least `near` back, when the longest context is given: the mean over
    the targets' queries, heads, layers and some windows. 0 when nothing reaches farther than in training."""
    device, n, S = next(model.parameters()).device, targets.n, targets.longest
    back = torch.arange(S - n, S, device=device)[:, None] - torch.arange(S, device=device)  # (n, S)
    spread = np.linspace(0, len(targets.windows) - 1, min(windows, len(targets.windows))).round().astype(int)
    shares = []
    for row in targets.windows[spread]:
        trace = Trace()
        model.hidden(torch.from_numpy(row[None, :-1]).to(device), trace=trace)
        shares += [float((p[0, :, -n:] * (back >= near)).sum(-1).mean()) for p in trace.attention]
    return float(np.mean(shares))


@torch.no_grad()
def nats_per_token(model: DecoderOnly, rows: Ints, last: int, shift: int = 0) -> Floats:
    """(B, last) nats for the last tokens of rows (B, length + 1), without dropout; the model stays in its mode."""
    device, length = next(model.parameters()).device, rows.shape[1] - 1
    at = _placed(length, shift).to(device)
    with evaluation_mode(model):
        parts = [
            _nats(model, torch.from_numpy(rows[i : i + many]).to(device), last, at)
            for many in [max(1, BATCH_TOKENS // length)]
            for i in range(0, len(rows), many)
        ]
    return torch.cat(parts).double().cpu().numpy()


def _nats(model: DecoderOnly, ids: Int, last: int, at: Layout) -> Float:
    states, targets = model.hidden(ids[:, :-1], at)[:, -last:], ids[:, -last:]
    h, t = states.flatten(0, 1), targets.flatten()
    paid = [
        F.cross_entropy(model.head(h[i : i + HEAD_TOKENS]).float(), t[i : i + HEAD_TOKENS], reduction="none")
        for i in range(0, len(t), HEAD_TOKENS)
    ]
    return torch.cat(paid).view_as(targets)


def _placed(length: int, shift: int) -> Layout:
    return Layout.dense(1, shift).then(length) if shift else Layout.dense(1, length)


__all__ = [
    "Targets",
    "choose_targets",
    "document_nats",
    "far_attention",
    "has_positions",
    "in_windows",
    "nats_by_position",
    "nats_per_token",
    "sliding",
]
