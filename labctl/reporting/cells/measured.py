"""What the cells of one campaign have in their traces, side by side: answer times, stress measures, sensors. Pure.

May not: put a number of two cells together: how fast an arm is answered is of the computer and the network there, and
what a sensor reads is of its room.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.analysis.episode_facts import Adaptability, Stress
from labctl.analysis.report.lab_facts import AnswerTimes, Lab, SensorColumn


def answer_times_of(found: Sequence[tuple[str, Lab]]) -> list[AnswerTimes]:
    """`Lab.answer_times` of all cells. found: each part by its name, with its own facts."""
    return [{**one, "cell": cell} for cell, lab in found for one in lab.get("answer_times", [])]


def sensors_of(found: Sequence[tuple[str, Lab]]) -> list[SensorColumn]:
    """`Lab.sensors` of all cells, whose sensors are each its own."""
    return [{**one, "sensor": f"{cell}: {one['sensor']}"} for cell, lab in found for one in lab.get("sensors", [])]


def stress_of(found: Sequence[tuple[str, Lab]]) -> Stress | None:
    """`Lab.stress` of all cells, whose protocol is one; None where none has any."""
    known = [(cell, stress) for cell, lab in found if (stress := lab.get("stress")) is not None]
    if not known:
        return None
    made: Stress = {
        "rate_hz": known[0][1]["rate_hz"],
        "arms": [{**arm, "cell": cell} for cell, one in known for arm in one["arms"]],
        "episodes": [{**episode, "cell": cell} for cell, one in known for episode in one["episodes"]],
        "taken_over": [episode for _, one in known for episode in one["taken_over"]],
    }
    switched = [(cell, own) for cell, one in known if (own := one.get("adaptability")) is not None]
    if switched:
        after: Adaptability = {
            "switches": switched[0][1]["switches"],
            "arms": [{**arm, "cell": cell} for cell, one in switched for arm in one["arms"]],
            "episodes": [{**episode, "cell": cell} for cell, one in switched for episode in one["episodes"]],
        }
        made["adaptability"] = after
    return made
