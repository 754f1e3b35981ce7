"""Whatever a campaign's folder holds is bound: each value of each table and each file is changed in turn, and `verify`
names it. What is added to the folder, or to a table, and bound to nothing, fails here until it is bound or listed below
as what nothing reads.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import recorded_with_cameras
from support.runs.recordings import Recordings, copied

from labctl.store.campaign import close_campaign, freeze_campaign, unblind_campaign
from labctl.store.chain_heads import read_heads
from labctl.store.verifying.verify import verify_campaign

# Nothing that is shown, reported, exported or cut from a campaign comes from these.
NOT_READ = {
    "logs": "what processes printed",
    "run.json": "where the run process listens",
    ".lock": "who writes",
    "seal/readiness.log": "why an arm did not answer, for a person",
    "command": "table of the ids of commands, by which each is carried out once",
}
# After unblinding the journal has its own copy of what these hold.
IN_THE_JOURNAL = {"seal/openings.jsonl", "seal/schedule.json"}
ROWS = 3  # of a table of chunks, spread evenly: a row is bound as every other of its kind


@pytest.fixture(scope="module")
def blind(recordings: Recordings, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a campaign that was run with cameras, before anybody closed it."""
    original = recordings.of(recorded_with_cameras)
    lab = copied(original.parents[1], tmp_path_factory.mktemp("blind") / "lab")
    return lab / "campaigns" / original.name


@pytest.fixture(scope="module")
def unblinded(blind: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = copied(blind, tmp_path_factory.mktemp("unblinded") / blind.name)
    close_campaign(folder, who="p-1")
    freeze_campaign(folder, who="p-1", unreviewed=True)
    unblind_campaign(folder, who="p-1")
    return folder


# Before unblinding traces and files are bound in the same way; the sealed values have a test of their own below.
@pytest.fixture(params=[pytest.param("blind", marks=pytest.mark.thorough), "unblinded"])
def folder(request: pytest.FixtureRequest) -> Path:
    return request.getfixturevalue(request.param)


def holds(folder: Path) -> bool:
    return not verify_campaign(folder).problems


def changed(value: Any) -> Any:
    """Another value of the same type."""
    match value:
        case None:
            return "x"
        case int() | float():
            return value + 1_000_000
        case bytes():
            return value[:-1] + bytes([value[-1] ^ 1])
    middle = len(value) // 2
    return value[:middle] + ("0" if value[middle : middle + 1] != "0" else "1") + value[middle + 1 :]


def cells(database: Path, table: str) -> Iterator[tuple[str, int, Any]]:
    """(column, rowid, value) to change: of each kind of entry and each stream the first row, of chunks a few."""
    raw = sqlite3.connect(database)
    columns = [row[1] for row in raw.execute(f"PRAGMA table_info({table})")]
    chosen = {
        "event": "GROUP BY kind",
        "stream": "",
        "chunk": f"WHERE rowid % (SELECT 1 + count(*) / {ROWS} FROM chunk) = 0",
    }
    rows = raw.execute(f"SELECT rowid, * FROM {table} {chosen.get(table, '')}").fetchall()
    raw.close()
    assert rows
    for rowid, *values in rows:
        yield from ((column, rowid, value) for column, value in zip(columns, values, strict=True))


def tables(database: Path) -> list[str]:
    raw = sqlite3.connect(database)
    found = [name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    raw.close()
    return [name for name in found if not name.startswith("sqlite_") and name not in NOT_READ]


def write(database: Path, statement: str, values: tuple[Any, ...]) -> None:
    raw = sqlite3.connect(database)
    for (trigger,) in raw.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
        raw.execute(f"DROP TRIGGER {trigger}")
    assert raw.execute(statement, values).rowcount == 1
    raw.commit()
    raw.close()


@pytest.mark.parametrize(
    "name", [pytest.param("journal.db", marks=pytest.mark.thorough), "traces.db", "seal/traces.db"]
)
def test_each_value_of_each_row_is_bound(folder: Path, name: str) -> None:
    database = folder / name
    kept, silent, tried = database.read_bytes(), [], 0
    assert holds(folder)
    for table in tables(database):
        for column, rowid, value in list(cells(database, table)):
            try:
                write(database, f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (changed(value), rowid))
                tried += 1
                if holds(folder):
                    silent.append(f"{table}.{column} of row {rowid}: {str(value)[:60]}")
            finally:
                database.write_bytes(kept)
    assert not silent and tried > (30 if name == "seal/traces.db" else 50)


@pytest.mark.parametrize("name", ["journal.db", "traces.db", "seal/traces.db"])
def test_no_row_is_taken_away_unseen(folder: Path, name: str) -> None:
    database = folder / name
    kept, silent = database.read_bytes(), []
    for table in tables(database):
        for rowid in sorted({rowid for _, rowid, _ in cells(database, table)}):
            if table == "event" and rowid > read_heads(folder)[-1].seq:
                continue  # the tail that no head stands for yet
            try:
                write(database, f"DELETE FROM {table} WHERE rowid = ?", (rowid,))
                if holds(folder):
                    silent.append(f"{table} row {rowid}")
            finally:
                database.write_bytes(kept)
    assert not silent


def test_each_file_is_bound(folder: Path) -> None:
    """A bit of each is turned over, and each is taken away."""
    mine = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    names = [path.relative_to(folder).as_posix() for path in mine]
    left_out = IN_THE_JOURNAL if folder.parent.name.startswith("unblinded") else set()
    silent, tried = [], 0
    for path, name in zip(mine, names, strict=True):
        if {name, name.split("/")[0]} & {*NOT_READ, *left_out} or path.suffix == ".db":
            continue
        kept = path.read_bytes()
        assert kept, f"{name} is empty"
        tried += 1
        ends_in_a_time = name == "heads.log"  # for people; no report has it
        for where in (0, len(kept) // 2, len(kept) - (60 if ends_in_a_time else 2)):
            turned = bytearray(kept)
            turned[where] ^= 1
            path.write_bytes(bytes(turned))
            if holds(folder):
                silent.append(f"byte {where} of {name}")
        path.unlink()
        if holds(folder):
            silent.append(f"{name} taken away")
        path.write_bytes(kept)
    assert not silent and tried >= 8
    assert any(name.endswith(".mp4") for name in names), "with videos"


def test_each_sealed_value_is_bound_before_unblinding(blind: Path) -> None:
    """Issue 17.5: load times rewritten, and a failure invented, before unblinding. Whoever has the secret can give a
    value a digest that fits; the journal still knows better.
    """
    from labctl.store.ledger import Ledger, canonical, sealed_digest

    path, silent = blind / "seal/openings.jsonl", []
    kept = path.read_bytes()
    lines = kept.splitlines(keepends=True)
    seal = Ledger.open(blind).open_all()
    secret, openings = bytes.fromhex(seal["secret_hex"]), seal["openings"]
    assert {"arm", "controller", "start_up", "streams"} <= {one["field"] for one in openings}
    for number, one in enumerate(openings):
        forged = {**one, "value": [one["value"], "and more"]}
        forged["sha256"] = sealed_digest(secret, one["episode"], one["field"], forged["value"])
        line = canonical(forged) + b"\n"
        attacks = {
            "rewritten": [*lines[:number], line, *lines[number + 1 :]],
            "taken away": [*lines[:number], *lines[number + 1 :]],
            "added": [*lines[:number], line, *lines[number:]],
        }
        for what, text in attacks.items():
            path.write_bytes(b"".join(text))
            if holds(blind):
                silent.append(f"{one['field']} of {one['episode']} {what}")
    path.write_bytes(kept)
    assert not silent and holds(blind)


def test_a_failure_invented_after_the_campaign_was_frozen_is_named(blind: Path, tmp_path: Path) -> None:
    from labctl.store.ledger import Ledger

    folder = copied(blind, tmp_path / blind.name)
    close_campaign(folder, who="p-1")
    freeze_campaign(folder, who="p-1", unreviewed=True)
    episode = Ledger.open(folder).open_all()["openings"][0]["episode"]
    Ledger.open(folder).seal_value(episode, "failure:1", "it fell over")
    problems = verify_campaign(folder).problems
    assert ["added after the campaign was frozen" in str(problem) for problem in problems] == [True]
    with pytest.raises(Exception, match=r"not unblinded.*added after the campaign was frozen"):
        unblind_campaign(folder, who="p-1")


def test_columns_that_change_places_are_named(unblinded: Path, tmp_path: Path) -> None:
    """Issue 17.4: renamed columns gave an arm a median answer time of -0.0999 s past verify and report."""
    folder = copied(unblinded, tmp_path / unblinded.name)
    raw = sqlite3.connect(folder / "traces.db")
    (spec,) = raw.execute("SELECT spec FROM stream WHERE name = 'arm/state' LIMIT 1").fetchone()
    raw.close()
    swapped = spec.replace("q.fr3_joint1", "?").replace("q.fr3_joint2", "q.fr3_joint1").replace("?", "q.fr3_joint2")
    assert swapped != spec
    write(
        folder / "traces.db",
        "UPDATE stream SET spec = ? WHERE rowid = (SELECT min(rowid) FROM stream WHERE spec = ?)",
        (swapped, spec),
    )
    (problem,) = verify_campaign(folder).problems
    assert problem.what == "changed stream declaration" and "arm/state" in problem.where
