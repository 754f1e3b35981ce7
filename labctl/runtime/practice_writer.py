"""Writes a practice episode beside a campaign: by the run process while one is going, else by itself.

May not: touch a trial, or judge what was practised (`practised` and the report do).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from labctl.clock import Anchor
from labctl.core.events import Kind
from labctl.core.practised import practice_from
from labctl.errors import StateError
from labctl.runtime.review_writer import by_the_run
from labctl.store.campaign import writing


def record(folder: Path, args: Mapping[str, Any], *, who: str, anchor: Anchor | None = None) -> None:
    """Journal one practice episode, args as `practised.practice_from` reads them.

    Raises InputError for what cannot be, StateError for a campaign that is no longer open.
    """
    if by_the_run(folder, "practice", who, args):
        return
    with writing(folder, "practice", anchor) as (campaign, now):
        if campaign.state.phase != "open":
            raise StateError(f"campaign {folder.name} is {campaign.state.phase}; practice comes before its last trial")
        campaign.log(Kind.PRACTICE_RECORDED, practice_from(args, campaign.opened), anchor=now, who=who)
