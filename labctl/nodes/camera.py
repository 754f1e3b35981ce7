"""The camera node: grabs frames as they come, has them filmed, and says what is missing. A camera that is lost is asked
for again until it answers.

May not: read a clock, open a socket, wait for an encoder or a connection, or pretend that it sees.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.core.liveness import NO_PICTURE_YET
from labctl.devices import Camera, Frame
from labctl.errors import LabctlError
from labctl.messages import pictures
from labctl.messages.driving import Failed
from labctl.messages.processes import Shutdown
from labctl.messages.recording import Close, Open
from labctl.nodes.connecting import CONNECTED, Connection
from labctl.nodes.edited_pictures import EditedPictures, edits_of
from labctl.nodes.episode_video import EpisodeVideo
from labctl.nodes.phase_table import by_kind, carry_out, on, on_raw
from labctl.nodes.photos import KINDS as PHOTO_KINDS
from labctl.nodes.photos import ScenePhotos
from labctl.nodes.preview import Preview
from labctl.nodes.tracing import FROM_RECORDER, TraceSender
from labctl.nodes.video_recorder import ENCODED, LOOK_NS, SALVAGED, Terms, index_spec
from labctl.streams import SEEN


class CameraNode:
    """See the module. `connect` replaces the camera's own where the cameras of a machine take turns.

    real_time: frames are asked for as they come, at all times. In simulated time each is asked for when it is due,
    and between episodes only what a preview needs.
    """

    def __init__(
        self,
        camera: Camera,
        terms: Terms,
        *,
        real_time: bool = False,
        connect: Callable[[int], None] | None = None,
        photos: ScenePhotos | None = None,
    ) -> None:
        self.name = f"camera:{terms.camera}"
        self.finished = False
        self._terms = terms
        self._camera = camera
        self._photos = photos or ScenePhotos(terms.camera, terms.folder)
        self._drawn = camera.kind not in ("real", "replay")
        self.topics = ("@obs",) if self._drawn else ()
        self._real_time = real_time
        self._period_ns = round(SECOND / camera.rate_hz)
        self._connection = Connection(
            connect or camera.connect, camera.close, nothing_yet=NO_PICTURE_YET, silent_ns=3 * self._period_ns
        )
        self.sender = TraceSender(self.name, [index_spec(terms.camera, camera.rate_hz)])
        self._preview = Preview(terms.camera, real_time=real_time)
        self._frames_wanted = False  # by a policy of the campaign, whichever arm's turn it is: it tells no arm
        self._video: EpisodeVideo | None = None
        self._edits: EditedPictures | None = None  # of an episode whose condition has edits of these pictures
        self._seen: EpisodeVideo | None = None  # what a policy got of them then
        self._next_open: Open | None = None
        self._ending = False
        self._shown: str | None = None  # why there are no pictures, as run has it
        self._grab_ns = 0
        self._domains: list[str] = []

    @property
    def _videos(self) -> list[EpisodeVideo]:
        """Those of the open episode: of the raw pictures, and of the edited ones."""
        return [video for video in (self._video, self._seen) if video is not None]

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail, then a frame if one may be there, then what is to be encoded and sent."""
        step = Step()
        for message in inbox:
            carry_out(MESSAGES, self, message, now_ns, step)
        connect = self._connection.due(now_ns)
        if self._ending:
            self._end()
        elif connect:
            step.work.append(self._connection.attempt(now_ns))
        elif self._connection.connected and now_ns >= self._grab_ns:
            self._look(now_ns, step)
        for video in self._videos:
            step.work += video.recorder.work(now_ns)
            step.out += video.missing(now_ns)
        step.out += self.sender.poll(now_ns)
        if not self._ending:
            step.due_ns = self._grab_ns if self._connection.connected else self._connection.due_ns
            if any(video.recorder.busy for video in self._videos):  # its encoder is looked at
                step.due_ns = min(step.due_ns, now_ns + LOOK_NS)
        return step

    def _sense(self, message: Message, now_ns: int, step: Step) -> None:
        self._camera.sense(message.arrays)

    def _photo(self, message: Message, now_ns: int, step: Step) -> None:
        self._photos.hear(message, now_ns, step)
        if self._photos.waiting:
            self._grab_ns = min(self._grab_ns, now_ns)

    def _shut_down(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        self._finish(now_ns, step)
        self._ending = True

    # -- the video

    def _open(self, sent: Open, now_ns: int, step: Step) -> None:
        episode = sent.episode
        self._frames_wanted = sent.frames
        if self._video is not None and episode != self._video.recorder.episode:
            self._finish(now_ns, step)  # run has given that one up; it is finished first
            self._next_open = sent
        if self._video is not None:
            return
        self._next_open = None
        edits = edits_of(self._terms.camera, sent.inputs)
        seen = replace(self._terms, camera=self._terms.camera + SEEN)
        step.out += self.sender.open(episode, [index_spec(seen.camera, self._camera.rate_hz)] if edits else [])
        if not self._real_time:
            self._grab_ns = now_ns
        try:
            about = self._camera.about() if self._connection.connected else None
            video_of = (episode, self._camera, about, self._domains, now_ns)
            self._edits = EditedPictures(self._terms.camera, edits, sent.seed) if edits else None
            self._seen = EpisodeVideo(seen, *video_of) if edits else None
            self._video = EpisodeVideo(self._terms, *video_of)
        except LabctlError as error:
            self._edits = self._seen = None
            step.out.append(Failed(self.name, episode, reason=str(error)).to("run"))

    def _close(self, sent: Close, now_ns: int, step: Step) -> None:
        self._frames_wanted = False
        self._finish(now_ns, step)

    def _finish(self, now_ns: int, step: Step) -> None:
        """No more frames are recorded of the open episode, and none is opened after it."""
        self._next_open = None
        if self._video is None:
            step.out += self.sender.close(now_ns)
        for video in self._videos:
            video.recorder.close()
        self._deliver(now_ns, step)  # where its encoder was given up before

    def _encoded(self, message: Message, now_ns: int, step: Step) -> None:
        body = message.body
        video = next((one for one in self._videos if one.expects(message.kind, body["tag"])), None)
        if video is None:
            return  # a call that was given up has come back after all
        if "error" in body:
            raise RuntimeError(body["error"])  # nothing a video foresees: this process is not to be trusted
        self.sender.add(video.take(body["result"], now_ns))
        self._deliver(now_ns, step)
        self._tell(step)

    def _deliver(self, now_ns: int, step: Step) -> None:
        """Deliver what was filmed once all of it is in its files; the raw video last, which is what is waited for."""
        videos = self._videos
        if not videos or not all(video.finished for video in videos):
            return
        for video in videos:
            step.out += video.missing(now_ns, force=True)
        step.out += self.sender.close(now_ns)
        step.out += [video.delivered() for video in reversed(videos)]
        self._video = self._seen = self._edits = None
        if self._next_open is not None:
            self._open(self._next_open, now_ns, step)

    # -- the camera

    def _attempted(self, message: Message, now_ns: int, step: Step) -> None:
        self._connection.attempted(message.body.get("error", ""), now_ns)
        if not self._connection.connected:
            self._tell(step)
            return
        self._grab_ns = now_ns
        for video in self._videos:
            video.recorder.connected_again(now_ns, self._camera.about())

    def _look(self, now_ns: int, step: Step) -> None:
        """Ask for a frame. A real camera may block here for a frame's time: it has this process to itself."""
        try:
            frame = self._camera.grab(now_ns)
        except LabctlError as error:
            self._lose(str(error), now_ns, step)
            return
        if frame is None:
            part = 8 if self._real_time else 4
            self._grab_ns = now_ns + max(MILLISECOND, self._period_ns // part)
            if self._connection.silent(now_ns):
                self._lose("it gives no pictures", now_ns, step, reset=True)
            return
        expected = (self._camera.height, self._camera.width, 3)
        if frame.image.shape != expected:
            self._lose(f"its pictures are {frame.image.shape}, not {expected}", now_ns, step, reset=True)
            return
        self._next_grab(frame.host_ns, now_ns)
        self._take(frame, now_ns, step)

    def _next_grab(self, host_ns: int, now_ns: int) -> None:
        if self._real_time and self._drawn:  # one that is drawn when asked for: asked late, it must not stay late
            self._grab_ns = now_ns + self._period_ns // 4
            return
        if self._real_time:  # a little before the next one can be there; at once when more of them wait
            self._grab_ns = max(now_ns + MILLISECOND, host_ns + self._period_ns - 2 * MILLISECOND)
            return
        filming = self._video is not None and not self._video.recorder.closing
        wanted = filming or self._photos.waiting
        interval_ns = self._period_ns if wanted else max(self._period_ns, self._preview.every_ns)
        on_time = now_ns - self._grab_ns < interval_ns
        self._grab_ns = (self._grab_ns if on_time else now_ns) + interval_ns

    def _take(self, frame: Frame, now_ns: int, step: Step) -> None:
        video = self._video
        if self._connection.lost and video is not None:
            video.lost(frame.host_ns, self._connection.cause)
        self._connection.heard(now_ns)
        if frame.domain not in self._domains:
            self._domains.append(frame.domain)
        kept = video is not None and video.keeps(frame)
        if video is not None and kept:
            video.record(frame)
        self._tell(step)
        self._photos.see(frame, step)
        step.out += [*self._as_seen(frame, kept), *self._preview.of(frame, now_ns)]

    def _as_seen(self, frame: Frame, kept: bool) -> list[Message]:
        """The picture that a policy gets, edited and filmed where its condition has edits. kept: the raw one is. It is
        filmed in every trial of the condition, a person's too, so that its video tells no arm.
        """
        if self._edits is None or self._seen is None:
            return self._published(frame)
        image = self._edits.of(frame.image)
        if image is None:
            return []
        edited = replace(frame, image=image, depth=None)
        if kept:
            self._seen.record(edited)
        return self._published(edited)

    def _published(self, frame: Frame) -> list[Message]:
        """The full picture for a controller that reads it, while an episode is open that wants it; never recorded."""
        if not self._frames_wanted:
            return []
        return [pictures.Frame(self._terms.camera, frame.host_ns).to("@frames", {"image": frame.image})]

    def _lose(self, why: str, now_ns: int, step: Step, *, reset: bool = False) -> None:
        self._connection.lose(why, now_ns, reset=reset)
        self._tell(step)

    def _tell(self, step: Step) -> None:
        """Let run know why there are no pictures, or no video of them, when that has changed."""
        now = self._connection.lost or (self._video.recorder.error if self._video is not None else "")
        if now != self._shown:
            self._shown = now
            step.out.append(pictures.CameraState(self.name, now).to("run"))

    def _end(self) -> None:
        if self._video is None and not self._connection.trying and not self.finished:
            self._camera.close()
            self.finished = True


# What arrives: mail, and what came of the calls that this node made.
MESSAGES = by_kind(
    (
        on_raw("obs", CameraNode._sense),
        on(Open, CameraNode._open),
        on(Close, CameraNode._close),
        *FROM_RECORDER,
        on(Shutdown, CameraNode._shut_down),
        on_raw(CONNECTED, CameraNode._attempted),
        on_raw(ENCODED, CameraNode._encoded),
        on_raw(SALVAGED, CameraNode._encoded),
        *(on_raw(kind, CameraNode._photo) for kind in sorted(PHOTO_KINDS)),
    )
)
