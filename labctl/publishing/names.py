"""Names and paths that a stranger's journal says, before anything goes by one of them.

May not: open what a name names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from labctl.clock import wall_ns
from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.core.events import Event, Kind
from labctl.errors import LabctlError
from labctl.messages.body_parts import GapBody
from labctl.publishing.guard import check_path
from labctl.publishing.leaving_out import files_of
from labctl.publishing.manifest import PLAIN_NAME
from labctl.store.problem import Problem

FIRST_YEAR, LAST_YEAR = 1970, 2200  # a computer without a battery begins in the first
TIME = f"labctl writes YYYY-MM-DDTHH:MM:SS.ffffff+00:00, of {FIRST_YEAR} to {LAST_YEAR}"
_WRITTEN = re.compile(r"([0-9]{4})-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{6})?\+00:00")


def name_problems(events: Sequence[Event]) -> list[Problem]:
    """Ids of trials, episodes, cameras and cells that are no plain names, and files that do not lie in the campaign's
    folder: of these a report or a page makes names of files.
    """
    found: list[Problem] = []
    for what, name in dict.fromkeys(_names(events)):
        if PLAIN_NAME.fullmatch(name) is None:
            found.append(
                Problem("no plain name", "journal.db", f"{what} {name[:60]!r}: letters, digits, '.', '_', '-'")
            )
    for event in events:
        if not is_time(event.wall):
            text = f"entry {event.seq} was written at {event.wall!r:.60}: {TIME}"
            found.append(Problem("no time", "journal.db", text))
            break
    for name in dict.fromkeys(_files(events)):
        try:
            check_path(name, "its journal names")
        except LabctlError as error:
            found.append(Problem("a file elsewhere", "journal.db", str(error)))
    return found


def is_time(wall: str) -> bool:
    """Whether it is a time as labctl writes it, of a plausible year: feeds are sorted by it, and readers of feeds and
    arithmetic over time zones take no other.
    """
    try:
        wall_ns(wall)
    except (TypeError, ValueError):
        return False
    written = _WRITTEN.fullmatch(wall)
    return written is not None and FIRST_YEAR <= int(written[1]) <= LAST_YEAR


def _names(events: Sequence[Event]) -> Iterator[tuple[str, str]]:
    joint = body_of(events[0], CampaignOpened).get("joint")
    if joint is not None:
        yield "cell", joint["cell"]
    for event in events:
        for what, name in (("trial", event.trial), ("episode", event.episode)):
            if name is not None:
                yield what, name
        if event.kind == Kind.RECORDING_SEALED:
            for camera in event.body["videos"]:
                yield "camera", camera


def _files(events: Sequence[Event]) -> Iterator[str]:
    for _, _, name in files_of(events):
        yield name
    for event in events:
        if event.kind == Kind.GAP:
            yield from (str(entry["file"]) for entry in body_of(event, GapBody).get("files") or ())
    historical = body_of(events[0], CampaignOpened).get("historical")
    if historical is not None:
        yield historical["file"]
