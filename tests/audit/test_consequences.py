"""Broken laws that may follow from another one point to it, once, when all have been asked."""

import math

import pytest
import torch
from torch import nn
from variants import student

import gnomon as gn
from gnomon.audit import LAWS
from gnomon.audit.consequences import FOLLOW, attribute_root_causes
from gnomon.audit.finding import Finding
from gnomon.audit.laws.padding import SWAPPED

AFTER = 'may follow from "{}", which is broken too: mend that first'


def failed(law: str, note: str = "") -> Finding:
    return Finding(law, "", "FAIL", note=note or LAWS[law].hint)


def test_names_are_those_of_laws_and_no_law_follows_from_itself() -> None:
    for law, others in FOLLOW.items():
        assert {law, *others} <= set(LAWS)
        assert law not in others


def test_only_what_may_follow_and_has_no_cause_of_its_own_points_there() -> None:
    findings = [
        failed("causality", "each token sees the next one"),
        failed("prefix = beginning"),
        failed("chunks = whole", "it has no causal mask"),
        failed("ties are one tensor"),
        failed("order is seen", LAWS["order is seen"].hint + " (seen once its weights are drawn larger)"),
    ]
    after = AFTER.format("causality")
    notes = [findings[0].note, after, "it has no causal mask", findings[3].note, after]
    assert [found.note for found in attribute_root_causes(findings)] == notes


def test_nothing_points_to_a_law_that_is_not_broken() -> None:
    for verdict in ("pass", "by design", "not observable"):
        findings = (Finding("causality", "", verdict), failed("prefix = beginning"))  # type: ignore[arg-type]
        assert attribute_root_causes(findings) == findings


def test_a_mask_the_wrong_way_round_is_told_once() -> None:
    report = gn.audit(student({".tril(start)": ".triu(start)"}))
    assert "the wrong way round" in report["causality"].note
    assert report["prefix = beginning"].note == AFTER.format("causality")
    assert sum(found.note == LAWS[found.law].hint for found in report.failed) == 0


class Turned(nn.Module):
    """An nn.TransformerEncoder that was given rows first; `first` says so."""

    def __init__(self, first: bool = False) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.tokens, self.positions, self.head = nn.Embedding(20, 16), nn.Embedding(32, 16), nn.Linear(16, 20)
        layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=first)
        self.encoder = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.tokens(ids) * math.sqrt(16) + self.positions(torch.arange(ids.shape[1]))
        return self.head(self.encoder(x))


@pytest.mark.slow
def test_rows_taken_for_tokens_are_one_cause() -> None:
    report = gn.audit(Turned())
    root = "batch mates change nothing"
    assert report[root].note == SWAPPED
    assert {f.law for f in report.failed} == {root, "the past is seen", "order is seen"}
    assert {f.note for f in report.failed if f.law != root} == {AFTER.format(root)}
    right = gn.audit(gn.audit.Torch(Turned(first=True), architecture="encoder-only"))
    assert right.ok, right


@pytest.mark.parametrize("axis", [0, (0, 1)])
def test_rows_that_share_numbers_are_not_taken_for_that(axis: int | tuple[int, ...]) -> None:
    class Shares(Turned):
        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            x = self.tokens(ids)
            return self.head(x.cumsum(1) + x.mean(axis, keepdim=True))

    assert gn.audit(Shares(), only="batch mates")["batch mates change nothing"].note == (
        LAWS["batch mates change nothing"].hint
    )
