"""Who may ask: this machine's own page, and nobody else's.

A page elsewhere on the web can make a browser send requests to this machine, under a name of its own that it lets
point here (DNS rebinding). So a request must name this server as its host, one that changes or computes something must
come from this server's own page, and a server that other machines can reach demands a token.
"""

import hmac
from collections.abc import Collection
from http.cookies import SimpleCookie
from urllib.parse import parse_qs

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST = 2**18  #: bytes of a request's body
COOKIE = "gnomon-token"
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Refuses what does not come from the page, and puts the headers that keep the page to itself on every answer."""

    def __init__(self, app: ASGIApp, hosts: Collection[str], token: str | None = None) -> None:
        """hosts: what the Host header may say, as `localhost:8000`. token: what a browser must bring, if anything."""
        self.app, self.hosts, self.token = app, frozenset(hosts), token

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request, or the server's own start and end."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return  # no sockets

        async def sealed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
            await send(message)

        answer = self.refusal(scope)
        await (answer or self.app)(scope, _limited(receive), sealed)

    def refusal(self, scope: Scope) -> Response | None:
        """Why this request is not let through; None where it is."""
        headers = Headers(scope=scope)
        host = headers.get("host", "").lower()
        if host not in self.hosts:
            return _refused(f"this server is {' or '.join(sorted(self.hosts))}, not {host[:100]!r}", 421)
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _refused("only GET and POST are answered here", 405)
        if headers.get("origin", f"http://{host}") != f"http://{host}":
            return _refused("a page of another site may not ask here", 403)
        followed = scope["method"] == "GET" and scope["path"] == "/"  # a link to the page, from anywhere
        if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none") and not followed:
            return _refused("a page of another site may not ask here", 403)
        if scope["method"] == "POST" and headers.get("content-type", "").partition(";")[0] != "application/json":
            return _refused("a question is JSON: content-type application/json", 415)
        length = headers.get("content-length", "0")
        if not length.isdecimal() or int(length) > LARGEST:
            return _refused(f"a question has at most {LARGEST} bytes", 413)
        return self._token_refusal(scope, headers)

    def _token_refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if self.token is None:
            return None
        cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        if cookie is not None and hmac.compare_digest(cookie.value.encode(), self.token.encode()):
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
        if not hmac.compare_digest(given.encode(), self.token.encode()):
            return _refused("this page needs the token that the terminal shows: open the whole address from there", 401)
        welcome = RedirectResponse("/", status_code=303)  # the address bar, and so a copied link, no longer holds it
        welcome.set_cookie(COOKIE, self.token, httponly=True, samesite="strict")
        return welcome


def _refused(why: str, status: int) -> Response:
    return PlainTextResponse(f"{why}\n", status)


def _limited(receive: Receive) -> Receive:
    """A body that is sent in chunks, without a length, is cut off where it becomes too large."""
    so_far = 0

    async def some() -> Message:
        nonlocal so_far
        message = await receive()
        so_far += len(message.get("body", b""))
        return {"type": "http.disconnect"} if so_far > LARGEST else message

    return some


__all__ = ["HEADERS", "LARGEST", "Guard"]
