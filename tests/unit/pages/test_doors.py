"""labctl's web servers beside a stranger's bytes: each answers or hangs up, and nothing is printed where it runs."""

from __future__ import annotations

import asyncio
import logging
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from labctl.checks.clock_page import ClockPage
from labctl.clock import ManualClock
from labctl.doors import told
from labctl.loopback import LOOPBACK
from labctl.pages.server import Answer, PageRequest, Site, served
from labctl.ui.console.web import PairedServer, TokenServer
from labctl.ui.rerun.viewer_data import data_handed_on
from labctl.ui.rerun.viewer_page import handed_on

ANY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
ANY.check_hostname, ANY.verify_mode = False, ssl.CERT_NONE
HOST = b"\r\nHost: 127.0.0.1:PORT\r\n"
PACKED = HOST + b"Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nabcde"
STRANGE = (  # aiohttp 3.11 stumbles itself over one address, and asyncio tells of it
    b"\x16\x03\x01\x02\x00 no HTTP at all\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9" + HOST + b"\r\n",
    b"GET / HTTP/1.1\r\nHost 127.0.0.1\r\n\r\n",
    b"GET / HTTP/1.1" + HOST + b"Content-Length: five\r\n\r\n",
    *(() if aiohttp.__version__.startswith("3.11.") else (b"GET http://[ HTTP/1.1" + HOST + b"\r\n",)),
    b"GET /\xe9 HTTP/1.1" + HOST + b"\r\n",
    b"GET /" + b"a" * 70_000 + b" HTTP/1.1" + HOST + b"\r\n",
    b"POST /told HTTP/1.1" + HOST + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
    b"POST /pair HTTP/1.1" + PACKED,
    b"POST / HTTP/1.1" + PACKED,
)
Port = tuple[int, ssl.SSLContext | None]
ROUTES: dict[str, Callable[[PageRequest], Answer]] = {"POST /say": lambda asked: Answer(b"", "text/plain")}


@asynccontextmanager
async def page() -> AsyncIterator[Port]:
    with served(site := Site(ROUTES)):
        yield int(urlsplit(site.invite()).port or 0), None


@asynccontextmanager
async def clock_page() -> AsyncIterator[Port]:
    with ClockPage(ManualClock(), 0) as found:
        yield found.port, None


@asynccontextmanager
async def console(kind: type[TokenServer]) -> AsyncIterator[Port]:
    with socket.socket() as at:
        at.bind((LOOPBACK, 0))
        server = kind("true", LOOPBACK, at.getsockname()[1], "first", lambda line: None)
        runner = web.AppRunner(await server._make_app())
        await runner.setup()
        context = server.context if isinstance(server, PairedServer) else None
        await web.SockSite(runner, at, ssl_context=context).start()
        yield server.port, ANY if context else None
        await runner.cleanup()


@asynccontextmanager
async def viewer(*, data: bool) -> AsyncIterator[Port]:
    with socket.socket() as nobody, socket.socket() as free:
        nobody.bind((LOOPBACK, 0))
        free.bind((LOOPBACK, 0))
        inner, port = nobody.getsockname()[1], free.getsockname()[1]
        free.close()
        with data_handed_on(inner, port) if data else handed_on(inner, port, port):
            yield port, None


DOORS: dict[str, Callable[[], AbstractAsyncContextManager[Port]]] = {
    "pages": page,
    "console": lambda: console(TokenServer),
    "paired console": lambda: console(PairedServer),
    "clock page": clock_page,
    "viewer's page": lambda: viewer(data=False),
    "viewer's data": lambda: viewer(data=True),
}


async def say(port: int, tls: ssl.SSLContext | None, data: bytes) -> bytes:
    """The first line that came back; nothing of a server that hung up."""
    reader, writer = await asyncio.open_connection(LOOPBACK, port, ssl=tls)
    try:
        writer.write(data.replace(b"PORT", str(port).encode()))
        return await reader.readline()
    except ConnectionError:
        return b""
    finally:
        writer.close()


def broken_off(port: int) -> None:
    """A client that resets its connection in the middle of a request."""
    with socket.create_connection((LOOPBACK, port)) as one:
        one.sendall(b"GET / HT")
        one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


@pytest.mark.parametrize("door", DOORS)
def test_what_is_no_request_is_answered_or_left_and_prints_nothing_where_the_server_runs(
    door: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """aiohttp's traceback pushed the code that pairs a browser off the operator's screen."""

    async def play() -> None:
        async with DOORS[door]() as (port, tls):
            for data in STRANGE:
                await say(port, tls, data)
            await asyncio.to_thread(broken_off, port)
            assert await say(port, tls, b"GET / HTTP/1.1" + HOST + b"\r\n"), "it still answers"

    asyncio.run(play())
    assert not [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert capfd.readouterr().err == ""


def test_an_error_of_labctls_own_is_told_with_its_traceback(caplog: pytest.LogCaptureFixture) -> None:
    log = told()["logger"]
    try:
        raise ZeroDivisionError("a bug")
    except ZeroDivisionError:
        log.exception("Error handling request")
    try:
        raise web.RequestPayloadError("not packed as it says")
    except web.RequestPayloadError:
        log.exception("Error handling request")
    assert [record.exc_info and record.exc_info[0] for record in caplog.records] == [ZeroDivisionError]
