"""What stops a robot, from whoever and in whatever state: it is journalled, raises a hold, voids what has not started,
takes back the order to stage, and ends a running episode with that reason.

May not: move a robot (an acknowledgement permits, staging is ordered anew), recover one without an acknowledgement by
name, or ask for one twice while the robot is still recovering.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from labctl.bus import Body, Step
from labctl.clock import SECOND
from labctl.core.events import STOP_BY_HAND, STOPPED_BY_HAND, EndReason, Kind
from labctl.core.liveness import Liveness
from labctl.core.rollout import ACTION
from labctl.messages.body_parts import GapBody
from labctl.messages.motion import DeviceReport, Recover, Stop, StopHeard
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.episode_sequencer import EpisodeSequencer
from labctl.runtime.recorded_orders import Given
from labctl.runtime.recording_seal import note_gap
from labctl.runtime.staging import Staging

BAD_MODES = ("safety_stop", "fault", "lost")  # of devices.RobotStatus: a person has to look
PATIENCE_NS = 35 * SECOND  # longer than the robot's node goes on trying to recover


@dataclass(frozen=True, slots=True)
class Cause:
    """Why a robot stopped: the code of its hold (None: the cell is faulted instead), the end of an episode that ran,
    and what stands as the cause of the operation at hand.
    """

    code: str | None
    ended: EndReason
    operation: str | None = None


UNNAMED = "no reason given"
PAUSED = "the robot's process stood still; the robot was not moved through it"
STOPPED = "safety_stop"  # code of a hold
ITSELF = Cause(STOPPED, EndReason.SAFETY_STOP)
PERSON = Cause(STOP_BY_HAND, EndReason.SAFETY_STOP, STOPPED_BY_HAND)
LAPSE = Cause("lease_lapsed", EndReason.LEASE_LAPSED)
WAY_HOME = Cause("way_home", EndReason.LEASE_LAPSED)
ASLEEP = Cause("suspended", EndReason.SUSPENDED)
FAULT = Cause(None, EndReason.ROBOT_FAULT)


class RobotWatch:
    """See the module."""

    def __init__(
        self, writer: CampaignWriter, liveness: Liveness, sequencer: EpisodeSequencer, staging: Staging
    ) -> None:
        self._writer = writer
        self._liveness = liveness
        self._sequencer = sequencer
        self._staging = staging
        self._recovering_until_ns = 0

    def look(self, now_ns: int, step: Step) -> None:
        """A robot found stopped: latched before this run began, or stopped without a report of it."""
        state, mode = self._writer.state, self._liveness.mode
        if mode not in BAD_MODES:
            self._recovering_until_ns = 0
        elif STOPPED not in state.holds and state.faulted is None and now_ns >= self._recovering_until_ns:
            self._robot_stopped(mode, self._liveness.mode_reason or f"it is in mode {mode}", now_ns, now_ns, step)

    def hear(self, sent: DeviceReport, now_ns: int, step: Step) -> None:
        """A report of the robot's node; what stops nothing is the episode's."""
        row = REPORTS.get(sent.kind)
        if row is None:
            self._sequencer.report(sent, now_ns, step)
        else:
            row(self, sent.body or {}, int(sent.t_ns), now_ns, step)

    def _stopped_past_run(self, body: Body, t_ns: int, now_ns: int, step: Step) -> None:
        text = f"a stop reached the robot past the run process (from {body['by'] or 'nobody named'})"
        text = self._writer.state.holds.get(STOP_BY_HAND) or f"{text}; look at the cell, then acknowledge"
        self._stopped(PERSON, text, t_ns, now_ns, step)
        self._heard(body["number"], step)

    def _found_suspended(self, body: Body, t_ns: int, now_ns: int, step: Step) -> None:
        self.suspended(body["for_ns"], t_ns, now_ns, step)
        self._heard(body["number"], step)

    def _stopped_itself(self, body: Body, t_ns: int, now_ns: int, step: Step) -> None:
        self._robot_stopped("safety_stop", body.get("reason", UNNAMED), t_ns, now_ns, step)

    def _faulted(self, body: Body, t_ns: int, now_ns: int, step: Step) -> None:
        self._robot_stopped("fault", body.get("reason", UNNAMED), t_ns, now_ns, step)

    def _paused(self, body: Body, t_ns: int, now_ns: int, step: Step) -> None:
        rollout = self._sequencer.rollout
        if rollout is not None and rollout.moving:
            times = {"from_ns": body["from_ns"], "to_ns": body["to_ns"]}
            note_gap(self._writer, rollout, GapBody(stream=ACTION, **times, lost=None, why=PAUSED))

    def _sensed(self, body: Body, t_ns: int, now_ns: int, step: Step) -> None:
        """A device saw what the next stage of the task is: it is reached, unless a person takes it back."""
        rollout, trial = self._sequencer.rollout, self._writer.current()
        if rollout is None or trial is None or not rollout.moving:
            return
        if rollout.go_ns is None or not rollout.go_ns <= t_ns <= rollout.go_ns + rollout.budget_ns:
            return
        stages = self._writer.tasks[trial.condition].stages
        before = len(self._writer.facts.reached.get(rollout.episode, ()))
        if before < len(stages) and stages[before].get("sensed") == body["what"]:
            reached = {"reached": before + 1, "t_ns": t_ns}
            self._writer.log(Kind.STAGE_REACHED, reached, trial=trial.id, episode=rollout.episode)

    def _about(self, body: Body, t_ns: int, now_ns: int, step: Step) -> None:
        """What the robot is: each episode from now on says so."""
        self._sequencer.robot_about = body["about"]

    def _heard(self, number: int, step: Step) -> None:
        """A stop that did not come from here is journalled: whatever was granted before is over."""
        step.out.append(Stop(self._sequencer.epoch).to("arm"))
        step.out.append(StopHeard(number).to("arm"))

    def suspended(self, for_ns: int, t_ns: int, now_ns: int, step: Step) -> None:
        """This computer was suspended, as this process or the robot's found: to leases and budgets no time had passed,
        and anything may have happened to the cell. Both find it; the first report of it stands.
        """
        text = f"this computer was suspended for {for_ns / SECOND:.0f} s; look at the cell, then acknowledge"
        text = self._writer.state.holds.get("suspended") or text
        self._stopped(ASLEEP, text, t_ns, now_ns, step)

    def by_hand(self, given: Given) -> None:
        """A person at a console stopped the robot. The console has sent a stop to the robot's process already."""
        given.step.out.append(Stop().to("arm"))
        text = f"{given.command.who} stopped the robot; look at the cell, say why, then acknowledge"
        self._stopped(PERSON, text, given.now_ns, given.now_ns, given.step, given)

    def way_home_lapsed(self, trial: str, now_ns: int, step: Step) -> None:
        """The robot stopped on its way home, because this process was not heard. It may have stood for long, and people
        come near what stands still.
        """
        if trial == self._staging.asked:
            text = "the robot stopped on its way home: the run process was not heard in time; look at the cell"
            self._stopped(WAY_HOME, text, now_ns, now_ns, step)

    def _lapsed(self, body: Body, t_ns: int, now_ns: int, step: Step) -> None:
        """No lease goes beyond the budget: the one that ended there says nothing."""
        rollout = self._sequencer.rollout
        if rollout is None or body["episode"] != rollout.episode or not rollout.moving:
            return
        if rollout.deadline_ns is None or body["until_ns"] < rollout.deadline_ns:
            text = "the robot stopped in mid-episode: the run process was not heard in time; look at the cell"
            self._stopped(LAPSE, text, t_ns, now_ns, step)

    def _robot_stopped(self, kind: str, reason: str, t_ns: int, now_ns: int, step: Step) -> None:
        if kind == "safety_stop":
            self._stopped(ITSELF, f"the robot stopped itself: {reason}", t_ns, now_ns, step, operation=reason)
        else:
            self._stopped(FAULT, reason, t_ns, now_ns, step)

    def _stopped(
        self,
        cause: Cause,
        text: str,
        t_ns: int,
        now_ns: int,
        step: Step,
        given: Given | None = None,
        *,
        operation: str | None = None,
    ) -> None:
        """The one path of every stop; text: what a person is to read."""
        state = self._writer.state
        if cause.code is None:
            if state.faulted is None:
                self._writer.log(Kind.CELL_FAULTED, {"reason": text})
        elif state.holds.get(cause.code) != text:
            by = {} if given is None else given.by
            self._writer.log(Kind.HOLD_RAISED, {"code": cause.code, "text": text}, **by)
        self._staging.give_up(cause.code or str(cause.ended), step)
        self._sequencer.stopped(cause.ended, t_ns, now_ns, step, cause=cause.operation or operation)

    def acknowledged(self, now_ns: int, step: Step) -> None:
        """A named person has looked at the robot and says that it may be recovered; nothing moves by that alone."""
        self._recovering_until_ns = now_ns + PATIENCE_NS
        step.out.append(Recover().to("arm"))


# What is done about each kind of report.
REPORTS: Mapping[str, Callable[[RobotWatch, Body, int, int, Step], None]] = {
    "stopped": RobotWatch._stopped_past_run,
    "suspended": RobotWatch._found_suspended,
    "lease_lapsed": RobotWatch._lapsed,
    "safety_stop": RobotWatch._stopped_itself,
    "fault": RobotWatch._faulted,
    "paused": RobotWatch._paused,
    "sensed": RobotWatch._sensed,
    "about": RobotWatch._about,
}
