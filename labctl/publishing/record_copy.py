"""A campaign's record in a published folder: databases written anew, files copied, what is withheld not.

May not: decide what is withheld, or write into the campaign.
"""

from __future__ import annotations

import shutil
from collections.abc import Collection, Sequence
from pathlib import Path

from labctl.core.events import Event, Kind
from labctl.core.record import Record
from labctl.publishing.leaving_out import files_of
from labctl.store.atomic_files import file_errors
from labctl.store.campaign import Campaign, journal_url
from labctl.store.ledger import OPENED
from labctl.store.opened_body import HISTORICAL
from labctl.store.published_files import copy_journal, copy_traces
from labctl.store.verifying.timestamps import FOLDER as TIMESTAMPS
from labctl.store.verifying.timestamps import kept
from labctl.store.verifying.withheld import Withheld

PLAIN = ("heads.log", "cell.toml", "fixture.toml", HISTORICAL)


def copy_record(campaign: Campaign, record: Record, events: Sequence[Event], withheld: Withheld, to: Path) -> None:
    """Fill the folder `to`, which is not there yet. Raises StorageError."""
    source = campaign.folder
    with file_errors(str(to)):
        to.mkdir(parents=True)
        for name in (*PLAIN, *OPENED):
            if (source / name).is_file():
                _copy(source, name, to)
        for kind in ("tsr", "ots"):
            for path in kept(source, kind).values():
                _copy(source, f"{TIMESTAMPS}/{path.name}", to)
        for _, _, name in files_of(events):
            if name not in withheld.files:
                _copy(source, name, to)
    copy_journal(journal_url(source), campaign.opened["campaign"], to / "journal.db")
    copy_traces(campaign.traces_url, campaign.opened["campaign"], _recorded(events, withheld.traces), to)


def _recorded(events: Sequence[Event], without: Collection[str]) -> list[str]:
    """Episodes whose samples go: those that were sealed. What was never sealed binds nothing and is not copied."""
    sealed = (event.episode for event in events if event.kind == Kind.RECORDING_SEALED)
    return [episode for episode in sealed if episode and episode not in without]


def _copy(source: Path, name: str, to: Path) -> None:
    """The bytes of a file, with no permission or time of it."""
    path = to / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source / name, path)
