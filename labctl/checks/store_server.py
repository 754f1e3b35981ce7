"""Whether the lab's PostgreSQL server answers, where lab.toml names one: a line of `labctl doctor`.

May not: write to it, wait longer than lab.toml lets a copy wait, or call a server that is away a failure: no run waits
for it.
"""

from __future__ import annotations

from pathlib import Path

from labctl.checks.computer import Check
from labctl.clock import MILLISECOND, MonotonicClock
from labctl.errors import LabctlError, MissingExtra, StateError, how_to_install
from labctl.store.lab_folder import lab_if_any, settings_of
from labctl.store.server.connecting import FORM, Server, place

NAME = "store server"


def lab_here(lab: Path | None) -> Path | None:
    """As `lab_if_any`; None also in a folder from which a lab was moved, where none is named."""
    try:
        return lab_if_any(lab)
    except StateError:
        if lab is not None:
            raise
        return None


def check_store(lab: Path | None) -> list[Check]:
    """One line for [store] url, none without it or without a lab. Raises InputError for a lab.toml that is wrong."""
    folder = lab_here(lab)
    table = settings_of(folder).store if folder is not None else None
    if table is None:
        return []
    where, clock = place(table.url), MonotonicClock()
    began_ns = clock.now_ns()
    try:
        Server(table.url, table.timeout_s, reading=True).close()
    except MissingExtra as error:
        return [Check(NAME, "warn", f"{where} cannot be asked here: {error}", how_to_install("postgres"))]
    except LabctlError as error:
        said = str(error).removeprefix(f"{where}: ")
        return [Check(NAME, "warn", f"{where}: {said}", "runs go on without it; then: labctl database copy")]
    took = (clock.now_ns() - began_ns) // MILLISECOND
    return [Check(NAME, "ok", f"{where} answers in {took} ms, its tables are {FORM!r}")]
