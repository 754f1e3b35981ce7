"""What is asked of a 2F-85 and what it reads are on one scale, whose ends are its stops.

Source: a recording of a UR5 with a 2F-85 whose POS goes from 3 to 228 and follows what is asked for one to one.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.drivers.robotiq.emulator.server import opening_at
from labctl.drivers.robotiq.scales import STROKE_M, Scale

SCALE = Scale(speed=128, force=64, open_at=3, closed_at=228)
STEP_M = STROKE_M / 225


@given(st.floats(0, STROKE_M))
def test_what_is_asked_for_is_what_is_read(opening_m: float) -> None:
    position = SCALE.position(opening_m)
    reached = min(max(position, 3), 228)  # the fingers stop there
    assert abs(SCALE.opening(reached) - opening_m) <= STEP_M / 2 + 1e-12
    assert opening_at(position) == pytest.approx(SCALE.opening(reached))


def test_17_mm_is_17_mm() -> None:
    """*Seen:* asked for 17 mm, read 9.1."""
    assert SCALE.opening(SCALE.position(0.017)) == pytest.approx(0.017, abs=STEP_M / 2)


def test_the_ends_are_asked_for_beyond_the_stops() -> None:
    assert [SCALE.position(opening) for opening in (-0.01, 0.0, STROKE_M, 0.2)] == [255, 255, 0, 0]
    inside = [SCALE.position(float(opening)) for opening in np.linspace(1e-6, STROKE_M - 1e-6, 50)]
    assert min(inside) == 3 and max(inside) == 228 and inside == sorted(inside, reverse=True)
