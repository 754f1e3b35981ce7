"""Drivers: devices, simulated cells, controllers. They may use labctl.devices, clock and errors, and nothing above."""

from __future__ import annotations

# The name in a cell or protocol file -> the module with its `build`. Names outlive the folders that modules lie in.
BY_NAME = {
    "emulated": "labctl.drivers.sim.emulated",
    "faults": "labctl.drivers.sim.faults",
    "franka": "labctl.drivers.franka.robot",
    "franka_hand": "labctl.drivers.franka.hand",
    "opencv_camera": "labctl.drivers.opencv.camera",
    "policy_callable": "labctl.drivers.policy.callable",
    "policy_gr00t": "labctl.drivers.policy.gr00t",
    "policy_openpi": "labctl.drivers.policy.openpi",
    "policy_roboarena": "labctl.drivers.policy.roboarena",
    "realsense": "labctl.drivers.realsense.camera",
    "replay": "labctl.drivers.sim.replay",
    "robotiq_serial": "labctl.drivers.robotiq.serial",
    "robotiq_socket": "labctl.drivers.robotiq.socket",
    "sim_camera": "labctl.drivers.sim.camera",
    "sim_fr3": "labctl.drivers.sim.fr3",
    "sim_operator": "labctl.drivers.sim.operator",
    "sim_person": "labctl.drivers.sim.person",
    "sim_policy": "labctl.drivers.sim.policy",
    "sim_ur5": "labctl.drivers.sim.ur5",
    "teleop": "labctl.drivers.teleop.controller",
    "teleop_gamepad": "labctl.drivers.teleop.gamepad",
    "teleop_gello": "labctl.drivers.teleop.gello",
    "teleop_keyboard": "labctl.drivers.teleop.keyboard",
    "teleop_spacemouse": "labctl.drivers.teleop.spacemouse",
    "ur5": "labctl.drivers.ur.robot",
}

# The name in `labctl emulate NAME` -> the module with its `build`.
EMULATORS = {
    "fr3": "labctl.drivers.franka.emulator.fr3",
    "ur5": "labctl.drivers.ur.emulator.ur5",
    "ur5e": "labctl.drivers.ur.emulator.ur5e",
}
