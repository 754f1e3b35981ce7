"""Messages to and from the cameras' nodes: pictures, gaps, videos, photos of a scene and what they show.

May not: hold up whoever takes pictures: what is published is dropped where nobody keeps up.
"""

from __future__ import annotations

from dataclasses import dataclass

from labctl.messages import body_parts as parts
from labctl.messages.typed import Typed


@dataclass(frozen=True, slots=True)
class CameraState(Typed, kind="camera", sender="camera:*", to="run"):
    """Why a camera gives no pictures, "" when it does; on every change."""

    name: str
    lost: str


@dataclass(frozen=True, slots=True)
class FrameGap(Typed, kind="gap", sender="camera:*, sensor:*", to="run"):
    """The body of a `Gap` event: missing frames (or values of a sensor), over, or a part of those that go on. private:
    of a stream that tells arms apart, so that no event has it.
    """

    episode: str
    stream: str
    from_ns: int | None
    to_ns: int | None
    lost: int | None
    why: str
    holes: int | None = None
    private: bool = False


@dataclass(frozen=True, slots=True)
class Video(Typed, kind="video", sender="camera:*", to="run"):
    """The video of an episode is in its file for good."""

    episode: str
    camera: str
    file: str | None
    frames: int


@dataclass(frozen=True, slots=True)
class Frame(Typed, kind="frame", sender="camera:*", to="@frames", arrays="image"):
    """Full size; t_ns: of receipt. While an episode is open that has `frames` in its open; sockets of its own that keep
    the newest alone."""

    camera: str
    t_ns: int


@dataclass(frozen=True, slots=True)
class Preview(Typed, kind="preview", sender="camera:*", to="@preview", arrays="image"):
    """320 px wide, ten a second, dropped where nobody keeps up."""

    camera: str
    t_ns: int
    number: int


@dataclass(frozen=True, slots=True)
class Compare(Typed, kind="compare", sender="run", to="camera:*"):
    """What to compare the pictures with: trial (null: nothing is staged), compare (false: ghosts only, the robot is not
    home), scene and pose: photos {file, sha256} or null."""

    trial: str | None
    round: int
    compare: bool = False
    scene: parts.Photo | None = None
    pose: parts.Photo | None = None
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Photo(Typed, kind="photo", sender="run", to="camera:*"):
    """Take a photo into this file, of light from after_ns on, and compare it."""

    request: int
    file: str
    after_ns: int
    scene: parts.Photo | None
    pose: parts.Photo | None
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Compared(Typed, kind="compared", sender="camera:*", to="run"):
    """scene: `Match.body()`, pose: `Move.body()`, each or null; problem: why there is none."""

    camera: str
    trial: str
    round: int
    t_ns: int
    scene: parts.MatchBody | None = None
    pose: parts.MoveBody | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Photographed(Typed, kind="photographed", sender="camera:*", to="run"):
    """photo {file, sha256, t_ns} or null; scene, pose, problem as in `compared`."""

    request: int
    camera: str
    photo: parts.Photo | None
    scene: parts.MatchBody | None = None
    pose: parts.MoveBody | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Ghost(Typed, kind="ghost", sender="camera:*", to="@preview", arrays="image, reference"):
    """Live and reference over each other, 320 px wide, twice a second while a scene is staged."""

    camera: str
    trial: str
    t_ns: int
    counts: bool = False
    scene: parts.MatchBody | None = None
    pose: parts.MoveBody | None = None
    problem: str | None = None
