"""The body of each kind of journal entry, as a typed form: who writes one and who reads one use the same.

May not: write or check anything. A key that is NotRequired is missing from journals of campaigns that were recorded
before it existed, or where it does not apply. openings_root: binds every value that was sealed until then
(`labctl.store.ledger`). docs/journal.md is generated from here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NotRequired, TypedDict, TypeVar

from labctl.core.evening_bodies import (
    ArmsAsked,
    HoldCleared,
    HoldRaised,
    PracticeRecorded,
    ReferenceSet,
    RunStarted,
    SessionChanged,
    SessionClosed,
    SessionOpened,
)
from labctl.core.events import Event, Kind
from labctl.messages.body_parts import (
    Clock,
    ConditionEntry,
    Detected,
    GapBody,
    Hands,
    Link,
    LookTaken,
    MatchEntry,
    OutcomeBody,
    Photo,
    Pins,
    Plateau,
    Reason,
    SceneRules,
    Slot,
    StreamEntry,
    SwitchEntry,
    TaskEntry,
    Text,
    Unsealed,
    VideoEntry,
)
from labctl.messages.historical import HistoricalEntry
from labctl.messages.joint import JointPart, SealAnswer
from labctl.messages.judgements import PreferenceAsked, PreferenceStated, WitnessEntry, WitnessStated
from labctl.messages.media import MediaStored, MediaTrimmed
from labctl.plain import Json, RobotAbout

Form = TypeVar("Form")
Streams = Mapping[str, StreamEntry]
Result = Literal["success", "lost", "safety_stop"]


class CampaignOpened(TypedDict):
    """What a blind role sees of the protocol, and the commitment to the schedule. format: of the folder, 1 if missing.
    tasks: for `labctl.core.task`; then items_staged and budget_s are the most of any, instruction empty. preference:
    the question. alone: extra blocks, of the person by itself; historical: what is frozen of a person of another time;
    joint: where the campaign is one cell's part of a joint one. kind: of the cell, or faults or replay (see
    `labctl.store.driver_options`). files: where in the lab's folder cell, fixture and protocol lay, those that did.
    """

    campaign: str
    format: NotRequired[int]
    kind: str
    cell: Mapping[str, str]
    fixture: Mapping[str, str]
    protocol: Mapping[str, str]
    files: NotRequired[Mapping[str, str]]
    conditions: Sequence[ConditionEntry]
    arms_count: int
    has_human: bool
    deducible_share: float
    tasks: NotRequired[Sequence[TaskEntry]]
    preference: NotRequired[str]
    witness: NotRequired[WitnessEntry]
    instruction: str
    switches: NotRequired[Sequence[SwitchEntry]]
    items_staged: int
    budget_s: float
    arming_s: float
    max_voids: int
    process_lost: Literal["void", "score"]
    camera_lost: NotRequired[str]
    early_end: NotRequired[str]
    stops_count: NotRequired[Sequence[str]]
    estimand: NotRequired[Mapping[str, str]]
    void_reasons: Sequence[str]
    scene: NotRequired[SceneRules]
    tau_s: float | None
    takeover: NotRequired[str]
    plateau: NotRequired[Plateau | None]
    durable: bool
    shared_uid: bool
    references: NotRequired[Mapping[str, Mapping[str, Photo]]]
    links: NotRequired[Sequence[Link]]
    alone: NotRequired[Sequence[int]]
    historical: NotRequired[HistoricalEntry]
    joint: NotRequired[JointPart]
    commitment: str
    schedule: Sequence[Slot]


class TrialStaging(TypedDict):
    """A trial's scene is being staged. Until November 2026 a scene staged again after a void had none of its own."""

    setter: NotRequired[str]


class SceneCommitted(TypedDict):
    """The scene stands. photo and match: by camera; match: what comparing with the reference gave."""

    photo: NotRequired[Mapping[str, Photo] | None]
    match: NotRequired[Mapping[str, MatchEntry] | None]
    snapshot: NotRequired[Mapping[str, Json]]


class ArmRevealed(TypedDict):
    """The arm was revealed to the run process; the episode's id is new here. sealed: digest of the arm's name. joint:
    of a part of a joint campaign, what the seal host answered beside it.
    """

    sealed: str
    joint: NotRequired[SealAnswer]
    openings_root: NotRequired[str]


class EpisodeStarted(TypedDict):
    """The episode may move. kind: as `CampaignOpened` has it; sealed: digest of the controller and its options; robot:
    what it is, as it was connected last (from December 2026 on); inputs_seed: of what is drawn for the edits of its
    condition, the same for every arm of a block.
    """

    pins: Pins
    robot: NotRequired[RobotAbout]
    kind: str
    durable: bool
    budget_s: float
    items_staged: int
    sealed: str
    inputs_seed: NotRequired[int]
    openings_root: NotRequired[str]


class Go(TypedDict):
    """go_ns: device-side time of the first live observation handed to a warm controller."""

    go_ns: int


class OperationRecorded(TypedDict):
    """What became of an item, and when, by the devices' own time. robot: which of two robots moved it."""

    op_index: int
    result: Result
    t_ns: int
    cause: str | None
    robot: NotRequired[str]


class ItemCounted(TypedDict):
    """The operator's own tally. moved: items so far."""

    moved: int
    t_ns: int


class StageReached(TypedDict):
    """A person or a device saw a stage reached, or a person took the last one back. reached: how many are so far."""

    reached: int
    t_ns: int


class InterventionBegan(TypedDict):
    """A person touched the running episode. number: from 0; kind: an `InterventionKind`; by: console or device."""

    number: int
    kind: str
    by: str
    t_ns: int


class InterventionEnded(TypedDict):
    """A touch ended. kind: as it turned out."""

    number: int
    kind: str
    t_ns: int
    note: NotRequired[str]


class InstructionSwitched(TypedDict):
    """A controller took a scripted switch of its instruction. number: from 0; t_ns: when it was taken."""

    number: int
    name: str
    instruction: str
    planned_ns: int
    t_ns: int


class EpisodeEnded(TypedDict):
    """The motion ended. reason: an `EndReason`; cause: of one that a sensor ended, which sensor and why; by: who ended
    it, of one that a person ended.
    """

    reason: str
    end_ns: int
    cause: NotRequired[str]
    by: NotRequired[str]


class RecordingSealed(TypedDict):
    """What was recorded: its digests, and how the devices' clocks ran (`skew.ClockFit` and what sealing adds).

    root: digest over the streams' roots; sealed: digest of the summaries of arm-dependent streams; detected: what the
    detector found, None where it could not look.
    """

    streams: Mapping[str, StreamEntry]
    root: str
    sealed: NotRequired[str]
    videos: Mapping[str, VideoEntry]
    clocks: NotRequired[Mapping[str, Clock]]
    gaps: int
    detected: NotRequired[Sequence[Detected] | None]
    openings_root: NotRequired[str]


class OutcomeRecorded(TypedDict):
    """The assessor's outcome. hands: what the trial took of people at consoles; missing where nobody pressed a key."""

    outcome: OutcomeBody
    hands: NotRequired[Hands]


class OutcomeCorrected(TypedDict):
    """An outcome is replaced; old is the one that stood."""

    old: OutcomeBody
    new: OutcomeBody
    why: str


class OperationsReviewed(TypedDict):
    """The operations as an assessor left them."""

    operations: Sequence[OperationRecorded]
    note: NotRequired[str]


class OutcomeConfirmed(TypedDict):
    """An assessor went over the outcome of an episode that is not counted in items, and it stands as it is."""

    note: NotRequired[str]


class OutcomeJudged(TypedDict):
    """What a second assessor says of an episode, from its video alone: it replaces nothing."""

    outcome: OutcomeBody


class EpisodeVoided(TypedDict):
    """The episode does not count. reason: of the protocol, or what ended it before go; `run_left`: its run was left
    before go, which `max_voids` does not count. evidence: seq of the episode's entry that shows why; confirmed_by: the
    second person; confirmed_at: the same keyboard (an id that was typed), another console, or personal code and when
    it was set.
    """

    reason: str
    evidence: int | None
    confirmed_by: NotRequired[str | None]
    confirmed_at: NotRequired[str]
    after_go: bool
    by_recovery: NotRequired[bool]
    openings_root: NotRequired[str]


class ArmGuessed(TypedDict):
    """Which arm a person took it for, before unblinding; None where they could not tell."""

    guess: str | None


class CampaignClosed(TypedDict):
    """No more trials, and why. abandoned: the campaign is given up."""

    reason: str
    abandoned: NotRequired[bool]
    openings_root: NotRequired[str]


class CampaignReviewed(TypedDict):
    """An assessor went through all scored episodes."""

    by: str


class CampaignFrozen(TypedDict):
    """Nothing more is changed. head: of the chain before this entry."""

    reviewed: bool
    head: str
    openings_root: NotRequired[str]


class CampaignUnblinded(Unsealed):
    """The seal, opened: it proves the commitment and every sealed digest. early: before freezing, with a reason."""

    early: bool
    reason: str | None


FORMS: Mapping[Kind, type] = {
    Kind.CAMPAIGN_OPENED: CampaignOpened,
    Kind.SESSION_OPENED: SessionOpened,
    Kind.SESSION_CHANGED: SessionChanged,
    Kind.SESSION_CLOSED: SessionClosed,
    Kind.RUN_STARTED: RunStarted,
    Kind.RUN_STOPPED: Reason,
    Kind.ARMS_ASKED: ArmsAsked,
    Kind.TRIAL_STAGING: TrialStaging,
    Kind.SCENE_COMMITTED: SceneCommitted,
    Kind.REFERENCE_SET: ReferenceSet,
    Kind.TRIAL_RELEASED: Reason,
    Kind.TRIAL_SKIPPED: Reason,
    Kind.ARM_REVEALED: ArmRevealed,
    Kind.START_WITHHELD: Reason,
    Kind.EPISODE_STARTED: EpisodeStarted,
    Kind.GO: Go,
    Kind.OPERATION_RECORDED: OperationRecorded,
    Kind.ITEM_COUNTED: ItemCounted,
    Kind.STAGE_REACHED: StageReached,
    Kind.INTERVENTION_BEGAN: InterventionBegan,
    Kind.INTERVENTION_ENDED: InterventionEnded,
    Kind.INSTRUCTION_SWITCHED: InstructionSwitched,
    Kind.EPISODE_ENDED: EpisodeEnded,
    Kind.GAP: GapBody,
    Kind.RECORDING_SEALED: RecordingSealed,
    Kind.OUTCOME_RECORDED: OutcomeRecorded,
    Kind.OUTCOME_CORRECTED: OutcomeCorrected,
    Kind.OPERATIONS_REVIEWED: OperationsReviewed,
    Kind.OUTCOME_CONFIRMED: OutcomeConfirmed,
    Kind.OUTCOME_JUDGED: OutcomeJudged,
    Kind.WITNESS_STATED: WitnessStated,
    Kind.PREFERENCE_ASKED: PreferenceAsked,
    Kind.PREFERENCE_STATED: PreferenceStated,
    Kind.EPISODE_VOIDED: EpisodeVoided,
    Kind.HOLD_RAISED: HoldRaised,
    Kind.HOLD_CLEARED: HoldCleared,
    Kind.CELL_FAULTED: Reason,
    Kind.FAULT_ACKNOWLEDGED: Reason,
    Kind.DEVIATION: Text,
    Kind.NOTE: Text,
    Kind.PRACTICE_RECORDED: PracticeRecorded,
    Kind.ARM_GUESSED: ArmGuessed,
    Kind.LOOK_TAKEN: LookTaken,
    Kind.MEDIA_STORED: MediaStored,
    Kind.MEDIA_TRIMMED: MediaTrimmed,
    Kind.CAMPAIGN_CLOSED: CampaignClosed,
    Kind.CAMPAIGN_REVIEWED: CampaignReviewed,
    Kind.CAMPAIGN_FROZEN: CampaignFrozen,
    Kind.CAMPAIGN_UNBLINDED: CampaignUnblinded,
}


def body_of(event: Event, form: type[Form]) -> Form:
    """An entry's body in the form of its kind, unchecked: what it lacks raises KeyError where it is read."""
    body: Any = event.body  # the one door from what was read to its form
    return body
