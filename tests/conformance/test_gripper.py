"""What every gripper does: moves nothing by connecting, follows the latest target, stays where it is stopped, activates
on a person's word, and leaves no thread behind.
"""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator

import numpy as np
import pytest
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.robotiq.emulator.rtu import RobotiqRtu
from labctl.drivers.robotiq.emulator.server import RobotiqServer
from labctl.drivers.sim.plant import Plant
from support.emulators import Emulator, address
from support.robot_rig import FIXTURE

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.devices import Gripper, load
from labctl.errors import DeviceLost, DeviceRefused, InputError

pytestmark = pytest.mark.real_time

CLOCK = MonotonicClock()
DRIVERS = ("robotiq_socket", "robotiq_serial", "franka_hand")


def until(what: str, found: Callable[[], bool]) -> None:
    over_ns = CLOCK.now_ns() + 10 * SECOND
    while not found():
        assert CLOCK.now_ns() < over_ns, f"waited for {what} in vain"
        CLOCK.sleep_until(CLOCK.now_ns() + 5 * MILLISECOND)


class Ticking:
    """A plant whose time goes on in a thread, as an emulator's loop makes it."""

    def __init__(self) -> None:
        self.plant = Plant(FR3, FIXTURE, 0.01, now_ns=CLOCK.now_ns())
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.01):
            self.plant.tick(FR3.home.copy(), CLOCK.now_ns())

    def close(self) -> None:
        self._end.set()
        self._thread.join()


@pytest.fixture(params=DRIVERS)
def gripper(request) -> Iterator[Gripper]:
    closing: list[Callable[[], object]] = []
    if request.param == "franka_hand":
        emulator = Emulator("fr3")
        closing.append(emulator.end)
        made = load("franka_hand", {}, host=emulator.host)
    else:
        body, host = Ticking(), address()
        closing.append(body.close)
        if request.param == "robotiq_socket":
            closing.append(RobotiqServer(host, body.plant).close)
            made = load("robotiq_socket", {}, host=host)
        else:
            line = RobotiqRtu(body.plant)
            closing.append(line.close)
            made = load("robotiq_serial", {"port": line.port}, host=host)
    try:
        yield made
    finally:
        made.close()
        for close in closing:
            close()


@pytest.fixture
def active(gripper: Gripper) -> Gripper:
    """Connected and activated, on a person's word."""
    gripper.connect()

    def recovered() -> bool:
        try:
            gripper.recover()
        except DeviceRefused:
            return False
        return True

    until("the activation", recovered)
    return gripper


def test_connecting_moves_nothing_and_says_what_a_person_has_to_do(gripper: Gripper) -> None:
    assert isinstance(gripper, Gripper) and 0.07 < gripper.stroke_m < 0.09
    gripper.connect()
    opening = gripper.opening()
    gripper.target(0.02)
    status = gripper.status()
    if status.mode == "fault":
        assert "acknowledge to activate it, the fingers will move" in status.reason
        assert abs(gripper.opening() - opening) < 1e-3


def test_the_latest_target_wins_and_is_reached(active: Gripper) -> None:
    for opening in np.linspace(0.07, 0.02, 6):
        active.target(float(opening))
    until("0.02 m", lambda: abs(active.opening() - 0.02) < 2e-3)
    active.target(0.06)
    until("0.06 m", lambda: abs(active.opening() - 0.06) < 2e-3)
    until("rest", lambda: active.status().mode == "idle")


def test_a_stop_leaves_the_fingers_where_they_are_until_a_new_target(active: Gripper) -> None:
    active.target(0.0)
    until("closing", lambda: active.opening() < 0.07)
    threads = [threading.Thread(target=active.stop) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    last = [active.opening()]

    def still() -> bool:
        last.append(active.opening())
        return len(last) > 40 and max(last[-40:]) - min(last[-40:]) < 5e-4

    until("rest", still)
    assert active.opening() > 0.005
    active.target(0.07)
    until("0.07 m", lambda: abs(active.opening() - 0.07) < 2e-3)


def test_close_leaves_no_thread_and_may_be_repeated(active: Gripper) -> None:
    active.target(0.03)
    active.close()
    active.close()
    names = {thread.name for thread in threading.enumerate()}
    assert not names & {"hand", "hand-states"}
    assert sum(thread.name == "robotiq" for thread in threading.enumerate()) <= 1  # the emulator's own


@pytest.mark.parametrize("driver", ["robotiq_socket", "franka_hand"])
def test_a_gripper_that_is_not_there_is_lost_in_one_line(driver: str) -> None:
    made = load(driver, {}, host=address())
    with pytest.raises(DeviceLost) as caught:
        made.connect()
    assert "\n" not in str(caught.value)


def test_a_stranger_on_the_grippers_port_is_told_from_a_gripper() -> None:
    class Stranger(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self.rfile.readline()
            self.wfile.write(b"HTTP/1.1 400 Bad Request\n\n\n\n\n")

    host = address()
    with socketserver.TCPServer((host, 63352), Stranger) as server:
        thread = threading.Thread(target=server.handle_request)
        thread.start()
        made = load("robotiq_socket", {}, host=host)
        with pytest.raises(DeviceLost, match="not a Robotiq gripper"):
            made.connect()
        made.close()
        thread.join()


@pytest.mark.parametrize("driver", DRIVERS)
def test_an_option_out_of_range_is_refused_by_name(driver: str) -> None:
    with pytest.raises(InputError, match="force_n must be a number from"):
        load(
            driver, {"force_n": 1e4, **({"port": "/dev/null"} if driver == "robotiq_serial" else {})}, host="127.0.0.1"
        )
