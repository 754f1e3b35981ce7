"""A campaign's record in a published folder: databases written anew, files copied, what is withheld not.

May not: decide what is withheld, or write into the campaign.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path

from labctl.core.events import Event
from labctl.errors import InputError
from labctl.publishing.leaving_out import files_of, sealed_episodes, where_read
from labctl.store.atomic_files import file_errors
from labctl.store.campaign import Campaign
from labctl.store.journal import journal_url
from labctl.store.ledger import OPENED
from labctl.store.opened_body import HISTORICAL
from labctl.store.published_files import copy_journal, copy_traces
from labctl.store.verifying.open_secrets import secrets_in
from labctl.store.verifying.timestamps import FOLDER as TIMESTAMPS
from labctl.store.verifying.timestamps import kept
from labctl.store.verifying.verified import sealed_texts
from labctl.store.verifying.withheld import Withheld

PLAIN = ("heads.log", "cell.toml", "fixture.toml", HISTORICAL)


def copy_record(campaign: Campaign, events: Sequence[Event], withheld: Withheld, to: Path) -> None:
    """Fill the folder `to`, which is not there yet. Raises StorageError."""
    source, where = campaign.folder, where_read(campaign.folder, events)
    with file_errors(str(to)):
        to.mkdir(parents=True)
        for name in (*PLAIN, *OPENED):
            if (source / name).is_file():
                _copy(source / name, to / name)
        for kind in ("tsr", "ots"):
            for path in kept(source, kind).values():
                _copy(path, to / TIMESTAMPS / path.name)
        for _, _, name in files_of(events):
            if name not in withheld.files:
                _copy(where(name), to / name)
    copy_journal(journal_url(source), campaign.opened["campaign"], to / "journal.db")
    recorded = [episode for episode in sealed_episodes(events) if episode not in withheld.traces]
    copy_traces(campaign.traces_url, campaign.opened["campaign"], recorded, to)


def refuse_secrets(campaign: Campaign) -> None:
    """Raises InputError where an address in a file that a campaign was opened from, which is copied as it was sealed,
    holds a password or a key; StorageError, BrokenRecord.
    """
    if found := [line for name, text in sealed_texts(campaign).items() for line in secrets_in(text, name)]:
        raise InputError(
            f"not published: {'; '.join(found)}, which goes along as it was sealed and cannot be left out; change what "
            "it opens at the device or server first, then publish with --with-secrets; in the next campaign's cell "
            "have source_env name an environment variable that holds a camera's address"
        )


def _copy(path: Path, to: Path) -> None:
    """The bytes of a file, with no permission or time of it."""
    to.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(path, to)
