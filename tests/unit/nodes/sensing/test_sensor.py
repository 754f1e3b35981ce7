"""The sensor's node records what was measured, marks what was not, and says when a limit is exceeded."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from labctl.bus import Message, Step
from labctl.clock import MILLISECOND, SECOND
from labctl.config.sensors import SensorLimit, SensorTable
from labctl.devices import Batch
from labctl.errors import DeviceLost
from labctl.nodes.sensor import SensorNode
from labctl.nodes.sensor_limits import SensorLimits
from labctl.streams import StreamSpec

PERIOD = 50 * MILLISECOND
CONNECTED_NS = 1010 * MILLISECOND  # at the bench's first visit


class Sensor:
    """One column in N that is what the test says; error: raised instead."""

    kind, observes = "sim", False
    stream = StreamSpec("any", ("force",), "N", 20.0, public_columns=("force",))

    def __init__(self) -> None:
        self.force, self.error, self.silent = 1.0, "", False
        self.due_ns: int | None = None
        self.connections = 0

    def connect(self, now_ns: int) -> None:
        if self.error:
            raise DeviceLost(self.error)
        self.due_ns, self.connections = now_ns + PERIOD, self.connections + 1

    def sense(self, t_ns: int, observation: object) -> None: ...

    def drain(self, now_ns: int) -> Batch:
        if self.error:
            raise DeviceLost(self.error)
        assert self.due_ns is not None
        t_ns = np.arange(self.due_ns, now_ns + 1, PERIOD)
        self.due_ns += PERIOD * len(t_ns)
        t_ns = t_ns[:0] if self.silent else t_ns
        return Batch("any", t_ns, np.full((len(t_ns), 1), self.force))

    def close(self) -> None:
        self.due_ns = None


class Bench:
    def __init__(self, *limits: SensorLimit) -> None:
        self.sensor, self.now_ns = Sensor(), SECOND
        table = SensorTable(name="ft", driver="any", rate_hz=20.0, interlock=limits)
        self.node = SensorNode(self.sensor, table)
        self.out: list[Message] = []

    def send(self, kind: str = "", **body: object) -> None:
        step: Step = self.node.step(self.now_ns, [Message(self.node.name, kind, body)] if kind else [])
        self.out += step.out
        for work in step.work:
            try:
                work.call()
                answer = {}
            except DeviceLost as error:
                answer = {"error": str(error)}
            self.send(work.kind, **answer)

    def run(self, seconds: float) -> None:
        end_ns = self.now_ns + round(seconds * SECOND)
        while self.now_ns < end_ns:
            self.now_ns += 10 * MILLISECOND
            self.send()

    def words(self) -> list[tuple[str, list[int]]]:
        return [(m.body["lost"], list(m.body.get("beyond", ()))) for m in self.out if m.kind == "sensor"]

    def rows(self) -> np.ndarray:
        return np.concatenate([m.arrays["t_ns"] for m in self.out if m.kind == "chunk"])

    def gaps(self) -> list[dict]:
        return [dict(m.body) for m in self.out if m.kind == "gap"]


def limit(
    then: str = "end", *, above: float | None = 10.0, below: float | None = None, for_s: float = 0.0
) -> SensorLimit:
    return SensorLimit(columns=("force",), unit="N", above=above, below=below, for_s=for_s, then=then)


def test_what_is_measured_while_an_episode_is_open_is_recorded_whole() -> None:
    bench = Bench()
    bench.run(1.0)
    bench.send("open", episode="e1")
    bench.run(2.0)
    bench.send("close", episode="e1")
    rows = bench.rows()
    assert (np.diff(rows) == PERIOD).all() and 39 <= len(rows) <= 41
    assert bench.words() == [("", [])] and bench.gaps() == []
    (declared,) = [m.body for m in bench.out if m.kind == "declare"]
    assert [spec["name"] for spec in declared["specs"]] == ["sensor/ft"]


@pytest.mark.parametrize(("outside_s", "beyond"), [(0.5, []), (2.5, [0])])
def test_a_limit_that_has_to_last_does_not_last_while_nothing_is_measured(outside_s: float, beyond: list[int]) -> None:
    """One value outside before the sensor was gone for 5 s and one after it ended an episode at once."""
    bench = Bench(limit("void", for_s=2.0))
    bench.run(1.0)
    bench.sensor.force = 11.0
    bench.run(outside_s)
    assert bench.words()[-1] == ("", beyond)
    bench.sensor.silent = True
    bench.run(5.0)
    assert bench.words()[-1] == ("it gives no values", beyond)
    bench.sensor.silent = False
    bench.run(1.0)
    assert bench.words()[-1] == ("", beyond), "what it was beyond of it still is"
    bench.run(4.0)
    assert bench.words()[-1] == ("", [0])


@pytest.mark.parametrize("how", ["raises", "silent"])
def test_a_loss_is_said_and_marked_and_ends_when_values_come_again(how: str) -> None:
    bench = Bench()
    bench.run(1.0)
    bench.send("open", episode="e1")
    bench.run(1.0)
    bench.sensor.error, bench.sensor.silent = ("the cable is out", False) if how == "raises" else ("", True)
    bench.run(3.0)
    bench.sensor.error, bench.sensor.silent = "", False
    bench.run(3.0)
    bench.send("close", episode="e1")
    why = "the cable is out" if how == "raises" else "it gives no values"
    assert [lost for lost, _ in bench.words()] == ["", why, ""]
    (gap,) = bench.gaps()
    rows = bench.rows()
    hole = int(np.diff(rows).argmax())
    assert (gap["stream"], gap["why"]) == ("sensor/ft", f"lost: {why}")
    assert (gap["from_ns"], gap["to_ns"]) == (rows[hole], rows[hole + 1])
    assert gap["lost"] == round((gap["to_ns"] - gap["from_ns"]) / PERIOD)


def test_a_gap_of_a_sensor_that_tells_arms_apart_is_marked_as_private() -> None:
    """No entry of the journal says then that its values are missing."""
    bench = Bench()
    bench.node._spec = replace(bench.node._spec, arm_dependent=True)
    bench.sensor.error = "no device"
    bench.send("open", episode="e-1")
    bench.run(2.0)
    bench.send("close", episode="e-1")
    assert [gap["private"] for gap in bench.gaps()] == [True]


def test_a_sensor_that_is_not_there_is_asked_for_again_and_its_absence_is_a_gap_from_the_opening_on() -> None:
    bench = Bench()
    bench.sensor.error = "nothing answers"
    bench.send("open", episode="e1")
    bench.run(4.0)
    assert bench.sensor.connections == 0 and bench.words() == [("nothing answers", [])]
    bench.send("close", episode="e1")
    (gap,) = bench.gaps()
    assert (gap["from_ns"], gap["to_ns"]) == (SECOND, bench.now_ns)


def test_a_limit_exceeded_for_one_value_is_said_with_that_values_time_and_so_is_its_end() -> None:
    bench = Bench(limit())
    bench.run(1.0)
    bench.sensor.force = 11.0
    bench.run(0.1)
    bench.sensor.force = 9.0
    bench.run(0.5)
    assert bench.words() == [("", []), ("", [0]), ("", [])]
    beyond = [m.body["t_ns"] for m in bench.out if m.kind == "sensor"][1]
    assert (beyond - CONNECTED_NS) % PERIOD == 0, "the time of the sample, not of the look"


def test_within_one_batch_each_limit_has_its_own_patience_and_a_moment_counts() -> None:
    limits = SensorLimits([limit(), limit(for_s=0.2), limit(above=None, below=2.0)], ("force",))
    t_ns = PERIOD * np.arange(12)
    values = np.array([5.0, 11, 5, 5, 11, 11, 11, 11, 11, 11, 5, 1])[:, None]
    found = [(int(at // PERIOD), beyond) for at, beyond in limits.look(t_ns, values)]
    assert found == [(1, (0,)), (2, ()), (4, (0,)), (8, (0, 1)), (10, ()), (11, (2,))]


def test_several_columns_count_as_a_length_and_what_is_no_number_is_within_no_limit() -> None:
    both = SensorLimit(columns=("x", "y"), unit="N", above=5.0, then="hold")
    limits = SensorLimits([both], ("x", "y"))
    values = np.array([[3.0, 3.9], [3.0, 4.1], [0.0, 0.0], [np.nan, 0.0]])
    assert [beyond for _, beyond in limits.look(PERIOD * np.arange(4), values)] == [(0,), (), (0,)]
