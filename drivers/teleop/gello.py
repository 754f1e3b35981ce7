"""A GELLO leader arm: Dynamixel servos on one bus, ids 1 to dof and the trigger; joints in, nothing out.

May not: switch a servo's torque on, or write anything but the request for positions.

Protocol 2.0: present position is four bytes at 132, 4096 to a turn. Offsets change when a leader is taken apart; the
alignment gate refuses a leader that stands elsewhere than the robot.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from labctl.clock import SECOND, Clock, MonotonicClock
from labctl.drivers.teleop.gate import Reading
from labctl.drivers.teleop.options import GelloOptions
from labctl.errors import DeviceLost, MissingExtra

POSITION, LENGTH, TURN = 132, 4, 4096
SILENT_S = 1.0  # without an answer, and the leader is gone; what it drives stands still long before (`caps.stale_s`)


class Gello:
    """See the module. joints: signs and offsets (dof,) that turn servo angles into the robot's, rad. The clutch is the
    trigger's first fifth: a leader that lies down is not held.
    """

    leader = True
    quiet = False

    def __init__(
        self,
        port: str,
        baud: int,
        ids: list[int],
        signs: np.ndarray,
        offsets: np.ndarray,
        trigger: tuple[int, float, float],
        clock: Clock,
    ) -> None:
        self._port_name, self._baud = port, baud
        self._ids, self._signs, self._offsets = ids, signs, offsets
        self._trigger = trigger  # id, angle released, angle pressed, rad
        self._clock = clock
        self._port: Any = None
        self._bus: Any = None
        self._heard_ns = 0

    def open(self) -> None:
        try:
            from dynamixel_sdk import GroupSyncRead, PacketHandler, PortHandler
        except ModuleNotFoundError as error:
            raise MissingExtra("teleop", "a GELLO leader") from error
        port = PortHandler(self._port_name)
        try:
            port.openPort()
            self._port = port
            served = port.setBaudRate(self._baud)
        except Exception as error:  # pyserial's, termios' and the SDK's own: none of them is documented
            raise DeviceLost(f"{self._port_name} cannot be opened ({error})") from error
        if not served:
            raise DeviceLost(f"the servos' library does not do {self._baud} baud; correct baud in [teleop.options]")
        self._bus = GroupSyncRead(self._port, PacketHandler(2.0), POSITION, LENGTH)
        for number in (*self._ids, self._trigger[0]):
            self._bus.addParam(number)
        self._heard_ns = self._clock.now_ns()

    def poll(self) -> Reading | None:
        try:
            answered = self._bus.txRxPacket() == 0
        except Exception as error:  # see open
            raise DeviceLost(f"its serial line broke ({error})") from error
        if not answered:
            if self._clock.now_ns() - self._heard_ns > SILENT_S * SECOND:
                raise DeviceLost(f"no answer from the servos for {SILENT_S:g} s; check power and cable")
            return None
        self._heard_ns = self._clock.now_ns()
        angles = np.array([self._angle(number) for number in self._ids])
        number, released, pressed = self._trigger
        pull = float(np.clip((self._angle(number) - released) / (pressed - released), 0.0, 1.0))
        grip = 1.0 - float(np.clip((pull - 0.2) / 0.8, 0.0, 1.0))
        joints = self._signs * angles + self._offsets
        return Reading(self._heard_ns, joints=joints, engaged=pull > 0.05, grip=grip)

    def _angle(self, number: int) -> float:
        """A servo's angle in rad, signed: it may have turned past zero."""
        raw = self._bus.getData(number, POSITION, LENGTH)
        return (raw - (1 << 32) if raw >= 1 << 31 else raw) * 2 * np.pi / TURN

    def close(self) -> None:
        if self._port is not None:
            self._port.closePort()
            self._port = None


def build(options: GelloOptions) -> Gello:
    """A leader arm."""
    ids, (released, pressed) = list(options.ids), options.trigger_rad
    trigger = len(ids) + 1 if options.trigger_id is None else options.trigger_id
    signs, offsets = np.array(options.signs), np.array(options.offsets_rad)
    return Gello(options.port, options.baud, ids, signs, offsets, (trigger, released, pressed), MonotonicClock())
