"""The server around the application: a port, a browser, an end."""

import ipaddress
import secrets
import socket
import webbrowser
from collections.abc import Callable
from dataclasses import dataclass
from threading import Timer

import uvicorn

from gnomon.errors import BadInput
from gnomon.explorer.app import explorer
from gnomon.explorer.shelf import Shelf

NAMES = ("localhost", "127.0.0.1", "[::1]")


@dataclass(frozen=True)
class Served:
    """Where the page is. url: what to open, with the token where there is one."""

    host: str
    port: int
    url: str
    token: str | None


def serve(
    shelf: Shelf,
    host: str = "127.0.0.1",
    port: int = 0,
    open_browser: bool = False,
    lang: str | None = None,
    started: Callable[[Served], None] | None = None,
) -> None:
    """Serve the explorer until it is interrupted.

    host    the address to listen at; where other machines can reach it, the page demands a token
    port    0 takes a free one
    lang    the language that the page opens in; default the browser's
    started  called once the port is open

    Raises BadInput for a port that is taken and an address that this machine does not have.
    """
    listening = bound(host, port)
    port = listening.getsockname()[1]
    alone = is_loopback(host)
    token = None if alone else secrets.token_urlsafe(16)
    name = f"[{host}]" if ":" in host else host
    query = "" if token is None else f"?token={token}"
    url = f"http://{name}:{port}/{query}" + (f"#/?lang={lang}" if lang else "")
    hosts = {f"{each.lower()}:{port}" for each in (*NAMES, name, *([] if alone else _own_names()))}
    if started is not None:
        started(Served(host, port, url, token))
    if open_browser:
        Timer(0.5, webbrowser.open, [url]).start()
    config = uvicorn.Config(
        explorer(shelf, hosts, token),
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=2,
        limit_concurrency=64,
        ws="none",
    )
    with listening:
        uvicorn.Server(config).run(sockets=[listening])


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens at host and port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind((host, port))
        made.listen()  # from now on a browser that comes early waits instead of being refused
    except OSError as error:
        made.close()
        raise BadInput(
            f"cannot listen at {host}, port {port}: {error.strerror or error}. Give another --port, or 0 for a free one"
        ) from error
    return made


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _own_names() -> list[str]:
    """What other machines may call this one: its name, and the addresses that the name has."""
    name = socket.gethostname()
    try:
        return [name, *socket.gethostbyname_ex(name)[2]]
    except OSError:
        return [name]


__all__ = ["Served", "bound", "is_loopback", "serve"]
