"""Subjects for the audit's own tests: three models under each encoding that differ in all that laws care about."""

from collections.abc import Callable

import pytest

from gnomon.audit import Subject


def trio(name: str) -> list[Subject]:
    """A causal model, a bidirectional one, and a causal one with a window, shared heads and other norms."""
    return [
        Subject.of(name),
        Subject.of(name, causal=False, seed=1),
        Subject.of(name, window=3, n_kv_heads=2, placement="post", norm="rmsnorm", tied=False, seed=2),
    ]


@pytest.fixture(scope="session")
def subjects() -> Callable[[str], list[Subject]]:
    return trio
