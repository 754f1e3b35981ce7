"""Formats of one file an episode: each written by whichever process is free, from recordings that it opened itself.

May not: know a format, or decide what may be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from labctl.exports.recordings import Recordings
from labctl.exports.selection import Chosen, Selection
from labctl.exports.workers import Job, Result, processes_for, write_all
from labctl.store.verified import in_passing

Say = Callable[[str], None]
Write = Callable[[Recordings, Chosen, Path], Result]  # a function of a module: other processes find it by name


_open: dict[str, Recordings] = {}  # in each process, of the export that it works for


def write_each(
    campaign: Path, selection: Selection, folder: Path, file: str, write: Write[Result], read_bytes: int, say: Say
) -> Sequence[Result]:
    """Write `file` ("{}.mcap": its name round the episode's) for every chosen episode; what `write` said of each.

    read_bytes: how much is read in all.

    Raises what `write` raises.
    """
    chosen = selection.episodes
    jobs = [Job(file.format(one.episode), (write, campaign, selection, one)) for one in chosen]
    found: list[Result] = []
    try:
        for number, result in enumerate(write_all(folder, jobs, _write, processes_for(len(jobs), read_bytes)), 1):
            found.append(result)
            say(f"{number}/{len(chosen)} {chosen[number - 1].episode}")
    finally:
        while _open:
            _open.popitem()[1].close()
    return found


def _write(path: Path, write: Write[Result], campaign: Path, selection: Selection, chosen: Chosen) -> Result:
    same = f"{campaign} {selection.about}"
    if same not in _open:
        with in_passing(campaign) as opened:
            _open[same] = Recordings(opened, selection)
    return write(_open[same], chosen, path)
