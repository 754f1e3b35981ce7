"""One episode from reveal to sealed recording: what has been asked of whom, what has answered, and what that makes
due. Holds values only.

May not: send, journal, or name an arm of the experiment anywhere but in `task`, which goes to the controller alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from labctl.clock import MILLISECOND, SECOND
from labctl.core.event_bodies import CampaignOpened, InstructionSwitched, OperationRecorded, Result
from labctl.core.events import EndReason
from labctl.core.published_state import Proposal
from labctl.core.trial_table import RUN_LEFT, Trial
from labctl.errors import StateError
from labctl.messages.body_parts import GapBody, SwitchEntry
from labctl.plain import Hand

if TYPE_CHECKING:  # whoever reads a journal waits neither for the schemas nor for what processes say
    from labctl.core.interlock import Hold
    from labctl.messages.driving import Prepare, Switch
    from labctl.messages.edits import EditEntry
    from labctl.messages.pictures import Video
    from labctl.messages.recording import Closed


GO_PATIENCE_NS = 2 * SECOND  # from start to go
CLOSE_PATIENCE_NS = 15 * SECOND  # from the end to everything delivered
ACTION = "arm/action"  # the stream of setpoints
LEASES = "arm/lease"  # the stream of the motion lease's renewals
SETTLE_NS = 150 * MILLISECOND  # device events of the last moment may arrive this long after the budget
LEASE_AT_RISK_NS = 200 * MILLISECOND  # between two turns of the run's loop: a lease may have lapsed
RESUMED_NS = SECOND // 2  # after that its mail has been read
LOST = {"arm": EndReason.ARM_LOST, "controller": EndReason.CONTROLLER_LOST, "recorder": EndReason.RECORDER_LOST}
# Protocols list reasons for a void; these ends count as the loss of the process that was not heard, of the robot.
_VOID_AS = {
    EndReason.LEASE_LAPSED: EndReason.PROCESS_LOST,
    EndReason.SUSPENDED: EndReason.PROCESS_LOST,
    EndReason.ROBOT_FAULT: EndReason.ARM_LOST,
}
_DEVICES = (EndReason.CAMERA_LOST, EndReason.SENSOR_LOST, EndReason.SENSOR_LIMIT)
VOIDABLE = frozenset({*LOST.values(), *_DEVICES, EndReason.PROCESS_LOST, *_VOID_AS})


def voided_by_rule(ended: EndReason | None, opened: CampaignOpened, *, went: bool) -> bool:
    """Whether a protocol voids an episode that ended so. opened: CampaignOpened's body; went: it got to go.

    Before go nothing had begun: under every protocol it is void, whoever or whatever ended it. An arm's own crash
    (CONTROLLER_LOST) after go is void only where `[estimand]` says so: to run it again in silence would favour arms
    that crash. Campaigns from before it could be said voided it like any other loss. A sensor's limit that makes an
    episode void is the cell's own rule (`config.sensors.SensorLimit`).
    """
    if ended is None or (went and ended not in VOIDABLE):
        return False
    if not went or ended == EndReason.SENSOR_LIMIT:
        return True
    own = (opened.get("estimand") or {}).get("crash") if ended == EndReason.CONTROLLER_LOST else None
    return bool(opened["process_lost"] == "void" if own is None else own == "void")


def void_reason(ended: EndReason) -> str:
    """The reason for which an episode that ended so is voided: after go of those that every protocol lists; before go
    it may be any other end, and `RUN_LEFT` where the run was.
    """
    return RUN_LEFT if ended == EndReason.SHUTDOWN else str(_VOID_AS.get(ended, ended))


def lost_reason(name: str) -> EndReason:
    """The end reason for the loss of a node's process."""
    if name.startswith("sensor:"):
        return EndReason.SENSOR_LOST
    return EndReason.CAMERA_LOST if name.startswith("camera:") else LOST[name]


class Phase(StrEnum):
    """Where an episode stands between reveal and sealed recording."""

    ARMING = "arming"  # the controller loads and warms; nothing has moved
    STARTED = "started"  # the lease is given; the first observation from now on is go
    RUNNING = "running"
    CLOSING = "closing"  # ended; recorder and cameras deliver
    DIGESTING = "digesting"  # everything is there and is being looked at
    SEALED = "sealed"


FOLLOWS: Mapping[Phase, frozenset[Phase]] = {
    Phase.ARMING: frozenset({Phase.STARTED}),
    Phase.STARTED: frozenset({Phase.RUNNING, Phase.CLOSING}),
    Phase.RUNNING: frozenset({Phase.CLOSING}),
    Phase.CLOSING: frozenset({Phase.DIGESTING}),
    Phase.DIGESTING: frozenset({Phase.SEALED}),
    Phase.SEALED: frozenset(),
}
MOVING = frozenset({Phase.STARTED, Phase.RUNNING})


@dataclass
class Rollout:
    """An episode in flight. Times are monotonic ns; `epoch` is the motion lease's.

    Its phase changes by `start`, `go`, `end`, `digest` and `seal` alone, which raise StateError for a phase that may
    not follow (`FOLLOWS`). A void before its start takes the rollout away, one after its end once it is sealed.
    """

    trial: str
    episode: str
    epoch: int
    task: Prepare
    start_due_ns: int
    budget_ns: int
    items: int
    producers: list[str]
    cameras: list[str]
    sensors: Mapping[str, bool] = field(default_factory=dict[str, bool])  # node of a sensor -> is it required?
    done_at: int | None = None  # items moved or lost at which a device ends it
    switches: Sequence[SwitchEntry] = ()  # as CampaignOpened has them
    inputs: tuple[Sequence[EditEntry], int] = ((), 0)  # edits of what a policy sees, and the seed of what they draw
    operator_ready: bool = field(default=False, init=False)
    withheld: str = field(default="", init=False)  # why it did not start when it was due and a person wanted it
    opened: bool = field(default=False, init=False)  # by the recorder
    opens_again: bool = field(default=False, init=False)  # a recorder that was started again in mid-episode
    ready: bool = field(default=False, init=False)  # the controller is loaded and warmed
    switches_sent: int = field(default=0, init=False)
    switched: dict[int, int] = field(default_factory=dict[int, int])  # number of a switch -> when it was taken
    items_done: int = field(default=0, init=False)
    operations: list[OperationRecorded] = field(default_factory=list[OperationRecorded])
    closed: Closed | None = None
    videos: dict[str, Video] = field(default_factory=dict[str, "Video"])
    lost: set[str] = field(default_factory=set[str])
    dying: set[str] = field(default_factory=set[str])  # processes killed because they hung; not yet seen to end
    unseen: dict[str, str] = field(default_factory=dict[str, str])  # stream of a camera or sensor without any -> why
    gaps: list[GapBody] = field(default_factory=list[GapBody])  # journalled while the episode went on
    void: bool = field(default=False, init=False)  # by a person, after it ended; its recording is sealed all the same
    given_up: str = field(default="", init=False)  # why it cannot be sealed by this run; the next one does
    driven: int | None = None  # number of the intervention in which a hand device has the robot
    hand: Hand | None = None  # of a person's trial: what their device says (`devices.ByHand`)
    _phase: Phase = field(default=Phase.ARMING, init=False)
    _started_ns: int = field(default=0, init=False)
    _go_ns: int | None = field(default=None, init=False)
    _end: tuple[EndReason, int] | None = field(default=None, init=False)
    _closing_since_ns: int = field(default=0, init=False)
    _settled_ns: int = field(default=0, init=False)

    @property
    def phase(self) -> Phase:
        return self._phase

    @property
    def go_ns(self) -> int | None:
        return self._go_ns

    @property
    def reason(self) -> EndReason | None:
        """Why it ended; None before."""
        return None if self._end is None else self._end[0]

    @property
    def end_ns(self) -> int | None:
        return None if self._end is None else self._end[1]

    @property
    def deadline_ns(self) -> int | None:
        return None if self._go_ns is None else self._go_ns + self.budget_ns

    @property
    def moving(self) -> bool:
        """The lease is to be renewed: started and not ended."""
        return self._phase in MOVING

    def _enter(self, phase: Phase) -> None:
        if phase not in FOLLOWS[self._phase]:
            raise StateError(f"episode {self.episode} is {self._phase}; {phase} may not follow")
        self._phase = phase

    def operator_starts(self, now_ns: int) -> None:
        """A person lets it start, not before now."""
        self.operator_ready, self.withheld = True, ""
        self.start_due_ns = max(self.start_due_ns, now_ns)

    def due_to_start(self, now_ns: int) -> bool:
        """The time has come and a person lets it start."""
        return self._phase == Phase.ARMING and self.operator_ready and now_ns >= self.start_due_ns

    def lacking(self, holds: Sequence[Hold]) -> list[str]:
        """What is not ready of that which says nothing about a policy, in words: the cell, by its holds; the recorder;
        the device of a person who drives, which is on the screen. Whether a policy is loaded is never among it.
        """
        found = [hold.text for hold in holds]
        if not self.opened:
            found.append("the recorder has not opened this episode yet")
        if self.hand is not None and self.hand["waits"]:  # also of one that had hold once and let go
            found.append(f"by hand ({self.hand['device']}): {self.hand['waits']}")
        return found

    def withhold(self, lacking: Sequence[str]) -> None:
        """It does not start by itself later: a person, who may have a hand in the cell by then, starts it again."""
        self.operator_ready, self.withheld = False, "; ".join(lacking)

    def unready_reason(self, holds: Sequence[Hold]) -> str:
        """For which an episode is void that could not start when it was due."""
        codes = [hold.code.partition(":")[0] for hold in holds]
        for what in ("camera", "sensor"):
            if f"{what}_lost" in codes or f"{what}_stale" in codes:
                return f"{what}_lost"
        return "not_ready"

    def start(self, now_ns: int) -> None:
        """The controller may take the first observation from now on for go."""
        self._enter(Phase.STARTED)
        self._started_ns = now_ns

    def go(self, go_ns: int) -> None:
        """The controller took its first observation: the clock runs."""
        self._enter(Phase.RUNNING)
        self._go_ns = go_ns

    def end(self, reason: EndReason, end_ns: int, now_ns: int) -> None:
        """Nothing moves any more, and the recording is closed from now on. end_ns: when it counts as ended."""
        self._enter(Phase.CLOSING)
        self._end, self._closing_since_ns = (reason, end_ns), now_ns

    def opened_again(self, now_ns: int) -> None:
        """By a recorder that was started again: from now on it can be delivered to."""
        self.opens_again = False
        self._closing_since_ns = max(self._closing_since_ns, now_ns)

    def digest(self) -> None:
        """What there is has been delivered, and is looked at."""
        self._enter(Phase.DIGESTING)

    def seal(self) -> None:
        """The recording is sealed."""
        self._enter(Phase.SEALED)

    def lease_until(self, now_ns: int, duration_ns: int) -> int:
        """When the motion lease lapses if it is not renewed: never beyond the episode's budget."""
        until = now_ns + duration_ns
        return until if self.deadline_ns is None else min(until, self.deadline_ns)

    def take_operation(self, kind: Result, t_ns: int, cause: str | None, robot: str = "") -> OperationRecorded | None:
        """The body of the OperationRecorded event for a device event, or None when it falls outside go … budget."""
        if self._phase != Phase.RUNNING or self._go_ns is None:
            return None
        if not self._go_ns <= t_ns <= self._go_ns + self.budget_ns:
            return None
        body: OperationRecorded = {"op_index": len(self.operations), "result": kind, "t_ns": int(t_ns), "cause": cause}
        if robot:  # which of two it was of
            body["robot"] = robot
        self.operations.append(body)
        self.items_done += kind in ("success", "lost")
        return body

    @property
    def next_switch_ns(self) -> int | None:
        """When the next switch is to be sent to the controller; None before go and when none is left."""
        if self._go_ns is None or self.switches_sent >= len(self.switches):
            return None
        return self._go_ns + round(self.switches[self.switches_sent]["at_s"] * SECOND)

    def due_switches(self, now_ns: int) -> list[Switch]:
        """The switches that are due and not sent yet, as messages to the controller; none once the episode is over."""
        if self.switches_sent >= len(self.switches):
            return []
        from labctl.messages.driving import Switch

        due: list[Switch] = []
        while self.moving and (at_ns := self.next_switch_ns) is not None and now_ns >= at_ns:
            number, self.switches_sent = self.switches_sent, self.switches_sent + 1
            due.append(Switch(self.episode, number, self.switches[number]["instruction"]))
        return due

    def take_switch(self, number: int, t_ns: int) -> InstructionSwitched | None:
        """The body of InstructionSwitched, when the controller reports that it took a switch at t_ns; None for one that
        was not sent, is known already, or whose episode is over.
        """
        if (
            self._phase != Phase.RUNNING
            or self._go_ns is None
            or not max(self.switched, default=-1) < number < self.switches_sent
        ):
            return None
        self.switched[number] = t_ns
        switch = self.switches[number]
        planned_ns, name = self._go_ns + round(switch["at_s"] * SECOND), switch["name"]
        instruction = switch["instruction"]
        return {"number": number, "name": name, "instruction": instruction, "planned_ns": planned_ns, "t_ns": t_ns}

    def resumed(self, now_ns: int) -> None:
        """The run's loop stood still until now: what arrived meanwhile is processed before any deadline counts."""
        self._settled_ns = now_ns + RESUMED_NS

    def overdue(self, now_ns: int) -> EndReason | None:
        """Why the episode has to end now by the clock alone, or None."""
        if now_ns < self._settled_ns:
            return None
        if self._phase == Phase.STARTED:
            return EndReason.CONTROLLER_LOST if now_ns > self._started_ns + GO_PATIENCE_NS else None
        if self._phase != Phase.RUNNING or self.deadline_ns is None:
            return None
        return EndReason.BUDGET if now_ns >= self.deadline_ns + SETTLE_NS else None

    def delivered(self, now_ns: int) -> bool:
        """It is closing, and everything that can still come has come or patience has run out."""
        if self._phase != Phase.CLOSING:
            return False
        if now_ns >= self._closing_since_ns + CLOSE_PATIENCE_NS:
            return True
        waiting = [name for name in self.cameras if name not in self.videos and name not in self.lost]
        return self.closed is not None and not waiting and not self.dying

    def newly_unseen(self, stream: str, why: str) -> bool:
        """A stream gives nothing any more (why), or gives again (""): is this the first time that it is said?"""
        if not why:
            self.unseen.pop(stream, None)
            return False
        new = stream not in self.unseen
        self.unseen[stream] = why
        return new

    def missing(self, camera: str) -> int:
        """How many frames of a camera (its node's name) are known to be missing so far."""
        stream = stream_of(camera)
        return sum(gap["lost"] or 0 for gap in self.gaps if gap["stream"] == stream)

    def next_due(self, now_ns: int) -> int | None:
        """When this episode needs to be looked at by the clock."""
        if self._phase == Phase.ARMING:
            return self.start_due_ns if now_ns < self.start_due_ns else None
        if self._phase == Phase.STARTED:
            return max(self._settled_ns, self._started_ns + GO_PATIENCE_NS + 1)
        if self._phase == Phase.RUNNING and self.deadline_ns is not None:
            over = max(self._settled_ns, self.deadline_ns + SETTLE_NS)
            return over if self.next_switch_ns is None else min(over, self.next_switch_ns)
        return self._closing_since_ns + CLOSE_PATIENCE_NS if self._phase == Phase.CLOSING else None


def typed(trial: Trial | None) -> list[int]:
    """The interventions that go on and were begun at a console: a hand device's own are over with it, in whichever run
    that is.
    """
    return [number for number in trial.touching if number not in trial.driven] if trial else []


def stream_of(node: str) -> str:
    """The index stream of a camera, or the stream of a sensor, by its node's name."""
    return node.replace(":", "/", 1)


def proposal(operations: Sequence[OperationRecorded], items: int) -> Proposal:
    """What device events say happened, as bodies of OperationRecorded: the outcome an assessor confirms or corrects."""
    moved = sum(operation["result"] == "success" for operation in operations)
    lost = sum(operation["result"] == "lost" for operation in operations)
    return {"items_staged": items, "moved": moved, "lost": lost, "remaining": items - moved - lost}
