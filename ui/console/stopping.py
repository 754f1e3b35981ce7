"""The stop key, taken where keys arrive: in the terminal driver's own thread, so that a busy screen cannot delay it.

May not: do anything but call the stop and note when each key came; a key that stopped goes no further.
"""

from __future__ import annotations

from collections.abc import Callable
from weakref import WeakKeyDictionary

from textual import events
from textual.driver import Driver
from textual.message import Message

from labctl.clock import Clock

_ARRIVED: WeakKeyDictionary[Message, int] = WeakKeyDictionary()


def arrived_ns(key: events.Key) -> int | None:
    """When a key came in from the terminal, however late it is looked at; None for one that did not."""
    return _ARRIVED.get(key)


def with_stop_key(
    base: type[Driver], is_stop: Callable[[str], bool], stop: Callable[[], object], clock: Clock
) -> type[Driver]:
    """A driver class that calls `stop` in the reading thread for every key of which `is_stop` is true."""

    class StoppingDriver(base):  # type: ignore[misc, valid-type]
        def process_message(self, message: Message) -> None:
            if isinstance(message, events.Key):
                if is_stop(message.key):
                    stop()
                    return
                _ARRIVED[message] = clock.now_ns()
            super().process_message(message)

    return StoppingDriver
