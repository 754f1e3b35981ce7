"""Who may do what on the lab's server: cells add to their own campaigns, viewers look, nobody changes anything."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.machine.postgres import PASSWORD, Postgres, needs_server
from support.runs.campaigns import unblind
from support.runs.recordings import Recordings, copied
from support.runs.server_copies import PATIENCE_S, own, recorded, sent

from labctl.cli import call
from labctl.errors import StateError, StorageError
from labctl.store.campaign import close_campaign
from labctl.store.server.comparing import compare
from labctl.store.server.connecting import NotAllowed, Server
from labctl.store.server.copying import copy_campaign
from labctl.store.server.fetching import Listed, fetch, listed
from labctl.store.server.host_record import HostRecord

pytestmark = [pytest.mark.thorough, *needs_server]


@pytest.mark.parametrize("login", ["cell1", "viewer"])
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE labctl.event SET body = '{}'",
        "DELETE FROM labctl.event",
        "TRUNCATE labctl.chunk",
        "UPDATE labctl.witnessed SET at = now()",
        "DELETE FROM labctl.campaign",
        "ALTER TABLE labctl.event DISABLE TRIGGER ALL",
        "DROP SCHEMA labctl CASCADE",
        "CREATE TABLE labctl.more (a int)",
        "INSERT INTO labctl.witnessed (campaign, seq, hash, at) VALUES ('a', 1, 'b', now())",
        "INSERT INTO labctl.campaign (campaign, name, first, writer) VALUES ('a', 'a', 'a', 'cell2')",
    ],
)
def test_no_login_of_a_cell_or_a_viewer_can_change_what_is_there(server: Postgres, login: str, statement: str) -> None:
    with pytest.raises(AssertionError, match=r"permission denied|must be owner"):
        server.sql(statement, user=login)


@pytest.mark.parametrize(
    "verb", ["UPDATE labctl.event SET body = '{}'", "DELETE FROM labctl.chunk", "TRUNCATE labctl.command"]
)
def test_the_owner_too_is_refused_by_a_trigger(server: Postgres, verb: str) -> None:
    with pytest.raises(AssertionError, match="refused"):
        server.sql(f"SET ROLE labctl_owner; {verb}")


def test_a_viewer_adds_nothing_and_sees_no_sample_of_a_blind_campaign(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    folder = own(recordings, tmp_path, "looked-at")
    with pytest.raises(StorageError, match="labctl_writer"):
        copy_campaign(folder, server.url("viewer"), PATIENCE_S)
    sent(folder, server)
    one = "SELECT count(*) FROM labctl.{} WHERE campaign LIKE 'looked-at@%'"
    assert server.sql(one.format("chunk"), user="viewer") == "0"
    assert server.sql(one.format("chunk"), user="cell2") == "0", "another cell's login is no better"
    assert int(server.sql(one.format("chunk"), user="cell1")) > 50
    viewer = Server(server.url("viewer"), PATIENCE_S, reading=True)
    with pytest.raises(StateError, match="until the campaign is unblinded"):
        fetch(viewer, "looked-at", tmp_path / "back")
    with pytest.raises(StateError, match="until the campaign is unblinded"):
        compare(HostRecord(folder), viewer)
    assert not (tmp_path / "back").exists()
    assert [one.phase for one in listed(viewer) if one.name == "looked-at"] == ["open"]
    unblind(folder)
    sent(folder, server)
    assert int(server.sql(one.format("chunk"), user="viewer")) > 50
    viewer.close()


def test_another_cell_cannot_write_into_a_campaign(server: Postgres, recordings: Recordings, tmp_path: Path) -> None:
    folder = own(recordings, tmp_path, "not-yours")
    sent(folder, server)
    close_campaign(folder, who="tester")
    with pytest.raises(StorageError, match="may not do that"):
        copy_campaign(folder, server.url("cell2"), PATIENCE_S)
    server.sql("GRANT cell1 TO cell2")  # the campaign moved to another computer
    try:
        assert sent(folder, server, "cell2").whole
    finally:
        server.sql("REVOKE cell1 FROM cell2")


def test_a_campaign_of_another_cell_keeps_no_other_of_the_lab_from_being_copied(
    server: Postgres, recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    theirs = own(recordings, tmp_path, "another-cell-s")
    sent(theirs, server)
    close_campaign(theirs, who="tester")
    mine = copied(recordings.of(recorded, name="my-own"), theirs.with_name("my-own"))
    words = ["--url", server.url("cell2"), "--lab", str(tmp_path / "lab")]
    assert call(["database", "copy", *words, "--json"]) == 69
    told = capsys.readouterr()
    copies = {one["campaign"]: one for one in json.loads(told.out)["campaigns"]}
    assert "may not do that" in copies["another-cell-s"]["error"] and "another-cell-s: " in told.err
    assert copies["my-own"]["error"] is None and copies["my-own"]["sent_entries"] > 0
    assert HostRecord(mine).key in [one.campaign for one in _listed(server)]


@pytest.mark.parametrize("gone", ["DROP ROLE {}", "ALTER ROLE {} RENAME TO {}_before"])
def test_a_login_that_is_dropped_or_renamed_stops_no_copy_check_or_look_of_other_campaigns(
    server: Postgres, recordings: Recordings, tmp_path: Path, gone: str
) -> None:
    """Each question about samples, whosever they were, ended in a traceback: role "cell3" does not exist."""
    login = f"cell_{gone[0].lower()}"
    server.sql(f"CREATE ROLE {login} LOGIN PASSWORD '{PASSWORD}' IN ROLE labctl_writer")
    theirs = own(recordings, tmp_path, f"left-{login[-1]}")
    sent(theirs, server, login)
    close_campaign(theirs, who="tester")
    open_ = copied(recordings.of(recorded, name=f"open-{login[-1]}"), theirs.with_name(f"open-{login[-1]}"))
    unblind(open_)
    server.sql(gone.format(login, login))
    assert sent(open_, server, "cell2").whole
    one = "SELECT count(*) FROM labctl.chunk WHERE campaign LIKE '{}@%'"
    assert int(server.sql(one.format(open_.name), user="viewer")) > 50
    assert server.sql(one.format(theirs.name), user="viewer") == "0", "still blind, and nobody's"
    with pytest.raises(NotAllowed, match="may not do that"):
        copy_campaign(theirs, server.url("cell2"), PATIENCE_S)
    server.sql(f"CREATE ROLE {login} NOLOGIN")  # as docs/postgresql.md says
    server.sql(f"GRANT {login} TO cell2")
    assert sent(theirs, server, "cell2").whole


def test_what_the_server_refuses_otherwise_is_a_line_and_tried_again(
    server: Postgres, recordings: Recordings, tmp_path: Path
) -> None:
    """Its tables changed by hand, say: a verb that had written ended in a traceback, and the copy beside a run too."""
    folder = own(recordings, tmp_path, "tables-changed")
    server.sql("SET ROLE labctl_owner; ALTER TABLE labctl.chunk RENAME t0_ns TO began_ns")
    try:
        with pytest.raises(StorageError, match=r"does not take what labctl asks.*t0_ns"):
            copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    finally:
        server.sql("SET ROLE labctl_owner; ALTER TABLE labctl.chunk RENAME began_ns TO t0_ns")
    assert sent(folder, server).whole


def _listed(server: Postgres) -> list[Listed]:
    viewer = Server(server.url("viewer"), PATIENCE_S, reading=True)
    try:
        return listed(viewer)
    finally:
        viewer.close()
