"""What does not fit is refused before it is made."""

import pytest

from gnomon import available_memory as memory
from gnomon.available_memory import room_for, size_text
from gnomon.errors import BadValue


@pytest.fixture(autouse=True)
def _asked_anew():
    memory.memory.cache_clear()
    yield
    memory.memory.cache_clear()


def test_there_is_some_memory_and_not_endlessly_much():
    assert 2**27 < memory.memory() < 2**50


def test_a_container_may_have_less_than_the_machine(monkeypatch, tmp_path):
    (tmp_path / "none").write_text("max\n")
    (tmp_path / "limit").write_text("1000\n")
    monkeypatch.setattr(memory, "LIMITS", (str(tmp_path / "none"), str(tmp_path / "absent"), str(tmp_path / "limit")))
    assert memory.memory() == 1000
    room_for(1000, "a table", "take fewer")
    with pytest.raises(BadValue, match="a table needs about 1.0 kB of memory, more than there is here: take fewer"):
        room_for(1001, "a table", "take fewer")


@pytest.mark.parametrize(
    ("n_bytes", "shown"),
    [(999, "999 bytes"), (1000, "1.0 kB"), (75_497_472, "75.5 MB"), (2_500_000_000, "2.5 GB"), (10**16, "10000.0 TB")],
)
def test_sizes_are_for_people(n_bytes, shown):
    assert size_text(n_bytes) == shown
