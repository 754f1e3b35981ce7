"""Practice: a person drives a cell's robot by hand, through the processes, limits and lease of a trial.

May not: open a campaign, record anything, or start while a campaign holds the cell.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import load
from labctl.errors import InputError
from labctl.nodes.practice import Ended, PracticeNode, View
from labctl.plain import Json
from labctl.runtime.hosting.cell_nodes import NodeSpec, lacks_terminal, stand_in, with_terminal
from labctl.runtime.hosting.lease_keeper import terms_of
from labctl.runtime.hosting.socket_folder import socket_folder
from labctl.store.lab_folder import MARK, find_lab, read_cell
from labctl.store.locks import LOCKS, cell_lock_in
from labctl.user_cache import made_in_cache

VERB = "teleop"


def practise(
    path: Path, show: Callable[[View], None], *, lab: Path | None = None, home: bool = False, recover: bool = False
) -> Ended:
    """Drive the cell of the file `path` by hand until the person, a device or a signal ends it. `show` gets what the
    line is to say; home: the robot goes where episodes begin first, and a simulated cell sets its scene; recover: a
    person has looked at a robot that had stopped.

    Raises InputError for a cell without [teleop] or with a device that cannot be built, MissingExtra, StateError when
    the cell is in use.
    """
    from labctl.runtime.hosting.supervisor import Supervisor
    from labctl.runtime.hosting.transport import ProcessHost

    cell = read_cell(path)
    cell, fixture = with_terminal(cell, _own_terminal(cell, path)), stand_in()
    _check(cell, path, fixture)
    clock, place = MonotonicClock(), _place(path, lab)
    with ExitStack() as stack:
        stack.enter_context(cell_lock_in(place, cell.cell.name, f"labctl {VERB}", clock))
        sockets = stack.enter_context(socket_folder())
        locks = place / LOCKS / cell.cell.name  # a killed practice's robot keeps the next one waiting till it has ended
        locks.mkdir(parents=True, exist_ok=True)
        spec = NodeSpec(cell=cell, fixture=fixture, folder=sockets, durable=False, locks=locks)
        supervisor = Supervisor(spec, sockets, sockets)
        stack.callback(supervisor.end_all)
        condition = _condition(fixture) if home else None
        node = PracticeNode(round(cell.lease.duration_s * SECOND), show, home=condition, recover=recover)
        host = ProcessHost([node], sockets, clock, lease=terms_of(cell.lease))
        host.run(supervisor)
    return node.ended


def _own_terminal(cell: Cell, path: Path) -> str | None:
    """The terminal that this process sits at, where the cell's keyboard is to be that one."""
    if not lacks_terminal(cell):
        return None
    for stream in range(3):
        with suppress(OSError):
            return os.ttyname(stream)
    raise InputError(
        "[teleop] is a keyboard, and this is no terminal: start it in one, or name one as terminal in [teleop.options]",
        where=str(path),
    )


def _check(cell: Cell, path: Path, fixture: Fixture) -> None:
    """Refuse before anything starts what could not work. Connects to nothing."""
    if cell.teleop is None:
        raise InputError(
            'has no [teleop] table, so nothing says what to drive it with; add [teleop] with device = "spacemouse", '
            '"gamepad", "gello" or "keyboard"',
            where=str(path),
        )
    try:
        load("teleop", {}, cell=cell, fixture=fixture)
    except InputError as error:
        raise InputError(f"[teleop]: {error}", where=str(path)) from None


def _place(path: Path, lab: Path | None) -> Path:
    """The lab whose locks count: the one given, else the one that holds the cell file, else the one found from here.
    Without any, a folder of this user's, so that two practices exclude each other.
    """
    if lab is None:
        for folder in path.resolve().parents:
            if (folder / MARK).is_file():
                return folder
    try:
        return find_lab(lab)
    except InputError:
        if lab is not None:
            raise
        return made_in_cache()


def _condition(fixture: Fixture) -> dict[str, Json]:
    """What a simulated cell sets out: the first object in the first layout; a real robot only goes home."""
    thing, layout = fixture.object[0].name, fixture.layout[0].name
    return {"id": f"{thing}/{layout}", "object": thing, "layout": layout, "axes": [], "tags": [], "items": 4}
