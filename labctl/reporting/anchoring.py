"""What a report was held against outside its campaign's folder, or that it was not: rows of its provenance.

May not: refuse anything; the record was verified with what was noted before this is asked.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labctl.core.events import Event
from labctl.store.chain_heads import Noted, outside
from labctl.store.verifying.timestamps import dated


def anchored(folder: Path, noted: Noted, events: Sequence[Event]) -> dict[str, str]:
    """The rows of the provenance table."""
    found = {"anchored to": str(outside(noted, events))}
    stamps = dated(folder, events).facts
    return found | ({"timestamps": "; ".join(stamps)} if stamps else {})
