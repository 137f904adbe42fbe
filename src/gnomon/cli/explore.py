"""`gnomon explore [MODEL]`: a local page on which position, attention and generation can be seen to move."""

from pathlib import Path

import click

from gnomon.cli.options import TakesModel, device_option, import_option, json_option, lang_option, threads_option
from gnomon.cli.output import print_json
from gnomon.errors import BadValue
from gnomon.glossary import words


@click.command("explore", cls=TakesModel)
@click.argument("models", nargs=-1, metavar="[MODEL]...")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen at; others demand a token.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=0, help="Port to listen at.  [default: 0, which takes a free one]"
)
@click.option("--open/--no-open", "open_browser", default=True, show_default=True, help="Open it in the browser.")
@click.option(
    "--export",
    "folder",
    type=click.Path(path_type=Path),
    help="Write the page with recorded answers into this folder, to be opened without a server, and end.",
)
@click.option("--text", "texts", multiple=True, help="With --export: record this text too; may be repeated.")
@device_option
@threads_option
@lang_option
@import_option
@json_option
def command(
    models: tuple[str, ...],
    host: str,
    port: int,
    open_browser: bool,
    folder: Path | None,
    texts: tuple[str, ...],
    device: str,
    threads: int | None,
    lang: str,
    as_json: bool,
) -> None:
    """Open the explorer, a page on this machine, and look into MODEL with it. Ctrl-C ends it.

    MODEL is what `gnomon generate` takes: a run folder, a Hugging Face folder, a .gguf file or the name of a pulled
    model. Small models of every architecture come with the package, and are there besides. Only this machine can reach
    the page, and nothing leaves the machine. With --export DIR the page is written to a folder that opens from a disk.
    """
    from gnomon.device import resolve_device, set_threads
    from gnomon.explorer import Served, Shelf, export, included, serve

    if texts and folder is None:
        raise BadValue("--text is recorded with --export DIR; on the live page, texts are typed")
    set_threads(threads)
    shelf = Shelf([*models, *included()], str(resolve_device(device)))
    for name in shelf.names[: len(models)]:
        shelf.get(name)  # what is wrong with it is said here, not on the page

    if folder is not None:
        written = export(shelf, folder, texts)
        if as_json:
            print_json({"folder": written, "models": shelf.names})
        else:
            click.echo(words("explore", lang)("exported", file=written / "index.html"))
        return

    def started(at: Served) -> None:
        if as_json:
            print_json({"url": at.url, "host": at.host, "port": at.port, "token": at.token, "models": shelf.names})
        else:
            click.echo(words("explore", lang)("at", url=at.url))

    serve(shelf, host, port, open_browser, lang, started)


__all__ = ["command"]
