"""Whoever was not let into the console of a browser holds up nobody who was: no place, no code, no memory, no end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from support.screens.console_in_browser import ANY, HOST, STRANGER, browser, elsewhere, entered, running, served, taken
from yarl import URL

from labctl.doors import Listening, Room
from labctl.ui.console import web as module
from labctl.ui.console.web import TRIES, PairedServer, TokenServer


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRONG_S", 0.0)


@asynccontextmanager
async def crowded(each: int, most: int, said: list[str]) -> AsyncIterator[PairedServer]:
    """One with that little room for who was not let in."""
    with Listening(HOST, 0, room := Room(each, most, said.append)) as at:
        server = PairedServer("true", HOST, at.getsockname()[1], "first", said.append)
        server._room = room
        async with running(server, at, server.context):
            yield server


def test_idle_connections_end_no_paired_browsers_and_keep_nobody_from_pairing():
    said: list[str] = []

    async def play() -> None:
        async with crowded(2, 3, said) as server, browser() as mine, browser() as other:
            page = await entered(mine, server)
            idle: list[tuple[asyncio.StreamReader, asyncio.StreamWriter]] = []
            for address in (STRANGER, HOST):
                idle += [await asyncio.open_connection(HOST, server.port, local_addr=(address, 0)) for _ in range(3)]
                assert await asyncio.wait_for(idle[-3][0].read(), 60) == b""
                async with mine.get(page) as shown:
                    assert shown.status == 200
            assert URL(await entered(other, server)).path == URL(page).path
            for _, writer in idle:
                writer.transport.abort()
            assert [line.partition(" wait")[0] for line in said[3:] if "were not let in" in line] == [
                f"2 connections from {STRANGER}",
                "3 connections from many addresses",
                f"2 connections from {HOST}",
            ]

    asyncio.run(play())


@pytest.mark.parametrize(("sent", "patience_s"), [(b"x" * 5000, 1e9), (b"code=", 0.0)])
def test_of_a_form_nobody_waits_for_more_than_a_code_nor_for_ever(
    sent: bytes, patience_s: float, monkeypatch: pytest.MonkeyPatch
):
    """150 of a megabyte each held 250 MB as long as a stranger liked; half of one held up the end for a minute."""
    monkeypatch.setattr(module, "FORM_S", patience_s)

    async def play() -> None:
        async with served([]) as server:
            reader, writer = await asyncio.open_connection(HOST, server.port, ssl=ANY)
            writer.write(b"POST /pair HTTP/1.1\r\nHost: %s\r\nContent-Length: 999999\r\n\r\n" % HOST.encode() + sent)
            assert b" 403 " in await asyncio.wait_for(reader.readline(), 60)
            writer.transport.abort()

    asyncio.run(play())


@pytest.mark.parametrize("kind", [TokenServer, PairedServer])
def test_who_is_being_answered_holds_up_the_end_for_a_second_at_most(
    kind: type[TokenServer], monkeypatch: pytest.MonkeyPatch
):
    def run(app: Coroutine[object, object, object], **given: object) -> None:
        app.close()
        at = given["sock"]
        assert isinstance(at, Listening)
        assert at.getsockname() == (HOST, server.port) and given["shutdown_timeout"] == 1.0
        assert given["ssl_context"] is server.context and (server.context is None) == (kind is TokenServer)
        at.close()
        served.append(at)

    served: list[Listening] = []
    monkeypatch.setattr(module.web, "run_app", run)
    with taken(HOST) as free:
        port = free.getsockname()[1]
    server = kind("true", HOST, port, "first", lambda line: None)
    server.serve()
    assert served


def test_a_stranger_takes_the_code_from_nobody_at_another_address():
    async def play() -> None:
        async with served([]) as server, elsewhere() as theirs, browser() as mine:
            code = server.code
            for n in range(2 * TRIES):
                async with theirs.post(f"{server.public_url}/pair", data={"code": f"{n}"}) as wrong:
                    assert wrong.status == 403
            assert server.code_for(STRANGER) != code
            async with theirs.post(f"{server.public_url}/pair", data={"code": code}) as late:
                assert late.status == 403
            async with mine.post(f"{server.public_url}/pair", data={"code": code}) as paired:
                assert paired.status == 200

    asyncio.run(play())


def test_of_many_tries_from_one_address_one_waits_and_of_one_that_hung_up_nothing_is_left(
    monkeypatch: pytest.MonkeyPatch,
):
    """Each wrong code takes as long as this test lets it."""
    begun, go_on, real, digits = asyncio.Event(), asyncio.Event(), asyncio.sleep, module._digits
    asked: list[web.Request] = []

    async def seen(request: web.Request) -> str:
        asked.append(request)
        return await digits(request)

    async def held(seconds: float) -> None:
        begun.set()
        await go_on.wait()

    async def play() -> None:
        async with served([]) as server, elsewhere() as theirs, browser() as mine:
            at, code = f"{server.public_url}/pair", {"code": server.code}
            monkeypatch.setattr(module.asyncio, "sleep", held)
            monkeypatch.setattr(module, "_digits", seen)
            first = asyncio.ensure_future(theirs.post(at, data={"code": "1"}))
            await begun.wait()
            for _ in range(5):
                async with theirs.post(at, data={"code": "2"}) as more:
                    assert more.status == 429
            left = asyncio.ensure_future(mine.post(at, data=code))
            while HOST not in server._trying:
                await real(0)
            left.cancel()
            await asyncio.wait([left])
            while asked[-1].transport is not None:
                await real(0)
            go_on.set()
            assert (await first).status == 403
            while HOST in server._trying:
                await real(0)
            assert server.code == code["code"], "who hung up used nothing"
            async with mine.post(at, data=code) as paired:
                assert paired.status == 200

    asyncio.run(play())
