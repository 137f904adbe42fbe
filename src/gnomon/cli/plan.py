"""`gnomon plan PRESET`: parameters by part, tied and untied, and the cache by context, before anything is built."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.config import plain_settings
from gnomon.cli.options import TOKENS, config_options, import_option, json_option, lang_option
from gnomon.cli.output import print_json
from gnomon.cli.plan_steps import hardware_report, plan_steps, steps_report, steps_text
from gnomon.cli.sizes import row, size
from gnomon.errors import BadValue
from gnomon.glossary import Words, words

if TYPE_CHECKING:
    from gnomon.models import ModelConfig
    from gnomon.models.plan import Plan

DTYPES = ("float32", "bfloat16")


@click.command("plan")
@click.argument("preset")
@click.option("--position", help="Count it with this encoding instead of the preset's.")
@click.option("--context", "contexts", type=click.IntRange(min=1), multiple=True, help="A context length; repeatable.")
@click.option("--batch", type=click.IntRange(min=1), default=1, show_default=True, help="Rows in the cache or a step.")
@click.option("--length", type=TOKENS, help="Plan a training step on rows of so many tokens, too.")
@click.option("--dtype", type=click.Choice(DTYPES), default="float32", show_default=True, help="Of a step's products.")
@click.option("--device", "hardware", metavar="LINE", help="With --length: one device, as 80GB,400TFLOPS,link=50GB/s.")
@click.option("--devices", type=TOKENS, help="How many there are; by default as many as hold the states.")
@click.option("--tokens", type=click.FloatRange(min=1), help="With --device: tokens to train on, such as 2e12.")
@click.option(
    "--utilisation",
    type=click.FloatRange(0, 1, min_open=True),
    default=0.4,
    show_default=True,
    help="Share of the device's peak that the products reach.",
)
@click.option("--against", multiple=True, help="Another encoding to compare the costs with; repeatable.")
@config_options("d_model=256")
@import_option
@lang_option
@json_option
def command(
    preset: str,
    position: str | None,
    contexts: tuple[int, ...],
    batch: int,
    length: int | None,
    dtype: str,
    hardware: str | None,
    devices: int | None,
    tokens: float | None,
    utilisation: float,
    against: tuple[str, ...],
    config_file: Path | None,
    settings: tuple[str, ...],
    lang: str,
    as_json: bool,
) -> None:
    """Count the parameters of PRESET by part, tied and untied, and its cache by context length.

    PRESET is mini-gpt, mini-llama, gpt2-small, vaswani-base or bert-base, or a model: a run folder, a file, a name
    that gnomon pull knows. --length adds memory and operations of a training step, --device time and devices. Any
    setting can be changed: --set d_model=256 --set n_kv_heads=1; gnomon settings lists them. Nothing is allocated, so
    any size can be planned.
    """
    from gnomon.models.plan import plan

    changes = plain_settings(config_file, settings)
    if position is not None:
        options = changes.get("position")
        changes["position"] = {**options, "name": position} if isinstance(options, Mapping) else position
    if hardware is not None and length is None:
        raise BadValue("--device plans a training step, so it needs the tokens of a row: add --length 1024")
    if hardware is None and (devices or tokens):
        raise BadValue("--devices and --tokens need a device: add --device 80GB,400TFLOPS")
    planned = plan(_config(preset), **changes)
    report = _report(preset, planned, list(contexts) or planned.contexts(), batch)
    steps = plan_steps(planned, against, batch, length, dtype)
    report |= steps_report(steps)
    if hardware is not None:
        report["hardware"] = hardware_report(steps[0], hardware, devices, tokens, utilisation)
    if as_json:
        print_json(report)
    else:
        w = words("plan", lang)
        click.echo("\n".join([_text(planned, report, w), *steps_text(report, w)]))


def _config(given: str) -> "ModelConfig | str":
    """The config of a model that is on this machine; any other name is a preset's."""
    from gnomon.checkpoints import load
    from gnomon.checkpoints.pull import pulled_models
    from gnomon.models.presets import PRESETS

    if given not in PRESETS and (Path(given).expanduser().exists() or given in pulled_models()):
        return load(given).config
    return given


def _report(preset: str, planned: "Plan", contexts: list[int], batch: int) -> dict[str, Any]:
    import torch

    types = {name: getattr(torch, name) for name in DTYPES}
    return {
        "preset": preset,
        "config": planned.config.to_dict(),
        "parameters": {**planned.parts, "input_layer": planned.input_layer, "total": planned.total},
        "tied": planned.tied,
        "untied": planned.untied,
        "weights_bytes": {name: planned.total * dtype.itemsize for name, dtype in types.items()},
        "batch": batch,
        "cache_numbers_per_token": planned.numbers_per_token,
        "cache_bytes": [
            {"context": n, **{name: planned.cache_bytes(n, dtype, batch) for name, dtype in types.items()}}
            for n in contexts
            if planned.numbers_per_token
        ],
    }


def _text(planned: "Plan", report: dict[str, Any], w: Words) -> str:
    c, parameters = planned.config, report["parameters"]
    parts = {name: n for name, n in parameters.items() if name not in ("input_layer", "total") and n}
    lines = [
        w(
            "model",
            preset=report["preset"],
            depth=_depth(c),
            width=c.d_model,
            heads=c.n_heads,
            tokens=c.vocab_size,
            position=_encoding_name(c),
            head=_head(c, w),
        ),
        "",
        *(row(w(name), w.number(n)) for name, n in parts.items()),
        row(w("total"), w.number(parameters["total"])) + f"   {w('parameters')}",
        row(w("input_layer"), w.number(parameters["input_layer"])) + f"   {w('of_them')}",
        "",
        *_untying_cost(planned, w),
        row("", *DTYPES),
        row(w("weights"), *_sizes(report["weights_bytes"], w)),
        *(row(w("cache", context=line["context"]), *_sizes(line, w)) for line in report["cache_bytes"]),
        "",
        _cache_line(planned, w),
    ]
    if report["batch"] > 1:
        lines.append(w("rows", batch=report["batch"]))
    if c.window is not None:
        lines.append(w("window", windows=_windows(c, w)))
    return "\n".join(lines)


def _depth(c: "ModelConfig") -> str:
    return f"{c.n_layers} + {c.depth}" if c.architecture == "encoder-decoder" else str(c.n_layers)


def _head(c: "ModelConfig", w: Words) -> str:
    over_words = c.head in ("tokens", "masked")
    return w("head_tied" if c.tied else "head_untied") if over_words else str(c.head)


def _windows(c: "ModelConfig", w: Words) -> str:
    return ", ".join(w("all") if window is None else w.number(window) for window in c.window_pattern)


def _untying_cost(planned: "Plan", w: Words) -> list[str]:
    """What a table for the head alone would cost; nothing where there is no head over the vocabulary."""
    if planned.tied == planned.untied:
        return []
    c, more = planned.config, w.number(planned.untied / planned.tied - 1, "+.1%")
    shared = c.architecture == "encoder-decoder" and c.source_vocab_size is None
    return [
        row(w("tied"), w.number(planned.tied)) + f"   {w('tied_note')}",
        row(w("untied"), w.number(planned.untied)) + f"   {more}, {w('untied_shared' if shared else 'untied_note')}",
        "",
    ]


def _cache_line(planned: "Plan", w: Words) -> str:
    if planned.numbers_per_token == 0:
        return w("no_cache")
    key = "a_token" if planned.config.architecture == "decoder-only" else "two_tokens"
    return w(key, numbers=planned.numbers_per_token)


def _encoding_name(c: "ModelConfig") -> str:
    """The encoding as one would choose it; several are listed by layer."""
    return ", ".join(repr(spec) if spec.options else spec.name for spec in c.specs)


def _sizes(held: Mapping[str, int], w: Words) -> list[str]:
    return [size(held[dtype], w) for dtype in DTYPES]


__all__ = ["command", "size"]
