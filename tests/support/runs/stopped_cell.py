"""A cell whose processes stand still one by one: the run node, the thread that renews its lease, the robot's node with
a simulated robot and whoever drives it, over one manual clock. What stops and what goes on is the test's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labctl.bus import Message, Node
from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.core.trial import State, fold
from labctl.messages.motion import LEASE_RENEWALS, Stop, Target
from labctl.runtime.hosting.cell_nodes import NodeSpec, build_node
from labctl.runtime.hosting.lease_keeper import LeaseKeeper, terms_of
from labctl.store.campaign import Campaign
from support.runs.run_bench import Bench

TICK = 20 * MILLISECOND  # of the robot's node
TURN = 60 * MILLISECOND  # of the run's loop and of who drives
WAY_NS, MOST_NS = 8 * SECOND, 100 * MILLISECOND
STOPS = (  # what each state and each robot is tried with; the tables of both tests have to have each
    "stop key",
    "stop socket",
    "run stopped 0.05 s",
    "run stopped 0.3 s",
    "run stopped 0.6 s",
    "run stopped 5 s",
    "stop key in such 5 s",
    "stop socket in such 5 s",
    "fsync of 1 s",
    "fsync of 2 s",
    "run's loop blocked 5 s",
    "cpu theft",
)
MOVED_RAD = 1e-3
SWING_RAD, SWING_HZ = 0.1, 0.5


def arm_of(folder: Path, campaign: Campaign) -> Node:
    return build_node("arm", NodeSpec(cell=campaign.cell, fixture=campaign.fixture, folder=folder, real_time=False))


class WayHome:
    """A simulated robot, which stands where episodes begin at once, with a way home that takes its time."""

    def __init__(self, robot: Any, clock: ManualClock) -> None:
        self._robot, self._clock = robot, clock
        self._left_ns, self._seen_ns, self._going = 0, 0, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._robot, name)

    def stage(self, condition: Mapping[str, Any], seed: int, now_ns: int) -> None:
        self._robot.stage(condition, seed, now_ns)
        self._left_ns, self._seen_ns, self._going = WAY_NS, now_ns, True

    def stop(self) -> None:
        self._robot.stop()
        self._going = False

    def staged(self) -> bool:
        return bool(self._robot.staged()) and self._going and self._left_ns == 0

    def observe(self) -> dict[str, np.ndarray]:
        now_ns = self._clock.now_ns()
        if self._going:
            self._left_ns = max(self._left_ns - min(now_ns - self._seen_ns, MOST_NS), 0)
        self._seen_ns = now_ns
        seen = dict(self._robot.observe())
        away = np.zeros(len(seen["q"]))
        away[0] = self._left_ns / SECOND / 10
        return {**seen, "q": seen["q"] + away}


class StoppedCell(Bench):
    """`standing`: which of run, renewer, arm, driver do nothing now. A driver swings one joint from go to the end."""

    def __init__(self, campaign: Campaign) -> None:
        super().__init__(campaign)
        self.arm: Any = arm_of(campaign.folder, campaign)
        self.arm._robot = WayHome(self.arm._robot, self.clock)
        self.to_arm: list[Message] = []
        self.to_run: list[Message] = []
        self.obs: Message | None = None
        self.standing: frozenset[str] = frozenset()
        self.path: list[tuple[int, np.ndarray]] = []
        self.driven: str | None = None
        self.terms = terms_of(campaign.cell.lease)
        self.keeper = LeaseKeeper(self.to_arm.append, self.clock, self.terms)

    def close(self) -> None:
        self.keeper.close()

    def hear(self, *messages: Message) -> list[Message]:
        out = super().hear(*messages)
        if messages and all(m.kind == "photographed" for m in messages):
            return out  # whoever asked for the photos routes it
        for message in out:
            if message.to == "@lease":
                self.keeper.grant(message)
            elif message.to == "arm":
                self.to_arm.append(message)
        return out

    def wait(self, ns: int, *, beating: tuple[str, ...] = ()) -> None:
        """Let time pass; each process does its part, unless it stands still."""
        end_ns = self.now_ns + ns
        while self.now_ns < end_ns:
            self.clock.sleep_until(self.now_ns + TICK)
            now_ns, turns = self.now_ns, self.now_ns % TURN < TICK
            if "renewer" not in self.standing and now_ns % (self.terms.duration_ns // LEASE_RENEWALS) < TICK:
                self.keeper.renew(now_ns)
            if turns and "driver" not in self.standing and self.driven is not None:
                self.to_arm.append(self.target(now_ns))
            if "arm" not in self.standing:
                self.visit_robot(now_ns)
            if turns and "run" not in self.standing:
                beats = Message("run", "beats", {"names": ["arm", "recorder", "controller", *self.cameras]})
                mail, self.to_run = [*self.to_run, beats, *([self.obs] if self.obs else [])], []
                self.hear(*mail)

    def visit_robot(self, now_ns: int) -> None:
        mail, self.to_arm[:] = list(self.to_arm), []
        step = self.arm.step(now_ns, mail)
        for message in step.out:
            if message.kind == "obs":
                self.obs = Message("run", "obs", message.body, sender="arm")
                self.path.append((now_ns, np.asarray(message.arrays["q"], float).copy()))
            elif message.to == "run":
                self.to_run.append(Message("run", message.kind, message.body, message.arrays, sender="arm"))

    def target(self, now_ns: int) -> Message:
        """Where to be in the next tenth of a second: one joint swings about where it was when it began."""
        begun_ns, q = self.swing
        t_ns = now_ns + np.array([1, 2, 3, 4, 5], np.int64) * 40 * MILLISECOND
        values = np.tile(q, (len(t_ns), 1))
        values[:, 0] += SWING_RAD * (1 - np.cos(2 * np.pi * SWING_HZ * (t_ns - begun_ns) / SECOND))
        arrays = {"t_ns": t_ns, "values": values, "gripper": np.full(len(t_ns), 0.04)}
        epoch = max(m.body["epoch"] for m in self.sent if m.to == "@lease")
        said = Target(epoch, self.driven or "", "joint_position", 40 * MILLISECOND, int(t_ns[-1]))
        return said.to("arm", arrays)

    def drive(self, episode: str) -> None:
        """Go: the robot is driven from here on."""
        self.swing, self.driven = (self.now_ns, self.path[-1][1]), episode
        self.hear(Message("run", "go", {"episode": episode, "go_ns": self.now_ns}, sender="controller"))

    def moved(self, from_ns: int, to_ns: int) -> bool:
        """Did a joint go anywhere within this time?"""
        there = [q for t_ns, q in self.path if from_ns <= t_ns <= to_ns]
        return len(there) > 1 and float(np.ptp(np.array(there), axis=0).max()) > MOVED_RAD

    def begin_session(self, **others: Sequence[str]) -> None:
        """Everyone is there and was heard."""
        super().begin_session(**others)
        self.wait(SECOND // 2)

    def stage(self) -> None:
        """The trial at hand is staged: the robot goes home."""
        assert self.command("stage", role="setter")["ok"]
        for _ in range(600):
            if self.shown()["staged"]:
                return
            self.wait(SECOND // 10)
        raise AssertionError("it never came home")

    def stop_past_run(self) -> None:
        """The stop socket of the robot's process."""
        self.to_arm.append(Message("arm", "stop", Stop().to("arm").body, sender="console-1"))

    def without(self, names: str, ns: int) -> None:
        """These stand still for so long; then they go on, and their mail is there."""
        self.standing = frozenset(names.split())
        self.wait(ns)
        self.standing = frozenset()


def trial_state(cell: Bench) -> State:
    """Where the trial whose turn it is stands."""
    return next(t.state for t in fold(cell.events()).trials.values() if t.state != State.NOT_RUN)
