"""`gnomon convert MODEL --to hf|native|gguf -o OUT`: the same model in the files of other programs."""

from pathlib import Path
from typing import Any

import click

from gnomon.cli.options import TakesModel, import_option, json_option, lang_option
from gnomon.cli.output import print_json
from gnomon.glossary import words

PRECISIONS = ("float32", "float16", "bfloat16", "q8_0")


@click.command("convert", cls=TakesModel)
@click.argument("model")
@click.option("--to", type=click.Choice(["hf", "native", "gguf"]), required=True, help="Which files to write.")
@click.option("--output", "-o", type=click.Path(path_type=Path), required=True, help="A folder, or a .gguf file.")
@click.option(
    "--dtype",
    type=click.Choice(PRECISIONS),
    help="Of the weights; q8_0 is for gguf.  [default: as stored; gguf: float32]",
)
@click.option("--family", help="hf: the model_type to write.  [default: the first that can hold the model]")
@import_option
@lang_option
@json_option
def command(model: str, to: str, output: Path, dtype: str | None, family: str | None, lang: str, as_json: bool) -> None:
    """Write MODEL, with its tokenizer, in the files of another program.

    MODEL is a run folder, a Hugging Face folder, a hub name, a .gguf file or the name of a pulled model. Nothing is
    written where the files cannot say all that the model is; the error tells what would get lost. Nor is anything
    written over: OUT must not be there yet, or be an empty folder.
    """
    from gnomon.checkpoints import convert, load
    from gnomon.checkpoints.conversion import check_conversion

    kind: Any = to
    precision: Any = dtype
    check_conversion(output, to, dtype, family)
    loaded = load(model, dtype=None if to == "gguf" else dtype)
    written = convert(loaded, output, kind, precision, family)
    n = sum(weight.numel() for weight in loaded.parameters())
    if as_json:
        print_json({"model": model, "to": to, "output": written, "parameters": n})
        return
    click.echo(words("write", lang)("parameters", file=written, count=n, architecture=loaded.architecture))


__all__ = ["command"]
