"""Gripper "ros2_gripper": fingers that a controller of ros2_control moves by one joint.

May not: activate anything: a gripper whose controller is not active is a fault until somebody activates it. Unverified
on hardware, and against ROS 2 itself: see docs/ros2.md.
"""

from __future__ import annotations

import math

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Kind, RobotStatus
from labctl.drivers.common.about import library
from labctl.drivers.common.gripping import GripperWorker, WorkedGripper
from labctl.drivers.common.state_timeout import Silence
from labctl.drivers.ros2.messages import (
    Float64MultiArray,
    Header,
    JointState,
    JointTrajectory,
    TrajectoryPoint,
    duration,
)
from labctl.drivers.ros2.network import FOUND_S, Network, publisher_of, within
from labctl.drivers.ros2.options import Ros2GripperOptions
from labctl.drivers.ros2.publishers import OnePublisher, several_in_words
from labctl.errors import DeviceLost, DeviceRefused
from labctl.plain import DeviceAbout

PERIOD_S = 0.02
AHEAD_S = 0.1  # of a trajectory: the fingers' own limits make it longer
MOVING_M, STILL_NS = 2e-4, SECOND // 5  # fingers that moved less than that for so long stand


class Ros2Gripper(WorkedGripper):
    """See `labctl.devices.Gripper`."""

    kind: Kind = "real"

    def __init__(self, options: Ros2GripperOptions, host: str) -> None:
        self._options, self._host = options, host
        self.stroke_m = options.stroke_m
        self._work = GripperWorker("ros2 gripper", self._visit, PERIOD_S)
        self._clock, self._silence = MonotonicClock(), Silence()
        self._silence_ns = round(options.silence_s * SECOND)
        self._network: Network | None = None
        self._speaks = OnePublisher()
        self._seen: tuple[int, float] | None = None  # host ns, opening m
        self._asked: float | None = None
        self._moved: tuple[int, float] = (0, 0.0)

    def connect(self) -> None:
        """Find the joint. Raises DeviceLost."""
        given = self._options
        self._seen = None  # what was heard before a loss says nothing of now
        self._network = network = Network(given.domain, self._host, given.peers)
        kind = JointTrajectory if given.command == "trajectory" else Float64MultiArray
        self._publisher = network.publisher(given.command_topic, kind)
        network.subscribe(given.states_topic, JointState, self._read)
        try:
            if not within(FOUND_S, lambda: self._seen is not None):
                raise DeviceLost(
                    f"{network.shown}: nobody says on {given.states_topic} how the joint {given.joint} stands; the "
                    "gripper's options name joint and topic"
                )
            within(FOUND_S, self._publisher.readers)  # `status` says if nobody listens
            self._visit()
            self._work.start()
        except DeviceLost:
            self.close()
            raise

    def _read(self, message: JointState) -> None:
        given = self._options
        if given.joint in message.name and len(message.position) == len(message.name):
            at = float(message.position[message.name.index(given.joint)])
            if not math.isfinite(at):
                return  # a hardware interface that has not read its fingers yet says NaN
            now = self._clock.now_ns()
            if not self._speaks.takes(publisher_of(message), now):
                return
            share = (at - given.closed_at) / (given.open_at - given.closed_at)
            opening = min(1.0, max(0.0, share)) * self.stroke_m
            if abs(opening - self._moved[1]) > MOVING_M:
                self._moved = now, opening
            self._seen = now, opening
            self._work.opening = opening

    def _visit(self) -> None:
        """Give the newest target, and see whether both ends are there."""
        assert self._seen is not None
        work, given = self._work, self._options
        age_ns = self._silence.age_ns(self._seen[0], self._clock.now_ns())
        if age_ns > self._silence_ns:
            raise DeviceLost(f"nothing of the joint {given.joint} for {age_ns / 1e9:.1f} s")
        if unfit := self._unfit():
            work.sound = RobotStatus("fault", unfit)
            if self._asked is not None:
                self._asked = math.nan  # whoever listens next has not heard it, and may have to hear of a stop
            return
        work.sound = RobotStatus("idle")
        asked = work.asked
        if asked.stopped and self._asked is not None:
            self._send(self._seen[1])
            self._asked = None
        if asked.opening_m is not None and asked.opening_m != self._asked:
            self._send(asked.opening_m)
            self._asked = asked.opening_m

    def _unfit(self) -> str:
        """Why it is sent nothing, in words; "" while it is."""
        given = self._options
        if self._speaks.several(self._clock.now_ns()):
            return several_in_words(f"how joint {given.joint} stands", given.states_topic)
        listens = self._publisher.readers()
        return "" if listens else f"nobody listens on {given.command_topic}: is its controller active?"

    def _send(self, opening_m: float) -> None:
        given = self._options
        share = min(1.0, max(0.0, opening_m / self.stroke_m))
        at = given.closed_at + share * (given.open_at - given.closed_at)
        if given.command == "positions":
            self._publisher.send(Float64MultiArray(data=[at]))
        else:
            point = TrajectoryPoint(positions=[at], time_from_start=duration(AHEAD_S))
            self._publisher.send(JointTrajectory(Header(), [given.joint], [point]))

    def about(self) -> DeviceAbout:
        """ROS 2 says of a gripper only how its joint stands."""
        given = self._options
        return {
            "model": f"fingers moved by {given.joint}, behind ROS 2",
            "serial": None,
            "firmware": None,
            "client": library("cyclonedds"),
            "limits": {"stroke_m": given.stroke_m},
        }

    def _moves(self) -> bool:
        return self._asked is not None and self._clock.now_ns() - self._moved[0] < STILL_NS

    def recover(self) -> None:
        """Whether the controller listens again. A gripper that was lost is connected anew, and what was asked for is
        forgotten: connecting moves nothing. Raises DeviceRefused while nobody listens, or it is still lost.
        """
        if self._work.sound.mode == "lost":
            self.close()
            self._work.forget()
            self._asked = None
            try:
                self.connect()
            except DeviceLost as error:
                raise DeviceRefused(str(error)) from error
        elif (sound := self._work.sound).mode != "idle":
            raise DeviceRefused(sound.reason)

    def close(self) -> None:
        """Any number of times."""
        self._work.end()
        if self._network is not None:
            self._network.close()
            self._network = None


def build(options: Ros2GripperOptions, *, host: str) -> Ros2Gripper:
    """A gripper in the robot's domain; host is this computer's address there."""
    return Ros2Gripper(options, host)
