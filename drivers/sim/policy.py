"""Driver "sim_policy": simulated policies of different skill.

May not: reach a network; `endpoint` is accepted so that a protocol reads like one with real policies, and ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.common.sides import TwoControllers
from labctl.drivers.sim.options import SimPolicy, SkillName
from labctl.drivers.sim.picker import Picker, Skill, picker

_SWIFT = Skill(
    speed_m_s=0.3,
    aim_m=0.005,
    bias_m=0.003,
    pause_p=0.4,
    pause_s=1.0,
    react_s=0.6,
    outside_p=0.025,
    low_p=0.002,
    fast_p=0.002,
    frailty=0.55,
    latency_s=0.1,
    execute=12,
)
SKILLS: Mapping[SkillName, Skill] = {
    "swift": _SWIFT,
    "steady": replace(_SWIFT, speed_m_s=0.2, pause_s=3.8, aim_m=0.007, latency_s=0.15),
    "halting": replace(_SWIFT, speed_m_s=0.18, pause_s=6.8, aim_m=0.009, bias_m=0.005, low_p=0.006, latency_s=0.2),
    "clumsy": replace(_SWIFT, speed_m_s=0.18, pause_s=9.0, aim_m=0.011, bias_m=0.009, low_p=0.001, fast_p=0.001),
    "slow": replace(_SWIFT, speed_m_s=0.12, pause_s=15.0, aim_m=0.013, bias_m=0.011, low_p=0.08, latency_s=0.3),
}


def build(options: SimPolicy, *, cell: Cell, fixture: Fixture) -> Picker | TwoControllers:
    """A simulated policy; in a cell of two robots one that leads both."""
    skill = SKILLS[options.skill]
    if options.latency_s is not None:
        skill = replace(skill, latency_s=options.latency_s)
    if options.adapt_s is not None:
        skill = replace(skill, adapt_s=options.adapt_s)
    return picker(
        skill,
        cell,
        fixture,
        load_s=options.load_s,
        crash_at=options.crash_at,
        warm_s=options.warm_s,
        weak=options.weak,
        trained=options.trained,
    )
