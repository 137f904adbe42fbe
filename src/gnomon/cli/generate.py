"""`gnomon generate MODEL`: let a trained model go on from a prompt, or write about a source, and watch it write."""

import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.decoding import (
    GroupedCommand,
    check_options,
    constraints_of,
    decoding_options,
    eos_ids,
    language_id,
    strategy_of,
)
from gnomon.cli.failures import INTERRUPTED
from gnomon.cli.live_text import LiveText
from gnomon.cli.options import (
    also_called,
    device_option,
    import_option,
    json_option,
    lang_option,
    quiet_option,
    saved_dtype_option,
    seed_option,
    threads_option,
    weights_option,
)
from gnomon.cli.output import print_json
from gnomon.errors import BadInput, BadValue, GnomonError
from gnomon.glossary import words

if TYPE_CHECKING:
    from gnomon.generate import Constraints, Strategy
    from gnomon.models import Writer
    from gnomon.native import Kind


@click.command("generate", cls=GroupedCommand, context_settings=also_called)
@click.argument("run", metavar="MODEL", type=click.Path(path_type=Path))
@click.option("--prompt", "-p", help="What to go on from; '' starts a new document.  [default: standard input]")
@click.option("--prompt-file", type=click.Path(path_type=Path), help="Read it from a file; - is standard input.")
@click.option("--source", "-s", help="What an encoder-decoder is to write about, such as a text to translate.")
@click.option("--target-lang", metavar="CODE", help="The language to translate into, such as spa_Latn.")
@click.option("--interactive", "-i", is_flag=True, help="Ask for one text after another; Ctrl-C ends a generation.")
@click.option("--max-new-tokens", type=click.IntRange(min=1), default=128, show_default=True, help="Longest text.")
@click.option("--min-new-tokens", type=click.IntRange(min=0), default=0, help="Shortest text.")
@click.option("--stop", multiple=True, help="End before this text; may be repeated.")
@click.option(
    "--eos", multiple=True, metavar="TOKEN", help="End with this token too, an id or its text; may be repeated."
)
@click.option("--n", "-n", "count", type=click.IntRange(min=1), default=1, show_default=True, help="Texts to draw.")
@decoding_options
@click.option(
    "--logprobs", type=click.IntRange(min=0), metavar="K", help="Show each token's, and the K most probable ones there."
)
@seed_option
@device_option
@saved_dtype_option
@weights_option
@threads_option
@import_option
@lang_option
@json_option
@quiet_option
@click.pass_context
def command(ctx: click.Context, /, **options: Any) -> None:
    """Let MODEL go on from a prompt, or write about a source: a run, a Hugging Face folder, a .gguf file, a name.

    The prompt is --prompt, a file, or standard input, without the line end that closes the last two. A model that
    translates takes its --source from there where none is given; with one, the prompt is how its own text begins.
    Text number i, counted from 0, is drawn with the seed SEED + i. With --quiet only what is new is printed.
    """
    check_options(ctx)  # what is wrong with these is said before anything is read
    constraints_of(ctx)
    p = ctx.params
    prompted = p["prompt"] is not None or p["prompt_file"] is not None
    if p["target_lang"] is not None and p["source"] is not None and prompted:
        raise BadValue("--target-lang begins what is written: give what follows it as --begin, not as --prompt")
    if p["interactive"]:
        if p["as_json"] or prompted or p["source"] is not None:
            raise BadValue("--interactive asks for texts and shows them: leave --prompt, --source and --json out")
        Desk.of(ctx).converse()
    else:
        text = _prompt(p["prompt"], p["prompt_file"]) if prompted or p["source"] is None else None
        Desk.of(ctx).write(text)


@dataclass(frozen=True)
class Desk:
    """A model, how it is to write, and where it is shown."""

    ctx: click.Context
    model: "Writer"
    reads_source: bool
    strategy: "Strategy"
    constraints: "Constraints"
    eos_ids: list[int]

    @classmethod
    def of(cls, ctx: click.Context) -> "Desk":
        """Load what the options name."""
        from gnomon.generate import ReadsSource

        p = ctx.params
        model = _model(p["run"], p["device"], p["dtype"], p["threads"], p["weights"])
        draft = None if p["draft"] is None else _model(Path(p["draft"]), p["device"], p["dtype"], None, p["weights"])
        reads = isinstance(model, ReadsSource)
        if p["source"] is not None and not reads:
            raise BadValue("this model has no encoder to read a source with: give the text as --prompt")
        assert model.tokenizer is not None
        if p["target_lang"] is not None:
            if not reads:
                raise BadValue("--target-lang goes with a model that translates, and this one has no encoder")
            model.first = language_id(p["target_lang"], model.tokenizer)
        ends = eos_ids(p["eos"], model.tokenizer)
        return cls(ctx, model, reads, strategy_of(ctx, reads, draft), constraints_of(ctx), ends)

    def write(self, text: str | None) -> None:
        """Write about the source, or about the text where no source was given, and print it as the options say."""
        p = self.ctx.params
        if p["source"] is not None:
            prompt, source = text, p["source"]
        else:
            prompt, source = (None, text) if self.reads_source else (text, None)
        page = self._page(prompt or "")
        try:
            self._generate(page, prompt, source)
        except KeyboardInterrupt:
            page.close()
            if not p["as_json"]:
                raise
            self._print(page, prompt, source)
            self.ctx.exit(INTERRUPTED)
        if p["as_json"]:
            self._print(page, prompt, source)

    def converse(self) -> None:
        """One text after another. Ctrl-C ends what is being written; at the prompt it ends the program, as Ctrl-D."""
        if sys.stdin.isatty():
            with suppress(ImportError):
                import readline  # noqa: F401  arrow keys and history
            click.echo(words("write", self.ctx.params["lang"])("ends_text"), err=True)
        for line in _lines():
            page = self._page("")
            try:
                self._generate(page, *((None, line) if self.reads_source else (line, None)))
            except KeyboardInterrupt:
                page.close()
                if not page.tokens[0]:
                    click.echo(err=True)  # the line on which the terminal shows ^C
            except GnomonError as error:
                page.close()
                click.echo(f"gnomon: error: {error}", err=True)

    def _generate(self, page: LiveText, prompt: str | None, source: str | None) -> None:
        from gnomon.generate import generate

        p, n = self.ctx.params, self.ctx.params["count"]
        results = generate(
            self.model,
            None if prompt is None else [prompt] * n,
            source=None if source is None else [source] * n,
            strategy=self.strategy,
            max_new_tokens=p["max_new_tokens"],
            min_new_tokens=p["min_new_tokens"],
            seed=p["seed"],
            eos_ids=self.eos_ids,
            stop=p["stop"],
            constraints=self.constraints,
            top_logprobs=p["logprobs"] or 0,
            on_token=page.take,
        )
        page.close(results, p["tree"], p["logprobs"])

    def _page(self, head: str) -> LiveText:
        p = self.ctx.params
        assert self.model.tokenizer is not None
        return LiveText(head, p["count"], p["seed"], not p["as_json"], p["quiet"], self.model.tokenizer, p["lang"])

    def _print(self, page: LiveText, prompt: str | None, source: str | None) -> None:
        about = {"prompt": prompt} if source is None else {"source": source, "prompt": prompt}
        print_json({**about, "texts": page.report(self.ctx.params["tree"]), "seconds": page.seconds()})


def _lines() -> Iterator[str]:
    """What is typed, line by line, until Ctrl-D or Ctrl-C."""
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "")
        except (EOFError, KeyboardInterrupt):
            click.echo(err=True)
            return
        if line:
            yield line


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


def _model(run: Path, device: str, dtype: str, threads: int | None, weights: "Kind | None") -> "Writer":
    from gnomon.checkpoints import load
    from gnomon.device import set_threads
    from gnomon.models import Writer

    set_threads(threads)
    wanted = None if dtype == "saved" else dtype
    model = load(run, device=device, dtype=wanted, kind=Writer, weights=weights)  # type: ignore[type-abstract]
    if model.tokenizer is None:
        raise BadInput(f"{run} holds no tokenizer, so its model can neither read a prompt nor write a text")
    return model


__all__ = ["command"]
