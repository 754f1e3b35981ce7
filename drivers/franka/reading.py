"""The states of a Franka robot, each once: from the network where this user may listen there, else from franky.

May not: import franky, or move anything. franky loses states of a robot at rest whenever this process comes a
millisecond late: libfranka keeps the newest of those that wait (seen). From the network none is lost.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from labctl.clock import MILLISECOND, MonotonicClock
from labctl.drivers.common.states import Sample, States, stacked
from labctl.drivers.franka.capture import Capture
from labctl.drivers.franka.state import Datagram, samples
from labctl.drivers.franka.words import error_names
from labctl.errors import DeviceError, DeviceRefused
from labctl.realtime import unpin, urgent

READ_WAIT_NS = 2 * MILLISECOND
ASK_NS = 20 * MILLISECOND  # a client that is not asked keeps old states, and does not notice that it is alone
HEARD_OF = 50  # states of the client, one of which must have been seen on the network
JOIN_S = 3.0


@dataclass(frozen=True, slots=True)
class ClientState:
    """A `franky.RobotState`, in the words of `state.Datagram`."""

    state: Any

    @property
    def number(self) -> int:
        return self.state.time.to_msec()

    @property
    def q(self) -> np.ndarray:
        return np.array(self.state.q)

    @property
    def dq(self) -> np.ndarray:
        return np.array(self.state.dq)

    @property
    def q_d(self) -> np.ndarray:
        return np.array(self.state.q_d)

    @property
    def pose_c(self) -> np.ndarray:
        return np.array(self.state.O_T_EE_c.matrix)

    @property
    def mode(self) -> str:
        return self.state.robot_mode.name

    @property
    def errors(self) -> list[str]:
        return error_names(self.state.current_errors)

    def sample(self) -> Sample:
        pose = self.state.O_T_EE
        tcp = np.concatenate([pose.translation, pose.quaternion])
        more = np.append(self.state.control_command_success_rate, self.state.tau_ext_hat_filtered)
        wrench = np.array(self.state.O_F_ext_hat_K)
        return Sample(self.state.q, self.state.dq, self.state.tau_J, tcp, self.number / 1000, more, wrench)


def client_samples(states: Sequence[ClientState]) -> Sample:
    """n states as one Sample of n rows."""
    return stacked([state.sample() for state in states])


class FciReading:
    """States of one connection. `lost` says why there are no more of them, `heard_ns` when the newest came."""

    def __init__(self, host: str, source: str, every_ms: int, mapped: Callable[[BaseException], DeviceError]) -> None:
        """every_ms: which states are kept; mapped: labctl's error for one of the client's."""
        self._host, self._source, self._every_ms, self._mapped = host, source, every_ms, mapped
        self._clock = MonotonicClock()
        self._robot: Any = None
        self._states: States | None = None
        self._capture: Capture | None = None
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: ClientState | Datagram = ClientState(None)
        self._seen_ms = -1
        self.heard_ns = 0
        self.lost = ""
        self.news: Sequence[str] = ()

    def open(self, robot: Any, states: States) -> None:
        """Begin to read a `franky.Robot`; every state goes to `states`. Raises DeviceRefused."""
        self._robot, self._states = robot, states
        self._capture = self._listen()
        if self._capture is None:
            states.table = client_samples
            self.refresh()
        else:
            states.table = samples
        self._thread = threading.Thread(target=self._run, name="fci-states", daemon=True)
        self._thread.start()

    def _listen(self) -> Capture | None:
        if self._source == "client":
            return None
        try:
            capture = Capture(self._host)
        except PermissionError as error:
            why = f"{error.strerror}; it takes the right to raw sockets, CAP_NET_RAW"
        except OSError as error:
            why = f"no raw socket to {self._host}: {error.strerror}"
        else:
            if self._hears(capture):
                return capture
            why = "no state of this robot was seen there"
        if self._source == "network":
            raise DeviceRefused(f'states = "network": {why}; "auto" takes them from the client instead')
        self.news = (f"states are taken from franky, which may lose some of a robot at rest: {why}",)
        return None

    def _hears(self, capture: Capture) -> bool:
        """Do states come? It is closed if not."""
        try:
            for _ in range(HEARD_OF):
                _ = self._robot.state
                self._drain(capture)
                if self._seen_ms >= 0:
                    break
        finally:
            if self._seen_ms < 0:
                capture.close()
        return self._seen_ms >= 0

    @property
    def callback(self) -> Callable[..., None] | None:
        """What a motion must call at each of its cycles, if anything."""
        return self._on_cycle if self._capture is None else None

    def _on_cycle(self, state: Any, *_: Any) -> None:
        self._take(ClientState(state), self._clock.now_ns())

    def newest(self) -> ClientState | Datagram:
        """The newest state that has come. Any thread."""
        if self._capture is not None:
            self._drain(self._capture)
        return self._seen

    def present(self) -> ClientState | Datagram:
        """The state that a motion is to begin from. What a motion's callback hands over waits for a thread of franky's
        and for the interpreter's lock; franky has the newest all the same.
        """
        if self._capture is None and self._robot.is_in_control:
            return ClientState(self._robot.state)
        return self.newest()

    def refresh(self) -> None:
        """Wait for the next state while no motion runs. Raises what the client does."""
        state = self._robot.state
        if self._capture is None:
            self._take(ClientState(state), self._clock.now_ns())
        else:
            self._drain(self._capture)

    def _drain(self, capture: Capture) -> None:
        with self._lock:
            for t_ns, state in capture.drain():
                self._keep(state, t_ns)

    def _run(self) -> None:
        """Without a capture: while a motion runs, its callback hands over each cycle's state."""
        unpin()
        urgent()
        ask_ns = 0
        while not self._end.is_set():
            try:
                now = self._clock.now_ns()
                rests = not self._robot.is_in_control
                if rests and (self._capture is None or now >= ask_ns):
                    ask_ns = now + ASK_NS
                    self.refresh()
                else:
                    self.newest()
                    self._clock.sleep_until(now + READ_WAIT_NS)
            except Exception as error:
                if not self._end.is_set():
                    self.lost = str(self._mapped(error))
                return

    def _take(self, state: ClientState, t_ns: int) -> None:
        """One of the client's: of a motion's callback, of the thread that reads, of one that looks after a refusal."""
        with self._lock:
            self._keep(state, t_ns)

    def _keep(self, state: ClientState | Datagram, t_ns: int) -> None:
        """Each once, in order; under the lock."""
        at_ms = state.number
        if at_ms <= self._seen_ms:
            return
        self._seen, self._seen_ms, self.heard_ns = state, at_ms, t_ns
        if at_ms % self._every_ms == 0:
            assert self._states is not None
            self._states.add(t_ns, state)

    def close(self) -> None:
        """Any number of times; the robot must be at rest, or gone."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(JOIN_S)
            self._thread = None
        if self._capture is not None:
            self._capture.close()
            self._capture = None
        self._robot = None  # franky ends a connection when nobody holds its robot
