"""The video of one camera in one episode, with its index as the stream camera/NAME and with what is missing of it as
gaps of that stream. The pictures as a policy got them, where its condition edits them, are a second one, NAME.seen.

May not: see what is in a picture, or hide a frame that is in no file.
"""

from __future__ import annotations

from labctl.bus import Message
from labctl.devices import Batch, Camera, Frame
from labctl.messages.pictures import FrameGap, Video
from labctl.nodes.frame_gaps import BEHIND, Due, FrameGaps
from labctl.nodes.video_recorder import ENCODED, Encoded, Terms, VideoRecorder
from labctl.plain import CameraAbout


class EpisodeVideo:
    """See the module. recorder: encodes what `record` takes; gaps: what is missing."""

    def __init__(
        self, terms: Terms, episode: str, camera: Camera, about: CameraAbout | None, domains: list[str], now_ns: int
    ) -> None:
        """Open the file. Raises what `VideoRecorder` does."""
        self._camera = terms.camera
        self._stream = f"camera/{terms.camera}"
        self._opened_ns = now_ns
        self.recorder = VideoRecorder(terms, episode, camera, about, domains)
        self.gaps = FrameGaps(self._stream, now_ns)
        self._rate_hz = camera.rate_hz
        self._due = Due(camera.rate_hz)

    @property
    def finished(self) -> bool:
        """No more frames come, and all that there will be is in the file."""
        return self.recorder.closing and self.recorder.closed

    def keeps(self, frame: Frame) -> bool:
        """Is a frame of the camera to be recorded? A gap before it is noted."""
        if self.recorder.closing or self.recorder.error:
            return False
        missing = 0 if frame.counted else self._due.missing(frame.host_ns, frame.device_time, frame.domain)
        return self.gaps.keeps(frame.number, frame.host_ns, missing)

    def lost(self, to_ns: int, why: str) -> None:
        """The camera was lost after its last frame, and is back at to_ns."""
        self.gaps.lost(to_ns, self._rate_hz, why)
        self._due = Due(self._rate_hz)

    def record(self, frame: Frame) -> None:
        """Record a frame, or note that it is missing."""
        if self.recorder.put(frame):
            self.gaps.kept(frame.host_ns)
        elif not self.recorder.closing:
            self.gaps.given_up(frame.host_ns, self.recorder.given_up or self.recorder.error or BEHIND)

    def expects(self, kind: str, tag: str) -> bool:
        """Whether it waits for what a call of this kind and tag came to; not for one that was given up."""
        return tag == self.recorder.tag and not (self.recorder.given_up and kind == ENCODED)

    def take(self, done: Encoded, now_ns: int) -> Batch:
        """What an encoding came to, as rows of the index."""
        rows = self.recorder.take(done)
        if self.recorder.given_up:
            from_ns = self.recorder.indexed_ns or self._opened_ns
            self.gaps.never_encoded(from_ns, now_ns, self.recorder.unindexed, self.recorder.given_up)
        return Batch(self._stream, rows[:, 2], rows)

    def missing(self, now_ns: int, *, force: bool = False) -> list[Message]:
        """The gaps that are over; with `force` all of them."""
        return [
            FrameGap(
                self.recorder.episode,
                stream=gap["stream"],
                from_ns=gap["from_ns"],
                to_ns=gap["to_ns"],
                lost=gap["lost"],
                why=gap["why"],
                holes=gap.get("holes"),
            ).to("run")
            for gap in self.gaps.due(now_ns, force=force)
        ]

    def delivered(self) -> Message:
        """That its video is in its file for good."""
        recorder = self.recorder
        return Video(recorder.episode, self._camera, recorder.file, recorder.frames).to("run")
