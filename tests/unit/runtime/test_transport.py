"""Sockets of a process: whoever only looks on holds nobody up, however slow he is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import zmq

from labctl.bus import Message, decode, encode
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


def test_what_is_no_message_is_refused_in_one_line_and_the_next_message_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = Mailroom(tmp_path, ("run",), (), ())
    context = zmq.Context()
    console = context.socket(zmq.DEALER)
    console.connect(endpoint(tmp_path, "run.in"))
    try:
        for frames in ([b"\x80"], [b'{"to": "run"}'], encode(Message("run", "command", {"verb": "look"}, sender="c"))):
            console.send_multipart(frames)
        arrived: list[Message] = []
        while not arrived:
            assert run.poller.poll(10_000), "nothing came"
            arrived += run.receive()
    finally:
        context.destroy(linger=0)
        run.close()
    assert [(message.kind, message.body) for message in arrived] == [("command", {"verb": "look"})]
    refused = capsys.readouterr().err.splitlines()
    assert len(refused) == 2 and all(line.startswith("run: refused: ") for line in refused)
