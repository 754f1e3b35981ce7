"""What a report was held against outside its campaign's folder, or that it was not: a row of its provenance.

May not: check anything; the record was verified with what was noted before this is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.core.events import Event
from labctl.store.chain_heads import Noted, outside


def anchored(noted: Noted, events: Sequence[Event]) -> dict[str, str]:
    """The row of the provenance table."""
    return {"anchored to": str(outside(noted, events))}
