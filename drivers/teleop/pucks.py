"""The SpaceMice that labctl can read: what each sends, and which way is which. Data, and one function over it.

May not: read a device, or guess at one that is not in the table.

Facts of the device table of pyspacemouse 2.1.0 (products, reports, buttons, 350 counts at full deflection) and of its
conversion to ROS's axes: a puck counts as the HID usage tables say, x to the right, y towards the person, z down, and
turns about these by the right hand. labctl's are x away from the person, y to the left, z up. Unverified on hardware.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

import numpy as np

FULL = 350.0
VENDORS = (0x256F, 0x046D)
# Row by row, labctl's x y z of a puck's own x y z; its turns are turned the same way.
FRAME = np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]])
TRANSLATION, ROTATION, BUTTONS = 1, 2, 3  # numbers of its reports


@dataclass(frozen=True, slots=True)
class Puck:
    """One model. one_report: translation and rotation come in one report of six int16, not in two of three."""

    name: str
    one_report: bool


PUCKS = {
    (0x046D, 0xC625): Puck("SpacePilot", False),
    (0x046D, 0xC626): Puck("SpaceNavigator", False),
    (0x046D, 0xC627): Puck("SpaceExplorer", False),
    (0x046D, 0xC629): Puck("SpacePilot Pro", False),
    (0x046D, 0xC62B): Puck("SpaceMouse Pro", False),
    (0x256F, 0xC62E): Puck("SpaceMouse Wireless, by cable", True),
    (0x256F, 0xC632): Puck("SpaceMouse Pro Wireless", True),
    (0x256F, 0xC633): Puck("SpaceMouse Enterprise", True),
    (0x256F, 0xC635): Puck("SpaceMouse Compact", False),
    (0x256F, 0xC638): Puck("SpaceMouse Pro Wireless, by Bluetooth", True),
    (0x256F, 0xC63A): Puck("SpaceMouse Wireless, newer", True),
    (0x256F, 0xC652): Puck("Universal Receiver", True),
}
WITHOUT_BUTTONS = {(0x256F, 0xC641): "SpaceMouse Module (USB)"}  # nothing to hold as a clutch


def deflection(puck: Puck, report: bytes) -> tuple[slice, np.ndarray] | None:
    """Which of the six axes (x y z rx ry rz) a report is of, and their values, 1 at full deflection; None for a report
    that is of none or too short.
    """
    kind, count = (report[0] if report else 0), 6 if puck.one_report else 3
    if kind not in ((TRANSLATION,) if puck.one_report else (TRANSLATION, ROTATION)) or len(report) < 1 + 2 * count:
        return None
    counts = np.array(struct.unpack_from(f"<{count}h", report, 1), dtype=float).reshape(-1, 3)
    values = (counts @ FRAME.T).ravel() / FULL
    begin = 3 if kind == ROTATION else 0
    return slice(begin, begin + count), values
