"""How a command ends that does not end well: what is said of it, in a line and with --json, and the exit code.

May not: import anything heavy, or decide what is an error (`labctl.errors` does).
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
import traceback
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, entry_points, metadata

import click

from labctl.errors import EXITS, Exit, InputError, LabctlError
from labctl.extras import missing_extra

SCHEMA = "labctl.error/1"
JSON = "--json"
DRIVERS = "labctl.drivers"  # the group of entry points by which other packages register theirs
ADDRESSES = ("issues", "bug tracker", "repository", "source", "homepage")  # of [project.urls], the first that is there
NO_SUCH_PLACE = (errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.ENAMETOOLONG, errno.ELOOP)
OF_THE_PROGRAM = (errno.EBADF, errno.EFAULT, errno.EINVAL, errno.ENOSYS, errno.ENOTSOCK, *NO_SUCH_PLACE)
"""What no machine can be blamed for; a place that is not there, where no file is named."""
IN_ORDER = frozenset(
    {
        *("analyze", "backup", "bugreport", "compare", "database", "experiment", "export", "import", "lab", "media"),
        *("plan", "power", "publish", "rates", "report", "restore", "scene", "site", "static", "verify"),
    }
)
"""Verbs that a kill ends as Ctrl-C does, so that nothing half-written stays: what computes or writes and then is done.
What serves, shows or moves a robot answers signals itself.
"""
_WHERE = re.compile(r"(?P<file>.+?)(?::(?P<line>\d+))?")


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a command failed. where: "file" or "file:line", as far as it is known."""

    exit: Exit
    message: str
    where: str | None = None

    def as_json(self) -> dict[str, str | int | None]:
        """What --json prints of it; its shape is `labctl.cli.contract.forms.Failed`."""
        found = _WHERE.fullmatch(self.where or "")
        return {
            "schema": SCHEMA,
            "kind": self.exit.kind,
            "exit_code": int(self.exit),
            "message": self.message,
            "file": found["file"] if found else None,
            "line": int(found["line"]) if found and found["line"] else None,
            "remedy": self.message.partition("; ")[2] or None,
        }


def wants_json(arguments: Sequence[str]) -> bool:
    """Whether a command line asks for JSON, so that an error is JSON too."""
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    return JSON in options


def end_in_order() -> None:
    """From here on a kill (SIGTERM) is answered as Ctrl-C is, in the main thread."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def failure(error: BaseException, typed: str = "labctl") -> Failure | None:
    """What a user can act on; None for a bug. What a database says of itself is a StorageError already
    (`labctl.store.database_backend.storage_errors`). typed: what was asked, up to its verb.
    """
    error = missing_extra(error, typed) or error
    if isinstance(error, LabctlError):
        return Failure(error.exit_code, _line(error), error.where if isinstance(error, InputError) else None)
    if isinstance(error, click.ClickException):
        return Failure(Exit.BAD_INPUT, _usage(error))
    if isinstance(error, (KeyboardInterrupt, click.Abort)):
        return Failure(Exit.INTERRUPTED, "interrupted")
    if isinstance(error, OSError):
        return _of_file(error)
    return None


def bug(error: BaseException) -> Failure:
    """What is said of any other error; its traceback is shown before."""
    what = f"{type(error).__name__}: {' '.join(str(error).split())}"
    if (theirs := _strangers(error)) is not None:
        place, package = theirs
        return Failure(Exit.BUG, f"this is a bug in {place} ({what}); {package}; report it to whoever made that")
    gather = "gather what helps with: labctl bugreport CAMPAIGN"
    return Failure(Exit.BUG, f"this is a bug in labctl ({what}); {gather}; report it with that to {issues()}")


def _strangers(error: BaseException) -> tuple[str, str] | None:
    """Where an error began, and whose that is, if it was in a driver that another package registers."""
    theirs = {point.module.partition(".")[0]: point for point in entry_points(group=DRIVERS)}
    for frame, line in reversed([*traceback.walk_tb(error.__traceback__)]):
        module = str(frame.f_globals.get("__name__", ""))
        top = module.partition(".")[0]
        if top == "labctl":
            return None
        if (point := theirs.get(top)) is not None:
            package = f" {point.dist.name}" if point.dist is not None else " of its own"
            return f"{module}, line {line}", f"the driver {point.name} is of the package{package}"
    return None


def issues() -> str:
    """Where bugs are reported: of [project.urls], as the installed package has it."""
    named: dict[str, str] = {}
    with suppress(PackageNotFoundError):
        for line in metadata("labctl").get_all("Project-URL") or []:
            name, _, address = line.partition(",")
            named[name.strip().lower()] = address.strip()
    return next((named[name] for name in ADDRESSES if name in named), "whoever gave you this package")


def leave(failed: Failure, *, as_json: bool) -> int:
    """Say it: a line for people on standard error, and with --json one document on standard output; the exit code."""
    print(f"error: {failed.message}", file=sys.stderr)
    try:
        if as_json:
            print(json.dumps(failed.as_json(), indent=2, ensure_ascii=False))
        sys.stdout.flush()
    except BrokenPipeError:
        raise
    except OSError:  # the disk that is full is the output's own; the line above says what failed
        with suppress(OSError):  # what Python still holds would be complained of while flushing at exit
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return int(failed.exit)


def table() -> list[tuple[str, str, str]]:
    """Exit codes, for people: number, kind, when."""
    return [(str(int(code)), code.kind.replace("_", " "), when) for code, when in EXITS.items()]


def _of_file(error: OSError) -> Failure | None:
    name = error.filename or "a file"
    where = str(error.filename) if error.filename else None
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        line = f"{name}: no space left; what was acknowledged is safe; free some disk and run the command again"
        return Failure(Exit.UNAVAILABLE, line, where)
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        line = f"{name}: not allowed ({error.strerror}); check its owner and permissions"
        return Failure(Exit.UNAVAILABLE, line, where)
    if error.errno in NO_SUCH_PLACE and error.filename:
        return Failure(Exit.BAD_INPUT, f"{name}: {error.strerror}", where)
    if error.errno is None or error.errno in OF_THE_PROGRAM:
        return None
    line = f"{name}: {error.strerror or error}; this machine says so, not labctl: put it right and run it again"
    return Failure(Exit.UNAVAILABLE, line, where)


def _line(error: BaseException) -> str:
    return " ".join(str(error).split())


def _usage(error: click.ClickException) -> str:
    context = error.ctx if isinstance(error, click.UsageError) else None
    said = " ".join(error.format_message().split())
    return f"{said} (see: {context.command_path} --help)" if context else said
