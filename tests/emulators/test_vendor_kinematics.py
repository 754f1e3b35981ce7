"""The simulated arms stand where the vendors' own clients say they stand: forward kinematics to 1e-6."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from support.robots.emulators import Emulator

from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import FR3, HAND_KG, UR5, UR5E
from labctl.drivers.franka.emulator.dynamics import Dynamics, hand
from labctl.drivers.franka.options import FRANKY_RAD_S, FRANKY_RAD_S2
from labctl.drivers.ur.pose import from_ur

pytestmark = [pytest.mark.real_time, pytest.mark.busy]  # a controller at 1 kHz, and a client that waits for it

RNG = np.random.default_rng(5)
FRANKY = """
import json, sys, franky
robot = franky.Robot({host!r}, realtime_config=franky.RealtimeConfig.Ignore)
state, model = robot.state, robot.model
found = []
for q in json.load(sys.stdin):
    pose = model.pose(franky.Frame.EndEffector, q, state.F_T_EE, state.EE_T_K)
    found.append([*pose.translation, *pose.quaternion])
print(json.dumps(found))
"""
JACOBIAN = """
import json, sys, franky
robot = franky.Robot({host!r}, realtime_config=franky.RealtimeConfig.Ignore)
state, frame = robot.state, franky.Frame.EndEffector
rows = [robot.model.zero_jacobian(frame, q, state.F_T_EE, state.EE_T_K) for q in json.load(sys.stdin)]
print(json.dumps([row.ravel().tolist() for row in rows]))
"""
MODEL = """
import json, sys, numpy as np, franky
robot = franky.Robot({host!r}, realtime_config=franky.RealtimeConfig.Ignore)
robot.set_load(0.4, [0.01, -0.02, 0.05], np.diag([0.001, 0.002, 0.003]).ravel().tolist())
for _ in range(1000):  # a state may be of before: it comes by UDP, what says that the load is set by TCP
    state = robot.state
    if abs(state.m_load - 0.4) < 1e-6:
        break
else:
    sys.exit(f"the load of 0.4 kg that was set is in none of the 1000 states since: m_load {{state.m_load}}")
model, found = robot.model, []
for row in json.load(sys.stdin):
    held = (state.I_total, state.m_total, state.F_x_Ctotal)
    mass = np.array(model.mass(row[:7], *held))
    found.append([*mass.ravel(), *model.coriolis(row[:7], row[7:], *held)])
print(json.dumps(found))
"""
LIMITS = """
import json, franky
robot = franky.Robot({host!r}, relative_dynamics_factor=0.3, realtime_config=franky.RealtimeConfig.Ignore)
limits = (robot.joint_velocity_limit, robot.joint_acceleration_limit)
print(json.dumps([list(limit.get()) for limit in limits]))
"""
UR_RTDE = """
import json, sys, os, rtde_control
control = rtde_control.RTDEControlInterface({host!r})
tool = [0.0, 0.0, 0.1034, 0.0, 0.0, 0.0]
print(json.dumps([control.getForwardKinematics(q, tool) for q in json.load(sys.stdin)]), flush=True)
control.stopScript()
os._exit(0)
"""


def asked(code: str, host: str, q: np.ndarray) -> list[list[float]]:
    """The poses a client library gives, asked in a process of its own."""
    command = [sys.executable, "-c", code.format(host=host)]
    done = subprocess.run(command, input=json.dumps(q.tolist()), capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return json.loads([line for line in done.stdout.splitlines() if line.startswith("[")][-1])


@pytest.mark.parametrize(
    ("arm", "name", "code"),
    [(FR3, "fr3", FRANKY), (UR5, "ur5", UR_RTDE), (UR5E, "ur5e", UR_RTDE)],
    ids=["fr3", "ur5", "ur5e"],
)
def test_forward_kinematics_agree_with_the_client(arm, name: str, code: str) -> None:
    q = arm.home + RNG.uniform(-0.6, 0.6, (25, arm.dof))
    emulator = Emulator(name)
    try:
        found = asked(code, emulator.host, q)
    finally:
        emulator.end()
    theirs = np.array(found if name == "fr3" else [from_ur(pose) for pose in found])
    ours = kinematics.poses(arm.chain, q)
    assert np.abs(ours[:, :3] - theirs[:, :3]).max() < 1e-6
    assert np.abs(np.abs((ours[:, 3:] * theirs[:, 3:]).sum(axis=1)) - 1).max() < 1e-6


def test_a_tools_motion_is_resolved_by_libfrankas_jacobian() -> None:
    """Issue 20.24: the emulated FR3 resolves it, elbow and all, by code of its own (`Motion._tool`)."""
    q = FR3.home + RNG.uniform(-0.6, 0.6, (25, 7))
    emulator = Emulator("fr3")
    try:
        found = np.array(asked(JACOBIAN, emulator.host, q)).reshape(25, 6, 7)
    finally:
        emulator.end()
    assert np.abs(kinematics.jacobian(FR3.chain, q)[0] - found).max() < 1e-6


def test_torques_accelerate_the_emulated_fr3_as_libfrankas_model_of_it_says() -> None:
    """Mass matrix and Coriolis torques, with a load set: libfranka computes them by pinocchio from the description that
    it is served; the emulator has rigid bodies of its own, and motors, which that description does not have.
    """
    states = np.column_stack([FR3.home + RNG.uniform(-0.6, 0.6, (20, 7)), RNG.uniform(-1.5, 1.5, (20, 7))])
    emulator = Emulator("fr3")
    try:
        found = np.array(asked(MODEL, emulator.host, states))
    finally:
        emulator.end()
    arm = Dynamics([hand(HAND_KG), (0.4, (0.01, -0.02, 0.05), np.diag([0.001, 0.002, 0.003]))])
    for state, theirs in zip(states, found, strict=True):
        mass, coriolis = arm.terms(state[:7], state[7:])
        assert np.abs(mass - theirs[:49].reshape(7, 7)).max() < 1e-6  # what is set comes back in single precision
        assert np.abs(coriolis - theirs[49:]).max() < 1e-6


def test_the_limits_that_doctor_compares_with_are_those_of_the_franky_that_is_installed() -> None:
    """Issue 20.16: a factor of 0.3 stands beside them; it scales the accelerations of a motion, and no limit here."""
    emulator = Emulator("fr3")
    try:
        velocity, acceleration = asked(LIMITS, emulator.host, np.zeros(0))
    finally:
        emulator.end()
    assert (tuple(velocity), tuple(acceleration)) == (FRANKY_RAD_S, FRANKY_RAD_S2)
