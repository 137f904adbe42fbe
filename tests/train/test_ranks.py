"""N processes take the step of one, whole models or shares of them, and what one number saved another reads."""

import os
import shutil
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch import distributed as dist

from gnomon.checkpoints import load
from gnomon.checkpoints.native import read_tensors
from gnomon.errors import BadInput, BadValue
from gnomon.train import Windows, read_metrics, read_state, resume, train
from gnomon.train.ranks import Lost, Ranks
from gnomon.train.run import Run
from gnomon.train.whole import whole_tensor

pytestmark = [
    pytest.mark.usefixtures("no_pictures"),
    pytest.mark.skipif(not dist.is_available() or sys.platform == "win32", reason="needs gloo and fork"),
]
FSDP = {"parallel": "fsdp"}


def in_processes(n: int, work: Callable[[], None], expected: int = 0) -> None:
    """Do something in n processes that know each other; each must end with the code that is expected."""
    store = tempfile.mktemp()
    children = []
    for rank in range(n):
        if (child := os.fork()) == 0:
            code = 1
            try:
                torch.set_num_threads(1)  # the parent's other threads have not come along
                dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=n)
                work()
                code = 0
            except Lost:
                code = 7
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(code)
        children.append(child)
    ended = [os.waitpid(child, 0)[1] for child in children]
    codes = [os.waitstatus_to_exitcode(status) for status in ended]
    assert [code for code in codes if code != -signal.SIGKILL] == [expected] * (n - codes.count(-signal.SIGKILL))


@pytest.fixture
def in_float64(config) -> Callable:
    """A config in which sums in another order differ by nothing to speak of."""
    return lambda **changes: config(**({"steps": 4, "batch_size": 8, "dtype": "float64"} | changes))


def difference(one: Path, other: Path) -> float:
    """The largest difference of a weight."""
    ours, theirs = (read_tensors(folder / "model.safetensors")[0] for folder in (one, other))
    assert ours.keys() == theirs.keys()
    return max(float((ours[name] - theirs[name]).abs().max()) for name in ours)


def logged(folder: Path) -> list[float]:
    return [line["loss"] for line in read_metrics(folder / "metrics.jsonl") if "loss" in line]


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
@pytest.mark.parametrize("n", [2, 4])
def test_n_processes_train_as_one(text, build, in_float64, tmp_path, parallel, n):
    """Tied weights, a learned table, pieces of a batch, an average of the weights, rows that do not divide evenly."""
    changes = {"accumulate": 2, "ema": 0.9, "batch_size": 11, "eval_every": 2, "keep_best": True}
    one, several = in_float64(**changes), in_float64(**changes, parallel=parallel)
    model = {"position": "t5", "n_layers": 2}
    train(build(**model), text.task(one), one, tmp_path / "one", quiet=True)
    in_processes(n, lambda: train(build(**model), text.task(several), several, tmp_path / "n", quiet=True) and None)
    for part in ("", "average", "best"):
        assert difference(tmp_path / "one" / part, tmp_path / "n" / part) < 1e-6
    assert logged(tmp_path / "n") == pytest.approx(logged(tmp_path / "one"), abs=1e-9)
    assert load(tmp_path / "n").tied


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_n_processes_have_the_gradient_of_one(text, build, in_float64, tmp_path, parallel):
    """Which an optimizer that divides by its size would not show."""
    ran = in_float64(clip=None, accumulate=2, batch_size=7, parallel=parallel)
    one = Run(build(), text.task(ran), ran, tmp_path / "run", {})
    one.step(0)
    want = {name: p.grad for name, p in one.inner.named_parameters()}

    def work():
        run = Run(build(), text.task(ran), ran, tmp_path / "run", {})
        run.step(0)
        for name, p in run.inner.named_parameters():
            assert torch.allclose(whole_tensor(p.grad), want[name], rtol=1e-9, atol=1e-12), name

    in_processes(2, work)


@pytest.mark.slow
def test_shares_that_are_damaged_are_named(text, build, in_float64, tmp_path):
    ran = in_float64(steps=2, **FSDP)
    in_processes(2, lambda: train(build(), text.task(ran), ran, tmp_path / "run", quiet=True) and None)
    files = sorted((tmp_path / "run" / "training" / "step-2" / "shards").iterdir())
    assert len(files) == 2
    for harm in (lambda file: file.write_bytes(file.read_bytes()[:-40]), Path.unlink):
        folder = shutil.copytree(tmp_path / "run", tmp_path / f"{harm}")
        harm(folder / files[1].relative_to(tmp_path / "run"))
        with pytest.raises(BadInput, match=r"shards (is damaged|does not fit the model)"):
            resume(folder, text.task(ran), changes={"steps": 3}, quiet=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second"), [((2, "fsdp"), (4, "fsdp")), ((4, "fsdp"), (1, "ddp")), ((1, "ddp"), (2, "fsdp"))]
)
def test_a_run_goes_on_with_another_number_of_processes(text, build, in_float64, tmp_path, first, second):
    whole = in_float64(optimizer="adamw", ema=0.9)
    train(build(), text.task(whole), whole, tmp_path / "whole", quiet=True)

    def begin():
        half = in_float64(ema=0.9, parallel=first[1], save_every=2)
        run = Run(build(), text.task(half), half, tmp_path / "run", {})
        run.save(0)
        for number in range(2):
            run.step(number)
        run.save(2)

    def go_on():
        resume(tmp_path / "run", text.task(whole), changes={"parallel": second[1]}, quiet=True)

    for (n, _), work in ((first, begin), (second, go_on)):
        in_processes(n, work) if n > 1 else work()
    assert difference(tmp_path / "whole", tmp_path / "run") < 1e-6
    assert difference(tmp_path / "whole" / "average", tmp_path / "run" / "average") < 1e-6
    saved = tmp_path / "run" / "training" / "step-4"
    assert (saved / "shards").is_dir() is (second[1] == "fsdp")
    assert not [path for path in (tmp_path / "run").rglob("*") if path.suffix in (".metadata", ".distcp", ".pt")]


@pytest.mark.slow
def test_changes_of_low_rank_are_trained_by_shares_of_a_model_as_by_a_whole_one(text, build, in_float64, tmp_path):
    llama = {"norm": "rmsnorm", "gated": True, "bias": False, "activation": "silu"}
    one, several = (in_float64(lora_rank=2, parallel=parallel) for parallel in ("ddp", "fsdp"))
    train(build(**llama), text.task(one), one, tmp_path / "one", quiet=True)
    in_processes(2, lambda: train(build(**llama), text.task(several), several, tmp_path / "n", quiet=True) and None)
    assert difference(tmp_path / "one", tmp_path / "n") < 1e-6
    files = [read_tensors(tmp_path / n / "adapter" / "adapter_model.safetensors")[0] for n in ("one", "n")]
    assert files[0].keys() == files[1].keys()
    assert all(torch.allclose(files[0][name], files[1][name], atol=1e-6) for name in files[0])


@pytest.mark.slow
def test_shares_of_a_tied_model_stay_tied_and_tables_of_positions_wide(text, build, config, tmp_path):
    """In bfloat16, and with activations computed again."""

    def look():
        ran = config(steps=2, dtype="bfloat16", gradient_checkpointing=True, **FSDP)
        run = Run(build(position="rope", n_layers=2), text.task(ran), ran, tmp_path / "run", {})
        seen = []
        for block in run.inner.stack.blocks:
            block.register_forward_pre_hook(lambda module, args: seen.append(args[2]))
        run.step(0)
        assert seen
        tables = [tensor for given in seen for tensor in torch.utils._pytree.tree_leaves(given)]
        assert {t.dtype for t in tables if isinstance(t, torch.Tensor) and t.is_floating_point()} == {torch.float32}
        assert run.inner.head.weight is run.inner.input.tokens.weight
        held = sum(p.to_local().numel() for p in run.inner.parameters())
        assert held < 0.6 * sum(p.numel() for p in run.inner.parameters())

    in_processes(2, look)


@pytest.mark.slow
@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_the_end_of_one_process_ends_the_others_with_a_state_to_go_on_from(text, build, in_float64, tmp_path, parallel):
    ran = in_float64(save_every=1, parallel=parallel, steps=6)
    original = Run.step

    def step(self, number, *stop):
        if number == 3 and self.ranks.rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        return original(self, number, *stop)

    def work():
        Run.step = step
        train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)

    in_processes(2, work, expected=7)
    assert read_state(tmp_path / "run").step == 3
    resume(tmp_path / "run", text.task(ran), quiet=True)
    train(build(), text.task(ran), ran, tmp_path / "whole", quiet=True)
    assert difference(tmp_path / "whole", tmp_path / "run") < 1e-6


@pytest.mark.slow
def test_a_signal_to_one_process_saves_for_all(text, build, in_float64, tmp_path):
    ran, original = in_float64(steps=50), Run.step

    def step(self, number, *stop):
        if number == 2 and self.ranks.rank == 1:
            signal.raise_signal(signal.SIGTERM)
        return original(self, number, *stop)

    def work():
        Run.step = step
        with pytest.raises(KeyboardInterrupt):
            train(build(), text.task(ran), ran, tmp_path / "run", quiet=True)

    in_processes(2, work)
    assert read_state(tmp_path / "run").step == 3


def test_processes_have_different_rows_and_together_all(build):
    ids = torch.arange(14).reshape(7, 2)
    shares = [Ranks(rank, 3).share(Windows(ids), 2) for rank in range(3)]
    assert {len(share) for share in shares} == {2}
    rows = torch.cat([piece.ids for share in shares for piece in share])
    assert sorted(rows.tolist()) == ids.tolist()
    with pytest.raises(BadValue, match="2 rows cannot be shared by 3 processes of 1 pieces each: .*at least 3"):
        Ranks(0, 3).share(Windows(ids[:2]), 1)


def test_the_end_of_another_process_is_told_and_other_errors_are_not_hidden():
    with pytest.raises(BadInput, match="another process of this run has ended. Go on"), Ranks(0, 2).together("Go on"):
        raise RuntimeError("[gloo/transport/tcp/pair.cc:544] Connection closed by peer [127.0.0.1]:26310")
    with pytest.raises(RuntimeError, match="shapes"), Ranks(0, 2).together("Go on"):
        raise RuntimeError("shapes do not fit")
