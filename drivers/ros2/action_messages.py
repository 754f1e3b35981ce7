"""The action FollowJointTrajectory as it goes over DDS: its three services' requests and answers, and its status.

May not: hold more than fields, or have its annotations as text: they make the types.

Fields and order as the .action and .srv files of control_msgs and action_msgs have them (Humble to Jazzy; those of the
.action files are wrapped in SendGoal, GetResult as rosidl does). A service's messages begin with who asked and how many
times: rmw_cyclonedds puts that before each of them, other middlewares of ROS 2 elsewhere, so that a service
of one cannot be asked from another.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import float64, int8, int32, int64, uint16, uint64

from labctl.drivers.ros2.messages import Duration, Header, JointTrajectory, Time, Twist, Vector3

if TYPE_CHECKING:  # what a message holds once it is read, and may be given
    from builtins import list as sequence

    Octets = list[int]
else:
    from cyclonedds.idl.types import array, sequence, uint8

    Octets = array[uint8, 16]

EXECUTING, SUCCEEDED, CANCELED, ABORTED = 2, 4, 5, 6  # action_msgs/msg/GoalStatus
ERRORS = {
    -1: "INVALID_GOAL",
    -2: "INVALID_JOINTS",
    -3: "OLD_HEADER_TIMESTAMP",
    -4: "PATH_TOLERANCE_VIOLATED",
    -5: "GOAL_TOLERANCE_VIOLATED",
}


@final
@dataclass
class Quaternion(IdlStruct, typename="geometry_msgs::msg::dds_::Quaternion_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0
    w: float64 = 1.0


@final
@dataclass
class Transform(IdlStruct, typename="geometry_msgs::msg::dds_::Transform_"):
    translation: Vector3 = field(default_factory=Vector3)
    rotation: Quaternion = field(default_factory=Quaternion)


@final
@dataclass
class MultiDofPoint(IdlStruct, typename="trajectory_msgs::msg::dds_::MultiDOFJointTrajectoryPoint_"):
    transforms: sequence[Transform] = field(default_factory=list)
    velocities: sequence[Twist] = field(default_factory=list)
    accelerations: sequence[Twist] = field(default_factory=list)
    time_from_start: Duration = field(default_factory=Duration)


@final
@dataclass
class MultiDofTrajectory(IdlStruct, typename="trajectory_msgs::msg::dds_::MultiDOFJointTrajectory_"):
    header: Header = field(default_factory=Header)
    joint_names: sequence[str] = field(default_factory=list)
    points: sequence[MultiDofPoint] = field(default_factory=list)


@final
@dataclass
class JointTolerance(IdlStruct, typename="control_msgs::msg::dds_::JointTolerance_"):
    """Always sent in a list of none: newer releases add a field."""

    name: str = ""
    position: float64 = 0.0
    velocity: float64 = 0.0
    acceleration: float64 = 0.0


@final
@dataclass
class ComponentTolerance(IdlStruct, typename="control_msgs::msg::dds_::JointComponentTolerance_"):
    joint_name: str = ""
    component: uint16 = 0
    position: float64 = 0.0
    velocity: float64 = 0.0
    acceleration: float64 = 0.0


@final
@dataclass
class Goal(IdlStruct, typename="control_msgs::action::dds_::FollowJointTrajectory_Goal_"):
    trajectory: JointTrajectory = field(default_factory=JointTrajectory)
    multi_dof_trajectory: MultiDofTrajectory = field(default_factory=MultiDofTrajectory)
    path_tolerance: sequence[JointTolerance] = field(default_factory=list)
    component_path_tolerance: sequence[ComponentTolerance] = field(default_factory=list)
    goal_tolerance: sequence[JointTolerance] = field(default_factory=list)
    component_goal_tolerance: sequence[ComponentTolerance] = field(default_factory=list)
    goal_time_tolerance: Duration = field(default_factory=Duration)


@final
@dataclass
class Uuid(IdlStruct, typename="unique_identifier_msgs::msg::dds_::UUID_"):
    uuid: Octets = field(default_factory=lambda: [0] * 16)


@final
@dataclass
class GoalInfo(IdlStruct, typename="action_msgs::msg::dds_::GoalInfo_"):
    goal_id: Uuid = field(default_factory=Uuid)
    stamp: Time = field(default_factory=Time)


@final
@dataclass
class GoalStatus(IdlStruct, typename="action_msgs::msg::dds_::GoalStatus_"):
    goal_info: GoalInfo = field(default_factory=GoalInfo)
    status: int8 = 0


@final
@dataclass
class GoalStatusArray(IdlStruct, typename="action_msgs::msg::dds_::GoalStatusArray_"):
    status_list: sequence[GoalStatus] = field(default_factory=list)


@final
@dataclass
class Result(IdlStruct, typename="control_msgs::action::dds_::FollowJointTrajectory_Result_"):
    error_code: int32 = 0
    error_string: str = ""


@final
@dataclass
class SendGoalRequest(IdlStruct, typename="control_msgs::action::dds_::FollowJointTrajectory_SendGoal_Request_"):
    client: uint64 = 0
    number: int64 = 0
    goal_id: Uuid = field(default_factory=Uuid)
    goal: Goal = field(default_factory=Goal)


@final
@dataclass
class SendGoalResponse(IdlStruct, typename="control_msgs::action::dds_::FollowJointTrajectory_SendGoal_Response_"):
    client: uint64 = 0
    number: int64 = 0
    accepted: bool = False
    stamp: Time = field(default_factory=Time)


@final
@dataclass
class GetResultRequest(IdlStruct, typename="control_msgs::action::dds_::FollowJointTrajectory_GetResult_Request_"):
    client: uint64 = 0
    number: int64 = 0
    goal_id: Uuid = field(default_factory=Uuid)


@final
@dataclass
class GetResultResponse(IdlStruct, typename="control_msgs::action::dds_::FollowJointTrajectory_GetResult_Response_"):
    client: uint64 = 0
    number: int64 = 0
    status: int8 = 0
    result: Result = field(default_factory=Result)


@final
@dataclass
class CancelRequest(IdlStruct, typename="action_msgs::srv::dds_::CancelGoal_Request_"):
    client: uint64 = 0
    number: int64 = 0
    goal_info: GoalInfo = field(default_factory=GoalInfo)


@final
@dataclass
class CancelResponse(IdlStruct, typename="action_msgs::srv::dds_::CancelGoal_Response_"):
    client: uint64 = 0
    number: int64 = 0
    return_code: int8 = 0
    goals_canceling: sequence[GoalInfo] = field(default_factory=list)
