"""`gnomon doctor`: what this machine has, what `auto` chooses here, and how fast it multiplies."""

import os
import platform
from importlib.metadata import version
from typing import Any

import click

from gnomon import __version__
from gnomon.cli.options import device_option, json_option, threads_option
from gnomon.cli.output import print_json

LIBRARIES = ("torch", "numpy", "safetensors", "tokenizers", "click", "tqdm", "matplotlib")
SIZE = 256  # of the square matrices whose product is timed


@click.command("doctor")
@device_option
@threads_option
@json_option
def command(device: str, threads: int | None, as_json: bool) -> None:
    """Say what this machine has, what `auto` chooses on it, and how fast it multiplies in each dtype."""
    report = examine(device, threads)
    if as_json:
        print_json(report)
    else:
        click.echo(_written(report))


def examine(device: str = "auto", threads: int | None = None) -> dict[str, Any]:
    """Gather versions, devices, cores, speeds of matrix products (GFLOP/s), text at hand and the cache folder."""
    from gnomon.data import Corpus, cache_folder
    from gnomon.device import available_devices, resolve_device, resolve_dtype, set_threads

    n_threads = set_threads(threads)
    chosen = resolve_device(device)
    text = Corpus.open("stdlib")
    cache = cache_folder()
    return {
        "gnomon": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "libraries": {name: version(name) for name in LIBRARIES},
        "devices": available_devices(),
        "device": str(chosen),
        "dtype": str(resolve_dtype("auto", chosen)).removeprefix("torch."),
        "cores": _cores(),
        "threads": n_threads,
        "matmul_size": SIZE,
        "matmul_gflops": _speeds(str(chosen)),
        "text": {"name": "stdlib", "files": len(text.documents), "bytes": text.n_bytes},
        "cache": {"folder": cache, "bytes": sum(f.stat().st_size for f in cache.rglob("*") if f.is_file())},
    }


def _cores() -> int:
    """Cores this process may use, which in a container are fewer than the machine has."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # macOS and Windows have no such limit
        return os.cpu_count() or 1


def _speeds(device: str) -> dict[str, float]:
    from gnomon.device import DTYPES, matmul_seconds

    names = [name for name in DTYPES if not (device == "mps" and name == "float64")]
    return {name: round(2e-9 * SIZE**3 / matmul_seconds(DTYPES[name], device, SIZE), 1) for name in names}


def _written(report: dict[str, Any]) -> str:
    speeds = "   ".join(f"{name} {speed:g}" for name, speed in report["matmul_gflops"].items())
    text, cache = report["text"], report["cache"]
    rows = {
        "gnomon": f"{report['gnomon']}, Python {report['python']}, {report['platform']}",
        "libraries": "   ".join(f"{name} {number}" for name, number in report["libraries"].items()),
        "devices": f"{', '.join(report['devices'])}; in use: {report['device']}",
        "threads": f"{report['threads']} on {report['cores']} cores",
        "products": f"{speeds}   GFLOP/s, {SIZE} x {SIZE}; auto is {report['dtype']}",
        "text": f"{text['name']}: {text['bytes'] / 1e6:.1f} MB in {text['files']} files, the default to train on",
        "cache": f"{cache['folder']}, {cache['bytes'] / 1e6:.1f} MB",
    }
    return "\n".join(f"{name:10} {value}" for name, value in rows.items())


__all__ = ["command", "examine"]
