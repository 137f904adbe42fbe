"""How much memory attention takes: as much as its tokens, never as much as the square of them.

Bytes are counted as torch allocates them, at sizes of a fraction of a second; at real ones the whole process is asked.
"""

import subprocess
import sys
from collections.abc import Callable

import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import gnomon as gn
from gnomon import Layout
from gnomon.attention import attend, kernels, ordered, stretches
from gnomon.positions import fire

pytestmark = pytest.mark.slow

H, T, C = 4, 256, 4
MATRIX = 4 * H * T * T  # bytes of one float32 score matrix
PLACES = {"dense": Layout.dense(1, T), "padded": Layout.padded(torch.arange(T)[None] >= 5)}


def most_bytes(run: Callable[[], object]) -> int:
    """Most bytes that torch held at once for what was allocated meanwhile."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        run()
    events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
    held, most = 0, 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        most = max(most, held)
    return most


def forward_and_backward(position: str, kind: str, kernel: str | None = None) -> int:
    """The most that one pass over the tokens takes, forward and backward."""
    module = gn.positions.get(position).build(d_model=H * C, d_head=C, n_heads=H, max_positions=T)
    q, k, v = (torch.randn(1, H, T, C, requires_grad=True) for _ in range(3))
    at, beside = PLACES[kind], None
    if module.acts == "attention":  # what a layer hands over besides
        x, layer = torch.randn(1, T, H * C), gn.MultiHeadAttention(H * C, H)
        beside = layer.content(x, module, module.of_layer(module.prepare_for(at, at), 0), at, 0, None)
    return most_bytes(lambda: attend(q, k, v, module, at, at, kernel=kernel, content=beside).square().sum().backward())


@pytest.mark.parametrize("kind", PLACES)
@pytest.mark.parametrize("position", gn.positions.names())
def test_no_kernel_holds_as_much_as_half_a_score_matrix(position, kind, monkeypatch):
    """With blocks of a 32nd of it. Its softmax and their gradients would take three times as much again."""
    monkeypatch.setattr(kernels, "BLOCK", H * T * T // 32)
    monkeypatch.setattr(stretches, "CACHED", H * T * T // 32)
    monkeypatch.setattr(ordered, "LEAST", 8)
    monkeypatch.setattr(fire, "PART", T)  # of a network of 32 units; it does not grow with the text
    assert forward_and_backward(position, kind) < MATRIX / 2


def test_the_dense_definition_is_seen_to_hold_several():
    assert forward_and_backward("alibi", "dense", "dense") > 3 * MATRIX


PROCESS = """
import resource, sys, torch
import gnomon as gn
from gnomon.attention import attend
torch.set_num_threads(1)
name, H, T = sys.argv[1], 2, int(sys.argv[3])
at = gn.Layout.padded(torch.arange(T)[None] >= 5) if sys.argv[2] == "padded" else gn.Layout.dense(1, T)
q, k, v = (torch.randn(1, H, T, 64, requires_grad=True) for _ in range(3))
position = gn.positions.get(name).build(d_model=64 * H, d_head=64, n_heads=H, max_positions=T)
small = [x[:, :, :64].detach().requires_grad_() for x in (q, k, v)]
where = at.tokens(slice(0, 64))
attend(*small, position, where, where).sum().backward()
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
attend(q, k, v, position, at, at).square().sum().backward()
assert all(x.grad.isfinite().all() for x in (q, k, v))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


@pytest.mark.parametrize(("position", "kind"), [("learned", "dense"), ("rope", "padded"), ("t5", "dense")])
def test_16384_tokens_take_less_than_a_gigabyte(position, kind):
    """One of each kernel, in blocks as large as they are. A float32 score matrix of two heads would take 2 GiB, its
    softmax and their gradients three times as much again."""
    code = [sys.executable, "-c", PROCESS, position, kind, "16384"]
    assert float(subprocess.run(code, capture_output=True, text=True, check=True).stdout) < 1024
