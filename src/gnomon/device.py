"""Where tensors live and in which floating type they are multiplied: names to torch's objects, `auto` by measurement.

A processor without the instructions still multiplies bfloat16, two orders of magnitude slower than float32, and says
nothing about it. So on a CPU `auto` takes bfloat16 only where a product was timed and was at least as fast.
"""

import time
from functools import cache

import torch
from torch import Tensor

from gnomon.errors import BadValue, unknown

MOST_THREADS = 1024  # beyond this OpenMP crashes instead of complaining
DTYPES = {
    "float32": torch.float32,
    "bfloat16": torch.bfloat16,
    "float16": torch.float16,
    "float64": torch.float64,
}


def available_devices() -> list[str]:
    """Name the kinds of device this machine has, the fastest first: a sublist of `["cuda", "mps", "cpu"]`."""
    cuda = ["cuda"] if torch.cuda.is_available() else []
    mps = ["mps"] if torch.backends.mps.is_available() else []
    return [*cuda, *mps, "cpu"]


def resolve_device(name: str = "auto") -> torch.device:
    """Turn `auto`, `cpu`, `cuda`, `cuda:1` or `mps` into a device; `auto` is the fastest kind there is.

    Raises BadValue for a name that is no device, and for one that this machine does not have.
    """
    here = available_devices()
    if name == "auto":
        return torch.device(here[0])
    kind, _, index = name.partition(":")
    if kind not in ("cpu", "cuda", "mps") or (index and not index.isdecimal()):
        raise unknown("device", name, ["auto", "cpu", "cuda", "mps"])
    if kind not in here:
        raise BadValue(
            f"device {name!r} is not available here: this machine has {', '.join(here)}. Choose one, or auto."
        )
    count = torch.cuda.device_count() if kind == "cuda" else 1
    if int(index or 0) >= count:
        raise BadValue(f"device {name!r} is not available here: there is {kind}:0 to {kind}:{count - 1}.")
    return torch.device(name)


def resolve_dtype(name: str = "auto", device: torch.device | str = "cpu") -> torch.dtype:
    """Turn `auto`, `float32`, `bfloat16`, `float16` or `float64` into a dtype for products on `device`.

    `auto` is bfloat16 on a CUDA device that supports it and on a CPU that was measured to multiply it at least as fast
    as float32, and float32 everywhere else. Raises BadValue for another name, and for float64 on MPS, which has none.
    """
    device = torch.device(device)
    if name == "auto":
        return torch.bfloat16 if _bfloat16_pays(device) else torch.float32
    if name not in DTYPES:
        raise unknown("dtype", name, ["auto", *DTYPES])
    if name == "float64" and device.type == "mps":
        raise BadValue("float64 is not available on mps: choose float32, float16 or bfloat16, or the device cpu.")
    return DTYPES[name]


def autocast_type(device: torch.device) -> str:
    """The kind of device whose autocast is meant: tensors that hold no numbers (meta) are under none."""
    return "cpu" if device.type == "meta" else device.type


def set_threads(n: int | None) -> int:
    """Let torch compute on `n` threads, or leave it as it is for None; returns how many it uses.

    Raises BadValue where n is below 1, or more than any machine has use for.
    """
    if n is not None:
        if not 1 <= n <= MOST_THREADS:
            raise BadValue(f"threads must be between 1 and {MOST_THREADS}, given {n}.")
        torch.set_num_threads(n)
    return torch.get_num_threads()


def _bfloat16_pays(device: torch.device) -> bool:
    if device.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return device.type == "cpu" and _bfloat16_pays_on_this_cpu()


@cache
def _bfloat16_pays_on_this_cpu() -> bool:
    # The small product first: where bfloat16 is emulated, it tells in milliseconds what the larger takes a second for.
    return all(
        matmul_seconds(torch.bfloat16, size=size) <= slack * matmul_seconds(torch.float32, size=size)
        for size, slack in ((64, 4.0), (256, 1.0))
    )


def matmul_seconds(
    dtype: torch.dtype, device: torch.device | str = "cpu", size: int = 256, seconds: float = 0.02
) -> float:
    """Time one (size, size) @ (size, size) product: the least of as many as fit in `seconds`, and at least one."""
    x = torch.ones(size, size, device=device).to(dtype)
    best, started = float("inf"), time.perf_counter()
    _product_done(x)  # the first pays for what is set up once
    while best == float("inf") or time.perf_counter() - started < seconds:
        before = time.perf_counter()
        _product_done(x)
        best = min(best, time.perf_counter() - before)
    return best


def _product_done(x: Tensor) -> float:
    return (x @ x)[0, 0].item()  # reading a value waits for the device


__all__ = [
    "DTYPES",
    "autocast_type",
    "available_devices",
    "matmul_seconds",
    "resolve_device",
    "resolve_dtype",
    "set_threads",
]
