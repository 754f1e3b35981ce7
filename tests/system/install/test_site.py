"""`make site`: a page with a broken link, or one that the navigation forgot, fails; nothing comes from elsewhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).resolve().parents[3]
# What a browser fetches by itself, in pages and style sheets; links that a reader follows are not.
FETCHED = re.compile(
    r"""<(?:script|img|iframe|source|video)\b[^>]*?\bsrc=["']?(https?:)?//[^"'\s>]*"""
    r"""|<link\b(?![^>]*rel=["']?(?:canonical|next|prev))[^>]*?\bhref=["']?(https?:)?//[^"'\s>]*"""
    r"""|url\(["']?(https?:)?//[^)]*|@import\s+["'](https?:)?//[^"']*"""
)


def built(folder: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder.parent / "site")]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, env={"NO_MKDOCS_2_WARNING": "1"})


@pytest.fixture
def source(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "docs", tmp_path / "source" / "docs")
    shutil.copy(ROOT / "mkdocs.yml", tmp_path / "source")
    return tmp_path / "source"


def test_the_site_is_built_with_every_page_and_fetches_nothing_from_elsewhere(source: Path) -> None:
    done = built(source)
    assert done.returncode == 0, done.stdout + done.stderr
    site = source.parent / "site"
    below = (path.relative_to(source / "docs") for path in (source / "docs").rglob("*.md"))
    pages = {path.with_suffix(".html") for path in below if path.parts[0] != "published"}  # an example's own pages
    there = {path.relative_to(site) for path in site.rglob("*.html")}
    assert {path.with_name("index.html") if path.stem == "README" else path for path in pages} <= there
    texts = [path for path in site.rglob("*") if path.suffix in (".html", ".css")]
    assert {
        str(path.relative_to(site)): found[0] for path in texts if (found := FETCHED.search(path.read_text()))
    } == {}
    drawn = [path.name for path in texts if 'class="mermaid"' in path.read_text()]
    assert drawn == [], "the theme fetches the library that draws these from elsewhere"


@pytest.mark.parametrize(
    ("text", "said"),
    [("[x](no-such-page.md)", "no-such-page.md"), ("[x](statistics.md#no-such-part)", "no-such-part")],
)
def test_a_link_that_leads_nowhere_fails(source: Path, text: str, said: str) -> None:
    with (source / "docs" / "tasks.md").open("a") as page:
        page.write(f"\n{text}\n")
    done = built(source)
    assert done.returncode != 0 and said in done.stdout + done.stderr


def test_a_page_that_the_navigation_forgot_fails(source: Path) -> None:
    (source / "docs" / "forgotten.md").write_text("# Forgotten\n")
    done = built(source)
    assert done.returncode != 0 and "forgotten.md" in done.stdout + done.stderr


def test_what_a_browser_would_fetch_is_seen() -> None:
    for text in ('<script src="https://x.org/a.js">', "<link rel=stylesheet href=//x.org/a.css>", "url(https://x/a)"):
        assert FETCHED.search(text)
    assert not FETCHED.search('<a href="https://x.org"><link rel="canonical" href="https://x.org/">')
