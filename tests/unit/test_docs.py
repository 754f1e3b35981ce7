"""What every written page keeps: links that lead somewhere, and nothing of the machine it was written on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LINK = re.compile(r"\]\(([^)\s#]+)(?:#[^)]*)?\)")
MACHINE = re.compile(r"(?<![\w.])/(?:tmp|work|root|home)/[A-Za-z0-9_.-]+")
REGISTRY = re.compile(r"https?://([^ \"/]*registry|[^ \"]*/(simple|packages)/)")


def written() -> list[Path]:
    """Every file that is or would be committed, tests left out."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listed.stdout.splitlines() if not name.startswith("tests/")]
    return [path for path in paths if path.is_file()]


def texts() -> list[tuple[Path, str]]:
    found = []
    for path in written():
        try:
            found.append((path, path.read_text(encoding="utf-8")))
        except UnicodeDecodeError:
            continue  # a picture
    return found


def broken_links(path: Path, text: str) -> list[str]:
    """Relative targets of a page that are not there."""
    targets = [target for target in LINK.findall(text) if not target.startswith(("http:", "https:", "mailto:"))]
    return [target for target in targets if not (path.parent / target).exists()]


def test_every_relative_link_leads_somewhere():
    broken = {path.name: broken_links(path, text) for path, text in texts() if path.suffix == ".md"}
    assert {name: links for name, links in broken.items() if links} == {}


def test_a_broken_link_is_noticed():
    assert broken_links(ROOT / "README.md", "see [this](docs/no-such-page.md) and [that](pyproject.toml#project)") == [
        "docs/no-such-page.md"
    ]


def test_a_page_that_types_an_emulated_cell_says_where_its_file_is():
    """Without `--robot` a new lab has the simulated cell alone."""
    typed = [(path.name, text, re.findall(r"cells/(emulated_\w+)\.toml", text)) for path, text in texts()]
    pages = [(name, cell, text) for name, text, cells in typed for cell in cells if name.endswith(".md")]
    assert [(name, cell) for name, cell, text in pages if f"labctl new . --robot {cell}" not in text] == []
    assert len(pages) > 2


def test_nothing_names_a_folder_of_the_machine_it_was_written_on():
    assert [(path.name, MACHINE.findall(text)) for path, text in texts() if MACHINE.search(text)] == []


def test_nothing_names_a_package_registry():
    assert [path.name for path, text in texts() if REGISTRY.search(text)] == []


def test_decision_pages_are_numbered_without_gaps_and_say_context_decision_consequences():
    pages = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
    numbers = [int(page.name.split("-")[0]) for page in pages]
    assert numbers == list(range(1, len(pages) + 1))
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert [part for part in ("Context", "Decision", "Consequences") if f"## {part}" not in text] == [], page.name


FREEZES = re.compile(r"^\$ .*labctl freeze .*$", re.M)


def frozen_unseen(text: str) -> list[str]:
    """Lines to type that freeze a campaign which no line above them has reviewed, and do not say so."""
    lines = FREEZES.finditer(text)
    return [line[0] for line in lines if "--unreviewed" not in line[0] and "--finish" not in text[: line.end()]]


def test_whoever_types_a_page_freezes_nothing_that_was_not_reviewed():
    """`close && freeze && unblind`, as the README had it, froze without a review for ever."""
    pages = [(path, text) for path, text in texts() if path.suffix == ".md"]
    assert sum(len(FREEZES.findall(text)) for _, text in pages) >= 2, "README and tutorial"
    assert {path.name: frozen_unseen(text) for path, text in pages if frozen_unseen(text)} == {}
    assert frozen_unseen("$ labctl close first && labctl freeze first && labctl unblind first\n")
