"""What a run publishes once a second and at every change, as it travels: the body of the message `state`. The console,
the simulated operator and the tests read it by these types; `labctl.runtime.operator_state` makes it.

May not: have a field for an arm's name, a latency, a rate of a policy, an outcome or a running score. Times are
monotonic ns of the run's host.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, TypedDict

from labctl.messages.body_parts import (
    AnchorEntry,
    ConditionEntry,
    MatchBody,
    MoveBody,
    PersonEntry,
    SceneRules,
    StageEntry,
)
from labctl.plain import Hand

if TYPE_CHECKING:  # whoever reads a journal does not wait for numpy
    from labctl.bus import Body


TrialState = str  # a `labctl.core.trial_table.State`


class Handover(TypedDict):
    """The note with which the last session was closed, by whom and when (ISO 8601)."""

    text: str
    who: str
    wall: str


class CampaignRules(TypedDict):
    """What the protocol fixes for every trial. `candidates` is empty unless the protocol asks for a guess: then the
    arms' names in alphabetical order.
    """

    arming_s: float
    early_end: str
    void_reasons: list[str]
    tags: list[str]
    stages: list[str]
    candidates: list[str]


class Rules(CampaignRules):
    """And for the trial whose turn it is; `measure`, `steps` (the stages of its task) and `rubric` as
    `labctl.core.task`.
    """

    items: int
    budget_s: float
    measure: str
    steps: Sequence[StageEntry]
    rubric: Sequence[AnchorEntry]


class Times(TypedDict):
    """When start opens, when the episode began, when its budget is over, when it ended; None for what is not known."""

    start_due_ns: int | None
    go_ns: int | None
    deadline_ns: int | None
    end_ns: int | None


class Instruction(TypedDict):
    """An instruction that stands from `at_s` after go; `taken_ns` is when the controller took it."""

    name: str
    at_s: float
    instruction: str
    taken_ns: int | None


class SceneCamera(TypedDict):
    """What one camera found of a staged scene. `counts`: a low score is a reason against commit; needed: the score that
    is asked.
    """

    reference: str | None
    counts: bool
    scene: MatchBody | None
    pose: MoveBody | None
    problem: str | None
    needed: float | None


class Scene(TypedDict):
    """The scene that is staged: [scene] of the protocol, and what each camera found."""

    rules: SceneRules
    photographing: bool
    cameras: Mapping[str, SceneCamera]


class LiveHold(TypedDict):
    """A reason not to go on, what clears it, and who: only a named person, or an operator's override. awaited: nothing
    is wrong, it only takes its time. raised: the seq of the journal's entry that raised it last, None where none did.
    """

    code: str
    text: str
    clears: str
    needs_person: bool
    overridable: bool
    awaited: bool
    raised: int | None


class Proposal(TypedDict):
    """The outcome that the devices' events give, for an assessor to confirm or correct."""

    items_staged: int
    moved: int
    lost: int
    remaining: int


class Measured(TypedDict):
    """The outcome that is proposed for a task that is not counted in items: when each stage was reached, s after go, or
    the score; None for what nothing says, and for what is not of the task's measure.
    """

    reached_s: list[float] | None
    score: float | None


class Confirmed(TypedDict):
    """Who confirmed at a console that the episode is void, and for what reason."""

    by: str
    reason: str


class Voided(TypedDict):
    """Why the last episode of a trial is void, whoever or whatever said so."""

    reason: str
    after_go: bool


class Compare(TypedDict):
    """Two episodes of which an assessor is to say which was better: their trials ("trial 2 of 48"), and their places
    in the block, counted from 1.
    """

    question: str
    block: int
    first: str
    second: str
    trials: list[str]
    places: list[int]


class EarlierTrial(TypedDict):
    """A trial that is done ("trial 2 of 48"), without its outcome."""

    trial: str
    block: int
    condition: str
    state: TrialState
    voids: int


class TurnPart(TypedDict):
    """Of the published state what is made beside the ledger and the protocol (`labctl.runtime.blind_view`) and shown as
    it is: what the protocol fixes, and how the episode at hand goes.
    """

    handover: Handover | None
    checks: list[str]  # of a session's opening
    rules: Rules
    times: Times
    scene: Scene
    hand: Hand | None
    operator_ready: bool
    withheld: str  # why it did not start when it was due, until a person starts it again; the same words for every arm
    counted: int  # items moved, by the operator's own count
    reached: int  # stages of the task, by the operator's keys
    touching: bool  # an intervention goes on that was begun at a console
    unsaid: list[int]  # while scoring: interventions of which nobody has said yet what they were
    proposal: Proposal | None
    measured: Measured | None
    evidence: int | None  # seq of the machine's event that may stand behind a void after go
    needs_second: bool  # a void takes a second person
    with_code: list[str]  # while a void needs a second person: those of the session who have a personal code
    confirmed: list[Confirmed]  # and who has confirmed it at a console


class CampaignPart(TurnPart):
    """What the campaign's journal and protocol give to the published state. `trial` and what follows concern the trial
    whose turn it is and are None, or 0, when none is left.
    """

    campaign: str
    cell: str
    kind: str  # of the cell: sim, emulated or real
    phase: str
    session: str | None
    people: list[PersonEntry]  # of the open session
    trial: str | None
    trial_state: TrialState | None
    episode: str | None
    voids: int
    voided: Voided | None  # its last episode, until the next one is armed
    block: int | None
    block_left: int  # trials of the block that are not finished
    blocks: int
    alone: bool  # the block is an extra one, of the person by itself
    condition: str | None
    following: str | None  # the condition of the trial after this one
    card: ConditionEntry | None
    sources: list[str]  # totes that the items come from: those of the fixture that are not the card's target
    by_role: dict[str, list[str]]  # role -> the verbs that would be accepted
    instructions: list[Instruction]  # empty where the protocol switches none
    holds: list[LiveHold]
    waiting: list[str]  # codes of holds that begin after this trial or block
    recovered: list[str]  # what the run concluded about this trial when it was started again
    compare: Compare | None  # the oldest pair of which nobody has said it
    ended: str | None
    exhausted: bool  # voided so often that it may only be skipped
    last_void: bool  # one more void that counts, and it may only be skipped
    progress: list[int]  # finished trials, all trials
    pace_s: float | None
    earlier: list[EarlierTrial]


class CameraState(TypedDict):
    """lost: why it gives no pictures, "" when it does; missing: frames of this episode."""

    name: str
    lost: str
    missing: int


class DeviceState(TypedDict):
    """A part of the cell. state: ok, awaited or wrong; recorded: its rate and clock in the last recording."""

    state: str
    text: str
    recorded: str


class RobotMode(TypedDict):
    """The robot's mode and, if it stopped, why."""

    mode: str
    reason: str


class PublishedState(CampaignPart):
    """The whole body. A command carries `version`, and is refused once it is old; `moment` counts the changes of one
    run.
    """

    run: int
    version: int
    moment: int
    allowed: list[str]  # verbs of an operator
    staged: bool  # the robot is where episodes begin, the scene is set
    arm: RobotMode
    clipped: str  # the limit that shapes the motion now, "" when none does
    devices: dict[str, DeviceState]
    cameras: Sequence[CameraState]


def published(body: Body) -> PublishedState:
    """The state in the body of a message `state`."""
    return PublishedState(**body)
