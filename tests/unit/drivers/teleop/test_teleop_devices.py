"""Each device through its real library, without hardware: what is read, and what unplugging and freezing do."""

from __future__ import annotations

import os
import pty
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from support.robots.cells import changed
from support.robots.teleop_devices import Puck, Servos, VirtualPad

from labctl.clock import SECOND, ManualClock, MonotonicClock
from labctl.devices import ByHand, Controller, Observation, load
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gamepad import Gamepad
from labctl.drivers.teleop.gate import Caps, Reading, axis_map
from labctl.drivers.teleop.gello import Gello
from labctl.drivers.teleop.keyboard import Keyboard
from labctl.drivers.teleop.polling import Poller
from labctl.drivers.teleop.pucks import PUCKS
from labctl.drivers.teleop.spacemouse import SpaceMouse
from labctl.errors import DeviceLost, InputError, MissingExtra
from labctl.testing.given import CELL, FIXTURE, SIMULATED

pytestmark = pytest.mark.real_time

CLOCK = MonotonicClock()
Q = np.array([0.0, -0.5, 0.0, -2.0, 0.0, 1.5, 0.7])


def read_until(poll: Callable[[], Reading | None], wanted: Callable[[Reading], bool]) -> Reading:
    until = CLOCK.now_ns() + 60 * SECOND
    while CLOCK.now_ns() < until:
        found = poll()
        if found is not None and wanted(found):
            return found
    raise AssertionError("the device never said so")


def test_a_puck_moves_turns_clutches_and_grips():
    puck = Puck()
    mouse = SpaceMouse(lambda: (puck, PUCKS[0x256F, 0xC635]), CLOCK)
    mouse.open()
    puck.move(175, -350, 0, 0, 0, -35)
    puck.press(1)
    found = read_until(mouse.poll, lambda r: r.engaged)
    assert found.axes == pytest.approx([1.0, -0.5, 0, 0, 0, 0.1]) and found.grip is None
    puck.press(3)
    assert read_until(mouse.poll, lambda r: r.presses == 1).engaged
    puck.press(1)
    puck.press(3)
    assert read_until(mouse.poll, lambda r: r.presses == 2).engaged, "the button counts when it goes down"
    puck.unplugged = True
    with pytest.raises(DeviceLost, match="connection broke"):
        mouse.poll()


@pytest.fixture
def pad(monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualPad]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    made = VirtualPad()
    yield made
    made.unplug()


def test_a_gamepad_by_sdl_with_its_cable_pulled(pad):
    device = Gamepad(pad.number, CLOCK)
    device.open()
    pad.axis(1, -1.0)  # the left stick away from the person
    pad.button(5, True)
    found = read_until(device.poll, lambda r: r.engaged and r.axes[0] > 0.9)
    assert found.axes[0] == pytest.approx(1.0, abs=1e-3) and found.grip is None
    pad.button(1, True)
    assert read_until(device.poll, lambda r: r.grip == 0.0).engaged
    pad.unplug()
    with pytest.raises(DeviceLost, match="unplugged"):
        read_until(device.poll, lambda r: False)
    device.close()


def test_a_gamepad_that_is_not_there_is_one_line():
    with pytest.raises(DeviceLost, match="gamepad 9 is not there; SDL sees"):
        Gamepad(9, CLOCK).open()


def test_a_keyboard_in_a_terminal_moves_while_keys_repeat_and_ends_with_the_terminal():
    master, slave = pty.openpty()
    keyboard = Keyboard(Path(os.ttyname(slave)), CLOCK)
    keyboard.open()
    assert not read_until(keyboard.poll, lambda r: True).engaged, "nobody has typed"
    os.write(master, b"w")
    found = read_until(keyboard.poll, lambda r: r.axes[0] == 1.0)
    assert found.engaged and found.grip is None and not found.axes[1:].any()
    assert not read_until(keyboard.poll, lambda r: not r.engaged).axes.any(), "the key no longer repeats"
    for presses in (1, 2):
        os.write(master, b"g")
        assert read_until(keyboard.poll, lambda r, presses=presses: r.presses == presses).engaged
        assert read_until(keyboard.poll, lambda r: not r.engaged).presses == presses
    os.write(master, b"\r")
    assert read_until(keyboard.poll, lambda r: r.done).done
    os.close(slave)
    os.close(master)
    with pytest.raises(DeviceLost, match="terminal"):
        read_until(keyboard.poll, lambda r: False)
    keyboard.close()


@pytest.fixture
def servos() -> Iterator[Servos]:
    made = Servos({number: 0 for number in range(1, 9)})
    yield made
    made.end()


def gello(servos: Servos) -> Gello:
    return Gello(servos.port, 57600, [*range(1, 8)], np.ones(7), np.zeros(7), (8, 0.0, 0.7), CLOCK)


def test_a_leader_arm_is_read_by_the_vendors_library(servos):
    device = gello(servos)
    device.open()
    servos.ticks |= {1: 1024, 2: -512, 8: round(0.35 / (2 * np.pi) * 4096)}
    found = read_until(device.poll, lambda r: r.joints is not None and r.joints[0] > 1)
    assert found.joints[0] == pytest.approx(np.pi / 2) and found.joints[1] == pytest.approx(-np.pi / 4)
    assert found.engaged and found.grip == pytest.approx(1 - 0.3 / 0.8, abs=0.01)
    servos.silent = True
    with pytest.raises(DeviceLost, match="no answer from the servos for 1 s"):
        read_until(device.poll, lambda r: False)
    device.close()


def test_answers_that_a_busy_computer_missed_are_no_lost_leader(servos):
    clock = ManualClock()
    device = Gello(servos.port, 57600, [*range(1, 8)], np.ones(7), np.zeros(7), (8, 0.0, 0.7), clock)
    device.open()
    servos.silent = True
    for _ in range(12):
        clock.sleep_until(clock.now_ns() + SECOND // 20)
        assert device.poll() is None
    clock.sleep_until(clock.now_ns() + SECOND // 2)
    with pytest.raises(DeviceLost, match="for 1 s"):
        device.poll()
    device.close()


class Held:
    """A device that says what it is told."""

    leader, quiet = False, False

    def __init__(self) -> None:
        self.axes, self.engaged, self.lost, self.frozen = np.zeros(6), False, False, False

    def open(self) -> None: ...

    def poll(self) -> Reading | None:
        CLOCK.sleep_until(CLOCK.now_ns() + 5_000_000)
        if self.lost:
            raise DeviceLost("it was unplugged")
        return None if self.frozen else Reading(CLOCK.now_ns(), axes=self.axes, engaged=self.engaged, grip=1.0)

    def close(self) -> None: ...


def until(found: Callable[[], bool]) -> None:
    """Wait for what the thread that reads a device makes of it."""
    over_ns = CLOCK.now_ns() + 60 * SECOND
    while not found():
        assert CLOCK.now_ns() < over_ns, "waited for a minute in vain"
        CLOCK.sleep_until(CLOCK.now_ns() + 5_000_000)


def seen() -> Observation:
    return Observation(CLOCK.now_ns(), {"q": Q, "gripper": np.array([0.04])})


@pytest.fixture
def hand() -> Iterator[tuple[Teleop, Held]]:
    device = Held()
    caps = Caps(ramp_s=0.0, stale_s=0.1)
    made = Teleop(device, "puck", caps, axes=axis_map(("x", "y", "z", "rx", "ry", "rz")), opening_m=(0.0, 0.08))
    made.load()
    yield made, device
    made.close()


def test_a_person_is_a_controller_whose_hand_becomes_speeds(hand):
    person, device = hand
    assert isinstance(person, Controller) and person.kind == "real"
    device.axes, device.engaged = np.array([1.0, 0, 0, 0, 0, 0]), True
    person.warm(seen())
    person.reset(0)
    until = CLOCK.now_ns() + 60 * SECOND
    while not (chunk := person.infer(seen())).values.any() and CLOCK.now_ns() < until:
        pass
    assert chunk.space == "tcp_velocity" and chunk.values[0, 0] == pytest.approx(0.15)
    assert chunk.gripper == pytest.approx([0.04] * 5), "as it is: the hand's own says open, and always did"


def test_a_word_that_the_task_is_done_is_heard_though_another_reading_came_before_the_next_question(hand):
    person, _ = hand
    person.infer(seen())
    person._poller._see(Reading(CLOCK.now_ns(), axes=np.zeros(6), done=True))
    until(lambda: not person._poller.newest().done)
    assert [person.infer(seen()).done for _ in range(2)] == [True, False]
    person._poller._see(Reading(CLOCK.now_ns(), axes=np.zeros(6), done=True))
    person.reset(0)
    assert not person.infer(seen()).done, "it was said of the episode before, or before go"


def test_who_types_once_may_start_the_trial_at_another_keyboard(hand):
    """A key that has to repeat while somebody presses start at the console needs two people."""
    person, device = hand
    device.axes, device.engaged = np.zeros(6), False
    until(lambda: person.hand(Q)["waits"] == "hold the clutch")
    device.engaged = True
    person.warm(seen())
    device.engaged = False
    until(lambda: not person.hand(Q)["engaged"])
    assert person.hand(Q)["waits"] == "hold the clutch", "a clutch can be held on"
    device.momentary = True
    assert person.hand(Q)["waits"] == ""
    person.reset(0)
    assert person.hand(Q)["waits"] == "", "the controller's node resets after it has warmed"
    person.infer(seen())
    person.reset(1)
    assert person.hand(Q)["waits"] == "hold the clutch", "of another episode nobody has typed"


def test_a_frozen_device_is_rest_and_an_unplugged_one_ends_the_episode(hand):
    person, device = hand
    device.axes, device.engaged = np.ones(6), True
    person.warm(seen())
    until(lambda: bool(person.infer(seen()).values.any()))
    device.frozen = True
    until(lambda: not person.infer(seen()).values.any())
    CLOCK.sleep_until(CLOCK.now_ns() + SECOND // 5)
    assert not person.infer(seen()).values.any()
    device.frozen, device.lost = False, True
    with pytest.raises(DeviceLost, match="puck is gone: it was unplugged"):
        until(lambda: person.infer(seen()) is None)


def test_a_hand_says_what_the_arm_waits_for(hand):
    person, device = hand
    assert isinstance(person, ByHand)

    def until_it_says(words: str) -> None:
        """What it waits for is by its newest reading, which may be an old one for a moment on a busy machine."""
        until(lambda: person.hand(Q)["waits"] == words)

    until_it_says("hold the clutch")
    assert (person.hand(Q)["device"], person.hand(Q)["engaged"]) == ("puck", False)
    device.engaged = True
    person.warm(seen())

    def has_taken_hold() -> bool:
        person.infer(seen())
        return person.hand(Q)["waits"] == ""

    until(has_taken_hold)
    device.engaged = False
    until_it_says("hold the clutch")
    device.frozen = True
    until_it_says("no fresh input from the device")
    device.frozen, device.lost = False, True
    until_it_says("puck is gone: it was unplugged")


def test_a_leader_of_another_robot_is_told_and_nobody_waits_for_it():
    """The screen's question raised numpy's words, in a place where nothing may be raised."""

    class Other(Held):
        leader = True

        def poll(self) -> Reading | None:
            found = super().poll()
            return None if found is None else Reading(found.t_ns, joints=Q, engaged=True, grip=1.0)

    axes = axis_map(("x", "y", "z", "rx", "ry", "rz"))
    person = Teleop(Other(), "gello", Caps(), axes=axes, opening_m=(0.0, 0.08))
    person.load()
    says = "the leader has another number of joints (7) than the robot (6)"
    assert person.hand(Q[:6])["waits"] == says
    six = Observation(CLOCK.now_ns(), {"q": Q[:6], "gripper": np.array([0.04])})
    for asks in (person.warm, person.wants):
        with pytest.raises(DeviceLost) as told:
            asks(six)
        assert str(told.value) == f"gello: {says}; correct [teleop.options]"
    person.close()


def test_waiting_for_the_clutch_ends_when_the_episode_is_given_up(hand):
    import threading

    person, _ = hand
    problems: list[str] = []

    def wait() -> None:
        try:
            person.warm(seen())
        except DeviceLost as error:
            problems.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    person.close()
    waiting.join(timeout=60)
    assert problems == ["closed before the hand was ready: hold the clutch"] or "no fresh input" in problems[0]


def test_a_cell_without_a_teleoperation_table_says_what_to_add():
    with pytest.raises(InputError, match=r"no \[teleop\] table; add one with device = one of keyboard"):
        load("teleop", {}, **SIMULATED)
    with pytest.raises(InputError, match="no driver named 'teleop_pedal'"):
        load("teleop", {}, cell=changed(CELL, {"teleop": {"device": "pedal"}}), fixture=FIXTURE)


def test_a_device_of_ones_own_is_named_by_its_module():
    cell = changed(CELL, {"teleop": {"device": "support.robots.virtual_hand:build", "options": {"socket": "s"}}})
    person = load("teleop", {}, cell=cell, fixture=FIXTURE)
    assert isinstance(person, Teleop) and person.hand(Q)["device"] == "support.robots.virtual_hand:build"


@pytest.mark.parametrize(
    ("library", "device", "options"),
    [
        ("pygame", "gamepad", {}),
        ("hid", "spacemouse", {}),
        ("dynamixel_sdk", "gello", {"port": "none", "signs": [1] * 7, "offsets_rad": [0] * 7}),
    ],
)
def test_a_library_that_is_not_installed_is_one_line(library, device, options, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    person = load("teleop", {}, cell=changed(CELL, {"teleop": {"device": device, "options": options}}), fixture=FIXTURE)
    with pytest.raises(MissingExtra, match=r"pip install 'labctl\[teleop\]'"):
        person.load()


class Broken:
    """A device that cannot be opened, or whose driver has a fault."""

    leader = quiet = False

    def __init__(self, *, opens: bool) -> None:
        self.opens, self.closed = opens, 0

    def open(self) -> None:
        if not self.opens:
            raise DeviceLost("it is no terminal")

    def poll(self) -> Reading | None:
        raise ZeroDivisionError("in a driver")

    def close(self) -> None:
        self.closed += 1


def test_a_device_that_could_not_be_opened_is_let_go_of():
    device = Broken(opens=False)
    with pytest.raises(DeviceLost, match="no terminal"):
        Poller(device, "stick", CLOCK, lambda reading: None).start()
    assert device.closed == 1


def test_a_driver_that_fails_is_a_device_that_is_gone():
    poller = Poller(Broken(opens=True), "stick", CLOCK, lambda reading: None)
    with pytest.raises(DeviceLost, match="stick is gone: ZeroDivisionError: in a driver"):
        poller.start()
    poller.stop()


def test_a_leader_on_a_port_that_is_none_or_at_a_rate_that_its_library_lacks_is_one_line(servos, tmp_path):
    for port, baud, says in ((str(tmp_path / "none"), 57600, "cannot be opened"), (servos.port, 57601, "57601 baud")):
        device = Gello(port, baud, [*range(1, 8)], np.ones(7), np.zeros(7), (8, 0.0, 0.7), CLOCK)
        with pytest.raises(DeviceLost, match=says):
            device.open()
        device.close()
