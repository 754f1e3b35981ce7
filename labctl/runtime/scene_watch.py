"""The scene at staging, as the run process knows it: which picture each camera is to compare with, what it found, and
the photos that a commit or a new reference waits for.

May not: look at a picture (the camera processes do), or let a commit pass that the protocol's [scene] holds.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from labctl.bus import Message, Step
from labctl.clock import SECOND
from labctl.core.event_bodies import SceneCommitted
from labctl.core.events import Kind
from labctl.core.interlock import Hold, Look, overridable, scene_holds
from labctl.core.published_state import Scene, SceneCamera
from labctl.core.trial import State, Trial
from labctl.errors import InputError, StateError
from labctl.messages.body_parts import MatchEntry, Photo
from labctl.messages.pictures import Compare, Compared, Photographed
from labctl.messages.pictures import Photo as TakePhoto
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.store.scene_references import HOLDS_NOTHING, PHOTOS, WHERE_MEASURED, Held, rules, scores_available

MARGIN = 10.0  # points below what a reference gives against itself that "measured" asks for
SLACK = 3.0  # a scene that fits is one until its score is so far below
PHOTO_NS = 5 * SECOND  # how long a commit waits for its photos; the first comparison loads its library


@dataclass
class Request:
    """Photos asked for: by which command, of which trial, of which cameras (short names), and those that came."""

    number: int
    verb: str
    command: Message
    trial: str
    cameras: tuple[str, ...]
    until_ns: int
    came: dict[str, Photographed] = field(default_factory=dict)

    def photo(self, camera: str) -> Photo | None:
        """What came of a camera; None while nothing did, or why it has none is all that did."""
        return self.came[camera].photo if camera in self.came else None

    @property
    def complete(self) -> bool:
        return set(self.came) >= set(self.cameras)


class SceneWatch:
    """State: what each camera was ordered to compare with and what it found last; at most one request for photos."""

    def __init__(self, writer: CampaignWriter) -> None:
        self._writer = writer
        self._cameras = {camera.name: camera for camera in writer.campaign.cell.camera}
        self._rules = rules(writer.opened)
        self._scored = scores_available()
        self._ordered: dict[str, tuple[object, ...]] = {}
        self._rounds: dict[str, int] = {}
        self._found: dict[str, Compared | Photographed] = {}
        self._fits: set[str] = set()  # cameras whose scene did when they looked last
        self._round = 0
        self._requests = 0
        self.request: Request | None = None

    @property
    def most_px(self) -> float:
        """How far the protocol lets a camera have moved, in pixels."""
        return self._rules["max_camera_shift_px"]

    def needed(self, reference: Photo | None) -> float | None:
        """The score that a scene is to have against this photo; None: any will do."""
        rule = self._rules["min_score"]
        if rule in HOLDS_NOTHING:
            return None
        if not isinstance(rule, str):
            return float(rule)
        own = (reference or {}).get("self_score")
        if rule == WHERE_MEASURED and (own is None or not self._scored):
            return None
        return max(0.0, (100.0 if own is None else float(own)) - MARGIN)

    def advance(self, trial: Trial | None, staged: str | None, alive: Callable[[str], bool], step: Step) -> None:
        """Tell each camera that is there (by its node's name) what to compare with while a scene is being staged.

        staged: the trial for which the robot stands where episodes begin; before that only ghosts are shown.
        """
        staging = trial is not None and trial.state == State.STAGING
        for name in self._cameras:
            node = f"camera:{name}"
            if not alive(node):
                self._ordered.pop(name, None)
                self._forget(name)
                continue
            wanted: tuple[object, ...] = ()
            if staging and trial is not None:
                wanted = (trial.id, staged == trial.id, self._writer.references.changes)
            if wanted == self._ordered.get(name, ()):
                continue
            self._round += 1
            self._ordered[name], self._rounds[name] = wanted, self._round
            self._forget(name)
            task = Compare(None, self._round)
            if staging and trial is not None:
                held = self._held(trial.id, name)
                task = Compare(trial.id, self._round, staged == trial.id, held.scene, held.pose, held.counts)
            step.out.append(task.to(node))

    def compared(self, found: Compared) -> None:
        """A camera's finding; one of an older round is of another scene."""
        if found.round == self._rounds.get(found.camera):
            self._found[found.camera] = found
            self._judge(found)

    def photographed(self, taken: Photographed) -> None:
        """A camera's photo, of the request that is open."""
        if self.request is not None and taken.request == self.request.number:
            self.request.came[taken.camera] = taken

    def _forget(self, name: str) -> None:
        self._found.pop(name, None)
        self._fits.discard(name)

    def _judge(self, found: Compared) -> None:
        """A scene fits from what is asked on, and does no more once it is clearly less: no flapping in between."""
        trial, name, scene = self._writer.current(), found.camera, found.scene
        needed = None if trial is None else self.needed(self._held(trial.id, name).scene)
        if needed is None or scene is None or scene["score"] < needed - SLACK:
            self._fits.discard(name)
        elif scene["score"] >= needed:
            self._fits.add(name)

    def forget(self, node: str) -> None:
        """A camera's process is new: it knows of nothing."""
        self._ordered.pop(node.removeprefix("camera:"), None)

    def looks(self, trial: Trial | None) -> dict[str, Look]:
        """What the cameras found of the scene that is being staged, for the interlocks."""
        if trial is None or trial.state != State.STAGING:
            return {}
        return {name: self._look(name, trial.id, found) for name, found in self._found.items()}

    def shown(self, trial: Trial | None) -> Scene:
        """For a screen: what counts, what each camera found, whether a photo is being taken."""
        cameras: dict[str, SceneCamera] = {}
        if trial is not None and trial.state == State.STAGING:
            for name in self._cameras:
                held, found = self._held(trial.id, name), self._found.get(name)
                cameras[name] = {
                    "reference": held.scene["file"] if held.scene else None,
                    "counts": held.counts,
                    "scene": found.scene if found else None,
                    "pose": found.pose if found else None,
                    "problem": found.problem if found else None,
                    "needed": self.needed(held.scene) if held.counts else None,
                }
        return {"rules": self._rules, "photographing": self.request is not None, "cameras": cameras}

    def not_overridden(self, live: Sequence[Hold], why: object) -> list[Hold]:
        """The reasons against a commit that a person's reason does not take away."""
        may = bool(why) and self._rules["override"] == "allowed"
        return [hold for hold in live if not (may and overridable(hold))]

    # -- photos

    def ask(self, verb: str, command: Message, trial: Trial, cameras: Sequence[str], now_ns: int, step: Step) -> None:
        """Have photos taken, of light that falls from now on. The command is answered when they are there."""
        if self.request is not None:
            raise StateError("photos are being taken already; try again in a moment")
        self._requests += 1
        until_ns = now_ns + PHOTO_NS
        self.request = Request(self._requests, verb, command, trial.id, tuple(cameras), until_ns)
        taken = f"{PHOTOS}/{trial.id}/{self._writer.state.last_seq}-{self._requests}"  # no two requests write one file
        for name in cameras:
            after_ns = now_ns + round(self._cameras[name].latency_s * SECOND)
            held, file = self._held(trial.id, name), f"{taken}-{name}.png"
            photo = TakePhoto(self._requests, file, after_ns, held.scene, held.pose, held.counts)
            step.out.append(photo.to(f"camera:{name}"))

    def taken(self, now_ns: int, alive: Callable[[str], bool]) -> Request | None:
        """The request, once all its photos are there, cannot come any more, or took too long; it is over then."""
        request = self.request
        if request is None:
            return None
        gone = [name for name in request.cameras if name not in request.came and not alive(f"camera:{name}")]
        if request.complete or gone or now_ns >= request.until_ns:
            self.request = None
            return request
        return None

    def drop(self) -> Request | None:
        """Wait for photos no more; returns the request that was open."""
        request, self.request = self.request, None
        return request

    def commit_body(self, request: Request, who: str, why: str | None) -> SceneCommitted:
        """`photo` and `match` of SceneCommitted. `why`: a person's reason to commit a scene that is held.

        Raises StateError that says what differs and what to do; an override is journalled as a deviation first.
        """
        missing = [name for name in request.cameras if request.photo(name) is None]
        if missing and self._rules["require_photo"]:
            sentences = [f"camera {name} gave no photo ({self._why(request, name)})" for name in missing]
            raise StateError(f"not committed: {'; '.join(sentences)}; look at the camera, then commit again")
        came = dict(sorted(request.came.items()))
        photos = {name: photo for name in came if (photo := request.photo(name)) is not None}
        looks = {name: self._look(name, request.trial, came[name]) for name in photos}
        held = list(scene_holds(looks, self.most_px))
        if self.not_overridden(held, why):
            self._found |= {name: came[name] for name in photos}
            raise StateError(f"not committed: {'; '.join(f'{hold.text}; {hold.clears}' for hold in held)}")
        if held:
            name = self._writer.state.trials[request.trial].place
            text = f"{name}: {who} committed although {'; '.join(hold.text for hold in held)}: {why}"
            self._writer.log(Kind.DEVIATION, {"text": text}, trial=request.trial, who=who)
        return {
            "photo": photos,
            "match": {name: self._match(name, request.trial, came[name]) for name in photos},
        }

    def set_reference(self, request: Request, reason: str, who: str) -> None:
        """Journal the photos as the new references. Raises StateError when one is missing."""
        for name in request.cameras:
            if request.photo(name) is None:
                raise StateError(f"no new reference: camera {name} gave no photo ({self._why(request, name)})")
        for name in request.cameras:
            held = self._held(request.trial, name)
            old = held.scene or held.pose
            entry = {"camera": name, "photo": request.photo(name), "old": old["sha256"] if old else None}
            self._writer.log(Kind.REFERENCE_SET, {**entry, "reason": reason}, trial=request.trial, who=who)

    def chosen(self, named: object) -> list[str]:
        """The camera a person named, or all of them. Raises InputError."""
        if named is None:
            return list(self._cameras)
        if named not in self._cameras:
            raise InputError(f"no camera {named!r}; the cell has: {', '.join(self._cameras) or 'none'}")
        return [str(named)]

    def _why(self, request: Request, camera: str) -> str:
        return (camera in request.came and request.came[camera].problem) or "none came in time"

    def _held(self, trial: str, camera: str) -> Held:
        return self._writer.references.held(trial, camera)

    def _look(self, name: str, trial: str, found: Compared | Photographed) -> Look:
        camera, held = self._cameras[name], self._held(trial, name)
        size = (camera.width, camera.height)
        needed, slack = self.needed(held.scene), SLACK if name in self._fits else 0.0
        plain = (found.scene, found.pose, held.counts, found.problem)
        return Look(*plain, size, needed=needed, slack=slack)

    def _match(self, name: str, trial: str, found: Photographed) -> MatchEntry:
        """What SceneCommitted keeps of a comparison: the match, what it was with and whether it counted, the camera's
        movement, and why there is none.
        """
        held = self._held(trial, name)
        return {
            "scene": found.scene,
            "reference": held.scene["sha256"] if held.scene else None,
            "counts": held.counts,
            "pose": found.pose,
            "pose_reference": held.pose["sha256"] if held.pose else None,
            "problem": found.problem,
        }
