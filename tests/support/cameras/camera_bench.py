"""A camera node on a bench: its camera gives what it is told to, its work is done when the test says so."""

from __future__ import annotations

import numpy as np

from labctl.bus import Message, Work
from labctl.clock import MILLISECOND, SECOND
from labctl.config.cell_schema import Video
from labctl.devices import Frame
from labctl.errors import DeviceLost
from labctl.nodes.camera import CameraNode
from labctl.nodes.video_recorder import Terms
from labctl.runtime.hosting.simulated_host import finish_work

PERIOD = 100 * MILLISECOND
VIDEO = Video(codec="libx264", preset="ultrafast", crf=23, keyframe_s=1.0)


class Camera:
    """Gives a frame whenever asked, unless told to be silent or to raise."""

    kind = "sim"
    width, height, rate_hz = 64, 48, 10.0

    def __init__(self) -> None:
        self.silent = self.with_depth = False
        self.error: Exception | None = None
        self.sensed: list[float] = []
        self.connections = self.closings = 0
        self.tried_ns: list[int] = []
        self.number = 0
        self.serial = "one"
        self.domain, self.counted = "device", True
        self.size = (48, 64, 3)

    def connect(self, now_ns: int) -> None:
        self.tried_ns.append(now_ns)
        if self.error:
            raise self.error
        self.connections += 1

    def sense(self, observation) -> None:
        self.sensed.append(float(observation["x"][0]))

    def grab(self, now_ns: int) -> Frame | None:
        if self.error:
            raise self.error
        if self.silent:
            return None
        self.number += 1
        image = np.full(self.size, self.number % 250, dtype=np.uint8)
        depth = np.full((48, 64), self.number, dtype=np.uint16) if self.with_depth else None
        return Frame(image, now_ns + 1234, now_ns / 1e6 + 0.5, self.number, depth, self.domain, self.counted)

    def about(self) -> dict:
        return {"model": "test", "serial": self.serial, "depth_scale_m": 0.001}

    def close(self) -> None:
        self.closings += 1


class Bench:
    """Steps a node at its due times and keeps all it says. Work is done at once unless it is `held`."""

    def __init__(self, folder, *, camera=None, real_time=False, **terms) -> None:
        self.camera = camera or Camera()
        self.node = CameraNode(
            self.camera,
            Terms(folder, "wrist", VIDEO, driver="test", latency_s=0.05, durable=False, **terms),
            real_time=real_time,
        )
        self.now_ns = 5 * SECOND
        self.said: list[Message] = []
        self.held: list[Work] | None = None
        self.due_ns: int | None = None
        self.send()

    def send(self, *messages: Message) -> None:
        step = self.node.step(self.now_ns, list(messages))
        self.said += step.out
        self.due_ns = step.due_ns
        if self.held is not None:
            self.held += step.work
        elif step.work:
            self.send(*(finish_work(work)[0] for work in step.work))

    def release(self) -> None:
        """Do the work that was held, and all that follows from it."""
        held, self.held = self.held or [], None
        self.send(*(finish_work(work)[0] for work in held))

    def run(self, seconds: float) -> None:
        end_ns = self.now_ns + round(seconds * SECOND)
        while self.due_ns is not None and self.due_ns <= end_ns:
            self.now_ns = max(self.now_ns, self.due_ns)
            self.send()
        self.now_ns = end_ns

    def of(self, kind: str) -> list[Message]:
        return [message for message in self.said if message.kind == kind]

    def words(self) -> list[str]:
        """What run was told of the camera, in order."""
        return [message.body["lost"] for message in self.of("camera")]

    def rows(self) -> np.ndarray:
        return np.concatenate([chunk.arrays["values"] for chunk in self.of("chunk")])


def absent(why: str) -> Camera:
    """A camera that is not there."""
    camera = Camera()
    camera.error = DeviceLost(why)
    return camera


def open_(episode: str) -> Message:
    return Message("camera:wrist", "open", {"episode": episode})


def close(episode: str) -> Message:
    return Message("camera:wrist", "close", {"episode": episode})
