"""labctl's web servers beside a stranger's bytes: each answers or hangs up, and nothing is printed where it runs. Who
opens connections and says nothing takes nobody else's place.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import aiohttp
import pytest
from aiohttp import web

from labctl.checks.clock_page import ClockPage
from labctl.clock import ManualClock
from labctl.doors import EACH, MOST_FILES, MOST_TOLD, Listening, Room, more_files, told
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
    with Listening(LOOPBACK, 0, room := Room()) as at:
        server = kind("true", LOOPBACK, at.getsockname()[1], "first", lambda line: None)
        server._room = room
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


@pytest.mark.parametrize("door", DOORS)
def test_connections_that_say_nothing_are_ended_from_the_oldest_on_and_who_asks_is_answered(
    door: str, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """A thousand of them kept a paired operator out, and printed a megabyte a second where the code stood."""

    async def play() -> None:
        async with DOORS[door]() as (port, tls):
            idle = [await asyncio.open_connection(LOOPBACK, port) for _ in range(EACH + 2)]
            for reader, _ in idle[:2]:
                assert await asyncio.wait_for(reader.read(), 60) == b"", "its place went to another"
            assert await say(port, tls, b"GET / HTTP/1.1" + HOST + b"\r\n")
            assert not idle[-1][0].at_eof(), "the newest stays"
            for _, writer in idle:
                writer.transport.abort()
            await asyncio.wait([asyncio.ensure_future(writer.wait_closed()) for _, writer in idle])

    asyncio.run(play())
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    assert len(lines) == 1 and lines[0].startswith(f"{EACH} connections from {LOOPBACK} wait")
    assert capfd.readouterr().err == ""


def filled(room: Room, *addresses: str) -> list[str]:
    """Who was ended when one after another came from these addresses; each is called by its number."""
    ended: list[str] = []
    for number, address in enumerate(addresses):
        room.came(f"{number}", address, partial(ended.append, f"{number}"))
    return ended


def test_one_source_fills_its_own_places_alone_and_all_together_no_more_than_there_are() -> None:
    said: list[str] = []
    one, two, three = "10.0.0.1", "10.0.0.2", "10.0.0.3"
    assert filled(Room(2, 4, said.append), one, one, two, one, one) == ["0", "1"]
    assert filled(Room(2, 4, said.append), two, one, one, three, three) == ["0"], "the oldest of all"
    assert [line.partition(" wait")[0] for line in said] == [
        "2 connections from 10.0.0.1",
        "4 connections from many addresses",
    ]


def test_who_was_let_in_is_not_ended_and_holds_no_place() -> None:
    ended: list[str] = []
    room = Room(1, 1, lambda line: None)
    for who in ("a", "b", "c"):
        room.came(who, "10.0.0.1", partial(ended.append, who))
        room.left(who)
        room.left(who)
    assert not ended


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("fe80::1%eth0", "fe80::2%eth0", True),
        ("2001:db8::1", "2001:db8::ffff:1", True),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
        ("::ffff:10.0.0.1", "::ffff:10.0.0.2", False),
        ("::ffff:10.0.0.1", "10.0.0.1", True),
    ],
)
def test_the_addresses_that_one_computer_can_have_are_one_source(first: str, second: str, same: bool) -> None:
    assert filled(Room(1, 9, lambda line: None), first, second) == (["0"] if same else [])


def test_a_stranger_with_many_addresses_fills_no_log() -> None:
    said: list[str] = []
    filled(Room(1, 999, said.append), *(f"10.0.0.{n // 2}" for n in range(100)))
    assert len(said) == MOST_TOLD


@pytest.mark.parametrize(
    ("limits", "asked"),
    [
        ((1024, 1_048_576), (MOST_FILES, 1_048_576)),
        ((1024, 4096), (4096, 4096)),
        ((1024, resource.RLIM_INFINITY), (MOST_FILES, resource.RLIM_INFINITY)),
        ((4096, 4096), None),
        ((1_048_576, 1_048_576), None),
        ((resource.RLIM_INFINITY, resource.RLIM_INFINITY), None),
    ],
)
def test_as_many_files_as_the_account_may_and_never_fewer_than_before(
    limits: tuple[int, int], asked: tuple[int, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[tuple[int, int]] = []
    monkeypatch.setattr(resource, "getrlimit", lambda which: limits)
    monkeypatch.setattr(resource, "setrlimit", lambda which, given: wanted.append(given))
    more_files()
    assert wanted == ([] if asked is None else [asked])
