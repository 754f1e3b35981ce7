"""A campaign and its copy on a real PostgreSQL server: the same rows, nothing that tells arms apart, nothing changeable."""

from __future__ import annotations

import pytest
from support.machine.postgres import Postgres, needs_server
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind
from support.runs.recordings import Recordings

from labctl.store.server.connecting import Server
from labctl.store.server.copying import copy_campaign
from labctl.store.server.comparing import compare
from labctl.store.server.host_record import HostRecord

pytestmark = [pytest.mark.thorough, *needs_server]
SLOW_S = 20.0


def test_smoke(server, tmp_path):
    from labctl.runtime.campaign_run import run_campaign
    folder = make_campaign(tmp_path, blocks=2).folder
    run_campaign(folder, lambda line: None, manual=True)
    print(copy_campaign(folder, server.url("cell1"), SLOW_S))
    print(copy_campaign(folder, server.url("cell1"), SLOW_S))
    s = Server(server.url("viewer"), SLOW_S, reading=True)
    print(compare(HostRecord(folder), s))
    unblind(folder)
    print(copy_campaign(folder, server.url("cell1"), SLOW_S))
    c = compare(HostRecord(folder), s)
    print(c, c.problems)
    assert c.whole
    print(server.sql("select * from labctl.campaigns"))
    print(server.sql("select * from labctl.episodes"))
