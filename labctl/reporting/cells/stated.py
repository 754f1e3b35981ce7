"""What stands in the report of a joint campaign's part on its lab's word alone: what that lab opened beside it, and who
scored before passing the calibration.

May not: let a publication say more than its lab does, or open a seal.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

from labctl.clock import wall_ns
from labctl.core.record import Record
from labctl.people.qualifications import calibrated, qualifications
from labctl.reporting.file_drawer import THIS, drawer, name_in_list
from labctl.store.lab_folder import lab_with

OPENED = "opened by this lab, on its word"
EARLY = "scored before passing the calibration, on this lab's word"


def stated(folder: Path, record: Record) -> dict[str, dict[str, str]]:
    """By title, its rows: of a campaign by itself, or of a part of a joint one. Titles without rows are left out."""
    opened = drawer(folder.resolve().parent.parent, record)
    early = scored_too_early(folder, record) if "joint" in record.state.opened else {}
    return {title: of for title, of in {OPENED: opened, EARLY: early}.items() if of}


def opened_beside(said: Mapping[str, Mapping[str, str]], parts: Collection[Record]) -> dict[str, str]:
    """Of what a part's lab said, the rows of what it opened; parts: of the joint campaign, all of this report."""
    mine = {name_in_list(part.state.opened["campaign"], part.state.opened["commitment"]) for part in parts}
    return {name: THIS if name in mine else became for name, became in said.get(OPENED, {}).items()}


def scored_too_early(folder: Path, record: Record) -> dict[str, str]:
    """By assessor, a line for each who scored before passing the calibration on common videos, by the lab's own journal
    of it (`labctl qualify`); none where the lab has none.
    """
    home = lab_with(folder)
    events = [] if home is None else qualifications(home)
    if not events:
        return {}
    passed = {name: one["since"] for name, one in calibrated(events).items() if one["passed"]}
    lines: dict[str, str] = {}
    scored: dict[str, list[str]] = {}
    for _, episode in record.scored:
        if episode.scored_by and episode.scored:
            scored.setdefault(episode.scored_by, []).append(episode.scored.wall)
    for who, walls in sorted(scored.items()):
        since = passed.get(who)
        early = sum(since is None or wall_ns(wall) < wall_ns(since) for wall in walls)
        if early:
            of = f"{early} of {len(walls)} episodes"
            lines[who] = f"{who} scored {of} before passing the calibration on common videos"
    return lines
