"""The sensor's node: collects what one sensor measured, has it recorded, says when it is lost or beyond a limit. One
that is lost is asked for again until it answers.

May not: read a clock, wait for a connection, change anything at the device, or hide that nothing was measured.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.config.sensors import SensorTable
from labctl.core.interlock import NO_VALUE_YET
from labctl.devices import Batch, Sensor
from labctl.errors import LabctlError
from labctl.messages.pictures import FrameGap
from labctl.messages.processes import Shutdown
from labctl.messages.recording import Close, Open
from labctl.messages.sensing import SensorState
from labctl.nodes.connecting import CONNECTED, Connection
from labctl.nodes.phase_table import by_kind, carry_out, on, on_raw
from labctl.nodes.sensor_limits import SensorLimits
from labctl.nodes.tracing import FROM_RECORDER, TraceSender

LIVE_NS, SIMULATED_NS = 20 * MILLISECOND, 100 * MILLISECOND  # between two looks


class SensorNode:
    """See the module. real_time: looks come often, since a limit may have been exceeded."""

    def __init__(self, sensor: Sensor, table: SensorTable, *, real_time: bool = False, chunk_ns: int = SECOND) -> None:
        self.name = table.node
        self.finished = False
        self.topics = ("@obs",) if sensor.observes else ()
        self._sensor, self._stream = sensor, table.stream
        self._spec = replace(sensor.stream, name=table.stream)
        self._limits = SensorLimits(table.interlock, self._spec.columns)
        self._look_ns = LIVE_NS if real_time else SIMULATED_NS
        silent_ns = round(5 * SECOND / table.rate_hz)
        self._connection = Connection(sensor.connect, sensor.close, NO_VALUE_YET, silent_ns, closes=True)
        self.sender = TraceSender(self.name, [self._spec], chunk_ns=chunk_ns)
        self._ending = False
        self._shown: tuple[str, tuple[int, ...]] | None = None  # as run has it
        self._next_ns = self._opened_ns = self._newest_ns = 0

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail, then what was measured since the last one."""
        step = Step()
        for message in inbox:
            carry_out(MESSAGES, self, message, now_ns, step)
        connect = self._connection.due(now_ns)
        if self._ending:
            self._end()
        elif connect:
            step.work.append(self._connection.attempt(now_ns))
        elif self._connection.connected and now_ns >= self._next_ns:
            self._look(now_ns, step)
        step.out += self.sender.poll(now_ns)
        if not self._ending:
            step.due_ns = self._next_ns if self._connection.connected else self._connection.due_ns
        return step

    def _sense(self, message: Message, now_ns: int, step: Step) -> None:
        if self._connection.connected:
            self._sensor.sense(int(message.body["t_ns"]), message.arrays)

    def _opened(self, sent: Open, now_ns: int, step: Step) -> None:
        if self._connection.connected:
            self._look(now_ns, step)  # what was measured before belongs to no episode
        step.out += self.sender.open(sent.episode)
        self._opened_ns = now_ns

    def _closed(self, sent: Close, now_ns: int, step: Step) -> None:
        if self._connection.connected:
            self._look(now_ns, step)
        if self._connection.lost and self.sender.episode is not None:
            self._gap(now_ns, step)
        step.out += self.sender.close(now_ns)

    def _shut_down(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        step.out += self.sender.close(now_ns)
        self._ending = True

    def _attempted(self, message: Message, now_ns: int, step: Step) -> None:
        self._connection.attempted(message.body.get("error", ""), now_ns)
        if self._connection.connected:
            self._next_ns = now_ns
        else:
            self._tell(now_ns, step)

    def _look(self, now_ns: int, step: Step) -> None:
        self._next_ns = now_ns + self._look_ns
        try:
            batch = self._sensor.drain(now_ns)
        except LabctlError as error:
            self._lose(str(error), now_ns, step)
            return
        shape = (len(batch.t_ns), len(self._spec.columns))
        if np.shape(batch.values) != shape:
            self._lose(f"its values are {np.shape(batch.values)}, not {shape}", now_ns, step)
        elif len(batch.t_ns):
            self._take(batch, now_ns, step)
        elif self._connection.silent(now_ns):
            self._lose("it gives no values", now_ns, step)

    def _take(self, batch: Batch, now_ns: int, step: Step) -> None:
        if self._connection.lost and self.sender.episode is not None:
            self._gap(int(batch.t_ns[0]), step)
        self._connection.heard(now_ns)
        self._newest_ns = int(batch.t_ns[-1])
        self.sender.add(Batch(self._stream, batch.t_ns, batch.values))
        for t_ns, beyond in self._limits.look(batch.t_ns, np.asarray(batch.values, float)):
            self._show(("", beyond), t_ns, step)
        self._tell(now_ns, step)

    def _lose(self, why: str, now_ns: int, step: Step) -> None:
        self._connection.lose(why, now_ns)
        self._limits.lost()
        self._tell(now_ns, step)

    def _gap(self, to_ns: int, step: Step) -> None:
        """What was lost of the open episode, from its last value (or its opening) on."""
        from_ns = max(self._opened_ns, self._newest_ns)
        if to_ns > from_ns and self.sender.episode is not None:
            lost = round((to_ns - from_ns) / SECOND * self._spec.rate_hz)
            why, private = f"lost: {self._connection.cause}", self._spec.arm_dependent
            gap = FrameGap(self.sender.episode, self._stream, from_ns, to_ns, lost, why, private=private)
            step.out.append(gap.to("run"))

    def _tell(self, now_ns: int, step: Step) -> None:
        self._show((self._connection.lost, self._limits.beyond), now_ns, step)

    def _show(self, now: tuple[str, tuple[int, ...]], t_ns: int, step: Step) -> None:
        """Let run know when that has changed."""
        if now != self._shown:
            self._shown = now
            step.out.append(SensorState(self.name, now[0], list(now[1]), t_ns).to("run"))

    def _end(self) -> None:
        if not self._connection.trying and not self.finished:
            self._sensor.close()
            self.finished = True


MESSAGES = by_kind(
    (
        on_raw("obs", SensorNode._sense),
        on(Open, SensorNode._opened),
        on(Close, SensorNode._closed),
        *FROM_RECORDER,
        on(Shutdown, SensorNode._shut_down),
        on_raw(CONNECTED, SensorNode._attempted),
    )
)
