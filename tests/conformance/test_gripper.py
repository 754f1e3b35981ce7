"""What every gripper does: moves nothing by connecting, follows the latest target, stays where it is stopped, activates
on a person's word, and leaves no thread behind.
"""

from __future__ import annotations

import select
import socketserver
import threading
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import ClassVar

import pytest
from support.robots.emulators import Emulator, address

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Gripper, load
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.franka.emulator.hand import GRASP, MOVE, STOP, FciHand
from labctl.drivers.robotiq.emulator.rtu import RobotiqRtu
from labctl.drivers.robotiq.emulator.server import RobotiqServer
from labctl.drivers.sim.plant import SimulatedPlant
from labctl.errors import DeviceLost, DeviceRefused, InputError
from labctl.testing.given import FIXTURE
from labctl.testing.gripper import GripperConformance, until

pytestmark = [pytest.mark.real_time, pytest.mark.busy]

CLOCK = MonotonicClock()
DRIVERS = ("robotiq_socket", "robotiq_serial", "franka_hand", "ros2_gripper")
OFTEN = [pytest.param(name, marks=pytest.mark.thorough if name == "ros2_gripper" else ()) for name in DRIVERS]


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
    threads_left: ClassVar = {
        "hand": 0,
        "hand-states": 0,
        "hand-stop": 0,
        "robotiq": 1,
        "ros2 gripper": 0,
    }  # one of that name is the emulator's

    @pytest.fixture(params=OFTEN)
    def gripper(self, request: pytest.FixtureRequest) -> Iterator[Gripper]:
        closing: list[Callable[[], object]] = []
        if request.param == "ros2_gripper":
            emulator = Emulator("ros2")
            closing.append(emulator.end)
            options = {"domain": emulator.domain, "stroke_m": 0.08, "silence_s": 2.0}
            made = load("ros2_gripper", options, host=emulator.host)
        elif request.param == "franka_hand":
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


class Fingers:
    """Fingers with something 30 mm wide between them, and the emulated hand that moves them, in a thread."""

    def __init__(self, host: str) -> None:
        self.opening = self._wanted = 0.08
        self.world = SimpleNamespace(held=None)
        self.asked: list[int] = []
        self._hand = FciHand(self, host)  # type: ignore[arg-type]
        request = self._hand._request
        self._hand._request = lambda command, *rest: (self.asked.append(command), request(command, *rest))[1]
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def grip(self, opening_m: float) -> None:
        self._wanted = opening_m

    def _run(self) -> None:
        while not self._end.is_set():
            for sock in select.select(self._hand.sockets(), [], [], 0.001)[0]:
                self._hand.read(sock)
            step = min(max(self._wanted - self.opening, -2e-4), 2e-4)
            self.opening = max(self.opening + step, 0.03)
            self._hand.cycle(0)

    def close(self) -> None:
        self._end.set()
        self._thread.join()
        self._hand.close()


def test_what_stops_a_hand_that_closes_is_grasped_and_held_until_it_is_to_open() -> None:
    """A move that an object stops is not answered before it is stopped, as on real hands (franka_ros issue 281)."""
    host = address()
    fingers = Fingers(host)
    hand = load("franka_hand", {}, host=host)
    try:
        hand.connect()
        hand.target(0.05)
        until("50 mm", lambda: abs(hand.opening() - 0.05) < 1e-3 and hand.status().mode == "idle")
        assert GRASP not in fingers.asked, "nothing was there"
        hand.target(0.02)
        until("a grasp", lambda: GRASP in fingers.asked and hand.status().mode == "idle")
        assert abs(hand.opening() - 0.03) < 1e-3
        for opening in (0.01, 0.0, 0.025):
            hand.target(opening)
            CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 5)
        assert fingers.asked[-1] == GRASP, "no move let go of it"
        hand.target(0.06)
        until("60 mm", lambda: abs(hand.opening() - 0.06) < 1e-3)
        assert fingers.asked[1:] == [MOVE, MOVE, STOP, GRASP, MOVE]
    finally:
        hand.close()
        fingers.close()


def test_a_franka_hand_that_was_lost_is_there_again_on_a_persons_word_and_moves_nothing_by_that() -> None:
    """Issue 20.15's kind: as a Robotiq after one glitch of its line, it could not be had back in the same run."""
    host = address()
    fingers = Fingers(host)
    hand = load("franka_hand", {}, host=host)
    try:
        hand.connect()
        fingers.close()
        until("the loss", lambda: hand.status().mode == "lost")
        with pytest.raises(DeviceRefused, match="hand: "):
            hand.recover()
        assert hand.status().mode == "lost"
        hand.target(0.04)
        fingers = Fingers(host)
        hand.recover()
        assert hand.status().mode == "idle"
        hand.target(0.06)
        until("60 mm", lambda: abs(hand.opening() - 0.06) < 1e-3)
        assert fingers.asked.count(MOVE) == 1, "what was asked for before is forgotten"
    finally:
        hand.close()
        fingers.close()


def test_a_franka_hand_that_was_not_homed_says_so_when_it_is_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its greatest width is estimated by homing (libfranka, GripperState::max_width): staging waited for it to open."""
    monkeypatch.setattr("labctl.drivers.franka.emulator.hand.MAX_WIDTH_M", 0.0)
    host = address()
    fingers = Fingers(host)
    hand = load("franka_hand", {}, host=host)
    try:
        with pytest.raises(
            DeviceRefused, match=r"hand: by its own word its fingers open 0 mm at most, and not 80: home"
        ):
            hand.connect()
    finally:
        hand.close()
        fingers.close()


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
    wrong = "stroke_m" if driver == "ros2_gripper" else "force_n"
    more = {"port": "/dev/null"} if driver == "robotiq_serial" else {}
    with pytest.raises(InputError, match=f"{wrong} must be a number"):
        load(driver, {wrong: 1e4, **more}, host="127.0.0.1")
