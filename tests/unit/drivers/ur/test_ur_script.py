"""The register handshake of the control script, and the body it moves, one control cycle after another."""

import numpy as np
import pytest

from labctl.drivers.common.robot_tables import UR5E
from labctl.drivers.ur.emulator.body import IDLE, PLAYING, POWER_OFF, POWER_ON, ROBOT_ESTOP, RUNNING, Body
from labctl.drivers.ur.emulator.script import DONE, READY, ControlScript, Registers, ScriptEnded

DT = 0.002


class Bench:
    def __init__(self) -> None:
        self.body, self.registers = Body(UR5E, DT), Registers()
        self.body.runtime = PLAYING
        self.watch: list[float] = []
        self.script = ControlScript("", self.body, self.registers, self.watch.append)

    def ask(self, command: int, *values: float, flag: int = 0) -> None:
        self.registers.ints_in[:2] = [command, flag]
        self.registers.doubles_in[: len(values)] = values

    def run(self, seconds: float = DT) -> int:
        for _ in range(round(seconds / DT)):
            self.script.cycle()
            self.body.cycle()
        return self.registers.ints_out[0]


@pytest.fixture
def bench() -> Bench:
    return Bench()


def test_a_move_is_done_when_the_arm_is_there_and_ready_when_the_command_is_taken_back(bench: Bench) -> None:
    assert bench.registers.ints_out[0] == READY
    goal = UR5E.home + 0.2
    bench.ask(1, *goal, 1.0, 2.0)
    assert bench.run(0.1) == READY, "not done yet"
    assert bench.run(1.0) == DONE and np.abs(bench.body.q - goal).max() < 1e-6
    assert bench.run(0.1) == DONE, "latched until the register returns to 0"
    bench.ask(0)
    assert bench.run() == READY


def test_a_move_keeps_its_speed_and_acceleration(bench: Bench) -> None:
    bench.ask(1, *(UR5E.home + 0.5), 0.8, 2.0)
    path = [bench.body.q.copy()]
    while bench.registers.ints_out[0] != DONE:
        bench.run()
        path.append(bench.body.q.copy())
    speed = np.diff(np.array(path)[:, 0]) / DT
    assert speed.max() <= 0.8 + 1e-9 and np.diff(speed).max() / DT <= 2.0 * 1.05


def test_servo_commands_answer_ready_each_cycle_and_the_arm_arrives(bench: Bench) -> None:
    goal = UR5E.home + 0.1
    bench.ask(11, *goal, 0.0, 0.0, 0.002, 0.1, 300.0)
    assert bench.run() == READY
    bench.run(1.5)
    assert np.abs(bench.body.q - goal).max() < 1e-4
    bench.ask(16, 5.0)
    assert bench.run(0.1) == DONE and not bench.body.qd.any()


def test_an_asynchronous_move_runs_in_the_progress_word(bench: Bench) -> None:
    bench.ask(1, *(UR5E.home + 0.2), 1.0, 2.0, flag=1)
    assert bench.run() == DONE
    assert bench.registers.ints_out[2] & 1 << 15
    bench.run(1.0)
    assert not bench.registers.ints_out[2] & 1 << 15


@pytest.mark.parametrize(("command", "says"), [(53, "command 53 is not emulated"), (255, "")])
def test_an_unknown_command_ends_the_program_with_words_and_a_stop_without(
    bench: Bench, command: int, says: str
) -> None:
    bench.ask(command)
    with pytest.raises(ScriptEnded) as caught:
        bench.run()
    assert str(caught.value) == says


def test_a_pose_out_of_reach_ends_the_program(bench: Bench) -> None:
    bench.ask(24, 2.0, 0.0, 0.3, np.pi, 0.0, 0.0)
    with pytest.raises(ScriptEnded, match="no solution"):
        bench.run()


def test_the_watchdog_gets_its_frequency(bench: Bench) -> None:
    bench.ask(35, 4.0)
    bench.run()
    assert bench.watch == [4.0]


def test_a_protective_stop_slows_the_arm_down_and_holds_it(bench: Bench) -> None:
    bench.ask(1, *(UR5E.home + 0.5), 1.0, 4.0)
    bench.run(0.25)
    assert np.abs(bench.body.qd).max() > 0.5
    bench.body.protective_stop()
    for _ in range(200):
        bench.body.cycle()
    stood = bench.body.q.copy()
    bench.body.cycle()
    assert not bench.body.qd.any() and (bench.body.q == stood).all()


def test_power_goes_through_its_modes_and_asking_again_does_not_begin_anew() -> None:
    body = Body(UR5E, DT)
    body.power_off()
    body.power(POWER_ON, IDLE)
    seen = []
    for i in range(1500):
        if i % 100 == 0:
            body.power(POWER_ON, IDLE, RUNNING)
        body.cycle()
        seen.append(body.robot_mode)
    assert list(dict.fromkeys(seen)) == [POWER_OFF, POWER_ON, IDLE, RUNNING]


def test_an_emergency_stop_on_the_way_up_leaves_the_robot_off() -> None:
    """It went on to RUNNING with the button pressed."""
    body = Body(UR5E, DT)
    body.power_off()
    body.power(POWER_ON, IDLE, RUNNING)
    body.cycle()
    body.emergency_stop()
    for _ in range(1500):
        body.cycle()
    assert (body.robot_mode, body.safety_mode) == (POWER_OFF, ROBOT_ESTOP)


@pytest.mark.parametrize(("slider", "scaling"), [(0.5, 1.0), (1.0, 0.5), (0.5, 0.5), (0.0, 1.0)])
def test_speed_slider_and_safety_limits_slow_every_motion_by_their_product(slider: float, scaling: float) -> None:
    """ur_robot_driver's hardware interface: speed_scaling_combined = speed_scaling * target_speed_fraction."""
    goal = UR5E.home + 0.4
    for command in ((1, *goal, 0.8, 4.0), (11, *goal, 0.0, 0.0, 0.002, 0.1, 300.0)):
        went = []
        for slowed in (False, True):
            bench = Bench()
            if slowed:
                bench.body.slider, bench.body.scaling = slider, scaling
            bench.ask(*command)
            path = []
            for _ in range(100):
                before = bench.body.q.copy()
                bench.run()
                path.append(bench.body.q - UR5E.home)
                assert np.allclose(bench.body.qd, (bench.body.q - before) / DT, atol=1e-9), "the measured speed"
            went.append(np.array(path)[:, 0])
        share = slider * scaling
        at = np.arange(1, 101) * share - 1
        expected = np.interp(at, np.arange(-1, 100), np.append(0.0, went[0]))
        assert np.abs(went[1] - expected).max() < 2e-3
