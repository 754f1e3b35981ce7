"""Messages to and from the cameras' nodes: pictures, gaps, videos, photos of a scene and what they show.

May not: hold up whoever takes pictures: what is published is dropped where nobody keeps up.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from labctl.messages import body_parts as parts
from labctl.messages.typed import Typed


@dataclass(frozen=True, slots=True)
class CameraState(Typed):
    """Why a camera gives no pictures, "" when it does; on every change."""

    KIND: ClassVar = "camera"
    FROM: ClassVar = "camera:*"
    TO: ClassVar = "run"
    name: str
    lost: str


@dataclass(frozen=True, slots=True)
class FrameGap(Typed):
    """The body of a `Gap` event: missing frames (or values of a sensor), over, or a part of those that go on."""

    KIND: ClassVar = "gap"
    FROM: ClassVar = "camera:*, sensor:*"
    TO: ClassVar = "run"
    episode: str
    stream: str
    from_ns: int | None
    to_ns: int | None
    lost: int | None
    why: str
    holes: int | None = None


@dataclass(frozen=True, slots=True)
class Video(Typed):
    """The video of an episode is in its file for good."""

    KIND: ClassVar = "video"
    FROM: ClassVar = "camera:*"
    TO: ClassVar = "run"
    episode: str
    camera: str
    file: str | None
    frames: int


@dataclass(frozen=True, slots=True)
class Frame(Typed):
    """Full size; t_ns: of receipt. While an episode is open that has `frames` in its open; sockets of its own that keep
    the newest alone."""

    KIND: ClassVar = "frame"
    FROM: ClassVar = "camera:*"
    TO: ClassVar = "@frames"
    ARRAYS: ClassVar = "image"
    camera: str
    t_ns: int


@dataclass(frozen=True, slots=True)
class Preview(Typed):
    """320 px wide, ten a second, dropped where nobody keeps up."""

    KIND: ClassVar = "preview"
    FROM: ClassVar = "camera:*"
    TO: ClassVar = "@preview"
    ARRAYS: ClassVar = "image"
    camera: str
    t_ns: int
    number: int


@dataclass(frozen=True, slots=True)
class Compare(Typed):
    """What to compare the pictures with: trial (null: nothing is staged), compare (false: ghosts only, the robot is not
    home), scene and pose: photos {file, sha256} or null."""

    KIND: ClassVar = "compare"
    FROM: ClassVar = "run"
    TO: ClassVar = "camera:*"
    trial: str | None
    round: int
    compare: bool = False
    scene: parts.Photo | None = None
    pose: parts.Photo | None = None
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Photo(Typed):
    """Take a photo into this file, of light from after_ns on, and compare it."""

    KIND: ClassVar = "photo"
    FROM: ClassVar = "run"
    TO: ClassVar = "camera:*"
    request: int
    file: str
    after_ns: int
    scene: parts.Photo | None
    pose: parts.Photo | None
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Compared(Typed):
    """scene: `Match.body()`, pose: `Move.body()`, each or null; problem: why there is none."""

    KIND: ClassVar = "compared"
    FROM: ClassVar = "camera:*"
    TO: ClassVar = "run"
    camera: str
    trial: str
    round: int
    t_ns: int
    scene: parts.MatchBody | None = None
    pose: parts.MoveBody | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Photographed(Typed):
    """photo {file, sha256, t_ns} or null; scene, pose, problem as in `compared`."""

    KIND: ClassVar = "photographed"
    FROM: ClassVar = "camera:*"
    TO: ClassVar = "run"
    request: int
    camera: str
    photo: parts.Photo | None
    scene: parts.MatchBody | None = None
    pose: parts.MoveBody | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Ghost(Typed):
    """Live and reference over each other, 320 px wide, twice a second while a scene is staged."""

    KIND: ClassVar = "ghost"
    FROM: ClassVar = "camera:*"
    TO: ClassVar = "@preview"
    ARRAYS: ClassVar = "image, reference"
    camera: str
    trial: str
    t_ns: int
    counts: bool = False
    scene: parts.MatchBody | None = None
    pose: parts.MoveBody | None = None
    problem: str | None = None
