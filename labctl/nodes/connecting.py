"""A device that is connected beside its node's loop and, once it is lost, asked for again until it answers.

May not: wait for a connection, know what kind of device it is, or tell anybody of a loss; its node does.
"""

from __future__ import annotations

from collections.abc import Callable

from labctl.bus import Work
from labctl.clock import SECOND
from labctl.errors import DeviceLost

SILENT_NS = SECOND  # so long without anything, and some periods, and a device counts as lost …
FIRST_NS = 5 * SECOND  # … but when it was just connected it has this long to give its first
HUNG_NS = 60 * SECOND  # an attempt to connect that takes so long will not end; in simulated time none takes any
RETRY_NS = (SECOND // 2, SECOND, 2 * SECOND, 5 * SECOND)  # between attempts to connect; then always the last
CONNECTED = "connected"  # kind of the message that answers an attempt


class Connection:
    """See the module. lost: why nothing comes from the device, "" while something does; cause: why it stopped coming,
    for an attempt to connect may fail for another reason.

    nothing_yet: `lost` before it first answered; silent_ns: without anything for so long it is lost; closes: the device
    is closed before each further attempt, not only after a `lose` that asks for it.
    """

    def __init__(
        self,
        connect: Callable[[int], None],
        close: Callable[[], None],
        nothing_yet: str,
        silent_ns: int,
        *,
        closes: bool = False,
    ) -> None:
        self._connect, self._close, self._closes = connect, close, closes
        self._silent_ns = max(SILENT_NS, silent_ns)
        self.lost = self.cause = nothing_yet
        self.connected = self.trying = False
        self._reset = False
        self._attempts = 0
        self._tried_ns = self._retry_ns = self._patient_until_ns = 0

    @property
    def due_ns(self) -> int:
        """While it is not connected: when to try again, or to give up an attempt."""
        return self._tried_ns + HUNG_NS + 1 if self.trying else self._retry_ns

    def due(self, now_ns: int) -> bool:
        """Whether to try to connect. Raises DeviceLost for an attempt that will not end."""
        if self.trying and now_ns - self._tried_ns > HUNG_NS:
            raise DeviceLost(f"connecting has not returned for {HUNG_NS // SECOND} s; this process is started again")
        return not self.connected and not self.trying and now_ns >= self._retry_ns

    def attempt(self, now_ns: int) -> Work:
        """The attempt, to be run beside the loop: it may take seconds, and other devices may have their turn first."""
        self.trying, self._tried_ns = True, now_ns
        reset, self._reset = self._reset, self._closes

        def attempt() -> None:
            if reset:
                self._close()
            self._connect(now_ns)

        return Work(attempt, CONNECTED)

    def attempted(self, error: str, now_ns: int) -> None:
        """An attempt has come back; error: "" where the device is `connected`."""
        self.trying, self.connected = False, not error
        if error:
            self._retry_ns = now_ns + RETRY_NS[min(self._attempts, len(RETRY_NS) - 1)]
            self._attempts += 1
            self.lost = error
        self._patient_until_ns = now_ns + FIRST_NS

    def lose(self, why: str, now_ns: int, *, reset: bool = False) -> None:
        """The device is lost; reset: it has to be closed before it is connected to again."""
        self.connected = False
        self.lost = self.cause = why
        self._retry_ns, self._attempts = now_ns + RETRY_NS[0], 1
        self._reset = reset or self._closes

    def heard(self, now_ns: int) -> None:
        """Something came from it."""
        self.lost, self._attempts = "", 0
        self._patient_until_ns = now_ns + self._silent_ns

    def silent(self, now_ns: int) -> bool:
        """Whether nothing has come for too long."""
        return now_ns > self._patient_until_ns
