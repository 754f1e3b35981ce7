"""A person of another time: its rows of the operations table, frozen into a campaign when it is opened.

May not: read the earlier campaign or the table (`labctl.reporting.historical` does), or change what was frozen.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from labctl.core.event_bodies import CampaignOpened
from labctl.errors import BrokenRecord
from labctl.messages.historical import HistoricalEntry
from labctl.store.atomic_files import file_errors, replace_file
from labctl.store.lab_folder import Plan
from labctl.store.problem import Problem

FILE = "historical.csv"


@dataclass(frozen=True, slots=True)
class Frozen:
    """What is frozen: the rows as the text of a CSV file, and what the campaign's first entry says of them."""

    text: str
    entry: HistoricalEntry


class Said(TypedDict, total=False):
    """What a campaign's first entry has of it; nothing without one."""

    historical: HistoricalEntry


def freeze(plan: Plan, found: Frozen | None, folder: Path) -> Said:
    """Keep the rows in a campaign's folder. Raises InputError where the protocol names a historical reference and
    whoever opens it has not looked it up, StorageError.
    """
    named = plan.protocol.human and plan.protocol.human.reference
    if found is None:
        if named:
            text = "a historical reference is looked up by `labctl open`; open the campaign with it"
            raise plan.protocol.refusal(("human", "reference"), text, str(plan.path))
        return {}
    replace_file(folder / FILE, found.text.encode())
    return {"historical": found.entry}


def digest_of(text: str) -> str:
    """sha256 hex of the rows as they are kept."""
    return hashlib.sha256(text.encode()).hexdigest()


def rows_of(folder: Path, opened: CampaignOpened) -> list[Mapping[str, str]]:
    """The frozen rows; [] where there are none. Raises BrokenRecord for a file that is not the one that was frozen."""
    if problems := historical_problems(folder, opened):
        raise BrokenRecord(str(problems[0]))
    if "historical" not in opened:
        return []
    with file_errors(str(folder / FILE)):
        text = (folder / FILE).read_text("utf-8")
    return list(csv.DictReader(text.splitlines()))


def historical_problems(folder: Path, opened: CampaignOpened) -> list[Problem]:
    """What is wrong with the frozen rows of a campaign."""
    entry = opened.get("historical")
    if entry is None:
        return []
    path = folder / entry["file"]
    with file_errors(str(path)):
        there = path.is_file()
        found = digest_of(path.read_text("utf-8", errors="replace")) if there else ""
    if found == entry["sha256"]:
        return []
    said = "its rows are not the ones that were frozen at opening" if there else "the file is gone"
    return [Problem("changed historical reference", entry["file"], said)]
