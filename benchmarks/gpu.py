"""What a graphics processor could do here, and what it does: attention, rotation, training and writing on its roofline.

python benchmarks/gpu.py [--device cuda|mps|cpu] [--json FILE]

First the device is measured: how fast it copies memory, and how fast it multiplies in each dtype. A piece of work of F
floating-point operations over M bytes cannot take less than max(F / rate, M / bandwidth); what is printed is the time,
that limit, and the share of it that was reached. Nothing here has been run on such a device by the authors.
"""

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
from bench import machine

import gnomon as gn
from gnomon.device import available_devices, resolve_device
from gnomon.train import adamw, next_token_loss

DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}


def seconds(work: Callable[[], object], device: torch.device, rounds: int = 9) -> float:
    """The median of several rounds, each waited for."""
    work()
    taken = []
    for _ in range(rounds):
        wait(device)
        start = time.perf_counter()
        work()
        wait(device)
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def wait(device: torch.device) -> None:
    """Until all that was asked of the device is done."""
    if device.type != "cpu":
        getattr(torch, device.type).synchronize()


class Roofline:
    """Bytes and operations a second, as measured; and everything that was measured against them."""

    def __init__(self, device: torch.device, size: int) -> None:
        self.device, self.rows = device, []
        x = torch.empty(size * size * 4, device=device)
        self.bandwidth = 2 * x.nbytes / seconds(x.clone, device)
        self.rate: dict[str, float] = {}
        for name in self.dtypes():
            a = torch.ones(size, size, device=device, dtype=DTYPES[name])
            self.rate[name] = 2 * size**3 / seconds(lambda a=a: a @ a, device)

    def dtypes(self) -> list[str]:
        """Those that this device multiplies fast."""
        if self.device.type == "cpu":
            return ["float32"]
        emulated = self.device.type == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
        return [name for name in DTYPES if name != "bfloat16" or not emulated]

    def work(self, title: str, dtype: str, operations: float, moved: float, run: Callable[[], object]) -> None:
        """Time it, and print it beside its limit."""
        limit = max(operations / self.rate[dtype], moved / self.bandwidth)
        try:
            taken = seconds(run, self.device)
        except RuntimeError as error:  # a kernel that this device has not: one line, and on to the next
            print(f"  {title:44s} {dtype:9s} not here: {str(error).splitlines()[0][:80]}")
            return
        bound = "rate" if operations / self.rate[dtype] >= moved / self.bandwidth else "bandwidth"
        self.rows.append({"work": title, "dtype": dtype, "seconds": taken, "limit": limit, "bound": bound})
        shown = f"{taken * 1e3:9.3f} ms, limit {limit * 1e3:9.3f} ms ({bound})"
        print(f"  {title:44s} {dtype:9s} {shown} {limit / taken:5.0%}")


def attention(roof: Roofline, length: int) -> None:
    """8 heads of 64, forward: none, ALiBi and T5. Half of all pairs are seen, each costs 4 x 64 operations."""
    at = gn.Layout.dense(1, length, roof.device)
    for name in ("none", "alibi", "t5"):
        position = gn.positions.get(name).build(n_heads=8, d_head=64, d_model=512, causal=True).to(roof.device)
        for dtype in roof.rate:
            q, k, v = (torch.randn(1, 8, length, 64, device=roof.device, dtype=DTYPES[dtype]) for _ in range(3))
            operations, moved = 8 * length**2 / 2 * 4 * 64, 4 * q.nbytes
            with torch.no_grad():
                roof.work(
                    f"attention, {name}, {length} tokens",
                    dtype,
                    operations,
                    moved,
                    lambda q=q, k=k, v=v, position=position: gn.attend(q, k, v, position, at, at),
                )


def rotation(roof: Roofline, length: int) -> None:
    """Queries of 8 heads of 64 are read and written once."""
    rope, at = gn.positions.get("rope").build(d_head=64), gn.Layout.dense(1, length, roof.device)
    tables = rope.prepare(at)
    for dtype in roof.rate:
        q = torch.randn(1, 8, length, 64, device=roof.device, dtype=DTYPES[dtype])
        moved = 2 * q.nbytes + sum(x.nbytes for x in tables or ())
        roof.work(f"rotation, {length} tokens", dtype, 6 * q.numel(), moved, lambda q=q: rope.query(q, tables))


def training(roof: Roofline, length: int, rows: int) -> None:
    """A step of a 10 M decoder: 6 operations a weight and token, and attention's forward three and a half times."""
    model = gn.DecoderOnly(4096, 384, 5, 6, position="rope").to(roof.device)
    optimizer, ids = adamw(model, 1e-3), torch.randint(0, 4096, (rows, length), device=roof.device)
    weights = sum(p.numel() for p in model.parameters())
    operations = 6 * weights * rows * length + 3.5 * 5 * rows * length**2 / 2 * 4 * 384
    at = gn.Layout.dense(rows, length, roof.device)
    for dtype in roof.rate:
        if dtype == "float16":  # it would need its gradients scaled
            continue

        def step(dtype: str = dtype) -> None:
            with torch.autocast(roof.device.type, DTYPES[dtype], enabled=dtype != "float32"):
                loss = next_token_loss(model(ids, at), ids, at).mean
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()

        moved = weights * 4 * 8  # weights, gradients and both moments, read and written
        roof.work(f"training step, {rows} x {length} tokens, {weights / 1e6:.0f} M", dtype, operations, moved, step)


def writing(roof: Roofline) -> None:
    """A token after 64 others: each weight is read once."""
    for dtype in roof.rate:
        model = gn.DecoderOnly(4096, 384, 5, 6, position="rope").to(roof.device, DTYPES[dtype]).eval()
        weights = sum(p.numel() for p in model.parameters())
        cache, ids = model.cache(), torch.randint(0, 4096, (1, 64), device=roof.device)
        newest = ids[:, :1]
        with torch.no_grad():
            model(ids, cache=cache)

            def step(model: Any = model, cache: Any = cache, newest: Any = newest) -> None:
                model(newest, cache=cache)

            roof.work(f"one token, {weights / 1e6:.0f} M", dtype, 2 * weights, weights * DTYPES[dtype].itemsize, step)


def main() -> None:
    """Measure the device, then the work."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--device", default=available_devices()[0])
    ask.add_argument("--json", help="a file for the numbers")
    ask.add_argument("--small", action="store_true", help="sizes that any machine manages in seconds")
    a = ask.parse_args()
    device = resolve_device(a.device)
    if device.type == "cpu" and not a.small:
        return print("there is no graphics processor here; --device cpu --small tries the command out", file=sys.stderr)
    torch.manual_seed(0)
    roof = Roofline(device, 512 if a.small else 4096)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
    print(f"{machine()}\n{name}: copies {roof.bandwidth / 1e9:.0f} GB/s;", end=" ")
    print(", ".join(f"{dtype} {rate / 1e12:.2f} T/s" for dtype, rate in roof.rate.items()))
    for length in (256,) if a.small else (1024, 4096, 16384):
        attention(roof, length)
        rotation(roof, length)
    training(roof, 64 if a.small else 1024, 2 if a.small else 16)
    writing(roof)
    if a.json:
        with open(a.json, "w", encoding="utf-8") as file:
            json.dump({"device": name, "bandwidth": roof.bandwidth, "rate": roof.rate, "works": roof.rows}, file)
    return None


if __name__ == "__main__":
    main()
