"""Gripper "robotiq_serial": a Robotiq 2F-85 on RS-485 by Modbus RTU, as on an FR3 that has no URCap.

May not: activate the fingers without an operator's word: they move. Unverified on hardware: see docs/hardware.md.

Registers: Robotiq 2F-85 instruction manual, "Control": outputs from 0x03E8, inputs from 0x07D0, slave 9, 115200 8N1.
"""

from __future__ import annotations

from typing import Any

from labctl.drivers.common.gripping import GripperWorker
from labctl.drivers.robotiq.options import RobotiqSerialOptions
from labctl.drivers.robotiq.scales import STROKE_M, Scale, fault_words, scale_of
from pymodbus.client import ModbusSerialClient
from pymodbus.exceptions import ModbusException

from labctl.devices import Kind, RobotStatus
from labctl.errors import DeviceLost, DeviceRefused

SLAVE, BAUD = 9, 115200
OUTPUTS, INPUTS = 0x03E8, 0x07D0
ACTIVATE, GO = 0x0100, 0x0900  # rACT; rACT and rGTO, in the high byte of the first output register
TIMEOUT_S = 0.3
PERIOD_S = 0.02


class RobotiqSerial:
    """See `labctl.devices.Gripper`."""

    kind: Kind = "real"
    stroke_m = STROKE_M

    def __init__(self, port: str, scale: Scale) -> None:
        self._port, self._scale = port, scale
        self._client: Any = None
        self._work = GripperWorker("robotiq", self._visit, PERIOD_S)
        self._written: int | None = None
        self._state = self._object = self._fault = 0

    def connect(self) -> None:
        self._client = ModbusSerialClient(self._port, baudrate=BAUD, timeout=TIMEOUT_S, retries=1)
        if not self._client.connect():
            raise DeviceLost(f"{self._port} cannot be opened; check the adapter and who may use it (group dialout)")
        try:
            self._look()
        except DeviceLost:
            self._client.close()
            raise
        self._work.start()

    def _ask(self, call: Any) -> Any:
        try:
            answer = call()
        except (ModbusException, OSError) as error:
            raise DeviceLost(f"no gripper answers on {self._port} as slave {SLAVE} ({error})") from error
        if answer.isError():
            raise DeviceRefused(f"the gripper on {self._port} refused: {answer}")
        return answer

    def _write(self, first: int, position: int = 0) -> None:
        scale = self._scale
        rows = [first, position & 0xFF, scale.speed << 8 | scale.force]
        self._ask(lambda: self._client.write_registers(OUTPUTS, rows, device_id=SLAVE))

    def _look(self) -> None:
        rows = self._ask(lambda: self._client.read_holding_registers(INPUTS, count=3, device_id=SLAVE)).registers
        status = rows[0] >> 8
        self._state, self._object, self._fault = status >> 4 & 0b11, status >> 6, rows[1] >> 8 & 0x0F
        self._work.opening = self._scale.opening(rows[2] >> 8)
        words = fault_words(self._state, self._fault)
        self._work.sound = RobotStatus("fault", words) if words else RobotStatus("idle")

    def _visit(self) -> None:
        work = self._work
        if work.recovering:
            self._activate()
        if work.stopped and self._written is not None:
            self._write(ACTIVATE)
            self._written = None
        if work.wanted is not None and work.sound.mode == "idle":
            position = self._scale.position(work.wanted)
            if position != self._written:
                self._write(GO, position)
                self._written = position
        self._look()

    def _activate(self) -> None:
        """Reset, then activate. The fingers move."""
        if self._state == 3 and not self._fault:
            self._work.recovering = False
        elif self._state == 0:
            self._write(ACTIVATE)
        elif self._state != 1:
            self._write(0)

    def target(self, opening_m: float) -> None:
        self._work.ask(opening_m)

    def opening(self) -> float:
        return self._work.opening

    def status(self) -> RobotStatus:
        if self._work.sound.mode != "idle":
            return self._work.sound
        return RobotStatus("moving" if self._object == 0 and self._written is not None else "idle")

    def stop(self) -> None:
        self._work.halt()

    def recover(self) -> None:
        """Activate the gripper; raises DeviceRefused until it is active."""
        if self._work.sound.mode == "idle":
            return
        if self._work.sound.mode == "fault":
            self._work.recover()
        raise DeviceRefused(f"gripper: {self._work.sound.reason}")

    def close(self) -> None:
        self._work.end()
        if self._client is not None:
            self._client.close()
            self._client = None


def build(options: RobotiqSerialOptions, *, host: str) -> RobotiqSerial:
    """A gripper on a serial port."""
    return RobotiqSerial(options.port, scale_of(options))
