"""A campaign that keeps what tells arms apart in a database of its own is exported as one that keeps all in one is."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
from support.runs.recordings import copied

from labctl.cli import call

# Not rrd: Rerun writes ids and times of its own into each file.
THOROUGH = ("mcap", "lerobot-v3", "lerobot-v2.1", "rosbag2")
FOLDERS = ("parquet", "npz", *(pytest.param(form, marks=pytest.mark.thorough) for form in THOROUGH))


@pytest.fixture(scope="module")
def in_one(unblinded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the campaign, as labctl recorded it before 2026-11-23: no `seal/traces.db`, its rows in `traces.db`."""
    lab = copied(unblinded.parents[1], tmp_path_factory.mktemp("one") / "lab")
    folder = lab / "campaigns" / unblinded.name
    apart = folder / "seal" / "traces.db"
    with sqlite3.connect(folder / "traces.db") as database:
        database.execute("ATTACH ? AS apart", (str(apart),))
        moved = {
            table: database.execute(f"INSERT INTO {table} SELECT * FROM apart.{table}").rowcount
            for table in ("stream", "chunk")
        }
    database.close()
    for path in apart.parent.glob("traces.db*"):
        path.unlink()
    assert moved["stream"] and moved["chunk"], f"nothing lay apart: {moved}"
    return folder


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def exported(campaign: Path, form: str, out: Path) -> dict[str, bytes]:
    assert call(["export", str(campaign), "--to", form, "--out", str(out)]) == 0
    return files(out) if out.is_dir() else {out.name: out.read_bytes()}


@pytest.mark.parametrize("form", FOLDERS)
def test_every_byte_of_an_export_is_the_same(unblinded: Path, in_one: Path, tmp_path: Path, form: str) -> None:
    apart, one = (exported(campaign, form, tmp_path / name) for campaign, name in ((unblinded, "a"), (in_one, "b")))
    assert len(apart) > 1 and sorted(apart) == sorted(one)
    assert [name for name in apart if apart[name] != one[name]] == []


def test_every_byte_of_the_table_is_the_same(unblinded: Path, in_one: Path, tmp_path: Path) -> None:
    apart = exported(unblinded, "table", tmp_path / "a.csv")
    assert list(apart.values()) == list(exported(in_one, "table", tmp_path / "b.csv").values())
