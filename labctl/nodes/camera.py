"""The camera node: grabs frames when they are due, encodes them, and records when each was taken.

May not: read a clock, open a socket, or pretend that it sees: a camera that stops answering has failed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Batch, Camera, Frame, StreamSpec
from labctl.errors import LabctlError
from labctl.nodes.tracing import TraceSender
from labctl.video import VideoWriter

PREVIEW_NS = 500 * MILLISECOND
PREVIEW_WIDTH = 160
SILENT_PERIODS = 3  # so many frame periods without a frame, and the camera counts as lost


def index_spec(camera: str, rate_hz: float) -> StreamSpec:
    """The stream that says when each frame of a video was taken: device_time_us is of the camera's own clock."""
    columns = ("frame", "device_time_us", "host_ns", "pts_us")
    return StreamSpec(f"camera/{camera}", columns, "1, us, ns, us", rate_hz, dtype="<i8")


class CameraNode:
    """See the module. `name` is the camera's in the cell; `video` the cell's [video] table; `folder` the campaign's."""

    topics = ("@obs",)

    def __init__(self, name: str, camera: Camera, video: Mapping[str, Any], folder: Path) -> None:
        self.name = f"camera:{name}"
        self.finished = False
        self._short = name
        self._camera = camera
        self._video = dict(video)
        self._folder = folder
        self._period_ns = round(SECOND / camera.rate_hz)
        self._sender = TraceSender(self.name, [index_spec(name, camera.rate_hz)])
        self._connected = False
        self._episode: str | None = None
        self._writer: VideoWriter | None = None
        self._file = ""
        self._first_ns = 0
        self._last_frame_ns = 0
        self._grab_ns = 0
        self._preview_ns = 0
        self._failed = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail, then the frame if one is due. A raising or silent camera has failed; run is told once."""
        step = Step()
        for message in inbox:
            self._read(message, now_ns, step)
        if not self._failed and not self.finished and now_ns >= self._grab_ns:
            try:
                self._look(now_ns, step)
            except LabctlError as error:
                self._fail(str(error), now_ns, step)
        step.out += self._sender.poll(now_ns)
        step.due_ns = None if self._failed or self.finished else self._grab_ns
        return step

    def _read(self, message: Message, now_ns: int, step: Step) -> None:
        body = message.body
        if message.kind == "obs":
            self._camera.sense(message.arrays)
        elif message.kind == "open":
            self._open(body["episode"], now_ns, step)
        elif message.kind == "close":
            self._close(now_ns, step)
        elif message.kind == "ack":
            self._sender.ack(body)
        elif message.kind == "resend":
            step.out += self._sender.resend()
        elif message.kind == "shutdown":
            self._close(now_ns, step)
            self._camera.close()
            self.finished = True

    def _open(self, episode: str, now_ns: int, step: Step) -> None:
        if episode == self._episode:
            return
        self._close(now_ns, step)
        step.out += self._sender.open(episode)
        self._episode, self._failed = episode, False
        self._grab_ns = self._last_frame_ns = now_ns
        self._file = f"video/{episode}/{self._short}.mp4"
        try:
            self._writer = VideoWriter(
                self._folder / self._file,
                self._camera.width,
                self._camera.height,
                rate_hz=self._camera.rate_hz,
                **self._video,
            )
        except LabctlError as error:
            self._fail(str(error), now_ns, step)

    def _close(self, now_ns: int, step: Step) -> None:
        if self._episode is None:
            return
        step.out += self._sender.close(now_ns)
        if self._writer is not None:
            try:
                frames = self._writer.close()
                body = {"episode": self._episode, "camera": self._short, "file": self._file, "frames": frames}
                step.out.append(Message("run", "video", body))
            except LabctlError as error:
                self._fail(str(error), now_ns, step)
        self._episode, self._writer = None, None

    def _look(self, now_ns: int, step: Step) -> None:
        """Ask for a frame. A real camera may block here until it has one: it has this process to itself."""
        if not self._connected:
            self._camera.connect(now_ns)
            self._connected = True
            self._last_frame_ns = now_ns
        frame = self._camera.grab(now_ns)
        # Between episodes only the preview needs pictures; without one, ask again well before the next is due.
        interval_ns = self._period_ns if self._episode else max(self._period_ns, PREVIEW_NS)
        if frame is None:
            self._grab_ns = now_ns + self._period_ns // 4
            silent_ns = now_ns - self._last_frame_ns
            if silent_ns > SILENT_PERIODS * interval_ns:
                self._fail(f"no frame for {silent_ns / SECOND:.1f} s", now_ns, step)
            return
        on_time = now_ns - self._grab_ns < interval_ns
        self._grab_ns = (self._grab_ns if on_time else now_ns) + interval_ns
        self._last_frame_ns = now_ns
        if self._writer is not None:
            self._record(self._writer, frame)
        if now_ns - self._preview_ns >= PREVIEW_NS:
            self._preview_ns = now_ns
            stride = max(1, frame.image.shape[1] // PREVIEW_WIDTH)
            small = np.ascontiguousarray(frame.image[::stride, ::stride])
            step.out.append(
                Message("@preview", "preview", {"camera": self._short, "t_ns": frame.host_ns}, {"image": small})
            )

    def _record(self, writer: VideoWriter, frame: Frame) -> None:
        if not writer.frames:
            self._first_ns = frame.host_ns
        pts_us = (frame.host_ns - self._first_ns) // 1000
        writer.write(frame.image, pts_us)
        row = (frame.number, round(frame.device_time * 1000), frame.host_ns, pts_us)
        self._sender.add(Batch(f"camera/{self._short}", np.array([frame.host_ns]), np.array([row], dtype=np.int64)))

    def _fail(self, reason: str, now_ns: int, step: Step) -> None:
        """Say that this camera is lost and since when; what was recorded stays and is closed when the episode is."""
        self._failed = True
        gap = {"stream": f"camera/{self._short}", "from_ns": self._last_frame_ns, "to_ns": now_ns, "why": reason}
        step.out.append(Message("run", "event", {"kind": "note", "t_ns": now_ns, "body": gap}))
        step.out.append(Message("run", "failed", {"name": self.name, "reason": reason, "episode": self._episode}))
