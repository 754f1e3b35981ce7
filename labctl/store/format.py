"""The number of a campaign's format, and what campaigns of an older one bind to no digest.

May not: open anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from labctl.errors import InputError

FORMAT = 2
# What is bound from a format on, in words for whoever verifies a campaign of an earlier one.
_BOUND_SINCE: Mapping[int, tuple[str, ...]] = {
    2: (
        "what the streams' columns are called and mean, and which streams tell arms apart",
        "how long controllers took to start, and why they failed, until the campaign was unblinded",
        "which of several sealed values are left when some are taken away, until the campaign was unblinded",
    )
}


def format_of(opened: Mapping[str, Any]) -> int:
    """Of CampaignOpened's body. Those of before November 2026 say none: 1."""
    return int(opened.get("format", 1))


def not_bound(opened: Mapping[str, Any]) -> list[str]:
    """What this campaign's format binds to nothing, though today's does."""
    mine = format_of(opened)
    return [text for since, texts in _BOUND_SINCE.items() if since > mine for text in texts]


def format_facts(opened: Mapping[str, Any]) -> Mapping[str, Mapping[str, str]]:
    """The row of the report's provenance; {} for today's format."""
    texts = not_bound(opened)
    return {"format": {str(format_of(opened)): f"bound to no digest: {'; '.join(texts)}"}} if texts else {}


def check_format(opened: Mapping[str, Any], name: str) -> None:
    """Raises InputError for a campaign of a later labctl."""
    if format_of(opened) > FORMAT:
        raise InputError(
            f"campaign {name} has format {format_of(opened)}, this labctl reads up to {FORMAT}; use a later labctl"
        )
