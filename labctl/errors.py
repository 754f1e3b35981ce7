"""Every error labctl raises on purpose. Catch `LabctlError` to catch them all; anything else is a bug.

LabctlError                 one line for a person, with the remedy
├── InputError              a file or an argument is wrong: file, line, found, allowed, what to do
│   ├── OptionError         a driver's option is wrong; where the option stands is for whoever read the file
│   ├── TableError          a row of an operations table breaks a rule
│   ├── QuestionError       what was asked of the statistics cannot be: counts, rates or sizes out of range
│   ├── LinkError           two campaigns cannot be compared
│   └── ReportError         a report cannot be written where it was asked to
├── StateError              the campaign is not in a state that allows this
│   ├── StaleCommand        the screen that sent a command showed an older state
│   └── Held                a run without a person ended at a hold: somebody has to look first
├── BrokenRecord            the chain, a digest or a commitment does not hold
├── StorageError            full disk, unreadable folder, a database that does not answer
│   └── Busy                another program holds the database: nothing is said of what is in it
├── Unreachable             a server of somebody else's does not answer
├── WorkersLost             processes or a cluster that worked for a command are gone; what they finished is kept
├── MissingExtra            an optional dependency is not installed
└── DeviceError             a device refused, stopped or vanished
    ├── DeviceLost          no answer: link, process or power
    └── DeviceRefused       it answered no

`Exit` is what a command leaves its process with; each class says which is its own.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from enum import IntEnum
from typing import TypeAlias

_Again: TypeAlias = "tuple[Callable[..., LabctlError], tuple[type[LabctlError], *tuple[str, ...]], dict[str, str]]"


class Exit(IntEnum):
    """What a command leaves its process with. From 65 on numbers of sysexits.h, from 128 on those of a shell."""

    DONE = 0
    REFUSED = 1
    BAD_INPUT = 2
    BROKEN_RECORD = 65  # EX_DATAERR
    UNAVAILABLE = 69  # EX_UNAVAILABLE
    BUG = 70  # EX_SOFTWARE
    HELD = 75  # EX_TEMPFAIL
    INTERRUPTED = 130
    UNREAD = 141

    @property
    def kind(self) -> str:
        """Its name in what --json prints of an error."""
        return self.name.lower()


EXITS: dict[Exit, str] = {
    Exit.DONE: "done",
    Exit.REFUSED: "not now or not so: the campaign's state, or what was found (verify, doctor) says no",
    Exit.BAD_INPUT: "a file, an option or an installation is wrong: put it right first",
    Exit.BROKEN_RECORD: "a record does not hold; labctl verify, which exits with 1, names what is broken",
    Exit.UNAVAILABLE: "a locked database, a full disk, a lost device, a server that is away: later again",
    Exit.BUG: "a bug in labctl; labctl bugreport gathers what its report needs",
    Exit.HELD: "a run without a person ended at a hold: somebody has to look first",
    Exit.INTERRUPTED: "Ctrl-C ended it before its end, or a kill what computes or writes; a run ends in order, with 0",
    Exit.UNREAD: "whoever read the output left",
}


def in_words(error: BaseException) -> str:
    """An error of reading a form, for people: which key it lacks, or what its library says."""
    if isinstance(error, KeyError):
        return f"it lacks {error.args[0]!r}" if error.args else "it lacks a key"
    return " ".join(str(error).split()) or type(error).__name__


def one_line(text: str) -> str:
    """The text with its line ends as blanks and every other control character written out: what stands in somebody
    else's file ends no line, and is no command to a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else " " if c in "\n\r\t" else f"\\x{ord(c):02x}" for c in text)


class LabctlError(Exception):
    """Base of all deliberate errors; `str(error)` is one line that says what to do."""

    exit_code = Exit.REFUSED

    def __init__(self, message: str = "") -> None:
        super().__init__(one_line(message))

    def __reduce__(self) -> _Again:
        """So that a further process can hand it on, whatever its class is made from."""
        return self.__class__.__new__, (self.__class__, *self.args), self.__dict__


class InputError(LabctlError):
    """A user's file or argument is wrong. `where` is `file:line` when known."""

    exit_code = Exit.BAD_INPUT

    def __init__(self, message: str, *, where: str | None = None) -> None:
        self.where = where
        super().__init__(f"{where}: {message}" if where else message)


class OptionError(InputError):
    """An option of a driver is wrong. `at` is its place in the table of options, `message` the line without a file."""

    def __init__(self, message: str, at: tuple[str | int, ...]) -> None:
        self.message, self.at = message, at
        super().__init__(message)


class TableError(InputError):
    """The table breaks a rule at `where`, which is `file:line`."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(problem, where=where)


class QuestionError(InputError):
    """What was asked cannot be: counts that cannot be, rates out of range, sizes too small."""


class LinkError(InputError):
    """The campaigns cannot be compared."""


class ReportError(InputError):
    """The report cannot be written where it was asked to."""


class StateError(LabctlError):
    """The act is not allowed in this state."""


class StaleCommand(StateError):
    """A command carried a state version older than the state it would act on."""


class Held(StateError):
    """A run that nobody attends cannot go on before a person has looked."""

    exit_code = Exit.HELD


class BrokenRecord(LabctlError):
    """Something recorded does not match its digest, chain or commitment."""

    exit_code = Exit.BROKEN_RECORD


class StorageError(LabctlError):
    """The file system or database will not do what is asked."""

    exit_code = Exit.UNAVAILABLE


class Busy(StorageError):
    """Another program holds the database; what is in it could not be looked at."""


class Unreachable(LabctlError):
    """A server does not answer, or not now."""

    exit_code = Exit.UNAVAILABLE


class WorkersLost(LabctlError):
    """Processes that worked for a command were killed again and again, or their scheduler went away."""

    exit_code = Exit.UNAVAILABLE


class MissingExtra(LabctlError):
    """An optional dependency is needed; the message names the pip line."""

    exit_code = Exit.BAD_INPUT

    def __init__(self, extra: str, what: str) -> None:
        super().__init__(f"{what} needs an optional dependency: {how_to_install(extra)}")


def how_to_install(extra: str, python: tuple[int, ...] = sys.version_info[:2]) -> str:
    """What brings an extra to this Python, in one line."""
    if extra == "ur" and python >= (3, 13):
        return (
            f"PyPI has no ur_rtde for Python {python[0]}.{python[1]}: use Python 3.11 or 3.12, or build it "
            "(Debian: apt-get install g++ cmake python3-dev libboost-all-dev; then pip install ur_rtde)"
        )
    return f"pip install 'labctl[{extra}]'"


class DeviceError(LabctlError):
    """A device did not do what was asked."""

    exit_code = Exit.UNAVAILABLE


class DeviceLost(DeviceError):
    """A device stopped answering."""


class DeviceRefused(DeviceError):
    """A device answered no."""
