"""What a real robot asks of a vendor's client: connect, give one setpoint, come to rest, recover.

May not: be more than that; a driver implements it, `servoed_robot` calls it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from labctl.devices import RobotStatus
from labctl.drivers.common.measured_chain import MeasuredChain
from labctl.drivers.common.states import States
from labctl.drivers.common.steps import Law
from labctl.plain import RobotAbout


class Link(Protocol):
    """One vendor's client, as the servo thread of a `ServoedRobot` drives it. `start_q`, `lost` and `health` may be
    called from any thread, all others only from the servo thread (but `open`, before it runs, and `close`, after it
    ended).

    `open` connects and begins to add states to the ring; it moves nothing. `send_setpoint` hands over one setpoint:
    joints (dof,) rad and their speed (dof,) rad/s, `by_joints` whatever the servo drives otherwise; False, and nothing
    is given, while what is under way has to end first. `hold`: no setpoint for now, the last was q; True once the robot
    is held there. `keep_alive`: nothing at all to do. `halt`: slow down now and stay. `recover` does one step towards a
    robot that may move and returns True when it is there; it is asked for at rest alone, and waits for nothing.
    `start_q` is where the next motion begins. `lost` says why the robot is, "" while it is not; `health` says that too,
    and all else that is wrong. All raise DeviceLost or DeviceRefused, nothing else. `more` are the units of the columns
    of `Sample.more`. `measured` is what the controller says was measured on this very robot, known once it is open;
    None if it says nothing. `law` is what leads the robot to a target that is given at once; None where setpoints have
    to be a smooth path. `coast_s` is how long a robot that is given nothing more goes on at the speed it had, its
    slowing down counted; 0 where it stays at the last setpoint. `news` is what a person ought to know of the connection
    once it is open: what is read otherwise than it should be. `about` is complete then and asks nothing; `ServoedRobot`
    adds the gripper and the cell's limits.
    """

    more: Mapping[str, str]
    measured: MeasuredChain | None
    law: Law | None
    coast_s: float
    news: Sequence[str]

    def open(self, states: States) -> None: ...
    def start_q(self) -> np.ndarray: ...
    def send_setpoint(self, q: np.ndarray, dq: np.ndarray, *, by_joints: bool = False) -> bool | None: ...
    def hold(self, q: np.ndarray) -> bool: ...
    def keep_alive(self) -> None: ...
    def halt(self) -> None: ...
    def recover(self) -> bool: ...
    def about(self) -> RobotAbout: ...
    def lost(self) -> str: ...
    def health(self) -> RobotStatus: ...
    def close(self) -> None: ...
