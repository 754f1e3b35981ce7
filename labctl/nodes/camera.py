"""The camera node: grabs frames as they come, has them filmed, and says what is missing. A camera that is lost is asked
for again until it answers.

May not: read a clock, open a socket, wait for an encoder or a connection, or pretend that it sees.
"""

from __future__ import annotations

from collections.abc import Callable

from labctl.bus import Body, Message, Step, Work
from labctl.clock import MILLISECOND, SECOND
from labctl.core.liveness import NO_PICTURE_YET
from labctl.devices import Batch, Camera, Frame
from labctl.errors import DeviceLost, LabctlError
from labctl.messages.driving import Failed
from labctl.messages.pictures import CameraState, FrameGap, Video
from labctl.messages.processes import Shutdown
from labctl.messages.recording import Ack, Close, Open, Resend
from labctl.nodes.edited_pictures import edits_of
from labctl.nodes.frame_gaps import BEHIND, FrameGaps
from labctl.nodes.frames import Frames
from labctl.nodes.phase_table import by_kind, carry_out, on, on_raw
from labctl.nodes.photos import KINDS as PHOTO_KINDS
from labctl.nodes.photos import ScenePhotos
from labctl.nodes.preview import Preview
from labctl.nodes.seen_pictures import SeenPictures
from labctl.nodes.tracing import TraceSender
from labctl.nodes.video_recorder import ENCODED, LOOK_NS, SALVAGED, Encoded, Terms, VideoRecorder, index_spec
from labctl.streams import SEEN

SILENT_NS = SECOND  # so long without a frame, and three periods, and the camera counts as lost …
FIRST_NS = 5 * SECOND  # … but when it was just connected it has this long to give its first
HUNG_NS = 60 * SECOND  # an attempt to connect that takes so long will not end; in simulated time none takes any
RETRY_NS = (SECOND // 2, SECOND, 2 * SECOND, 5 * SECOND)  # between attempts to connect; then always the last
CONNECTED = "connected"  # kind of the message that answers an attempt


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
        self._connect = connect or camera.connect
        self._photos = photos or ScenePhotos(terms.camera, terms.folder)
        self._drawn = camera.kind not in ("real", "replay")
        self.topics = ("@obs",) if self._drawn else ()
        self._real_time = real_time
        self._period_ns = round(SECOND / camera.rate_hz)
        self._stream = f"camera/{terms.camera}"
        self._sender = TraceSender(self.name, [index_spec(terms.camera, camera.rate_hz)])
        self._preview = Preview(terms.camera, real_time=real_time)
        self._frames = Frames(terms.camera)
        self._video: VideoRecorder | None = None
        self._gaps = FrameGaps(self._stream, 0)
        self._opened_ns = 0
        self._seen: SeenPictures | None = None  # of an episode whose condition has edits of these pictures
        self._next_open: Open | None = None
        self._ending = False
        self._connected = self._trying = False
        self._reset = False  # the device has to be closed before it is connected to again
        self._lost = NO_PICTURE_YET  # why there are no pictures; "" while there are
        self._cause = NO_PICTURE_YET  # why they stopped coming; an attempt to connect may fail for another reason
        self._shown: str | None = None  # what run was last told of it
        self._attempts = 0
        self._tried_ns = 0
        self._retry_ns = 0
        self._grab_ns = 0
        self._patient_until_ns = 0
        self._domains: list[str] = []

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail, then a frame if one may be there, then what is to be encoded and sent."""
        step = Step()
        for message in inbox:
            carry_out(MESSAGES, self, message, now_ns, step)
        if self._ending:
            self._end()
        elif not self._connected and not self._trying and now_ns >= self._retry_ns:
            self._try(now_ns, step)
        elif self._connected and now_ns >= self._grab_ns:
            self._look(now_ns, step)
        if self._trying and now_ns - self._tried_ns > HUNG_NS:
            raise DeviceLost(f"connecting has not returned for {HUNG_NS // SECOND} s; this process is started again")
        if self._video is not None:
            step.work += self._video.work(now_ns)
            step.work += [] if self._seen is None else self._seen.work(now_ns)
            self._tell_gaps(self._video, now_ns, step)
        step.out += self._sender.poll(now_ns)
        if not self._ending:
            waiting_ns = self._tried_ns + HUNG_NS + 1 if self._trying else self._retry_ns
            step.due_ns = self._grab_ns if self._connected else waiting_ns
            if (self._video is not None and self._video.busy) or (self._seen is not None and self._seen.busy):
                # its encoder is looked at
                step.due_ns = min(step.due_ns, now_ns + LOOK_NS)
        return step

    def _sense(self, message: Message, now_ns: int, step: Step) -> None:
        self._camera.sense(message.arrays)

    def _attempted(self, message: Message, now_ns: int, step: Step) -> None:
        self._tried(message.body.get("error", ""), now_ns, step)

    def _opened(self, sent: Open, now_ns: int, step: Step) -> None:
        self._frames.wanted = sent.frames
        self._open(sent, now_ns, step)

    def _closed(self, sent: Close, now_ns: int, step: Step) -> None:
        self._frames.wanted = False
        self._close(now_ns, step)

    def _acknowledged(self, sent: Ack, now_ns: int, step: Step) -> None:
        self._sender.ack(sent)

    def _resend(self, sent: Resend, now_ns: int, step: Step) -> None:
        step.out += self._sender.resend()

    def _photo(self, message: Message, now_ns: int, step: Step) -> None:
        self._photos.hear(message, now_ns, step)
        if self._photos.waiting:
            self._grab_ns = min(self._grab_ns, now_ns)

    def _shut_down(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        self._close(now_ns, step)
        self._ending = True

    # -- the video

    def _open(self, sent: Open, now_ns: int, step: Step) -> None:
        episode = sent.episode
        if (
            self._video is not None and episode != self._video.episode
        ):  # run has given that one up; it is finished first
            self._close(now_ns, step)
            self._next_open = sent
        if self._video is not None:
            return
        self._next_open = None
        edits = edits_of(self._terms.camera, sent.inputs)
        seen = [index_spec(self._terms.camera + SEEN, self._camera.rate_hz)] if edits else []
        step.out += self._sender.open(episode, seen)
        if not self._real_time:
            self._grab_ns = now_ns
        try:
            about = self._camera.about() if self._connected else None
            video_of = (self._terms, episode, self._camera, about, self._domains)
            self._seen = SeenPictures(*video_of, edits, sent.seed, now_ns) if edits else None
            self._video = VideoRecorder(*video_of)
            self._opened_ns = now_ns
            self._gaps = FrameGaps(self._stream, now_ns)
        except LabctlError as error:
            step.out.append(Failed(self.name, episode, reason=str(error)).to("run"))

    def _close(self, now_ns: int, step: Step) -> None:
        self._next_open = None
        if self._video is None:
            step.out += self._sender.close(now_ns)
            return
        self._video.close()
        if self._seen is not None:
            self._seen.close()
        self._finish(self._video, now_ns, step)  # where its encoder was given up before

    def _encoded(self, message: Message, now_ns: int, step: Step) -> None:
        video, body = self._video, message.body
        if self._seen is not None and video is not None and body["tag"] == self._seen.tag:
            self._encoded_seen(video, self._seen, body, now_ns, step)
            return
        if video is None or body["tag"] != video.episode or (video.given_up and message.kind == ENCODED):
            return  # a call that was given up has come back after all
        if "error" in body:
            raise RuntimeError(body["error"])  # nothing a video foresees: this process is not to be trusted
        done: Encoded = body["result"]
        rows = video.take(done)
        self._sender.add(Batch(self._stream, rows[:, 2], rows))
        if video.given_up:
            from_ns = video.indexed_ns or self._opened_ns
            self._gaps.never_encoded(from_ns, now_ns, video.unindexed, video.given_up)
        self._finish(video, now_ns, step)
        self._tell(step)

    def _encoded_seen(self, video: VideoRecorder, seen: SeenPictures, body: Body, now_ns: int, step: Step) -> None:
        if "error" in body:
            raise RuntimeError(body["error"])
        self._sender.add(seen.take(body["result"]))
        self._finish(video, now_ns, step)

    def _finish(self, video: VideoRecorder, now_ns: int, step: Step) -> None:
        """Deliver what was filmed once all of it is in its files."""
        if not (video.closed and video.closing and (self._seen is None or self._seen.closed)):
            return
        self._tell_gaps(video, now_ns, step, force=True)
        step.out += self._sender.close(now_ns)
        if self._seen is not None:  # before the raw one, which is what is waited for
            step.out.append(self._seen.delivered().to("run"))
            self._seen = None
        step.out.append(Video(video.episode, self._terms.camera, video.file, video.frames).to("run"))
        self._video = None
        if self._next_open is not None:
            self._open(self._next_open, now_ns, step)

    def _tell_gaps(self, video: VideoRecorder, now_ns: int, step: Step, *, force: bool = False) -> None:
        seen = [] if self._seen is None else self._seen.gaps(now_ns, force=force)
        for gap in (*self._gaps.due(now_ns, force=force), *seen):
            step.out.append(FrameGap(video.episode, **gap).to("run"))

    # -- the camera

    def _try(self, now_ns: int, step: Step) -> None:
        """Connect beside the loop: it may take seconds, and other cameras may have their turn first."""
        self._trying, self._tried_ns = True, now_ns
        reset, self._reset = self._reset, False

        def attempt() -> None:
            if reset:
                self._camera.close()
            self._connect(now_ns)

        step.work.append(Work(attempt, CONNECTED))

    def _tried(self, error: str, now_ns: int, step: Step) -> None:
        self._trying = False
        if error:
            self._retry_ns = now_ns + RETRY_NS[min(self._attempts, len(RETRY_NS) - 1)]
            self._attempts += 1
            self._lost = error
            self._tell(step)
            return
        self._connected = True
        self._grab_ns, self._patient_until_ns = now_ns, now_ns + FIRST_NS
        if self._video is not None:
            self._video.connected_again(now_ns, self._camera.about())

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
            if now_ns > self._patient_until_ns:
                self._reset = True
                self._lose("it gives no pictures", now_ns, step)
            return
        expected = (self._camera.height, self._camera.width, 3)
        if frame.image.shape != expected:
            self._reset = True
            self._lose(f"its pictures are {frame.image.shape}, not {expected}", now_ns, step)
            return
        self._patient_until_ns = now_ns + max(SILENT_NS, 3 * self._period_ns)
        self._next_grab(frame.host_ns, now_ns)
        self._take(frame, now_ns, step)

    def _next_grab(self, host_ns: int, now_ns: int) -> None:
        if self._real_time and self._drawn:  # one that is drawn when asked for: asked late, it must not stay late
            self._grab_ns = now_ns + self._period_ns // 4
            return
        if self._real_time:  # a little before the next one can be there; at once when more of them wait
            self._grab_ns = max(now_ns + MILLISECOND, host_ns + self._period_ns - 2 * MILLISECOND)
            return
        filming = self._video is not None and not self._video.closing
        interval_ns = (
            self._period_ns if filming or self._photos.waiting else max(self._period_ns, self._preview.every_ns)
        )
        on_time = now_ns - self._grab_ns < interval_ns
        self._grab_ns = (self._grab_ns if on_time else now_ns) + interval_ns

    def _take(self, frame: Frame, now_ns: int, step: Step) -> None:
        video = self._video
        if self._lost and video is not None:
            self._gaps.lost(frame.host_ns, self._camera.rate_hz, self._cause)
        self._lost, self._attempts = "", 0
        if frame.domain not in self._domains:
            self._domains.append(frame.domain)
        kept = (
            video is not None
            and not video.closing
            and not video.error
            and self._gaps.keeps(frame.number, frame.host_ns)
        )
        if video is not None and kept:
            if video.put(frame):
                self._gaps.kept(frame.host_ns)
            else:
                self._gaps.given_up(frame.host_ns, video.given_up or BEHIND)
        self._tell(step)
        self._photos.see(frame, step)
        step.out += [*self._as_seen(frame, kept), *self._preview.of(frame, now_ns)]

    def _as_seen(self, frame: Frame, kept: bool) -> list[Message]:
        """The picture that a policy gets, edited and filmed where its condition has edits. kept: the raw one is."""
        if self._seen is None:
            return self._frames.of(frame)
        edited = self._seen.edited(frame)
        if edited is None:
            return []
        if kept:
            self._seen.record(edited)
        return self._frames.of(edited)

    def _lose(self, why: str, now_ns: int, step: Step) -> None:
        self._connected = False
        self._lost = self._cause = why
        self._retry_ns, self._attempts = now_ns + RETRY_NS[0], 1
        self._tell(step)

    def _tell(self, step: Step) -> None:
        """Let run know why there are no pictures, or no video of them, when that has changed."""
        now = self._lost or (self._video.error if self._video is not None else "")
        if now != self._shown:
            self._shown = now
            step.out.append(CameraState(self.name, now).to("run"))

    def _end(self) -> None:
        if self._video is None and not self._trying and not self.finished:
            self._camera.close()
            self.finished = True


# What arrives: mail, and what came of the calls that this node made.
MESSAGES = by_kind(
    (
        on_raw("obs", CameraNode._sense),
        on(Open, CameraNode._opened),
        on(Close, CameraNode._closed),
        on(Ack, CameraNode._acknowledged),
        on(Resend, CameraNode._resend),
        on(Shutdown, CameraNode._shut_down),
        on_raw(CONNECTED, CameraNode._attempted),
        on_raw(ENCODED, CameraNode._encoded),
        on_raw(SALVAGED, CameraNode._encoded),
        *(on_raw(kind, CameraNode._photo) for kind in sorted(PHOTO_KINDS)),
    )
)
