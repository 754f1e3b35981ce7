"""What gripper drivers share: a worker of their own that talks to the device, while `target` never blocks.

May not: know a device. The latest target wins.
"""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

from labctl.devices import RobotStatus
from labctl.drivers.common.thread_faults import fault_of
from labctl.errors import DeviceError, DeviceLost

JOIN_S = 3.0


@dataclass(frozen=True, slots=True)
class Asked:
    """What fingers are asked for: an opening in m, or to stay where they are; neither when nothing is."""

    opening_m: float | None = None
    stopped: bool = False


class GripperWorker:
    """Runs `visit` again and again in its own thread, `period_s` apart, or at once when something was asked.

    State a driver reads: `asked`, once a visit, since another may come at any time; `wanted` (m), its opening;
    `recovering`. It sets `opening` and `sound`. While that is not "idle" no target is taken, and what was asked for
    before is forgotten: after a fault nothing moves before it is asked for anew. A DeviceLost of `visit` ends the
    worker, and so does any fault of it: `sound` says "lost".
    """

    def __init__(self, name: str, visit: Callable[[], None], period_s: float) -> None:
        self._name, self._visit, self._period_s = name, visit, period_s
        self._wake, self._end = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()  # between what is asked and what ends it
        self._sound = RobotStatus("idle")
        self.asked, self.recovering = Asked(), False
        self.opening = 0.0

    @property
    def wanted(self) -> float | None:
        """The opening that is asked for, m."""
        return self.asked.opening_m

    @property
    def sound(self) -> RobotStatus:
        """What is wrong with the gripper; "idle": nothing."""
        return self._sound

    @sound.setter
    def sound(self, found: RobotStatus) -> None:
        with self._lock:
            self._sound = found
            if found.mode != "idle" and self.asked.opening_m is not None:
                self.asked = Asked()

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
        """A new target, of a gripper that is sound."""
        asked = Asked(opening_m)
        with self._lock:
            if asked == self.asked or self._sound.mode != "idle":
                return
            self.asked = asked
        self._wake.set()

    def halt(self) -> None:
        """Let the fingers stay where they are; a recovery waits for the next word."""
        with self._lock:
            self.asked, self.recovering = Asked(stopped=True), False
        self._wake.set()

    def forget(self) -> None:
        """Nothing is asked any more, neither a target nor a recovery."""
        with self._lock:
            self.asked, self.recovering = Asked(), False

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
