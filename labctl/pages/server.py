"""The one small web application: pages and what they ask for, on loopback, to the browser that was invited.

May not: listen beyond loopback, answer another host's name, another site's page or a browser without an invitation, or
let a page fetch anything from elsewhere.

An address is printed with a token that opens once: it gives the browser a cookie that goes to this application's own
path alone, since a browser hands the cookies of 127.0.0.1 to whatever listens on any of its ports, other people's too.
"""

from __future__ import annotations

import asyncio
import json
import secrets
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import web

from labctl.doors import Listening, Room, told
from labctl.errors import InputError, LabctlError, StateError
from labctl.loopback import FOREIGN_HOST, FOREIGN_PAGE, LOOPBACK, own_name, refusal, same_secret
from labctl.plain import Json

COOKIE = "labctl-page"
LARGEST = 1_000_000  # bytes of what a page may send at once
START_S = 30.0
RULE = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; media-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": RULE,
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
REFUSED = "open the address that labctl printed; it opens once: press ENTER where labctl runs for another\n"


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a page asks: the named parts of the path, and what it posted (an object; {} of a GET)."""

    parts: Mapping[str, str]
    body: Mapping[str, Json] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Answer:
    """Bytes of a kind; of a video a browser may ask for a range."""

    data: bytes
    kind: str


def as_json(value: Json) -> Answer:
    """A JSON document."""
    return Answer(json.dumps(value, allow_nan=False).encode(), "application/json")


# "GET /video/{episode}" -> what answers it. It runs in a thread, may block and may raise LabctlError, whose line the
# page shows.
Routes = Mapping[str, Callable[[PageRequest], Answer]]


class Site:
    """Routes behind an invitation. `invite` gives an address that opens once, as often as it is asked."""

    def __init__(self, routes: Routes) -> None:
        self._path = f"/{secrets.token_urlsafe(12)}"
        self._secret = secrets.token_urlsafe(32)
        self._invitations: set[str] = set()
        self._port = 0
        self._routes = routes
        self.room = Room()

    def invite(self) -> str:
        """An address that opens the page in one browser, once."""
        token = secrets.token_urlsafe(24)
        self._invitations.add(token)
        return f"http://{LOOPBACK}:{self._port}/?token={token}"

    def app(self, port: int) -> web.Application:
        """The application, which answers to the name of this port alone."""
        self._port = port
        app = web.Application(middlewares=[self._guard], client_max_size=LARGEST, handler_args=told())
        app.router.add_get("/", self._open)
        for route, answer in self._routes.items():
            method, _, path = route.partition(" ")
            app.router.add_route(method, f"{self._path}{path}", _handler(answer))
        return app

    @web.middleware
    async def _guard(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        try:
            refused = self._refusal(request)  # aiohttp 3.11 takes an answer for false
            if refused is None and request.path != "/" and request.transport is not None:
                self.room.left(request.transport.get_extra_info("peername"))
            answer = await handler(request) if refused is None else refused
        except web.HTTPException as error:  # no such page, or another method
            answer = web.Response(status=error.status, text=f"{error.reason}\n")
        if not answer.prepared:
            answer.headers.update(HEADERS)
        return answer

    def _refusal(self, request: web.Request) -> web.Response | None:
        """Why this is not answered; None if it is."""
        if request.path == "/":  # a link on another page may lead to it, with an invitation
            return None if own_name(request.host) else web.Response(status=403, text=f"{FOREIGN_HOST}\n")
        origin, site = request.headers.get("Origin"), request.headers.get("Sec-Fetch-Site")
        unsaid = request.method != "GET" and origin is None
        foreign = refusal(request.host, origin, site) or (FOREIGN_PAGE if unsaid else None)
        if foreign is not None:
            return web.Response(status=403, text=f"{foreign}\n")
        if not same_secret(request.cookies.get(COOKIE, ""), self._secret):
            return web.Response(status=403, text=REFUSED)
        return None

    async def _open(self, request: web.Request) -> web.StreamResponse:
        given = request.query.get("token", "")
        known = next((t for t in self._invitations if same_secret(given, t)), None)
        if known is None:
            return web.Response(status=403, text=REFUSED)
        self._invitations.discard(known)
        answer = web.Response(status=303, headers={"Location": f"{self._path}/"})
        answer.set_cookie(COOKIE, self._secret, path=f"{self._path}/", httponly=True, samesite="Strict")
        return answer


def _handler(answer: Callable[[PageRequest], Answer]) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def handle(request: web.Request) -> web.Response:
        try:
            body = await _body(request) if request.method == "POST" else {}
            found = await asyncio.to_thread(answer, PageRequest(dict(request.match_info), body))
        except LabctlError as error:
            status = 400 if isinstance(error, InputError) else 409
            return web.json_response({"error": str(error)}, status=status)
        return ranged(request, found) if found.kind.startswith("video/") else _whole(found)

    return handle


async def _body(request: web.Request) -> Mapping[str, Json]:
    """The object that a page posted. Raises InputError."""
    if request.content_type != "application/json":
        raise InputError("a page posts application/json")
    try:
        body = json.loads(await request.read())
    except web.RequestPayloadError as error:
        raise InputError(
            f"what was posted is not packed as it says: {request.headers.get('Content-Encoding')}"
        ) from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"what was posted is no JSON: {error}") from None
    if not isinstance(body, dict):
        raise InputError("what was posted is no object")
    return body


def _whole(answer: Answer) -> web.Response:
    charset = "utf-8" if answer.kind.startswith("text/") else None
    return web.Response(body=answer.data, content_type=answer.kind, charset=charset)


def ranged(request: web.Request, answer: Answer) -> web.Response:
    """The bytes that were asked for (RFC 9110, 14.2): one range; beyond the end 416; what is not understood, all."""
    size = len(answer.data)
    try:
        requested = request.http_range
    except ValueError:
        requested = slice(None)
    if requested.start is None and requested.stop is None:
        whole = _whole(answer)
        whole.headers["Accept-Ranges"] = "bytes"
        return whole
    start, stop, _ = requested.indices(size)
    if start >= stop:
        return web.Response(status=416, headers={"Content-Range": f"bytes */{size}", "Accept-Ranges": "bytes"})
    headers = {"Content-Range": f"bytes {start}-{stop - 1}/{size}", "Accept-Ranges": "bytes"}
    return web.Response(status=206, body=answer.data[start:stop], content_type=answer.kind, headers=headers)


@contextmanager
def served(site: Site, port: int = 0) -> Iterator[None]:
    """Serve a site on loopback while the block runs, in a thread of its own. Raises InputError for a port that is
    taken.
    """
    try:
        listening = Listening(LOOPBACK, port, site.room)
    except OSError as error:
        text = f"port {port} cannot be served on ({error.strerror}); leave --port out for a free one"
        raise InputError(text) from error
    loop, begun, over = asyncio.new_event_loop(), threading.Event(), asyncio.Event()

    async def run() -> None:
        app = site.app(listening.getsockname()[1])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        await web.SockSite(runner, listening).start()
        begun.set()
        await over.wait()
        await runner.cleanup()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),), name="pages", daemon=True)
    thread.start()
    try:
        if not begun.wait(START_S):
            raise StateError("the page did not start; try again")
        yield
    finally:
        loop.call_soon_threadsafe(over.set)
        thread.join(START_S)
        loop.close()
        listening.close()
