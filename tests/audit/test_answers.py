"""A model that does not answer plain ids: one law says so, with the line that raised; the others wait for it."""

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.audit.answers import error_text, refusal

V = 11


class Odd(nn.Module):
    """Answers one row and, at times, no two."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.head = nn.Embedding(V, 8), nn.Linear(8, V)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        return self.seen(x.cumsum(1) / torch.arange(1, ids.shape[1] + 1)[:, None])

    def seen(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x)


class OneRow(Odd):
    def seen(self, x: torch.Tensor) -> torch.Tensor:
        return super().seen(x + torch.zeros(1, x.shape[1], 8).expand(x.shape))[: 1 if len(x) == 1 else 3] @ (
            torch.eye(V) if len(x) == 1 else torch.eye(V + 1)
        )


class ShortOrAlone(Odd):
    def seen(self, x: torch.Tensor) -> torch.Tensor:
        if len(x) > 1 and x.shape[1] > 5:
            raise KeyError("a mask of this size")
        return super().seen(x)


class Flat(Odd):
    def seen(self, x: torch.Tensor) -> torch.Tensor:
        return super().seen(x) if len(x) == 1 else super().seen(x).flatten(0, 1)[None]


LINE = ShortOrAlone.seen.__code__.co_firstlineno + 2


@pytest.mark.parametrize(
    ("model", "says"),
    [
        (OneRow(), ("it raises RuntimeError", "test_answers.py:", "(1 row of 1 token: answered)")),
        (ShortOrAlone(), ("for 2 rows of 6 tokens it raises KeyError", f".py:{LINE}", "2 rows of 1 token: answered")),
        (Flat(), ("for 2 rows of 1 token it gives no logits: ids (2, 1) gave logits (1, 2, 11)",)),
    ],
    ids=lambda x: type(x).__name__,
)
def test_plain_ids_without_an_answer_are_one_failure(model: Odd, says: tuple[str, ...]) -> None:
    report = gn.audit(model, skip=["order is seen", "a position reaches"])
    assert [found.law for found in report.failed] == ["logits are numbers"]
    assert all(part in report["logits are numbers"].note for part in says), report["logits are numbers"].note
    assert "see whether logits are numbers" in report["causality"].note


def test_logits_that_are_not_finite_are_one_failure() -> None:
    class Hidden(Odd):
        def seen(self, x: torch.Tensor) -> torch.Tensor:
            T = x.shape[1]
            return super().seen((x @ x.mT + torch.full((T, T), -torch.inf).triu()).softmax(-1) @ x)

    report = gn.audit(Hidden())
    assert [found.law for found in report.failed] == ["logits are numbers"]
    assert "the first token alone gets NaN before head: a softmax over nothing" in report["logits are numbers"].note
    for law in ("evaluation is deterministic", "call history", "causality", "batch mates change nothing"):
        assert "logits of Hidden are not finite" in report[law].note


def test_attention_of_the_older_order_that_meets_a_mask_is_told_of() -> None:
    class Older(Odd):
        def __init__(self) -> None:
            super().__init__()
            self.attention = nn.MultiheadAttention(8, 2)

        def seen(self, x: torch.Tensor) -> torch.Tensor:
            mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1])
            return super().seen(self.attention(x, x, x, attn_mask=mask)[0])

    note = gn.audit(Older(), only=["logits are"])["logits are numbers"].note
    assert note.endswith("its nn.MultiheadAttention, made without batch_first=True, reads (T, B, D)")


def test_the_line_is_theirs_even_where_torch_raised() -> None:
    def theirs() -> None:
        torch.zeros(2) @ torch.zeros(3)

    with pytest.raises(RuntimeError) as raised:
        theirs()
    assert error_text(raised.value).endswith(f"test_answers.py:{theirs.__code__.co_firstlineno + 1}")
    with pytest.raises(gn.BadValue) as ours:
        gn.audit.target(3)
    assert error_text(ours.value.with_traceback(None)) == f"BadValue: {ours.value}"


def test_an_answer_is_no_refusal() -> None:
    t = gn.audit.Torch(ShortOrAlone())
    assert (refusal(t, 1, 12), refusal(t, 2, 5)) == ("", "")
