"""Driver "sim_policy": simulated policies of different skill.

May not: reach a network; `endpoint` is accepted so that a protocol reads like one with real policies, and ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from labctl.drivers.common.picker import Picker, Skill, options_of

from labctl.errors import InputError

OPTIONS = ("skill", "endpoint", "load_s", "latency_s", "crash_at")

_BASE = Skill(
    speed_m_s=0.25,
    aim_m=0.006,
    bias_m=0.004,
    pause_p=0.4,
    pause_s=1.5,
    react_s=0.6,
    outside_p=0.035,
    low_p=0.005,
    fast_p=0.003,
    frailty=0.55,
    latency_s=0.1,
    execute=12,
)
SKILLS: Mapping[str, Skill] = {
    "swift": _BASE,
    "steady": replace(_BASE, pause_s=3.0, aim_m=0.008, speed_m_s=0.2, latency_s=0.15),
    "clumsy": replace(_BASE, pause_s=4.0, aim_m=0.012, bias_m=0.01, speed_m_s=0.2, outside_p=0.05, low_p=0.01),
    "slow": replace(_BASE, pause_s=8.0, aim_m=0.014, bias_m=0.012, speed_m_s=0.12, low_p=0.04, latency_s=0.3),
}


def build(options: Mapping[str, Any], *, cell: Mapping[str, Any], fixture: Mapping[str, Any]) -> Picker:
    """A simulated policy. Options: skill, endpoint, load_s, latency_s (instead of the skill's own), crash_at ("load" or "infer").

    Raises InputError for an unknown option or skill.
    """
    given = options_of(options, OPTIONS, "sim_policy")
    name = given.get("skill", "steady")
    if name not in SKILLS:
        raise InputError(f"sim_policy has no skill {name!r}; known skills: {', '.join(SKILLS)}")
    skill = SKILLS[name]
    if "latency_s" in given:
        skill = replace(skill, latency_s=float(given["latency_s"]))
    return Picker(skill, float(given.get("load_s", 0.0)), given.get("crash_at"))
