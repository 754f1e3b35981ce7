"""What the bodies of messages and of several kinds of journal entry (`labctl.core.event_bodies`) are made of, as typed
forms.

May not: write or check anything.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict

from labctl.messages.edits import EditEntry
from labctl.plain import Json


class Reason(TypedDict):
    """Why."""

    reason: str


class Text(TypedDict):
    """What a person wrote."""

    text: str


class LookTaken(TypedDict):
    """A planned interim look: which of how many, by the first so many blocks, and whether it says stop. Of no arm's
    result, and no p, is anything kept.
    """

    number: int
    looks: int
    blocks: int
    labels: str
    says: Literal["stop", "go on"]


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
    """A file beside a video, with its digest."""

    file: str
    sha256: str


class FilmEntry(FileEntry):
    """Pictures in a file, and how many."""

    frames: int


class VideoEntry(FilmEntry):
    """A camera's video. about: what the camera reported of itself; depth: the depth pictures beside it."""

    about: NotRequired[FileEntry]
    depth: NotRequired[FilmEntry]


class StreamEntry(TypedDict):
    """How much was stored of a stream: n samples in so many chunks, the root of their digests, first and last time.

    spec: digest of the stream's declaration (`labctl.streams.StreamSpec`).
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


class Unsealed(TypedDict):
    """What a seal held: all slots and their arms, what they were drawn from and, in a joint campaign, bound with."""

    schedule: Sequence[SlotWithArm]
    secret_hex: str
    openings: Sequence[Opening]
    nonce_hex: NotRequired[str]


class OutcomeBody(TypedDict):
    """An assessor's counts of items, as `labctl.core.outcome.Outcome`. Of a task that is measured otherwise the whole
    task counts as the one item; reached_s: of success or stages, when each was reached, s after go; score: 0 to 1.
    """

    items_staged: int
    moved: int
    lost: int
    remaining: int
    end_reason: str
    notes: NotRequired[str]
    stage_reached: NotRequired[str | None]
    tags: NotRequired[Sequence[str]]
    wrong_end: NotRequired[bool]
    reached_s: NotRequired[Sequence[float | None]]
    score: NotRequired[float]


class Hands(TypedDict):
    """What a trial took of people at consoles since the one before was scored: how many keys they pressed, and the
    seconds in which it waited for one of them, be it before staging, with the robot home or with its recording sealed.
    """

    keys: int
    waited_s: float


Judged = Literal["success", "lost", "neutral", "unknown"]
OUTSIDE = "outside"  # the zone of what is over no tote


UP, DOWN = "step up", "step down"  # edges of what a sensor saw


class Detected(TypedDict):
    """An end of a hold (`labctl.core.recorded.detector.detect`), and when what was held was grasped and lifted; or a
    step that a sensor saw and no hold explains. witnesses: sensors that saw it; robot: of two."""

    t_ns: int
    grasped_ns: NotRequired[int | None]
    lifted_ns: NotRequired[int | None]
    edge: str
    zone: str
    result: Judged
    held_s: float
    moved_m: float
    robot: NotRequired[str]
    witnesses: NotRequired[Sequence[str]]


class Clock(TypedDict):
    """How a device's clock ran beside the host's (`labctl.core.recorded.skew.ClockFit`), and what sealing adds.

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
    """A scripted switch of the instruction, s after go. ignored: the tag that says an arm went on as before."""

    name: str
    at_s: float
    instruction: str
    ignored: NotRequired[str]


class Link(TypedDict):
    """An earlier campaign, its head when it was linked, how many anchors are shared, and the digest of their names."""

    campaign: str
    head: str
    anchors: int
    sealed: NotRequired[str]


class GapBody(TypedDict):
    """Samples or frames are missing. holes: in how many places, of a camera's frames. files: what a camera left that is
    no video, so that no video's entry binds it, each with its digest.
    """

    stream: str
    from_ns: int | None
    to_ns: int | None
    lost: int | None
    why: str
    holes: NotRequired[int]
    files: NotRequired[Sequence[FileEntry]]


class ChunkGap(GapBody):
    """A chunk that never came, or that its producer gave up."""

    seq: int
    episode: NotRequired[str]


class SentEntry(TypedDict):
    """How much of a stream its producer sent: so many chunks with n samples."""

    chunks: int
    n: int


class Region(TypedDict):
    """A changed region: left, top, right, bottom in pixels, and its share of the picture."""

    box: Sequence[int]
    share: float


class MoveBody(TypedDict):
    """What a camera did, as `labctl.scene.matching.Move.body`. shift_px: right and down."""

    shift_px: Sequence[float] | None
    rotation_deg: float | None
    moved_px: float | None
    note: str


class MatchBody(MoveBody):
    """A picture compared with its reference, as `labctl.scene.matching.Match.body`. score: 0 to 100; changed: share of
    the picture.
    """

    score: float
    ssim: float
    changed: float
    regions: Sequence[Region]


class MatchEntry(TypedDict):
    """A comparison as a committed scene keeps it: with which reference (sha256), whether a low score counted, and why
    there is none.
    """

    scene: NotRequired[MatchBody | None]
    reference: NotRequired[str | None]
    counts: NotRequired[bool]
    pose: NotRequired[MoveBody | None]
    pose_reference: NotRequired[str | None]
    problem: NotRequired[str | None]


class SceneRules(TypedDict):
    """[scene] of a protocol: which reference counts, and what a commit needs. min_score: a number; "measured": what
    the reference gives against itself, less a margin; "where_measured": that where the reference has such a score;
    "none", as None in campaigns from before, holds nothing.
    """

    restore: str
    require_photo: bool
    min_score: float | Literal["measured", "where_measured", "none"] | None
    max_camera_shift_px: float
    override: str


class StageEntry(TypedDict):
    """A stage of a task: what it is worth, when it counts as reached, and what of devices' reports or traces it is."""

    name: str
    points: float
    definition: str
    sensed: NotRequired[str | None]


class AnchorEntry(TypedDict):
    """What an episode that is given this score, 0 to 1, looks like; picture: of one, kept in the campaign's folder."""

    score: float
    text: str
    picture: NotRequired[Photo]


class TaskEntry(TypedDict):
    """A task, as [[task]] has it. measure: items, success, stages or score; items_staged: items that are put there."""

    name: str
    instruction: str
    measure: str
    items_staged: int
    budget_s: float
    stages: Sequence[StageEntry]
    rubric: Sequence[AnchorEntry]
    failure_tags: Sequence[str]


class ConditionEntry(TypedDict):
    """A condition as whoever sets the scene reads it. task and what follows: where the protocol has tasks, as
    [[condition]] has it; set: the condition beside whose blocks those of this one are run; inputs: edits of what a
    policy sees, in their order.
    """

    id: str
    object: str
    layout: str
    axes: Sequence[str]
    tags: Sequence[str]
    tote_side: str
    camera_side: str
    instructions: str
    task: NotRequired[str]
    instruction: NotRequired[str]
    base: NotRequired[str]
    set: NotRequired[str]
    split: NotRequired[str]
    family: NotRequired[str]
    difficulty: NotRequired[str]
    stress: NotRequired[str]
    inputs: NotRequired[Sequence[EditEntry]]


class Commit(TypedDict):
    """The source tree that labctl ran from."""

    commit: str
    dirty: bool


class Pins(TypedDict):
    """Versions of what a run ran on. git: None where labctl came from a wheel; code: digest of labctl's files, of its
    modules alone until November 2026; packages: what labctl requires and what registers drivers; beneath: what these
    bring in turn, since December 2026; modules: digest of what lies beside lab.toml, where there are any.
    """

    labctl: str
    git: Commit | None
    code: NotRequired[str]
    python: str
    packages: Mapping[str, str]
    beneath: NotRequired[Mapping[str, str]]
    modules: NotRequired[str]


class SealedLink(TypedDict, total=False):
    """What the seal keeps of a link: the names of its anchors, and of those that have changed."""

    anchors: Sequence[str]
    changed: Sequence[str]


class Driver(TypedDict):
    """A device by its driver's name and options."""

    driver: str
    options: Mapping[str, Json]
