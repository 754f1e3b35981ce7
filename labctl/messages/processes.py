"""Messages about processes themselves, and between consoles and the run.

May not: show an arm of the experiment: `state` is `core.published_state.PublishedState`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from labctl.messages.typed import Typed
from labctl.plain import Json


@dataclass(frozen=True, slots=True)
class Hello(Typed, kind="hello", sender="any", to="run"):
    """A process begins. Only a hello brings a node back."""

    pid: int | None = None


@dataclass(frozen=True, slots=True)
class Beats(Typed, kind="beats", sender="any", to="run"):
    """Every 0.2 s (0.5 s in simulated time): these nodes turn."""

    names: Sequence[str]


@dataclass(frozen=True, slots=True)
class Failing(Typed, kind="failing", sender="any", to="run"):
    """The last message of a process that a device has failed."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Spawn(Typed, kind="spawn", sender="run", to="@host"):
    """Start this node: the supervisor's or the loop's work."""

    name: str


@dataclass(frozen=True, slots=True)
class Kill(Typed, kind="kill", sender="run", to="@host"):
    """End this node at once."""

    name: str


@dataclass(frozen=True, slots=True)
class Exited(Typed, kind="exited", sender="@host", to="run"):
    """A process has ended; asked: by a `kill`."""

    name: str
    reason: str
    asked: bool = False


@dataclass(frozen=True, slots=True)
class Shutdown(Typed, kind="shutdown", sender="any", to="any"):
    """Finish: the robot stops and its node stays until it stands, the recorder until it is quiet."""


@dataclass(frozen=True, slots=True)
class Suspended(Typed, kind="suspended", sender="@host", to="any"):
    """This computer was suspended for so long, ns: a lid was closed. The monotonic clock stood still, the world did
    not. Each process finds it for its own nodes, before any other mail.
    """

    for_ns: int


@dataclass(frozen=True, slots=True)
class EndRun(Typed, kind="end_run", sender="console", to="run"):
    """A person ends the run: after a trial that runs and its score, or (now) at once. Answered by a `reply`."""

    who: str
    id: str = ""
    now: bool = False


@dataclass(frozen=True, slots=True)
class CommandSent(Typed, kind="command", sender="operator, console", to="run"):
    """What a person orders; `core.commands` has each verb's args, and refuses what does not fit; keys: how many were
    pressed since the last one.
    """

    verb: str
    who: str
    role: str
    id: str | None = None
    version: int | None = None
    args: Mapping[str, Json] | None = None
    keys: int | None = None


@dataclass(frozen=True, slots=True)
class Reply(Typed, kind="reply", sender="run", to="operator, console"):
    """The command of this id was carried out (note: a remark), or why not; version: of the state after it."""

    id: Json
    ok: bool
    version: int
    error: str | None = None
    kind: str | None = None
    note: str | None = None


@dataclass(frozen=True, slots=True)
class State(Typed, kind="state", sender="run", to="@state"):
    """`core.published_state.PublishedState`; a console or the simulated operator reads it."""
