"""Between processes a full picture is the newest or none: a listener that was away finds no backlog."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support.runs.live_campaign import wait_for

from labctl.bus import Message
from labctl.runtime.hosting.transport import Mailroom

CAMERAS = ("camera:front", "camera:wrist")


@pytest.fixture
def rooms(tmp_path: Path):
    made = [Mailroom(tmp_path, name, (), ()) for name in CAMERAS]
    made.append(Mailroom(tmp_path, "controller", ("@frames", "@obs"), CAMERAS))
    yield made
    for room in made:
        room.close()


def picture(camera: str, number: int) -> Message:
    image = np.full((480, 640, 3), number % 256, np.uint8)
    return Message("@frames", "frame", {"camera": camera, "t_ns": number}, {"image": image}, camera)


def test_a_listener_gets_the_newest_of_each_camera_and_no_backlog(rooms):
    front, wrist, controller = rooms
    got: dict[str, list[Message]] = {}

    def first() -> bool:
        """Until the subscriptions are through, what is published is lost."""
        front.send(picture("front", 1))
        wrist.send(picture("wrist", 1))
        for message in controller.receive():
            got.setdefault(message.body["camera"], []).append(message)
        return len(got) == 2

    wait_for("a picture of each camera", first)
    for number in range(2, 202):
        front.send(picture("front", number))
        wrist.send(picture("wrist", number))
    late: dict[str, list[int]] = {"front": [], "wrist": []}

    def newest() -> bool:
        for message in controller.receive():
            assert (message.arrays["image"] == message.body["t_ns"] % 256).all() and message.kind == "frame"
            late[message.body["camera"]].append(message.body["t_ns"])
        return all(numbers and numbers[-1] == 201 for numbers in late.values())

    wait_for("the newest picture of each camera", newest)
    assert max(map(len, late.values())) < 20, "200 were published; what nobody looked at in time was dropped"
    assert all(numbers == sorted(numbers) for numbers in late.values())
