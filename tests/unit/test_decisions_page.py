"""docs/decisions/README.md lists the decisions: run this file to write it, run the test to hold it current."""

from __future__ import annotations

import sys
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "decisions"
HEAD = "# Decisions\n\nWhat was decided, against what, and which tests hold it. Written by `make docs`.\n\n"


def page() -> str:
    """The page as the folder has decisions now."""
    found = sorted(path for path in FOLDER.glob("*.md") if path.name != "README.md")
    titles = [path.read_text(encoding="utf-8").splitlines()[0].removeprefix("# ") for path in found]
    return HEAD + "".join(f"* [{title}]({path.name})\n" for title, path in zip(titles, found, strict=True))


def test_the_page_lists_every_decision() -> None:
    assert (FOLDER / "README.md").read_text(encoding="utf-8") == page(), "run: make docs"


if __name__ == "__main__":
    sys.stdout.write(page())
