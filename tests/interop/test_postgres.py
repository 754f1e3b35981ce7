"""A real PostgreSQL server is only a URL away: journal and traces behave as on SQLite. Needs Debian's `postgresql`."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy

from labctl.clock import ManualClock
from labctl.core.events import Kind
from labctl.errors import StorageError
from labctl.store.journal import DuplicateCommand, Journal, chain_problems
from labctl.store.traces import Chunk, TraceStore
from labctl.streams import StreamSpec

pytestmark = pytest.mark.interop
CLOCK = ManualClock(1_000_000_000)


def binary(name: str) -> str | None:
    """A server binary: on the path, or where Debian keeps it."""
    found = [shutil.which(name), *map(str, sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}")))]
    return next((path for path in reversed(found) if path), None)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A cluster of its own on loopback, owned by `postgres` when we are root, as the server insists."""
    initdb, pg_ctl = binary("initdb"), binary("pg_ctl")
    if initdb is None or pg_ctl is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    pytest.importorskip("psycopg")
    folder = Path(tmp_path_factory.mktemp("pg"))
    as_user: list[str] = []
    if os.geteuid() == 0:
        as_user = ["runuser", "-u", "postgres", "--"]
        for parent in (folder, *folder.parents[:2]):
            parent.chmod(0o755)
        shutil.chown(folder, "postgres", "postgres")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    data = folder / "data"
    subprocess.run([*as_user, initdb, "-D", str(data), "-A", "trust", "-U", "labctl"], check=True, capture_output=True)
    options = f"-h 127.0.0.1 -p {port} -k {folder}"
    start = [*as_user, pg_ctl, "-D", str(data), "-o", options, "-l", str(folder / "log"), "-w", "start"]
    subprocess.run(start, check=True, capture_output=True)
    try:
        yield f"postgresql+psycopg://labctl@127.0.0.1:{port}/postgres"
    finally:
        subprocess.run([*as_user, pg_ctl, "-D", str(data), "-m", "immediate", "stop"], check=True, capture_output=True)


def opened(server: str, campaign: str) -> Journal:
    journal = Journal.create(server, campaign)
    journal.append(Kind.CAMPAIGN_OPENED, anchor=CLOCK.anchor(), who="x", body={"campaign": campaign})
    return journal


def test_a_chain_is_kept_and_read_back_by_another_connection(server: str) -> None:
    with_two = opened(server, "chain")
    with_two.append(Kind.DEVIATION, anchor=CLOCK.anchor(), who="x", body={"text": "ünïcode"}, command_id="c1")
    with pytest.raises(DuplicateCommand):
        with_two.append(Kind.DEVIATION, anchor=CLOCK.anchor(), who="x", body={"text": "again"}, command_id="c1")
    reader = Journal.open(server, "chain", readonly=True)
    assert reader.events() == with_two.events() and len(reader.events()) == 2
    assert chain_problems(reader.events()) == []
    with pytest.raises(StorageError):
        reader.append(Kind.DEVIATION, anchor=CLOCK.anchor(), who="x", body={})
    reader.close()
    with_two.close()


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE event SET body = '{}' WHERE campaign = 'guarded'",
        "DELETE FROM event WHERE campaign = 'guarded'",
        "UPDATE command SET seq = 9 WHERE campaign = 'guarded'",
        "INSERT INTO event SELECT * FROM event WHERE campaign = 'guarded' "
        "ON CONFLICT (campaign, seq) DO UPDATE SET body = '{}'",
    ],
    ids=["update", "delete", "command", "replacing insert"],
)
def test_the_server_refuses_to_change_an_entry(server: str, tampering: str) -> None:
    if "guarded" not in campaigns(server):
        journal = opened(server, "guarded")
        journal.append(Kind.DEVIATION, anchor=CLOCK.anchor(), who="x", body={"text": "t"}, command_id="c")
        journal.close()
    engine = sqlalchemy.create_engine(server)
    with pytest.raises(sqlalchemy.exc.DatabaseError), engine.begin() as connection:
        connection.exec_driver_sql(tampering)
    engine.dispose()
    reader = Journal.open(server, "guarded", readonly=True)
    assert chain_problems(reader.events()) == [] and len(reader.events()) == 2
    reader.close()


def campaigns(server: str) -> set[str]:
    engine = sqlalchemy.create_engine(server)
    try:
        with engine.begin() as connection:
            return {row[0] for row in connection.exec_driver_sql("SELECT DISTINCT campaign FROM event")}
    except sqlalchemy.exc.DatabaseError:
        return set()  # no table yet
    finally:
        engine.dispose()


def test_a_second_writer_is_refused(server: str) -> None:
    first = opened(server, "two-writers")
    second = Journal.open(server, "two-writers")
    first.append(Kind.DEVIATION, anchor=CLOCK.anchor(), who="x", body={"text": "first"})
    with pytest.raises(StorageError):
        second.append(Kind.DEVIATION, anchor=CLOCK.anchor(), who="x", body={"text": "second"})
    assert [event.body.get("text") for event in first.events()] == [None, "first"]
    first.close()
    second.close()


def test_traces_are_written_once_and_read_back_exactly(server: str) -> None:
    store = TraceStore.create(server, "traces")
    spec = StreamSpec("arm/state", ("a", "b"), "rad", 100.0)
    store.declare("e1", [spec])
    t_ns = np.arange(0, 10**9, 10**7, dtype=np.int64)
    values = np.random.default_rng(0).normal(size=(100, 2))
    for _ in range(2):
        store.write("e1", [Chunk("arm/state", 0, t_ns, values)])
    back_t, back = store.read("e1", "arm/state")
    assert np.array_equal(back_t, t_ns) and np.array_equal(back, values)
    sealed = store.seal("e1")
    assert sealed["arm/state"]["n"] == 100 and store.check("e1", sealed) == []
    store.close()
