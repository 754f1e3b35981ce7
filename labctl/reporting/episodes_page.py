"""The page of episodes that goes with a report, and what a report says of linked campaigns as tables of that page.

May not: estimate: its numbers are those of `linked`, in the report's own words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from labctl.analysis.episode_facts import LinkedPairs
from labctl.core.events import Event
from labctl.pages.episode_rows import Grid
from labctl.pages.episodes import page_files

PAGE, VIDEOS = "episodes.html", "episodes"
CAMERAS = 1  # of each episode; `labctl episodes --page` shows all of them


def page_of(
    folders: Sequence[Path],
    out: Path,
    linked: LinkedPairs | None = None,
    without: Mapping[Path, Mapping[str, str]] = MappingProxyType({}),
    known: Mapping[Path, Sequence[Event]] = MappingProxyType({}),
) -> dict[str, bytes]:
    """The page of verified campaigns' episodes and their videos, by their names in the report's folder `out`: of one,
    of two that are linked, or of the parts of a joint one. without, known: as `page_files` has them.
    """
    given = {"sure": True, "without": without, "cameras": CAMERAS, "known": known}
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
