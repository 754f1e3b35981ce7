"""The arm node: owns a robot with its gripper, follows timed targets under a lease, records what it wanted, limited
and sent.

May not: know which arm of the experiment drives it, extend its own lease, or move when the lease has lapsed, a target
is stale, or a stop was asked.
"""

from __future__ import annotations

import numpy as np

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Batch, Resettable, Robot, Setpoints, StreamSpec
from labctl.errors import DeviceRefused
from labctl.nodes.tracing import TraceSender

ACTION = "arm/action"
LEAVE_NS = SECOND
REST_RAD_S = 1e-6
RECOVER_NS = 5 * SECOND


def action_spec(robot: Robot) -> StreamSpec:
    """The stream of setpoints: each joint and the gripper as requested, limited and sent."""
    parts = (*robot.joint_names, "gripper")
    columns = tuple(f"{stage}.{part}" for stage in ("requested", "limited", "sent") for part in parts)
    return StreamSpec(ACTION, columns, "rad, m", robot.control_hz)


class Targets:
    """Timed joint and gripper targets of one lease epoch: a smooth path through the knots, held at its end until stale.

    Joints follow a monotone cubic (Fritsch and Carlson 1980, harmonic-mean slopes), so that a chunk asks for no jump in
    velocity and the path never leaves the span of two knots: a tool sent to 5 mm above the tote's floor stays above
    it. The gripper goes in straight lines.
    """

    def __init__(self, dof: int) -> None:
        self._dof = dof
        self.clear()

    def clear(self) -> None:
        self.t_ns = np.empty(0, np.int64)
        self.values = np.empty((0, self._dof + 1))
        self._rise = self._bend0 = self._bend1 = self.values
        self._spans = self.t_ns
        self._still = True
        self.expires_ns = 0

    def replace(self, t_ns: np.ndarray, values: np.ndarray, expires_ns: int, now_ns: int, held: np.ndarray) -> None:
        """Targets from `t_ns[0]` on replace older ones; a path that would start from nothing starts from where the arm
        is held.
        """
        keep = self.t_ns < t_ns[0]
        old_t, old_v = self.t_ns[keep][-2:], self.values[keep][-2:]
        if not len(old_t):
            old_t, old_v = np.array([min(now_ns, int(t_ns[0]) - 1)]), held[None, :]
        elif old_t[-1] < now_ns < t_ns[0]:  # the old path was held at its end: leave from there, now
            old_t, old_v = np.array([now_ns]), old_v[-1:]
        self.t_ns = np.concatenate([old_t, t_ns])
        self.values = np.concatenate([old_v, values])
        spans = np.maximum(np.diff(self.t_ns), 1)
        self._rise = np.diff(self.values, axis=0)
        secants = self._rise / spans[:, None]
        slopes = np.zeros_like(self.values)
        product, total = secants[:-1] * secants[1:], secants[:-1] + secants[1:]
        np.divide(2 * product, total, out=slopes[1:-1], where=product > 0)
        self._bend0 = slopes[:-1] * spans[:, None] - self._rise
        self._bend1 = slopes[1:] * spans[:, None] - self._rise
        self._bend0[:, -1] = self._bend1[:, -1] = 0.0
        self._spans = spans
        self._still = bool((self.values == self.values[-1]).all())
        self.expires_ns = expires_ns

    def sample(self, grid_ns: np.ndarray) -> np.ndarray:
        """Values (n, dof + 1) on the grid; before the first and after the last knot the end values hold."""
        if self._still or grid_ns[0] >= self.t_ns[-1]:
            return np.tile(self.values[-1], (len(grid_ns), 1))
        before = self.t_ns.searchsorted(grid_ns, side="right") - 1
        np.minimum(before, len(self._spans) - 1, out=before)
        np.maximum(before, 0, out=before)
        s = (grid_ns - self.t_ns[before]) / self._spans[before]
        np.minimum(s, 1.0, out=s)
        np.maximum(s, 0.0, out=s)
        s = s[:, None]
        rest = 1.0 - s
        bend = rest * self._bend0[before] - s * self._bend1[before]
        return self.values[before] + s * (self._rise[before] + rest * bend)


class ArmNode:
    """See the module. `tick_ns` is the time between two visits to the robot; `stale_ns` how long a last target
    holds.
    """

    topics = ("@lease",)
    name = "arm"

    def __init__(
        self, robot: Robot, *, tick_ns: int, stale_ns: int, chunk_ns: int = SECOND, connected: bool = False
    ) -> None:
        self._robot = robot
        self._tick_ns = tick_ns
        self._stale_ns = stale_ns
        self._period_ns = round(SECOND / robot.control_hz)
        self._targets = Targets(robot.dof)
        # a sample waits at most for its collection and its chunk: together one chunk's length
        self._collect_ns = chunk_ns // 4
        self._sender = TraceSender("arm", [*robot.streams, action_spec(robot)], chunk_ns=chunk_ns - self._collect_ns)
        self._connected = connected
        self._last_ns = 0
        self._grid_ns = 0
        self._collected_ns = 0
        self._recover_by_ns = 0
        self._leave_by_ns = 0
        self._held = np.zeros(robot.dof + 1)
        self._epoch = -1
        self._stopped_epoch = -1  # no lease of this epoch or an older one counts any more
        self._until_ns = 0
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
        for message in inbox:
            self._read(message, now_ns, step)
        if now_ns - self._last_ns >= self._tick_ns or self._must_stop(now_ns):
            self._advance(now_ns, step)
        if now_ns - self._collected_ns >= self._collect_ns:
            self._collect(now_ns)
            step.out += self._sender.poll(now_ns)
        if self._leave_by_ns and not self.finished:
            self._leave(now_ns, step)
        step.due_ns = self._last_ns + self._tick_ns
        return step

    def _leave(self, now_ns: int, step: Step) -> None:
        """Asked to end: stay until the arm is at rest, so that the record shows it."""
        if np.abs(self._robot.observe()["dq"]).max() > REST_RAD_S and now_ns < self._leave_by_ns:
            return
        self._collect(now_ns)
        step.out += self._sender.close(now_ns)
        self._robot.close()
        self.finished = True

    def _read(self, message: Message, now_ns: int, step: Step) -> None:
        body = message.body
        if message.kind == "lease":
            self._take_lease(body, now_ns, step)
        elif message.kind == "target":
            self._take_target(message, now_ns)
        elif message.kind == "stop":
            self._epoch = self._stopped_epoch = max(self._epoch, int(body.get("epoch", self._epoch)))
            self._halt()
        elif message.kind == "stage":
            if isinstance(self._robot, Resettable):
                self._robot.stage(body["condition"], body["seed"], now_ns)
                self._hold_here()
            step.out.append(Message("run", "staged", {"trial": body["trial"]}))
        elif message.kind == "recover":
            self._recover_by_ns = now_ns + RECOVER_NS
        elif message.kind == "open":
            self._advance(now_ns, step)
            self._collect(now_ns)
            step.out += self._sender.open(body["episode"])
        elif message.kind == "close":
            self._advance(now_ns, step)
            self._collect(now_ns)
            step.out += self._sender.close(now_ns)
        elif message.kind == "ack":
            self._sender.ack(body)
        elif message.kind == "resend":
            step.out += self._sender.resend()
        elif message.kind == "shutdown":
            self._halt()
            self._leave_by_ns = now_ns + LEAVE_NS

    def _take_lease(self, body: object, now_ns: int, step: Step) -> None:
        assert isinstance(body, dict)
        if body["epoch"] < self._epoch or body["epoch"] <= self._stopped_epoch or self._leave_by_ns:
            return  # what was stopped stays stopped: a renewal may still come from a run that has not heard of it
        if body["epoch"] > self._epoch:
            self._advance(now_ns, step)  # what happened under the old epoch ends here
            self._targets.clear()
            self._epoch = body["epoch"]
        self._until_ns = body["until_ns"]

    def _take_target(self, message: Message, now_ns: int) -> None:
        """Accept targets of the current epoch that have not expired; anything else is dropped."""
        body = message.body
        if body["epoch"] != self._epoch or body["expires_ns"] < now_ns or now_ns > self._until_ns or self.finished:
            return
        t_ns = np.asarray(message.arrays["t_ns"], np.int64)
        values = np.asarray(message.arrays["values"])
        if body["space"] == "tcp_pose":
            values = self._robot.to_joints(values, self._held[:-1])
        joined = np.column_stack([values, message.arrays["gripper"]])
        self._targets.replace(t_ns, joined, int(t_ns[-1]) + self._stale_ns, now_ns, self._held)

    def _must_stop(self, now_ns: int) -> bool:
        return self._moving and not self._may_move(now_ns)

    def _may_move(self, now_ns: int) -> bool:
        return now_ns <= self._until_ns and len(self._targets.t_ns) > 0 and now_ns <= self._targets.expires_ns

    def _halt(self) -> None:
        self._robot.stop()
        self._until_ns = 0
        self._moving = False
        self._targets.clear()

    def _hold_here(self) -> None:
        seen = self._robot.observe()
        self._held = np.concatenate([seen["q"], seen["gripper"]])

    def _advance(self, now_ns: int, step: Step) -> None:
        if self._may_move(now_ns):
            self._follow(now_ns)
            self._moving = True
        elif self._moving:
            if now_ns <= self._until_ns:
                self._moving = (
                    False  # stale targets: the arm rests at the last one, and follows again when fresh ones come
                )
                step.out.append(
                    Message("run", "event", {"kind": "note", "t_ns": now_ns, "body": {"text": "targets went stale"}})
                )
            else:
                self._halt()
        else:
            self._grid_ns = now_ns
        if self._recover_by_ns:
            self._try_to_recover(now_ns, step)
        self._measure(now_ns, step)

    def _try_to_recover(self, now_ns: int, step: Step) -> None:
        """A robot that is still coming to rest refuses; ask again until it stands, and give up with a fault."""
        self._collect(now_ns)
        try:
            self._robot.recover()
        except DeviceRefused as error:
            if now_ns < self._recover_by_ns:
                return
            step.out.append(Message("run", "event", {"kind": "fault", "t_ns": now_ns, "body": {"reason": str(error)}}))
        self._recover_by_ns = 0
        self._hold_here()

    def _follow(self, now_ns: int) -> None:
        grid = np.arange(self._grid_ns + self._period_ns, now_ns + 1, self._period_ns, dtype=np.int64)
        if not len(grid):
            return
        wanted = self._targets.sample(grid)
        requested = Setpoints(grid, wanted[:, :-1], wanted[:, -1])
        limited, sent = self._robot.follow(requested)
        self._grid_ns = int(grid[-1])
        self._held = np.append(sent.q[-1], sent.gripper[-1])
        if self._sender.episode is not None:
            width = wanted.shape[1]
            row = np.empty((len(grid), 3 * width))
            for i, part in enumerate((requested, limited, sent)):
                row[:, i * width : (i + 1) * width - 1] = part.q
                row[:, (i + 1) * width - 1] = part.gripper
            self._sender.add(Batch(ACTION, grid, row))

    def _collect(self, now_ns: int) -> None:
        self._collected_ns = now_ns
        for batch in self._robot.drain(now_ns):
            self._sender.add(batch)

    def _measure(self, now_ns: int, step: Step) -> None:
        for event in self._robot.events():
            step.out.append(Message("run", "event", {"kind": event.kind, "t_ns": event.t_ns, "body": dict(event.body)}))
        status = self._robot.status()
        if status.mode in ("safety_stop", "fault", "lost"):
            self._moving = False
            self._targets.clear()
        body = {"t_ns": now_ns, "mode": status.mode, "reason": status.reason, "epoch": self._epoch}
        step.out.append(Message("@obs", "obs", body, self._robot.observe()))
        self._last_ns = now_ns


def tick_ns(observe_hz: float, *, real_time: bool) -> int:
    """Time between visits: the observation period in simulated time; at most 20 ms in real time, so that a stop is
    never far.
    """
    period = round(SECOND / observe_hz)
    return min(period, 20 * MILLISECOND) if real_time else period
