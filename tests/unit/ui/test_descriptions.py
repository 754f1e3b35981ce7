"""The drawn arms stand where the measured joints put the real ones: each description against the arm's own table."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import labctl.ui.rerun
from labctl import rotations
from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FER, FR3, HAND_M, UR5, UR5E, URS, RobotModel

FOLDER = Path(labctl.ui.rerun.__path__[0])


def turn(rpy: str) -> np.ndarray:
    """Fixed-axis roll, pitch, yaw as a matrix."""
    (a, b, c) = (float(x) for x in rpy.split())
    x = np.array([[1, 0, 0], [0, np.cos(a), -np.sin(a)], [0, np.sin(a), np.cos(a)]])
    y = np.array([[np.cos(b), 0, np.sin(b)], [0, 1, 0], [-np.sin(b), 0, np.cos(b)]])
    z = np.array([[np.cos(c), -np.sin(c), 0], [np.sin(c), np.cos(c), 0], [0, 0, 1]])
    return z @ y @ x


def hand_of(description: Path, q: dict[str, float]) -> np.ndarray:
    """Pose (4, 4) of the link "hand" in the base, every joint turning about its z axis."""
    joints = {j.find("child").attrib["link"]: j for j in ElementTree.parse(description).iterfind("joint")}
    pose, link = np.eye(4), "hand"
    while link in joints:
        joint = joints[link]
        step = np.eye(4)
        origin = joint.find("origin")
        step[:3, :3] = turn(origin.attrib["rpy"]) @ turn(f"0 0 {q.get(joint.attrib['name'], 0.0)}")
        step[:3, 3] = [float(x) for x in origin.attrib["xyz"].split()]
        pose, link = step @ pose, joint.find("parent").attrib["link"]
    return pose


@pytest.mark.parametrize("arm", [FR3, UR5, UR5E], ids=lambda arm: arm.name)
def test_the_hand_is_where_forward_kinematics_has_it(arm: RobotModel):
    """The tool centre point lies HAND_M beyond the hand's frame, in the same orientation."""
    rng = np.random.default_rng(7)
    for q in [arm.home, *rng.uniform(arm.lower / 2, arm.upper / 2, (20, arm.dof))]:
        drawn = hand_of(FOLDER / f"arm_{arm.name}.urdf", dict(zip(arm.joint_names, q, strict=True)))
        known = kinematics.poses(arm.chain, q[None])[0]
        tip = drawn[:3, 3] + HAND_M * drawn[:3, 2]
        np.testing.assert_allclose(tip, known[:3], atol=1e-6)
        np.testing.assert_allclose(drawn[:3, :3], rotations.matrix(known[None, 3:])[0], atol=1e-6)


@pytest.mark.parametrize("arm", [FR3, FER, *URS.values()], ids=lambda arm: arm.name)
def test_a_robot_is_drawn_where_it_was_measured_or_not_at_all(arm: RobotModel):
    """The joints of all URs have the same names: a UR10e was drawn as a UR5e, its tip 164 mm from the measured one."""
    pytest.importorskip("rerun")
    from labctl.ui.rerun.parts import description_of

    description = description_of(arm.name, arm.joint_names)
    assert (description is not None) == (arm.name in ("fr3", "ur5", "ur5e", "ur7e"))
    if description is not None:
        drawn = hand_of(description, dict(zip(arm.joint_names, arm.home, strict=True)))
        known = kinematics.poses(arm.chain, arm.home[None])[0]
        np.testing.assert_allclose(drawn[:3, 3] + HAND_M * drawn[:3, 2], known[:3], atol=1e-6)


def test_there_is_a_description_for_every_arm():
    assert {path.stem for path in FOLDER.glob("arm_*.urdf")} == {f"arm_{arm.name}" for arm in (FR3, UR5, UR5E)}
