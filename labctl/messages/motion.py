"""Messages to and from the robot's node: leases, the way home, targets, what was observed.

May not: name an arm of the experiment.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labctl.bus import Body
from labctl.messages.typed import Typed
from labctl.plain import Json

LEASE_RENEWALS = 3  # how often a lease is renewed within its duration


@dataclass(frozen=True, slots=True)
class Lease(Typed, kind="lease", sender="run", to="@lease"):
    """Renewed three times per duration, never beyond latest_ns (the episode's budget; None: no such end); until_ns 0
    ends it.
    """

    epoch: int
    episode: str | None
    until_ns: int
    latest_ns: int | None = None


@dataclass(frozen=True, slots=True)
class Stage(Typed, kind="stage", sender="run", to="arm"):
    """Go to where episodes begin and set the scene of a condition {object, layout, items, …}, under the lease of the
    way home (epoch, until_ns).
    """

    trial: str
    condition: Mapping[str, Json]
    seed: int
    epoch: int
    episode: str | None
    until_ns: int


@dataclass(frozen=True, slots=True)
class Staged(Typed, kind="staged", sender="arm", to="run"):
    """The robot is where episodes begin, the scene is set."""

    trial: str


@dataclass(frozen=True, slots=True)
class Unstaged(Typed, kind="unstaged", sender="arm", to="run"):
    """The lease ran out on the way home and the robot stopped; a person looks, then it is ordered again."""

    trial: str


@dataclass(frozen=True, slots=True)
class Recover(Typed, kind="recover", sender="run", to="arm"):
    """On a named person's acknowledgement only; tried again while the robot still brakes."""


@dataclass(frozen=True, slots=True)
class Stop(Typed, kind="stop", sender="run, console", to="arm"):
    """Stop now, and take no lease of this epoch (None: the present one) or an older one any more. A console sends it
    straight to the robot's stop socket, whatever run does.
    """

    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class StopHeard(Typed, kind="stop_heard", sender="run", to="arm"):
    """Run has journalled the stop of this number (`DeviceReport` "stopped", "suspended"): from here on its holds bar
    motion. Until then the robot's node takes no lease at all, so that nothing sent before moves it.
    """

    number: int


@dataclass(frozen=True, slots=True)
class Target(Typed, kind="target", sender="controller", to="arm", arrays="t_ns, values, gripper"):
    """Timed targets under a lease; space: positions, poses, or speeds that the robot's node integrates. stepped: each
    is a step from where the robot was measured, which begins dt_ns before its time.
    """

    epoch: int
    episode: str
    space: str
    dt_ns: int
    expires_ns: int
    stepped: bool = False


@dataclass(frozen=True, slots=True)
class Obs(Typed, kind="obs", sender="arm", to="@obs", arrays="q dq tcp gripper … (`Robot.observe`)"):
    """The robot's state; mode and reason as in `devices.RobotStatus`, clipped: the limit that shapes the motion. axes:
    name and unit of each of q and then of the hand, where they are more than joints in rad and one opening in m.
    """

    t_ns: int
    mode: str
    reason: str
    clipped: str
    epoch: int | None = None
    axes: Sequence[Sequence[str]] | None = None


@dataclass(frozen=True, slots=True)
class DeviceReport(Typed, kind="event", sender="arm", to="run"):
    """What a device reported (`devices.DeviceEvent`); body: its details, such as reason, cause or text.

    The node itself reports "stopped" {number, by} for a stop that did not come from run, "suspended" {number, for_ns}
    for a suspension of this computer, "lease_lapsed" {episode, until_ns} for a lease that ran out under way,
    "paused" {from_ns, to_ns} where its process stood still, and "about" {about: `plain.RobotAbout`} once it is
    connected.
    """

    kind: str
    t_ns: int
    body: Body | None = None
