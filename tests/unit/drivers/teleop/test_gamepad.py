"""A gamepad of any layout: at rest it moves nothing, each stick and button means what it says, and it is not believed
before all of it was seen at rest.

The layouts are SDL's own mapping strings of real pads on Linux (its table, by the pad's GUID); the pads exist in SDL
alone. Unverified on real pads.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from support.robots.teleop_devices import VirtualPad

from labctl.clock import ManualClock
from labctl.devices import Observation
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gamepad import Gamepad
from labctl.drivers.teleop.gate import Caps, Reading, axis_map
from labctl.errors import DeviceLost

pytestmark = pytest.mark.real_time

# Of SDL 2.28.4's table. "kernel": by the driver of Linux, whose axes differ; "hidapi": by SDL's own driver.
PADS = {
    "xbox_360": "030000005e0400008e02000014010000",
    "xbox_one_s_bluetooth": "050000005e040000fd02000003090000",  # triggers a5, a4; right stick a2, a3; bumper b7
    "xbox_one_bluetooth": "050000005e040000e002000003090000",
    "dualshock_4": "030000004c050000c405000011810000",  # hid-sony: triggers a2, a5
    "dualshock_4_generic": "030000004c050000c405000011010000",  # hid-generic: triggers a3, a4; cross is b1
    "dualshock_4_hidapi": "050000004c050000cc09000000006800",
    "dualsense": "030000004c050000e60c000011810000",
    "dualsense_generic": "030000004c050000e60c000011010000",
    "switch_pro": "030000007e0500000920000011810000",  # triggers are buttons 7 and 8, the bumper is 6
    "switch_pro_bluetooth": "050000007e0500000920000001000000",
}
REST = np.zeros(6)
Q = np.zeros(7)


@pytest.fixture(params=PADS.values(), ids=PADS)
def pad(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[VirtualPad]:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    made = VirtualPad(request.param)
    yield made
    made.unplug()


@pytest.fixture
def device(pad: VirtualPad) -> Iterator[Gamepad]:
    made = Gamepad(pad.number, ManualClock(1))
    made.open()
    yield made
    made.close()


def read(device: Gamepad) -> Reading:
    device.poll()
    found = device.poll()
    assert found is not None
    return found


def test_a_pad_at_rest_with_its_clutch_held_moves_nothing(pad: VirtualPad, device: Gamepad) -> None:
    pad.press("rightshoulder")
    found = read(device)
    assert found.engaged and not found.done and found.grip is None
    assert found.axes == pytest.approx(REST, abs=1e-4)
    assert found.parts is not None and max(map(abs, found.parts.values())) < 1e-4


# The base's x is away from the person, y to the left, z up; turned about -y a hanging tool's tip goes away.
@pytest.mark.parametrize(
    ("stick", "value", "axis", "wish"),
    [
        ("lefty", -1.0, 0, 1.0),
        ("leftx", -1.0, 1, 1.0),
        ("righttrigger", 1.0, 2, 1.0),
        ("lefttrigger", 1.0, 2, -1.0),
        ("righty", -1.0, 4, -1.0),
        ("rightx", -1.0, 5, 1.0),
    ],
)
def test_each_stick_and_trigger_moves_its_own_axis(
    stick: str, value: float, axis: int, wish: float, pad: VirtualPad, device: Gamepad
) -> None:
    pad.push(stick, value)
    found = read(device).axes
    assert found == pytest.approx(np.where(np.arange(6) == axis, wish, 0.0), abs=1e-3)


@pytest.mark.parametrize("button", ["a", "b", "x", "y", "back", "guide", "start", "leftshoulder", "rightshoulder"])
def test_no_button_but_the_right_bumper_is_the_clutch(button: str, pad: VirtualPad, device: Gamepad) -> None:
    pad.press(button)
    found = read(device)
    assert found.engaged == (button == "rightshoulder") and found.done == (button == "start")
    assert found.grip is None, "without the clutch the gripper is not asked for anything"


def test_a_and_b_open_and_close_while_the_clutch_is_held(pad: VirtualPad, device: Gamepad) -> None:
    pad.press("rightshoulder")
    for button, grip in (("b", 0.0), ("a", 1.0)):
        pad.press(button)
        assert read(device).grip == grip
        pad.press(button, False)
        assert read(device).grip == grip
    pad.press("rightshoulder", False)
    assert read(device).grip is None, "the next press is a first one again, and counts at once"


def test_a_trigger_that_has_sent_nothing_is_no_wish_until_it_was_pressed_and_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """SDL gives half of the way for a trigger that is an axis until its first event."""
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pad, clock = VirtualPad(silent_triggers=True), ManualClock(1)
    device = Gamepad(pad.number, clock)
    person = Teleop(
        device, "pad", Caps(), axes=axis_map(("x", "y", "z", "rx", "ry", "rz")), opening_m=(0.0, 0.08), clock=clock
    )
    try:
        person.load()
        pad.press("rightshoulder")
        pad.push("righttrigger", 1.0)

        def waits_for(words: str) -> str:
            """What the pad waits for, once it says these words; its thread reads it."""
            for _ in range(500):
                said = str(person.hand(Q)["waits"])
                if words in said if words else not said:
                    return said
                person._poller.rest(0.01)
            raise AssertionError(f"it never said {words!r} but {said!r}")

        said = waits_for("left trigger is at 0.50")
        assert said.startswith("let go of everything but the clutch: ")
        assert not person.hand(Q)["engaged"]
        assert not person.infer(Observation(1, {"q": Q, "gripper": np.array([0.04])})).values.any()
        pad.push("righttrigger", 0.0)
        pad.push("lefttrigger", 1.0)
        waits_for("left trigger is at 1.00")
        pad.push("lefttrigger", 0.0)
        waits_for("")
    finally:
        person.close()
        pad.unplug()


def test_a_joystick_that_sdl_has_no_layout_of_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SDL_VIDEODRIVER", "dummy")
    pad = VirtualPad(None)
    try:
        with pytest.raises(DeviceLost, match=r"has no layout in SDL's table; take another number, or give") as caught:
            Gamepad(pad.number, ManualClock(1)).open()
        assert "\n" not in str(caught.value)
    finally:
        pad.unplug()
