"""What goes over DDS is what ROS 2 sends: each message's bytes are those that rosbags, which shares no code with
Cyclone DDS, makes of ROS's own message definitions; and names are as rmw mangles them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

pytest.importorskip("cyclonedds")
from rosbags.typesys import Stores, get_typestore

from labctl.drivers.ros2 import messages as ours
from labctl.drivers.ros2.network import configuration, dds_name

ROS = get_typestore(Stores.ROS2_HUMBLE)
TIME = 1_764_000_000_123_456_789


def ros(kind: str, *values: object) -> Any:
    return ROS.types[kind](*values)


def header() -> Any:
    return ros("std_msgs/msg/Header", ros("builtin_interfaces/msg/Time", TIME // 10**9, TIME % 10**9), "base_link")


def our_header() -> ours.Header:
    return ours.Header(ours.time_of(TIME), "base_link")


NUMBERS, NAMES = [0.1, -2.5, 3e-9], ["shoulder_pan_joint", "b", "wrist"]
ARRAY = np.array(NUMBERS)
DATA = np.arange(7, dtype=np.uint8)
NONE = np.empty(0)
CASES = {
    "sensor_msgs/msg/JointState": (
        ours.JointState(our_header(), NAMES, NUMBERS, [], NUMBERS),
        lambda: ros("sensor_msgs/msg/JointState", header(), NAMES, ARRAY, NONE, ARRAY),
    ),
    "trajectory_msgs/msg/JointTrajectory": (
        ours.JointTrajectory(
            our_header(), NAMES, [ours.TrajectoryPoint(positions=NUMBERS, time_from_start=ours.duration(1.25))]
        ),
        lambda: ros(
            "trajectory_msgs/msg/JointTrajectory",
            header(),
            NAMES,
            [
                ros(
                    "trajectory_msgs/msg/JointTrajectoryPoint",
                    *(ARRAY, NONE, NONE, NONE),
                    ros("builtin_interfaces/msg/Duration", 1, 250_000_000),
                )
            ],
        ),
    ),
    "std_msgs/msg/Float64": (ours.Float64(-2.5), lambda: ros("std_msgs/msg/Float64", -2.5)),
    "std_msgs/msg/Float64MultiArray": (
        ours.Float64MultiArray(data=NUMBERS),
        lambda: ros("std_msgs/msg/Float64MultiArray", ros("std_msgs/msg/MultiArrayLayout", [], 0), ARRAY),
    ),
    "geometry_msgs/msg/TwistStamped": (
        ours.twist(ours.time_of(TIME), "base_link", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
        lambda: ros(
            "geometry_msgs/msg/TwistStamped",
            header(),
            ros(
                "geometry_msgs/msg/Twist",
                ros("geometry_msgs/msg/Vector3", 1.0, 2.0, 3.0),
                ros("geometry_msgs/msg/Vector3", 4.0, 5.0, 6.0),
            ),
        ),
    ),
    "sensor_msgs/msg/Image": (
        ours.Image(our_header(), 1, 2, "rgb8", 0, 7, DATA.tolist()),
        lambda: ros("sensor_msgs/msg/Image", header(), 1, 2, "rgb8", 0, 7, DATA),
    ),
    "sensor_msgs/msg/CompressedImage": (
        ours.CompressedImage(our_header(), "jpeg", DATA.tolist()),
        lambda: ros("sensor_msgs/msg/CompressedImage", header(), "jpeg", DATA),
    ),
}


@pytest.mark.parametrize("kind", list(CASES))
def test_a_message_has_the_bytes_that_ros_2_gives_it(kind: str) -> None:
    message, theirs = CASES[kind]
    wanted = bytes(ROS.serialize_cdr(theirs(), kind))
    made = message.serialize(use_version_2=False)
    assert made[:2] == wanted[:2] == b"\0\1", "plain CDR, little end first"
    assert made[4:].rstrip(b"\0") == wanted[4:].rstrip(b"\0"), "padding at the end counts for nothing"
    package, _, name = kind.split("/")
    assert type(message).__idl_typename__ == f"{package}::msg::dds_::{name}_"


def test_a_topic_of_ros_has_its_prefix_in_dds() -> None:
    """ROS 2 design, "Topic and Service name mapping to DDS": /foo is rt/foo."""
    assert dds_name("/joint_states") == "rt/joint_states" and dds_name("/a/b") == "rt/a/b"


def test_on_loopback_and_with_peers_nothing_is_sent_to_all() -> None:
    near, far, named = (
        configuration("127.0.0.7", ()),
        configuration("10.0.0.2", ()),
        configuration("10.0.0.2", ["10.0.0.9"]),
    )
    assert 'name="lo"' in near and 'address="127.0.0.1"' in near and "<AllowMulticast>false" in near
    assert 'address="10.0.0.2"' in far and "AllowMulticast" not in far and 'multicast="default"' in far
    assert 'Peer address="10.0.0.9"' in named and "<AllowMulticast>false" in named and "127.0.0.1" not in named
