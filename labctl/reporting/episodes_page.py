"""The page of episodes that goes with a report, and what a report says of linked campaigns as tables of that page.

May not: estimate: its numbers are those of `linked`, in the report's own words.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from labctl.analysis.episode_facts import LinkedPairs
from labctl.core.events import Event
from labctl.pages.episodes import Grid, page_files

PAGE, VIDEOS = "episodes.html", "episodes"
CAMERAS = 1  # of each episode; `labctl episodes --page` shows all of them


def page_of(
    folder: Path,
    out: Path,
    linked: LinkedPairs | None,
    earlier: Path | None,
    without: Collection[str],
    known: Sequence[Event] = (),
) -> dict[str, bytes]:
    """The page of a verified campaign's episodes and its videos, by their names in the report's folder `out`; with the
    earlier campaign's where the report is one of two. known: the campaign's journal, where whoever asks has read it.
    """
    folders = [*([earlier] if earlier else []), folder]
    given = {"sure": True, "without": without, "cameras": CAMERAS, "known": {folder: known}}
    return page_files(folders, PAGE, VIDEOS, out, beside=grids(linked), **given)


def grids(linked: LinkedPairs | None) -> list[Grid]:
    """The report's section on linked campaigns as tables of a page; none for one campaign."""
    from labctl.analysis.report.sections import linked_section

    section = linked_section.section(linked)
    if section is None:
        return []
    found = [Grid(section.title, (), (), section.note)]
    for title, table in section.tables:
        found.append(Grid(title, [column.label for column in table.columns], table.rows, table.note))
    return found
