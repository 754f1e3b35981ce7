"""Formats of one file an episode, or a stream: each written by whichever process is free, from recordings that it
opened itself.

May not: know a format, or decide what may be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from labctl.exports.recordings import Recordings
from labctl.exports.selection import Chosen, Selection
from labctl.exports.workers import Job, Result, processes_for, write_all
from labctl.pieces import HERE, Place
from labctl.store.verifying.verified import in_passing

Say = Callable[[str], None]
Part = TypeVar("Part")
# Functions of a module: other processes find them by name.
WriteOne = Callable[[Recordings, Part, Path], Result]
Write = WriteOne[Chosen, Result]


_open: dict[str, Recordings] = {}  # in each process, of the export that it works for


def write_each(
    campaign: Path,
    selection: Selection,
    folder: Path,
    file: str,
    write: Write[Result],
    read_bytes: int,
    say: Say,
    place: Place = HERE,
) -> Sequence[Result]:
    """Write `file` ("{}.mcap": its name round the episode's) for every chosen episode; what `write` said of each.

    read_bytes: how much is read in all; place: where it is written.

    Raises what `write` and `write_all` raise.
    """
    parts = [(one, file.format(one.episode)) for one in selection.episodes]
    return write_each_of(campaign, selection, folder, parts, write, read_bytes, say, lambda one: one.episode, place)


def write_each_of(
    campaign: Path,
    selection: Selection,
    folder: Path,
    files: Sequence[tuple[Part, str]],
    write: WriteOne[Part, Result],
    read_bytes: int,
    say: Say,
    called: Callable[[Part], str] = str,
    place: Place = HERE,
) -> Sequence[Result]:
    """Write the file of every part, in order; what `write` said of each. called: what a part is called in what is said.
    Else as `write_each`.
    """
    jobs = [Job(file, (write, campaign, selection, part)) for part, file in files]
    found: list[Result] = []
    try:
        every = write_all(folder, jobs, _write, processes_for(len(jobs), read_bytes), place)
        for number, ((part, _), result) in enumerate(zip(files, every, strict=True), 1):
            found.append(result)
            say(f"{number}/{len(files)} {called(part)}")
    finally:
        _close()
    return found


def _write(path: Path, write: WriteOne[Part, Result], campaign: Path, selection: Selection, part: Part) -> Result:
    same = f"{campaign} {selection.about}"
    if same not in _open:
        _close()  # a worker of a cluster outlives the export that it worked for
        with in_passing(campaign) as opened:
            _open[same] = Recordings(opened, selection)
    return write(_open[same], part, path)


def _close() -> None:
    while _open:
        _open.popitem()[1].close()
