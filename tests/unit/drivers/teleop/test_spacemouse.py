"""A puck that is pulled up is a wish to go up, on every model.

The reports are built by the device table of pyspacemouse 2.1.0 as it stands there: product, report and bytes of each
axis, buttons; and by HID's own axes (x right, y towards the person, z down). Unverified on hardware.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np
import pytest
from support.robots.teleop_devices import Puck as Plastic

from labctl.clock import MILLISECOND, ManualClock
from labctl.drivers.teleop.gate import Caps, Gate, Reading
from labctl.drivers.teleop.pucks import PUCKS
from labctl.drivers.teleop.rest import Rest
from labctl.drivers.teleop.spacemouse import SpaceMouse, chosen
from labctl.errors import DeviceLost

# the report and the first byte of x y z, then of the turns about them
TWO = ((1, 1), (1, 3), (1, 5), (2, 1), (2, 3), (2, 5))
ONE = ((1, 1), (1, 3), (1, 5), (1, 7), (1, 9), (1, 11))
MODELS = {
    (0x46D, 0xC625): TWO,
    (0x46D, 0xC626): TWO,
    (0x46D, 0xC627): TWO,
    (0x46D, 0xC629): TWO,
    (0x46D, 0xC62B): TWO,
    (0x256F, 0xC62E): ONE,
    (0x256F, 0xC632): ONE,
    (0x256F, 0xC633): ONE,
    (0x256F, 0xC635): TWO,
    (0x256F, 0xC638): ONE,
    (0x256F, 0xC63A): ONE,
    (0x256F, 0xC652): ONE,
}
# what the hand does -> the puck's own axis and sign; labctl's axis and sign (x away from the person, y left, z up)
MOVES = {
    "pulled_up": (2, -1, 2, +1),
    "pressed_down": (2, +1, 2, -1),
    "pushed_away": (1, -1, 0, +1),
    "pushed_right": (0, +1, 1, -1),
    "turned_left": (5, -1, 5, +1),  # counterclockwise, seen from above
    "tipped_away": (3, -1, 4, +1),  # its top goes away from the person: about y, to the left
    "tipped_right": (4, -1, 3, +1),  # its top goes to the right: about x, away from the person
}


def reports(places: tuple[tuple[int, int], ...], counts: list[int]) -> list[bytes]:
    made: dict[int, bytearray] = {}
    for (number, byte), count in zip(places, counts, strict=True):
        report = made.setdefault(number, bytearray([number]))
        report.extend(bytes(max(0, byte + 2 - len(report))))
        struct.pack_into("<h", report, byte, count)
    return [bytes(report) for report in made.values()]


def opened(ids: tuple[int, int]) -> tuple[SpaceMouse, Plastic, ManualClock]:
    plastic, clock = Plastic(), ManualClock(1)
    mouse = SpaceMouse(lambda: (plastic, PUCKS[ids]), clock)
    mouse.open()
    return mouse, plastic, clock


def test_every_model_of_the_table_is_tried() -> None:
    assert set(PUCKS) == set(MODELS)


@pytest.mark.parametrize("ids", MODELS, ids=lambda ids: PUCKS[ids].name)
@pytest.mark.parametrize("move", MOVES)
def test_a_puck_moves_the_tool_the_way_it_is_moved(move: str, ids: tuple[int, int]) -> None:
    mouse, plastic, _ = opened(ids)
    own, sign, axis, wish = MOVES[move]
    counts = [0] * 6
    counts[own] = 350 * sign
    plastic.reports.extend(reports(MODELS[ids], counts))
    while plastic.reports:
        found = mouse.poll()
    assert found is not None
    assert found.axes == pytest.approx(np.where(np.arange(6) == axis, wish, 0.0))
    assert not found.engaged and found.grip is None


@pytest.mark.parametrize("ids", MODELS, ids=lambda ids: PUCKS[ids].name)
def test_the_first_button_is_the_clutch_and_the_second_toggles_the_gripper_while_it_is_held(ids) -> None:
    mouse, plastic, _ = opened(ids)
    seen = []
    for buttons in (0b10, 0b00, 0b01, 0b11, 0b01, 0b11):
        plastic.press(buttons)
        found = mouse.poll()
        assert found is not None
        seen.append((found.engaged, found.presses))
    assert seen == [(False, 0), (False, 0), (True, 0), (True, 1), (True, 1), (True, 2)]


def test_a_puck_that_is_not_at_rest_when_it_is_opened_is_no_wish() -> None:
    mouse, plastic, _ = opened((0x256F, 0xC635))
    rest = Rest(0.05)

    def see() -> str:
        found = mouse.poll()
        assert found is not None
        rest.see(found)
        return rest.missing

    plastic.reports.extend(reports(TWO, [0, 0, 200, 0, 0, 0]))
    assert "puck has sent nothing yet" in see(), "of its turns nothing is known"
    assert "puck is at 0.57" in see()
    plastic.reports.extend(reports(TWO, [0, 0, 0, 0, 0, 0]))
    assert see() == ""


def test_a_puck_that_sends_nothing_rests() -> None:
    mouse, _, clock = opened((0x256F, 0xC635))
    assert mouse.poll() is None, "it may be about to say something"
    clock.sleep_until(clock.now_ns() + 60 * MILLISECOND)
    found = mouse.poll()
    assert found is not None and not found.axes.any() and found.parts == {"puck": 0.0}


def test_a_puck_that_falls_silent_while_it_is_pushed_is_stale_and_its_clutch_let_go() -> None:
    """Its battery dies: the receiver stays, raises nothing, and the arm drove on."""
    mouse, plastic, clock = opened((0x256F, 0xC652))
    gate = Gate(Caps(ramp_s=0.0, stale_s=0.1), quiet=False)

    def read() -> Reading:
        found = None
        while found is None or plastic.reports:
            found = mouse.poll() or found
            clock.sleep_until(clock.now_ns() + 20 * MILLISECOND)
        return found

    plastic.press(0b01)
    plastic.reports.extend(reports(ONE, [0, -350, 0, 0, 0, 0]))
    assert gate.twist(read(), clock.now_ns())[0] > 0
    silent_ns = clock.now_ns()
    while clock.now_ns() < silent_ns + 200 * MILLISECOND:
        last = read()
    assert not gate.twist(last, clock.now_ns()).any()
    assert gate.resting(last, clock.now_ns()) == "no fresh input from the device"
    plastic.reports.extend(reports(ONE, [0, -350, 0, 0, 0, 0]))
    assert gate.twist(read(), clock.now_ns())[0] > 0, "a word that was lost on its way"
    silent_ns = clock.now_ns()
    while clock.now_ns() < silent_ns + 600 * MILLISECOND:
        last = read()
    plastic.reports.extend(reports(ONE, [0, -350, 0, 0, 0, 0]))
    last = read()
    assert not last.engaged and gate.resting(last, clock.now_ns()) == "hold the clutch"


@pytest.mark.parametrize("last", [0, 3, -17])
def test_a_puck_at_rest_sends_nothing_and_its_clutch_stays_held(last: int) -> None:
    """Also one whose last word is some counts of its 350 off zero."""
    mouse, plastic, clock = opened((0x256F, 0xC652))
    plastic.reports.extend(reports(ONE, [0, -350, 0, 0, 0, 0]))
    plastic.reports.extend(reports(ONE, [0, last, 0, 0, 0, 0]))
    plastic.press(0b01)
    while plastic.reports:
        mouse.poll()
    for _ in range(50):
        clock.sleep_until(clock.now_ns() + 60 * MILLISECOND)
        found = mouse.poll()
        assert found is not None and found.engaged and found.t_ns == clock.now_ns() and not found.axes.any()


def entry(vendor: int, product: int, name: str, usage: int = 8) -> dict[str, Any]:
    ids = {"vendor_id": vendor, "product_id": product}
    return {**ids, "product_string": name, "path": b"/dev/hidraw3", "usage_page": 1, "usage": usage}


@pytest.mark.parametrize(
    ("there", "path", "says"),
    [
        ([entry(0x256F, 0xC641, "SpaceMouse Module")], None, "256f:c641\\) has no button to hold as a clutch"),
        ([entry(0x256F, 0xC777, "SpaceMouse 2030")], None, "2030 \\(256f:c777\\) is not among the models"),
        ([entry(0x1234, 1, "Mouse")], "/dev/hidraw3", "Mouse \\(1234:0001\\) at /dev/hidraw3 is not among the models"),
        ([entry(0x046D, 0xC077, "USB mouse")], None, "no SpaceMouse found; plug it in"),
        ([], "/dev/hidraw9", "no SpaceMouse found at /dev/hidraw9"),
    ],
)
def test_what_labctl_cannot_read_is_refused_in_one_line(
    there: list[dict[str, Any]], path: str | None, says: str
) -> None:
    with pytest.raises(DeviceLost, match=says):
        chosen(there, path)


def test_of_a_receivers_interfaces_the_puck_is_taken() -> None:
    keys, puck = entry(0x256F, 0xC652, "Receiver", usage=6), entry(0x256F, 0xC652, "Receiver")
    assert chosen([keys, puck], None) == (puck, PUCKS[0x256F, 0xC652])
