"""How time and memory grow with the length of a text, under every encoding; and with batch and beams.

python benchmarks/growth.py [--most 65536] [--seconds 10] [--store runs/growth.jsonl] [--pictures docs/images]

Each measurement is a process of its own, whose processor time and peak memory are noted in the store: an interrupted
run goes on where it stopped. A length whose time would be more than --seconds, by the growth so far, is left out.
"""

import argparse
import ctypes
import json
import math
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from bench import machine

import gnomon as gn
from gnomon.lab.settings import standard_encodings
from gnomon.plots.style import gnomon_style

SHORTEST, WIDTH = 512, 64
Entry = dict[str, Any]


def read(position: str, length: int) -> Callable[[], object]:
    """One layer of one head of 64 channels reads a text."""
    torch.manual_seed(0)
    model = gn.DecoderOnly(64, WIDTH, 1, 1, d_ff=WIDTH, position=position, max_positions=length).eval()
    ids = torch.randint(0, 64, (1, length))
    return lambda: model(ids)


def small() -> gn.DecoderOnly:
    """Two layers of width 128, with RoPE."""
    torch.manual_seed(0)
    return gn.DecoderOnly(512, 128, 2, 4, position="rope").eval()


def read_rows(rows: int) -> Callable[[], object]:
    """A batch of texts of 256 tokens."""
    model, ids = small(), torch.randint(0, 512, (rows, 256))
    return lambda: model(ids)


def write_beams(width: int) -> Callable[[], object]:
    """64 tokens after 64, by so many beams."""
    model, ids = small(), torch.randint(0, 512, (1, 64)).tolist()
    return lambda: model.generate(ids, strategy=gn.Beam(width, early_stopping="never"), max_new_tokens=64)


def measured(prepare: Callable[[], Callable[[], object]]) -> Entry:
    """Processor seconds and peak bytes of a piece of work in a child, above what the child began with."""
    incoming, outgoing = os.pipe()
    if not (child := os.fork()):
        os.close(incoming)
        with torch.no_grad():
            work = prepare()
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
            before, start = memory("VmHWM"), time.process_time()
            work()
            found = {"seconds": time.process_time() - start, "bytes": memory("VmHWM") - before}
        os.write(outgoing, json.dumps(found).encode())
        os._exit(0)
    os.close(outgoing)
    with os.fdopen(incoming) as pipe:
        told = pipe.read()
    os.waitpid(child, 0)
    return json.loads(told) if told else {"left out": "the process was killed: no memory"}


def memory(field: str) -> int:
    """Bytes that this process holds, or held at most."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def grown(series: str, sizes: list[int], make: Callable[[int], Callable[[], object]], a: argparse.Namespace) -> None:
    """Measure one size after another, as long as that is affordable, and note each."""
    done = {entry["size"]: entry for entry in entries(a.store) if entry["series"] == series}
    for size in sizes:
        if size in done:
            continue
        last = [done[n] for n in sorted(done) if n < size and "seconds" in done[n]][-2:]
        rate = max(1.0, last[1]["seconds"] / last[0]["seconds"]) if len(last) == 2 else 1.0
        if last and (expected := last[-1]["seconds"] * min(rate, 4.5)) > a.seconds:
            return print(f"{series}: {size} and more would take over {expected:.0f} s each, --seconds is {a.seconds:g}")
        done[size] = {"series": series, "size": size, **measured(lambda size=size: make(size))}
        with a.store.open("a", encoding="utf-8") as file:
            file.write(json.dumps(done[size]) + "\n")
    return None


def entries(store: Path) -> Iterator[Entry]:
    """What was measured so far; a line that was cut off is measured again."""
    for line in store.read_text(encoding="utf-8").splitlines() if store.exists() else []:
        try:
            yield json.loads(line)
        except json.JSONDecodeError:
            continue


def slope(points: list[tuple[int, float]]) -> float:
    """The exponent of growth over the last two doublings."""
    (n, y), (m, z) = points[-min(3, len(points))], points[-1]
    return math.log(max(z, 1) / max(y, 1)) / math.log(m / n) if m > n and y > 0 else float("nan")


def table(found: dict[str, list[Entry]], unit: str) -> None:
    """Print the largest size of each series, its time and memory, and both exponents."""
    print(
        f"\n{'':18s}{unit:>10s}{'time':>12s}{'memory':>12s}   exponents of time and memory over the last two doublings"
    )
    for name, own in found.items():
        own = [entry for entry in sorted(own, key=lambda entry: entry["size"]) if "seconds" in entry]
        both = [
            slope([(entry["size"], entry[key] * by) for entry in own]) for key, by in (("seconds", 1e6), ("bytes", 1))
        ]
        last = own[-1]
        time_, size = f"{last['seconds']:.2f} s", f"{last['bytes'] / 2**20:.0f} MiB"
        print(f"{name:18s}{last['size']:10d}{time_:>12s}{size:>12s}   {both[0]:.2f}  {both[1]:.2f}")


def draw(found: dict[str, list[Entry]], along: str, file: Path) -> None:
    """Time and peak memory against size, both axes logarithmic."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullFormatter, NullLocator

    with gnomon_style():
        figure = Figure(figsize=(10, 5.4), layout="constrained")
        colours = [colormaps["tab20"](i % 20) for i in range(len(found))]
        for axes, (key, label, by) in zip(
            figure.subplots(1, 2),
            (("seconds", "processor time (s)", 1), ("bytes", "peak memory (MiB)", 2**-20)),
            strict=True,
        ):
            ends = []
            for own, colour in zip(found.values(), colours, strict=True):
                points = sorted((entry["size"], entry[key] * by) for entry in own if key in entry)
                axes.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=2.5, linewidth=1.3)
                ends.append(points[-1])
            axes.set(xscale="log", yscale="log", xlabel=along, title=label)
            axes.set_xticks(sorted({entry["size"] for own in found.values() for entry in own}))
            axes.xaxis.set_major_formatter(lambda x, _: f"{int(x)}")
            axes.xaxis.set_minor_locator(NullLocator())
            axes.yaxis.set_major_formatter(lambda y, _: f"{y:g}")
            axes.yaxis.set_minor_formatter(NullFormatter())
            axes.tick_params(axis="x", rotation=45)
        figure.legend(figure.axes[0].lines, list(found), loc="outside right upper", fontsize=8, frameon=False)
        figure.savefig(file, dpi=110)


def main() -> None:
    """Measure what is missing, print the tables and draw the pictures."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--most", type=int, default=65536, help="the longest text, in tokens")
    ask.add_argument("--seconds", type=float, default=10, help="the most that one measurement may take")
    ask.add_argument("--store", type=Path, default=Path("runs/growth.jsonl"))
    ask.add_argument("--pictures", type=Path, default=Path(__file__).parents[1] / "docs" / "images")
    a = ask.parse_args()
    torch.set_num_threads(1)
    a.store.parent.mkdir(parents=True, exist_ok=True)
    print(machine())
    lengths = [SHORTEST * 2**n for n in range(32) if SHORTEST * 2**n <= a.most]
    with torch.no_grad():
        for name in standard_encodings():
            read(name, 128)()  # what is set up once belongs to no measurement
    for name in standard_encodings():
        grown(f"length {name}", lengths, lambda size, name=name: read(name, size), a)
    grown("batch", [1, 2, 4, 8, 16, 32, 64], read_rows, a)
    grown("beams", [1, 2, 4, 8, 16, 32], write_beams, a)
    found: dict[str, list[Entry]] = {}
    for entry in entries(a.store):
        found.setdefault(entry["series"], []).append(entry)
    by_length = {name.removeprefix("length "): own for name, own in found.items() if name.startswith("length ")}
    others = {name: own for name, own in found.items() if not name.startswith("length ")}
    table(by_length, "tokens")
    table(others, "rows")
    draw(by_length, "tokens", a.pictures / "growth.png")
    draw(others, "texts read at once, or beams", a.pictures / "growth_rows.png")


if __name__ == "__main__":
    main()
