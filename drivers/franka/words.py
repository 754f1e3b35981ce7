"""What a Franka robot's mode and error bits mean, in words an operator understands.

May not: talk to a robot. Names of modes and errors are the FCI's (libfranka documentation, `franka::RobotMode`,
`franka::Errors`).
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.devices import RobotStatus

WORDS = {
    "joint_reflex": "a joint met more force than allowed (collision)",
    "cartesian_reflex": "the tool met more force than allowed (collision)",
    "self_collision_avoidance_violation": "the robot came too close to itself",
    "joint_position_limits_violation": "a joint reached its end",
    "joint_velocity_violation": "a joint was too fast",
    "communication_constraints_violation": "commands from this computer came too late, 20 in a row",
    "power_limit_violation": "the power limit was exceeded",
    "joint_motion_generator_velocity_discontinuity": "the commanded acceleration was too high",
    "joint_motion_generator_acceleration_discontinuity": "the commanded jerk was too high",
    "cartesian_position_motion_generator_start_pose_invalid": "a motion did not begin where the robot is",
    "instability_detected": "the controller became unstable",
}


def error_names(errors: object) -> list[str]:
    """The names of the errors that are set, of any object with one boolean attribute each."""
    names = (name for name in dir(errors) if not name.startswith("_"))
    return [name for name in names if getattr(errors, name) is True]


def in_words(errors: Sequence[str]) -> str:
    """Errors as a person would say them, the FCI's own name in brackets."""
    sentences = [f"{WORDS[name]} [{name}]" if name in WORDS else name.replace("_", " ") for name in errors]
    return "; ".join(sentences)


def what_is_wrong(mode: str, errors: Sequence[str]) -> RobotStatus:
    """The state of a robot in an FCI mode (Idle, Move, Guiding, Reflex, UserStopped, AutomaticErrorRecovery, Other).

    Reflex without any error bit exists in the field: the latch outlives its cause. It is a stop all the same.
    """
    match mode:
        case "Idle" | "Move":
            return RobotStatus("idle") if not errors else RobotStatus("safety_stop", f"reflex: {in_words(errors)}")
        case "Reflex":
            return RobotStatus("safety_stop", f"reflex: {in_words(errors) or 'latched, the robot names no cause'}")
        case "UserStopped":
            return RobotStatus("safety_stop", "user stop: the external activation device is pressed; release it")
        case "Guiding":
            return RobotStatus("fault", "someone guides the robot by hand: let go of the buttons at the flange")
        case "AutomaticErrorRecovery":
            return RobotStatus("fault", "the robot is recovering from an error; wait")
    return RobotStatus("fault", "brakes closed or FCI off: open Desk, open the brakes and activate FCI")
