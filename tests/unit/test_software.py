"""What a record says of the software that an episode ran on."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from labctl import software
from labctl.reporting.software_used import differing, together
from labctl.software import code_digest, collect_pins, in_words

PINS: software.Pins = {
    "labctl": "0.1.0",
    "git": {"commit": "a" * 40, "dirty": False},
    "code": "c" * 64,
    "python": "3.11.2",
    "packages": {"numpy": "2.4.1", "franky-control": "2.0.0"},
}


def test_what_labctl_requires_is_named_with_its_version_extras_included() -> None:
    packages = collect_pins()["packages"]
    for name in ("numpy", "pyzmq", "sqlmodel", "SQLAlchemy", "pydantic", "franky-control", "rerun-sdk"):
        assert packages[name] == metadata.version(name)
    assert "labctl" not in packages
    if sys.version_info < (3, 13):  # its wheels end there
        assert packages["ur_rtde"] == metadata.version("ur_rtde")


def test_a_package_that_is_not_installed_is_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(software.metadata, "requires", lambda name: ["numpy>=2", 'no-such-thing; extra == "x"'])
    assert {"numpy"} < {*software._required()}
    assert "no-such-thing" not in software._required()


def test_a_changed_byte_or_name_changes_the_digest_and_nothing_else_does(tmp_path: Path) -> None:
    package = tmp_path / "labctl"
    package.mkdir()
    (tmp_path / "drivers").mkdir()
    (package / "a.py").write_text("x = 1\n")
    (tmp_path / "drivers" / "b.py").write_text("y = 2\n")
    first = code_digest(package)
    (package / "note.txt").write_text("no code")
    assert code_digest(package) == first
    (tmp_path / "drivers" / "b.py").write_text("y = 3\n")
    second = code_digest(package)
    (package / "a.py").rename(package / "c.py")
    assert len({first, second, code_digest(package)}) == 3


def test_a_wheel_and_its_source_tree_have_one_digest(tmp_path: Path) -> None:
    tree, wheel = tmp_path / "tree" / "labctl", tmp_path / "wheel" / "labctl"
    for folder in (tree, tree.parent / "drivers", wheel / "drivers"):
        folder.mkdir(parents=True)
    for path in (tree / "a.py", wheel / "a.py"):
        path.write_text("x = 1\n")
    for path in (tree.parent / "drivers" / "b.py", wheel / "drivers" / "b.py"):
        path.write_text("y = 2\n")
    assert code_digest(tree) == code_digest(wheel)


def test_a_driver_that_was_added_and_not_committed_makes_a_checkout_dirty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "labctl" / "software.py"
    module.parent.mkdir(parents=True)
    module.write_text("")
    own = ["-c", "user.name=x", "-c", "user.email=x", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q"], ["add", "."], [*own, "commit", "-qm", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *words], check=True)
    monkeypatch.setattr(software, "__file__", str(module))
    (tmp_path / "notes.txt").write_text("not code")
    assert (software._git() or {}).get("dirty") is False
    (tmp_path / "drivers").mkdir()
    (tmp_path / "drivers" / "ours.py").write_text("x = 1")
    assert (software._git() or {}).get("dirty") is True


def test_episodes_of_the_same_software_are_one_stretch_and_a_change_is_named() -> None:
    newer: software.Pins = {**PINS, "packages": {"numpy": "2.4.2", "rerun-sdk": "0.41"}}
    found = together([("e-1", PINS), ("e-2", PINS), ("e-3", newer), ("e-4", PINS)])
    assert [(one.first, one.last, one.episodes) for one in found] == [
        ("e-1", "e-2", 2),
        ("e-3", "e-3", 1),
        ("e-4", "e-4", 1),
    ]
    said = "numpy 2.4.1 to 2.4.2, franky-control 2.0.0 to absent, rerun-sdk absent to 0.41"
    assert differing(PINS, newer) == said


def test_a_version_is_a_line() -> None:
    assert in_words(PINS) == f"labctl 0.1.0, commit {'a' * 12}, code {'c' * 12}"
    assert in_words({**PINS, "git": {"commit": "b" * 40, "dirty": True}}).startswith(
        f"labctl 0.1.0, commit {'b' * 12} with local changes, code"
    )
    old: software.Pins = {"labctl": "0.1.0", "git": None, "python": "3.11.2", "packages": {}}
    assert in_words(old) == "labctl 0.1.0"
