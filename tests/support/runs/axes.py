"""Cells of the simulated robots whose axes are more than joints and one opening, as replacements in the shipped one."""

from __future__ import annotations

RAIL = """[[robot.axis]]
name = "rail"
kind = "prismatic"
unit = "m"
velocity = 0.5
acceleration = 1.5
[[robot.axis]]
name = "vacuum"
kind = "vacuum"
unit = "1"
velocity = 4.0
"""
HAND = "".join(
    f'[[robot.axis]]\nname = "hand.{finger}"\nkind = "revolute"\nunit = "rad"\nvelocity = 3.0\n'
    for finger in ("thumb", "index", "middle", "ring", "little")
)
BASE = "".join(
    f'[[robot.axis]]\nname = "base.{name}"\nkind = "twist"\nunit = "{unit}"\nvelocity = {most}\nacceleration = {kick}\n'
    for name, unit, most, kick in (("vx", "m/s", 0.3, 0.6), ("vy", "m/s", 0.3, 0.6), ("wz", "rad/s", 0.6, 1.2))
)
GRIPPER = '[[robot.axis]]\nname = "gripper"\nkind = "opening"\nunit = "m"\nvelocity = 0.2\n'
AXES = {"sim_rail": RAIL, "sim_hand": HAND, "sim_base": BASE + GRIPPER}


def cell_of(driver: str) -> dict[str, str]:
    """For `make_campaign(cell=…)`: the shipped cell with this robot in place of the FR3."""
    return {'driver = "sim_fr3"': f'driver = "{driver}"', "[readiness]": f"{AXES[driver]}\n[readiness]"}


RAIL_BY_HAND = """[[teleop.axis]]
name = "rail"
by = "ry"
speed = 0.3
[[teleop.axis]]
name = "vacuum"
closed = 1.0
open = 0.0
"""
HAND_BY_HAND = "".join(
    f'[[teleop.axis]]\nname = "hand.{finger}"\nclosed = {closed}\nopen = 0.0\n'
    for finger, closed in (("thumb", 1.4), ("index", 1.4), ("middle", 1.4), ("ring", 1.4), ("little", 1.4))
)
# The stick's x and y lead the tool, what turns about them the base, which this device does not turn.
BASE_BY_HAND = """[[teleop.axis]]
name = "base.vx"
by = "ry"
speed = 0.2
[[teleop.axis]]
name = "base.vy"
by = "-rx"
speed = 0.2
[[teleop.axis]]
name = "gripper"
closed = 0.0
open = 0.08
"""
BY_HAND = {"sim_rail": RAIL_BY_HAND, "sim_hand": HAND_BY_HAND, "sim_base": BASE_BY_HAND}


def teleop(device: str, driver: str) -> str:
    """[teleop] with a device for a cell of such a robot."""
    caps = "linear_m_s = 0.35\nangular_rad_s = 1.2\nramp_s = 0.1\n"
    return f'[teleop]\ndevice = "{device}"\n{caps}{BY_HAND[driver]}'
