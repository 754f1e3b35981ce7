"""Messages about processes themselves, and between consoles and the run.

May not: show an arm of the experiment: `state` is `core.published_state.PublishedState`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from labctl.messages.typed import Typed
from labctl.plain import Json


@dataclass(frozen=True, slots=True)
class Hello(Typed):
    """A process begins. Only a hello brings a node back."""

    KIND: ClassVar = "hello"
    FROM: ClassVar = "any"
    TO: ClassVar = "run"
    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Beats(Typed):
    """Every 0.2 s (0.5 s in simulated time): these nodes turn."""

    KIND: ClassVar = "beats"
    FROM: ClassVar = "any"
    TO: ClassVar = "run"
    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Failing(Typed):
    """The last message of a process that a device has failed."""

    KIND: ClassVar = "failing"
    FROM: ClassVar = "any"
    TO: ClassVar = "run"
    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Spawn(Typed):
    """Start this node: the supervisor's or the loop's work."""

    KIND: ClassVar = "spawn"
    FROM: ClassVar = "run"
    TO: ClassVar = "@host"
    name: str


@dataclass(frozen=True, slots=True)
class Kill(Typed):
    """End this node at once."""

    KIND: ClassVar = "kill"
    FROM: ClassVar = "run"
    TO: ClassVar = "@host"
    name: str


@dataclass(frozen=True, slots=True)
class Exited(Typed):
    """A process has ended; asked: by a `kill`."""

    KIND: ClassVar = "exited"
    FROM: ClassVar = "@host"
    TO: ClassVar = "run"
    name: str
    reason: str
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Shutdown(Typed):
    """Finish: the robot stops and its node stays until it stands, the recorder until it is quiet."""

    KIND: ClassVar = "shutdown"
    FROM: ClassVar = "any"
    TO: ClassVar = "any"


@dataclass(frozen=True, slots=True)
class Suspended(Typed):
    """This computer was suspended for so long, ns: a lid was closed. The monotonic clock stood still, the world did
    not. Each process finds it for its own nodes, before any other mail.
    """

    KIND: ClassVar = "suspended"
    FROM: ClassVar = "@host"
    TO: ClassVar = "any"
    for_ns: int


@dataclass(frozen=True, slots=True)
class EndRun(Typed):
    """A person ends the run: after a trial that runs and its score, or (now) at once. Answered by a `reply`."""

    KIND: ClassVar = "end_run"
    FROM: ClassVar = "console"
    TO: ClassVar = "run"
    who: str
    id: str = ""
    now: bool = False


@dataclass(frozen=True, slots=True)
class CommandSent(Typed):
    """What a person orders; `core.commands` has each verb's args, and refuses what does not fit; keys: how many were
    pressed since the last one.
    """

    KIND: ClassVar = "command"
    FROM: ClassVar = "operator, console"
    TO: ClassVar = "run"
    verb: str
    who: str
    role: str
    id: str | None = None
    version: int | None = None
    args: Mapping[str, Json] | None = None
    keys: int | None = None


@dataclass(frozen=True, slots=True)
class Reply(Typed):
    """The command of this id was carried out (note: a remark), or why not; version: of the state after it."""

    KIND: ClassVar = "reply"
    FROM: ClassVar = "run"
    TO: ClassVar = "operator, console"
    id: Json
    ok: bool
    version: int
    error: str | None = None
    kind: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class State(Typed):
    """`core.published_state.PublishedState`; a console or the simulated operator reads it."""

    KIND: ClassVar = "state"
    FROM: ClassVar = "run"
    TO: ClassVar = "@state"
