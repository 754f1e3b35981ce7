"""Sensor "lines": what says its values in lines of text, on a serial line or over TCP: light barriers, thermometers,
tactile arrays, other makers' scales. What a line holds is said by a pattern in the cell file.

May not: guess: a line that does not fit is passed over, and a sensor of which none fits is lost. It sends the one
question that the cell file has, or nothing. Unverified on hardware.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import serial

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.drivers.sensors.line_options import LinesOptions
from labctl.drivers.sensors.serial_rows import SerialRows
from labctl.errors import DeviceLost

READ_S = 0.1  # a read waits so long at most
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")
EARLY = 0.9  # of a period: a line that comes a little early is not left out
LONGEST = 65_536


def reader(options: LinesOptions) -> Callable[[str], list[float] | None]:
    """From a line (without its end) to its values, in the columns' units; None for one that does not fit."""
    columns, factors = options.names(), options.factor_of_each()
    pattern = None if options.pattern is None else re.compile(options.pattern)

    def value(text: str) -> float:
        return options.words[text] if text in options.words else float(text.replace(" ", ""))

    def read(line: str) -> list[float] | None:
        if pattern is None:
            parts = NUMBER.findall(line)
        else:
            found = pattern.search(line)
            parts = [] if found is None else [part or "" for part in found.groups()]
        if len(parts) != len(columns):
            return None
        try:
            return [value(part) * factor for part, factor in zip(parts, factors, strict=True)]
        except ValueError:
            return None

    return read


class LineSensor(SerialRows):
    """See `labctl.devices.Sensor`."""

    def __init__(self, options: LinesOptions) -> None:
        super().__init__(options.stream(), options.silence_s + 1.0)
        self._options, self._read = options, reader(options)
        self._question = None if options.ask is None else options.ask.encode() + options.ending()
        self._period_ns = round(SECOND / options.rate_hz)
        self._silence_ns = round(options.silence_s * SECOND)
        self._last, self._left = "", b""
        self._begun = False  # the line that was under way when it was opened is over

    def connect(self, now_ns: int) -> None:
        """Open the line and wait for the first that fits. Raises DeviceLost when none comes."""
        if self._serving:
            return
        self.close()
        port = self._options.port
        try:
            line = self._line = serial.serial_for_url(
                port,
                baudrate=self._options.baud,
                timeout=READ_S,
                write_timeout=self._options.silence_s,
                exclusive=True,  # of a serial line: two who read it would each have half of what it says
            )
        except (serial.SerialException, OSError, ValueError) as error:
            who = "who may use it, and who has it open"
            text = f"{port} cannot be opened ({error}); check the address, or the adapter, {who}"
            raise DeviceLost(text) from error
        self._forget()
        self._last, self._left, self._begun = "", b"", self._question is not None
        self._begin(lambda: self._serve(line), "lines")
        while not self._rows and not self._lost:
            self._clock.sleep_until(self._clock.now_ns() + SECOND // 100)
        if self._lost:
            lost = self._lost
            self.close()
            raise DeviceLost(lost)

    def _serve(self, line: serial.Serial) -> None:
        fitted_ns = asked_ns = self._clock.now_ns()
        kept_ns = 0
        try:
            if self._question is not None:
                line.reset_input_buffer()
                line.write(self._question)
            while not self._end.is_set():
                now = self._clock.now_ns()
                begun, texts = self._begun, self._lines(line)
                if self._begun and not begun:
                    fitted_ns = now
                for text in texts:
                    row = self._read(text)
                    now, self._last = self._clock.now_ns(), text
                    if row is None:
                        continue
                    fitted_ns = now
                    if now - kept_ns >= EARLY * self._period_ns:
                        kept_ns = now
                        self._rows.append((now, row))
                if self._question is not None and now - asked_ns >= self._period_ns:
                    asked_ns = max(asked_ns + self._period_ns, now - self._period_ns)
                    line.write(self._question)
                if now - fitted_ns > self._silence_ns:
                    self._lost = self._unfit()
                    return
        except (serial.SerialException, OSError, TypeError) as error:  # TypeError: closed while it was read
            self._lost = f"the sensor on {self._options.port} is gone ({error})"

    def _lines(self, line: serial.Serial) -> list[str]:
        """The lines that have come whole; waits READ_S at most, and for one byte only. Of one that speaks by itself
        the first is none of them: it was under way when the line was opened, and its tail may look like a value.
        """
        came = self._came(line)
        self._left = (self._left + came)[-LONGEST:]
        if b"\r" not in came and b"\n" not in came:
            return []
        *whole, self._left = re.split(rb"[\r\n]+", self._left)
        if not self._begun:
            self._begun, whole = True, whole[1:]
        return [text for one in whole if (text := one.decode("utf-8", "replace").strip())]

    def _came(self, line: serial.Serial) -> bytes:
        if not self._options.port.startswith("socket://"):
            return line.read(line.in_waiting or 1)
        first = line.read(1)  # of a socket pyserial says that one byte waits, however many do
        if not first:
            return first
        line.timeout = 0
        try:
            return first + line.read(LONGEST)
        finally:
            line.timeout = READ_S

    def _unfit(self) -> str:
        silence = f"for {self._options.silence_s:g} s"
        if not self._last:
            return (
                f"nothing comes from {self._options.port} {silence}; check cable, baud rate and what it is to be asked"
            )
        return f"no line of {self._options.port} fits {silence}; the last was {self._last[:80]!r}; correct its pattern"


def build(options: LinesOptions, *, cell: Cell, fixture: Fixture) -> LineSensor:
    """A sensor that speaks in lines."""
    return LineSensor(options)
