"""How people touched an arm, over its episodes."""

from __future__ import annotations

import pytest

from labctl.clock import SECOND
from labctl.core.interventions import Intervention
from labctl.reporting.touches import Ran, by_arm


def test_an_arm_by_hand():
    touch = Intervention(0, "reset", "console", 10 * SECOND, 16 * SECOND)
    ran = [
        Ran("a", [touch], 0, 60 * SECOND, [12 * SECOND, 30 * SECOND]),
        Ran("a", [], 0, 120 * SECOND, [20 * SECOND]),
        Ran("b", [], 0, 60 * SECOND, []),
    ]
    a, b = by_arm(ran, ["a", "b", "c"])
    assert (a["episodes"], a["touched"], a["interventions"], a["by_kind"]) == (2, 1, 1, {"reset": 1})
    assert (a["touched_s"], a["robot_s"]) == (6.0, 180.0)
    assert a["per_hour"] == pytest.approx(20.0)  # one in three minutes
    # the first item ended in the touch and the second began in it
    assert (a["moved"], a["unaided"]) == (3, 1)
    assert (b["touched"], b["per_hour"], b["by_kind"]) == (0, 0.0, {})
