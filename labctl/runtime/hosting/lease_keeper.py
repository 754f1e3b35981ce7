"""Renews the motion lease beside the run process's loop: a slow disk, a slow message or a garbage collection does not
stop a robot, and a run that hangs does.

May not: grant a lease or outlive one: it repeats what the loop granted last, never beyond what was granted with it, nor
when the loop has not turned for too long or this computer was suspended since.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace

from labctl.bus import Message
from labctl.clock import SECOND, Clock, Suspensions
from labctl.config.cell_schema import Lease as LeaseTable
from labctl.messages.motion import LEASE_RENEWALS, Lease
from labctl.messages.typed import read


@dataclass(frozen=True, slots=True)
class LeaseTerms:
    """For how long a lease holds, and for how long the loop may not turn before it is renewed no more; ns."""

    duration_ns: int
    silence_ns: int


def terms_of(table: LeaseTable) -> LeaseTerms:
    """The terms that a cell's [lease] has."""
    return LeaseTerms(round(table.duration_s * SECOND), round(table.run_silent_s * SECOND))


class LeaseKeeper:
    """`publish` sends a message; it is called by one thread at a time. `grant` is for the loop, `renew` for the thread
    that `start` begins, or for a test.
    """

    def __init__(self, publish: Callable[[Message], None], clock: Clock, terms: LeaseTerms) -> None:
        self._publish = publish
        self._clock = clock
        self._terms = terms
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._lease: Lease | None = None
        self._granted_ns = 0
        self._suspensions = Suspensions(clock)
        self._thread = threading.Thread(target=self._run, name="lease", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Renew nothing more."""
        self._over.set()
        if self._thread.is_alive():
            self._thread.join()
        self._keep(None)

    def grant(self, message: Message) -> None:
        """The loop grants a lease, renews one, or takes it back (until_ns 0). It turns, then."""
        lease, now_ns = read(Lease, message), self._clock.now_ns()
        with self._lock:
            self._granted_ns = now_ns
            if not self._suspensions.new_ns():
                lease = self._no_shorter(lease)
            self._keep(lease if lease.until_ns else None)
            self._publish(lease.to("@lease", sender=message.sender))

    def _no_shorter(self, lease: Lease) -> Lease:
        """A renewal that holds as long as the thread's: the loop's counts from when its turn began, which may have
        taken longer than the lease, and would stop a robot that was renewed all the while.
        """
        now = self._lease
        if now is None or not lease.until_ns or (now.epoch, now.episode) != (lease.epoch, lease.episode):
            return lease
        until_ns = max(lease.until_ns, now.until_ns)
        return replace(lease, until_ns=until_ns if lease.latest_ns is None else min(until_ns, lease.latest_ns))

    def renew(self, now_ns: int) -> None:
        """Repeat the lease for another duration, within its bounds."""
        with self._lock:
            if self._lease is None:
                return
            if self._suspensions.new_ns():
                self._keep(None)
                return
            latest_ns = self._granted_ns + self._terms.silence_ns
            if self._lease.latest_ns is not None:
                latest_ns = min(latest_ns, self._lease.latest_ns)
            until_ns = min(now_ns + self._terms.duration_ns, latest_ns)
            if until_ns > self._lease.until_ns:
                self._lease = replace(self._lease, until_ns=until_ns)
                self._publish(self._lease.to("@lease", sender="run"))
            elif now_ns > latest_ns:
                self._keep(None)

    def _keep(self, lease: Lease | None) -> None:
        """While there is a lease, nothing is collected: the collector stops every thread of this process."""
        self._lease = lease
        if lease is None:
            gc.enable()
        else:
            gc.disable()

    def _run(self) -> None:
        while not self._over.wait(self._terms.duration_ns / LEASE_RENEWALS / SECOND):
            self.renew(self._clock.now_ns())
