"""The console in a browser: every tab is a console process of its own, behind a token.

May not: serve a page, a file or a socket to somebody without the token, or let a page fetch anything from elsewhere.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Awaitable, Callable

from aiohttp import web
from textual_serve.server import Server

COOKIE = "labctl"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


# The page asks for a font from elsewhere and waits for a click before it takes keys.
FONT = re.compile(r"<link[^>]*fonts\.[^>]*>", re.S)
KEYBOARD = """<link rel="icon" href="data:,"><script>
const wait = setInterval(() => {
  const keys = document.querySelector(".xterm-helper-textarea");
  if (keys) { keys.focus(); clearInterval(wait); }
}, 200);
</script></head>"""


def at_home(page: str) -> str:
    """The page without what it would fetch from elsewhere, taking keys at once."""
    return FONT.sub("", page).replace("</head>", KEYBOARD, 1)


class TokenServer(Server):
    """textual-serve behind a token: given once in the address, then kept in a cookie of this host alone."""

    def __init__(self, command: str, host: str, port: int, title: str, say: Callable[[str], None]) -> None:
        super().__init__(command, host=host, port=port, title=title)
        self.token = secrets.token_urlsafe(24)
        self._say = say

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard)
        return app

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        given = request.query.get("token")
        kept = request.cookies.get(COOKIE, "")
        if given is not None and secrets.compare_digest(given, self.token):
            answer: web.StreamResponse = web.HTTPSeeOther(request.path)
            answer.set_cookie(COOKIE, self.token, httponly=True, samesite="Strict")
            return answer
        if not secrets.compare_digest(kept, self.token):
            return web.Response(status=403, text="open the address that `labctl console --web` printed\n")
        answer = await handler(request)
        if isinstance(answer, web.Response) and answer.content_type == "text/html" and answer.text:
            answer.text = at_home(answer.text)
        if not answer.prepared:
            own = f"ws://{request.host}"
            answer.headers["Content-Security-Policy"] = (
                f"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' {own}"
            )
        return answer

    async def on_startup(self, app: web.Application) -> None:
        self._say(f"open http://{self.host}:{self.port}/?token={self.token}")
        self._say("whoever has this address can act as you; Ctrl-C ends the page, not the run")

    def initialize_logging(self) -> None:
        """No log: it would hold what was typed."""
