"""The log of a run holds what its weights have seen, no more."""

import json

import matplotlib.image
import pytest

from gnomon.train import plot_loss, read_metrics
from gnomon.train.metrics import MetricsLog, smooth


@pytest.fixture
def path(tmp_path):
    log = MetricsLog(tmp_path / "metrics.jsonl", until=0)
    for step in (1, 2, 3):
        log.write(step, loss=1 / step)
    log.write(3, valid_loss=0.1 + 0.2)
    log.close()
    return tmp_path / "metrics.jsonl"


def test_numbers_come_back_bit_for_bit(path):
    assert read_metrics(path)[-2:] == [{"step": 3, "loss": 1 / 3}, {"step": 3, "valid_loss": 0.1 + 0.2}]


def test_a_line_is_there_as_soon_as_it_is_written(path):
    log = MetricsLog(path, until=3)
    log.write(4, loss=0.5)
    assert json.loads(path.read_text().splitlines()[-1]) == {"step": 4, "loss": 0.5}
    log.close()


def test_going_on_from_a_step_forgets_what_came_after_it(path):
    log = MetricsLog(path, until=2)
    log.write(3, loss=7.0)
    log.close()
    assert [(line["step"], line["loss"]) for line in read_metrics(path)] == [(1, 1.0), (2, 0.5), (3, 7.0)]


def test_a_last_line_cut_off_by_a_kill_is_left_out(path):
    path.write_bytes(path.read_bytes()[:-9])
    assert [line["step"] for line in read_metrics(path)] == [1, 2, 3]
    MetricsLog(path, until=9).close()
    assert path.read_text().count("\n") == 3


def test_no_file_is_no_lines(tmp_path):
    assert read_metrics(tmp_path / "none.jsonl") == []


def test_smoothing_keeps_a_straight_line_straight_and_calms_a_saw():
    assert smooth([3.0 * i for i in range(50)]) == pytest.approx([3.0 * i for i in range(50)])
    saw = smooth([float(i % 2) for i in range(50)])
    assert max(abs(y - 0.5) for y in saw[10:-10]) < 0.03
    assert smooth([]) == []


@pytest.mark.parametrize("lines", [3, 0])
def test_the_plot_is_a_picture_whatever_was_logged(path, tmp_path, lines):
    plot_loss(read_metrics(path)[:lines], tmp_path / "loss.png")
    assert matplotlib.image.imread(tmp_path / "loss.png").std() > 0.01
