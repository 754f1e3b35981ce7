"""What is found of a campaign's episodes for its report, as types: times in seconds, shares as fractions.

May not: compute or check (`labctl.analysis.episodes` and `blocks.added_latency` do). An interval is [low, high] at
95 %, None where there is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NotRequired, TypedDict

if TYPE_CHECKING:  # whoever reads a campaign does not wait for numpy
    from labctl.analysis.results import Bounds, Unbounded


class Measure(TypedDict):
    """The mean over the episodes that have it, its t interval, and how many these are."""

    value: float | None
    ci: Bounds
    episodes: int


class EpisodeStress(TypedDict):
    """Stress measures of an episode; None where its traces hold too little. cell: of a joint campaign's."""

    cell: NotRequired[str]
    episode: str
    arm: str
    object: str
    questions: int
    inference_hz: float | None
    latency_s: float | None
    latency_p95_s: float | None
    roughness_rad: float | None
    stability: float | None


class ArmStress(TypedDict):
    """Stress measures of an arm, over `episodes`."""

    cell: NotRequired[str]
    arm: str
    episodes: int
    inference_hz: Measure
    latency_s: Measure
    latency_worst_p95_s: float | None
    roughness_rad: Measure
    stability: Measure


class Stretch(TypedDict):
    """Around a switch that a controller took, s after go: items moved and seconds of the stretches before and after
    it, seconds to the first item ("inf": never) and to the first question; all None where it was not taken.
    """

    switch_s: float | None
    moved_before: int | None
    before_s: float | None
    moved_after: int | None
    after_s: float | None
    first_s: Unbounded | None
    asked_s: float | None


class AfterSwitch(Stretch):
    """An episode at a switch. followed: an assessor, who may say that it was ignored, did not, and an item was moved
    after it; None where it was not met, or the protocol has nobody judge it.
    """

    cell: NotRequired[str]
    episode: str
    arm: str
    object: str
    switch: str
    met: bool
    followed: bool | None


class ArmAfterSwitch(TypedDict):
    """An arm at a switch that `met` of its `episodes` met; as `adaptability.by_arm` has it. moved: episodes of those
    with any item moved after it; succeeded, share and ci are None where nobody judged what was moved.
    """

    cell: NotRequired[str]
    arm: str
    switch: str
    episodes: int
    met: int
    moved: int
    succeeded: int | None
    share: float | None
    ci: Bounds
    moved_before: int
    before_s: float
    moved_after: int
    after_s: float
    first_s: Unbounded | None
    asked_s: Measure


class Switch(TypedDict):
    """A scripted switch of the instruction, s after go; ignored: the tag that says an arm went on as before."""

    name: str
    at_s: float
    instruction: str
    ignored: NotRequired[str]


class Adaptability(TypedDict):
    """What came after each switch, by arm and by episode."""

    switches: Sequence[Switch]
    arms: list[ArmAfterSwitch]
    episodes: list[AfterSwitch]


class Stress(TypedDict):
    """Stress measures; rate_hz: at which sent targets are compared; taken_over: episodes that a person took over."""

    rate_hz: float
    arms: list[ArmStress]
    episodes: list[EpisodeStress]
    taken_over: list[str]
    adaptability: NotRequired[Adaptability]


class Rule(TypedDict):
    """When practice counts as enough: so many last episodes within this change. stated: by whom, in words."""

    last: int
    within: float
    stated: NotRequired[str]


class Driven(TypedDict):
    """An episode of practice, as the journal keeps it."""

    person: str
    object: str
    moved: int
    staged: int
    duration_s: float


class Practised(TypedDict):
    """A person's practice: items per hour of each episode in order, the number of the episode (from 1) at which the
    plateau was reached, None if it was not, and the mean of the last rates.
    """

    person: str
    episodes: int
    rates: list[float]
    plateau: int | None
    rate_at_end: float | None


class Practice(TypedDict):
    """What teleoperators practised before the reference."""

    rule: Rule
    people: list[Practised]


class AnchorDrift(TypedDict):
    """How an anchor's RMST changed from the first campaign to the second: ratio, interval and p."""

    anchor: str
    ratio: float
    interval: Bounds
    p: float | None


class LinkedPair(TypedDict):
    """An arm of one campaign against one of another, as `labctl.analysis.episodes.linked` has it."""

    a: str
    b: str
    anchors: list[str]
    objects: list[str]
    ratio: float
    interval: Bounds
    p: float | None
    df: float | None
    apart: float | None
    naive: float
    drift: list[AnchorDrift]
    p_holm: float | None
    verdict: str


class LinkedPairs(TypedDict):
    """The linked comparison of two campaigns. head: of the earlier when it was linked; changed: anchors that count as
    the same on their opener's word.
    """

    schema: str
    campaigns: list[str]
    tau: float
    alpha: float
    anchors: list[str]
    pairs: list[LinkedPair]
    warnings: list[str]
    head: NotRequired[str]
    changed: NotRequired[list[str]]


class HistoricalCell(TypedDict):
    """A person of another time at one object: numbers of their own."""

    object: str
    episodes: int
    moved: int
    rmst: float | None
    rmst_ci: Bounds


class HistoricalRatio(TypedDict):
    """HRT of an arm of this campaign against the person of then, over the objects that both met, a fraction."""

    arm: str
    objects: list[str]
    hrt: float | None
    hrt_ci: Bounds


class HistoricalNumbers(TypedDict):
    """tau: horizon, s; shorter: budgets of then that are below it, s, None without; arms: None unless declared."""

    tau: float
    shorter: float | None
    cells: list[HistoricalCell]
    arms: list[HistoricalRatio] | None


class Historical(HistoricalNumbers):
    """With where it is from: source (a campaign at its head, or a table), rig and dates in words, how many episodes,
    and the digest of the rows that were frozen at opening.
    """

    source: str
    rig: str
    dates: str
    episodes: int
    sha256: str


class LatencyLevel(TypedDict):
    """An arm at a level of latency. added_s: by the campaign; measured_s: median over episodes from what was seen to
    the command, None where no trace says; score: mean with its interval; kept: score less the base's in the same set,
    over `sets` of them, None at the base.
    """

    arm: str
    level: str
    added_s: float
    measured_s: float | None
    episodes: int
    score: float | None
    ci: Bounds
    kept: float | None
    kept_ci: Bounds
    sets: int


class LateEpisodes(TypedDict):
    """Rank correlation of an episode's measured latency with its score, over all levels; None without spread."""

    arm: str
    episodes: int
    rho: float | None
    p: float | None
    p_error: float | None


class Lateness(TypedDict):
    """Latency against what arms make of it. measure: "score" or "success"; levels in order of the latency added."""

    measure: str
    levels: list[LatencyLevel]
    within: list[LateEpisodes]
