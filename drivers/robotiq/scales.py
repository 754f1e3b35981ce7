"""What is the same for a Robotiq 2F-85 on a socket and on a serial line: scales, and what its numbers mean.

May not: talk to a gripper. Numbers: Robotiq 2F-85 instruction manual ("Control", register map) and data sheet.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from labctl.drivers.common.options import Options

STROKE_M = 0.085
SPEED_M_S = (0.02, 0.15)
FORCE_N = (20.0, 235.0)
STATES = {
    0: "not activated: acknowledge to activate it, the fingers will move",
    1: "activating; wait",
    2: "not activated: acknowledge to activate it, the fingers will move",
}
FAULTS = {
    5: "a motion waits for the activation",
    7: "not activated: acknowledge to activate it, the fingers will move",
    8: "too hot; wait until it has cooled",
    9: "no communication for a second",
    10: "undervoltage",
    11: "an automatic release is under way",
    12: "internal fault",
    13: "activation fault: something is in its way",
    14: "overcurrent",
    15: "an automatic release is over: acknowledge to activate it again, the fingers will move",
}


@dataclass(frozen=True, slots=True)
class Scale:
    """Openings in m and the gripper's numbers 0..255. open_at, closed_at: what POS reads at the ends."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("speed_m_s", "force_n", "open_position", "closed_position")

    speed: int
    force: int
    open_at: int
    closed_at: int

    def opening(self, position: int) -> float:
        """Between the fingers, m, for a POS reading."""
        share = (self.closed_at - position) / (self.closed_at - self.open_at)
        return STROKE_M * min(max(share, 0.0), 1.0)

    def position(self, opening_m: float) -> int:
        """The position to ask for."""
        return round(255 * (1 - min(max(opening_m / STROKE_M, 0.0), 1.0)))


def scale_of(given: Options) -> Scale:
    """From a driver's options. Raises InputError for a number out of range."""
    speed = given.number("speed_m_s", 0.1, *SPEED_M_S)
    force = given.number("force_n", 50.0, *FORCE_N)
    open_at = round(given.number("open_position", 3, 0, 100))
    closed_at = round(given.number("closed_position", 228, 150, 255))
    return Scale(
        round(255 * (speed - SPEED_M_S[0]) / (SPEED_M_S[1] - SPEED_M_S[0])),
        round(255 * (force - FORCE_N[0]) / (FORCE_N[1] - FORCE_N[0])),
        open_at,
        closed_at,
    )


def fault_words(state: int, fault: int) -> str:
    """What is wrong, for gSTA and gFLT; "" when the gripper is active and sound."""
    if fault and fault in FAULTS:
        return FAULTS[fault]
    return STATES.get(state, "")
