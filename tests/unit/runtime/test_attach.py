"""A console's own way to the robot's process: what it says of a stop is so, and no stop waits for a later robot."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import cell_toml

from labctl.clock import began
from labctl.errors import StateError
from labctl.runtime.attach import Attachment, is_running
from labctl.runtime.hosting.transport import Mailroom


@pytest.fixture
def sockets(tmp_path: Path) -> Path:
    made = tmp_path / "sockets"
    made.mkdir()
    return made


@pytest.fixture
def console(tmp_path: Path, sockets: Path) -> Iterator[Attachment]:
    (tmp_path / "cell.toml").write_text(cell_toml(cameras=False))
    (tmp_path / "run.json").write_text(json.dumps({"pid": os.getpid(), "sockets": str(sockets)}))
    made = Attachment(tmp_path)
    yield made
    made.close()


def test_a_stop_with_no_robot_there_is_not_called_one_and_reaches_no_later_robot(
    console: Attachment, sockets: Path
) -> None:
    assert not console.stop_robot()
    arm = Mailroom(sockets, "arm")
    try:
        assert any(console.stop_robot() for _ in range(1200)), "the robot is there now"
        arrived = []
        while not arrived:
            assert arm.poller.poll(60_000), "no stop came"
            arrived += arm.receive()
        assert [message.kind for message in arrived] == ["stop"] and not arm.poller.poll(100)
    finally:
        arm.close()
    assert not all(console.stop_robot() for _ in range(2000)), "it is gone again"


def test_a_run_that_reads_no_commands_does_not_hold_up_its_console(console: Attachment) -> None:
    with pytest.raises(StateError, match="takes no more commands"):
        for _ in range(3000):
            console.command("look", who="ann", role="operator")


@pytest.mark.parametrize(("began_at", "going"), [("now", True), ("an earlier boot 4711", False), (None, True)])
def test_a_process_that_has_the_id_of_a_killed_run_is_not_that_run(
    tmp_path: Path, sockets: Path, began_at: str | None, going: bool
) -> None:
    """None: of a run that did not write down when it began."""
    told = {} if began_at is None else {"began": began(os.getpid()) if began_at == "now" else began_at}
    (tmp_path / "run.json").write_text(json.dumps({"pid": os.getpid(), "sockets": str(sockets), **told}))
    assert is_running(tmp_path) == going


@pytest.mark.parametrize("told", [{}, {"began": None}])
def test_a_process_that_began_after_a_run_wrote_where_it_listens_is_not_that_run(
    tmp_path: Path, sockets: Path, told: dict[str, None]
) -> None:
    """A run that did not write down when it began has written its id after that all the same."""
    contact = tmp_path / "run.json"
    contact.write_text(json.dumps({"pid": os.getpid(), "sockets": str(sockets), **told}))
    os.utime(contact, (1_000_000_000, 1_000_000_000))
    assert not is_running(tmp_path)


def test_a_process_keeps_the_time_it_began_at_and_one_that_is_gone_has_none() -> None:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    assert began(child.pid) == began(child.pid) != began(os.getpid())
    child.communicate(b"\n")
    assert began(child.pid) is None
