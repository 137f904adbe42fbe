"""One audit: which laws are asked, what is told meanwhile, what is left after Ctrl-C, and tests made of laws."""

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import nn

import gnomon as gn
from gnomon.audit import LAWS, Interrupted, Target, check, laws_of
from gnomon.audit.run import select
from gnomon.audit.target import NotApplicable
from gnomon.errors import BadValue

V = 11
QUICK = ["causality", "cached = full", "left padding changes nothing"]


class Means(nn.Module):
    """Each token's logits are the mean of all rows behind it and its own; with `ahead`, of those to come as well."""

    def __init__(self, ahead: bool = False) -> None:
        super().__init__()
        self.embedding, self.ahead = nn.Embedding(V, 8), ahead
        self.head = nn.Linear(8, V)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        x = self.embedding(ids)
        if self.ahead:
            return self.head(x + x.mean(1, keepdim=True))
        return self.head(x.cumsum(1) / torch.arange(1, ids.shape[1] + 1)[:, None])


@pytest.fixture(autouse=True)
def seeded() -> None:
    torch.manual_seed(0)


def test_the_same_seed_gives_the_same_report() -> None:
    model = Means(ahead=True)
    first, again = (gn.audit(model, seed=3, only=QUICK) for _ in range(2))
    assert first == again
    assert first["causality"].smallest != gn.audit(model, seed=4, only=QUICK)["causality"].smallest


@pytest.mark.parametrize("make", [Means, lambda: gn.DecoderOnly(V, d_model=8, n_layers=1, n_heads=2)])
def test_an_audit_leaves_everything_as_it_was(make: Callable[[], nn.Module]) -> None:
    model = make().train()
    next(model.children()).eval()

    def state() -> list[torch.Tensor]:
        modes = torch.tensor([m.training for m in model.modules()])
        grads = torch.tensor([p.grad is None for p in model.parameters()])
        return [torch.get_rng_state(), modes, grads, *(w.detach().clone() for w in model.state_dict().values())]

    before = state()
    gn.audit(model)
    assert all(torch.equal(a, b) for a, b in zip(before, state(), strict=True))


class Draws(Means):
    """Seeds what is everybody's, and adds noise."""

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        torch.manual_seed(torch.seed() % 1000)
        return super().forward(ids) + torch.randn(1)


def test_what_a_model_draws_is_its_own_and_the_one_thing_it_is_accused_of() -> None:
    model, drawn = Draws(), []
    for audited in (False, True):
        torch.manual_seed(0)
        report = gn.audit(model, skip=["order is seen"]) if audited else None
        drawn.append(torch.randn(3))
    assert torch.equal(*drawn)
    assert report is not None
    assert [found.law for found in report.failed] == ["evaluation is deterministic"]
    assert "two like calls of Draws differ" in report["batch mates change nothing"].note


def test_weights_that_are_no_numbers_are_named_and_nothing_else_is_said_of_them() -> None:
    model = Means()
    model.head.weight.data[2, 3] = float("nan")
    report = gn.audit(model, skip=["order is seen"])
    assert [found.law for found in report.failed] == ["logits are numbers"]
    assert "head.weight is not finite" in report["logits are numbers"].note
    assert "head.weight is not finite" in report["causality"].note


def test_progress_names_every_law_before_it_is_asked_and_ends_full() -> None:
    told: list[tuple[int, int, str]] = []
    report = gn.audit(Means(), only=QUICK, progress=lambda *step: told.append(step))
    assert told == [*((n, 3, f.law) for n, f in enumerate(report.findings)), (3, 3, "")]


def test_a_report_says_how_it_was_asked() -> None:
    about = gn.audit(Means(), only=["causality"], seed=5, length=7).about
    assert about["dtype"] == "float32"
    assert (about["vocabulary"], about["tokens"], about["seed"]) == (V, 7, 5)
    assert "float32" in about["tolerated"]


def test_a_package_that_is_not_installed_is_asked_for_no_metadata(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its source may only be on the path."""

    def missing(name: str) -> None:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert gn.audit(Means(), only=["causality"]).about["gnomon"] == gn.__version__


def test_a_model_defined_below_the_current_folder_is_pointed_to(monkeypatch: pytest.MonkeyPatch) -> None:
    file = Path(__file__).resolve()
    line = next(n for n, text in enumerate(file.read_text().splitlines(), 1) if text.startswith("class Means"))
    monkeypatch.chdir(file.parent)
    assert gn.audit(Means(), only=["causality"]).about["defined"] == f"test_run.py:{line}"
    monkeypatch.chdir("/")
    assert (
        gn.audit(nn.Sequential(Means()), only=["causality"])
        .about["defined"]
        .startswith(Path(sys.modules["torch.nn"].__file__ or "").resolve().parent.relative_to("/").as_posix())
    )


# ------------------------------------------------------------------ which laws


def test_a_name_stands_for_itself_its_beginning_for_all_that_begin_so() -> None:
    assert [law.name for law in select(["causality"], [])] == ["causality"]
    name = next(name for name in LAWS if any(other != name and other.startswith(name) for other in LAWS))
    assert [law.name for law in select([name], [])] == [name]
    cached = [name for name in LAWS if name.startswith("c")]
    assert len(cached) > 1
    assert [law.name for law in select(["c"], [])] == cached
    assert [law.name for law in select([], ["c"])] == [name for name in LAWS if name not in cached]


@pytest.mark.parametrize("given", [{"only": ["causalty"]}, {"skip": ["causalty"]}])
def test_an_unknown_law_names_the_nearest(given: dict[str, list[str]]) -> None:
    with pytest.raises(BadValue, match="unknown law 'causalty': did you mean 'causality'"):
        gn.audit(Means(), **given)


def test_one_law_may_stand_without_a_list() -> None:
    assert [found.law for found in gn.audit(Means(), only="causality").findings] == ["causality"]
    assert [law.name for law in select("c", "causality")] == [law.name for law in select(["c"], ["causality"])]
    check(Means(), only="causality")
    laws_of(Means, only="causality", skip="call")("causality")
    with pytest.raises(BadValue, match="unknown law 'causalty'"):
        gn.audit(Means(), only="causalty")


def test_no_law_is_asked_by_an_empty_name() -> None:
    with pytest.raises(BadValue, match="unknown law ''"):
        select("", [])
    with pytest.raises(BadValue, match="unknown law ''"):
        select([""], [])


def test_a_law_that_was_not_asked_is_not_in_the_report() -> None:
    report = gn.audit(Means(), only=["causality"])
    assert report["causality"].verdict == "pass"
    with pytest.raises(BadValue, match="unknown law in this report 'cached = full'"):
        report["cached = full"]


# ------------------------------------------------------------------ Ctrl-C


def test_ctrl_c_leaves_what_was_found_before() -> None:
    def progress(done: int, total: int, law: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt) as stopped:
        gn.audit(Means(), only=QUICK, progress=progress)
    assert isinstance(stopped.value, Interrupted)
    assert len(stopped.value.report.findings) == 2
    assert str(stopped.value) == "interrupted after 2 of 3 laws"


class Stopped(Target):
    """A target in the middle of whose work somebody presses Ctrl-C."""

    def logits(self, *_: object, **__: object) -> torch.Tensor:
        raise KeyboardInterrupt


def test_ctrl_c_within_the_model_is_no_failure_of_the_model() -> None:
    with pytest.raises(Interrupted) as stopped:
        gn.audit(Stopped("stopped", V), only=QUICK)
    assert stopped.value.report.findings == ()


# ------------------------------------------------------------------ in tests


def test_check_raises_with_the_report() -> None:
    check(Means(), only=["causality"])
    with pytest.raises(AssertionError, match="Changing a token changes no logits before it"):
        check(Means(ahead=True), only=["causality"])


def test_the_first_line_of_an_assertion_says_what_is_broken() -> None:
    with pytest.raises(AssertionError) as broken:
        check(Means(ahead=True), only=["causality", "prefix = beginning"])
    first, second, *_ = str(broken.value).splitlines()
    assert first == (
        "Means breaks causality: every token sees all others: no mask hides those to come where tokens meet (an "
        'encoder is meant to see them: architecture="encoder-only") (1 law more may follow from it)'
    )
    assert second == ""


def test_a_check_that_judges_nothing_fails() -> None:
    with pytest.raises(AssertionError) as nothing:
        check(Means(), only=["cached = full", "left padding changes"])
    assert str(nothing.value) == (
        "Nothing was judged about Means: Means was not told to have a cache: Torch(model, stepped=...); Means was not "
        "told to take a mask of real tokens: Torch(model, masked=...)."
    )
    check(Means(), only=["cached = full", "causality"])


class Silent(Target):
    """A target to which no law applies."""

    def logits(self, *_: object, **__: object) -> torch.Tensor:
        raise NotApplicable("it says nothing")


def test_a_test_of_each_law_passes_fails_or_is_skipped_with_the_reason() -> None:
    laws_of(Means, only=["causality"])("causality")
    with pytest.raises(AssertionError, match="breaks 1 law"):
        laws_of(lambda: Means(ahead=True), only=["causality"])("causality")
    with pytest.raises(pytest.skip.Exception, match="not applicable: it says nothing"):
        laws_of(lambda: Silent("silent", V), only=["causality"])("causality")


def test_a_law_about_other_things_is_skipped() -> None:
    about_rotations = next(name for name in LAWS if not LAWS[name].concerns(gn.audit.target(Means())))
    with pytest.raises(pytest.skip.Exception, match="none of the things this law speaks of"):
        laws_of(Means, only=[about_rotations])(about_rotations)


def test_the_model_is_made_once_and_not_before_it_is_needed() -> None:
    made: list[Means] = []

    def make() -> Means:
        made.append(Means())
        return made[-1]

    test = laws_of(make, only=["causality"])
    assert made == []
    test("causality")
    test("causality")
    assert len(made) == 1


@pytest.mark.slow
def test_pytest_shows_every_law_as_a_test_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "test_mine.py").write_text(
        "import gnomon as gn\n"
        "def make():\n"
        "    return gn.DecoderOnly(vocab_size=32, d_model=16, n_layers=1, n_heads=2, position='rope')\n"
        "test_my_model = gn.audit.laws_of(make, only=['causality', 'cached = full'])\n"
    )
    run = [sys.executable, "-m", "pytest", "-v", "-n", "0", "-p", "no:cacheprovider", "test_mine.py"]
    shown = subprocess.run(run, cwd=tmp_path, capture_output=True, text=True, check=False).stdout
    assert "test_mine.py::test_my_model[causality] PASSED" in shown
    assert "test_mine.py::test_my_model[cached = full] PASSED" in shown


@pytest.mark.slow
def test_the_audit_does_without_pytest() -> None:
    code = (
        "import sys, gnomon.audit; print([m for m in ('pytest', 'transformers', 'x_transformers') if m in sys.modules])"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
