"""What all tests share: each worker computes on one thread, and no test writes into the user's cache."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:  # two workers with two threads each would fight over two cores
    os.environ["OMP_NUM_THREADS"] = os.environ["MKL_NUM_THREADS"] = "1"

# What runs in the background of a shell is started with Ctrl-C ignored, and so would be what tests start and interrupt.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ["GNOMON_LANG"] = "en"  # whatever the terminal speaks that they run in

ROOT = Path(__file__).parents[1]


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
