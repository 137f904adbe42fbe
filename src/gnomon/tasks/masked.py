"""The task `masked`: guess tokens of a text that were hidden, from what is on either side (BERT, arXiv:1810.04805).

Of each window 15 % of the tokens are asked for; 80 % of these become [MASK], 10 % some other token, 10 % stay, so that
the model cannot rely on seeing a mask (section 3.1 there). Which ones they are is drawn from the seed and the step.
"""

import hashlib
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from torch import nn

from gnomon.data import Corpus, LMBatches, Tokenizer, TokenStore, windows_for_eval
from gnomon.data.tokenizer import MASK_MARKS
from gnomon.errors import BadInput, BadValue
from gnomon.generate import evaluation_mode
from gnomon.glossary import numeral
from gnomon.models import EncoderOnly, Model, ModelConfig, build
from gnomon.tasks.kind import Kind
from gnomon.tasks.labelled import Labelled, check_encoder
from gnomon.tasks.text import TextKind, store_tokens
from gnomon.train import Evaluation, TrainConfig
from gnomon.train.evaluation import from_losses
from gnomon.train.loss import IGNORE, row_losses
from gnomon.train.measure import ratio
from gnomon.train.step import mixed_precision

Ints = np.ndarray[Any, np.dtype[np.int64]]
ASKED, MASKED, OTHER = 0.15, 0.8, 0.1  # of a window's tokens; of those that are asked for
HELD_OUT_SEED = 2026  # of the masks of what is held out: the same for every run, so that runs can be compared
SAMPLES = ("import [MASK]", "for i in [MASK](10):", "def __init__([MASK]):", "    return [MASK]")


@dataclass(frozen=True)
class MaskedKind(TextKind):
    """Where the text comes from and how much of it is held out."""

    name = "masked"
    about = "Guess hidden tokens of a text from both sides."
    preset: ClassVar[str | None] = None
    default_model: ClassVar[dict[str, Any]] = {
        "architecture": "encoder-only",
        "causal": False,
        "vocab_size": 1024,
        "d_model": 128,
        "n_layers": 3,
        "n_heads": 4,
        "position": "rope",
        "init_std": 0.05,
        "head": "masked",
    }
    default_train = TrainConfig(steps=2500, batch_size=32, length=64, lr=3e-3, eval_every=None, sample_every=None)

    def vocabulary(self, tokenizer: Tokenizer) -> Tokenizer:
        """With a mask."""
        return tokenizer.with_mask()

    def task(self, tokenizer: Tokenizer, config: TrainConfig, quiet: bool = True) -> "Masked":
        """Windows of the text."""
        training, held_out = (store_tokens(part, tokenizer, quiet) for part in self.parts)
        return Masked(training, held_out, tokenizer, config)

    def task_on(self, sources: tuple[str, ...], tokenizer: Tokenizer, config: TrainConfig, quiet: bool) -> "Masked":
        """Measured on windows of another text."""
        store = store_tokens(Corpus.open(sources, self.text_key), tokenizer, quiet)
        return Masked(store, store, tokenizer, config)

    def new_model(self, config: ModelConfig) -> Model:
        """An encoder with a head over the vocabulary."""
        return build(config if config.head in ("masked", "tokens") else replace(config, head="masked"))

    def title(self) -> str:
        """The name of the task."""
        return Kind.title(self)

    def next_step(self, folder: Path) -> str:
        """Fill a gap."""
        return f"Fill a gap: gnomon fill {shlex.quote(str(folder))} 'for i in [MASK](10):'"


class Masked:
    """Hidden tokens in windows of a text; a gnomon.train.Task."""

    name = "masked"

    def __init__(self, training: TokenStore, held_out: TokenStore, tokenizer: Tokenizer, config: TrainConfig) -> None:
        """Of the config, batch_size, length, seed, eval_windows and label_smoothing are read."""
        if tokenizer.mask_id is None:
            raise BadValue("this tokenizer has no mask: take tokenizer.with_mask()")
        if config.length < 2:
            raise BadValue("a window of one token has nothing to guess it from: choose a length of 2 or more")
        self.training, self.tokenizer, self.config = training, tokenizer, config
        self.mask_id: int = tokenizer.mask_id
        self.control = np.array(sorted(tokenizer.control_ids))
        self.words = np.setdiff1d(np.arange(tokenizer.vocab_size), self.control)  # what a token may be replaced by
        self.windows = LMBatches(training, config.batch_size, config.length - 1, config.seed)
        try:
            found = windows_for_eval(held_out, config.length - 1, config.eval_windows).ids.astype(np.int64)
        except BadInput as error:
            raise BadInput(f"of what is held out for evaluation, {error}, or hold out more") from error
        self.held_out = self.hidden(found, np.random.default_rng(HELD_OUT_SEED))

    @cached_property
    def fingerprint(self) -> str:
        """Of the training tokens."""
        return hashlib.sha256(self.training.tokens.data).hexdigest()

    def check(self, model: Model, config: TrainConfig) -> None:
        """Raise BadValue for a model that cannot learn this."""
        check_encoder(model, self.config, config, "masked or tokens", self.tokenizer.vocab_size)

    def batch(self, number: int) -> Labelled:
        """Windows of the text, each token of a pass once."""
        rng = np.random.default_rng([self.config.seed, number])
        return self.hidden(self.windows.batch(number), rng)

    def hidden(self, ids: Ints, rng: np.random.Generator) -> Labelled:
        """ids (B, T) with some of them hidden, and these as labels. Ends of documents are never asked for."""
        free = ~np.isin(ids, self.control)
        n = max(1, round(ASKED * ids.shape[1]))
        order = np.where(free, rng.random(ids.shape), 2.0).argsort(axis=1).argsort(axis=1)
        asked = (order < n) & free
        fate = rng.random(ids.shape)
        others = rng.choice(self.words, ids.shape)
        shown = np.where(asked & (fate < MASKED), self.mask_id, ids)
        shown = np.where(asked & (fate >= MASKED) & (fate < MASKED + OTHER), others, shown)
        labels = np.where(asked, ids, IGNORE)
        return Labelled(torch.from_numpy(shown), torch.from_numpy(labels), None, self.config.label_smoothing)

    @torch.no_grad()
    def evaluate(self, model: nn.Module, dtype: torch.dtype = torch.float32) -> Evaluation:
        """Loss and accuracy on the hidden tokens. Intervals come from drawing windows."""
        device, nats, hits, counts = next(model.parameters()).device, [], [], []
        with evaluation_mode(model):
            for rows in self.held_out.pieces(-(-len(self.held_out.ids) // self.config.batch_size)):
                batch = rows.to(device)
                with mixed_precision(device, dtype):
                    logits = batch.logits(model)
                loss = row_losses(logits, batch.labels)
                nats.append(loss.total.double().cpu().numpy())
                counts.append(loss.count.double().cpu().numpy())
                hits.append((logits.argmax(-1) == batch.labels).sum(1).double().cpu().numpy())
        targets = np.concatenate(counts)
        return from_losses(np.concatenate(nats), targets, {"accuracy": ratio(np.concatenate(hits), targets)})

    def samples(self, model: Model) -> list[str]:
        """A few gaps of Python, and what the model fills in."""
        found = [(text, fill(model, text, 3)[0]) for text in SAMPLES]
        shown = [(text, [f"{g.token} {numeral(g.probability, '.0%')}" for g in best]) for text, best in found]
        return [f"{text}  ->  {', '.join(guesses)}" for text, guesses in shown]


class Guess(NamedTuple):
    """A token for a gap."""

    token: str  #: as a reader can tell it from others, see Tokenizer.tokens
    id: int
    probability: float
    text: str  #: the token as it stands in a text


def fill(model: Model, text: str, top: int = 5) -> list[list[Guess]]:
    """For each [MASK] in `text` the `top` most probable tokens, each gap guessed by itself.

    A blank before the mask belongs to it where the tokenizer's words begin with one. Raises BadValue for a model that
    was not trained to fill gaps, and for a text without one.
    """
    tokenizer = model.tokenizer
    if not isinstance(model, EncoderOnly) or model.config.head not in ("masked", "tokens"):
        raise BadValue(
            f"this model fills no gaps, it is {model.architecture} with a head of {model.config.head}: take one that "
            "`gnomon train --task masked` made, or a checkpoint such as BERT's"
        )
    if tokenizer is None or tokenizer.mask_id is None:
        raise BadValue("this model's tokenizer has no mask, so the model was not trained to fill gaps")
    ids = encode_with_gaps(tokenizer, text)
    device = next(model.parameters()).device
    with evaluation_mode(model), torch.no_grad():
        logits = model(torch.tensor([ids], device=device))[0].double()
    logits[:, sorted(tokenizer.control_ids)] = -torch.inf
    found = []
    for place in (t for t, i in enumerate(ids) if i == tokenizer.mask_id):
        p, best = logits[place, : tokenizer.vocab_size].softmax(-1).topk(min(top, tokenizer.vocab_size))
        found.append(
            [
                Guess(tokenizer.tokens([i])[0], i, x, tokenizer.decode([i]))
                for i, x in zip(best.tolist(), p.tolist(), strict=True)
                if x > 0
            ]
        )
    return found


def fill_gaps(text: str, guesses: Sequence[Guess]) -> str:
    """The text with a guess in each gap; a guess that begins with a blank takes the place of the one before the gap."""
    first, *rest = text.split(MASK_MARKS[0])
    for guess, part in zip(guesses, rest, strict=True):
        first = (first.removesuffix(" ") if guess.text.startswith(" ") else first) + guess.text + part
    return first


def encode_with_gaps(tokenizer: Tokenizer, text: str) -> list[int]:
    """Token ids of a text whose gaps are written [MASK]; other control strings in it are text."""
    parts = text.split(MASK_MARKS[0])
    if len(parts) < 2 or tokenizer.mask_id is None:
        raise BadValue(f"there is no gap in {text!r}: write {MASK_MARKS[0]} where a token is to be guessed")
    takes_blank = tokenizer.kind == "bpe"
    before = [part[:-1] if takes_blank and part.endswith(" ") else part for part in parts[:-1]]
    ids = []
    for part in tokenizer.encode_batch(before):
        ids += [*part, tokenizer.mask_id]
    return ids + tokenizer.encode(parts[-1])


__all__ = ["Guess", "Masked", "MaskedKind", "encode_with_gaps", "fill", "fill_gaps"]
