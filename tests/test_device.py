"""Devices and dtypes by name; `auto` by measurement."""

import pytest
import torch

from gnomon import device as gnomon_device
from gnomon.device import DTYPES, available_devices, matmul_seconds, resolve_device, resolve_dtype, set_threads
from gnomon.errors import BadValue


@pytest.fixture
def _remeasure():
    gnomon_device._bfloat16_pays_on_this_cpu.cache_clear()
    yield
    gnomon_device._bfloat16_pays_on_this_cpu.cache_clear()


def test_auto_is_the_fastest_kind_there_is():
    assert str(resolve_device("auto")) == available_devices()[0]
    assert available_devices()[-1] == "cpu"


def test_an_unknown_device_names_the_nearest():
    with pytest.raises(BadValue, match="unknown device 'cud': did you mean 'cuda'"):
        resolve_device("cud")
    with pytest.raises(BadValue, match="unknown device 'cuda:x'"):
        resolve_device("cuda:x")


@pytest.mark.parametrize("name", ["cuda", "cuda:0", "mps"])
def test_an_absent_device_says_what_is_there(monkeypatch, name):
    monkeypatch.setattr(gnomon_device, "available_devices", lambda: ["cpu"])
    with pytest.raises(BadValue, match=f"'{name}' is not available here: this machine has cpu"):
        resolve_device(name)


def test_a_device_number_past_the_last_is_refused(monkeypatch):
    monkeypatch.setattr(gnomon_device, "available_devices", lambda: ["cuda", "cpu"])
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert resolve_device("cuda:1") == torch.device("cuda", 1)
    with pytest.raises(BadValue, match="cuda:0 to cuda:1"):
        resolve_device("cuda:2")


@pytest.mark.parametrize("name", DTYPES)
def test_a_dtype_by_name_is_itself(name):
    assert resolve_dtype(name, "cpu") is getattr(torch, name)


def test_an_unknown_dtype_names_the_nearest():
    with pytest.raises(BadValue, match="unknown dtype 'float3': did you mean 'float32'"):
        resolve_dtype("float3", "cpu")


def test_mps_has_no_float64_and_says_so():
    with pytest.raises(BadValue, match="float64 is not available on mps"):
        resolve_dtype("float64", "mps")


@pytest.mark.usefixtures("_remeasure")
@pytest.mark.parametrize(
    ("slower", "expected"),
    [(300.0, torch.float32), (1.01, torch.float32), (1.0, torch.bfloat16), (0.5, torch.bfloat16)],
)
def test_auto_takes_bfloat16_on_a_cpu_only_where_its_product_is_measured_as_fast(monkeypatch, slower, expected):
    def measured(dtype, size):
        return 1e-6 * size**3 * (slower if dtype is torch.bfloat16 else 1.0)

    monkeypatch.setattr(gnomon_device, "matmul_seconds", measured)
    assert resolve_dtype("auto", "cpu") is expected


@pytest.mark.usefixtures("_remeasure")
def test_where_bfloat16_is_emulated_the_larger_product_is_never_tried(monkeypatch):
    sizes = []

    def measured(dtype, size):
        sizes.append(size)
        return 300.0 if dtype is torch.bfloat16 else 1.0

    monkeypatch.setattr(gnomon_device, "matmul_seconds", measured)
    resolve_dtype("auto", "cpu")
    assert set(sizes) == {64}


@pytest.mark.usefixtures("_remeasure")
def test_auto_measures_once(monkeypatch):
    measured = []
    monkeypatch.setattr(gnomon_device, "matmul_seconds", lambda dtype, **_: measured.append(dtype) or 1.0)
    resolve_dtype("auto", "cpu")
    once = len(measured)
    for _ in range(3):
        resolve_dtype("auto", "cpu")
    assert len(measured) == once > 0


def test_auto_is_float32_where_nothing_is_known():
    assert resolve_dtype("auto", "mps") is torch.float32


def test_a_product_is_timed_by_its_fastest_after_the_first(monkeypatch):
    clock, products, durations = [0.0], [], [0.001, 0.009, 0.004, 0.006, 0.005, 0.003]

    def product(x):
        clock[0] += durations[len(products)]
        products.append(x)

    monkeypatch.setattr(gnomon_device.time, "perf_counter", lambda: clock[0])
    monkeypatch.setattr(gnomon_device, "_product_done", product)
    assert matmul_seconds(torch.float64, size=8, seconds=0.02) == pytest.approx(0.004)
    assert len(products) == 5  # the first and 9 + 4 + 6 + 5 ms: the limit is passed, so the 3 ms one is not tried
    assert {(x.shape, x.dtype) for x in products} == {((8, 8), torch.float64)}


def test_a_product_is_really_computed():
    assert gnomon_device._product_done(torch.ones(4, 4)) == 4.0


def test_threads_are_set_counted_and_never_below_one():
    before = torch.get_num_threads()
    try:
        for n in (2, 1):
            assert set_threads(n) == set_threads(None) == torch.get_num_threads() == n
        with pytest.raises(BadValue, match="between 1 and 1024, given 0"):
            set_threads(0)
    finally:
        torch.set_num_threads(before)
