"""`make release` in a clone of its own, without a network: what it refuses, and what it makes."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[3]
FRAGMENT = re.compile(r"^[\w-]+(\.[\w-]+)?\.(added|changed|fixed|removed)\.md$")
# Fragments of before they had to name their issue, which nobody knows for certain now. The next release collects them.
WITHOUT_ISSUE = ROOT / "tests" / "support" / "install" / "fragments_without_issue.txt"
NEEDED = ("tests/support/install/", "tests/campaigns/at_88dea84/lab/")  # of what is kept of each release
NOTHING_RED = ((sys.executable, "-c", ""),)


def git(root: Path, *words: str) -> str:
    return subprocess.run(["git", "-C", str(root), *words], capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture(scope="module")
def releasing() -> ModuleType:
    spec = importlib.util.spec_from_file_location("releasing", ROOT / ".ci" / "release.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A repository of its own with what would be committed here, pictures and tests left out."""
    listed = ["ls-files", "--cached", "--others", "--exclude-standard"]
    root = tmp_path / "labctl"
    for name in git(ROOT, *listed).splitlines():
        if (name.startswith(NEEDED) or not name.startswith(("tests/", "docs/"))) and (ROOT / name).is_file():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / name, root / name)
    git(tmp_path, "init", "-q", "labctl")
    for name, value in (("user.name", "x"), ("user.email", "x@example.org"), ("commit.gpgsign", "false")):
        git(root, "config", name, value)
    git(root, "add", ".")
    git(root, "commit", "-qm", "x")
    for variable, value in (("NAME", "x"), ("EMAIL", "x@example.org")):
        monkeypatch.setenv(f"GIT_AUTHOR_{variable}", value)
        monkeypatch.setenv(f"GIT_COMMITTER_{variable}", value)
    yield root


@pytest.fixture
def small(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("x")
    git(tmp_path, "add", ".")
    git(tmp_path, "-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false", "commit", "-qm", "x")
    return tmp_path


@pytest.mark.thorough
def test_a_release_is_a_commit_a_tag_a_source_archive_and_a_wheel_that_say_one_version(
    releasing: ModuleType, tree: Path
) -> None:
    made = releasing.release(tree, "0.1.0", NOTHING_RED, "2026-11-25")
    assert [path.name for path in made] == ["labctl-0.1.0-py3-none-any.whl", "labctl-0.1.0.tar.gz"]
    assert git(tree, "describe", "--exact-match") == "v0.1.0" and git(tree, "status", "--porcelain") == ""
    with zipfile.ZipFile(made[0]) as wheel:
        assert "Version: 0.1.0\n" in wheel.read("labctl-0.1.0.dist-info/METADATA").decode()
        assert {name.split("/")[0] for name in wheel.namelist()} == {"labctl", "labctl-0.1.0.dist-info"}
    with tarfile.open(made[1]) as archive:
        names = archive.getnames()
    assert {"labctl-0.1.0/PKG-INFO", "labctl-0.1.0/drivers/__init__.py"} <= {*names}, "it builds without git"
    assert [path.name for path in (tree / "changelog.d").iterdir() if FRAGMENT.match(path.name)] == []
    assert (tree / "tests" / "releases" / "0.1.0" / "lab" / "campaigns" / "kept" / "journal.db").is_file()
    changes = (tree / "CHANGELOG.md").read_text()
    assert re.search(r"\n\n## 0\.1\.0 \(2026-11-25\)\n+### Added\n\n- ", changes)
    assert "version: 0.1.0\ndate-released: 2026-11-25\n" in (tree / "CITATION.cff").read_text()
    with pytest.raises(releasing.Refused, match=r"v0\.1\.0 is there already"):
        releasing.release(tree, "0.1.0", NOTHING_RED)


@pytest.mark.parametrize(
    ("version", "changed", "check", "said"),
    [
        ("0.2", False, "", r"VERSION is '0\.2'; give three numbers"),
        ("0.2.0", True, "", r"the tree has changes; .*\n\?\? left\.txt"),
        ("0.2.0", False, "raise SystemExit(1)", r"raise SystemExit\(1\)` failed; nothing was released"),
    ],
)
def test_a_bad_number_a_changed_tree_and_red_tests_are_refused_and_nothing_changes(
    releasing: ModuleType, small: Path, version: str, changed: bool, check: str, said: str
) -> None:
    before = git(small, "rev-parse", "HEAD")
    if changed:
        (small / "left.txt").write_text("")
    with pytest.raises(releasing.Refused, match=said):
        releasing.release(small, version, ((sys.executable, "-c", check),))
    assert (git(small, "rev-parse", "HEAD"), git(small, "tag")) == (before, "")
    assert not (small / "dist").exists()


def test_every_fragment_is_named_as_the_release_collects_it() -> None:
    names = {path.name for path in (ROOT / "changelog.d").iterdir()} - {"README.md", "template.md.jinja"}
    assert [name for name in names if not FRAGMENT.match(name)] == []


def test_a_new_fragment_names_its_issue() -> None:
    """As changelog.d/README.md asks: <issue>.<word>.<kind>.md."""
    names = {path.name for path in (ROOT / "changelog.d").iterdir()} - {"README.md", "template.md.jinja"}
    without = {name for name in names if not re.match(r"\d+\.", name)}
    assert sorted(without - {*WITHOUT_ISSUE.read_text("utf-8").split()}) == [], "name it <issue>.<word>.<kind>.md"
