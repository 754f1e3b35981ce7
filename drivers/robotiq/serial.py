"""Gripper "robotiq_serial": a Robotiq 2F-85 on RS-485 by Modbus RTU, as on an FR3 that has no URCap.

May not: activate the fingers without an operator's word: they move. Unverified on hardware: see docs/hardware.md.

Registers: Robotiq 2F-85 instruction manual, "Control": outputs from 0x03E8, inputs from 0x07D0, slave 9, 115200 8N1.
"""

from __future__ import annotations

from collections.abc import Callable

from pymodbus.client import ModbusSerialClient
from pymodbus.exceptions import ModbusException
from pymodbus.pdu import ModbusPDU

from labctl.drivers.common.about import library
from labctl.drivers.robotiq.gripper import Registers, RobotiqGripper
from labctl.drivers.robotiq.options import RobotiqSerialOptions
from labctl.drivers.robotiq.scales import scale_of
from labctl.errors import DeviceLost, DeviceRefused

SLAVE, BAUD = 9, 115200
OUTPUTS, INPUTS = 0x03E8, 0x07D0
ACTIVATE, GO = 0x0100, 0x0900  # rACT; rACT and rGTO, in the high byte of the first output register
TIMEOUT_S, RETRIES = 0.3, 3  # silence of 1.2 s is a lost gripper; a busy machine can lose an exchange or two


class SerialWire:
    """See `gripper.Wire`."""

    period_s, client = 0.02, library("pymodbus")

    def __init__(self, port: str) -> None:
        self._port = port
        self._client = ModbusSerialClient(port, baudrate=BAUD, timeout=TIMEOUT_S, retries=RETRIES)

    def open(self) -> None:
        if not self._client.connect():
            raise DeviceLost(f"{self._port} cannot be opened; check the adapter and who may use it (group dialout)")

    def _ask(self, call: Callable[[], ModbusPDU]) -> ModbusPDU:
        try:
            answer = call()
        except (ModbusException, OSError) as error:
            raise DeviceLost(f"no gripper answers on {self._port} as slave {SLAVE} ({error})") from error
        if answer.isError():
            raise DeviceRefused(f"the gripper on {self._port} refused: {answer}")
        return answer

    def _write(self, *rows: int) -> None:
        self._ask(lambda: self._client.write_registers(OUTPUTS, list(rows), device_id=SLAVE))

    def read(self) -> Registers:
        rows = self._ask(lambda: self._client.read_holding_registers(INPUTS, count=3, device_id=SLAVE)).registers
        status = rows[0] >> 8
        return Registers(bool(status & 1), status >> 4 & 0b11, status >> 6, rows[1] >> 8 & 0x0F, rows[2] >> 8)

    def go(self, position: int, speed: int, force: int) -> None:
        self._write(GO, position, speed << 8 | force)

    def halt(self) -> None:
        self._write(ACTIVATE, 0, 0)

    def activate(self, on: bool) -> None:
        self._write(ACTIVATE if on else 0, 0, 0)

    def close(self) -> None:
        self._client.close()


def build(options: RobotiqSerialOptions, *, host: str) -> RobotiqGripper:
    """A gripper on a serial port."""
    return RobotiqGripper(SerialWire(options.port), scale_of(options))
