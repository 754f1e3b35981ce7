"""What is captured: every state of one address, as it came, at the time it came; nothing else."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from support.robots.emulators import address

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.drivers.franka.capture import STAMP, Capture
from labctl.drivers.franka.state import STATE_BYTES
from labctl.errors import DeviceLost

CLOCK = MonotonicClock()
PATIENCE = 250  # states, five seconds


@contextlib.contextmanager
def sender(host: str, to: tuple[str, int]) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind((host, 0))
        made.connect(to)
        yield made


def state(number: int) -> bytes:
    return number.to_bytes(8, "little") + bytes(STATE_BYTES - 8)


@pytest.fixture
def client() -> Iterator[socket.socket]:
    """A client's socket, which keeps next to nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as made:
        made.bind(("127.0.0.1", 0))
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        yield made


@pytest.fixture
def robot() -> str:
    return address()


@pytest.fixture
def capture(robot: str) -> Iterator[Capture]:
    made = Capture(robot)
    yield made
    made.close()


@pytest.mark.privileged
def test_every_state_of_that_host_alone_though_nobody_reads_the_client(
    robot: str, client: socket.socket, capture: Capture
) -> None:
    before_ns = CLOCK.now_ns()
    with sender(robot, client.getsockname()) as mine, sender(address(), client.getsockname()) as others:
        for number in range(100):
            mine.send(state(number))
            mine.send(bytes(23))  # a gripper's
            others.send(state(1000 + number))
    found = capture.drain()
    after_ns = CLOCK.now_ns()
    assert capture.drain() == []
    assert [datagram.number for _, datagram in found] == list(range(100))
    times = np.array([t_ns for t_ns, _ in found])
    assert before_ns - 1e5 < times[0] and times[-1] <= after_ns and (np.diff(times) >= 0).all()


class Early(socket.socket):
    """One that is sent something by another host before it is connected to the one it is for."""

    def connect(self, to: tuple[str, int]) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as other:
            other.bind((address(), 0))
            other.sendto(state(7), ("127.0.0.1", 9))
        super().connect(to)


@pytest.mark.privileged
def test_what_another_robot_sent_before_the_capture_was_of_one_is_not_captured(
    robot: str, client: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    with sender(robot, client.getsockname()) as mine:
        monkeypatch.setattr("labctl.drivers.franka.capture.socket.socket", Early)
        capture = Capture(robot)
        monkeypatch.undo()
        mine.send(state(8))
        assert [datagram.number for _, datagram in capture.drain()] == [8]
        capture.close()


def test_no_state_arrived_after_those_behind_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first two were not stamped, and have the time of reading."""
    stamps_ms = [900, 900, 100, 200, 300]

    class Scripted:
        def __init__(self, *_: object) -> None:
            self.left = list(enumerate(stamps_ms))

        def recvmsg(self, *_: object) -> tuple[bytes, list[tuple[int, int, bytes]], int, None]:
            if not self.left:
                raise BlockingIOError
            number, at_ms = self.left.pop(0)
            ns = began_ns + at_ms * MILLISECOND + CLOCK.wall_ahead_ns()
            data = bytes([0x45]) + bytes(27) + state(number)
            return data, [(0, 0, STAMP.pack(*divmod(ns, SECOND)))], 0, None

        def recv(self, *_: object) -> bytes:
            raise BlockingIOError

        def __getattr__(self, name: str) -> Callable[..., None]:
            return lambda *_: None

    began_ns = CLOCK.now_ns() - SECOND
    with monkeypatch.context() as patched:
        patched.setattr("labctl.drivers.franka.capture.socket.socket", Scripted)
        found = Capture("127.0.0.9").drain()
    assert [datagram.number for _, datagram in found] == [0, 1, 2, 3, 4]
    assert [round((t_ns - began_ns) / MILLISECOND) for t_ns, _ in found] == [100, 100, 100, 200, 300]


@pytest.mark.privileged
def test_times_are_those_of_arrival_and_not_of_reading(robot: str, client: socket.socket, capture: Capture) -> None:
    """The kernel begins to stamp some time after it was asked to, on a busy machine a quarter of a second; what it has
    not stamped has the time of reading. From then on each is judged by the times of its own sending and reading.
    """
    shares = []  # of the time from sending to reading, when it arrived: about 0 if stamped, 1 if not
    with sender(robot, client.getsockname()) as mine:
        for number in range(PATIENCE):
            before_ns = CLOCK.now_ns()
            mine.send(state(number))
            CLOCK.sleep_until(CLOCK.now_ns() + 20_000_000)
            read_ns = CLOCK.now_ns()
            ((t_ns, _),) = capture.drain()
            assert t_ns > before_ns - 1e5, (number, before_ns, t_ns)
            shares.append((t_ns - before_ns) / (read_ns - before_ns))
            stamped = next((place for place, share in enumerate(shares) if share < 0.9), number)
            if number >= stamped + 9:
                break
    assert np.median(shares[stamped:]) < 0.5 and max(shares[stamped + 1 :]) < 0.9, shares


def test_without_the_right_to_raw_sockets_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(socket, "socket", refused)
    with pytest.raises(PermissionError):
        Capture("127.0.0.9")


@pytest.mark.privileged
def test_a_port_that_is_closed_on_the_robots_side_ends_nothing(
    robot: str, client: socket.socket, capture: Capture
) -> None:
    """A command to a robot that has gone comes back as an ICMP error, which a connected socket is told."""
    client.sendto(b"a command", (robot, 9))
    with sender(robot, client.getsockname()) as mine:
        mine.send(state(5))
    found = [*capture.drain(), *capture.drain()]
    capture.close()
    assert capture.drain() == [], "a closed one has nothing more to say"
    assert [datagram.number for _, datagram in found] == [5]


def test_a_state_is_kept_by_one_thread_at_a_time() -> None:
    """A motion's callback, the thread that reads and one that looks after a refusal all hand over states: two that did
    so at once had one state twice, or the older for the newest.
    """
    pytest.importorskip("franky")
    from labctl.drivers.franka.reading import FciReading

    reading, locked = FciReading("127.0.0.1", "client", 1, lambda error: DeviceLost(str(error))), list[bool]()
    reading._states = SimpleNamespace(add=lambda *_: locked.append(reading._lock.locked()))  # type: ignore[assignment]
    reading._robot = SimpleNamespace(state=SimpleNamespace(time=SimpleNamespace(to_msec=lambda: 5)))
    reading._on_cycle(SimpleNamespace(time=SimpleNamespace(to_msec=lambda: 4)))
    reading.refresh()
    assert locked == [True, True]
