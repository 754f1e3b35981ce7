"""The gate before anything that shows what a campaign holds: it holds, or a person said to show it all the same and
what comes out says so.

May not: show anything, or pass over what is to be shown.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from labctl.errors import BrokenRecord
from labctl.store.verify import verify_campaign

JOURNAL_ALONE: Collection[str] = ()
WITH_PHOTOS: Collection[str] = ("",)  # and no recording: no episode is named so


def refuse_unless_it_holds(
    folder: Path, recordings: Collection[str] | None = None, *, unverified: bool = False
) -> str | None:
    """Verify what is to be shown of a campaign: its journal with all that was frozen, and the recordings of these
    episodes (None: all). Nothing when it holds; with `unverified` the first problem in words, for what comes out.

    Raises BrokenRecord for what does not hold, InputError when the folder is no campaign.
    """
    problems = verify_campaign(folder, recordings=recordings).problems
    if not problems:
        return None
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    if unverified:
        return f"this record does not hold: {problems[0]}{more}"
    raise BrokenRecord(
        f"{problems[0]}{more}; nothing is shown of a record that does not hold; see: labctl verify {folder.name}; "
        "--unverified, where a verb has it, shows it all the same and says so in what comes out"
    )
