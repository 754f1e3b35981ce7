"""The console in a browser: every tab is a console process of its own, behind a token; off loopback behind TLS and a
code that pairs one browser.

May not: serve a page, a file or a socket to somebody without the token or to another site's page, or let a page fetch
anything from elsewhere. A page at another port of this computer is another site's: a browser hands it the cookies of
every port all the same, and lets it ask here with them.
"""

from __future__ import annotations

import asyncio
import hashlib
import html
import ipaddress
import re
import secrets
import ssl
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable
from pathlib import Path
from urllib.parse import parse_qs

from aiohttp import web
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from textual_serve.server import Server

from labctl.clock import MonotonicClock, moment
from labctl.doors import Listening, Room, told
from labctl.loopback import FOREIGN_HOST, FOREIGN_PAGE, own_name, same_secret

COOKIE = "labctl"
EARLY_S, VALID_S = 3600, 2 * 86400  # of a certificate, which is made anew at every start
TRIES = 5  # wrong codes, after which there is another
LONGEST = 1000  # bytes of a form with a code
FORM_S = 10.0  # how long it may take to come
END_S = 1.0  # how long whoever is being answered holds up the end
WRONG_S = 1.0  # how long a wrong code takes, one after another
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


# The page asks for a font from elsewhere and waits for a click before it takes keys.
FONT = re.compile(r"<link[^>]*fonts\.[^>]*>", re.S)
KEYBOARD = """<link rel="icon" href="data:,"><script>
const wait = setInterval(() => {
  const keys = document.querySelector(".xterm-helper-textarea");
  if (keys) { keys.focus(); clearInterval(wait); }
}, 200);
</script></head>"""
PAIRING = """<!doctype html><html lang="en"><meta charset="utf-8"><title>labctl</title>
<meta name="viewport" content="width=device-width"><link rel="icon" href="data:,">
<body style="font: 1.1rem sans-serif; margin: 3rem auto; max-width: 24rem; padding: 0 1rem">
<form method="post" action="/pair"><p><label for="code">The code that labctl printed where it was started:</label></p>
<p><input id="code" name="code" autocomplete="off" autofocus style="font: inherit; width: 10rem">
<button style="font: inherit">Pair</button></p></form>
<p>{said}</p></body></html>"""


def at_home(page: str) -> str:
    """The page without what it would fetch from elsewhere, taking keys at once."""
    return FONT.sub("", page).replace("</head>", KEYBOARD, 1)


class TokenServer(Server):
    """textual-serve behind a token: given once in the address, then kept in a cookie that goes to the random path of
    this start alone, where all that it serves is.
    """

    scheme = "http"
    context: ssl.SSLContext | None = None

    def __init__(self, command: str, host: str, port: int, title: str, say: Callable[[str], None]) -> None:
        address = f"{self.scheme}://{f'[{host}]' if ':' in host else host}:{port}"
        super().__init__(command, host=host, port=port, title=title, public_url=address)
        self.token = secrets.token_urlsafe(24)
        self._path = f"/{secrets.token_urlsafe(12)}"
        self._cookie, self._cookie_path = COOKIE, f"{self._path}/"
        self._say, self._room = say, Room(say=say)

    def listening(self) -> Listening:
        """The address and port, had from here on. Raises OSError."""
        return Listening(self.host, self.port, self._room)

    def serve(self, debug: bool = False) -> None:
        """Serve until Ctrl-C."""
        at = self.listening()
        web.run_app(self._make_app(), sock=at, ssl_context=self.context, print=None, shutdown_timeout=END_S)

    async def _make_app(self) -> web.Application:
        app = web.Application(middlewares=[self._guard], handler_args=told(), client_max_size=LONGEST)
        app.router.add_get("/", self._lead)
        app.add_subapp(self._path, await super()._make_app())
        return app

    async def _lead(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=303, headers={"Location": f"{self._path}/"})

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        if self._foreign(request):
            return web.Response(status=403, text=f"{FOREIGN_PAGE}\n")
        answer = await self._let_in(request)
        if answer is not None:
            return answer
        if request.transport is not None:
            self._room.left(request.transport.get_extra_info("peername"))
        answer = await handler(request)
        if isinstance(answer, web.Response) and answer.content_type == "text/html" and answer.text:
            answer.text = at_home(answer.text).replace(
                self.public_url.partition(":")[2], f"//{html.escape(request.host)}"
            )
        if not answer.prepared:
            own = f"{'wss' if request.secure else 'ws'}://{request.host}"
            answer.headers["Content-Security-Policy"] = (
                f"default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' {own}; "
                "frame-ancestors 'none'"
            )
        return answer

    def _foreign(self, request: web.Request) -> bool:
        """Does another site's page ask? A browser says which page opens a socket, and which one posts."""
        origin = request.headers.get("Origin")
        if origin is None:
            return request.path == f"{self._path}/ws"
        return origin != f"{request.scheme}://{request.host}"

    async def _let_in(self, request: web.Request) -> web.StreamResponse | None:
        """What a browser without the token is answered, or one that was led here by another name; None for one that
        has it.
        """
        if not own_name(request.host, str(ipaddress.ip_address(self.host))):
            return web.Response(status=403, text=f"{FOREIGN_HOST}\n")
        given = request.query.get("token")
        if given is not None and same_secret(given, self.token):
            return self._with_token(request)
        if not self._has_token(request):
            return web.Response(status=403, text="open the address that `labctl console --web` printed\n")
        return None

    def _has_token(self, request: web.Request) -> bool:
        return same_secret(request.cookies.get(self._cookie, ""), self.token)

    def _with_token(self, request: web.Request) -> web.StreamResponse:
        answer = web.Response(status=303, headers={"Location": f"{self._path}/"})
        answer.set_cookie(
            self._cookie, self.token, path=self._cookie_path, httponly=True, samesite="Strict", secure=request.secure
        )
        return answer

    async def on_startup(self, app: web.Application) -> None:
        self._say(f"open {self.public_url}/?token={self.token}")
        self._say("whoever has this address can act as you; Ctrl-C ends the page, not the run")

    def initialize_logging(self) -> None:
        """No log: it would hold what was typed."""


class PairedServer(TokenServer):
    """The same where others reach it: TLS under a certificate of this start alone, whose fingerprint is printed, and a
    code that lets in one browser, once. `code` is the one that stands now, but for an address from which five wrong
    ones came: it gets another, and only one try from it is looked at at a time, so that a stranger delays a person
    elsewhere by a second and takes no code from them. A browser that comes back by the printed
    address is let in, so its cookie goes to all of this address; its name is of the port, as another console's is not.
    """

    scheme = "https"

    def __init__(self, command: str, host: str, port: int, title: str, say: Callable[[str], None]) -> None:
        super().__init__(command, host, port, title, say)
        self.context, self.fingerprint = certified(host)
        self._cookie, self._cookie_path = f"{COOKIE}-{port}", "/"
        self.code = new_code()
        self._codes: dict[str, str] = {}  # by the address that got one of its own
        self._wrong: Counter[str] = Counter()
        self._trying: set[str] = set()
        self._one_at_a_time = asyncio.Lock()  # of whatever address: who has many guesses no faster

    async def _let_in(self, request: web.Request) -> web.StreamResponse | None:
        if request.path == "/pair" and request.method == "POST":  # by any name: another site has no such certificate
            return await self._pair(request)
        if self._has_token(request):
            return None
        return _asking() if request.path == "/" else web.Response(status=403, text=f"pair at {self.public_url}/\n")

    async def _pair(self, request: web.Request) -> web.StreamResponse:
        typed, remote = await _digits(request), str(request.remote)
        if remote in self._trying:
            return _asking("Another code from this address is being looked at. Type yours again.", 429)
        self._trying.add(remote)
        try:
            async with self._one_at_a_time:
                if request.transport is None or request.transport.is_closing():  # nobody waits for it any more
                    return _asking()
                if same_secret(typed, self.code_for(remote).replace("-", "")):
                    self._renew(remote)
                    return self._with_token(request)
                await asyncio.sleep(WRONG_S)
                self._count_wrong(remote)
        finally:
            self._trying.discard(remote)
        return _asking("That was not the code. After five wrong ones labctl prints another.")

    def code_for(self, remote: str) -> str:
        """The code that pairs a browser at this address."""
        return self._codes.get(remote, self.code)

    def _renew(self, remote: str) -> None:
        """The code that was just used at this address is used up."""
        if self._codes.pop(remote, None) is None:
            self.code = new_code()
        del self._wrong[remote]
        self._say(f"a browser at {remote} was paired; the code for another: {self.code}")

    def _count_wrong(self, remote: str) -> None:
        self._wrong[remote] += 1
        if self._wrong[remote] % TRIES == 0:
            self._codes[remote] = new_code()
            there = f"{TRIES} wrong codes from {remote}; the code to be typed there is now {self._codes[remote]}"
            self._say(f"{there}, anywhere else {self.code}")

    async def on_startup(self, app: web.Application) -> None:
        self._say(f"open {self.public_url}/   and type the code {self.code}, which pairs one browser, once")
        self._say(f"its certificate was made for this start; the browser shows SHA-256 {self.fingerprint}")
        self._say("whoever is paired can act as you; Ctrl-C ends the page, not the run")


async def _digits(request: web.Request) -> str:
    """What was typed into the form, as a browser posts it; nothing of what no browser posts."""
    try:
        body = await asyncio.wait_for(request.read(), FORM_S)
    except (web.RequestPayloadError, web.HTTPRequestEntityTooLarge, TimeoutError):  # or packed as it does not say
        return ""
    typed = parse_qs(body.decode("utf-8", "replace")).get("code", [""])[0]
    return "".join(filter(str.isdigit, typed))


def new_code() -> str:
    """Eight digits to be read out and typed."""
    number = f"{secrets.randbelow(10**8):08d}"
    return f"{number[:4]}-{number[4:]}"


def _asking(message: str = "", status: int = 403) -> web.Response:
    answer = web.Response(status=status, text=PAIRING.format(said=message), content_type="text/html")
    rule = "default-src 'none'; style-src 'unsafe-inline'; img-src data:; form-action 'self'; frame-ancestors 'none'"
    answer.headers["Content-Security-Policy"] = rule
    return answer


def certified(host: str) -> tuple[ssl.SSLContext, str]:
    """A context of TLS for this address, and the SHA-256 of its certificate as browsers show it."""
    key = ec.generate_private_key(ec.SECP256R1())
    now = MonotonicClock().anchor().wall
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "labctl console")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(moment(now, -EARLY_S))
        .not_valid_after(moment(now, VALID_S))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(host))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .sign(key, SHA256())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as folder:  # of its owner alone; it is gone before anything is served
        both = Path(folder) / "both.pem"
        both.touch(mode=0o600)
        secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        both.write_bytes(secret + made.public_bytes(Encoding.PEM))
        context.load_cert_chain(both)
    digest = hashlib.sha256(made.public_bytes(Encoding.DER)).hexdigest().upper()
    return context, ":".join(digest[at : at + 2] for at in range(0, len(digest), 2))
