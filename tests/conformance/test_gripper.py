"""What every gripper does: moves nothing by connecting, follows the latest target, stays where it is stopped, activates
on a person's word, and leaves no thread behind.
"""

from __future__ import annotations

import socketserver
import threading
from collections.abc import Callable, Iterator
from typing import ClassVar

import pytest
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.robotiq.emulator.rtu import RobotiqRtu
from labctl.drivers.robotiq.emulator.server import RobotiqServer
from labctl.drivers.sim.plant import SimulatedPlant
from support.robots.emulators import Emulator, address

from labctl.clock import MonotonicClock
from labctl.devices import Gripper, load
from labctl.errors import DeviceLost, InputError
from labctl.testing.given import FIXTURE
from labctl.testing.gripper import GripperConformance

pytestmark = [pytest.mark.real_time, pytest.mark.busy]

CLOCK = MonotonicClock()
DRIVERS = ("robotiq_socket", "robotiq_serial", "franka_hand")


class Ticking:
    """A plant whose time goes on in a thread, as an emulator's loop makes it."""

    def __init__(self) -> None:
        self.plant = SimulatedPlant(FR3, FIXTURE, 0.01, now_ns=CLOCK.now_ns())
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._end.wait(0.01):
            self.plant.tick(FR3.home.copy(), CLOCK.now_ns())

    def close(self) -> None:
        self._end.set()
        self._thread.join()


class TestEveryGripper(GripperConformance):
    threads_left: ClassVar = {"hand": 0, "hand-states": 0, "robotiq": 1}  # one of that name is the emulator's
    grasps: ClassVar = ("FrankaHand",)

    @pytest.fixture(params=DRIVERS)
    def gripper(self, request: pytest.FixtureRequest) -> Iterator[Gripper]:
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
