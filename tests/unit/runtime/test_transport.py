"""Sockets of a process: whoever only looks on holds nobody up, however slow he is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import zmq

from labctl.bus import Message, decode
from labctl.runtime.transport import PREVIEWS, Mailroom, endpoint

PICTURE = np.zeros((240, 320, 3), np.uint8)
SENT = 400  # 92 MB


def test_previews_that_nobody_takes_are_dropped_and_never_gathered(tmp_path: Path) -> None:
    camera = Mailroom(tmp_path, ("camera:wrist",), (), ())
    context = zmq.Context()
    idle = context.socket(zmq.SUB)
    idle.rcvhwm = PREVIEWS
    idle.subscribe(b"@preview")
    idle.connect(endpoint(tmp_path, "camera:wrist.pub"))
    try:
        while not idle.poll(20):  # until it is connected
            camera.send(Message("@preview", "preview", {"n": -1}, {"image": PICTURE}))
        for number in range(SENT):
            camera.send(Message("@preview", "preview", {"n": number}, {"image": PICTURE}))
        numbers = []
        while idle.poll(200):
            numbers.append(decode(idle.recv_multipart()[1:]).body["n"])
    finally:
        context.destroy(linger=0)
        camera.close()
    assert len(numbers) < 50, "hardly more than its share was kept for it"
    assert numbers == sorted(numbers)
