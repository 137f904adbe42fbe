"""TokenEmbedding: the table between ids and vectors. It owns the one weight; lookup and unembedding are two views.

    lookup    x = s E[id] P         (..., D)      s = sqrt(D) in the original Transformer, 1 in GPT-2; Gemma rounds it
    unembed   logits = h P^T E^T    (..., V)      without s            (Press and Wolf 2017, arXiv:1608.05859)

P exists only when the table is narrower than the model (ALBERT, arXiv:1909.11942, section 3.1).
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch
from torch import nn
from torch.nn import functional as F

from gnomon.errors import BadInput, BadValue, check_arguments, must_be, wrong
from gnomon.kinds import Setting
from gnomon.linear import linear
from gnomon.shapes import Float, Int
from gnomon.stored import Stored, check_whole, matrix

Scale = Literal["sqrt", "rounded sqrt"] | float | None


@dataclass(frozen=True, kw_only=True)
class TableSettings:
    """Token table, and first weights"""

    init_std: Annotated[
        float, Setting("of tables and linear layers; those into the residual stream get it / sqrt(2 n_layers)", least=0)
    ] = 0.02

    embed_scale: Annotated[
        Scale | Literal["auto"],
        Setting(
            "of token vectors: sqrt(d_model), the same rounded to the dtype, a number, or none for 1; 'auto' is "
            "1 / init_std where position vectors of a fixed size are added (sinusoidal), so that tokens enter at "
            "unit size while tied logits begin small, else none",
            source="Vaswani et al. 2017, section 3.4; rounded: Gemma, arXiv:2403.08295",
        ),
    ] = "auto"
    d_embed: Annotated[
        int | None,
        Setting(
            "width of the table where it is narrower than d_model",
            least=1,
            most=2**20,
            source="ALBERT, arXiv:1909.11942, section 3.1",
        ),
    ] = None
    padding_id: Annotated[int | None, Setting("id whose row is zero and stays zero", least=0, most=2**31)] = None


class TokenEmbedding(nn.Module):
    """ids (B, T) -> vectors (B, T, D): rows of a (V, D) table, times sqrt(D) by default."""

    stores_weight = True  #: its weight may be kept in fewer bits, see `gnomon.stored`

    @check_arguments
    def __init__(
        self,
        vocab_size: int,
        d_model: int,
        scale: Scale = "sqrt",
        padding_id: int | None = None,
        d_embed: int | None = None,
        std: float | None = None,
    ) -> None:
        """scale       "sqrt" (the paper), a number, or None for 1; "rounded sqrt" is the root as the dtype has it, with
                    which Gemma was trained: in bfloat16 55.5 for a width of 3072, whose root is 55.4256
        padding_id  its row is zero and stays zero, tied or not
        d_embed     width of the table when smaller than d_model
        std         of the initial rows: default D^-0.5 under a root, so that scaled rows have unit size, else 0.02
        """
        super().__init__()
        if vocab_size < 1 or d_model < 1:
            raise BadValue(f"vocab_size and d_model must be at least 1, got {vocab_size} and {d_model}")
        if padding_id is not None and not 0 <= padding_id < vocab_size:
            raise BadValue(f"padding_id={padding_id} is not one of the {vocab_size} token ids")
        width = d_model if d_embed is None else d_embed
        if not 0 < width <= d_model:
            raise BadValue(f"d_embed must lie between 1 and d_model={d_model}, got {width}")
        self.d_model, self.padding_id = d_model, padding_id
        self.rounds = scale == "rounded sqrt"
        check_std(std)
        self.scale, self.std = scale_and_std(scale, std, d_model)
        self.weight = nn.Parameter(torch.empty(vocab_size, width))
        self.widen = nn.Linear(width, d_model, bias=False) if width < d_model else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows anew; the padding row is zero."""
        nn.init.normal_(self.weight, std=self.std)
        if self.widen is not None:
            nn.init.normal_(self.widen.weight, std=self.widen.in_features**-0.5)
        if self.padding_id is not None:
            with torch.no_grad():
                self.weight[self.padding_id] = 0

    @property
    def size(self) -> float:
        """Root mean square of what it gives at first."""
        return abs(self.scale) * self.std

    @property
    def vocab_size(self) -> int:
        """V, rows of the table."""
        return self.weight.shape[0]

    def forward(self, ids: Int) -> Float:
        """ids (B, T) -> (B, T, D). Raises BadValue for an id outside the table, naming it and its row."""
        check_ids(ids, self.vocab_size)
        x = self.rows(ids)
        x = x if self.widen is None else self.widen(x)
        return x if self.scale == 1.0 else x * (torch.tensor(self.scale, dtype=x.dtype) if self.rounds else self.scale)

    def rows(self, ids: Int) -> Float:
        """The rows of these ids, (B, T, width of the table)."""
        if isinstance(stored := self._modules.get("weight"), Stored):  # where a Parameter was before
            return stored.rows(ids)
        return F.embedding(ids, self.weight, self.padding_id)

    def unembed(self, h: Float) -> Float:
        """h (..., D) -> logits (..., V) with the same table. The padding row gets no gradient from here."""
        check_hidden(h, self.d_model)
        h = h if self.widen is None else h @ matrix(self.widen.weight)
        logits = linear(h, self.weight)
        if self.padding_id is not None:  # its row is zero, so the logit is 0 anyway: this only stops the gradient
            pad = torch.zeros(self.vocab_size, dtype=torch.bool, device=h.device)
            pad[self.padding_id] = True
            logits = logits.masked_fill(pad, 0.0)
        return logits

    @torch.no_grad()
    def resize(self, vocab_size: int) -> None:
        """Change the number of rows. Rows that remain keep their bits; new ones are drawn like the first were."""
        check_whole(self)
        must_be("vocab_size", vocab_size, int)
        if self.padding_id is not None and self.padding_id >= vocab_size:
            raise BadValue(f"resizing to {vocab_size} rows would cut off the padding token {self.padding_id}")
        self.weight = nn.Parameter(resize_rows(self.weight, vocab_size, self.std), self.weight.requires_grad)

    @torch.no_grad()
    def import_vectors(self, vectors: Mapping[str, Float], vocabulary: Mapping[str, int]) -> list[str]:
        """Copy pretrained vectors into the rows of their tokens; returns the tokens that had no vector.

        vectors     token -> (D,) vector, D the width of this table (`read_vectors` reads a file of them)
        vocabulary  token -> id. The padding row stays zero.

        Raises BadValue for a vector of another width or an id outside the table, before any row is changed.
        """
        check_whole(self)
        must_be("vectors", vectors, Mapping, "a vector of each token: {'cat': tensor}, as read_vectors gives them")
        must_be("vocabulary", vocabulary, Mapping, "the id of each token: {'cat': 12}")
        found: dict[int, Float] = {}
        for token, row in vocabulary.items():
            if token not in vectors:
                continue
            must_be(f"the id of {token!r}", row, int)
            vector = as_vector(token, vectors[token]).to(self.weight)
            if vector.shape != self.weight.shape[1:]:
                want = tuple(self.weight.shape[1:])
                raise BadValue(f"the vector of {token!r} has shape {tuple(vector.shape)}, the table needs {want}")
            if not 0 <= row < self.vocab_size:
                raise BadValue(f"the token {token!r} has id {row}, but the table has {self.vocab_size} rows")
            if row != self.padding_id:
                found[row] = vector
        for row, vector in found.items():
            self.weight[row] = vector
        return [token for token in vocabulary if token not in vectors]

    def extra_repr(self) -> str:
        """Shown by print(module)."""
        pad = "" if self.padding_id is None else f", padding_id={self.padding_id}"
        return f"vocab_size={self.vocab_size}, d_model={self.d_model}, scale={self.scale:g}{pad}"


def check_std(std: float | None) -> None:
    """Raise BadValue for a standard deviation that cannot be."""
    if std is not None and not (math.isfinite(std) and std >= 0):
        raise BadValue(f"std is a standard deviation, at least 0; got {std}")


def scale_and_std(scale: Scale, std: float | None, d_model: int) -> tuple[float, float]:
    """The number that rows are multiplied by, and the standard deviation of the first ones."""
    if isinstance(scale, str):
        return math.sqrt(d_model), d_model**-0.5 if std is None else std
    return 1.0 if scale is None else float(scale), 0.02 if std is None else std


def resize_rows(weight: Float, rows: int, std: float) -> Float:
    """A (rows, ...) tensor whose first rows are `weight`'s, bit for bit; further ones normal with `std`."""
    if rows < 1:
        raise BadValue(f"a table needs at least one row, got {rows}")
    new = torch.empty(rows, *weight.shape[1:], dtype=weight.dtype, device=weight.device)
    nn.init.normal_(new, std=std) if std else nn.init.zeros_(new)
    keep = min(rows, weight.shape[0])
    new[:keep] = weight[:keep]
    return new


def as_vector(token: str, vector: object) -> Float:
    """A tensor of a token's vector, however it was given."""
    try:
        return torch.as_tensor(vector)
    except (TypeError, ValueError, RuntimeError) as error:
        raise wrong(f"the vector of {token!r}", vector, "numbers, (d_model,)") from error


def check_hidden(h: Float, d_model: int) -> None:
    """Raise BadValue unless h is what a head reads, (..., D)."""
    if not isinstance(h, torch.Tensor) or not h.is_floating_point() or h.dim() == 0 or h.shape[-1] != d_model:
        raise wrong("h", h, f"a floating-point tensor, (batch, tokens, d_model = {d_model})")


def check_shape(ids: Int) -> None:
    """Raise BadValue unless ids are a tensor of whole numbers, (B, T) with at least one token."""
    if not isinstance(ids, torch.Tensor):
        how = "torch.tensor([[76, 299, 412]]); for a text, model.tokenizer.encode(text) gives the ids of a row"
        raise wrong("ids", ids, "a tensor of token ids, (batch, tokens)", how)
    if ids.dim() != 2 or ids.numel() == 0:
        raise BadValue(f"token ids have shape (batch, tokens) with at least one of each, got {tuple(ids.shape)}")
    if ids.dtype not in (torch.int64, torch.int32):
        raise BadValue(f"token ids are integers (int64 or int32), got {ids.dtype}")


def check_ids(ids: Int, vocab_size: int) -> None:
    """Raise BadValue if an id is outside 0..vocab_size-1; names the id, its place and the vocabulary.

    Looks at values on the CPU only and not while compiling: elsewhere the check would wait for the device.
    """
    check_shape(ids)
    if ids.device.type != "cpu" or torch.compiler.is_compiling():
        return
    low, high = ids.aminmax()
    if int(low) < 0 or int(high) >= vocab_size:
        row, column = (int(i) for i in ((ids < 0) | (ids >= vocab_size)).nonzero()[0])
        raise BadValue(
            f"token id {int(ids[row, column])} (row {row}, place {column}) is outside the vocabulary of {vocab_size} "
            f"tokens, 0 to {vocab_size - 1}: was the text tokenized with this model's tokenizer?"
        )


def read_vectors(path: str | Path) -> dict[str, Float]:
    """Read pretrained vectors from a text file: a token and its numbers per line (GloVe), after an optional line with
    the two sizes (word2vec, fastText). Raises BadInput naming the line that does not fit."""
    vectors: dict[str, Float] = {}
    width = 0
    try:
        with open(path, encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                token, *numbers = line.rstrip("\n").split(" ")
                numbers = [x for x in numbers if x]
                if number == 1 and len(numbers) == 1:
                    continue
                width = width or len(numbers)
                if not numbers or len(numbers) != width:
                    raise BadInput(
                        f"{path}, line {number}: {len(numbers)} numbers where {width or 'some'} were expected"
                    )
                vectors[token] = torch.tensor([float(x) for x in numbers])
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"cannot read vectors from {path}: {error}") from error
    except ValueError as error:
        raise BadInput(f"{path}, line {number}: not a token followed by numbers ({error})") from error
    if not vectors:
        raise BadInput(f"{path} holds no vectors: it should have a token and its numbers on each line")
    return vectors


__all__ = [
    "Scale",
    "TableSettings",
    "TokenEmbedding",
    "check_hidden",
    "check_ids",
    "check_shape",
    "check_std",
    "read_vectors",
    "resize_rows",
    "scale_and_std",
]
