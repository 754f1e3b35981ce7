"""Messages to and from the robot's node: leases, the way home, targets, what was observed.

May not: name an arm of the experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from labctl.bus import Body
from labctl.messages.typed import Typed
from labctl.plain import Json

LEASE_RENEWALS = 3  # how often a lease is renewed within its duration


@dataclass(frozen=True, slots=True)
class Lease(Typed):
    """Renewed three times per duration, never beyond latest_ns (the episode's budget; None: no such end); until_ns 0
    ends it.
    """

    KIND: ClassVar = "lease"
    FROM: ClassVar = "run"
    TO: ClassVar = "@lease"
    epoch: int
    episode: str | None
    until_ns: int
    latest_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Stage(Typed):
    """Go to where episodes begin and set the scene of a condition {object, layout, items, …}, under the lease of the
    way home (epoch, until_ns).
    """

    KIND: ClassVar = "stage"
    FROM: ClassVar = "run"
    TO: ClassVar = "arm"
    trial: str
    condition: Mapping[str, Json]
    seed: int
    epoch: int
    episode: str | None
    until_ns: int


@dataclass(frozen=True, slots=True)
class Staged(Typed):
    """The robot is where episodes begin, the scene is set."""

    KIND: ClassVar = "staged"
    FROM: ClassVar = "arm"
    TO: ClassVar = "run"
    trial: str


@dataclass(frozen=True, slots=True)
class Unstaged(Typed):
    """The lease ran out on the way home and the robot stopped; a person looks, then it is ordered again."""

    KIND: ClassVar = "unstaged"
    FROM: ClassVar = "arm"
    TO: ClassVar = "run"
    trial: str


@dataclass(frozen=True, slots=True)
class Recover(Typed):
    """On a named person's acknowledgement only; tried again while the robot still brakes."""

    KIND: ClassVar = "recover"
    FROM: ClassVar = "run"
    TO: ClassVar = "arm"


@dataclass(frozen=True, slots=True)
class Stop(Typed):
    """Stop now, and take no lease of this epoch (None: the present one) or an older one any more. A console sends it
    straight to the robot's stop socket, whatever run does.
    """

    KIND: ClassVar = "stop"
    FROM: ClassVar = "run, console"
    TO: ClassVar = "arm"
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class StopHeard(Typed):
    """Run has journalled the stop of this number (`DeviceReport` "stopped", "suspended"): from here on its holds bar
    motion. Until then the robot's node takes no lease at all, so that nothing sent before moves it.
    """

    KIND: ClassVar = "stop_heard"
    FROM: ClassVar = "run"
    TO: ClassVar = "arm"
    number: int


@dataclass(frozen=True, slots=True)
class Target(Typed):
    """Timed targets under a lease; space: positions, poses, or speeds that the robot's node integrates. stepped: each
    is a step from where the robot was measured, which begins dt_ns before its time.
    """

    KIND: ClassVar = "target"
    FROM: ClassVar = "controller"
    TO: ClassVar = "arm"
    ARRAYS: ClassVar = "t_ns, values, gripper"
    epoch: int
    episode: str
    space: str
    dt_ns: int
    expires_ns: int
    stepped: bool = False


@dataclass(frozen=True, slots=True)
class Obs(Typed):
    """The robot's state; mode and reason as in `devices.RobotStatus`, clipped: the limit that shapes the motion. axes:
    name and unit of each of q and then of the hand, where they are more than joints in rad and one opening in m.
    """

    KIND: ClassVar = "obs"
    FROM: ClassVar = "arm"
    TO: ClassVar = "@obs"
    ARRAYS: ClassVar = "q dq tcp gripper … (`Robot.observe`)"
    t_ns: int
    mode: str
    reason: str
    clipped: str
    epoch: int | None = None
    axes: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class DeviceReport(Typed):
    """What a device reported (`devices.DeviceEvent`); body: its details, such as reason, cause or text.

    The node itself reports "stopped" {number, by} for a stop that did not come from run, "suspended" {number, for_ns}
    for a suspension of this computer, "lease_lapsed" {episode, until_ns} for a lease that ran out under way,
    "paused" {from_ns, to_ns} where its process stood still, and "about" {about: `plain.RobotAbout`} once it is
    connected.
    """

    KIND: ClassVar = "event"
    FROM: ClassVar = "arm"
    TO: ClassVar = "run"
    kind: str
    t_ns: int
    body: Body | None = None
