"""What the states of a Universal Robots controller mean, in words an operator understands.

May not: talk to a robot. Numbers are those of the RTDE guide and the dashboard manual.
"""

from __future__ import annotations

from labctl.devices import RobotStatus

# What a robot is asked to send of its state
VARIABLES = ["timestamp", "actual_q", "actual_qd", "target_q", "target_moment", "actual_TCP_pose"]
VARIABLES += ["robot_mode", "safety_status_bits", "runtime_state", "robot_status_bits"]
VARIABLES += ["speed_scaling", "target_speed_fraction", "actual_TCP_force"]
POWER_OFF, IDLE, RUNNING = 3, 5, 7  # robot modes
PLAYING = 2  # runtime state
FULL = 0.995  # of a speed: less is slowed
MODES = {
    -1: "no controller",
    0: "the controller is not connected",
    1: "confirm the safety configuration at the pendant",
    2: "the controller is booting; wait",
    3: "the robot is switched off",
    4: "the robot is powering on; wait",
    5: "the brakes are closed",
    6: "the robot is in backdrive: end it at the pendant",
    8: "the robot is updating its firmware",
}
PROTECTIVE, RECOVERY, SAFEGUARD, SYSTEM_ESTOP, ROBOT_ESTOP, ESTOP, VIOLATION, FAULT = range(2, 10)
STOPPED, ENABLING = 10, 11  # stopped due to safety, beside the bit of its cause if that has one; input of such a device


def has(bits: int, bit: int) -> bool:
    return bool(bits >> bit & 1)


def what_is_wrong(robot_mode: int, safety_bits: int, runtime: int, *, attached: bool, power_on: bool) -> RobotStatus:
    """The state of a robot from its mode, safety status bits and runtime state; `attached`: our program was sent."""
    on = "power it on and open the brakes"
    ask = f"acknowledge to {on}" if power_on else f"{on} at the pendant, then acknowledge"
    if has(safety_bits, ESTOP) or has(safety_bits, ROBOT_ESTOP) or has(safety_bits, SYSTEM_ESTOP):
        return RobotStatus("safety_stop", "emergency stop: release the button once the cell is safe")
    if has(safety_bits, VIOLATION):  # of a limit of its safety configuration, by how the robot was led
        return RobotStatus("safety_stop", "safety violation: restart the safety system at the pendant")
    if has(safety_bits, FAULT):
        return RobotStatus("fault", "fault of the safety system: restart it at the pendant")
    if has(safety_bits, SAFEGUARD):
        return RobotStatus("safety_stop", "safeguard stop: close the safeguard")
    if has(safety_bits, PROTECTIVE):
        return RobotStatus("safety_stop", "protective stop: look at the robot, then acknowledge to unlock it")
    if has(safety_bits, RECOVERY):
        text = "recovery mode: the robot is outside the limits of its safety configuration: move it back at the pendant"
        return RobotStatus("safety_stop", text)
    if robot_mode != RUNNING:
        found = MODES.get(robot_mode, f"robot mode {robot_mode}: see the pendant")
        return RobotStatus("fault", f"{found}: {ask}" if robot_mode in (POWER_OFF, IDLE) else found)
    if has(safety_bits, STOPPED) or (has(safety_bits, ENABLING) and not attached):
        why = "an enabling device, or the safeguard of the automatic mode"
        return RobotStatus("safety_stop", f"safety stop ({why}): see the pendant, put it right there, then acknowledge")
    if not attached:
        return RobotStatus("fault", "labctl's program is not on the robot: acknowledge to send it")
    if runtime != PLAYING:
        why = "stopped at the pendant, by the watchdog, or by a pose without solution"
        return RobotStatus("safety_stop", f"the robot's program has ended ({why}): acknowledge to start it again")
    return RobotStatus("idle")


def what_slows(fraction: float, scaling: float) -> str:
    """Why the robot goes slower than it is led, in words, "" when it does not: the pendant's speed slider (0 to 1) and
    what the robot's safety limits leave of the speed (0 to 1). The robot multiplies them (ur_robot_driver does too).
    """
    if fraction < FULL:
        return (
            f"the speed slider at the pendant stands at {100 * fraction:.0f} %, and every time would be longer by it: "
            "set it to 100 %, then acknowledge"
        )
    if scaling < FULL:
        return (
            f"the robot's safety limits slow it to {100 * scaling:.0f} % (reduced mode, or limits of its safety "
            "configuration), and every time would be longer by it: raise them or lower the cell's limits, "
            "then acknowledge"
        )
    return ""
