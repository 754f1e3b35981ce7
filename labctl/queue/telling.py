"""People elsewhere hear of the queue by the lab's alerts.

May not: say more than what the queue's own journal has, which names no arm and nobody who submitted; or fail an act
because nobody could be told.
"""

from __future__ import annotations

import os
from pathlib import Path

from labctl.alerts.sending import ways
from labctl.alerts.watch import Alert
from labctl.errors import InputError, StateError
from labctl.queue.acts import Done
from labctl.store.lab_folder import settings_of


def tell(lab: Path, done: Done, text: str) -> list[str]:
    """Send an alert of the kind "queue" by every way of lab.toml; a line for each that did not arrive. text: what was
    done, without a name.
    """
    try:
        table = settings_of(lab).alerts
        if table is None or "queue" not in table.on:
            return []
        by = ways(table, os.environ)
    except InputError as error:
        return [f"no alert was sent: {error}"]
    failed: list[str] = []
    for name, send in by.items():
        try:
            send(Alert("queue", f"labctl {lab.name}: queue", f"{done.name} {text}"))
        except StateError as error:
            failed.append(f"no alert was sent by {name}: {error}")
    return failed
