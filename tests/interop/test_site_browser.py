"""The site of published campaigns in Chromium, from files: nothing is asked of another host, at two widths.

Opt-in: needs Chromium. pytest -m interop tests/interop/test_site_browser.py
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.screens.browser import browsing

from labctl.publishing.site import make_site

pytestmark = [pytest.mark.interop, pytest.mark.limit(300)]
EXAMPLE = Path(__file__).resolve().parents[2] / "docs/published/simulated-cell"
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
