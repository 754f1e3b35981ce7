"""The console as its web servers give it, at a loopback address, and who asks: a browser, and one at another address.

May not: assert what a server is to answer.
"""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
from aiohttp import web

from labctl.ui.console.web import PairedServer, TokenServer

HOST, STRANGER = "127.0.0.1", "127.0.0.2"
ANY = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # who types the code has compared the fingerprint
ANY.check_hostname, ANY.verify_mode = False, ssl.CERT_NONE


def taken(host: str) -> socket.socket:
    """A port of an address, had from here on: one that is only found free may be somebody else's before it is used."""
    made = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    made.bind((host, 0))
    return made


@asynccontextmanager
async def running(server: TokenServer, at: socket.socket, context: ssl.SSLContext | None = None) -> AsyncIterator[None]:
    runner = web.AppRunner(await server._make_app(), shutdown_timeout=0.1)  # it reads on for 10 s behind a refused form
    await runner.setup()
    await web.SockSite(runner, at, ssl_context=context).start()
    try:
        yield
    finally:
        await runner.cleanup()


@asynccontextmanager
async def served(said: list[str]) -> AsyncIterator[PairedServer]:
    with taken(HOST) as at:
        server = PairedServer("true", HOST, at.getsockname()[1], "first", said.append)
        async with running(server, at, server.context):
            yield server


def browser() -> aiohttp.ClientSession:
    jar = aiohttp.CookieJar(unsafe=True)  # an address has cookies too
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ANY), cookie_jar=jar)


def elsewhere() -> aiohttp.ClientSession:
    return aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=ANY, local_addr=(STRANGER, 0), limit=0))


@asynccontextmanager
async def on_loopback() -> AsyncIterator[TokenServer]:
    with taken(HOST) as at:
        server = TokenServer("true", HOST, at.getsockname()[1], "first", lambda line: None)
        async with running(server, at):
            yield server


async def entered(session: aiohttp.ClientSession, server: TokenServer) -> str:
    """The address of the console's page in a browser that was let in."""
    if isinstance(server, PairedServer):
        asked = session.post(f"{server.public_url}/pair", data={"code": server.code})
    else:
        asked = session.get(f"{server.public_url}/?token={server.token}")
    async with asked as page:
        assert page.status == 200
        return str(page.url)
