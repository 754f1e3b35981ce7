"""The video of one camera in one episode: frames wait in a bounded queue, are encoded beside the node's loop, and are
indexed once they are in the file.

May not: wait for the encoder, or index a frame that the death of this process could still take.

An encoder that stands still is given up: what has reached its file by then is kept in a file that it cannot reach any
more, and its call is left where it hangs, in a thread of its own.

Files: video/EPISODE/CAMERA.mp4, CAMERA.depth.mkv where frames carry depth, and CAMERA.json, which says what is to be
known beside the pictures.
"""

from __future__ import annotations

import json
import math
from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

import numpy as np

from labctl.bus import Work
from labctl.clock import SECOND
from labctl.config.cell_schema import Video
from labctl.devices import Camera, Frame
from labctl.errors import LabctlError, StorageError
from labctl.plain import CameraAbout
from labctl.store.atomic_files import detach, replace_file
from labctl.store.video import DepthWriter, VideoWriter, frame_times, mend
from labctl.streams import StreamSpec

QUEUE_S = 10.0  # so many seconds of frames may wait for the encoder if their colours take no more than QUEUE_BYTES,
QUEUE_BYTES = 256_000_000  # and FEWEST at least
FEWEST = 8
ENCODED = "encoded"  # kind of the message that answers a Work
SALVAGED = "salvaged"  # and of the one that answers it where the encoder stood still
STILL_NS = 5 * SECOND  # so long without a frame, while it has some to encode, and an encoder is given up
LOOK_NS = SECOND // 4  # no turn of the node counts for more: what held up the node held up the encoder, too
STOOD_STILL = "the encoder stood still"
COLUMNS = ("frame", "device_time_us", "host_ns", "pts_us", "domain", "depth_ms")


def index_spec(camera: str, rate_hz: float) -> StreamSpec:
    """The stream that says when each frame of a video was taken.

    frame: the device's count; device_time_us: its own clock, the one that number `domain` of the side file's
    `clock_domains` names, -1 if it has none; host_ns: on receipt; pts_us: where it stands in the mp4; depth_ms: in the
    depth file, -1 without.
    """
    return StreamSpec(f"camera/{camera}", COLUMNS, "1, us, ns, us, 1, ms", rate_hz, "<i8", public_columns=COLUMNS)


@dataclass(frozen=True, slots=True)
class Terms:
    """How a camera films, from its cell. latency_s: from light to receipt;
    gather_s: how long a frame may wait for others to be encoded with it.
    """

    folder: Path
    camera: str
    video: Video
    driver: str = ""
    latency_s: float = 0.0
    gather_s: float = 0.0
    durable: bool = True


class Again(TypedDict):
    """That a camera was there again, and which it was then."""

    at_ns: int
    about: CameraAbout


@dataclass(slots=True)
class Encoded:
    """What became of a batch of frames: rows (n, 6) int64 of `index_spec` that are in the file now; error, if any."""

    rows: list[tuple[int, ...]] = field(default_factory=list)
    frames: int = 0
    closed: bool = False
    error: str = ""


class VideoRecorder:
    """See the module. The node's loop calls all but `_encode`, which runs wherever its Work is run, one at a time."""

    def __init__(
        self,
        terms: Terms,
        episode: str,
        camera: Camera,
        about: CameraAbout | None,
        domains: list[str],
    ) -> None:
        """Open the files. Raises InputError for settings no encoder takes, StorageError when the disk refuses."""
        self.episode = episode
        self.tag = f"{episode}/{terms.camera}"  # of the calls that encode it
        self.file = f"video/{episode}/{terms.camera}.mp4"
        self.closing = self.closed = False
        self.busy = False  # a call that encodes is under way
        self.frames = 0  # in the file so far
        self.error = ""
        self.given_up = ""  # why nothing is encoded any more, and nothing is wrong with the disk or the settings
        self.indexed_ns = 0  # when the last frame of the index was taken; 0 without one
        self.unindexed = 0  # frames taken that are not in the index so far
        self._terms = terms
        self._rate_hz = camera.rate_hz
        self._path = terms.folder / self.file
        fit = QUEUE_BYTES // (camera.width * camera.height * 3)
        self._most = max(FEWEST, min(round(QUEUE_S * camera.rate_hz), fit))
        self._queue: deque[Frame] = deque()
        self._encoding = 0  # frames that are being encoded
        self._turned = self._seen_turned = 0  # how often the encoder came back, and when it was last looked at
        self._still_ns = self._looked_ns = 0
        self._again: list[Again] = []
        self._first_ns: int | None = None
        self._waiting: deque[tuple[int, ...]] = deque()  # rows whose frames are not surely in the file yet
        coded = terms.video.model_dump()
        self._writer = VideoWriter(self._path, camera.width, camera.height, terms.video, rate_hz=camera.rate_hz)
        self._depth: DepthWriter | None = None
        self._reconnected: list[Again] = []
        self._about, self._domains = about, list(domains)
        self._note = {
            "schema": "labctl.camera/1",
            "camera": terms.camera,
            "episode": episode,
            "driver": terms.driver,
            "kind": camera.kind,
            "about": {} if about is None else about,
            "latency_s": terms.latency_s,
            "video": {"width": camera.width, "height": camera.height, "rate_hz": camera.rate_hz, **coded},
            "depth": None,
            "clock_domains": self._domains,
            "reconnected": self._reconnected,
        }
        self._write_note()

    def put(self, frame: Frame) -> bool:
        """Hand over a frame, later than the one before; False when there is no room for it."""
        if self.error or self.given_up or self.closing or len(self._queue) + self._encoding >= self._most:
            return False
        self._queue.append(frame)
        self.unindexed += 1
        return True

    def connected_again(self, at_ns: int, about: CameraAbout) -> None:
        """The camera was lost and is back; it may be another one."""
        self._about = self._about or about
        self._again.append({"at_ns": at_ns, "about": about})

    def close(self) -> None:
        """No more frames. Those that wait are still encoded, then the file is finished."""
        self.closing = True

    def work(self, now_ns: int) -> list[Work]:
        """The encoding that is due, to be run beside the loop; [] while some is under way. Ends in `take`.

        Also sees whether the encoder stands still: then what is due is to save what there is.
        """
        if self.busy and self._stands_still(now_ns):
            self.given_up = STOOD_STILL
            self._queue.clear()
            return [Work(self._salvage, SALVAGED, tag=self.tag)]
        if self.busy or self.closed or not (self._queue or self.closing):
            return []
        if not self.closing and now_ns - self._queue[0].host_ns < self._terms.gather_s * SECOND:
            return []
        batch, self._queue = list(self._queue), deque()
        again, self._again = self._again, []
        self._encoding, self.busy = len(batch), True
        self._still_ns, self._looked_ns = 0, now_ns
        final = self.closing
        return [Work(lambda: self._encode(batch, again, final), ENCODED, tag=self.tag, alone=True)]

    def _stands_still(self, now_ns: int) -> bool:
        """A call is under way: has the encoder come back from nothing for too long, seen now for the first time?"""
        if self.given_up:
            return False
        turned = self._turned
        waited_ns = min(now_ns - self._looked_ns, LOOK_NS)
        self._still_ns = 0 if turned != self._seen_turned else self._still_ns + waited_ns
        self._seen_turned, self._looked_ns = turned, now_ns
        return self._still_ns >= STILL_NS

    def take(self, done: Encoded) -> np.ndarray:
        """What an encoding came to: rows (n, 6) of the index, whose frames are in the file for good."""
        self._encoding, self.busy = 0, False
        self.error = self.error or done.error
        self.frames, self.closed = done.frames, done.closed
        self.unindexed -= len(done.rows)
        if done.rows:
            self.indexed_ns = done.rows[-1][2]
        return np.array(done.rows, dtype=np.int64).reshape(-1, len(COLUMNS))

    def _encode(self, batch: list[Frame], again: list[Again], final: bool) -> Encoded:
        done = Encoded(closed=final)
        try:
            for frame in batch:
                self._write(frame)
            if again:
                self._reconnected += again
                self._write_note()
            if final:
                self._writer.close()
                self._come_back()
                if self._depth is not None:
                    self._depth.close()
        except (LabctlError, ValueError) as error:
            done.error = str(error)
        done.frames = self._writer.frames
        done.rows = self._settled()
        return done

    def _write(self, frame: Frame) -> None:
        if self._first_ns is None:
            self._first_ns = frame.host_ns
        pts_us = (frame.host_ns - self._first_ns) // 1000
        depth_ms = -1
        self._writer.write(frame.image, pts_us)
        self._come_back()
        if frame.depth is not None:
            depth_ms = self._depth_writer(frame.depth).write(frame.depth, pts_us)
        device_us = round(frame.device_time * 1000) if math.isfinite(frame.device_time) else -1
        times = (device_us, frame.host_ns, pts_us)
        self._waiting.append((frame.number, *times, self._domain(frame.domain), depth_ms))

    def _come_back(self) -> None:
        """The encoder returned. Raises StorageError when that was too late: the files are no longer its own."""
        self._turned += 1
        if self.given_up:
            raise StorageError(STOOD_STILL)

    def _salvage(self) -> Encoded:
        """What has reached the files of an encoder that stands still, in files that it does not have open."""
        done = Encoded(closed=True)
        depth = self._path.with_suffix(".depth.mkv")
        try:
            detach(self._path, durable=self._terms.durable)
            mend(self._path)
            filmed = set(frame_times(self._path).tolist())
            done.frames = len(filmed)
            deep = {-1}
            if depth.is_file():
                detach(depth, durable=self._terms.durable)
                deep |= set((frame_times(depth) // 1000).tolist())
            done.rows = [row for row in list(self._waiting) if row[3] in filmed and row[5] in deep]
        except LabctlError:
            pass  # whoever seals the recording looks at the files, and says what is wrong with them
        return done

    def _settled(self) -> list[tuple[int, ...]]:
        video = self._writer.settled
        depth = self._depth.settled if self._depth is not None else None
        rows = []
        while self._waiting and video is not None and self._waiting[0][3] <= video:
            depth_ms = self._waiting[0][5]
            if depth_ms >= 0 and (depth is None or depth_ms > depth):
                break
            rows.append(self._waiting.popleft())
        return rows

    def _depth_writer(self, depth: np.ndarray) -> DepthWriter:
        if self._depth is None:
            height, width = depth.shape
            path = self._path.with_suffix(".depth.mkv")
            self._depth = DepthWriter(path, width, height, rate_hz=self._rate_hz)
            scale_m = None if self._about is None else self._about["depth_scale_m"]
            self._note["depth"] = {"codec": "ffv1", "width": width, "height": height, "depth_scale_m": scale_m}
            self._write_note()
        return self._depth

    def _domain(self, name: str) -> int:
        if name not in self._domains:
            self._domains.append(name)
            self._write_note()
        return self._domains.index(name)

    def _write_note(self) -> None:
        text = json.dumps(self._note, indent=1, sort_keys=True, ensure_ascii=False, default=str)
        replace_file(self._path.with_suffix(".json"), text.encode() + b"\n", durable=self._terms.durable)
