"""The sensor's node: collects what one sensor measured, has it recorded, says when it is lost or beyond a limit. One
that is lost is asked for again until it answers.

May not: read a clock, wait for a connection, change anything at the device, or hide that nothing was measured.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from labctl.bus import Message, Step, Work
from labctl.clock import MILLISECOND, SECOND
from labctl.config.sensors import SensorTable
from labctl.core.interlock import NO_VALUE_YET
from labctl.devices import Batch, Sensor
from labctl.errors import DeviceLost, LabctlError
from labctl.messages.pictures import FrameGap
from labctl.messages.processes import Shutdown
from labctl.messages.recording import Ack, Close, Open, Resend
from labctl.messages.sensing import SensorState
from labctl.nodes.phase_table import by_kind, carry_out, on, on_raw
from labctl.nodes.sensor_limits import SensorLimits
from labctl.nodes.tracing import TraceSender

SILENT_NS = SECOND  # so long without a value, and five periods, and the sensor counts as lost …
FIRST_NS = 5 * SECOND  # … but when it was just connected it has this long to give its first
HUNG_NS = 60 * SECOND  # an attempt to connect that takes so long will not end
RETRY_NS = (SECOND // 2, SECOND, 2 * SECOND, 5 * SECOND)  # between attempts to connect; then always the last
LIVE_NS, SIMULATED_NS = 20 * MILLISECOND, 100 * MILLISECOND  # between two looks
CONNECTED = "connected"  # kind of the message that answers an attempt


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
        self._silent_ns = max(SILENT_NS, round(5 * SECOND / table.rate_hz))
        self._sender = TraceSender(self.name, [self._spec], chunk_ns=chunk_ns)
        self._connected = self._trying = self._ending = False
        self._lost = self._cause = NO_VALUE_YET
        self._shown: tuple[str, tuple[int, ...]] | None = None  # what run was last told
        self._attempts = 0
        self._tried_ns = self._retry_ns = self._next_ns = self._patient_until_ns = 0
        self._opened_ns = self._newest_ns = 0

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail, then what was measured since the last one."""
        step = Step()
        for message in inbox:
            carry_out(MESSAGES, self, message, now_ns, step)
        if self._ending:
            self._end()
        elif not self._connected and not self._trying and now_ns >= self._retry_ns:
            self._try(now_ns, step)
        elif self._connected and now_ns >= self._next_ns:
            self._look(now_ns, step)
        if self._trying and now_ns - self._tried_ns > HUNG_NS:
            raise DeviceLost(f"connecting has not returned for {HUNG_NS // SECOND} s; this process is started again")
        step.out += self._sender.poll(now_ns)
        if not self._ending:
            waiting_ns = self._tried_ns + HUNG_NS + 1 if self._trying else self._retry_ns
            step.due_ns = self._next_ns if self._connected else waiting_ns
        return step

    def _sense(self, message: Message, now_ns: int, step: Step) -> None:
        if self._connected:
            self._sensor.sense(int(message.body["t_ns"]), message.arrays)

    def _opened(self, sent: Open, now_ns: int, step: Step) -> None:
        if self._connected:
            self._look(now_ns, step)  # what was measured before belongs to no episode
        step.out += self._sender.open(sent.episode)
        self._opened_ns = now_ns

    def _closed(self, sent: Close, now_ns: int, step: Step) -> None:
        if self._connected:
            self._look(now_ns, step)
        if self._lost and self._sender.episode is not None:
            self._gap(now_ns, step)
        step.out += self._sender.close(now_ns)

    def _acknowledged(self, sent: Ack, now_ns: int, step: Step) -> None:
        self._sender.ack(sent)

    def _resend(self, sent: Resend, now_ns: int, step: Step) -> None:
        step.out += self._sender.resend()

    def _shut_down(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        step.out += self._sender.close(now_ns)
        self._ending = True

    def _attempted(self, message: Message, now_ns: int, step: Step) -> None:
        self._trying = False
        if error := message.body.get("error", ""):
            self._retry_ns = now_ns + RETRY_NS[min(self._attempts, len(RETRY_NS) - 1)]
            self._attempts += 1
            self._lost = error
            self._tell(now_ns, step)
            return
        self._connected = True
        self._next_ns, self._patient_until_ns = now_ns, now_ns + FIRST_NS

    def _try(self, now_ns: int, step: Step) -> None:
        """Connect beside the loop: it may take seconds."""
        self._trying, self._tried_ns = True, now_ns
        again = self._attempts > 0

        def attempt() -> None:
            if again:
                self._sensor.close()
            self._sensor.connect(now_ns)

        step.work.append(Work(attempt, CONNECTED))

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
        elif now_ns > self._patient_until_ns:
            self._lose("it gives no values", now_ns, step)

    def _take(self, batch: Batch, now_ns: int, step: Step) -> None:
        self._patient_until_ns = now_ns + self._silent_ns
        if self._lost and self._sender.episode is not None:
            self._gap(int(batch.t_ns[0]), step)
        self._lost, self._attempts = "", 0
        self._newest_ns = int(batch.t_ns[-1])
        self._sender.add(Batch(self._stream, batch.t_ns, batch.values))
        for t_ns, beyond in self._limits.look(batch.t_ns, np.asarray(batch.values, float)):
            self._show(("", beyond), t_ns, step)
        self._tell(now_ns, step)

    def _lose(self, why: str, now_ns: int, step: Step) -> None:
        self._connected = False
        self._lost = self._cause = why
        self._retry_ns, self._attempts = now_ns + RETRY_NS[0], 1
        self._tell(now_ns, step)

    def _gap(self, to_ns: int, step: Step) -> None:
        """What was lost of the open episode, from its last value (or its opening) on."""
        from_ns = max(self._opened_ns, self._newest_ns)
        if to_ns > from_ns and self._sender.episode is not None:
            lost = round((to_ns - from_ns) / SECOND * self._spec.rate_hz)
            gap = FrameGap(self._sender.episode, self._stream, from_ns, to_ns, lost, f"lost: {self._cause}")
            step.out.append(gap.to("run"))

    def _tell(self, now_ns: int, step: Step) -> None:
        self._show((self._lost, self._limits.beyond), now_ns, step)

    def _show(self, now: tuple[str, tuple[int, ...]], t_ns: int, step: Step) -> None:
        """Let run know when that has changed."""
        if now != self._shown:
            self._shown = now
            step.out.append(SensorState(self.name, now[0], list(now[1]), t_ns).to("run"))

    def _end(self) -> None:
        if not self._trying and not self.finished:
            self._sensor.close()
            self.finished = True


MESSAGES = by_kind(
    (
        on_raw("obs", SensorNode._sense),
        on(Open, SensorNode._opened),
        on(Close, SensorNode._closed),
        on(Ack, SensorNode._acknowledged),
        on(Resend, SensorNode._resend),
        on(Shutdown, SensorNode._shut_down),
        on_raw(CONNECTED, SensorNode._attempted),
    )
)
