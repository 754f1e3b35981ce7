"""GR00T's modality.json tells apart what is a joint of an arm, a rail, a base's speed and a hand."""

from __future__ import annotations

import pytest

from labctl.exports.lerobot_episode import parts_of
from labctl.exports.lerobot_meta import FeatureEntry, modality
from labctl.streams import POSE, StreamSpec

INFO = {"observation.images.top": FeatureEntry("video", (480, 640, 3))}


def state(name: str, axes: dict[str, str], *hand: str) -> StreamSpec:
    """A robot's states: its led axes with their units, and what its hand is called."""
    columns = (*(f"q.{axis}" for axis in axes), *(f"dq.{axis}" for axis in axes), *POSE, *hand)
    unit = " ".join([*axes.values(), *(f"{one}/s" for one in axes.values()), *3 * ["m"], *4 * ["1"], *len(hand) * "m"])
    return StreamSpec(name, columns, unit, 100.0)


def parts(*robots: StreamSpec) -> dict[str, tuple[int, int]]:
    """{part: (start, end)} of the action, which are those of the state."""
    found = modality(INFO, parts_of(robots))
    assert found["state"] == found["action"]
    action = found["action"]
    assert isinstance(action, dict)
    return {name: (one["start"], one["end"]) for name, one in action.items()}  # type: ignore[index, call-overload]


JOINTS = {"j1": "rad", "j2": "rad"}
DRIVES = {"base.vx": "m/s", "base.vy": "m/s", "base.wz": "rad/s"}


@pytest.mark.parametrize(
    ("axes", "told"),
    [
        (JOINTS, {"arm": (0, 2), "gripper": (2, 3)}),
        ({**JOINTS, **DRIVES}, {"arm": (0, 2), "base": (2, 5), "gripper": (5, 6)}),
        ({"rail": "m", **JOINTS}, {"rail": (0, 1), "arm": (1, 3), "gripper": (3, 4)}),
        ({"waist": "rad", "lift": "m", **JOINTS}, {"arm": (0, 1), "rail": (1, 2), "arm_2": (2, 4), "gripper": (4, 5)}),
        ({"x": "m", "y": "m"}, {"arm": (0, 2), "gripper": (2, 3)}),
    ],
    ids=["joints", "base", "rail", "a lift between joints", "a gantry, which has no joints"],
)
def test_axes_that_are_no_joints_of_an_arm_have_a_part_of_their_own(
    axes: dict[str, str], told: dict[str, tuple[int, int]]
) -> None:
    assert parts(state("arm/state", axes, "gripper")) == told


def test_a_hand_of_several_axes_is_one_part_and_a_robot_without_one_has_none() -> None:
    assert parts(state("arm/state", JOINTS, "hand.thumb", "hand.index")) == {"arm": (0, 2), "gripper": (2, 4)}
    assert parts(state("arm/state", JOINTS)) == {"arm": (0, 2)}


def test_of_two_robots_each_has_its_parts_by_its_name() -> None:
    left = state("arm/state", {"left.j1": "rad", "left.base.vx": "m/s"}, "left.gripper")
    right = state("right/state", {"right.j1": "rad"}, "right.gripper")
    assert parts(left, right) == {
        "left_arm": (0, 1),
        "left_base": (1, 2),
        "left_gripper": (2, 3),
        "right_arm": (3, 4),
        "right_gripper": (4, 5),
    }


def test_states_whose_declaration_names_no_unit_for_each_column_are_those_of_joints() -> None:
    """As recorded before columns had their own: "rad, rad/s"."""
    columns = ("q.j1", "q.j2", "dq.j1", "dq.j2", *POSE, "gripper", "device_s")
    assert parts(StreamSpec("arm/state", columns, "rad, rad/s, m", 100.0)) == {"arm": (0, 2), "gripper": (2, 3)}
