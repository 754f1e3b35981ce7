"""Claims about the ring of measured states: each is collected once, in order, in the declared columns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from labctl.drivers.common import states as module
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.common.states import DEVICE, Sample, States, stacked, state_spec, state_specs

TURN = np.array([0.6, 0.0, 0.0, 0.8])


def sample(number: float, turn: np.ndarray = TURN) -> Sample:
    joints = np.arange(7.0) + 100 * number
    return Sample(joints, -joints, 2 * joints, np.append([0.1, 0.2, 0.3], turn), number / 1000)


def test_a_batch_has_each_state_once_in_the_declared_columns() -> None:
    states = States(lambda: 0.04)
    for number in range(3):
        states.add(10 * number + 1, sample(number))
    (batch,) = states.drain()
    columns = state_spec(FR3, 1000.0).columns
    assert batch.t_ns.tolist() == [1, 11, 21] and batch.values.shape == (3, len(columns))
    last = dict(zip(columns, batch.values[2].tolist(), strict=True))
    assert (last["q.fr3_joint1"], last["dq.fr3_joint2"], last["tau.fr3_joint7"]) == (200.0, -201.0, 412.0)
    assert (last["tcp.z"], last["tcp.qw"], last["gripper"], last["device_s"]) == (0.3, 0.8, 0.04, 0.002)
    assert states.drain() == []


def test_times_that_do_not_ascend_are_moved_on() -> None:
    states = States(lambda: 0.0)
    for at in (5, 5, 3, 9):
        states.add(at, sample(at))
    assert states.drain()[0].t_ns.tolist() == [5, 6, 7, 9]


def test_a_rotation_stays_on_its_side_for_whoever_looks_and_over_batches() -> None:
    states = States(lambda: 0.0)
    quaternions = []
    for at, side in enumerate((1, -1, -1, 1, -1)):
        states.add(at + 1, sample(at, side * TURN))
        newest = states.newest
        assert newest is not None
        quaternions.append(newest.tcp[3:])
        if at % 2:
            quaternions += list(states.drain()[0].values[:, 24:28])
    assert all((quaternion == TURN).all() for quaternion in quaternions)


def test_a_state_is_made_a_sample_only_when_somebody_wants_it() -> None:
    made: list[Any] = []

    def table(found: Sequence[Any]) -> Sample:
        made.extend(found)
        return stacked([sample(at) for at in found])

    states = States(lambda: 0.0, table)
    for at in range(5):
        states.add(at, at)
    assert made == []
    assert states.newest is states.newest and made == [4]
    states.drain()
    assert made == [4, 0, 1, 2, 3, 4]


def test_what_nobody_collects_goes_oldest_first(monkeypatch: Any) -> None:
    monkeypatch.setattr(module, "MOST", 3)
    states = States(lambda: 0.0)
    assert states.newest is None
    for at in range(1, 6):
        states.add(at, sample(at))
    assert states.drain()[0].t_ns.tolist() == [3, 4, 5]


def test_what_a_controller_tells_beside_its_state_is_a_stream_that_no_blind_role_sees() -> None:
    states = States(lambda: 0.0)
    for number in range(3):
        states.add(number + 1, replace(sample(number), more=np.array([0.5, number])))
    state, device = states.drain()
    assert device.stream == DEVICE and device.t_ns.tolist() == state.t_ns.tolist()
    assert device.values.tolist() == [[0.5, 0.0], [0.5, 1.0], [0.5, 2.0]]
    _, spec = state_specs(FR3, 1000.0, {"success_rate": "1", "tau_ext.fr3_joint1": "N.m"})
    assert spec.name == DEVICE and spec.unit == "1 N.m" and spec.rate_hz == 1000.0
    assert spec.open_columns() == () and not spec.arm_dependent, "it tells how a robot moves, not which it is"
    assert len(state_specs(FR3, 1000.0, {})) == 1


def test_the_newest_state_has_the_wrench_of_a_controller_that_tells_one_and_none_is_recorded_with_it() -> None:
    states, wrench = States(lambda: 0.0), np.arange(6.0)
    states.add(1, replace(sample(1), wrench=wrench))
    assert states.newest is not None and states.newest.wrench.tolist() == wrench.tolist()
    (batch,) = states.drain()
    assert batch.values.shape == (1, len(state_spec(FR3, 1000.0).columns)), "its stream is as it was"
    states.add(2, sample(2))
    assert states.newest.wrench.size == 0
