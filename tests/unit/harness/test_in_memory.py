"""The tests' folders lie in memory where there is room for them, and where somebody named a place, there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from harness.in_memory import LEFT, MEMORY, NAMED, ROOM, available, has_room, lie_in_memory

ROOMY = f"MemTotal: 99 kB\nMemAvailable:   {LEFT // 1024} kB\nBuffers: 1 kB\n"


@pytest.fixture
def meminfo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_flag=0, f_bavail=ROOM >> 12, f_frsize=4096))
    monkeypatch.setattr(os, "access", lambda path, mode: True)
    (tmp_path / "meminfo").write_text(ROOMY)
    return tmp_path / "meminfo"


def test_with_room_they_lie_in_memory(meminfo: Path) -> None:
    assert lie_in_memory({}, meminfo) == {NAMED: str(MEMORY)}


@pytest.mark.parametrize("name", ["TMPDIR", NAMED])
def test_a_place_that_was_named_is_kept(meminfo: Path, name: str) -> None:
    assert lie_in_memory({name: "/elsewhere"}, meminfo) == {}


def test_with_little_memory_they_lie_on_the_disk(meminfo: Path) -> None:
    meminfo.write_text(ROOMY.replace(str(LEFT // 1024), str(LEFT // 1024 - 1)))
    assert lie_in_memory({}, meminfo) == {} and lie_in_memory({}, meminfo.with_name("none")) == {}


@pytest.mark.parametrize(
    "found", [{"f_flag": os.ST_NOEXEC}, {"f_bavail": (ROOM >> 12) - 1}], ids=["runs no program", "64 MB, as in Docker"]
)
def test_where_no_program_runs_or_little_fits_they_do_not(
    meminfo: Path, monkeypatch: pytest.MonkeyPatch, found: dict[str, int]
) -> None:
    whole = {"f_flag": 0, "f_bavail": ROOM >> 12, "f_frsize": 4096, **found}
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(**whole))
    assert lie_in_memory({}, meminfo) == {}


def test_a_folder_that_is_not_there_has_none(tmp_path: Path) -> None:
    assert not has_room(tmp_path / "none", LEFT)


@pytest.mark.parametrize("text", ["", "MemAvailable: many kB\n", "MemAvailable: 12 pages\n"])
def test_what_does_not_say_how_much_memory_is_left_is_none(text: str) -> None:
    assert available(text) == 0
