"""`gnomon chat MODEL`: a conversation in the terminal, or one message after another from a pipe."""

import json
import sys
from collections.abc import Iterator
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING, Any

import click

from gnomon.cli.options import (
    TakesModel,
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
from gnomon.errors import BadValue
from gnomon.glossary import words

if TYPE_CHECKING:
    from gnomon.generate import Chat, Generation, Strategy, Token


@click.command("chat", cls=TakesModel, context_settings=also_called)
@click.argument("model")
@click.option("--system", metavar="TEXT", help="What the model is told before you say anything.")
@click.option(
    "--template-option",
    "template_options",
    multiple=True,
    metavar="NAME=VALUE",
    help="A switch of the model's chat template, such as enable_thinking=false: JSON or a text; may be repeated.",
)
@click.option("--max-new-tokens", type=click.IntRange(min=1), default=512, show_default=True, help="Longest answer.")
@click.option("--temperature", "-t", type=float, default=0.7, show_default=True, help="0 takes the best token always.")
@click.option("--top-k", type=int, help="Draw from the k best tokens only.")
@click.option("--top-p", type=float, default=0.95, show_default=True, help="Draw from the fewest that reach p in sum.")
@click.option("--min-p", type=float, help="Draw from tokens at least p times as probable as the best.")
@click.option(
    "--repetition-penalty", type=float, default=1.0, show_default=True, help="Above 1: tokens seen before less likely."
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
    """Talk with MODEL: a pulled model's name, a .gguf file, a Hugging Face folder, or a run that has a chat template.

    Ctrl-C ends an answer, Ctrl-D the conversation. Without a terminal every line of standard input is a message, and
    the answers go to standard output: echo 'Who was Ada Lovelace?' | gnomon chat smollm2-135m-instruct
    """
    strategy, penalties = _strategy_and_penalty(options)
    chat = _begin(options)
    if sys.stdin.isatty() and not options["quiet"]:
        click.echo(words("write", options["lang"])("ends_answer"), err=True)
    for turn, text in enumerate(_messages()):
        with suppress(KeyboardInterrupt) if sys.stdin.isatty() else nullcontext():  # what was written is kept
            _answer(chat, text, strategy, penalties, turn, options)
        if not options["as_json"]:
            click.echo()
    if options["as_json"]:
        print_json({"model": options["model"], "messages": chat.messages})


def _strategy_and_penalty(options: dict[str, Any]) -> "tuple[Strategy, Any]":
    """The strategy and the penalty that the options mean; what is wrong with them is said before a model is loaded."""
    from gnomon.generate import Constraints, Sample

    strategy = Sample(options["temperature"], options["top_k"], options["top_p"], options["min_p"])
    return strategy, Constraints(options["repetition_penalty"])


def _begin(options: dict[str, Any]) -> "Chat":
    from gnomon.checkpoints import load
    from gnomon.device import set_threads
    from gnomon.generate import Chat
    from gnomon.models import Writer

    switches = _switches(options["template_options"])
    set_threads(options["threads"])
    dtype = None if options["dtype"] == "saved" else options["dtype"]
    kind: Any = Writer  # abstract, which a checker does not take for a class to be asked for
    model = load(options["model"], device=options["device"], dtype=dtype, kind=kind, weights=options["weights"])
    return Chat(model, options["system"], switches)


def _switches(given: tuple[str, ...]) -> dict[str, Any]:
    """The options of a chat template: texts, and what JSON says other things are."""
    switches: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not name or not equals:
            raise BadValue(f"--template-option is NAME=VALUE, such as enable_thinking=false; got {each!r}")
        try:
            switches[name] = json.loads(value)
        except (ValueError, RecursionError):
            switches[name] = value
    return switches


def _answer(
    chat: "Chat", text: str, strategy: "Strategy", penalties: Any, turn: int, options: dict[str, Any]
) -> "Generation | None":
    """Say one message and show the answer while it is written. A message that cannot be is reported, and forgotten."""

    def show(token: "Token") -> None:
        if not options["as_json"]:
            click.echo(token.piece, nl=False)
            sys.stdout.flush()

    settings = {"max_new_tokens": options["max_new_tokens"], "seed": options["seed"] + turn}
    try:
        return chat.say(text, strategy=strategy, constraints=penalties, on_token=show, **settings)
    except BadValue as error:
        if not sys.stdin.isatty():
            raise
        click.echo(f"gnomon: error: {error}", err=True)
        return None


def _messages() -> Iterator[str]:
    """What is typed, line by line, until Ctrl-D; Ctrl-C at the prompt leaves too."""
    if sys.stdin.isatty():
        with suppress(ImportError):
            import readline  # noqa: F401  arrow keys and history
    while True:
        try:
            line = input("> " if sys.stdin.isatty() else "")
        except (EOFError, KeyboardInterrupt):
            click.echo(err=True)
            return
        if line.strip():
            yield line


__all__ = ["command"]
