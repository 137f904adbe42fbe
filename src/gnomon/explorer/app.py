"""The web application: the page, and what it asks.

GET  /            the built page (static/)
GET  /api/models  the models that it may look into
POST /api/NAME    one question, see `questions`
"""

import json
from collections.abc import AsyncIterator, Collection, Iterator
from importlib.resources import files
from pathlib import Path
from typing import Any

import anyio.to_thread
from anyio import CapacityLimiter
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from gnomon import __version__
from gnomon.errors import BadInput, GnomonError
from gnomon.explorer.guard import Guard
from gnomon.explorer.questions import STORIES, answered, telling
from gnomon.explorer.shelf import Shelf

OUT_OF_MEMORY = ("out of memory", "can't allocate memory")
GONE = 499  #: nobody reads it: the tab was closed


def static() -> Path:
    """The folder of the built page. Raises BadInput where an installation lacks it."""
    folder = Path(str(files("gnomon.explorer"))) / "static"
    if not (folder / "index.html").is_file():
        raise BadInput(f"the page of the explorer is missing from this installation ({folder}): install gnomon again")
    return folder


def explorer(shelf: Shelf, hosts: Collection[str], token: str | None = None) -> Starlette:
    """The application. hosts: what it may be called; token: what a browser must bring, where others can reach it."""
    one = CapacityLimiter(1)  # questions wait here rather than in threads

    async def ask(request: Request) -> Response:
        try:
            values = json.loads(await request.body() or b"{}")
        except (ValueError, RecursionError, ClientDisconnect):
            return _failed("a question is a JSON object", 400)
        if not isinstance(values, dict):
            return _failed("a question is a JSON object", 400)
        async with one:
            if await request.is_disconnected():
                return Response(status_code=GONE)
            name = request.path_params["name"]
            if name not in STORIES:
                return await anyio.to_thread.run_sync(_answer, shelf, name, values)
            begun = await anyio.to_thread.run_sync(_begun, shelf, name, values)
        return (
            begun if isinstance(begun, Response) else StreamingResponse(events(begun), media_type="text/event-stream")
        )

    async def events(steps: Iterator[Any]) -> AsyncIterator[str]:
        """Server-sent events; a tab that is closed cancels them between two tokens."""
        while True:
            async with one:
                step = await anyio.to_thread.run_sync(_next, steps)
            if step is None:
                return
            yield f"data: {json.dumps(step)}\n\n"

    async def models(request: Request) -> Response:
        return JSONResponse({"version": __version__, "models": shelf.cards()})

    routes = [
        Route("/api/models", models),
        Route("/api/{name}", ask, methods=["POST"]),
        Mount("/", StaticFiles(directory=static(), html=True)),
    ]
    return Starlette(routes=routes, middleware=[Middleware(Guard, hosts=hosts, token=token)])


def _answer(shelf: Shelf, name: str, values: dict[str, Any]) -> Response:
    """One question answered in a thread; what fails becomes a message that the page shows."""
    try:
        return JSONResponse(answered(shelf, name, values))
    except (GnomonError, MemoryError, RuntimeError) as error:
        return _failed(*_words(error))


def _begun(shelf: Shelf, name: str, values: dict[str, Any]) -> Iterator[Any] | Response:
    """The steps of a question that is told bit by bit, or why there are none."""
    try:
        return telling(shelf, name, values)
    except (GnomonError, MemoryError, RuntimeError) as error:
        return _failed(*_words(error))


def _next(steps: Iterator[Any]) -> Any:
    """The next step, None after the last; what fails is a step that says so, and the last."""
    try:
        return next(steps, None)
    except (GnomonError, MemoryError, RuntimeError) as error:
        return {"error": _words(error)[0]}


def _words(error: Exception) -> tuple[str, int]:
    """What to tell a reader, and the status. Anything that is no error of the question's is raised again."""
    if isinstance(error, GnomonError):
        return str(error), 400
    if isinstance(error, MemoryError) or any(words in str(error).lower() for words in OUT_OF_MEMORY):
        return "this machine has not enough memory for that: take a shorter text or a smaller model", 507
    raise error


def _failed(message: str, status: int) -> Response:
    return JSONResponse({"error": message}, status)


__all__ = ["explorer", "static"]
