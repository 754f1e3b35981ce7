"""Driver "sim_person": a simulated person teleoperating the robot, in the place of the human reference.

May not: be taken for a person. Its kind is "sim", and a report of its episodes says so.
"""

from __future__ import annotations

from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.common.sides import TwoControllers
from labctl.drivers.sim.options import SimPerson
from labctl.drivers.sim.picker import Picker, Skill, picker

# Smooth, quick, and rarely wrong.
PRACTISED = Skill(
    speed_m_s=0.42,
    aim_m=0.0025,
    bias_m=0.0,
    pause_p=0.15,
    pause_s=0.5,
    react_s=0.5,
    outside_p=0.0005,
    low_p=0.0,
    fast_p=0.0,
    frailty=0.15,
    latency_s=0.0,
    chunk=12,
    execute=10,
)


def build(options: SimPerson, *, cell: Cell, fixture: Fixture) -> Picker | TwoControllers:
    """A simulated person; in a cell of two robots one that leads both."""
    return picker(PRACTISED, cell, fixture, load_s=options.load_s, crash_at=options.crash_at)
