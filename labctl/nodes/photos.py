"""A camera's part in putting scenes back: ghosts while a scene is staged, comparisons with its reference, photos.

May not: block the camera's node (pictures are compared beside it), know an arm of the experiment, or act between a
reveal and the next staging.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypedDict

import numpy as np

from labctl.bus import Message, Step, Work
from labctl.clock import MILLISECOND, SECOND
from labctl.core.scene_words import moved
from labctl.devices import Frame
from labctl.errors import LabctlError
from labctl.messages.body_parts import MatchBody, MoveBody, Photo
from labctl.messages.pictures import Compare, Compared, Ghost, Photographed
from labctl.messages.pictures import Photo as TakePhoto
from labctl.nodes.phase_table import by_kind, carry_out, on, on_raw
from labctl.scene.matching import TOLERANCE_PX, Box, camera_move, compare
from labctl.store.atomic_files import file_errors, replace_file, sync_names
from labctl.store.pictures import encode_png, ghost, load_photo, small

GHOST_WIDTH = 320
GHOST_NS = 500 * MILLISECOND
COMPARE_NS = SECOND
# Between both in simulated time, where nobody looks; the photo of a commit is compared all the same.
UNSEEN_NS = 5 * SECOND
AVERAGED = 8  # frames in one look: noise is a third of a frame's, and lamps that flicker are evened out
AVERAGE_NS = SECOND  # a slow camera gives fewer
MODELLED_NS = 50 * MILLISECOND  # a comparison, on a simulated clock; measured 40 ms for 640 x 480


class ScenePhotos:
    """One camera's. `folder` is the campaign's; ignore and tolerance_px as in its [[camera]] table."""

    def __init__(
        self,
        camera: str,
        folder: Path,
        *,
        ignore: Sequence[Box] = (),
        tolerance_px: float = TOLERANCE_PX,
        durable: bool = True,
        real_time: bool = True,
        frames: int = AVERAGED,
    ) -> None:
        """frames: so many are one look, in real time."""
        self._camera = camera
        self._folder = folder
        self._durable = durable
        self._ghost_every_ns = GHOST_NS if real_time else UNSEEN_NS
        self._compare_every_ns = COMPARE_NS if real_time else UNSEEN_NS
        self._eye = _Eye(folder, tuple(ignore), tolerance_px)
        self._task: Compare | None = None
        self._photo: TakePhoto | None = None
        self._most = frames if real_time else 1  # simulated cameras have no noise
        self._frames: deque[Frame] = deque(maxlen=self._most)
        self._taken: list[Frame] = []
        self._busy = False
        self._ghost_ns = self._compare_ns = 0
        self._found: Findings | None = None

    @property
    def waiting(self) -> bool:
        """A photo was asked for: the next frames are wanted as soon as there are any."""
        return self._photo is not None

    def hear(self, message: Message, now_ns: int, step: Step) -> None:
        """Mail of one of KINDS."""
        carry_out(MESSAGES, self, message, now_ns, step)

    def _compare(self, sent: Compare, now_ns: int, step: Step) -> None:
        self._task = sent if sent.trial is not None else None
        self._found, self._ghost_ns, self._compare_ns = None, 0, 0
        self._frames.clear()

    def _ask(self, sent: TakePhoto, now_ns: int, step: Step) -> None:
        self._photo, self._taken = sent, []

    def _looked(self, message: Message, now_ns: int, step: Step) -> None:
        self._busy = False
        body, task = message.body, self._task
        if "error" not in body:
            self._tell(body["result"], step)
        elif task is not None and task.trial is not None and body["tag"] == str(task.round):  # of another scene else
            failed = Compared(self._camera, task.trial, task.round, now_ns, problem=body["error"])
            step.out.append(failed.to("run"))

    def _photo_done(self, message: Message, now_ns: int, step: Step) -> None:
        body = message.body
        done = body.get("result") or {"photo": None, "problem": body.get("error")}
        step.out.append(Photographed(int(body["tag"]), self._camera, **done).to("run"))

    def see(self, frame: Frame, step: Step) -> None:
        """A frame of this camera: the photo waited for, or one to show with its ghost."""
        photo, task = self._photo, self._task
        if task is not None:
            self._frames.append(frame)
        if photo is not None:
            if frame.host_ns < photo.after_ns:
                return  # its light fell too early, and nothing else is worth a delay now
            self._taken.append(frame)
            if len(self._taken) < self._most and frame.host_ns - self._taken[0].host_ns < AVERAGE_NS:
                return
            frames, self._photo, self._taken = self._taken, None, []
            tag = str(photo.request)
            step.work.append(Work(lambda: self._keep(frames, photo), "photo_done", lambda result: MODELLED_NS, tag))
        elif task is not None and not self._busy and frame.host_ns >= self._ghost_ns:
            enough = len(self._frames) == self._most or frame.host_ns - self._frames[0].host_ns >= AVERAGE_NS
            due = bool(task.compare) and enough and frame.host_ns >= self._compare_ns
            self._busy, self._ghost_ns = True, frame.host_ns + self._ghost_every_ns
            if due:
                self._compare_ns = frame.host_ns + self._compare_every_ns
            took = MODELLED_NS if due else 0
            frames = [one for one in self._frames if frame.host_ns - one.host_ns <= AVERAGE_NS]
            tag = str(task.round)
            step.work.append(Work(lambda: self._show(frames, task, due), "looked", lambda result: took, tag))

    def _keep(self, frames: Sequence[Frame], photo: TakePhoto) -> Kept:
        """Write the photo, the mean of these frames, and compare it; beside the node."""
        picture = mean(frames)
        content = encode_png(picture)
        path = self._folder / photo.file
        with file_errors(str(path.parent)):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, durable=self._durable)
        if self._durable:
            sync_names(path.parent, self._folder)
        kept: Photo = {"file": photo.file, "sha256": hashlib.sha256(content).hexdigest(), "t_ns": frames[0].host_ns}
        return {"photo": {**kept, **self._eye.noise(frames)}, **self._eye.compare(picture, photo)}

    def _show(self, frames: Sequence[Frame], task: Compare, due: bool) -> Shown:
        """A ghost of the last of these frames, and a comparison of their mean where one is due; beside the node."""
        found = self._eye.compare(mean(frames), task) if due else None
        pictures = self._eye.ghost(frames[-1].image, task)
        return {"t_ns": frames[-1].host_ns, "round": task.round, "found": found, "pictures": pictures}

    def _tell(self, result: Shown, step: Step) -> None:
        task = self._task
        if task is None or task.trial is None or result["round"] != task.round:
            return
        if result["found"] is not None:
            self._found = result["found"]
            compared = Compared(self._camera, task.trial, task.round, result["t_ns"], **self._found)
            step.out.append(compared.to("run"))
        if result["pictures"]:
            shown = Ghost(self._camera, task.trial, result["t_ns"], task.counts)
            if self._found is not None:
                shown = replace(shown, **self._found)
            step.out.append(shown.to("@preview", result["pictures"]))


MESSAGES = by_kind(
    (
        on(Compare, ScenePhotos._compare),
        on(TakePhoto, ScenePhotos._ask),
        on_raw("looked", ScenePhotos._looked),
        on_raw("photo_done", ScenePhotos._photo_done),
    )
)
KINDS = frozenset(MESSAGES)


def mean(frames: Sequence[Frame]) -> np.ndarray:
    """The mean picture (height, width, 3) uint8 of at most 256 frames of one size."""
    if len(frames) == 1:
        return frames[0].image
    total = np.zeros(frames[0].image.shape, np.uint16)
    for frame in frames:
        total += frame.image
    return ((total + len(frames) // 2) // len(frames)).astype(np.uint8)


class Findings(TypedDict):
    """What comparing a picture gave: scene and pose, None where there is nothing to compare with; problem: why not."""

    scene: MatchBody | None
    pose: MoveBody | None
    problem: str | None


class Kept(Findings):
    """A photo that was taken, and what comparing it gave."""

    photo: Photo


class Shown(TypedDict):
    """A ghost's pictures, and what a comparison gave where one was due; round: of the task it was made for."""

    t_ns: int
    round: int
    found: Findings | None
    pictures: dict[str, np.ndarray]


class Noise(TypedDict, total=False):
    """Of how many frames a photo is the mean, and the score of one half of them against the other."""

    frames: int
    self_score: float


class _Eye:
    """Compares frames with references; the last two it loaded are kept. Used by one worker at a time, or harmlessly
    by two.
    """

    def __init__(self, folder: Path, ignore: tuple[Box, ...], tolerance_px: float) -> None:
        self._folder = folder
        self._ignore = ignore
        self._tolerance_px = tolerance_px
        self._loaded: dict[str, np.ndarray] = {}

    def compare(self, image: np.ndarray, task: Compare | TakePhoto) -> Findings:
        """scene and pose as plain values, None where there is nothing to compare with; problem: why not, or None."""
        found: Findings = {"scene": None, "pose": None, "problem": None}
        scene, pose = task.scene, task.pose
        try:
            if scene is not None:
                found["scene"] = self._match(image, scene)
        except (LabctlError, ValueError) as error:
            found["problem"] = str(error)
        try:
            if (
                pose is not None
                and scene is not None
                and pose["sha256"] == scene["sha256"]
                and found["scene"] is not None
            ):
                found["pose"] = moved(found["scene"])
            elif pose is not None:
                found["pose"] = camera_move(self._load(pose), image, ignore=self._ignore).body()
        except (LabctlError, ValueError) as error:
            found["problem"] = found["problem"] or str(error)
        return found

    def _match(self, image: np.ndarray, photo: Photo) -> MatchBody:
        reference = self._load(photo)
        return compare(reference, image, ignore=self._ignore, tolerance_px=self._tolerance_px).body()

    def noise(self, frames: Sequence[Frame]) -> Noise:
        """Of how many frames a photo is the mean, and the score of one half of them against the other: what a scene
        has that nobody touched. {} for a single frame.
        """
        if len(frames) < 2:
            return {}
        halves = mean(frames[::2]), mean(frames[1::2])
        try:
            found = compare(*halves, ignore=self._ignore, tolerance_px=self._tolerance_px)
        except (LabctlError, ValueError):
            return {"frames": len(frames)}
        return {"frames": len(frames), "self_score": round(found.score, 1)}

    def ghost(self, image: np.ndarray, task: Compare) -> dict[str, np.ndarray]:
        """The live picture over its reference, and the reference, both small; {} without one."""
        photo = task.scene or task.pose
        try:
            if photo is None or (reference := self._load(photo)).shape != image.shape:
                return {}
        except LabctlError:
            return {}  # said by the comparison
        before = small(reference, GHOST_WIDTH)
        return {"image": ghost(small(image, GHOST_WIDTH), before), "reference": before}

    def _load(self, photo: Photo) -> np.ndarray:
        key = photo["sha256"]
        if key not in self._loaded:
            picture = load_photo(self._folder, photo)
            self._loaded = dict([*self._loaded.items(), (key, picture)][-2:])
        return self._loaded[key]
