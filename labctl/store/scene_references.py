"""Which picture a staged scene is held against, folded from the journal; and pictures given before the first trial.

May not: compare pictures, or choose a reference by anything but the journal: which one counts can be read there.

The arms of a block are paired, so they start from one scene: the reference of a trial is its block's first committed
photo, and it counts. A block's first trial has none; it is shown the picture given for its condition, which counts, or
else the condition's first photo of an earlier block, which only informs, unless the protocol has every block restore
its condition's scene ([scene] restore = "condition"). A camera's place is held, in every trial, against one picture
for all layouts that have the camera at the same side. See docs/decisions/0008-scene-references.md.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Self

from labctl.config import protocol_schema
from labctl.config.cell_schema import Cell
from labctl.config.conditions import protocol_conditions
from labctl.config.toml_text import suggestion
from labctl.core.event_bodies import CampaignOpened, SceneCommitted, body_of
from labctl.core.events import Event, Kind
from labctl.errors import InputError
from labctl.messages.body_parts import Photo, SceneRules, Slot
from labctl.store.atomic_files import keep_file
from labctl.store.lab_folder import Plan
from labctl.store.pictures import decode_png
from labctl.store.rubric_pictures import anchor_photos

PHOTOS = "photos"
# [scene] min_score: what the reference gives against itself, less a margin; that where it has such a score; nothing
MEASURED: Final = "measured"
WHERE_MEASURED: Final = "where_measured"
HOLDS_NOTHING = (None, "none")
_DEFAULT = protocol_schema.SceneRules()
RULES: SceneRules = {
    "restore": _DEFAULT.restore,
    "require_photo": _DEFAULT.require_photo,
    "min_score": None,
    "max_camera_shift_px": _DEFAULT.max_camera_shift_px,
    "override": _DEFAULT.override,
}
_Key = tuple[str, object, str]  # what it is the reference of ("block", "condition", "side"), which one, camera


def rules(opened: CampaignOpened) -> SceneRules:
    """[scene] of the protocol, from CampaignOpened's body; campaigns from before there was one ask for no score."""
    return {**RULES, **opened["scene"]} if "scene" in opened else RULES


def scores_available() -> bool:
    """Whether scikit-image, which match scores need, is installed; nothing is imported to find out."""
    return importlib.util.find_spec("skimage") is not None


@dataclass(frozen=True, slots=True)
class Held:
    """What one camera's picture is held against at one trial: the scene, if `counts` so that a low score is a reason
    against commit; and where the camera stood.
    """

    scene: Photo | None = None
    counts: bool = False
    pose: Photo | None = None


class References:
    """The references as of the last event noted."""

    def __init__(self) -> None:
        self._first: dict[_Key, Photo] = {}
        self._accepted: dict[_Key, Photo] = {}
        self._given: Mapping[str, Mapping[str, Photo]] = {}
        self._slots: Mapping[str, Slot] = {}
        self._sides: Mapping[str, str] = {}
        self._by_condition = False
        self._uncertain: dict[str, list[_Key]] = {}  # trial -> references of its commit that may still be taken back
        self.changes = 0

    @classmethod
    def before(cls, events: Iterable[Event], seq: int) -> Self:
        """As of the entry before number seq."""
        found = cls()
        for event in events:
            if event.seq < seq:
                found.note(event)
        return found

    def note(self, event: Event) -> None:
        """Take an event into account."""
        body, trial = event.body, event.trial or ""
        match event.kind:
            case Kind.CAMPAIGN_OPENED:
                self._begin(body_of(event, CampaignOpened))
            case Kind.SCENE_COMMITTED:
                self._commit(trial, body.get("photo") or {})
            case Kind.TRIAL_RELEASED:
                for key in self._uncertain.pop(trial, ()):  # the scene was given back: it was not as it should be
                    del self._first[key]
            case Kind.ARM_REVEALED:
                self._uncertain.pop(trial, None)
            case Kind.REFERENCE_SET:
                self._accept(trial, body["camera"], body["photo"])
            case _:
                return
        self.changes += 1

    def held(self, trial: str, camera: str) -> Held:
        """What this camera's picture is held against at this trial."""
        slot = self._slots[trial]
        block, condition, side = self._keys(slot, camera)
        given = self._given.get(slot["condition"], {}).get(camera)
        pose = self._accepted.get(side) or given or self._first.get(side)
        own = self._first.get(condition)
        if self._by_condition:
            scene = self._accepted.get(condition) or given or own
            return Held(scene, scene is not None, pose)
        scene = self._accepted.get(block) or self._first.get(block) or given
        return Held(scene, True, pose) if scene is not None else Held(own, False, pose)

    def _begin(self, opened: CampaignOpened) -> None:
        self._given = opened.get("references", {})
        self._slots = {slot["trial"]: slot for slot in opened["schedule"]}
        self._sides = {entry["id"]: entry["camera_side"] for entry in opened.get("conditions", ())}
        self._by_condition = rules(opened)["restore"] == "condition"

    def _keys(self, slot: Slot, camera: str) -> tuple[_Key, _Key, _Key]:
        condition = slot["condition"]
        side = self._sides.get(condition)
        return ("block", slot["block"], camera), ("condition", condition, camera), ("side", side, camera)

    def _commit(self, trial: str, photos: Mapping[str, Photo]) -> None:
        fresh: list[_Key] = []
        for camera, photo in photos.items():
            for key in self._keys(self._slots[trial], camera):
                if key not in self._first:
                    self._first[key] = photo
                    fresh.append(key)
        self._uncertain[trial] = fresh

    def _accept(self, trial: str, camera: str, photo: Photo) -> None:
        for key in self._keys(self._slots[trial], camera):
            self._accepted[key] = photo


def journalled_photos(events: Sequence[Event]) -> list[tuple[int, Photo]]:
    """Every photo the journal names, with the seq of the entry that does."""
    found: list[tuple[int, Photo]] = []
    for event in events:
        if event.kind == Kind.CAMPAIGN_OPENED:
            opened = body_of(event, CampaignOpened)
            found += [(event.seq, photo) for photo in anchor_photos(opened)]
            if given := opened.get("references"):
                found += [(event.seq, photo) for cameras in given.values() for photo in cameras.values()]
        elif event.kind == Kind.SCENE_COMMITTED:
            if photos := body_of(event, SceneCommitted).get("photo"):
                found += [(event.seq, photo) for photo in photos.values()]
        elif event.kind == Kind.REFERENCE_SET:
            found.append((event.seq, event.body["photo"]))
    return found


@dataclass(frozen=True, slots=True)
class Given:
    """A reference picture given in the fixture: of which condition and camera, its bytes, its size (width, height),
    what it is called and where.
    """

    condition: int
    id: str
    camera: str
    content: bytes
    size: tuple[int, int]
    called: str
    where: str | None

    @property
    def file(self) -> str:
        """Its place in the campaign's folder."""
        return f"{PHOTOS}/given/{self.condition + 1:02d}-{self.camera}.png"


def given_pictures(plan: Plan) -> list[Given]:
    """The pictures that the fixture's layouts name (`reference`), read. Paths are relative to the fixture's file; in
    them {object} stands for the object's name.

    Raises InputError with the fixture's line for a missing or unreadable file, or one picture for several objects.
    """
    found: list[Given] = []
    layouts = {layout.name: (at, layout) for at, layout in enumerate(plan.fixture.layout)}
    conditions = protocol_conditions(plan.protocol, plan.fixture)
    objects = {condition.object for condition in conditions}
    for index, condition in enumerate(conditions):
        at, layout = layouts[condition.layout]
        for camera, named in layout.reference.items():
            where = ("layout", at, "reference")
            if "{object}" not in named and len(objects) > 1:
                text = f"{named!r} is one picture for {len(objects)} objects; write {{object}} in it"
                raise plan.fixture.refusal(where, f"{text}, as in 'pictures/{{object}}-{layout.name}.png'")
            path = plan.fixture_path.parent / named.replace("{object}", condition.object)
            called = f"reference picture {str(path)!r} of camera {camera!r}"
            try:
                content = path.read_bytes()
                height, width = decode_png(content).shape[:2]
            except OSError as error:
                text = f"{called} cannot be read ({error.strerror}); put it there or take the entry out"
                raise plan.fixture.refusal(where, text) from None
            except InputError as error:
                raise plan.fixture.refusal(where, f"{called} {error}") from None
            place = plan.fixture.refusal(where, "").where
            found.append(Given(index, condition.id, camera, content, (width, height), called, place))
    return found


def check_given(pictures: Sequence[Given], cell: Cell) -> None:
    """Each picture must be of a camera of the cell and of its size. Raises InputError with the fixture's line."""
    cameras = {camera.name: camera for camera in cell.camera}
    for picture in pictures:
        camera = cameras.get(picture.camera)
        if camera is None:
            known = f"cell {cell.cell.name!r} has: {', '.join(cameras) or 'none'}"
            text = f"{picture.called}: no such camera{suggestion(picture.camera, list(cameras))}; {known}"
            raise InputError(text, where=picture.where)
        if picture.size != (camera.width, camera.height):
            sizes = f"{picture.size[0]} x {picture.size[1]} pixels, the camera's {camera.width} x {camera.height}"
            raise InputError(f"{picture.called} has {sizes}; take it with this camera", where=picture.where)


def given_body(pictures: Sequence[Given]) -> dict[str, dict[str, Photo]]:
    """The `references` of CampaignOpened: {condition: {camera: photo}}."""
    body: dict[str, dict[str, Photo]] = {}
    for picture in pictures:
        photo: Photo = {"file": picture.file, "sha256": hashlib.sha256(picture.content).hexdigest()}
        body.setdefault(picture.id, {})[picture.camera] = photo
    return body


def keep_given(pictures: Sequence[Given], folder: Path) -> None:
    """Copy the given pictures into a campaign's folder. Raises StorageError."""
    for picture in pictures:
        keep_file(folder / picture.file, picture.content, folder)
