"""What becomes of a gripper whose driver hangs, or has a fault of its own."""

from __future__ import annotations

import threading

import pytest

from labctl.devices import RobotStatus
from labctl.drivers.common import gripping
from labctl.drivers.common.gripping import GripperWorker
from labctl.errors import DeviceLost


def test_a_driver_that_fails_is_a_lost_gripper_and_not_one_that_stands_idle() -> None:
    failed = threading.Event()

    def visit() -> None:
        failed.set()
        raise ZeroDivisionError("in a driver")

    worker = GripperWorker("fingers", visit, 0.001)
    worker.start()
    assert failed.wait(60)
    worker.end()
    assert worker.sound.mode == "lost" and "ZeroDivisionError: in a driver" in worker.sound.reason


def test_a_driver_that_hangs_is_never_asked_by_a_second_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gripping, "JOIN_S", 0.01)
    hangs, goes_on = threading.Event(), threading.Event()

    def visit() -> None:
        hangs.set()
        goes_on.wait(120)

    worker = GripperWorker("fingers", visit, 0.001)
    worker.start()
    assert hangs.wait(60)
    worker.end()
    with pytest.raises(DeviceLost, match="hangs in an earlier call"):
        worker.start()
    goes_on.set()
    monkeypatch.setattr(gripping, "JOIN_S", 60.0)
    worker.end()
    worker.start()
    worker.end()


def test_what_is_asked_for_in_a_fault_and_what_was_before_is_forgotten() -> None:
    """Nothing moves once a fault is over until it is asked for anew."""
    worker = GripperWorker("fingers", lambda: None, 10.0)
    worker.ask(0.02)
    worker.sound = RobotStatus("fault", "too hot")
    assert worker.wanted is None
    worker.ask(0.05)
    worker.sound = RobotStatus("idle")
    assert worker.wanted is None
    worker.ask(0.05)
    assert worker.wanted == 0.05


def test_a_fault_and_a_stop_take_back_a_target_whole() -> None:
    """A visit that reads what is asked for sees a target or a stop, never a target that is none any more."""
    worker = GripperWorker("fingers", lambda: None, 10.0)
    worker.ask(0.02)
    asked = worker.asked
    worker.halt()
    assert (asked.opening_m, asked.stopped) == (0.02, False)
    assert (worker.asked.opening_m, worker.asked.stopped) == (None, True)


def test_a_stop_ends_a_recovery_that_has_not_begun() -> None:
    """Fingers that were to be activated moved after a stop."""
    worker = GripperWorker("fingers", lambda: None, 10.0)
    worker.recover()
    worker.halt()
    assert not worker.recovering
