"""An FR3's states from the network are the client's own, and none is lost, whatever holds this process up."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named, changed
from support.robots.emulators import Emulator

from labctl.clock import SECOND
from labctl.drivers.franka import reading as fci_reading
from labctl.drivers.franka.reading import ClientState, FciReading, client_samples
from labctl.drivers.franka.state import Datagram, samples
from labctl.errors import DeviceRefused
from labctl.realtime import kept
from labctl.testing.robot import RobotRig

franky = pytest.importorskip("franky")
pytestmark = pytest.mark.real_time

PAUSE_US = 150_000
BESIDE = 300  # states that both sources must tell alike


@pytest.fixture(scope="module")
def emulator() -> Iterator[Emulator]:
    made = Emulator("fr3", "ahead=true")
    yield made
    made.end()


def rig_of(emulator: Emulator, source: str) -> RobotRig:
    options = cell_named("emulated_fr3").robot.options
    options["driver_options"] |= {"host": emulator.host, "states": source}
    cell = changed(cell_named("emulated_fr3"), {"robot": {"state_hz": 1000.0}})
    return RobotRig("emulated", options, cell, live=True)


def reading(rig: RobotRig) -> FciReading:
    return rig.robot._inner._link._reading  # type: ignore[attr-defined]


def numbers(rig: RobotRig) -> np.ndarray:
    """The robot's clock in ms at each state so far."""
    rig.drain()
    column = next(spec for spec in rig.robot.streams if spec.name == "arm/state").columns.index("device_s")
    device_s = [batch.values[:, column] for batch in rig.batches if batch.stream == "arm/state"]
    return np.round(1000 * np.concatenate(device_s)).astype(int)


def alike(mine: Datagram, theirs: ClientState) -> None:
    """One state, as its bytes say it and as libfranka does."""
    assert mine.number == theirs.number and mine.mode == theirs.mode
    assert sorted(mine.errors) == sorted(theirs.errors)
    a, b = samples([mine]), client_samples([theirs])
    for name in ("q", "dq", "tau", "device_s", "more"):
        assert np.array_equal(getattr(a, name), getattr(b, name)), name
    assert np.allclose(a.tcp[:, :3], b.tcp[:, :3], atol=1e-9)
    assert abs((a.tcp[0, 3:] * b.tcp[0, 3:]).sum()) > 1 - 1e-6
    assert np.array_equal(mine.q_d, theirs.q_d) and np.allclose(mine.pose_c, theirs.pose_c, atol=1e-9)


@pytest.mark.privileged
def test_the_bytes_say_what_libfranka_says(emulator: Emulator) -> None:
    with kept():
        robot = franky.Robot(emulator.host, realtime_config=franky.RealtimeConfig.Ignore)
    capture = fci_reading.Capture(emulator.host)
    theirs: list[ClientState] = []
    robot.relative_dynamics_factor = 0.2
    motion = franky.JointMotion(franky.JointState(np.array(robot.state.q) + 0.1))
    motion.register_callback(lambda state, *_: theirs.append(ClientState(state)))
    theirs += [ClientState(robot.state) for _ in range(BESIDE)]
    robot.move(motion)
    emulator.inject("reflex", name="joint_reflex")
    theirs += [ClientState(robot.state) for _ in range(BESIDE)]
    mine = {state.number: state for _, state in capture.drain()}
    capture.close()
    emulator.clear()
    robot.recover_from_errors()
    assert len(theirs) > 3 * BESIDE and theirs[-1].mode == "Reflex" and theirs[-1].errors == ["joint_reflex"]
    assert any(np.abs(state.state.dq).max() > 0.01 for state in theirs)
    rates = {(state.mode == "Move", round(state.sample().more[0], 4)) for state in theirs}
    assert rates == {(False, 0.0), (True, 1.0)}, "libfranka: zero while no control loop runs"
    for state in theirs:
        alike(mine[state.number], state)


@pytest.mark.privileged
def test_no_state_is_lost_at_rest_in_motion_or_while_the_whole_process_stands_still(emulator: Emulator) -> None:
    rig = rig_of(emulator, "network")
    try:
        rig.connect()
        rig.wait(SECOND // 2)
        ctypes.PyDLL(None).usleep(PAUSE_US)  # the interpreter's lock is held: nothing of ours runs
        rig.wait(SECOND // 2)
        start = rig.robot.observe()["q"]
        swing = start + 0.1 * (1 - np.cos(np.linspace(0, np.pi, 100)))[:, None] * np.eye(7)[0]
        pause = threading.Timer(0.5, ctypes.PyDLL(None).usleep, (PAUSE_US // 3,))
        pause.start()
        rig.follow(swing)
        rig.at_rest()
        pause.join()
        found = numbers(rig)
    finally:
        rig.robot.close()
    assert len(found) > 2000
    assert (np.diff(found) == 1).all(), f"lost after {found[:-1][np.diff(found) != 1]}"


@pytest.mark.privileged
def test_the_times_of_states_are_as_regular_as_the_robot_though_the_process_is_not(emulator: Emulator) -> None:
    rig = rig_of(emulator, "network")
    try:
        rig.connect()
        rig.drain()
        rig.batches.clear()
        begun = emulator.stats()["states_sent"]
        before_ns = rig.now_ns
        ctypes.PyDLL(None).usleep(PAUSE_US)
        after_ns = rig.now_ns
        sent = emulator.stats()["states_sent"] - begun
        rig.wait(SECOND // 10)
        t_ns = np.concatenate([batch.t_ns for batch in rig.batches if batch.stream == "arm/state"])
    finally:
        rig.robot.close()
    during = ((t_ns > before_ns) & (t_ns < after_ns)).sum()
    assert during > 0.5 * sent > 0, "most that came while nobody read have the times at which they came"


@pytest.mark.parametrize("source", ["auto", "client"])
def test_without_the_right_the_client_is_read(emulator: Emulator, source: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(host: str) -> Any:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(fci_reading, "Capture", refused)
    rig = rig_of(emulator, source)
    try:
        rig.connect()
        assert reading(rig).callback is not None
        start = rig.robot.observe()["q"]
        rig.follow(start + np.linspace(0, 0.1, 100)[:, None] * np.eye(7)[0])
        rig.at_rest()
        assert rig.robot.observe()["q"][0] > start[0] + 0.05
        found = numbers(rig)
        moved = np.flatnonzero(np.abs(rig.states[:, : rig.joints] - start).max(axis=1) > 1e-3)
        assert (np.diff(found) > 0).all() and len(moved) > 100, "each state once, and those of a motion of 0.1 rad"
    finally:
        rig.robot.close()


def test_states_from_the_network_or_none_is_refused_in_words(
    emulator: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(host: str) -> Any:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(fci_reading, "Capture", refused)
    rig = rig_of(emulator, "network")
    with pytest.raises(DeviceRefused, match=r'states = "network": Operation not permitted.*CAP_NET_RAW.*"auto"'):
        rig.connect()
    rig.robot.close()


@pytest.mark.privileged
def test_a_network_on_which_no_state_is_seen_is_not_used(emulator: Emulator, monkeypatch: pytest.MonkeyPatch) -> None:
    deaf = fci_reading.Capture("127.0.0.254")
    monkeypatch.setattr(fci_reading, "Capture", lambda host: deaf)
    rig = rig_of(emulator, "auto")
    try:
        rig.connect()
        assert reading(rig).callback is not None
        rig.until(lambda: bool(rig.batches) and len(numbers(rig)) > 100)
    finally:
        rig.robot.close()
