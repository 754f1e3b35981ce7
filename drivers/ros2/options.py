"""Options of a robot, a gripper and a camera behind ROS 2, and of the emulated robot."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from labctl.config.options import CameraOptions, Options
from labctl.config.values import Text, Texts
from labctl.drivers.common.options import RobotOptions, frozen_field
from labctl.drivers.common.robot_tables import FR3, URS, RobotModel

MODELS: Mapping[str, RobotModel] = {"fr3": FR3, **URS}
# The frame that a robot's chain begins in, as its maker's description for ROS calls it. A UR's `base` is its
# controller's; `base_link` is turned by half a turn about z against it (urdf/ur_macro.xacro of
# Universal_Robots_ROS2_Description, joint base_link-base_fixed_joint).
BASE_FRAMES: Mapping[str, str] = {"fr3": "fr3_link0", **dict.fromkeys(URS, "base")}
TURNED = "base_link"
Model = Literal["fr3", "ur5", "ur3e", "ur5e", "ur7e", "ur10e", "ur15", "ur20"]
Command = Literal["trajectory", "action", "positions", "twist"]
GRIPPER = "ros2_gripper"


def _own_address(given: str) -> str:
    try:
        ipaddress.ip_address(given)
    except ValueError:
        raise ValueError("must be an address of this computer such as 192.168.1.10, not a name") from None
    return given


def _topic(given: str) -> str:
    if not given.startswith("/") or given.endswith("/") or "//" in given or " " in given:
        raise ValueError('must be a whole topic such as "/joint_states"')
    return given


Host = Annotated[Text, AfterValidator(_own_address)]
TopicName = Annotated[Text, AfterValidator(_topic)]
HOST_IS = "address of this computer on the network of the robot's ROS 2; 127.0.0.1: it runs on this computer"
DOMAIN_IS = "ROS_DOMAIN_ID of the robot's ROS 2"
PEERS_ARE = "addresses of the robot's computers, asked one by one; left out, they are found by multicast"


class Ros2Options(RobotOptions):
    """A robot that ros2_control or MoveIt Servo moves."""

    DOF = 0  # of the model
    GRIPPER = GRIPPER

    model: Model = Field("ur5e", description="which robot: its chain and limits are labctl's")
    host: Host = Field("127.0.0.1", description=HOST_IS)
    domain: int = Field(0, ge=0, le=232, description=DOMAIN_IS)
    peers: Texts = Field((), description=PEERS_ARE)
    command: Command = Field(
        "trajectory",
        description="trajectory: joint_trajectory_controller; action: the same by its FollowJointTrajectory, which "
        "answers; positions: a position group controller; twist: MoveIt Servo",
    )
    command_topic: TopicName = Field(
        "/joint_trajectory_controller/joint_trajectory",
        description="where the robot listens for those; the action's own name",
    )
    states_topic: TopicName = Field("/joint_states", description="where the robot says how its joints stand")
    scaling_topic: TopicName | None = Field(
        None,
        description="where the robot says how fast it goes, as /speed_scaling_state_broadcaster/speed_scaling of a UR; "
        "less than full is a hold",
    )
    scaling_full: float = Field(100.0, gt=0, description="what it says there at full speed: 100, or 1")
    joints: Texts = Field(
        (),
        description="what ROS calls the joints, from the base on; left out, as their maker does",
    )
    twist_frame: Text | None = Field(
        None,
        description="of a twist: what ROS calls the frame that the robot's chain begins in; left out, `base` of a UR "
        "(its `base_link` is turned by half a turn against it), `fr3_link0` of an FR3",
    )
    ahead_s: float = Field(
        0.04,
        ge=0.002,
        le=0.5,
        description="of a trajectory or goal: when its point is to be reached, counted from its sending; never less "
        "than a period of `control_hz`, in which its way may be gone",
    )

    @model_validator(mode="after")
    def _fits_its_model(self) -> Self:
        dof = MODELS[self.model].dof
        if self.joints and len(self.joints) != dof:
            raise ValueError(f"joints must name the {dof} joints of a {self.model}, found {len(self.joints)}")
        if isinstance(self.home_rad, tuple) and len(self.home_rad) != dof:
            raise ValueError(f"home_rad must be a list of {dof} numbers, found {len(self.home_rad)}")
        if self.command != "trajectory" and "command_topic" not in self.model_fields_set:
            raise ValueError(f'command = "{self.command}" needs its command_topic')
        if self.command == "twist" and self.model in URS and self.frame().endswith(TURNED):
            raise ValueError(
                f'twist_frame = "{self.twist_frame}" is turned by half a turn against the base of a UR\'s controller, '
                'so x and y would be reversed; leave it out, or name that base ("base", after the prefix of the robot)'
            )
        return self

    def frame(self) -> str:
        """What ROS calls the frame that the robot's chain begins in, which a twist is given in."""
        return self.twist_frame or BASE_FRAMES[self.model]

    def reached_s(self, period_s: float) -> float:
        """When the point of a trajectory or goal is to be reached, s from its sending: in less than the period that its
        way is meant for, the arm would go faster than its setpoints, beyond the cell's limits, and stand in between.
        """
        return max(self.ahead_s, period_s)

    def names(self) -> tuple[str, ...]:
        """What ROS calls the joints."""
        return self.joints or MODELS[self.model].joint_names


class Ros2GripperOptions(Options):
    """A gripper that ros2_control moves by one joint."""

    domain: int = Field(0, ge=0, le=232, description=DOMAIN_IS)
    peers: Texts = Field((), description=PEERS_ARE)
    joint: Text = Field("finger_joint", description="the joint that moves the fingers")
    open_at: float = Field(0.0, description="what that joint reads with the fingers open, rad or m")
    closed_at: float = Field(0.8, description="and closed")
    stroke_m: float = Field(0.085, gt=0, le=0.5, description="between the open fingers")
    command: Literal["trajectory", "positions"] = Field("positions", description="as of the robot")
    command_topic: TopicName = Field("/gripper_controller/commands", description="where the gripper listens")
    states_topic: TopicName = Field("/joint_states", description="where that joint is said")
    silence_s: float = Field(0.5, ge=0.1, le=5.0, description="without a state for so long, the gripper is lost")

    @model_validator(mode="after")
    def _has_a_way(self) -> Self:
        if self.open_at == self.closed_at:
            raise ValueError(f"open_at and closed_at are both {self.open_at:g}: the fingers have no way between them")
        return self


class Ros2CameraOptions(CameraOptions):
    """A camera that some node of ROS 2 publishes."""

    topic: TopicName = Field(description='its pictures, like "/camera/image_raw/compressed"')
    compressed: bool = Field(True, description="sensor_msgs/CompressedImage; false: sensor_msgs/Image, rgb8 or bgr8")
    host: Host = Field("127.0.0.1", description=HOST_IS)
    domain: int = Field(0, ge=0, le=232, description=DOMAIN_IS)
    peers: Texts = Field((), description=PEERS_ARE)
    frozen_s: float = frozen_field()


class Ros2EmulatorOptions(Options):
    """An emulated robot behind ROS 2."""

    model: Model = Field("ur5e", description="which robot")
    domain: int = Field(0, ge=0, le=232, description="ROS_DOMAIN_ID that it is in")
    rate_hz: float = Field(100.0, ge=20, le=500, description="update_rate of its controllers, and of its states")
