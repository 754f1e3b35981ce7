"""The messages of ROS 2 that this driver sends and reads, as they go over DDS: fields and order of the .msg files of
common_interfaces (Humble to Jazzy), names as rmw gives them to DDS (`sensor_msgs::msg::dds_::JointState_`).

May not: hold more than fields, or have its annotations as text: they make the types.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cyclonedds.idl import IdlStruct
from cyclonedds.idl.annotations import final
from cyclonedds.idl.types import float64, int32, uint8, uint32

from labctl.clock import SECOND

if TYPE_CHECKING:  # what a message holds once it is read, and may be given
    from builtins import list as sequence
else:
    from cyclonedds.idl.types import sequence


@final
@dataclass
class Time(IdlStruct, typename="builtin_interfaces::msg::dds_::Time_"):
    sec: int32 = 0
    nanosec: uint32 = 0

    @property
    def ns(self) -> int:
        return int(self.sec) * SECOND + int(self.nanosec)


@final
@dataclass
class Duration(IdlStruct, typename="builtin_interfaces::msg::dds_::Duration_"):
    sec: int32 = 0
    nanosec: uint32 = 0


@final
@dataclass
class Header(IdlStruct, typename="std_msgs::msg::dds_::Header_"):
    stamp: Time = field(default_factory=Time)
    frame_id: str = ""


@final
@dataclass
class JointState(IdlStruct, typename="sensor_msgs::msg::dds_::JointState_"):
    header: Header = field(default_factory=Header)
    name: sequence[str] = field(default_factory=list)
    position: sequence[float64] = field(default_factory=list)
    velocity: sequence[float64] = field(default_factory=list)
    effort: sequence[float64] = field(default_factory=list)


@final
@dataclass
class TrajectoryPoint(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectoryPoint_"):
    positions: sequence[float64] = field(default_factory=list)
    velocities: sequence[float64] = field(default_factory=list)
    accelerations: sequence[float64] = field(default_factory=list)
    effort: sequence[float64] = field(default_factory=list)
    time_from_start: Duration = field(default_factory=Duration)


@final
@dataclass
class JointTrajectory(IdlStruct, typename="trajectory_msgs::msg::dds_::JointTrajectory_"):
    header: Header = field(default_factory=Header)
    joint_names: sequence[str] = field(default_factory=list)
    points: sequence[TrajectoryPoint] = field(default_factory=list)


@final
@dataclass
class Dimension(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayDimension_"):
    label: str = ""
    size: uint32 = 0
    stride: uint32 = 0


@final
@dataclass
class Layout(IdlStruct, typename="std_msgs::msg::dds_::MultiArrayLayout_"):
    dim: sequence[Dimension] = field(default_factory=list)
    data_offset: uint32 = 0


@final
@dataclass
class Float64MultiArray(IdlStruct, typename="std_msgs::msg::dds_::Float64MultiArray_"):
    layout: Layout = field(default_factory=Layout)
    data: sequence[float64] = field(default_factory=list)


@final
@dataclass
class Float64(IdlStruct, typename="std_msgs::msg::dds_::Float64_"):
    data: float64 = 0.0


@final
@dataclass
class Vector3(IdlStruct, typename="geometry_msgs::msg::dds_::Vector3_"):
    x: float64 = 0.0
    y: float64 = 0.0
    z: float64 = 0.0


@final
@dataclass
class Twist(IdlStruct, typename="geometry_msgs::msg::dds_::Twist_"):
    linear: Vector3 = field(default_factory=Vector3)
    angular: Vector3 = field(default_factory=Vector3)


@final
@dataclass
class TwistStamped(IdlStruct, typename="geometry_msgs::msg::dds_::TwistStamped_"):
    header: Header = field(default_factory=Header)
    twist: Twist = field(default_factory=Twist)


@final
@dataclass
class Image(IdlStruct, typename="sensor_msgs::msg::dds_::Image_"):
    header: Header = field(default_factory=Header)
    height: uint32 = 0
    width: uint32 = 0
    encoding: str = ""
    is_bigendian: uint8 = 0
    step: uint32 = 0
    data: sequence[uint8] = field(default_factory=list)


@final
@dataclass
class CompressedImage(IdlStruct, typename="sensor_msgs::msg::dds_::CompressedImage_"):
    header: Header = field(default_factory=Header)
    format: str = ""
    data: sequence[uint8] = field(default_factory=list)


def time_of(ns: int) -> Time:
    """A time of ns since 1970, as ROS writes it."""
    return Time(*divmod(ns, SECOND))


def duration(seconds: float) -> Duration:
    """A length of time."""
    return Duration(*divmod(round(seconds * SECOND), SECOND))


def twist(stamp: Time, frame: str, values: list[float]) -> TwistStamped:
    """values (6,): linear m/s, then angular rad/s, in `frame`."""
    x, y, z, a, b, c = values
    return TwistStamped(Header(stamp, frame), Twist(Vector3(x, y, z), Vector3(a, b, c)))
