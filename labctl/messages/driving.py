"""Messages to and from the controller's node: the episode's task, its clock, a person's hand, switches.

May not: let anything but `Prepare` name an arm of the experiment, or let a time of the policy be shown: `private` is
sealed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from labctl import plain
from labctl.messages import body_parts as parts
from labctl.messages.typed import Typed
from labctl.plain import Json


@dataclass(frozen=True, slots=True)
class Prepare(Typed, kind="prepare", sender="run", to="controller"):
    """The only message that names the arm's controller: driver and options (a policy card as a table), and hand: driver
    and options of the device that may take over from a policy, or null; delay_s: how much later a policy gets all that
    it sees; a person's go waits as long. Private."""

    driver: str
    options: Mapping[str, Json]
    kind: str
    seed: int
    instruction: str
    episode: str
    hand: parts.Driver | None = None
    delay_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Ready(Typed, kind="ready", sender="controller", to="run"):
    """Loaded and warmed; private: load_s, warm_s, what the server reports of itself and what
    its policy runs on, sealed."""

    episode: str
    private: Mapping[str, Json] | None = None


@dataclass(frozen=True, slots=True)
class Start(Typed, kind="start", sender="run", to="controller"):
    """The first observation from now on is go."""

    episode: str
    epoch: int


@dataclass(frozen=True, slots=True)
class Go(Typed, kind="go", sender="controller", to="run"):
    """The first observation was taken: the episode's clock runs from go_ns."""

    episode: str
    go_ns: int


@dataclass(frozen=True, slots=True)
class Done(Typed, kind="done", sender="controller", to="run"):
    """The controller reports that its task is done."""

    episode: str


@dataclass(frozen=True, slots=True)
class Failed(Typed, kind="failed", sender="controller, camera:*", to="run"):
    """The node of this name cannot go on with the episode. Of a controller the reason is private: it may name the
    arm of the experiment.
    """

    name: str
    episode: str | None = None
    private: str | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class TouchByDevice(Typed, kind="touch", sender="controller", to="run"):
    """A hand device took the robot from a policy (phase begin), or gave it back (end)."""

    episode: str
    phase: str
    t_ns: int


@dataclass(frozen=True, slots=True)
class HandLost(Typed, kind="hand_lost", sender="controller", to="run"):
    """In a policy's episode: the device for taking over is gone, and why. Nobody can take this one over any more."""

    episode: str
    reason: str


@dataclass(frozen=True, slots=True)
class HandState(Typed, kind="hand", sender="controller", to="run"):
    """Of a person's trial, in a practice, or while a hand has taken over: how the hand's device is
    (`devices.ByHand.hand`), five times a second ([0014](decisions/0014-a-persons-hand-is-shown.md)). None: it gave the
    robot back.
    """

    hand: plain.Hand | None = None
    episode: str | None = None


@dataclass(frozen=True, slots=True)
class Switch(Typed, kind="switch", sender="run", to="controller"):
    """Another instruction: once, `at_s` after go, the same for every arm
    ([0017](decisions/0017-scripted-switches.md)).
    """

    episode: str
    number: int
    instruction: str


@dataclass(frozen=True, slots=True)
class Switched(Typed, kind="switched", sender="controller", to="run"):
    """The controller took the switch, and its next question carries it; only this is journalled."""

    episode: str
    number: int
    t_ns: int
