"""A console's own way to the robot's process: what it says of a stop is so, and no stop waits for a later robot."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from labctl.errors import StateError
from labctl.runtime.attach import Attachment
from labctl.runtime.transport import Mailroom


@pytest.fixture
def sockets(tmp_path: Path) -> Path:
    made = tmp_path / "sockets"
    made.mkdir()
    return made


@pytest.fixture
def console(tmp_path: Path, sockets: Path) -> Iterator[Attachment]:
    (tmp_path / "cell.toml").write_text("")
    (tmp_path / "run.json").write_text(json.dumps({"pid": os.getpid(), "sockets": str(sockets)}))
    made = Attachment(tmp_path)
    yield made
    made.close()


def test_a_stop_with_no_robot_there_is_not_called_one_and_reaches_no_later_robot(
    console: Attachment, sockets: Path
) -> None:
    assert not console.stop_arm()
    arm = Mailroom(sockets, ("arm",), (), ())
    try:
        assert any(console.stop_arm() for _ in range(100)), "the robot is there now"
        arrived = []
        while not arrived:
            assert arm.poller.poll(10_000), "no stop came"
            arrived += arm.receive()
        assert [message.kind for message in arrived] == ["stop"] and not arm.poller.poll(100)
    finally:
        arm.close()
    assert not all(console.stop_arm() for _ in range(20)), "it is gone again"


def test_a_run_that_reads_no_commands_does_not_hold_up_its_console(console: Attachment) -> None:
    with pytest.raises(StateError, match="takes no more commands"):
        for _ in range(3000):
            console.command("look", who="ann", role="operator")
