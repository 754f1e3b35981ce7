"""The process that copies to the lab's server: one that is away is tried again, ever more slowly, and said once."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import make_campaign

from labctl.errors import StorageError
from labctl.store.server.beside import LONGEST_S, PERIOD_S, follow
from labctl.store.server.following import Follower
from labctl.store.server.host_record import HostRecord, check_links
from labctl.store.server.schema import TABLES, script


def away() -> None:
    raise StorageError("db: the server does not answer")


def test_a_server_that_is_away_is_tried_ever_more_slowly_and_said_once(tmp_path: Path) -> None:
    said: list[str] = []
    waited: list[float] = []

    def over(seconds: float) -> bool:
        waited.append(seconds)
        return len(waited) > 8

    follower = Follower(make_campaign(tmp_path).folder, away, said.append)  # type: ignore[arg-type]
    assert follow(follower, over) is False, "it says that the server lacks something"
    assert waited[0] == PERIOD_S and waited == sorted(waited) and waited[-1] == LONGEST_S
    assert said == ["db: the server does not answer; it is tried again"]


def test_the_host_s_rows_are_those_of_its_files_and_the_seal_s_are_not_among_them(tmp_path: Path) -> None:
    host = HostRecord(make_campaign(tmp_path).folder)
    entries = host.entries()
    assert host.key == f"{host.name}@{entries[0].hash[:16]}" and not host.unblinded
    check_links(entries, 0, "", "journal")
    assert [part for part in host.parts()] and all(part.streams(None) == [] for part in host.parts())
    assert len(list(host.parts())) == 1, "traces.db, and not the seal's"


def test_a_folder_without_a_campaign_is_said_in_a_line(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="no such database"):
        HostRecord(tmp_path)


def test_every_table_of_the_server_is_guarded() -> None:
    text = script()
    for table in TABLES:
        for wanted in ("CREATE TABLE IF NOT EXISTS labctl.{}", "BEFORE UPDATE OR DELETE OR TRUNCATE ON labctl.{}",
                       "ALTER TABLE labctl.{} ENABLE ROW LEVEL SECURITY"):  # fmt: skip
            assert wanted.format(table) in text
