"""The explorer's server: where it listens, and what it says about it."""

import pytest

from gnomon.errors import BadInput
from gnomon.explorer.serve import bound, is_loopback


@pytest.mark.parametrize(
    ("host", "alone"),
    [
        ("127.0.0.1", True),
        ("localhost", True),
        ("::1", True),
        ("127.8.8.8", True),
        ("0.0.0.0", False),
        ("::", False),
        ("192.168.1.2", False),
        ("example.org", False),
    ],
)
def test_only_loopback_needs_no_token(host, alone):
    assert is_loopback(host) is alone


def test_a_port_that_is_taken_is_an_error_that_says_what_to_do():
    refused = pytest.raises(BadInput, match=r"cannot listen at 127.0.0.1, port \d+: .*Give another --port")
    with bound("127.0.0.1", 0) as first, refused:
        bound("127.0.0.1", first.getsockname()[1])


def test_an_address_of_another_machine_is_an_error():
    with pytest.raises(BadInput, match=r"cannot listen at 203.0.113.1"):
        bound("203.0.113.1", 0)
