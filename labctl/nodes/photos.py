"""A camera's part in putting scenes back: ghosts while a scene is staged, comparisons with its reference, photos.

May not: block the camera's node (pictures are compared beside it), know an arm of the experiment, or act between a
reveal and the next staging.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labctl.bus import Message, Step, Work
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Frame
from labctl.errors import LabctlError
from labctl.scene.matching import TOLERANCE_PX, Box, camera_move, compare
from labctl.store.atomic_files import file_errors, replace_file, sync_names
from labctl.store.pictures import encode_png, ghost, load_photo, small

GHOST_WIDTH = 320
GHOST_NS = 500 * MILLISECOND
COMPARE_NS = SECOND
UNSEEN_NS = (
    5 * SECOND
)  # between both in simulated time, where nobody looks; the photo of a commit is compared all the same
MODELLED_NS = 50 * MILLISECOND  # a comparison, on a simulated clock; measured 40 ms for 640 x 480
KINDS = frozenset({"compare", "photo", "looked", "photo_done"})


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
    ) -> None:
        self._camera = camera
        self._folder = folder
        self._durable = durable
        self._ghost_every_ns = GHOST_NS if real_time else UNSEEN_NS
        self._compare_every_ns = COMPARE_NS if real_time else UNSEEN_NS
        self._eye = _Eye(folder, tuple(ignore), tolerance_px)
        self._task: Mapping[str, Any] | None = None
        self._photo: Mapping[str, Any] | None = None
        self._busy = False
        self._ghost_ns = self._compare_ns = 0
        self._found: Mapping[str, Any] = {}

    @property
    def waiting(self) -> bool:
        """A photo was asked for: the next frames are wanted as soon as there are any."""
        return self._photo is not None

    def read(self, message: Message, step: Step) -> None:
        """Mail of one of KINDS."""
        body = message.body
        if message.kind == "compare":
            self._task = body if body["trial"] is not None else None
            self._found, self._ghost_ns, self._compare_ns = {}, 0, 0
        elif message.kind == "photo":
            self._photo = body
        elif message.kind == "looked":
            self._busy = False
            self._tell(body, step)
        else:
            done = body.get("result") or {"problem": body.get("error")}
            told = {"request": int(body["tag"]), "camera": self._camera, "photo": None, "problem": None, **done}
            step.out.append(Message("run", "photographed", told))

    def see(self, frame: Frame, step: Step) -> None:
        """A frame of this camera: the photo waited for, or one to show with its ghost."""
        photo, task = self._photo, self._task
        if photo is not None and frame.host_ns < photo["after_ns"]:
            return  # its light fell too early, and nothing else is worth a delay now
        if photo is not None:
            self._photo = None
            tag = str(photo["request"])
            step.work.append(Work(lambda: self._keep(frame, photo), "photo_done", lambda result: MODELLED_NS, tag))
        elif task is not None and not self._busy and frame.host_ns >= self._ghost_ns:
            due = bool(task["compare"]) and frame.host_ns >= self._compare_ns
            self._busy, self._ghost_ns = True, frame.host_ns + self._ghost_every_ns
            if due:
                self._compare_ns = frame.host_ns + self._compare_every_ns
            took = MODELLED_NS if due else 0
            step.work.append(Work(lambda: self._show(frame, task, due), "looked", lambda result: took))

    def _keep(self, frame: Frame, photo: Mapping[str, Any]) -> dict[str, Any]:
        """Write the photo and compare it; beside the node."""
        content = encode_png(frame.image)
        path = self._folder / photo["file"]
        with file_errors(str(path.parent)):
            path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, content, durable=self._durable)
        if self._durable:
            sync_names(path.parent, self._folder)
        kept = {"file": photo["file"], "sha256": hashlib.sha256(content).hexdigest(), "t_ns": frame.host_ns}
        return {"photo": kept, **self._eye.compare(frame.image, photo)}

    def _show(self, frame: Frame, task: Mapping[str, Any], due: bool) -> dict[str, Any]:
        """A ghost of this frame, and a comparison where one is due; beside the node."""
        found = self._eye.compare(frame.image, task) if due else None
        pictures = self._eye.ghost(frame.image, task)
        return {"t_ns": frame.host_ns, "round": task["round"], "found": found, "pictures": pictures}

    def _tell(self, body: Mapping[str, Any], step: Step) -> None:
        task, result = self._task, body.get("result")
        if task is None or result is None or result["round"] != task["round"]:
            return
        said = {"camera": self._camera, "trial": task["trial"], "t_ns": result["t_ns"]}
        if result["found"] is not None:
            self._found = result["found"]
            step.out.append(Message("run", "compared", {**said, "round": task["round"], **self._found}))
        if result["pictures"]:
            shown = {**said, "counts": task["counts"], **self._found}
            step.out.append(Message("@preview", "ghost", shown, result["pictures"]))


class _Eye:
    """Compares frames with references; the last two it loaded are kept. Used by one worker at a time, or harmlessly
    by two.
    """

    def __init__(self, folder: Path, ignore: tuple[Box, ...], tolerance_px: float) -> None:
        self._folder = folder
        self._ignore = ignore
        self._tolerance_px = tolerance_px
        self._loaded: dict[str, np.ndarray] = {}

    def compare(self, image: np.ndarray, task: Mapping[str, Any]) -> dict[str, Any]:
        """scene and pose as plain values, None where there is nothing to compare with; problem: why not, or None."""
        found: dict[str, Any] = {"scene": None, "pose": None, "problem": None}
        scene, pose = task["scene"], task["pose"]
        try:
            if scene is not None:
                found["scene"] = self._match(image, scene)
        except (LabctlError, ValueError) as error:
            found["problem"] = str(error)
        try:
            if pose is not None and pose["sha256"] == (scene or {}).get("sha256") and found["scene"] is not None:
                found["pose"] = {key: found["scene"][key] for key in ("shift_px", "rotation_deg", "moved_px", "note")}
            elif pose is not None:
                found["pose"] = camera_move(self._load(pose), image, ignore=self._ignore).body()
        except (LabctlError, ValueError) as error:
            found["problem"] = found["problem"] or str(error)
        return found

    def _match(self, image: np.ndarray, photo: Mapping[str, Any]) -> dict[str, Any]:
        reference = self._load(photo)
        return compare(reference, image, ignore=self._ignore, tolerance_px=self._tolerance_px).body()

    def ghost(self, image: np.ndarray, task: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The live picture over its reference, and the reference, both small; {} without one."""
        photo = task["scene"] or task["pose"]
        try:
            if photo is None or (reference := self._load(photo)).shape != image.shape:
                return {}
        except LabctlError:
            return {}  # said by the comparison
        before = small(reference, GHOST_WIDTH)
        return {"image": ghost(small(image, GHOST_WIDTH), before), "reference": before}

    def _load(self, photo: Mapping[str, Any]) -> np.ndarray:
        key = photo["sha256"]
        if key not in self._loaded:
            picture = load_photo(self._folder, photo)
            self._loaded = dict([*self._loaded.items(), (key, picture)][-2:])
        return self._loaded[key]
