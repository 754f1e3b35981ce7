"""Sensor "scale_serial": a scale on a serial line, asked for its weight as often as the cell says.

May not: tare, zero or set anything: what it shows when a campaign begins is what counts. Unverified on hardware.

The protocol is MT-SICS level 0, as many makers' scales speak it: "SI" asks for the weight at once, answered by
"S S" (it stands) or "S D" (it moves), the value and its unit; "S I": not now, "S +" and "S -": beyond what it weighs.
"""

from __future__ import annotations

import math
import re

import serial

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.sensors.options import SerialScaleOptions
from labctl.drivers.sensors.serial_rows import SerialRows
from labctl.errors import DeviceLost

WEIGHT = re.compile(r"^S ([SD])\s+(-?\s*\d+(?:\.\d*)?)\s+(\S+)$")
KG = {"g": 1e-3, "kg": 1.0, "mg": 1e-6, "lb": 0.45359237, "oz": 0.028349523125, "t": 1e3}
TIMEOUT_S, SILENT = 0.5, 4  # an answer that does not come within this time, so many times in a row, is a lost scale


def parsed(line: str) -> tuple[float, float] | None:
    """(mass in kg, 1.0 if it stands) of an answer to SI; not a number beyond the range; None for one without a weight.

    Raises DeviceLost for a unit that is no mass, and for what is no answer to SI at all.
    """
    found = WEIGHT.match(line)
    if found is None:
        if line in ("S +", "S -"):
            return math.nan, 0.0
        if line == "S I":
            return None
        raise DeviceLost(f"the scale answers {line!r} to SI; set it to MT-SICS, and to its baud rate and 8N1")
    state, value, unit = found.groups()
    if unit not in KG:
        raise DeviceLost(f"the scale weighs in {unit!r}; set it to one of {', '.join(KG)}")
    return float("".join(value.split())) * KG[unit], float(state == "S")


class SerialScale(SerialRows):
    """See `labctl.devices.Sensor`."""

    def __init__(self, options: SerialScaleOptions) -> None:
        super().__init__(options.stream(), SILENT * TIMEOUT_S + 1.0)
        self._port, self._baud, self._period_ns = options.port, options.baud, round(SECOND / options.rate_hz)

    def connect(self, now_ns: int) -> None:
        """Open the line and ask once. Raises DeviceLost when no scale answers."""
        if self._serving:
            return
        self.close()
        try:
            line = self._line = serial.Serial(
                self._port,
                self._baud,
                timeout=TIMEOUT_S,
                write_timeout=TIMEOUT_S,
                exclusive=True,  # two who read it would each have half of what it says
            )
        except (serial.SerialException, OSError, ValueError) as error:
            who = "who may use it (group dialout), and who has it open"
            raise DeviceLost(f"{self._port} cannot be opened ({error}); check the adapter, {who}") from error
        self._forget()
        try:
            self._ask(line, SILENT)
        except DeviceLost:
            self.close()
            raise
        self._begin(lambda: self._serve(line), "scale")

    def _serve(self, line: serial.Serial) -> None:
        due_ns = self._clock.now_ns()
        while not self._end.is_set():
            try:
                self._ask(line, SILENT)
            except DeviceLost as error:
                self._lost = str(error)
                return
            due_ns = max(due_ns + self._period_ns, self._clock.now_ns())
            self._end.wait((due_ns - self._clock.now_ns()) / SECOND)

    def _ask(self, line: serial.Serial, tries: int) -> None:
        """One weight, unless the scale has none now; an answer that was broken off is asked for again."""
        answer = b""
        for _ in range(tries):
            try:
                line.reset_input_buffer()
                line.write(b"SI\r\n")
                answer = line.readline()
            except (serial.SerialException, OSError, TypeError) as error:  # TypeError: closed while it was read
                raise DeviceLost(f"the scale on {self._port} is gone ({error})") from error
            if answer.endswith(b"\n") or self._end.is_set():
                break
        else:
            raise DeviceLost(f"no scale answers on {self._port} at {self._baud} baud")
        if answer.endswith(b"\n") and (weight := parsed(answer.decode("ascii", "replace").strip())) is not None:
            self._rows.append((self._clock.now_ns(), weight))


def build(options: SerialScaleOptions, *, cell: Cell, fixture: Fixture) -> SerialScale:
    """A scale on a serial port."""
    return SerialScale(options)
