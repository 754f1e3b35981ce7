"""Universal Robots' rotation vectors and quaternions say the same."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from labctl.drivers.ur.pose import from_ur, joined, to_ur, undone

REAL = st.floats(-1.5, 1.5)
POSES = st.tuples(*[REAL] * 6)


@given(POSES)
def test_there_and_back_is_the_same_pose(pose):
    assert np.allclose(to_ur(from_ur(pose)), pose, atol=1e-9)


@given(POSES, POSES)
def test_a_pose_joined_and_undone_is_where_it_began(a, b):
    a, b = from_ur(a), from_ur(b)
    back = joined(joined(a, b), undone(b))
    assert np.allclose(back[:3], a[:3]) and abs(back[3:] @ a[3:]) > 1 - 1e-9


def test_half_a_turn_about_x_as_universal_robots_writes_it():
    assert np.allclose(from_ur([0.4, 0.0, 0.3, np.pi, 0.0, 0.0]), [0.4, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0])
