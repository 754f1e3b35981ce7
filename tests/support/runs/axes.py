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
AXES = {"sim_rail": RAIL, "sim_hand": HAND}


def cell_of(driver: str) -> dict[str, str]:
    """For `make_campaign(cell=…)`: the shipped cell with this robot in place of the FR3."""
    return {'driver = "sim_fr3"': f'driver = "{driver}"', "[readiness]": f"{AXES[driver]}\n[readiness]"}
