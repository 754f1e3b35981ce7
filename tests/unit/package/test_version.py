"""Where a version comes from: what was built, and of a checkout what its tags say."""

from __future__ import annotations

import subprocess
from importlib import metadata
from pathlib import Path

import pytest
import setuptools_scm

from labctl import version
from labctl.version import of_checkout


def git(root: Path, *words: str) -> None:
    own = ["-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"]
    subprocess.run(["git", "-C", str(root), *own, *words], check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "file").write_text("x")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "x")
    return tmp_path


def test_a_checkout_says_what_a_package_built_from_it_would(checkout: Path) -> None:
    """Judged by setuptools-scm: no tag at all, a commit that is tagged, some later."""
    said = []
    for words in ([], ["tag", "v0.3.0"], ["commit", "--allow-empty", "-qm", "x"], ["tag", "-a", "v0.4", "-m", "x"]):
        if words:
            git(checkout, *words)
        said.append(of_checkout(checkout))
        assert said[-1] == setuptools_scm.get_version(root=str(checkout))
    assert (said[1], said[3]) == ("0.3.0", "0.4")
    assert said[0].startswith("0.1.dev1+g") and said[2].startswith("0.3.1.dev1+g")


def test_local_changes_make_a_tagged_checkout_another_version(checkout: Path) -> None:
    git(checkout, "tag", "v0.3.0")
    (checkout / "file").write_text("y")
    assert str(of_checkout(checkout)).startswith("0.3.1.dev0+g")


def test_a_checkout_without_git_says_what_was_installed(checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(checkout))
    assert of_checkout(checkout) is None
    monkeypatch.setattr(version, "of_checkout", lambda root: None)
    assert version.version.__wrapped__() == metadata.version("labctl")


def test_a_folder_that_is_no_checkout_has_no_version_of_its_own(tmp_path: Path) -> None:
    assert of_checkout(tmp_path) is None


def test_what_is_neither_installed_nor_a_checkout_still_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(version.metadata, "version", missing)
    monkeypatch.setattr(version, "of_checkout", lambda root: None)
    assert version.version.__wrapped__() == version.UNKNOWN
