"""What is the same for a Robotiq 2F-85 on a socket and on a serial line: scales, and what its numbers mean.

May not: talk to a gripper. Numbers: Robotiq 2F-85 instruction manual ("Control", register map) and data sheet.
"""

from __future__ import annotations

from dataclasses import dataclass

from labctl.drivers.robotiq.options import FORCE_N, SPEED_M_S, RobotiqOptions

STROKE_M = 0.085
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
    """Openings in m and the gripper's numbers 0..255: what is asked for and what POS reads are on one scale. open_at,
    closed_at: its numbers at the ends, where the fingers have come to their stops.
    """

    speed: int
    force: int
    open_at: int
    closed_at: int

    def opening(self, position: int) -> float:
        """Between the fingers, m, for a POS reading."""
        share = (self.closed_at - position) / (self.closed_at - self.open_at)
        return STROKE_M * min(max(share, 0.0), 1.0)

    def position(self, opening_m: float) -> int:
        """The position to ask for. At both ends all that can be asked for: the stops differ from gripper to gripper."""
        share = 1 - opening_m / STROKE_M
        if share <= 0 or share >= 1:
            return 0 if share <= 0 else 255
        return round(self.open_at + share * (self.closed_at - self.open_at))


def scale_of(given: RobotiqOptions) -> Scale:
    """From a driver's options."""
    return Scale(
        round(255 * (given.speed_m_s - SPEED_M_S[0]) / (SPEED_M_S[1] - SPEED_M_S[0])),
        round(255 * (given.force_n - FORCE_N[0]) / (FORCE_N[1] - FORCE_N[0])),
        given.open_position,
        given.closed_position,
    )


def fault_words(state: int, fault: int) -> str:
    """What is wrong, for gSTA and gFLT; "" when the gripper is active and sound."""
    if fault and fault in FAULTS:
        return FAULTS[fault]
    return STATES.get(state, "")
