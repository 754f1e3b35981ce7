"""The control port of an emulator: a scene to stage and to sense, faults to inject. A real controller has none of this.

May not: be reached from another host, or stop the emulator's loop: each client has a thread of its own.

TCP, port 13370 of the emulator's address, one JSON object a line, one line of answer.
"""

from __future__ import annotations

import contextlib
import json
import os
import socketserver
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from labctl.drivers.sim.connection import ThreadedServer
from labctl.drivers.sim.control_link import MOST_BYTES, PORT
from labctl.drivers.sim.plant import SimulatedPlant
from labctl.errors import InputError, LabctlError
from labctl.plain import Json


@dataclass(frozen=True, slots=True)
class Number:
    """An argument of a fault: a number within bounds."""

    least: float = 0.0
    most: float = 1e6
    whole: bool = False

    def taken(self, value: Json) -> float | None:
        """The number, or None for a value that is none of these."""
        kind = int if self.whole else int | float
        if not isinstance(value, kind) or isinstance(value, bool) or not self.least <= value <= self.most:
            return None
        return value if self.whole else float(value)

    def __str__(self) -> str:
        return f"a {'whole ' if self.whole else ''}number from {self.least:g} to {self.most:.10g}"


@dataclass(frozen=True, slots=True)
class Words:
    """An argument of a fault: any text, or one of these."""

    among: Sequence[str] = ()

    def taken(self, value: Json) -> str | None:
        """The text, or None for a value that is none of these. What stands on a command line may read as a number."""
        text = str(value).lower() if isinstance(value, bool) else str(value)
        kind = isinstance(value, str | int | float) and text.isprintable()  # half a character is sent to no client
        return text if kind and (not self.among or text in self.among) else None

    def __str__(self) -> str:
        return f"one of {', '.join(self.among)}" if self.among else "a line of text"


Arguments = Mapping[str, Mapping[str, Number | Words]]  # by the names of faults; one that is not in it takes none


def checked_fault(name: str, given: Json, faults: Mapping[str, str], arguments: Arguments) -> dict[str, Any]:
    """The arguments that a fault was given, as what they have to be: what is wrong is said to whoever asked, and the
    loop that obeys meets nothing else. Raises InputError.
    """
    if name not in faults:
        raise InputError(f"no fault {name!r}; known: {', '.join(faults)}")
    if not isinstance(given, Mapping):
        raise InputError(f"{name}: the arguments of a fault are an object of names and values")
    known, found = arguments.get(name, {}), dict[str, Any]()
    for key, value in given.items():
        if key not in known:
            raise InputError(f"{name} has no argument {key!r}; known: {', '.join(known) or 'none'}")
        found[key] = known[key].taken(value)
        if found[key] is None:
            raise InputError(f"{name}: {key} must be {known[key]}, found {str(value)[:40]!r}")
    return found


class Emulator(Protocol):
    """What every emulator is. `inject` and `clear` (a person at the robot ends what stands) are called from any
    thread; `run` serves in the calling thread until `until()` is true. `inject` raises InputError for what is no fault
    of this emulator (`checked_fault`). Both are obeyed by `run` a moment later: `stats` says how many were ("obeyed").
    """

    name: str
    ports: Mapping[str, int]
    faults: Mapping[str, str]
    plant: SimulatedPlant

    def inject(self, name: str, args: Mapping[str, Any]) -> None: ...
    def clear(self) -> None: ...
    def stats(self) -> dict[str, Any]: ...
    def run(self, until: Callable[[], bool]) -> None: ...
    def close(self) -> None: ...


class ControlServer:
    """Answers control requests until closed. `quit_asked` is set by a client's "quit"."""

    def __init__(self, host: str, emulator: Emulator) -> None:
        self.quit_asked = threading.Event()
        verbs = _verbs(emulator, self.quit_asked)

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with contextlib.suppress(ConnectionError):  # a client that is killed resets its connection
                    self._talk()

            def _talk(self) -> None:
                while line := self.rfile.readline(MOST_BYTES + 1):
                    answer = _answer(verbs, line)
                    self.wfile.write(json.dumps(answer).encode() + b"\n")
                    if len(line) > MOST_BYTES:
                        return

        try:
            self._server = ThreadedServer(host, PORT, Handler, "control")
        except OSError as error:
            raise not_bound(f"{host}:{PORT}", error) from error

    def close(self) -> None:
        self._server.close()


Verb = Callable[[Mapping[str, Any]], dict[str, Any] | None]  # a request's body -> what is answered beside "ok"


def _verbs(emulator: Emulator, quit_asked: threading.Event) -> dict[str, Verb]:
    plant = emulator.plant
    return {
        "stage": lambda body: plant.stage(body["condition"], int(body["seed"])),
        "sense": lambda body: plant.sense(),
        "fixture": lambda body: {"name": emulator.name, "fixture": plant.fixture.model_dump(mode="json")},
        "stats": lambda body: emulator.stats(),
        "faults": lambda body: {"faults": dict(emulator.faults)},
        "fault": lambda body: emulator.inject(str(body["name"]), body.get("args", {})),
        "clear": lambda body: emulator.clear(),
        "quit": lambda body: quit_asked.set(),
    }


def _answer(verbs: Mapping[str, Verb], line: bytes) -> dict[str, Any]:
    if len(line) > MOST_BYTES:
        return {"ok": False, "error": f"a request is at most {MOST_BYTES} bytes"}
    try:
        body = json.loads(line)
        verb = verbs.get(str(body.get("do"))) if isinstance(body, dict) else None
        if verb is None:
            return {"ok": False, "error": f'give {{"do": …}} with one of: {", ".join(verbs)}'}
        return {"ok": True, **(verb(body) or {})}
    except LabctlError as error:
        return {"ok": False, "error": str(error)}
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        return {"ok": False, "error": f"not a request that is understood: {type(error).__name__}: {error}"}


def not_bound(where: str, error: OSError) -> InputError:
    """What to say of an address on which an emulator cannot serve. asyncio's own words repeat the address."""
    reason = os.strerror(error.errno) if error.errno else error
    remedy = "another emulator runs there: end it, or give another --host (127.x.y.z)"
    return InputError(f"{where} cannot be bound ({reason}); {remedy}")
