"""The motion lease is renewed whatever the run process's loop is busy with, up to a bound; never beyond its end."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator

import pytest

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND, ManualClock, MonotonicClock
from labctl.messages.motion import Lease
from labctl.runtime.hosting.lease_keeper import LeaseKeeper, LeaseTerms

TERMS = LeaseTerms(duration_ns=300 * MILLISECOND, silence_ns=2 * SECOND)


class Bench:
    def __init__(self) -> None:
        self.clock = ManualClock(10 * SECOND)
        self.sent: list[Message] = []
        self.keeper = LeaseKeeper(self.sent.append, self.clock, TERMS)

    def grant(self, *, ns: int = 300 * MILLISECOND, latest_ns: int | None = None) -> None:
        lease = Lease(4, "e", self.clock.now_ns() + ns, latest_ns)
        self.keeper.grant(lease.to("@lease", sender="run"))

    def pass_without_a_turn(self, ns: int) -> int:
        """Time passes, the thread renews ten times a second, the loop does nothing. Returns how long the lease then
        still holds, ns.
        """
        for _ in range(ns // (100 * MILLISECOND)):
            self.clock.sleep_until(self.clock.now_ns() + 100 * MILLISECOND)
            self.keeper.renew(self.clock.now_ns())
        return self.sent[-1].body["until_ns"] - self.clock.now_ns()


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.keeper.close()
    assert gc.isenabled()


def test_a_loop_that_is_held_up_for_a_second_does_not_stop_the_robot(bench):
    """Issue 17.1: journal writes with fsync shared the loop that renewed a lease of 0.3 s."""
    bench.grant()
    assert bench.pass_without_a_turn(SECOND) == TERMS.duration_ns
    assert {(m.body["epoch"], m.body["episode"]) for m in bench.sent} == {(4, "e")}


def test_a_renewal_of_a_turn_that_took_long_does_not_shorten_what_was_renewed_meanwhile(bench):
    """Seen once: a disk took 1 s in a turn that had begun when a renewal was due. What the loop sent then counted from
    the turn's beginning, was over when it came, and the robot stopped: "the run process was not heard in time".
    """
    bench.grant()
    turn_ns = bench.clock.now_ns()
    holds_ns = bench.pass_without_a_turn(SECOND)
    late = Lease(4, "e", turn_ns + TERMS.duration_ns, latest_ns=turn_ns + 10 * SECOND)
    bench.keeper.grant(late.to("@lease", sender="run"))
    assert bench.sent[-1].body["until_ns"] - bench.clock.now_ns() == holds_ns == TERMS.duration_ns
    ends = Lease(4, "e", turn_ns + TERMS.duration_ns, latest_ns=turn_ns + SECOND + 100 * MILLISECOND)
    bench.keeper.grant(ends.to("@lease", sender="run"))
    assert bench.sent[-1].body["until_ns"] == ends.latest_ns, "no lease goes beyond the budget"
    other = Lease(5, "f", turn_ns + TERMS.duration_ns)
    bench.keeper.grant(other.to("@lease", sender="run"))
    assert bench.sent[-1].body["until_ns"] == other.until_ns, "nor does another one's"


def test_a_suspension_in_a_long_turn_is_over_with_what_was_renewed_before_it(bench):
    bench.grant()
    turn_ns = bench.clock.now_ns()
    bench.pass_without_a_turn(SECOND)
    bench.clock.suspend(SECOND)
    bench.keeper.grant(Lease(4, "e", turn_ns + TERMS.duration_ns).to("@lease", sender="run"))
    assert bench.sent[-1].body["until_ns"] == turn_ns + TERMS.duration_ns


def test_a_run_that_hangs_lets_the_lease_lapse(bench):
    bench.grant()
    begun_ns = bench.clock.now_ns()
    assert bench.pass_without_a_turn(10 * SECOND) < 0
    assert max(m.body["until_ns"] for m in bench.sent) == begun_ns + TERMS.silence_ns
    assert gc.isenabled(), "nothing is kept from then on"


def test_no_renewal_goes_beyond_the_budget(bench):
    latest_ns = bench.clock.now_ns() + 450 * MILLISECOND
    bench.grant(latest_ns=latest_ns)
    bench.pass_without_a_turn(SECOND)
    assert max(m.body["until_ns"] for m in bench.sent) == latest_ns


def test_a_lease_that_was_taken_back_is_not_renewed(bench):
    bench.grant()
    bench.keeper.grant(Lease(4, "e", 0).to("@lease"))
    bench.pass_without_a_turn(SECOND)
    assert [m.body["until_ns"] for m in bench.sent][1:] == [0]


def test_a_lease_of_before_a_suspension_is_renewed_no_more(bench):
    """Issue 17.19: the clock of leases stands still in suspend; the thread turns before the loop may have seen it."""
    bench.grant()
    bench.clock.suspend(SECOND)
    bench.pass_without_a_turn(SECOND)
    assert len(bench.sent) == 1 and gc.isenabled()
    bench.grant()
    assert bench.pass_without_a_turn(SECOND) == TERMS.duration_ns, "what is granted afterwards is"


def test_nothing_is_renewed_that_was_not_granted(bench):
    bench.keeper.renew(bench.clock.now_ns() + SECOND)
    assert bench.sent == []


def test_no_garbage_collection_runs_under_a_lease(bench):
    bench.grant()
    assert not gc.isenabled(), "it would stop the thread that renews it as well"
    bench.keeper.grant(Lease(4, "e", 0).to("@lease"))
    assert gc.isenabled()


@pytest.mark.real_time
def test_the_thread_renews_while_the_loop_is_blocked():
    """The loop waits in a call that gives the interpreter back, as a write to a disk does."""
    sent: list[Message] = []
    renewed = threading.Event()

    def publish(message: Message) -> None:
        sent.append(message)
        if len(sent) >= 4:
            renewed.set()

    clock = MonotonicClock()
    keeper = LeaseKeeper(publish, clock, LeaseTerms(30 * MILLISECOND, 60 * SECOND))
    keeper.start()
    try:
        keeper.grant(Lease(1, None, clock.now_ns() + 30 * MILLISECOND).to("@lease"))
        assert renewed.wait(60)
    finally:
        keeper.close()
    until = [message.body["until_ns"] for message in sent]
    assert until == sorted(until) and len(set(until)) >= 4
