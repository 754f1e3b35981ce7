"""What only a campaign can tell a report (`lab` of its JSON), as types: times in seconds, shares as fractions.

May not: compute or check. `labctl.reporting` makes it; an interval is [low, high] at 95 %, None where there is none.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NotRequired, TypedDict

from labctl.analysis.report.judged_facts import Judgements

if TYPE_CHECKING:  # whoever reads a campaign does not wait for numpy
    from labctl.analysis.episode_facts import Historical, Lateness, LinkedPairs, Practice, Stress
    from labctl.analysis.results import Plain
    from labctl.analysis.survival.result import ArmResult, PairResult


OTHER_LAB = "--lab DIR"
"""Ends the command of an episode whose lab is not the reader's own: DIR is for him to fill in."""


class Counts(TypedDict):
    """What became of trials. planned: slots of the schedule; run: episodes whose arm was revealed; voids: by reason;
    ended_early: by a person or with the run while work remained, then scored.
    """

    planned: int
    run: int
    scored: int
    not_run: int
    voids: Mapping[str, int]
    voids_before_go: int
    voids_after_go: int
    ended_early: int


class Flow(Counts):
    """Of all trials, and by arm (voids: how many)."""

    by_arm: Mapping[str, Mapping[str, int]]


class Blinding(TypedDict):
    """What was blind: the share of slots whose arm could be deduced, whether operator and run shared a user account,
    why it was unblinded early.
    """

    deducible_share: float
    shared_uid: bool
    early_unblinding: str | None
    statement: str


class EpisodeEntry(TypedDict):
    """A scored episode. cell: of a joint campaign, which one ran it; score: where its task is not counted in items,
    from 0 to 1; block: from 0; duration_s: from go to the end, None when it never got to go; video: paths relative to
    the report; rrd_command: opens it, and ends in OTHER_LAB where its lab is to be filled in.
    """

    episode: str
    cell: NotRequired[str]
    arm: str
    object: str
    block: int
    outcome: str
    moved: int
    staged: int
    score: NotRequired[float | None]
    end_reason: str
    stopped_by_hand: str | None
    duration_s: float | None
    video: list[str]
    rrd_command: str


class MovedOfStaged(TypedDict):
    """Items of an arm."""

    arm: str
    moved: int
    staged: int


class ArmStops(TypedDict):
    """Episodes of an arm that a person stopped: how many of which cause, those of them that do not count against it,
    and how many were voided.
    """

    arm: str
    by_cause: dict[str, int]
    not_counted: dict[str, int]
    void: int


class Repeated(TypedDict):
    """The analysis with every stop by hand counted."""

    arms: list[ArmResult]
    pairs: list[PairResult]


class Stops(TypedDict):
    """Stops by hand. counted: the causes that the protocol lists; `repeated` where some stops were not counted."""

    counted: list[str] | None
    arms: list[ArmStops]
    repeated: NotRequired[Repeated]


class Disputed(TypedDict):
    """Scored episodes in which witnesses and assessor disagree and nobody looked; untold: those, by arm, in which the
    detector could not tell what came of a grasp or release and nobody looked; untimed: items that no witness timed.
    """

    episodes: int
    scored: int
    by_arm: dict[str, int]
    untold: NotRequired[dict[str, int]]
    untimed: int


class AtConsole(TypedDict):
    """Of scored trials that people ran at a console and one run saw whole: how many, the keys pressed, the seconds in
    which they waited for a person, and the robot's from go to the end; sums.
    """

    trials: int
    keys: int
    waited_s: float
    robot_s: float


class Line(TypedDict):
    """Seconds by what they went on. of: a block's number from 1, an operator's id, or what else is named, of a joint
    campaign with its cell before it ("a: 3"). ran_s: of all scored trials, from go to the end.
    """

    of: str
    trials: int
    total_s: float
    by: dict[str, float]
    holds: dict[str, float]
    console: AtConsole
    ran_s: float


class Hours(TypedDict):
    """Where the hours of a campaign's runs went. what: what each kind of time is, in words; cells: of a joint campaign,
    a line for each, which together are `total`: hours of rigs, which may have run at once.
    """

    schema: str
    campaign: str | None
    total: Line
    cells: NotRequired[list[Line]]
    blocks: list[Line]
    operators: list[Line]
    what: dict[str, str]


class Times(TypedDict):
    """Times as people read them, where the lab is: when it was opened and closed ("" while it is open)."""

    zone: str
    opened: str
    closed: str


class AskedStep(TypedDict):
    """A stage with its points and definition, or an anchor of a rubric ("" for its name): its score and what such an
    episode looks like; picture: the file in the report that shows one, "" for none.
    """

    name: str
    worth: float
    text: str
    picture: str


class Asked(TypedDict):
    """A task as it was put to every arm, and what it was judged by."""

    task: str
    measure: str
    instruction: str
    budget_s: float
    steps: Sequence[AskedStep]


class Labels(TypedDict):
    """The stream of labels that a report stands on: in words, of how many of the scored episodes it says anything.
    asked: the stream by its name, where one was asked for and not the best of each episode taken.
    """

    stream: str
    text: str
    episodes: int
    scored: int
    asked: NotRequired[str]


class Spread(TypedDict):
    """Median and 95th percentile, seconds."""

    p50: float
    p95: float


class Answered(TypedDict):
    """How fast an arm was answered, as `labctl.reporting.times.answer_times` has it."""

    arm: str
    episodes: int
    questions: int
    late: int
    unanswered: int
    answers_per_s: float | None
    answer_s: Spread | None
    command_s: Spread | None
    picture_s: Spread | None
    server_s: Spread | None
    rest_s: Spread | None


class AnswerTimes(Answered):
    """With what came before the clock, what its server reported of itself, and whether a person drives the arm. cell:
    of a joint campaign, whose arms are told cell by cell.
    """

    cell: NotRequired[str]
    load_s: Spread | None
    warm_s: Spread | None
    told: dict[str, float]
    by_hand: NotRequired[bool]


class Touched(TypedDict):
    """How often, how long and how a person touched an arm's scored episodes.

    episodes, touched: episodes, and those of them with a touch; interventions: touches in all, by_kind {kind: n};
    touched_s of robot_s: seconds under a hand, and from go to end; per_hour: touches per robot-hour; moved, unaided:
    items moved by the recorded events, and those moved without a touch.
    """

    arm: str
    episodes: int
    touched: int
    interventions: int
    by_kind: dict[str, int]
    touched_s: float
    robot_s: float
    per_hour: float | None
    moved: int
    unaided: int


class Reviewed(TypedDict):
    """The arms by the reviewed episodes alone, which are named."""

    episodes: list[str]
    arms: list[ArmResult]


class Clip(TypedDict):
    """A clip of an episode, why it is this one, and how many times faster than it happened. file: its name in the
    report's folder; data: its bytes, until they are written.
    """

    arm: str
    kind: str
    episode: str
    why: str
    camera: str
    speed: int
    file: str
    data: NotRequired[bytes]


class Trained(TypedDict):
    """A condition that is training data of an arm's policy, as its card says."""

    condition: str
    arm: str


class SensorCurve(TypedDict):
    """What one column of a sensor measured in an episode: t_s since go."""

    arm: str
    episode: str
    t_s: list[float]
    value: list[float]


class SensorColumn(TypedDict):
    """One column of a sensor over the campaign; of a joint one a sensor's name has its cell's before it. drawn: false
    of a further column of one that has many.
    """

    sensor: str
    column: str
    unit: str
    drawn: bool
    curves: list[SensorCurve]


class Lab(TypedDict, total=False):
    """All of it; any key may be missing. A report of two linked campaigns is the later's."""

    campaign: str
    question: str
    phase: str
    alpha: float
    provisional: bool
    provisional_why: list[str]
    unreviewed: list[str]
    kind: str
    cell: str
    robot: str
    commitment: str
    head: str
    opened_wall: str | None
    closed_wall: str | None
    times: Times
    sessions: Sequence[Mapping[str, Plain]]
    flow: Flow
    abandoned: list[str]
    deviations: list[str]
    blinding: Blinding
    episodes: list[EpisodeEntry]
    provenance: dict[str, str | Mapping[str, str] | None]
    hours: Hours
    void_as_failure: list[MovedOfStaged]
    disputed: Disputed
    voids_after_go: Mapping[str, int]
    voids_judged: Mapping[str, int]
    stops: Stops | None
    failures: Mapping[str, Mapping[str, int]]
    look: str | None
    judgements: Judgements
    asked: list[Asked]
    trained: list[Trained]
    answer_times: list[AnswerTimes]
    labels: Labels
    notes: list[str]
    linked: LinkedPairs
    historical: Historical
    historical_by_cell: Mapping[str, Historical]
    lateness: Lateness
    interventions: Sequence[Touched]
    stress: Stress
    sensors: list[SensorColumn]
    practice: Practice
    reviewed: Reviewed
    episodes_page: str
    clips: list[Clip]
