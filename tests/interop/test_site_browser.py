"""The site of published campaigns in Chromium, from files: nothing is asked of another host, at two widths.

Opt-in: needs Chromium. pytest -m interop tests/interop/test_site_browser.py
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar
from urllib.parse import urlsplit

import numpy as np
import pytest
from PIL import Image
from support.runs.campaigns import recorded_with_cameras
from support.runs.live_campaign import wait_for
from support.runs.published import published
from support.runs.recordings import Recordings
from support.screens.browser import DRAWS_3D, Page, browsing

from labctl.publishing.site import make_site

pytestmark = [pytest.mark.interop, pytest.mark.limit(300)]
EXAMPLE = Path(__file__).resolve().parents[2] / "docs/published/simulated-cell"
SAID = "document.getElementById('said').textContent"
BROWSERS_OWN = ("google.com", "googleapis.com", "gvt1.com")  # what this browser asks for on an empty page too
ROWS = "[...document.querySelectorAll('#episodes tbody tr')].filter((row) => !row.hidden).length"


def test_pages_stand_at_both_widths_and_ask_nobody(tmp_path: Path) -> None:
    made = make_site([EXAMPLE], tmp_path / "site")
    with browsing() as page:
        for width in (1280, 390):
            page.size(width, 900)
            for name in ("index.html", "runs.html", "reports/simulated-cell/report.html"):
                page.open((made.index.parent / name).as_uri())
                page.rest(0.5)
                assert page.value("document.documentElement.scrollWidth") == width, (name, "scrolls sideways")
        assert page.errors == [], "the browser's policy stopped something"
        assert all(asked.startswith(("file:", "data:")) for asked in page.requests), page.requests


def test_episodes_are_found_by_arm_and_by_word(tmp_path: Path) -> None:
    made = make_site([EXAMPLE], tmp_path / "site")
    with browsing() as page:
        page.open((made.index.parent / "runs.html").as_uri())
        page.rest(0.5)
        assert page.value(ROWS) == 12
        page.value("document.querySelector('[data-filter=arm]').value = 'swift'")
        page.value("document.querySelector('[data-filter=arm]').dispatchEvent(new Event('change'))")
        assert page.value(ROWS) == 4
        page.value("document.querySelector('#find').value = 'nothing of the kind'")
        page.value("document.querySelector('#find').dispatchEvent(new Event('input'))")
        assert page.value(ROWS) == 0
        page.value("document.querySelector('nav a, header a').click()")
        page.rest(0.5)
        assert "Leaderboards" in page.value("document.body.textContent")


def test_an_episode_is_drawn_by_rerun_from_a_plain_file_host_which_alone_is_asked(
    recordings: Recordings, tmp_path: Path
) -> None:
    """Served below a sub-path by Python's own file server, at two widths; everything that goes elsewhere would go by a
    proxy that writes it down. The viewer does try to report its usage: the page's rule is needed.
    """
    folder = recordings.of(published, blinded=str(recordings.of(recorded_with_cameras)))
    site = make_site([folder], tmp_path / "below" / "site", rerun=500_000_000)
    assert site.views is not None
    link = site.views.links["trial-run", min(episode for _, episode in site.views.links)]
    with served(partial(SimpleHTTPRequestHandler, directory=str(tmp_path))) as port, served(Proxy) as proxy:
        flags = (*DRAWS_3D, f"--proxy-server=http://127.0.0.1:{proxy}")
        at = f"http://127.0.0.1:{port}/below/site/"
        with browsing(1400, 900, flags) as page:
            for width in (1400, 390):
                page.size(width, 900)
                page.open(f"{at}runs.html")
                page.rest(1)
                assert page.value(f"document.querySelector('a[href=\"{link}\"]') !== null")
                page.value("document.querySelector('video').scrollIntoView()")
                wait_for("its first video at its go", partial(at_go, page))
                page.open(f"{at}{link}")
                page.rest(1)
                wait_for("its views", partial(drawn, page, tmp_path / f"at-{width}.png"))
                assert page.value("document.documentElement.scrollWidth") == width, "it scrolls sideways"
            page.open(f"{at}rerun.html?of=https://elsewhere.example/a.rrd")
            page.rest(1)
            assert "Which episode?" in page.value(SAID)
            page.open((site.index.parent / link.partition("?")[0]).as_uri() + "?" + link.partition("?")[2])
            page.rest(1)
            assert "python -m http.server" in page.value(SAID)
        hosts = {url.split("/")[2] for url in page.requests if url.startswith("http")}
        assert hosts == {f"127.0.0.1:{port}"}
        assert any("//tel.rerun.io" in error for error in page.errors), "it did try; the rule is needed"
        asked = {urlsplit(one if "//" in one else f"//{one}").hostname or one for one in Proxy.asked}
        assert not [host for host in asked if not host.endswith(BROWSERS_OWN)], asked


class Proxy(BaseHTTPRequestHandler):
    """Refuses everything, and keeps what was asked for."""

    asked: ClassVar[list[str]] = []

    def refuse(self) -> None:
        self.asked.append(self.path)
        self.send_error(403)

    do_CONNECT = do_GET = do_POST = do_HEAD = refuse

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def served(handler: Callable[..., BaseHTTPRequestHandler]) -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        server.server_close()


def at_go(page: Page) -> bool:
    """Whether the first video stands at its go, though this host sends no parts of files."""
    page.rest(0.5)
    return page.value("((v) => Math.abs(v.currentTime - Number(v.dataset.go)) < 0.1)(document.querySelector('video'))")


def drawn(page: Page, path: Path) -> bool:
    page.rest(2)
    page.shot(path)
    picture = np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3)
    return page.value(SAID).startswith("Space plays") and len(np.unique(picture, axis=0)) > 3000
