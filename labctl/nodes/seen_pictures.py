"""What a policy gets of a camera in an episode whose condition has edits: edited, and filmed beside the raw video.

May not: replace a raw picture, or take a frame that was to be dropped for one that is missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from labctl.bus import Work
from labctl.devices import Batch, Camera, Frame
from labctl.messages.body_parts import GapBody
from labctl.messages.edits import EditEntry
from labctl.messages.pictures import Video
from labctl.nodes.edited_pictures import EditedPictures
from labctl.nodes.frame_gaps import BEHIND, FrameGaps
from labctl.nodes.video_recorder import Encoded, Terms, VideoRecorder
from labctl.plain import CameraAbout
from labctl.streams import SEEN


class SeenPictures:
    """Of one episode. Its stream and files are called after the camera, with SEEN behind.

    It is recorded in every trial of the condition, a person's too, so that it tells no arm.
    """

    def __init__(
        self,
        terms: Terms,
        episode: str,
        camera: Camera,
        about: CameraAbout | None,
        domains: list[str],
        edits: Sequence[EditEntry],
        seed: int,
        now_ns: int,
    ) -> None:
        """Open the file. Raises what `VideoRecorder` does."""
        self.camera = terms.camera + SEEN
        self.stream = f"camera/{self.camera}"
        self._edited = EditedPictures(terms.camera, edits, seed)
        own = replace(terms, camera=self.camera)
        self._video = VideoRecorder(own, episode, camera, about, domains, tag=episode + SEEN)
        self._gaps = FrameGaps(self.stream, now_ns)

    @property
    def tag(self) -> str:
        """That of the calls that encode it."""
        return self._video.tag

    @property
    def busy(self) -> bool:
        """Something is being encoded."""
        return self._video.busy

    @property
    def closed(self) -> bool:
        """Its file is finished."""
        return self._video.closed

    def edited(self, frame: Frame) -> Frame | None:
        """The frame as a policy gets it; None where it is dropped."""
        image = self._edited.of(frame.image)
        return None if image is None else replace(frame, image=image, depth=None)

    def record(self, frame: Frame) -> None:
        """Record an edited frame."""
        if self._video.put(frame):
            self._gaps.kept(frame.host_ns)
        elif not self._video.closing:
            self._gaps.given_up(frame.host_ns, self._video.given_up or self._video.error or BEHIND)

    def work(self, now_ns: int) -> list[Work]:
        """The encoding that is due."""
        return self._video.work(now_ns)

    def take(self, done: Encoded) -> Batch:
        """What an encoding came to, as rows of its index."""
        rows = self._video.take(done)
        return Batch(self.stream, rows[:, 2], rows)

    def gaps(self, now_ns: int, *, force: bool = False) -> list[GapBody]:
        """What is missing of it."""
        return self._gaps.due(now_ns, force=force)

    def close(self) -> None:
        """No more frames."""
        self._video.close()

    def delivered(self) -> Video:
        """That its video is in its file for good."""
        return Video(self._video.episode, self.camera, self._video.file, self._video.frames)
