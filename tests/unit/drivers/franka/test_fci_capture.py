"""What is captured: every state of one address, as it came, at the time it came; nothing else."""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterator

import numpy as np
import pytest
from support.robots.emulators import address

from labctl.clock import MonotonicClock
from labctl.drivers.franka.capture import Capture
from labctl.drivers.franka.state import STATE_BYTES

CLOCK = MonotonicClock()


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


@pytest.mark.privileged
def test_times_are_those_of_arrival_and_not_of_reading(robot: str, client: socket.socket, capture: Capture) -> None:
    late_ns = []
    with sender(robot, client.getsockname()) as mine:
        for number in range(10):  # the kernel begins to stamp a moment after it was asked to; the last must be stamped
            mine.send(state(number))
            sent_ns = CLOCK.now_ns()
            CLOCK.sleep_until(sent_ns + 20_000_000)
            ((t_ns, _),) = capture.drain()
            late_ns.append(t_ns - sent_ns)
    assert late_ns[-1] < 1_000_000, late_ns


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
