"""Whoever only looks does not wait for the database library."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from labctl.clock import Anchor
from labctl.errors import StorageError
from labctl.store.database_backend import Reader, sqlite_url
from labctl.store.journal import Journal, campaigns_in

HEAVY = ("sqlalchemy", "sqlmodel", "av", "scipy", "numpy", "pydantic", "zmq")
ANCHOR = Anchor(1, "2026-01-01T00:00:00Z", "boot")


@pytest.fixture
def url(tmp_path: Path) -> str:
    journal = Journal.create(sqlite_url(tmp_path / "journal.db"), "first")
    for number in range(3):
        journal.append("note", anchor=ANCHOR, who="p", body={"n": number})
    journal.close()
    return sqlite_url(tmp_path / "journal.db")


def test_a_reader_is_given_what_a_writer_wrote(url: str) -> None:
    reader, writer = Journal.open(url, "first", readonly=True), Journal.open(url, "first")
    try:
        assert reader.events() == writer.events() and len(reader.events(1)) == 2 and reader.head() == writer.head()
        more = writer.append("note", anchor=ANCHOR, who="p")
        assert reader.head() == (4, more.hash) and reader.events(3) == [more], "it looks anew each time"
    finally:
        reader.close()
        writer.close()


def test_looking_at_a_campaign_loads_no_database_library_and_no_schema(url: str) -> None:
    """`labctl status` of 48 episodes takes a fifth of the time without (measured: 1.38 s of processor time with all of
    it, 0.7 s without the database library, 0.3 s without the schemas and numpy).
    """
    looks = (
        "import sys, json; from labctl.store import campaign; "
        "from labctl.store.verifying import verified; from labctl.viewing import status; "
        "from labctl.reporting.times import hours; "
        "from labctl.store.journal import Journal, campaigns_in; "
        f"names = campaigns_in({url!r}); n = len(Journal.open({url!r}, names[0], readonly=True).events()); "
        f"print(json.dumps([names, n, sorted(set({HEAVY!r}) & set(sys.modules))]))"
    )
    said = subprocess.run([sys.executable, "-c", looks], check=True, capture_output=True, text=True).stdout
    assert json.loads(said) == [["first"], 3, []]


def test_a_file_that_is_missing_or_none_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such database"):
        Reader(sqlite_url(tmp_path / "none.db"))
    (tmp_path / "text.db").write_text("no database at all, but long enough to be read as one" * 20)
    with pytest.raises(StorageError, match="not a labctl database"):
        campaigns_in(sqlite_url(tmp_path / "text.db"))
