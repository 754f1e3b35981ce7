"""What the bodies of several kinds of journal entry are made of (`labctl.core.event_bodies`), as typed forms.

May not: write or check anything.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NotRequired, TypedDict


class Reason(TypedDict):
    """Why."""

    reason: str


class Text(TypedDict):
    """What a person wrote."""

    text: str


class Photo(TypedDict):
    """A picture in the campaign's folder. t_ns: when it was taken; a picture given in the fixture has none. frames: of
    how many it is the mean, from t_ns on; self_score: how well one half of them matches the other.
    """

    file: str
    sha256: str
    t_ns: NotRequired[int]
    frames: NotRequired[int]
    self_score: NotRequired[float]


class PersonEntry(TypedDict):
    """A person of a session, by opaque id, with roles as `labctl.core.session.Role`."""

    id: str
    roles: Sequence[str]


class FileEntry(TypedDict):
    """A file beside a video, with its digest; frames: of depth pictures."""

    file: str
    sha256: str
    frames: NotRequired[int]


class VideoEntry(TypedDict):
    """A camera's video. about: what the camera reported of itself; depth: the depth pictures beside it."""

    file: str
    sha256: str
    frames: int
    about: NotRequired[FileEntry]
    depth: NotRequired[FileEntry]


class StreamEntry(TypedDict):
    """How much was stored of a stream: n samples in so many chunks, the root of their digests, first and last time.

    spec: digest of the stream's declaration (`labctl.devices.StreamSpec`).
    """

    n: int
    chunks: int
    root: str
    t0_ns: NotRequired[int | None]
    t1_ns: NotRequired[int | None]
    spec: NotRequired[str]


class Slot(TypedDict):
    """A randomised slot of the schedule, as published."""

    index: NotRequired[int]
    trial: str
    block: int
    position: int
    condition: str


class SlotWithArm(TypedDict):
    """A slot as it was sealed."""

    index: NotRequired[int]
    trial: str
    block: NotRequired[int]
    position: NotRequired[int]
    condition: NotRequired[str]
    arm: str


class Opening(TypedDict):
    """A sealed value, opened: it and its episode's nonce give sha256."""

    episode: str
    field: str
    sha256: str
    value: Any


class OutcomeBody(TypedDict):
    """An assessor's counts of items, as `labctl.core.outcome.Outcome`."""

    items_staged: int
    moved: int
    lost: int
    remaining: int
    end_reason: str
    notes: NotRequired[str]
    stage_reached: NotRequired[str | None]
    tags: NotRequired[Sequence[str]]
    wrong_end: NotRequired[bool]


class Hands(TypedDict):
    """What a trial took of people at consoles since the one before was scored: how many keys they pressed, and the
    seconds in which it waited for one of them, be it before staging, with the arm home or with its recording sealed.
    """

    keys: int
    waited_s: float


class Detected(TypedDict):
    """An end of a hold that the detector found (`labctl.core.detector.Candidate`)."""

    t_ns: int
    edge: str
    zone: str
    result: Literal["success", "lost", "neutral", "unknown"]
    held_s: float
    moved_m: float


class Clock(TypedDict):
    """How a device's clock ran beside the host's (`labctl.core.skew.ClockFit`), and what sealing adds.

    rate_hz: samples a second that were meant; missing: samples that never came, by the device's own clock; received:
    of an FR3, the mean share of commands that it says it received in time, while it was under control.
    """

    n: int
    span_s: float
    offset_s: float
    drift_ppm: float
    drift_se_ppm: float
    jitter_ms: float
    resets: int
    rate_hz: float
    missing: NotRequired[int | None]
    received: NotRequired[float]


class Plateau(TypedDict):
    """When practice counts as enough: so many last episodes within this change. stated: by whom, in words."""

    last: int
    within: float
    stated: NotRequired[str]


class SwitchEntry(TypedDict):
    """A scripted switch of the instruction, s after go."""

    name: str
    at_s: float
    instruction: str


class Link(TypedDict):
    """An earlier campaign, its head when it was linked, how many anchors are shared, and the digest of their names."""

    campaign: str
    head: str
    anchors: int
    sealed: NotRequired[str]
