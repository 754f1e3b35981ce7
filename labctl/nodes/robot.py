"""The robot's node: owns a robot with its gripper, follows timed targets under a lease, records what it wanted, limited
and sent.

May not: know which arm of the experiment drives it, extend its own lease, move when the lease has lapsed, a target is
stale, or a stop was asked, or stop for any reason but a stale target without reporting it.
"""

from __future__ import annotations

import numpy as np

from labctl.axes import axes_of, hand_of, twist_of
from labctl.bus import Message, Step
from labctl.clock import SECOND
from labctl.core.rollout import ACTION, LEASES
from labctl.devices import Actions, Batch, Robot, Setpoints
from labctl.errors import DeviceRefused
from labctl.messages.motion import (
    DeviceReport,
    Lease,
    Obs,
    Recover,
    Stage,
    Staged,
    Stop,
    StopHeard,
    Target,
    Unstaged,
)
from labctl.messages.processes import Shutdown, Suspended
from labctl.messages.recording import Close, Open
from labctl.messages.typed import read
from labctl.nodes.phase_table import by_kind, carry_out, on, on_raw
from labctl.nodes.targets import Lead, Targets, integrated_joints, integrated_poses
from labctl.nodes.tracing import FROM_RECORDER, LEASE_SPEC, TraceSender, action_spec
from labctl.plain import Json, RobotAbout

LEAVE_NS = SECOND
REST_RAD_S = 0.01
RECOVER_NS = 30 * SECOND  # powering a robot on and releasing its brakes takes so long
STALL_TICKS = 10  # after a longer pause of this process the time that passed is not caught up
BAD_MODES = ("safety_stop", "fault", "lost")
SPEEDS = ("joint_velocity", "tcp_velocity")


class RobotNode:
    """See the module. `tick_ns` is the time between two visits to the robot; `stale_ns` how long a last target
    holds; ends: the robot is visited at the end of a path, too, which is what the next question waits for.
    """

    topics = ("@lease",)
    name = "arm"

    def __init__(
        self,
        robot: Robot,
        *,
        tick_ns: int,
        stale_ns: int,
        chunk_ns: int = SECOND,
        connected: bool = False,
        ends: bool = False,
    ) -> None:
        self._robot, self._ends = robot, ends
        self._takes_steps = bool(getattr(robot, "takes_steps", False))
        self._tick_ns = tick_ns
        self._stale_ns = stale_ns
        self._period_ns = round(SECOND / robot.control_hz)
        self._hand = len(hand_of(axes_of(robot)))
        declared = getattr(robot, "axes", None)
        self._axes = None if declared is None else [[axis.name, axis.unit] for axis in declared]
        self._twist = list(twist_of(axes_of(robot)))
        self._targets = Targets(robot.dof, self._hand, self._twist)
        self._lead = Lead(robot.dof, self._twist)
        # a sample waits at most for its collection and its chunk: together one chunk's length
        self._collect_ns = chunk_ns // 4
        self.sender = TraceSender(
            "arm", [*robot.streams, action_spec(robot), LEASE_SPEC], chunk_ns=chunk_ns - self._collect_ns
        )
        self._connected = connected
        self._last_ns = 0
        self._grid_ns = 0
        self._collected_ns = 0
        self._recover_by_ns = 0
        self._leave_by_ns = 0
        self._held = np.zeros(robot.dof + self._hand)
        self._to_stage: Stage | None = None
        self._staging: str | None = None
        self._epoch = -1
        self._stopped_epoch = -1  # no lease of this epoch or an older one counts any more
        self._until_ns = 0  # 0: no lease
        self._episode: str | None = None  # of the lease
        self._leased_ns = 0  # when it was granted or renewed last
        self._stops = self._stops_heard = 0  # by others than run; those that run has journalled
        self._moving = False
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail, then motion and measurement up to now."""
        step = Step()
        if not self._connected:
            self._robot.connect(now_ns)
            self._connected = True
            self._last_ns = self._grid_ns = now_ns
            self._hold_here()
            if (about := getattr(self._robot, "about", None)) is not None:  # drivers of before December 2026 lack it
                self._report("about", now_ns, step, about=about())
        for message in inbox:
            carry_out(MESSAGES, self, message, now_ns, step)
        if now_ns >= self._due_ns() or self._must_stop(now_ns):
            self._advance(now_ns, step)
        if now_ns - self._collected_ns >= self._collect_ns:
            self._collect(now_ns)
            step.out += self.sender.poll(now_ns)
        if self._leave_by_ns and not self.finished:
            self._leave(now_ns, step)
        step.due_ns = self._due_ns()
        return step

    def _due_ns(self) -> int:
        """The next visit."""
        due_ns, ends_ns = self._last_ns + self._tick_ns, self._targets.ends_ns
        return ends_ns if self._ends and self._last_ns < ends_ns < due_ns else due_ns

    def _leave(self, now_ns: int, step: Step) -> None:
        """Asked to end: stay until the robot is at rest, so that the record shows it."""
        if np.abs(self._robot.observe()["dq"]).max() > REST_RAD_S and now_ns < self._leave_by_ns:
            return
        self._collect(now_ns)
        step.out += self.sender.close(now_ns)
        self._robot.close()
        self.finished = True

    def _lease(self, sent: Lease, now_ns: int, step: Step) -> None:
        self._take_lease(sent, now_ns, step)

    def _take_stage(self, sent: Stage, now_ns: int, step: Step) -> None:
        if self._take_lease(sent, now_ns, step):
            self._to_stage = sent
            self._stage(now_ns, step)

    def _stop_heard(self, sent: StopHeard, now_ns: int, step: Step) -> None:
        self._stops_heard = max(self._stops_heard, sent.number)

    def _take_recover(self, sent: Recover, now_ns: int, step: Step) -> None:
        self._recover_by_ns = now_ns + RECOVER_NS

    def _open(self, sent: Open, now_ns: int, step: Step) -> None:
        self._advance(now_ns, step)
        self._collect(now_ns)
        step.out += self.sender.open(sent.episode)

    def _close(self, sent: Close, now_ns: int, step: Step) -> None:
        self._advance(now_ns, step)
        self._collect(now_ns)
        step.out += self.sender.close(now_ns)

    def _shut_down(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        self._halt()
        self._leave_by_ns = now_ns + LEAVE_NS

    def _take_stop(self, message: Message, now_ns: int, step: Step) -> None:
        """Stop before anything that the message may lack. Run knows of its own stops; of any other it has to hear."""
        self._stopped_epoch = self._epoch
        self._halt()
        epoch = None
        try:
            epoch = read(Stop, message).epoch
        finally:
            if epoch is None:
                self._recover_by_ns = 0  # a recovery that is under way is over too; run's own stop may come with one
                self._tell_run("stopped", now_ns, step, by=message.sender)
            else:
                self._epoch = self._stopped_epoch = max(self._epoch, epoch)

    def _take_suspension(self, sent: Suspended, now_ns: int, step: Step) -> None:
        """To the clock of leases no time has passed: what was granted before is over all the same."""
        self._stopped_epoch, self._recover_by_ns = self._epoch, 0
        self._halt()
        self._tell_run("suspended", now_ns, step, for_ns=sent.for_ns)

    def _tell_run(self, why: str, now_ns: int, step: Step, **body: str | int) -> None:
        """A stop that run did not order: no lease counts until run has journalled it."""
        self._stops += 1
        self._report(why, now_ns, step, number=self._stops, **body)

    def _take_lease(self, lease: Lease | Stage, now_ns: int, step: Step) -> bool:
        """False for a lease that does not count: what was stopped stays stopped, a renewal may still come from a run
        that has not heard of it.
        """
        epoch = lease.epoch
        if epoch < self._epoch or epoch <= self._stopped_epoch or self._leave_by_ns:
            return False
        if self._stops_heard < self._stops:
            return False
        if epoch > self._epoch:
            self._advance(now_ns, step)  # what happened under the old epoch ends here
            self._targets.clear()
            self._epoch = epoch
        elif self._until_ns and lease.until_ns and lease.episode is not None and self.sender.episode is not None:
            row = np.array([[now_ns - self._leased_ns, self._until_ns - now_ns]]) / SECOND
            self.sender.add(Batch(LEASES, np.array([now_ns]), row))
        self._until_ns, self._episode, self._leased_ns = lease.until_ns, lease.episode, now_ns
        return True

    def _take_target(self, message: Message, now_ns: int, step: Step) -> None:
        """Accept targets of the current epoch that have not expired; anything else is dropped."""
        target = read(Target, message)
        if target.epoch != self._epoch or target.expires_ns < now_ns or now_ns > self._until_ns or self.finished:
            return
        if self._staging is not None:
            return  # the robot is on its way home
        t_ns = np.asarray(message.arrays["t_ns"], np.int64)
        leaves_ns = max(int(t_ns[0]) - target.dt_ns, self._asked_ns(now_ns)) if target.space in SPEEDS else None
        values = self._joints(target, t_ns, np.asarray(message.arrays["values"]), leaves_ns)
        joined, expires_ns = np.column_stack([values, message.arrays["gripper"]]), int(t_ns[-1]) + self._stale_ns
        if target.stepped and self._takes_steps:
            for at_ns, row in zip((t_ns - target.dt_ns).tolist(), joined, strict=True):
                self._targets.step(at_ns, row, expires_ns, self._held)
        else:
            self._targets.replace(t_ns, joined, expires_ns, now_ns, self._held, leaves_ns)
        self._targets.drive(t_ns, joined, target.dt_ns)

    def _joints(self, target: Target, t_ns: np.ndarray, values: np.ndarray, leaves_ns: int | None) -> np.ndarray:
        """Joint angles (n, dof) for actions of any space; speeds are integrated from where the path leads at leaves_ns,
        as far as the robot keeps up (`Lead`): of an action that is under way only the rest. Actions of the tool ask no
        speed of a base, nor do steps: added to a measured speed they would hold it on.
        """
        space = target.space
        if leaves_ns is None:
            if space == "tcp_pose":
                return self._led(values, self._held[: self._robot.dof])
            return self._at_rest(values.copy()) if target.stepped else values
        if len(self._targets.t_ns):
            leads = self._targets.sample(np.array([leaves_ns]))[0, : self._robot.dof]
            start = self._lead.bounded(leads, leaves_ns, int(t_ns[0]))
        else:
            self._lead.clear(self._grid_ns)
            start = self._held[: self._robot.dof]
        ends_ns = np.maximum(t_ns, leaves_ns)
        if space == "joint_velocity":
            return integrated_joints(ends_ns, values, int(ends_ns[0]) - leaves_ns, start, self._twist)
        poses = integrated_poses(ends_ns, values, int(ends_ns[0]) - leaves_ns, self._robot.to_pose(start))
        return self._led(poses, start)

    def _asked_ns(self, now_ns: int) -> int:
        """Up to when setpoints were asked for, or will not be: the robot is not moved through what was missed."""
        missed = now_ns - self._grid_ns > STALL_TICKS * self._tick_ns
        return now_ns - self._tick_ns if missed else self._grid_ns

    def _led(self, poses: np.ndarray, start: np.ndarray) -> np.ndarray:
        return self._at_rest(self._robot.to_joints(poses, start))

    def _at_rest(self, q: np.ndarray) -> np.ndarray:
        if self._twist:
            q[:, self._twist] = 0.0
        return q

    def _must_stop(self, now_ns: int) -> bool:
        return self._moving and not self._may_move(now_ns)

    def _may_move(self, now_ns: int) -> bool:
        return now_ns <= self._until_ns and len(self._targets.t_ns) > 0 and now_ns <= self._targets.expires_ns

    def _halt(self) -> None:
        self._robot.stop()
        self._until_ns, self._episode = 0, None
        self._moving = False
        self._staging = self._to_stage = None
        self._targets.clear()

    def _hold_here(self) -> None:
        seen = self._robot.observe()
        self._held = np.concatenate([seen["q"], seen["gripper"]])

    def _advance(self, now_ns: int, step: Step) -> None:
        if self._until_ns and now_ns > self._until_ns:
            self._lapse(now_ns, step)
        if self._may_move(now_ns):
            self._follow(now_ns, step)
            self._moving = True
        elif self._moving:
            if now_ns <= self._until_ns:
                # stale targets: the robot rests at the last one, and follows again when fresh ones come
                self._moving = False
                self._report("note", now_ns, step, text="targets went stale")
            else:
                self._halt()
        else:
            self._grid_ns = now_ns
            if self._staging is not None and now_ns > self._until_ns:
                self._halt()  # run took the lease of the way home back
        if self._recover_by_ns:
            self._try_to_recover(now_ns, step)
        self._stage(now_ns, step)
        self._measure(now_ns, step)

    def _lapse(self, now_ns: int, step: Step) -> None:
        """The lease ran out: nothing moves under its epoch any more, and run is to hear why if anything could have."""
        until_ns, episode, staging = self._until_ns, self._episode, self._to_stage or self._staging
        self._until_ns, self._episode = 0, None
        if staging is None and episode is None and not self._moving:
            return
        self._stopped_epoch = self._epoch
        self._halt()
        if staging is None:
            self._report("lease_lapsed", now_ns, step, episode=episode, until_ns=until_ns)
        else:
            step.out.append(Unstaged(staging if isinstance(staging, str) else staging.trial).to("run"))

    def _report(self, kind: str, now_ns: int, step: Step, **body: Json | RobotAbout) -> None:
        step.out.append(DeviceReport(kind, now_ns, body).to("run"))

    def _stage(self, now_ns: int, step: Step) -> None:
        """Begin to stage once nothing else is under way; say so when it is done. Under a lease, like all motion."""
        waits = self._recover_by_ns or now_ns > self._until_ns or self._robot.status().mode in BAD_MODES
        if self._to_stage is not None and not waits:
            stage, self._to_stage = self._to_stage, None
            self._robot.stage(stage.condition, stage.seed, now_ns)
            self._staging = stage.trial
        if self._staging is not None and self._robot.staged():
            self._hold_here()
            step.out.append(Staged(self._staging).to("run"))
            self._staging = None

    def _try_to_recover(self, now_ns: int, step: Step) -> None:
        """A robot that is still coming to rest or powering on refuses; ask again, and give up with a fault."""
        self._collect(now_ns)
        try:
            self._robot.recover()
        except DeviceRefused as error:
            if now_ns < self._recover_by_ns:
                return
            self._report("fault", now_ns, step, reason=str(error))
        self._recover_by_ns = 0
        self._hold_here()

    def _follow(self, now_ns: int, step: Step) -> None:
        if (asked_ns := self._asked_ns(now_ns)) != self._grid_ns:
            self._report("paused", now_ns, step, from_ns=self._grid_ns, to_ns=now_ns)
            self._grid_ns = asked_ns
        grid = np.arange(self._grid_ns + self._period_ns, now_ns + 1, self._period_ns, dtype=np.int64)
        if not len(grid):
            return
        wanted = self._targets.sample(grid)
        dof = self._robot.dof
        hand = wanted[:, dof] if self._hand == 1 else wanted[:, dof:]
        self._answered(self._robot.follow(Setpoints(grid, wanted[:, :dof], hand)))
        self._grid_ns = int(grid[-1])

    def _answered(self, actions: Actions) -> None:
        if not len(actions.t_ns):
            return
        self._held = actions.sent[-1]
        self._lead.see(actions)
        if self.sender.episode is not None:
            row = np.column_stack([actions.requested, actions.limited, actions.sent, actions.delay_s])
            self.sender.add(Batch(ACTION, actions.t_ns, row))

    def _collect(self, now_ns: int) -> None:
        self._collected_ns = now_ns
        self._answered(self._robot.follow(_nothing(self._robot.dof, self._hand)))
        for batch in self._robot.drain(now_ns):
            self.sender.add(batch)

    def _measure(self, now_ns: int, step: Step) -> None:
        for event in self._robot.events():
            step.out.append(DeviceReport(event.kind, event.t_ns, dict(event.body)).to("run"))
        status = self._robot.status()
        if status.mode in BAD_MODES:
            self._moving = False
            self._targets.clear()
        seen = Obs(now_ns, status.mode, status.reason, self._robot.clipped, self._epoch, self._axes)
        step.out.append(seen.to("@obs", self._robot.observe()))
        self._last_ns = now_ns


# What arrives. A stop counts whatever else it may lack, and a target is mostly its arrays.
MESSAGES = by_kind(
    (
        on_raw("stop", RobotNode._take_stop),
        on(Suspended, RobotNode._take_suspension),
        on(StopHeard, RobotNode._stop_heard),
        on(Lease, RobotNode._lease),
        on_raw("target", RobotNode._take_target),
        on(Stage, RobotNode._take_stage),
        on(Recover, RobotNode._take_recover),
        on(Open, RobotNode._open),
        on(Close, RobotNode._close),
        *FROM_RECORDER,
        on(Shutdown, RobotNode._shut_down),
    )
)


def _nothing(dof: int, hand: int) -> Setpoints:
    return Setpoints(np.empty(0, np.int64), np.empty((0, dof)), np.empty(0 if hand == 1 else (0, hand)))
