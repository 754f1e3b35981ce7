"""Campaigns for tests of a lab's server: recorded, copied to it, compared with it."""

from __future__ import annotations

from pathlib import Path

from labctl.runtime.campaign_run import run_campaign
from labctl.store.server.comparing import Compared, compare
from labctl.store.server.connecting import Server
from labctl.store.server.copying import copy_campaign
from labctl.store.server.host_record import HostRecord
from support.machine.postgres import Postgres
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.recordings import Recordings, copied

PATIENCE_S = 60.0


def recorded(lab: Path, name: str = "copied") -> Path:
    """A campaign of a person and a policy, run to its end; blind."""
    folder = make_campaign(lab, [HUMAN, policy("zebra", skill="swift")], name=name, blocks=2).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


def own(recordings: Recordings, tmp_path: Path, name: str) -> Path:
    """A copy of such a campaign, of which the server knows nothing yet: each name is recorded once."""
    original = recordings.of(recorded, name=name)
    return copied(original.parent.parent, tmp_path / "lab") / "campaigns" / original.name


def sent(folder: Path, server: Postgres, login: str = "cell1") -> Compared:
    copy_campaign(folder, server.url(login), PATIENCE_S)
    return compared(folder, server, login)


def compared(folder: Path, server: Postgres, login: str = "cell1") -> Compared:
    asked = Server(server.url(login), PATIENCE_S, reading=True)
    try:
        return compare(HostRecord(folder), asked)
    finally:
        asked.close()
