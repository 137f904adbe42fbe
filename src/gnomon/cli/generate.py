"""`gnomon generate RUN`: let a trained model go on from a prompt, and watch it write."""

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.failures import INTERRUPTED
from gnomon.cli.options import (
    device_option,
    import_option,
    json_option,
    quiet_option,
    seed_option,
    threads_option,
)
from gnomon.cli.output import print_json
from gnomon.errors import BadInput, BadValue

if TYPE_CHECKING:
    from gnomon.generate import LanguageModel, Token

ALIASES = {"max-tokens": "max-new-tokens", "temp": "temperature"}  # what other programs call them; help shows ours


@click.command("generate", context_settings={"token_normalize_func": lambda name: ALIASES.get(name, name)})
@click.argument("run", type=click.Path(path_type=Path))
@click.option("--prompt", "-p", help="What to go on from; '' starts a new document.  [default: standard input]")
@click.option("--prompt-file", type=click.Path(path_type=Path), help="Read it from a file; - is standard input.")
@click.option("--max-new-tokens", type=click.IntRange(min=1), default=128, show_default=True, help="Longest text.")
@click.option("--temperature", "-t", type=float, default=0.8, show_default=True, help="0 takes the best token always.")
@click.option("--top-k", type=int, help="Draw from the k best tokens only.")
@click.option("--top-p", type=float, help="Draw from the fewest tokens whose probabilities reach p in sum.")
@click.option("--min-p", type=float, help="Draw from tokens at least p times as probable as the best.")
@click.option("--stop", multiple=True, help="End before this text; may be repeated.")
@click.option("--n", "-n", "count", type=click.IntRange(min=1), default=1, show_default=True, help="Texts to write.")
@seed_option
@device_option
@click.option(
    "--dtype",
    type=click.Choice(["saved", "auto", "float32", "bfloat16", "float16", "float64"]),
    default="saved",
    show_default=True,
    help="Floating type of the products; saved: that of the weights; auto: what this machine is fastest at.",
)
@threads_option
@import_option
@json_option
@quiet_option
@click.pass_context
def command(
    ctx: click.Context,
    run: Path,
    prompt: str | None,
    prompt_file: Path | None,
    max_new_tokens: int,
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    min_p: float | None,
    stop: tuple[str, ...],
    count: int,
    seed: int,
    device: str,
    dtype: str,
    threads: int | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Let the model in the folder RUN go on from a prompt.

    The prompt is --prompt, a file, or standard input, without the line end that closes the last two. Text number i,
    counted from 0, is drawn with the seed SEED + i. With --quiet only what is new is printed.
    """
    from gnomon.generate import Sample, generate

    strategy = Sample(temperature, top_k, top_p, min_p)  # what is wrong with these is said before anything is read
    text = _prompt(prompt, prompt_file)
    model = _model(run, device, dtype, threads)
    page = Page(text, count, seed, live=not as_json, quiet=quiet)
    try:
        generate(
            model, [text] * count, strategy=strategy, max_new_tokens=max_new_tokens, seeds=seed, stop=stop,
            on_token=page.take,
        )  # fmt: skip
    except KeyboardInterrupt:
        page.close()
        if not as_json:
            raise
        print_json(page.report())
        ctx.exit(INTERRUPTED)
    page.close()
    if as_json:
        print_json(page.report())


class Page:
    """What has been written so far. The first text is shown while it grows, the others after it."""

    def __init__(self, prompt: str, count: int, seed: int, live: bool, quiet: bool) -> None:
        self.prompt, self.seed, self.live, self.quiet = prompt, seed, live, quiet
        self.tokens: list[list[Token]] = [[] for _ in range(count)]
        self.started = time.perf_counter()

    def take(self, token: "Token") -> None:
        """One more token of one of the texts."""
        if token.row == 0:
            self._show(token.piece if self.tokens[0] else self._head(0) + token.piece)
        self.tokens[token.row].append(token)

    def close(self) -> None:
        """Show the other texts, and how long it took."""
        if not self.tokens[0]:
            return  # interrupted before the first token
        self._show("\n")
        for row in range(1, len(self.tokens)):
            self._show(self._head(row) + self.text(row) + "\n")
        if self.live and not self.quiet:
            n, seconds = sum(map(len, self.tokens)), time.perf_counter() - self.started
            ends = ", ".join(sorted({self.reason(row) for row in range(len(self.tokens))}))
            click.echo(f"{n} tokens in {seconds:.1f} s, {n / seconds:.0f} tokens/s; ended by {ends}", err=True)

    def text(self, row: int) -> str:
        """What has been written of this text."""
        return "".join(token.piece for token in self.tokens[row])

    def reason(self, row: int) -> str:
        """Why this text ended."""
        return (self.tokens[row][-1].finish_reason if self.tokens[row] else None) or "interruption"

    def report(self) -> dict[str, Any]:
        """For programs."""
        texts = [
            {
                "text": self.text(row),
                "ids": [token.id for token in tokens],
                "logprobs": [token.logprob for token in tokens],
                "finish_reason": self.reason(row),
                "seed": self.seed + row,
            }
            for row, tokens in enumerate(self.tokens)
        ]
        return {"prompt": self.prompt, "texts": texts, "seconds": time.perf_counter() - self.started}

    def _head(self, row: int) -> str:
        if self.quiet:
            return ""
        many = len(self.tokens) > 1
        return (f"--- {row + 1} of {len(self.tokens)}, seed {self.seed + row} ---\n" if many else "") + self.prompt

    def _show(self, text: str) -> None:
        if self.live and text:
            click.echo(text, nl=False)


def _prompt(prompt: str | None, file: Path | None) -> str:
    if prompt is not None and file is not None:
        raise BadValue("there are two prompts: give --prompt or --prompt-file, not both")
    if prompt is not None:
        return prompt
    if file is None and sys.stdin.isatty():
        raise BadValue("there is no prompt: give --prompt TEXT or --prompt-file FILE, or pipe a text in")
    content = file.read_bytes() if file is not None and str(file) != "-" else sys.stdin.buffer.read()
    try:
        return content.decode("utf-8").removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        source = f"the prompt from {'standard input' if file is None else file}"
        raise BadInput(f"{source} is not UTF-8 text: {error.reason} at byte {error.start}") from error


def _model(run: Path, device: str, dtype: str, threads: int | None) -> "LanguageModel":
    from gnomon.checkpoints import load
    from gnomon.device import set_threads
    from gnomon.models import Writer

    set_threads(threads)
    wanted = None if dtype == "saved" else dtype
    model = load(run, device=device, dtype=wanted, kind=Writer)  # type: ignore[type-abstract]
    if model.tokenizer is None:
        raise BadInput(f"{run} holds no tokenizer, so its model can neither read a prompt nor write a text")
    return model


__all__ = ["command"]
