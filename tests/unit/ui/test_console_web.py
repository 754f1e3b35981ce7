"""The console in a browser off loopback: TLS, and a code that pairs one browser once. Tried at a loopback address."""

from __future__ import annotations

import asyncio
import hashlib
import re
import ssl
from ipaddress import ip_address

import aiohttp
import pytest
from aiohttp import web
from cryptography import x509
from support.screens.console_in_browser import ANY, HOST, browser, entered, on_loopback, running, served, taken
from yarl import URL

from labctl.ui.console import web as module
from labctl.ui.console.web import TRIES, PairedServer, TokenServer


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WRONG_S", 0.0)


def test_a_code_pairs_one_browser_once_and_nobody_else_sees_a_page_a_file_or_a_socket():
    said: list[str] = []

    async def play() -> None:
        async with served(said) as server, browser() as mine, browser() as other:
            at, code = server.public_url, server.code
            assert at.startswith("https://") and any(code in line for line in said)
            async with mine.get(f"{at}/") as asked:
                assert asked.status == 403 and "code that labctl printed" in await asked.text()
            for path in ("/ws", "/static/js/textual.js", f"/?token={server.token}"):
                async with other.get(f"{at}{path}") as refused:
                    text = await refused.text()
                    assert refused.status == 403 and server.token not in text and "textual" not in text, path
            async with mine.post(f"{at}/pair", data={"code": code.replace("-", " ")}) as paired:
                assert paired.status == 200 and 'data-session-websocket-url="wss://' in await paired.text()
            (cookie,) = mine.cookie_jar
            assert cookie["secure"] and cookie["httponly"] and cookie["samesite"] == "Strict"
            async with other.post(f"{at}/pair", data={"code": code}) as again:
                assert again.status == 403, "it was used"
            assert server.code != code and server.code in said[-1] and "was paired" in said[-1]

    asyncio.run(play())


def test_wrong_codes_let_nobody_in_and_bring_another_code():
    said: list[str] = []

    async def play() -> None:
        async with served(said) as server, browser() as session:
            first = server.code
            for typed in ["", "0²٣", "x" * 8, *(f"{n:08d}" for n in range(TRIES - 3))]:
                async with session.post(f"{server.public_url}/pair", data={"code": typed}) as refused:
                    assert refused.status == 403 and not list(session.cookie_jar)
            there = server.code_for(HOST)
            assert there != first and f"{TRIES} wrong codes from {HOST}" in said[-1] and there in said[-1]
            async with session.post(f"{server.public_url}/pair", data={"code": first}) as late:
                assert late.status == 403
            async with session.post(f"{server.public_url}/pair", data={"code": there}) as paired:
                assert paired.status == 200 and server.code == server.code_for(HOST) == first
                assert first in said[-1], "nobody used that one"

    asyncio.run(play())


def test_a_token_of_other_characters_is_refused_as_any_wrong_one_is():
    async def play() -> None:
        with taken(HOST) as at:
            server = TokenServer("true", HOST, at.getsockname()[1], "first", lambda line: None)
            async with (
                running(server, at),
                aiohttp.ClientSession() as session,
                session.get(f"http://{HOST}:{server.port}/?token=%C3%A9") as asked,
            ):
                assert asked.status == 403

    asyncio.run(play())


async def status_of(server: TokenServer, head: bytes, body: bytes = b"") -> bytes:
    """What is answered to lines that no client library would send: the first line."""
    tls = ANY if isinstance(server, PairedServer) else None
    reader, writer = await asyncio.open_connection(HOST, server.port, ssl=tls)
    length = b"Content-Length: %d" % len(body)
    writer.write(b"\r\n".join([head, b"Host: %s:%d" % (HOST.encode(), server.port), length, b"", body]))
    line = await reader.readline()
    writer.close()
    return line.strip()


def tracebacks(caplog: pytest.LogCaptureFixture) -> list[str]:
    """Of what was logged; a test before this one in its worker may have had each request logged too."""
    return [record.getMessage() for record in caplog.records if record.exc_info]


@pytest.mark.parametrize("paired", [False, True])
def test_bytes_that_are_no_text_are_refused_as_any_wrong_token_is(paired: bool, caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        async with served([]) if paired else on_loopback() as server:
            head = b"GET / HTTP/1.1\r\nCookie: %s=\xe9" % server._cookie.encode()
            assert b" 403 " in await status_of(server, head)

    asyncio.run(play())
    assert not tracebacks(caplog), "one would push the code off the operator's screen"


@pytest.mark.parametrize(
    "kind",
    [
        b"application/x-www-form-urlencoded; charset=nonsense",
        b"application/x-www-form-urlencoded; charset=utf-16",
        b"multipart/form-data",
        b"multipart/form-data; boundary=x",
        b"application/json",
    ],
)
def test_a_form_that_no_browser_posts_is_a_wrong_code(kind: bytes, caplog: pytest.LogCaptureFixture):
    async def play() -> None:
        async with served([]) as server:
            for body in (b"code=1%ff&code=\xff", b"code=1" * 1000):
                assert b" 403 " in await status_of(server, b"POST /pair HTTP/1.1\r\nContent-Type: " + kind, body)

    asyncio.run(play())
    assert not tracebacks(caplog)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1"])
def test_the_console_on_loopback_answers_no_other_sites_name_even_with_the_token(host: str):
    """A tunnel (ssh -L) may begin at another port; the name is loopback's all the same."""

    async def play() -> None:
        with taken(host) as at:
            said: list[str] = []
            server = TokenServer("true", host, at.getsockname()[1], "first", said.append)
            own = f"[{host}]" if ":" in host else host
            async with running(server, at), aiohttp.ClientSession() as session:
                assert said[0] == f"open http://{own}:{server.port}/?token={server.token}"
                cookies = aiohttp.CookieJar(unsafe=True)  # also of an address
                async with (
                    aiohttp.ClientSession(cookie_jar=cookies) as opened,
                    opened.get(said[0].removeprefix("open ")) as page,
                ):
                    assert f'data-session-websocket-url="ws://{own}:{server.port}/' in await page.text()
                for name, status in (("evil.example", 403), (own, 303), ("localhost", 303), ("[", 403)):
                    address = f"http://{own}:{server.port}/?token={server.token}"
                    headers = {"Host": f"{name}:9000"}
                    async with session.get(address, headers=headers, allow_redirects=False) as asked:
                        assert asked.status == status, name

    asyncio.run(play())


@pytest.fixture
def _no_console(monkeypatch: pytest.MonkeyPatch) -> None:
    """A socket that opens ends at once, with no process behind it."""

    async def opened(server: TokenServer, request: web.Request) -> web.WebSocketResponse:
        answer = web.WebSocketResponse()
        await answer.prepare(request)
        await answer.close()
        return answer

    monkeypatch.setattr(TokenServer, "handle_websocket", opened)


@pytest.mark.usefixtures("_no_console")
@pytest.mark.parametrize("paired", [False, True])
def test_a_page_at_another_port_of_this_computer_opens_no_socket_and_shows_no_console(paired: bool):
    """A browser sends it the cookies of every port, and asks here with them: only Origin tells the ports apart."""

    async def play() -> None:
        async with served([]) if paired else on_loopback() as server, browser() as mine:
            page = await entered(mine, server)
            own = server.public_url
            for origin in (
                f"{server.scheme}://{HOST}:8888",
                f"{server.scheme}://localhost:{server.port}",
                "null",
                None,
            ):
                headers = {} if origin is None else {"Origin": origin}
                async with mine.get(f"{page}ws", headers=headers) as refused:
                    assert refused.status == 403, origin
            async with mine.ws_connect(f"{page}ws", headers={"Origin": own}) as socket_of_ours:
                await socket_of_ours.close()
            async with mine.get(page) as shown:
                assert "frame-ancestors 'none'" in shown.headers["Content-Security-Policy"]
            async with mine.post(
                f"{own}/pair", data={"code": "1"}, headers={"Origin": "https://evil.example"}
            ) as foreign:
                assert foreign.status == 403 and "another page" in await foreign.text()

    asyncio.run(play())


def test_the_cookie_of_loopback_goes_to_the_console_alone_and_two_consoles_stand_in_one_browser():
    async def play() -> None:
        async with on_loopback() as one, on_loopback() as other, browser() as mine:
            pages = [await entered(mine, server) for server in (one, other)]
            for page in pages:
                async with mine.get(page) as shown:
                    assert shown.status == 200
            assert not mine.cookie_jar.filter_cookies(URL(f"http://{HOST}:8888/"))
            assert len(mine.cookie_jar.filter_cookies(URL(pages[0]))) == 1

    asyncio.run(play())


def test_two_paired_consoles_stand_in_one_browser_and_the_printed_address_leads_back():
    async def play() -> None:
        async with served([]) as one, served([]) as other, browser() as mine:
            for server in (one, other):
                await entered(mine, server)
            for server in (one, other):
                async with mine.get(f"{server.public_url}/") as shown:
                    assert shown.status == 200

    asyncio.run(play())


@pytest.mark.usefixtures("_no_console")
@pytest.mark.parametrize("asked", ["localhost:9000", f"{HOST}:9000", "localhost"])
def test_at_the_other_end_of_a_tunnel_the_page_asks_for_its_parts_where_it_was_asked_for(asked: str):
    async def play() -> None:
        async with on_loopback() as server, browser() as mine:
            page = await entered(mine, server)
            async with mine.get(page, headers={"Host": asked}) as shown:
                text, rule = await shown.text(), shown.headers["Content-Security-Policy"]
            path = URL(page).path
            assert f'data-session-websocket-url="ws://{asked}{path}ws"' in text and f"ws://{asked}" in rule
            found = re.findall(r"(?:src=|href=|url\()\"(http[^\"]+)", text)
            assert len(found) >= 3 and all(one.startswith(f"http://{asked}{path}static/") for one in found)
            headers = {"Host": asked, "Origin": f"http://{asked}"}
            async with mine.ws_connect(f"{page}ws", headers=headers) as through:
                await through.close()

    asyncio.run(play())


def test_nothing_is_served_without_tls_and_the_certificate_is_for_this_address_with_the_fingerprint_printed():
    said: list[str] = []

    async def play() -> None:
        async with served(said) as server:
            der = ssl.PEM_cert_to_DER_cert(await asyncio.to_thread(ssl.get_server_certificate, (HOST, server.port)))
            shown = hashlib.sha256(der).hexdigest().upper()
            assert any(shown == line.rpartition(" ")[2].replace(":", "") for line in said)
            names = x509.load_der_x509_certificate(der).extensions.get_extension_for_class(x509.SubjectAlternativeName)
            assert names.value.get_values_for_type(x509.IPAddress) == [ip_address(HOST)]
            async with aiohttp.ClientSession() as plain:
                with pytest.raises(aiohttp.ClientError):
                    await plain.get(f"http://{HOST}:{server.port}/")

    asyncio.run(play())
