"""A camera node at work without a campaign: in simulated time, or in real time with its work in a thread beside it."""

from __future__ import annotations

import queue
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from labctl.bus import Message, Work
from labctl.clock import SECOND, ManualClock, MonotonicClock
from labctl.config.cell_schema import Video
from labctl.nodes.camera import CameraNode
from labctl.nodes.video_recorder import Terms
from labctl.runtime.hosting.simulated_host import finish_work
from support.machine.patience import Patience, idle_ns

VIDEO = Video(crf=18)


class CameraNodeRig:
    """Steps a node as its host does and keeps what it says; `video_recorder` records one episode of it."""

    def __init__(self, folder: Path, camera: Any, *, live: bool, video: Video | None = None) -> None:
        self.clock = MonotonicClock() if live else ManualClock(1000 * SECOND)
        self.folder, self.live = folder, live
        terms = Terms(folder, "wrist", video or VIDEO, driver="test", durable=False)
        self.node = CameraNode(camera, terms, real_time=live)
        self.said: list[Message] = []
        self._done: queue.SimpleQueue[Message] = queue.SimpleQueue()
        self._pool = ThreadPoolExecutor(1) if live else None

    def film(self, seconds: float, episode: str = "e-1") -> np.ndarray:
        """Record an episode; rows of its index. In real time, once the camera gives pictures."""
        self._until(lambda: any(m.kind == "camera" and not m.body["lost"] for m in self.said))
        self._step(Message("camera:wrist", "open", {"episode": episode}))
        over_ns = self.clock.now_ns() + round(seconds * SECOND)
        self._until(lambda: self.clock.now_ns() >= over_ns)
        self._step(Message("camera:wrist", "close", {"episode": episode}))
        self._until(lambda: any(m.kind == "video" and m.body["episode"] == episode for m in self.said))
        return np.concatenate(
            [m.arrays["values"] for m in self.said if m.kind == "chunk" and m.body["episode"] == episode]
        )

    def path(self, episode: str = "e-1") -> Path:
        return self.folder / "video" / episode / "wrist.mp4"

    def end(self) -> None:
        """Let the node end."""
        self._step(Message("camera:wrist", "shutdown"))
        self._until(lambda: self.node.finished)
        if self._pool:
            self._pool.shutdown()

    def _until(self, true: Any) -> None:
        patience = Patience(self.clock, idle_ns if self.live else lambda: None)
        while not true():
            assert not patience.over(), "waited in vain"
            self._step()

    def _step(self, *messages: Message) -> None:
        mail = list(messages)
        while not self._done.empty():
            mail.append(self._done.get())
        step = self.node.step(self.clock.now_ns(), mail)
        self.said += step.out
        for work in step.work:
            if self._pool:
                self._pool.submit(self._work, work)
            else:
                self._work(work)
        if step.due_ns is not None and self._done.empty():
            most = self.clock.now_ns() + SECOND // 200 if self.live else step.due_ns
            self.clock.sleep_until(min(step.due_ns, most))

    def _work(self, work: Work) -> None:
        self._done.put(finish_work(work)[0])
