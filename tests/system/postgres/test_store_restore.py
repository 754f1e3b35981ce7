"""The restore drill of docs/postgresql.md: a base backup and archived write-ahead log bring the server back to a point
in time, the copy there holds as far as it goes, and the host sends the rest again.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machine.postgres import ADMIN, Postgres, cluster, needs_server, set_up
from support.runs.campaigns import events_of, make_campaign
from support.runs.live_campaign import wait_for

from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import close_campaign, freeze_campaign
from labctl.store.server.comparing import Compared, compare
from labctl.store.server.connecting import Server
from labctl.store.server.copying import copy_campaign
from labctl.store.server.fetching import fetch
from labctl.store.server.host_record import HostRecord

pytestmark = [pytest.mark.thorough, *needs_server]
PATIENCE_S = 60.0


@pytest.fixture
def archiving() -> Iterator[tuple[Postgres, Path]]:
    """A server that archives its log, and where."""
    with cluster() as made:
        archive = made.folder / "archive"
        archive.mkdir()
        made.give(archive)
        made.configure(f"archive_mode = on\narchive_command = 'test ! -f {archive}/%f && cp %p {archive}/%f'\n")
        made.start()
        set_up(made)
        yield made, archive


def compared(folder: Path, server: Postgres) -> Compared:
    asked = Server(server.url("cell1"), PATIENCE_S, reading=True)
    try:
        return compare(HostRecord(folder), asked)
    finally:
        asked.close()


@pytest.mark.limit(300)
def test_a_server_comes_back_to_a_point_in_time_and_the_host_sends_the_rest_again(
    archiving: tuple[Postgres, Path], tmp_path: Path
) -> None:
    server, archive = archiving
    folder = make_campaign(tmp_path / "lab", name="drill", blocks=2).folder
    copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    # the backup of every night
    base = server.folder / "restored"
    at = ("-h", "127.0.0.1", "-p", str(server.port), "-U", ADMIN)
    server.program("pg_basebackup", *at, "-D", str(base), "-c", "fast")
    # the evening, up to the point that is wanted back, and beyond it
    run_campaign(folder, lambda line: None, manual=True)
    copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    wanted = len(events_of(folder))
    server.sql("SELECT pg_create_restore_point('after the last block')")
    close_campaign(folder, who="tester")
    freeze_campaign(folder, who="tester", unreviewed=True)
    copy_campaign(folder, server.url("cell1"), PATIENCE_S)
    last = server.sql("SELECT pg_walfile_name(pg_switch_wal())")
    wait_for("the log's last file in the archive", lambda: (archive / last).exists())
    # the disk of the server is lost
    server.kill()
    shutil.rmtree(server.data)
    restored = Postgres(server.folder, data="restored")
    restored.configure(
        f"restore_command = 'cp {archive}/%f %p'\nrecovery_target_name = 'after the last block'\n"
        "recovery_target_action = 'promote'\n"
    )
    (base / "recovery.signal").touch()
    restored.give(base / "recovery.signal")
    restored.start()
    try:
        wait_for("the end of recovery", lambda: restored.sql("SELECT pg_is_in_recovery()") == "f")
        found = compared(folder, restored)
        assert found.problems == [] and not found.whole
        assert (found.entries, found.of_entries) == (wanted, wanted + 2), (
            "it is back at that point, no more and no less"
        )
        assert found.chunks == found.of_chunks > 50
        asked = Server(restored.url("cell1"), PATIENCE_S)
        fetched = fetch(asked, "drill", tmp_path / "back")
        asked.close()
        assert fetched.entries == wanted and fetched.chunks == found.chunks
        again = copy_campaign(folder, restored.url("cell1"), PATIENCE_S)
        assert again.sent_entries == 2 and again.sent_chunks == 0
        assert compared(folder, restored).whole
        with pytest.raises(AssertionError, match="refused"):
            restored.sql("SET ROLE labctl_owner; DELETE FROM labctl.event")
    finally:
        restored.stop()
