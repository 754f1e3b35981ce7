"""What a shell completes after TAB: campaigns and episodes of the lab, formats, and arms once they may be known.

May not: name an arm of a campaign that is not unblinded, write, or fail: where it knows nothing it completes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

import click

from labctl.errors import LabctlError

if TYPE_CHECKING:
    from labctl.core.record import Record

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def among(words: Sequence[str]) -> Complete:
    """Completes one of these words."""
    return lambda context, parameter, typed: _beginning(words, typed)


def campaigns(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Names of the campaigns of the lab that --lab, $LABCTL_LAB or the folder says."""
    from labctl.store.lab_folder import campaigns, find_lab

    try:
        names = [path.name for path in campaigns(find_lab(context.params.get("lab")))]
    except (LabctlError, OSError):
        return []
    return _beginning(names, typed)


def arms(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Arms of the campaign that was typed before, none before its unblinding."""
    record = _record(context)
    if record is None or record.unblinding is None:
        return []
    return _beginning(sorted({*record.arms.values()}), typed)


def episodes(context: click.Context, parameter: click.Parameter, typed: str) -> list[str]:
    """Episodes of the campaign that --campaign says, or of the lab's only one."""
    record = _record(context)
    return [] if record is None else _beginning(record.episodes, typed)


def _record(context: click.Context) -> Record | None:
    from labctl.store.lab_folder import campaign_folder
    from labctl.store.verifying.verified import in_passing

    try:
        with in_passing(campaign_folder(context.params.get("campaign"), context.params.get("lab"))) as campaign:
            return campaign.record()
    except (LabctlError, OSError):
        return None


def _beginning(words: Iterable[str], typed: str) -> list[str]:
    return [word for word in words if word.startswith(typed)]
