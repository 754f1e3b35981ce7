"""What a full picture costs on its way from a camera's process to the controller's: processor time on either side."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.runtime.hosting.transport import Mailroom

pytestmark = pytest.mark.benchmark
CLOCK = MonotonicClock()
FRAMES = 200


@pytest.mark.parametrize(("width", "height"), [(320, 240), (640, 480), (1280, 720)])
def test_cost_of_a_full_picture(width: int, height: int, tmp_path: Path) -> None:
    camera = Mailroom(tmp_path, "camera:front", (), ())
    controller = Mailroom(tmp_path, "controller", ("@frames",), ("camera:front",))
    image = np.random.default_rng(1).integers(0, 255, (height, width, 3), dtype=np.uint8)
    sent_ns = got_ns = got = 0
    waited = []
    CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 5)
    for number in range(FRAMES):
        began = CLOCK.now_ns()
        camera.send(Message("@frames", "frame", {"camera": "front", "t_ns": began, "n": number}, {"image": image}))
        sent_ns += CLOCK.now_ns() - began
        controller.poller.poll(100)
        began = CLOCK.now_ns()
        for message in controller.receive():
            got += 1
            waited.append(CLOCK.now_ns() - message.body["t_ns"])
        got_ns += CLOCK.now_ns() - began
    camera.close()
    controller.close()
    ms = (sent_ns / FRAMES / MILLISECOND, got_ns / max(got, 1) / MILLISECOND, np.median(waited) / MILLISECOND)
    print(f"\n{width}x{height}: send {ms[0]:.2f} ms, receive {ms[1]:.2f} ms, there in {ms[2]:.2f} ms ({got}/{FRAMES})")
