"""What gripper drivers share: a worker of their own that talks to the device, while `target` never blocks.

May not: know a device. The latest target wins.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable

from labctl.devices import RobotStatus
from labctl.drivers.common.thread_faults import fault_of
from labctl.errors import DeviceError, DeviceLost

JOIN_S = 3.0


class GripperWorker:
    """Runs `visit` again and again in its own thread, `period_s` apart, or at once when something was asked.

    State a driver reads: `wanted` (m, None when nothing is asked), `stopped`, `recovering`; it sets `opening` and
    `sound`. A DeviceLost of `visit` ends the worker, and so does any fault of it: `sound` says "lost".
    """

    def __init__(self, name: str, visit: Callable[[], None], period_s: float) -> None:
        self._name, self._visit, self._period_s = name, visit, period_s
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self.wanted: float | None = None
        self.stopped = self.recovering = False
        self.opening = 0.0
        self.sound = RobotStatus("idle")

    def start(self) -> None:
        """Raises DeviceLost while a visit from before `end` has not returned."""
        if self._thread is not None:
            raise DeviceLost(f"{self._name}: its driver hangs in an earlier call; restart labctl")
        self._end.clear()
        self._thread = threading.Thread(target=self._serve, name=self._name, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while not self._end.is_set():
            self._wake.wait(self._period_s)
            self._wake.clear()
            try:
                self._visit()
            except DeviceLost as error:
                self.sound = RobotStatus("lost", str(error))
                return
            except DeviceError as error:
                self.sound = RobotStatus("fault", str(error))
            except Exception as error:  # a bug in a driver: whoever asks for the state must hear of it
                self.sound = RobotStatus("lost", f"{self._name}: {fault_of(self._name, error)}")
                return

    def ask(self, opening_m: float) -> None:
        """A new target."""
        if opening_m != self.wanted or self.stopped:
            self.wanted, self.stopped = opening_m, False
            self._wake.set()

    def halt(self) -> None:
        """Let the fingers stay where they are."""
        self.wanted, self.stopped = None, True
        self._wake.set()

    def forget(self) -> None:
        """Nothing is asked any more, neither a target nor a recovery."""
        self.wanted, self.stopped, self.recovering = None, False, False

    def recover(self) -> None:
        self.recovering = True
        self._wake.set()

    def end(self) -> None:
        """End the thread. Any number of times."""
        self._end.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            if not self._thread.is_alive():
                self._thread = None


class WorkedGripper(ABC):
    """What gripper drivers have of `labctl.devices.Gripper` by their worker."""

    _work: GripperWorker

    @abstractmethod
    def _moves(self) -> bool:
        """Do the fingers of a gripper that is sound move?"""

    def target(self, opening_m: float) -> None:
        self._work.ask(opening_m)

    def opening(self) -> float:
        return self._work.opening

    def status(self) -> RobotStatus:
        sound = self._work.sound
        return sound if sound.mode != "idle" else RobotStatus("moving" if self._moves() else "idle")

    def stop(self) -> None:
        self._work.halt()
