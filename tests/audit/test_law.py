"""How a verdict comes about: the machinery under all laws, tried on laws that are made up here."""

import pytest
import torch

from gnomon.audit import LAWS, Evidence, NotApplicable, Subject, judge, law
from gnomon.audit.law import difference, largest

ONE = torch.ones(2)
ANYONE = Subject.of("none")


@pytest.mark.parametrize(
    ("evidence", "verdict"),
    [
        (Evidence(ONE, ONE), "pass"),
        (Evidence(ONE + 5e-6, ONE), "pass"),
        (Evidence(ONE + 5e-5, ONE), "fail"),
        (Evidence(100 * ONE + 5e-4, 100 * ONE), "pass"),  # the tolerance grows with the logits ...
        (Evidence(0.001 * ONE + 5e-6, 0.001 * ONE), "pass"),  # ... and does not shrink below that of 1
        (Evidence(ONE + 2e-7, ONE, slack=0.0), "fail"),
        (Evidence(ONE, ONE, fault=ONE), "not observable"),
        (Evidence(ONE, ONE, fault=ONE + 5e-6), "not observable"),
        (Evidence(ONE, ONE, fault=2 * ONE), "pass"),
        (Evidence(2 * ONE, ONE, fault=ONE), "fail"),  # a fault that is there was seen
        (Evidence(ONE * float("nan"), ONE), "fail"),
        (Evidence(ONE, ONE * float("nan")), "fail"),
        (Evidence(ONE[:1], ONE), "fail"),
    ],
)
def test_the_verdict_follows_from_the_evidence(evidence, verdict):
    assert law("made up")(lambda s: evidence)(ANYONE).verdict == verdict


def test_a_law_that_says_nothing_says_why():
    @law("made up")
    def check(s: Subject) -> Evidence:
        """An example."""
        raise NotApplicable("there is no moon")

    outcome = check(ANYONE)
    assert (outcome.law, outcome.verdict, outcome.note) == ("made up", "not applicable", "there is no moon")


def test_a_subject_that_raises_where_it_should_answer_fails():
    def check(s: Subject) -> Evidence:
        raise RuntimeError("shapes do not fit")

    outcome = law("made up")(check)(ANYONE)
    assert (outcome.verdict, outcome.note) == ("fail", "raised RuntimeError: shapes do not fit")


def test_what_cannot_be_observed_names_what_would_show_it():
    blind = law("made up", shown_by="rope")(lambda s: Evidence(ONE, ONE, ONE))
    assert "rope" in blind(ANYONE).note


def test_the_sentence_is_the_docstrings_first_line():
    @law("made up")
    def check(s: Subject) -> Evidence:
        """Says this.

        And more.
        """
        return Evidence(ONE, ONE)

    assert check.sentence == "Says this."


def test_a_failure_outweighs_a_pass_and_a_pass_outweighs_not_seeing():
    seeds = {0: Evidence(ONE, ONE, ONE), 1: Evidence(ONE, ONE), 2: Evidence(2 * ONE, ONE)}
    by_seed = law("made up")(lambda s: seeds[s.seed])
    verdicts = [judge(by_seed, [Subject.of("none", seed=i) for i in few]).verdict for few in ([0], [0, 1], [0, 1, 2])]
    assert verdicts == ["not observable", "pass", "fail"]


def test_equal_infinities_do_not_differ_and_nothing_has_no_difference():
    inf = torch.tensor([float("inf"), -float("inf")])
    assert difference(inf, inf) == 0.0
    assert difference(inf, -inf) == float("inf")
    assert difference(torch.zeros(0), torch.zeros(0)) == 0.0
    assert largest(torch.tensor([float("inf"), float("nan"), -3.0])) == 3.0


def test_a_subject_builds_the_same_model_and_leaves_random_numbers_alone():
    for name in ("learned", "t5"):
        one = Subject.of(name, seed=3).model()
        torch.rand(1)
        before = torch.random.get_rng_state()
        two, other = (Subject.of(name, seed=seed).model() for seed in (3, 4))
        assert all(torch.equal(p, q) for p, q in zip(one.parameters(), two.parameters(), strict=True))
        assert not any(torch.equal(p, q) for p, q in zip(one.parameters(), other.parameters(), strict=True))
        assert torch.equal(before, torch.random.get_rng_state())


def test_chunks_add_up_and_differ_with_the_seed():
    cuts = [Subject.of("none", seed=i).cuts(14) for i in range(8)]
    assert all(sum(chunks) == 14 and min(chunks) >= 1 for chunks in cuts)
    assert len({tuple(chunks) for chunks in cuts}) > 1


def test_laws_are_sentences():
    for name, found in LAWS.items():
        assert found.name == name
        assert found.sentence.endswith("."), name
        assert len(found.sentence.split()) >= 6, name
