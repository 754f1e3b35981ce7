"""What the UR's driver makes of a controller's values: recorded as they come, and a slowed robot is a hold."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.robots.emulators import address
from support.robots.interleaved import after_the_first_read

from labctl.clock import MILLISECOND
from labctl.drivers.common import kinematics
from labctl.drivers.common.robot_tables import UR5E
from labctl.drivers.common.servo.following import Following
from labctl.drivers.common.states import DEVICE, States
from labctl.drivers.ur.options import UrOptions
from labctl.drivers.ur.words import IDLE, PLAYING, POWER_OFF, RUNNING, what_is_wrong
from labctl.errors import DeviceLost, DeviceRefused


class Values:
    """ur_rtde's receive interface, standing at home."""

    def __init__(self) -> None:
        self.scaling = self.slider = 1.0
        self.stamp, self.runtime = 1.0, PLAYING
        zeros = [0.0] * 6
        self._said: dict[str, Any] = {"ActualQ": UR5E.home.tolist(), "ActualQd": zeros, "TargetMoment": zeros}
        self._said |= {"ActualTCPPose": [0.4, 0.0, 0.3, 0.0, 3.0, 0.0], "ActualTCPForce": [1.0, 2, 3, 4, 5, 6]}
        self._said |= {"RobotMode": RUNNING, "SafetyStatusBits": 1}

    def __getattr__(self, name: str) -> Any:
        now = {"SpeedScaling": self.scaling, "TargetSpeedFraction": self.slider}
        now |= {"Timestamp": self.stamp, "RuntimeState": self.runtime}
        return lambda: (self._said | now)[name.removeprefix("get")]


class Bench:
    def __init__(self, **options: Any) -> None:
        pytest.importorskip("rtde_control")
        from labctl.drivers.ur.robot import UrLink

        self.link: Any = UrLink(
            UR5E, UrOptions.read({"host": "127.0.0.1"} | options, "ur5"), cell_named("emulated_ur5e").robot
        )
        self.values, self.states = Values(), States(lambda: 0.08)
        self.link._receive, self.link._states, self.link._control = self.values, self.states, SimpleNamespace()
        self.t_ns = 10**9
        self.link._clock = SimpleNamespace(now_ns=lambda: self.t_ns)

    def read(self, for_ns: int = 0) -> None:
        self.t_ns += for_ns
        self.values.stamp = self.t_ns / 1e9
        self.link._read()


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_robot_that_is_not_there_is_said_with_what_to_look_at() -> None:
    """From PolyScope 5.10 on the port is closed until somebody enables RTDE at the pendant."""
    host = address()
    with pytest.raises(DeviceLost, match=rf"no robot answers on {host}:30004 .* RTDE is enabled \(Settings, Security"):
        Bench(host=host).link.open(States(lambda: 0.08))


def test_speed_slider_scaling_and_wrench_are_recorded_with_each_state(bench: Bench) -> None:
    bench.values.slider, bench.values.scaling = 0.5, 0.25
    bench.read()
    bench.read(2 * MILLISECOND)
    state, device = bench.states.drain()
    columns = list(bench.link.more)
    assert device.stream == DEVICE and device.t_ns.tolist() == state.t_ns.tolist()
    row = dict(zip(columns, device.values[1].tolist(), strict=True))
    assert (row["speed_scaling"], row["target_speed_fraction"]) == (0.25, 0.5)
    assert [row[f"wrench.{axis}"] for axis in ("fx", "fy", "fz", "tx", "ty", "tz")] == [1, 2, 3, 4, 5, 6]
    assert bench.link.more["wrench.fx"] == "N" and bench.link.more["wrench.tz"] == "N.m"


def test_a_fault_in_reading_is_no_silence_of_the_robot(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> None:
        raise ZeroDivisionError("in labctl")

    monkeypatch.setattr(bench.link, "_read", fails)
    reader = threading.Thread(target=bench.link._read_on)  # it raises its own priority
    reader.start()
    reader.join(60)
    assert bench.link.health().mode == "lost" and "ZeroDivisionError: in labctl" in bench.link.lost()


def test_a_robot_that_says_nothing_of_its_own_kinematics_is_told(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Issue 20.10's rest: it was read through the published table without a word."""
    from labctl.drivers.ur import robot

    monkeypatch.setattr(robot, "read_calibration", lambda _: None)
    assert bench.link._calibration() is None
    (told,) = bench.link.news
    assert "30001" in told and "published table" in told


def test_a_speed_slider_below_full_is_a_hold_that_says_so_until_it_is_back(bench: Bench) -> None:
    bench.read()
    assert bench.link.health().mode == "idle"
    bench.values.slider = 0.5
    bench.read()
    held = bench.link.health()
    assert held.mode == "fault" and "speed slider" in held.reason and "50 %" in held.reason
    assert bench.link.recover() is False, "and no program is sent for it"
    bench.values.slider = 1.0
    assert bench.link.health().mode == "idle" and bench.link.recover()


def test_safety_limits_that_slow_the_robot_for_longer_than_a_corner_of_its_way_are_a_hold(bench: Bench) -> None:
    bench.values.scaling = 0.8
    bench.read()
    bench.read(100 * MILLISECOND)
    assert bench.link.health().mode == "idle"
    bench.read(101 * MILLISECOND)
    assert "slow it to 80 %" in bench.link.health().reason
    bench.values.scaling = 1.0
    bench.read()
    assert bench.link.health().mode == "idle"
    bench.values.scaling, bench.values.runtime = 0.0, 4  # paused: another hold's matter
    bench.read()
    bench.read(500 * MILLISECOND)
    assert "slow it" not in bench.link.health().reason and np.isfinite(bench.states.drain()[1].values).all()


@pytest.mark.parametrize("mode", [POWER_OFF, IDLE, RUNNING])
def test_a_robot_in_recovery_mode_is_moved_by_a_person_and_neither_switched_on_nor_sent_a_program(
    bench: Bench, mode: int
) -> None:
    asked: list[str] = []
    bench.link._switches = SimpleNamespace(
        power_on=lambda: asked.append("power on"), release_brakes=lambda: asked.append("brakes")
    )
    bench.values._said |= {"RobotMode": mode, "SafetyStatusBits": 1 << 3}
    bench.read()
    with pytest.raises(DeviceRefused, match="recovery mode: the robot is outside the limits"):
        bench.link.recover()
    assert asked == [] and "recovery mode" in bench.link.health().reason
    bench.values._said |= {"RobotMode": RUNNING, "SafetyStatusBits": 1}
    assert bench.link.recover(), "it is back inside"


def test_a_state_is_of_one_package_though_the_next_comes_while_it_is_read(bench: Bench) -> None:
    values, asked = bench.values, iter([1.0, 1.002, 1.002, 1.002])
    values.getTimestamp = lambda: next(asked)  # type: ignore[attr-defined]
    bench.link._read()
    (state, _) = bench.states.drain()
    assert state.values[:, -1].tolist() == [1.002] and bench.link._stamp == 1.002


@pytest.mark.parametrize("watchdog_hz", [4.0, 20.0, 50.0])
def test_a_robot_at_rest_is_told_that_somebody_is_there_twice_in_each_period_of_its_watchdog(
    watchdog_hz: float,
) -> None:
    """Each 50 ms, whatever was asked of the watchdog: above 20 Hz it ended the program of every robot at rest."""
    bench, kicked = Bench(watchdog_hz=watchdog_hz), [0]
    bench.link._control = SimpleNamespace(kickWatchdog=lambda: kicked.append(bench.t_ns))
    bench.link._ask = lambda call: call()
    bench.link._kicked_ns = kicked[0] = bench.t_ns
    for _ in range(100):
        bench.t_ns += 10 * MILLISECOND  # the control period
        bench.link.keep_alive()
    assert len(kicked) > 1 and np.diff(kicked).max() <= 1e9 / watchdog_hz / 2 + 10 * MILLISECOND
    assert len(kicked) <= 1 + 1000 / min(50, 500 / watchdog_hz), "and not more often than that takes"


@pytest.mark.parametrize("behind", [0.05, 0.3])
def test_a_speed_that_catches_up_stays_within_the_cells_limits(behind: float) -> None:
    """servo = "velocity": a joint and the tool, however far the robot is behind its setpoint."""
    pytest.importorskip("rtde_control")
    from labctl.drivers.ur.robot import CORRECT_PER_S

    bench, given = Bench(servo="velocity"), list[list[float]]()
    bench.values._said |= {"TargetQ": UR5E.home.tolist()}
    bench.link._control = SimpleNamespace(speedL=lambda twist, *_: given.append(twist))
    limits = cell_named("emulated_ur5e").robot.limits
    fast = 0.9 * np.array(limits.velocity_rad_s) * np.eye(6)[5]
    bench.link.send_setpoint(UR5E.home + behind * np.eye(6)[5], fast)  # turns the tool alone
    assert np.linalg.norm(given[-1][3:]) <= limits.velocity_rad_s[5] * (1 + 1e-9)
    bench.link.send_setpoint(UR5E.home + behind * np.eye(6)[0], 10 * fast)
    assert limits.tool_speed_m_s is not None
    assert np.linalg.norm(given[-1][:3]) <= limits.tool_speed_m_s * (1 + 1e-9)
    bench.link.send_setpoint(UR5E.home + 0.01 * np.eye(6)[0], np.zeros(6))
    jacobian = kinematics.jacobian(UR5E.chain, UR5E.home[None, :])[0][0]
    assert given[-1] == pytest.approx((jacobian[:, 0] * 0.01 * CORRECT_PER_S).tolist()), "within them it is as it was"


def test_a_robot_that_is_slowed_anew_at_that_moment_has_not_been_slow_for_long(bench: Bench) -> None:
    bench.values.scaling = 0.5
    bench.read()
    with after_the_first_read(bench.link, "_scaled_ns", lambda: setattr(bench.link, "_scaled_ns", 0)):
        assert bench.link.health().mode == "idle"


def _refuses_one_call(asked: list[str], refused: str) -> Any:
    """ur_rtde's control interface, of which one call is answered with False: not done."""

    class Control:
        FLAG_UPLOAD_SCRIPT, FLAG_UPPER_RANGE_REGISTERS = 1, 8

        def __init__(self, *_: Any) -> None: ...

        def __getattr__(self, name: str) -> Any:
            return lambda *_: (asked.append(name), name != refused)[1]

    return Control


@pytest.mark.parametrize(
    ("refused", "what"),
    [("setTcp", "tool centre point"), ("setPayload", "payload"), ("setWatchdog", "watchdog"), ("", "")],
)
def test_a_program_without_its_tool_payload_or_watchdog_leads_no_robot(
    monkeypatch: pytest.MonkeyPatch, refused: str, what: str
) -> None:
    """Each answers False where it was not done; the robot counted as ready, its watchdog not set."""
    bench, asked = Bench(payload_kg=1.0), list[str]()
    bench.link._control, bench.link._version = None, (5, 11, 0, 0)
    control = SimpleNamespace(RTDEControlInterface=_refuses_one_call(asked, refused))
    monkeypatch.setattr("labctl.drivers.ur.robot.rtde_control", control)
    bench.values.runtime = 1
    bench.read()
    if not refused:
        bench.link._attach()
        assert asked == ["setTcp", "setPayload", "setWatchdog"] and bench.link._control is not None
        return
    with pytest.raises(DeviceRefused, match=f"the robot's program did not take its {what}"):
        bench.link._attach()
    assert asked[-2:] == ["stopScript", "disconnect"] and bench.link._control is None
    assert "program is not on the robot" in bench.link.health().reason


def test_a_stop_that_a_running_program_did_not_take_is_given_again_and_its_watchdog_hears_nobody(bench: Bench) -> None:
    asked, taken = list[str](), iter([False, False, True])
    bench.link._control = SimpleNamespace(
        speedStop=lambda _: (asked.append("stop"), next(taken))[1],
        servoStop=None,
        kickWatchdog=lambda: asked.append("kick"),
    )
    bench.link._doing, bench.link._kicked_ns = "speed", bench.t_ns
    bench.link.halt()
    for _ in range(20):
        bench.t_ns += 10 * MILLISECOND
        bench.link.keep_alive()
    assert asked[:4] == ["stop", "stop", "stop", "kick"] and asked.count("stop") == 3


def test_a_stop_that_no_program_was_there_to_take_is_not_given_again(bench: Bench) -> None:
    asked = list[str]()
    bench.link._control = SimpleNamespace(servoStop=lambda _: (asked.append("stop"), False)[1], speedStop=None)
    bench.link._doing, bench.values.runtime = "servo", 1
    bench.link.halt()
    bench.link.keep_alive()
    assert asked == ["stop"]


@pytest.mark.parametrize(("servo", "wrong"), [("velocity", False), ("joint", True), ("cartesian", True)])
def test_a_robot_that_is_led_by_speeds_goes_on_at_the_last_one_while_labctl_pauses(servo: str, wrong: bool) -> None:
    """It is held until the watchdog: after a pause of 0.12 s the episode ended as of a robot that does not follow."""
    following = Following(coast_s=Bench(servo=servo).link.coast_s)
    q, speed, now_s = UR5E.home.copy(), 1.5 * np.eye(6)[0], 0.0
    for pause_s in (*[0.008] * 50, 0.12):
        now_s += pause_s
        q = q + pause_s * speed
        following.give(now_s, now_s, q if pause_s < 0.1 else q - 0.112 * speed, speed)
    assert bool(following.wrong(q)) is wrong


@pytest.mark.parametrize("mode", [-1, 0, 1, 2, POWER_OFF, 4, IDLE, 6, 8, 9])
def test_an_acknowledgement_is_asked_for_where_it_powers_the_robot_on_and_nowhere_else(mode: int) -> None:
    """ "The robot is powering on; wait: acknowledge to power it on" was said as well."""
    for power_on in (True, False):
        said = what_is_wrong(mode, 1, 1, attached=False, power_on=power_on).reason
        assert ("acknowledge" in said) is ("power it on" in said) is (mode in (POWER_OFF, IDLE))
        assert ("at the pendant, then" in said) is (mode in (POWER_OFF, IDLE) and not power_on)
