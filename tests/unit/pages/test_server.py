"""The one small web application: whom it answers, and what it hands out in parts."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from labctl.errors import InputError, StateError
from labctl.pages.server import Answer, PageRequest, Site, as_json, served

FILM = bytes(range(200))


def refuse(asked: PageRequest) -> Answer:
    raise StateError("not now")


def posted(asked: PageRequest) -> Answer:
    if "word" not in asked.body:
        raise InputError("word is missing")
    return as_json({"heard": asked.body["word"]})


ROUTES = {
    "GET /": lambda asked: Answer(b"<p>page</p>", "text/html"),
    "GET /film/{name}": lambda asked: Answer(FILM if asked.parts["name"] == "a" else b"", "video/mp4"),
    "POST /say": posted,
    "POST /refuse": refuse,
}


class Browser:
    """What a browser sends, header by header."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.invitation = site.invite()
        found = urlsplit(self.invitation)
        self.port, self.entry = found.port, f"{found.path}?{found.query}"
        self.origin = f"http://127.0.0.1:{self.port}"
        self.home, self.cookie = "", ""

    def ask(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes, dict[str, str]]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        given = {name.replace("_", "-"): value for name, value in headers.items() if value}
        connection.request(method, path, body=body, headers=given)
        answer = connection.getresponse()
        found = answer.status, answer.read(), {name.lower(): value for name, value in answer.getheaders()}
        connection.close()
        return found

    def enter(self) -> None:
        status, _, headers = self.ask("GET", self.entry)
        assert status == 303
        self.home, self.cookie = headers["location"], headers["set-cookie"].split(";")[0]

    def get(self, path: str, **headers: str) -> tuple[int, bytes, dict[str, str]]:
        return self.ask("GET", self.home + path, Cookie=self.cookie, **headers)

    def post(self, path: str, said: object, **headers: str) -> tuple[int, dict[str, str]]:
        given = {"Origin": self.origin, "Content_Type": "application/json", "Cookie": self.cookie, **headers}
        status, text, _ = self.ask("POST", self.home + path, json.dumps(said).encode(), **given)
        return status, json.loads(text) if text.startswith(b"{") else {"error": text.decode()}


@pytest.fixture
def browser() -> Iterator[Browser]:
    site = Site(ROUTES)
    with served(site):
        yield Browser(site)


def test_an_invitation_opens_once_and_the_cookie_goes_nowhere_else(browser: Browser) -> None:
    status, _, headers = browser.ask("GET", browser.entry)
    assert status == 303 and "token" not in headers["location"]
    said = headers["set-cookie"]
    assert "HttpOnly" in said and "SameSite=Strict" in said and f"Path={headers['location']}" in said
    assert browser.ask("GET", browser.entry)[0] == 403, "a second time"
    again = Browser(browser.site)
    again.enter()
    assert again.get("")[:2] == (200, b"<p>page</p>"), "another invitation is another browser's"


def test_nobody_is_answered_without_token_and_cookie(browser: Browser) -> None:
    assert browser.ask("GET", "/")[0] == browser.ask("GET", "/?token=guessed")[0] == 403
    browser.enter()
    home = browser.home
    assert browser.ask("GET", home)[0] == 403, "the path alone is not enough"
    assert browser.ask("GET", f"{home}film/a", Cookie="labctl-page=guessed")[0] == 403
    assert browser.ask("GET", "/anywhere/", Cookie=browser.cookie)[0] == 404


def test_bytes_that_are_no_text_are_refused_like_any_wrong_cookie_or_token(browser: Browser) -> None:
    browser.enter()
    for path, headers in ((browser.home, {"Cookie": "labctl-page=\xe9"}), ("/?token=%ED%A0%80", {})):
        status, _, answered = browser.ask("GET", path, **headers)  # a header goes out in Latin-1
        assert status == 403 and answered["x-frame-options"] == "DENY"


def test_another_page_and_another_name_that_leads_here_are_refused(browser: Browser) -> None:
    browser.enter()
    port = browser.port
    for headers in (
        {"Host": f"evil.example:{port}"},
        {"Host": "127.0.0.1.evil.example"},
        {"Host": "["},
        {"Origin": "http://evil.example"},
        {"Origin": f"http://127.0.0.1:{port + 1}"},
        {"Origin": "null"},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
    ):
        assert browser.get("", **headers)[0] == 403, headers
    assert browser.get("", Host=f"localhost:{port}", Sec_Fetch_Site="same-origin")[0] == 200
    away = {"Host": f"localhost:{port + 1}", "Origin": f"http://localhost:{port + 1}"}
    assert browser.get("", **away, Sec_Fetch_Site="same-origin")[0] == 200, "a tunnel may begin at another port"
    assert browser.ask("GET", browser.entry, Host=f"evil.example:{port}")[0] == 403


def test_what_is_posted_comes_from_the_page_itself(browser: Browser) -> None:
    browser.enter()
    assert browser.post("say", {"word": "yes"}) == (200, {"heard": "yes"})
    assert browser.post("say", {"word": "yes"}, Origin="")[0] == 403, "no page says so"
    assert browser.post("say", {"word": "yes"}, Origin="http://evil.example")[0] == 403
    assert browser.post("say", {"word": "yes"}, Content_Type="text/plain")[0] == 400, "what any form may send"
    assert browser.post("say", ["no", "object"]) == (400, {"error": "what was posted is no object"})
    assert browser.post("say", {}) == (400, {"error": "word is missing"})
    assert browser.post("refuse", {}) == (409, {"error": "not now"})
    assert browser.ask("GET", f"{browser.home}say", Cookie=browser.cookie)[0] == 405


def test_a_page_may_load_from_nowhere_else_and_is_framed_by_nobody(browser: Browser) -> None:
    browser.enter()
    for path in ("", "film/a", "nothing"):
        headers = browser.get(path)[2]
        assert headers["content-security-policy"].startswith("default-src 'none'; script-src 'self'")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert headers["referrer-policy"] == "no-referrer" and headers["cache-control"] == "no-store"
        assert headers["cross-origin-resource-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("asked", "status", "start", "stop"),
    [
        ("bytes=0-9", 206, 0, 10),
        ("bytes=190-", 206, 190, 200),
        ("bytes=-5", 206, 195, 200),
        ("bytes=0-9999", 206, 0, 200),
        ("bytes=200-", 416, 0, 0),
        ("bytes=9-3", 200, 0, 200),
        ("pages=1-2", 200, 0, 200),
        ("", 200, 0, 200),
    ],
)
def test_a_film_is_handed_out_in_the_parts_that_are_asked_for(
    browser: Browser, asked: str, status: int, start: int, stop: int
) -> None:
    """RFC 9110, 14.1.2: a last position before the first is no valid range, which is ignored."""
    browser.enter()
    found, data, headers = browser.get("film/a", Range=asked)
    assert (found, data) == (status, FILM[start:stop])
    assert headers["accept-ranges"] == "bytes"
    wanted = {206: f"bytes {start}-{stop - 1}/200", 416: "bytes */200", 200: None}[status]
    assert headers.get("content-range") == wanted


def test_a_port_that_is_taken_is_said() -> None:
    first, second = Site(ROUTES), Site(ROUTES)
    with served(first):
        port = urlsplit(first.invite()).port or 0
        with pytest.raises(InputError, match=f"port {port} cannot be served on"), served(second, port):
            pass


def test_a_body_that_is_not_packed_as_it_says_is_refused_in_a_line(browser: Browser) -> None:
    browser.enter()
    status, said = browser.post("say", {"word": "on"}, Content_Encoding="gzip")
    assert (status, said["error"]) == (400, "what was posted is not packed as it says: gzip")
