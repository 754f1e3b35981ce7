"""Driver "sim_policy": simulated policies of different skill.

May not: reach a network; `endpoint` is accepted so that a protocol reads like one with real policies, and ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from labctl.drivers.sim.picker import Picker, Skill, difficulties, options_of

from labctl.errors import InputError

OPTIONS = ("skill", "endpoint", "load_s", "warm_s", "latency_s", "adapt_s", "crash_at")

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
SKILLS: Mapping[str, Skill] = {
    "swift": _SWIFT,
    "steady": replace(_SWIFT, speed_m_s=0.2, pause_s=3.8, aim_m=0.007, latency_s=0.15),
    "halting": replace(_SWIFT, speed_m_s=0.18, pause_s=6.8, aim_m=0.009, bias_m=0.005, low_p=0.006, latency_s=0.2),
    "clumsy": replace(_SWIFT, speed_m_s=0.18, pause_s=9.0, aim_m=0.011, bias_m=0.009, low_p=0.001, fast_p=0.001),
    "slow": replace(_SWIFT, speed_m_s=0.12, pause_s=15.0, aim_m=0.013, bias_m=0.011, low_p=0.08, latency_s=0.3),
}


def build(options: Mapping[str, Any], *, cell: Mapping[str, Any], fixture: Mapping[str, Any]) -> Picker:
    """A simulated policy.

    Options: skill, endpoint, load_s, warm_s (the first answer, before the clock), latency_s (instead of the skill's
    own), adapt_s (thought after a changed instruction), crash_at ("load" or "infer").
    Raises InputError for an unknown option or skill.
    """
    given = options_of(options, OPTIONS, "sim_policy")
    name = given.get("skill", "steady")
    if name not in SKILLS:
        raise InputError(f"sim_policy has no skill {name!r}; known skills: {', '.join(SKILLS)}")
    skill = SKILLS[name]
    own = {name: float(given[name]) for name in ("latency_s", "adapt_s") if name in given}
    skill = replace(skill, **own)
    times = {"load_s": float(given.get("load_s", 0.0)), "warm_s": float(given.get("warm_s", 0.0))}
    return Picker(skill, difficulties(fixture), crash_at=given.get("crash_at"), **times)
