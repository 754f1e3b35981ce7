"""The stop key, taken where keys arrive: in the terminal driver's own thread, so that a busy screen cannot delay it.

May not: do anything but call the stop; the app gets the same key a moment later and informs the run process.
"""

from __future__ import annotations

from collections.abc import Callable

from textual import events
from textual.driver import Driver
from textual.message import Message


def with_stop_key(base: type[Driver], is_stop: Callable[[str], bool], stop: Callable[[], object]) -> type[Driver]:
    """A driver class that calls `stop` in the reading thread for every key of which `is_stop` is true."""

    class StoppingDriver(base):  # type: ignore[misc, valid-type]
        def process_message(self, message: Message) -> None:
            if isinstance(message, events.Key) and is_stop(message.key):
                stop()
            super().process_message(message)

    return StoppingDriver
