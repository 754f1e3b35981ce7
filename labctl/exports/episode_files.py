"""Formats of one file an episode: each written by whichever process is free, from recordings that it opened itself.

May not: know a format, or decide what may be shown.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from labctl.exports.recordings import Recordings
from labctl.exports.selection import Chosen, Selection
from labctl.exports.workers import Bench, Job, Result, processes_for, write_all
from labctl.store.campaign import Campaign

Say = Callable[[str], None]
Write = Callable[[Recordings, Chosen, Path], Result]  # a function of a module: other processes find it by name


def write_each(
    campaign: Path, selection: Selection, folder: Path, ending: str, write: Write, read_bytes: int, say: Say
) -> Sequence[Result]:
    """Write EPISODE`ending` for every chosen episode; what `write` said of each. read_bytes: how much is read in all.

    Raises what `write` raises.
    """
    chosen = selection.episodes
    jobs = [Job(one.episode + ending, (one,)) for one in chosen]
    bench = Bench(partial(_write, write), _opened, (campaign, selection), processes_for(len(jobs), read_bytes))
    found = []
    for number, result in enumerate(write_all(folder, jobs, bench), 1):
        found.append(result)
        say(f"{number}/{len(chosen)} {chosen[number - 1].episode}")
    return found


def _opened(campaign: Path, selection: Selection) -> Recordings:
    with Campaign.open(campaign) as opened:
        return Recordings(opened, selection)


def _write(write: Write, recordings: Any, path: Path, chosen: Chosen) -> Result:
    return write(recordings, chosen, path)
