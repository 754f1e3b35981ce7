"""The node in the place of "run" while a person practises: it renews the lease as a trial does, and says how things
stand. No journal, no recording, no arm of any experiment.

May not: know a campaign, move the robot before the hand has hold of it (but home, when asked), go on after a device is
gone or the robot has stopped itself, or recover a robot that nobody has looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

import numpy as np

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.core.liveness import Liveness
from labctl.messages.driving import Done, Failed, HandState, Prepare, Ready, Start
from labctl.messages.motion import LEASE_RENEWALS, DeviceReport, Lease, Obs, Recover, Stage, Staged, Stop, Unstaged
from labctl.messages.processes import Beats, Exited, Failing, Kill, Shutdown, Spawn, Suspended
from labctl.messages.recording import Close
from labctl.messages.typed import read
from labctl.nodes.phase_table import On, OnRaw, by_kind, entered, hear
from labctl.nodes.robot import REST_RAD_S
from labctl.plain import Hand, Json

PRACTICE = "practice"  # in the place of an episode's name, which no recording has
TASK = Prepare(driver="teleop", options={}, kind="human", seed=0, instruction="", episode=PRACTICE)
STOPPED = {  # kinds of what the robot's node reports by itself
    "stopped": "the robot was stopped from elsewhere",
    "suspended": "this computer was suspended",
    "lease_lapsed": "the robot stopped: it did not hear from here in time",
}
HOME, DRIVE = 1, 2  # epochs: the way home, the hand
BAD_MODES = ("safety_stop", "fault")
REST_NS = 2 * SECOND  # how long the robot may take to come to rest before a person is asked to look
RECOVER_NS = 35 * SECOND  # longer than the robot's node goes on trying
START_NS = 30 * SECOND  # for the robot to answer
NEWS_NS = 3 * SECOND


class Phase(StrEnum):
    """Where a practice stands. `FOLLOWS` has what may come after each; what leads there stands at the end of the
    module: `MESSAGES` for what arrives, `DUE` for what the clock makes due.
    """

    STARTING = "starting"
    HOMING = "homing"
    WAITING = "waiting"  # for the hand
    DRIVING = "driving"
    ENDING = "ending"


FOLLOWS: Mapping[Phase, frozenset[Phase]] = {
    Phase.STARTING: frozenset({Phase.HOMING, Phase.WAITING, Phase.ENDING}),
    Phase.HOMING: frozenset({Phase.WAITING, Phase.ENDING}),
    Phase.WAITING: frozenset({Phase.DRIVING, Phase.ENDING}),
    Phase.DRIVING: frozenset({Phase.ENDING}),
    Phase.ENDING: frozenset(),
}


@dataclass(frozen=True, slots=True)
class View:
    """What the one line of a practice shows. state and hand: of robot and hand, in words; tcp_m: where the tool
    is, None before there was an observation; gripper_m: the measured opening; axes: of a robot that names its axes in
    its place, name, value and unit of those that are no joints; clipped: the limit that shapes the
    motion; news: of the last seconds.
    """

    state: str
    hand: str
    device: str
    tcp_m: tuple[float, ...] | None
    gripper_m: float | None
    axes: tuple[tuple[str, float, str], ...]
    clipped: str
    news: str


@dataclass(frozen=True, slots=True)
class Ended:
    """How a practice ended: why ("" when it was asked to), whether that is a failure, whether the robot was seen to
    come to rest, and for how long the hand could drive, s.
    """

    why: str
    failed: bool
    at_rest: bool
    driven_s: float


class PracticeNode:
    """See the module. home: the condition that the robot is to be staged for before the hand drives, or None; recover:
    a person has looked at a robot that had stopped. `show` gets a View at every change worth a look.
    """

    name = "run"
    topics = ("@obs",)

    def __init__(
        self,
        lease_ns: int,
        show: Callable[[View], None],
        *,
        home: Mapping[str, Json] | None = None,
        recover: bool = False,
    ) -> None:
        self._lease_ns, self._show = lease_ns, show
        self._home, self._recover = home, recover
        self._liveness = Liveness(("arm", "controller"))
        self._phase = Phase.STARTING
        self._prepared = self._ready = self._recovering = False
        self._began_ns: int | None = None
        self._until_ns = 0  # a patience of the present phase
        self._next_lease_ns = 0
        self._driving_since_ns: int | None = None
        self._driven_ns = 0
        self._seen: Mapping[str, np.ndarray] | None = None
        self._axes: Sequence[Sequence[str]] | None = None
        self._fresh = False  # an observation since the end was asked for
        self._hand: Hand | None = None
        self._failing: dict[str, str] = {}
        self._news, self._news_until_ns = "", 0
        self.ended = Ended("", False, False, 0.0)  # how it ended; complete once `finished`
        self.finished = False

    @property
    def phase(self) -> Phase:
        return self._phase

    def _enter(self, phase: Phase) -> None:
        self._phase = entered(FOLLOWS, self._phase, phase)

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """Mail, then whoever is missing, then what the phase makes due."""
        step = Step()
        if self._began_ns is None:
            self._began_ns, self._until_ns = now_ns, now_ns + START_NS
            for name in self._liveness.required:
                self._liveness.ask(name, now_ns)
                step.out.append(Spawn(name).to("@host"))
        for message in inbox:
            hear(MESSAGES, self._phase, self, message, now_ns, step, self._enter)
        for name in self._liveness.silent(now_ns):
            step.out.append(Kill(name).to("@host"))
            self._lost(name, "no heartbeat", now_ns, step)
        self._go_on(now_ns, step)
        self._show(self.view(now_ns))
        step.due_ns = now_ns + min(self._lease_ns // LEASE_RENEWALS, 100 * MILLISECOND)
        return step

    # -- mail

    def _greet(self, message: Message, now_ns: int, step: Step) -> None:
        self._liveness.greeted(message.sender, now_ns)

    def _beaten(self, sent: Beats, now_ns: int, step: Step) -> None:
        self._liveness.beaten(sent, now_ns)

    def _see(self, message: Message, now_ns: int, step: Step) -> None:
        self._liveness.observed(read(Obs, message), now_ns)
        self._seen, self._fresh, self._axes = message.arrays, True, message.body.get("axes")

    def _show_hand(self, sent: HandState, now_ns: int, step: Step) -> None:
        self._hand = sent.hand

    def _home_reached(self, sent: Staged, now_ns: int, step: Step) -> None:
        self._let_go(HOME, step)

    def _home_not_reached(self, sent: Unstaged, now_ns: int, step: Step) -> None:
        self._end(now_ns, step, "the robot stopped on its way home: it did not hear from here in time", failed=True)

    def _hand_ready(self, sent: Ready, now_ns: int, step: Step) -> None:
        self._ready = True
        self._liveness.readied()

    def _note_reason(self, sent: Failing, now_ns: int, step: Step) -> None:
        self._failing[sent.name] = sent.reason

    def _exited(self, sent: Exited, now_ns: int, step: Step) -> None:
        if not sent.asked:
            self._lost(sent.name, sent.reason, now_ns, step)

    def _hand_failed(self, sent: Failed, now_ns: int, step: Step) -> None:
        self._end(now_ns, step, sent.private or "the controller failed", failed=True)

    def _hand_done(self, sent: Done, now_ns: int, step: Step) -> None:
        self._end(now_ns, step, "the hand said that it is done")

    def _suspended(self, sent: Suspended, now_ns: int, step: Step) -> None:
        self._end(now_ns, step, STOPPED[sent.KIND], failed=True)

    def _asked_to_end(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        self._end(now_ns, step)

    def _hear_robot(self, sent: DeviceReport, now_ns: int, step: Step) -> None:
        if sent.kind == "about":
            return  # nothing is recorded here
        detail = sent.body or {}
        reason = detail.get("reason") or detail.get("text") or sent.kind
        if self._phase == Phase.STARTING and sent.kind in BAD_MODES:
            return  # of the time before: the mode says whether it still stands
        if sent.kind in BAD_MODES:
            self._end(now_ns, step, f"the robot stopped itself: {reason}", failed=True)
        elif sent.kind in STOPPED:
            self._end(now_ns, step, STOPPED[sent.kind], failed=True)
        else:
            self._news, self._news_until_ns = f"{sent.kind}: {reason}" if detail else reason, now_ns + NEWS_NS

    def _lost(self, name: str, why: str, now_ns: int, step: Step) -> None:
        self._liveness.gone(name)
        who = "the robot's process" if name == "arm" else "the hand's process"
        self._end(now_ns, step, f"{who} is gone: {self._failing.get(name, why)}", failed=True)

    # -- what is due

    def _go_on(self, now_ns: int, step: Step) -> None:
        DUE[self._phase](self, now_ns, step)
        if self._liveness.mode in BAD_MODES and self._phase in (Phase.HOMING, Phase.WAITING, Phase.DRIVING):
            self._end(now_ns, step, f"the robot stopped itself: {self._liveness.mode_reason}", failed=True)

    def _go_home(self, now_ns: int, step: Step) -> None:
        self._renew(HOME, now_ns, step)

    def _drive(self, now_ns: int, step: Step) -> None:
        self._renew(DRIVE, now_ns, step)

    def _start(self, now_ns: int, step: Step) -> None:
        """The robot has to be there and well before anything else."""
        if self._liveness.obs_ns is None:
            if now_ns > self._until_ns:
                self._end(now_ns, step, f"the robot says nothing for {START_NS // SECOND} s", failed=True)
        elif self._liveness.mode not in BAD_MODES:
            self._enter(Phase.WAITING if self._home is None else Phase.HOMING)
            if self._home is not None:
                step.out.append(Stage(PRACTICE, self._home, 0, HOME, None, now_ns + self._lease_ns).to("arm"))
                self._renew(HOME, now_ns, step)
        elif self._recover and not self._recovering:
            self._recovering, self._until_ns = True, now_ns + RECOVER_NS
            step.out.append(Recover().to("arm"))
        elif not self._recovering or now_ns > self._until_ns:
            remedy = "" if self._recovering else "; look at it, then add --recover"
            why = f"the robot has stopped itself: {self._liveness.mode_reason}{remedy}"
            self._end(now_ns, step, why, failed=True)

    def _wait(self, now_ns: int, step: Step) -> None:
        """The hand is asked for once the robot stands where it begins: a leader is aligned with that."""
        if not self._prepared and self._liveness.alive("controller"):
            self._prepared = True
            step.out.append(TASK.to("controller"))
        elif self._ready:
            self._enter(Phase.DRIVING)
            self._driving_since_ns = self._next_lease_ns = now_ns
            self._renew(DRIVE, now_ns, step)
            step.out.append(Start(PRACTICE, DRIVE).to("controller"))

    def _renew(self, epoch: int, now_ns: int, step: Step) -> None:
        if now_ns >= self._next_lease_ns:
            self._next_lease_ns = now_ns + self._lease_ns // LEASE_RENEWALS
            step.out.append(Lease(epoch, None, now_ns + self._lease_ns).to("@lease"))

    def _let_go(self, epoch: int, step: Step) -> None:
        step.out.append(Lease(epoch, None, 0).to("@lease"))

    # -- the end

    def _end(self, now_ns: int, step: Step, why: str = "", *, failed: bool = False) -> None:
        """Once: nothing may move any more; then wait for the robot to stand."""
        if self._phase == Phase.ENDING:
            return
        moved = self._phase in (Phase.HOMING, Phase.DRIVING)
        if self._driving_since_ns is not None:
            self._driven_ns = now_ns - self._driving_since_ns
        self._enter(Phase.ENDING)
        self._until_ns, self._fresh = now_ns + REST_NS, False
        self.ended = Ended(why, failed, not moved, self._driven_ns / SECOND)
        self._let_go(DRIVE, step)
        step.out.append(Stop(DRIVE).to("arm"))
        step.out.append(Close(PRACTICE).to("controller"))

    def _leave(self, now_ns: int, step: Step) -> None:
        """Finished once the robot was seen to stand, or will not be seen any more."""
        still = self._fresh and self._seen is not None and float(np.abs(self._seen["dq"]).max()) < REST_RAD_S
        over = now_ns > self._until_ns or not self._liveness.alive("arm")
        if still or over:
            self.ended = replace(self.ended, at_rest=bool(still) or self.ended.at_rest)
            self.finished = True

    # -- the line

    def view(self, now_ns: int) -> View:
        """What there is to see now."""
        seen = self._seen
        state, hand = self._words()
        return View(
            state=state,
            hand=hand,
            device=str(self._hand["device"]) if self._hand and hand else "",
            tcp_m=None if seen is None else tuple(float(value) for value in seen["tcp"][:3]),
            gripper_m=None if seen is None or self._axes else float(np.ravel(seen["gripper"])[0]),
            axes=() if seen is None or not self._axes else _others(seen, self._axes),
            clipped=self._liveness.clip(now_ns),
            news=self._news if now_ns < self._news_until_ns else "",
        )

    def _words(self) -> tuple[str, str]:
        mode = self._liveness.mode
        if self._phase == Phase.ENDING:
            return ("stopped: " + self.ended.why if self.ended.why else "stopping"), ""
        if self._liveness.obs_ns is None:
            return "waiting for the robot", ""
        if mode in BAD_MODES:
            return f"{mode}: {self._liveness.mode_reason}", ""
        if self._phase == Phase.HOMING:
            return "going home", ""
        drives = "the hand drives" if self._phase == Phase.DRIVING else "ready"
        hand = str(self._hand["waits"]) or drives if self._hand else "opening the device"
        return f"robot {mode}", hand


def _others(seen: Mapping[str, np.ndarray], axes: Sequence[Sequence[str]]) -> tuple[tuple[str, float, str], ...]:
    """Name, value and unit of a robot's axes that are no joints: those that are not in rad, and the hand's."""
    q = np.asarray(seen["q"])
    values = [*q.tolist(), *np.ravel(seen["gripper"]).tolist()]
    named = zip(axes, values, strict=False)
    return tuple((name, value, unit) for i, ((name, unit), value) in enumerate(named) if unit != "rad" or i >= len(q))


_ALL = frozenset(Phase)
_HOMING = frozenset({Phase.HOMING})

# What arrives: the phases in which it counts, what is done, the phase that follows. Whatever ends a practice (a device
# that is gone, a robot that stopped, a wish to end) leads to ENDING from everywhere.
MESSAGES = by_kind(
    (
        OnRaw("hello", _ALL, PracticeNode._greet),
        On(Beats, _ALL, PracticeNode._beaten),
        OnRaw("obs", _ALL, PracticeNode._see),
        On(HandState, _ALL, PracticeNode._show_hand),
        On(Staged, _HOMING, PracticeNode._home_reached, Phase.WAITING),
        On(Unstaged, _HOMING, PracticeNode._home_not_reached),
        On(Ready, _ALL, PracticeNode._hand_ready),
        On(DeviceReport, _ALL, PracticeNode._hear_robot),
        On(Failing, _ALL, PracticeNode._note_reason),
        On(Exited, _ALL, PracticeNode._exited),
        On(Failed, _ALL, PracticeNode._hand_failed),
        On(Done, _ALL, PracticeNode._hand_done),
        On(Suspended, _ALL, PracticeNode._suspended),
        On(Shutdown, _ALL, PracticeNode._asked_to_end),
    )
)

# What the clock makes due: STARTING leads to HOMING or WAITING, WAITING to DRIVING.
DUE: Mapping[Phase, Callable[[PracticeNode, int, Step], None]] = {
    Phase.STARTING: PracticeNode._start,
    Phase.HOMING: PracticeNode._go_home,
    Phase.WAITING: PracticeNode._wait,
    Phase.DRIVING: PracticeNode._drive,
    Phase.ENDING: PracticeNode._leave,
}
