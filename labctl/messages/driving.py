"""Messages to and from the controller's node: the episode's task, its clock, a person's hand, switches.

May not: let anything but `Prepare` name an arm of the experiment, or let a time of the policy be shown: `private` is
sealed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from labctl import plain
from labctl.messages import body_parts as parts
from labctl.messages.typed import Typed
from labctl.plain import Json


@dataclass(frozen=True, slots=True)
class Prepare(Typed):
    """The only message that names the arm's controller: driver and options (a policy card as a table), and hand: driver
    and options of the device that may take over from a policy, or null; delay_s: how much later a policy gets all that
    it sees; a person's go waits as long. Private."""

    KIND: ClassVar = "prepare"
    FROM: ClassVar = "run"
    TO: ClassVar = "controller"
    driver: str
    options: Mapping[str, Json]
    kind: str
    seed: int
    instruction: str
    episode: str
    hand: parts.Driver | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ready(Typed):
    """Loaded and warmed; private: load_s, warm_s, what the server reports of itself and what
    its policy runs on, sealed."""

    KIND: ClassVar = "ready"
    FROM: ClassVar = "controller"
    TO: ClassVar = "run"
    episode: str
    private: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Start(Typed):
    """The first observation from now on is go."""

    KIND: ClassVar = "start"
    FROM: ClassVar = "run"
    TO: ClassVar = "controller"
    episode: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Go(Typed):
    """The first observation was taken: the episode's clock runs from go_ns."""

    KIND: ClassVar = "go"
    FROM: ClassVar = "controller"
    TO: ClassVar = "run"
    episode: str
    go_ns: int


@dataclass(frozen=True, slots=True)
class Done(Typed):
    """The controller reports that its task is done."""

    KIND: ClassVar = "done"
    FROM: ClassVar = "controller"
    TO: ClassVar = "run"
    episode: str


@dataclass(frozen=True, slots=True)
class Failed(Typed):
    """The node of this name cannot go on with the episode. Of a controller the reason is private: it may name the
    arm of the experiment.
    """

    KIND: ClassVar = "failed"
    FROM: ClassVar = "controller, camera:*"
    TO: ClassVar = "run"
    name: str
    episode: str | None = None
    private: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TouchByDevice(Typed):
    """A hand device took the robot from a policy (phase begin), or gave it back (end)."""

    KIND: ClassVar = "touch"
    FROM: ClassVar = "controller"
    TO: ClassVar = "run"
    episode: str
    phase: str
    t_ns: int


@dataclass(frozen=True, slots=True)
class HandState(Typed):
    """Of a person's trial, or in a practice: how the hand's device is (`devices.ByHand.hand`), five times a second
    ([0014](decisions/0014-a-persons-hand-is-shown.md))."""

    KIND: ClassVar = "hand"
    FROM: ClassVar = "controller"
    TO: ClassVar = "run"
    hand: plain.Hand
    episode: str | None = None


@dataclass(frozen=True, slots=True)
class Switch(Typed):
    """Another instruction: once, `at_s` after go, the same for every arm
    ([0017](decisions/0017-scripted-switches.md)).
    """

    KIND: ClassVar = "switch"
    FROM: ClassVar = "run"
    TO: ClassVar = "controller"
    episode: str
    number: int
    instruction: str


@dataclass(frozen=True, slots=True)
class Switched(Typed):
    """The controller took the switch, and its next question carries it; only this is journalled."""

    KIND: ClassVar = "switched"
    FROM: ClassVar = "controller"
    TO: ClassVar = "run"
    episode: str
    number: int
    t_ns: int
