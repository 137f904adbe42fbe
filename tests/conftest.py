"""What all tests share: each worker computes on one thread, and no test writes into the user's cache."""

import gc
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import pytest

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "")
if WORKER:  # two workers with two threads each would fight over two cores
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

# What runs in the background of a shell is started with Ctrl-C ignored, and so would be what tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["GNOMON_LANG"] = "en"  # whatever the terminal speaks that they run in

ROOT = Path(__file__).parents[1]
FEW = 6  # cases of one test that the fast tests run in full


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Every second worker reads the files from the last to the first: pytest rewrites the asserts of each file, keeps
    what it wrote, and so each of two workers rewrites only half of them. They sort what they found afterwards."""
    report = yield
    if WORKER and int(WORKER[2:]) % 2 and isinstance(collector, pytest.Session | pytest.Directory):
        report.result.reverse()
    return report


def pytest_collection_finish() -> None:
    """What has been imported by now stays: from here on, no pass of the garbage collector looks at it again."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)  # before the marks are asked for
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of many cases the fast tests take a sample, the slow tests the rest: of a list every fourth, of a grid (a test
    with several lists) its diagonal; of more than a dozen of these every second or third."""
    if WORKER:
        items.sort(key=lambda item: item.path)
    tests: dict[tuple[Path, str], list[pytest.Function]] = defaultdict(list)
    for item in items:
        if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
            tests[item.path, item.originalname].append(item)
    for cases in tests.values():
        if len(cases) > FEW:
            grid = len(list(cases[0].iter_markers("parametrize"))) > 1
            fast = diagonal([parameters(case) for case in cases]) if grid else range(0, len(cases), 4)
            every = 1 + len(fast) // (2 * FEW)  # many encodings, families or faults: every second or third of these
            fast = list(fast)[::every]
            for i in set(range(len(cases))).difference(fast):
                cases[i].add_marker(pytest.mark.slow)
    for item in items:  # what is slow here may take minutes on older cores
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(900))


def parameters(item: pytest.Function) -> dict[str, str]:
    """What this case gives each argument, as text."""
    return {name: repr(value) for name, value in item.callspec.params.items()}


def diagonal(cells: Sequence[dict[str, str]]) -> list[int]:
    """Few cells, so that every value of every parameter occurs: each value of the longest parameter once, with the
    others taking turns, and then any cell that still brings a value not met (a grid may have holes)."""
    order: dict[str, dict[str, int]] = {name: {} for name in cells[0]}
    places = [{name: order[name].setdefault(cell[name], len(order[name])) for name in order} for cell in cells]
    longest = max(order, key=lambda name: len(order[name]))
    turn = {name: int(name != longest) for name in order}  # where two lists are the same, no value meets itself
    chosen = [i for i, at in enumerate(places) if all(at[n] == (at[longest] + turn[n]) % len(order[n]) for n in order)]
    met = {value for i in chosen for value in places[i].items()}
    for i, at in enumerate(places):
        if not set(at.items()) <= met:
            chosen.append(i)
            met |= set(at.items())
    return chosen


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session", autouse=True)
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """One cache for the whole run of a worker, apart from the user's."""
    os.environ["GNOMON_CACHE"] = str(tmp_path_factory.mktemp("cache"))


@pytest.fixture(autouse=True)
def _encodings_of_tests_go_with_them() -> Iterator[None]:
    """What a test registers, in this process by --import too, is unknown again to the next one."""
    yield
    if (base := sys.modules.get("gnomon.positions.base")) is not None:
        for name, cls in list(base._REGISTRY.items()):
            if not cls.__module__.startswith("gnomon."):
                del base._REGISTRY[name]
