"""`gnomon doctor`: what this machine has, what `auto` chooses here, and how fast it multiplies."""

import os
import platform
from importlib.metadata import version
from typing import Any

import click

from gnomon import __version__
from gnomon.cli.options import device_option, json_option, lang_option, threads_option
from gnomon.cli.output import print_json
from gnomon.glossary import Words, words

LIBRARIES = ("torch", "numpy", "safetensors", "tokenizers", "click", "tqdm", "matplotlib")
SIZE = 256  # of the square matrices whose product is timed


@click.command("doctor")
@device_option
@threads_option
@lang_option
@json_option
def command(device: str, threads: int | None, lang: str, as_json: bool) -> None:
    """Say what this machine has, what `auto` chooses on it, and how fast it multiplies in each dtype."""
    report = examine(device, threads)
    if as_json:
        print_json(report)
    else:
        click.echo(_text(report, words("doctor", lang)))


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


def _text(report: dict[str, Any], w: Words) -> str:
    speeds = "   ".join(f"{name} {w.number(speed, 'g')}" for name, speed in report["matmul_gflops"].items())
    text, cache = report["text"], report["cache"]
    rows = {
        "gnomon": f"{report['gnomon']}, Python {report['python']}, {report['platform']}",
        w("libraries"): "   ".join(f"{name} {number}" for name, number in report["libraries"].items()),
        w("devices"): w("in_use", devices=", ".join(report["devices"]), device=report["device"]),
        w("threads"): w("on_cores", threads=report["threads"], cores=report["cores"]),
        w("products"): w("speeds", speeds=speeds, size=SIZE, dtype=report["dtype"]),
        w("text"): w("text_is", name=text["name"], megabytes=text["bytes"] / 1e6, files=text["files"]),
        w("cache"): f"{cache['folder']}, {w.number(cache['bytes'] / 1e6, '.1f')} MB",
    }
    width = max(10, *map(len, rows))
    return "\n".join(f"{name:{width}} {value}" for name, value in rows.items())


__all__ = ["command", "examine"]
