"""One campaign on each emulated controller, in real time, in which everything happens: somebody stops the robot, a
person takes it over, a process is killed, another stands still. The campaign goes on, and its record says what was.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from signal import SIGCONT, SIGKILL, SIGSTOP

import numpy as np
import pytest
from support.robots.arm_states import recorded, rest_after_s
from support.robots.emulators import NAMES, Emulator
from support.robots.virtual_hand import CLUTCH, Fingers
from support.runs.campaigns import make_campaign, policy
from support.runs.live_campaign import CLOCK, children, end_of, of_kind, running, wait_for

from labctl.clock import MILLISECOND
from labctl.core.events import Kind
from labctl.runtime.attach import Attachment
from labctl.store.verifying.verify import verify_campaign

HAND = "support.robots.virtual_hand:build"
pytestmark = pytest.mark.real_time

HELD_S = 1.0  # of robot time, in which it is led: an emulated FR3's goes on only as its client is run
HALTED_NS = 600 * MILLISECOND  # twice the lease
AT_REST_S = 2.0  # of robot time: the lease, the stale target or the robot's own watch, and the braking


# The UR5 is the UR5e's emulator with other dimensions (tests/emulators/test_ur_kinds.py); behind ROS 2 it is the same
# robot once more.
CELLS = [
    pytest.param("emulated_fr3", marks=pytest.mark.busy),
    pytest.param("emulated_ur5e", marks=pytest.mark.busy),
    pytest.param("emulated_ros2", marks=[pytest.mark.busy, pytest.mark.thorough]),
]


@pytest.fixture(params=CELLS)
def emulator(request: pytest.FixtureRequest) -> Iterator[Emulator]:
    made = Emulator(NAMES[request.param])
    made.cell = request.param
    yield made
    made.end()


def test_a_stop_a_take_over_a_killed_and_a_halted_process_cost_one_episode_each_and_are_told(
    emulator: Emulator, tmp_path: Path
) -> None:
    device = f'[teleop]\ndevice = "{HAND}"\n[teleop.options]\nsocket = "{tmp_path / "hand.sock"}"\n'
    folder = make_campaign(
        tmp_path,
        [policy("policy-a", skill="swift"), policy("policy-b", skill="swift")],
        base=emulator.cell,
        cell={**emulator.placed(emulator.cell), "[video]": f"{device}[video]"},
        protocol={'camera_lost = "mark"': 'camera_lost = "mark"\ntakeover = "allowed"'},
        durable=True,
        live=True,
        blocks=3,
        items=8,
        budget=1.0,
    ).folder
    went, ended = [], []

    def next_go() -> None:
        wait_for("a go", lambda: len(of_kind(folder, Kind.GO)) > len(went))
        went.append(of_kind(folder, Kind.GO)[-1])

    def next_end() -> None:
        wait_for("an end", lambda: len(of_kind(folder, Kind.EPISODE_ENDED)) > len(ended))
        ended.append(of_kind(folder, Kind.EPISODE_ENDED)[-1])
        wait_for("the robot at rest", emulator.still)

    with running(folder, tmp_path / "run.log") as run, closing(Fingers(tmp_path / "hand.sock")) as hand:
        next_go()
        emulator.until_moving()
        with closing(Attachment(folder)) as console:
            stopped_ns = CLOCK.now_ns()
            assert console.stop_robot()
            console.command("stop", who="ann", role="operator")
            next_end()
        next_go()
        assert hand.press(CLUTCH) and hand.push(a0=1.0)
        wait_for("the grip", lambda: of_kind(folder, Kind.INTERVENTION_BEGAN))
        held_s = emulator.stats()["robot_time_s"]
        wait_for("the hand's way", lambda: emulator.stats()["robot_time_s"] > held_s + HELD_S)
        assert hand.press(up=(CLUTCH,))
        wait_for("the release", lambda: of_kind(folder, Kind.INTERVENTION_ENDED))
        next_end()
        next_go()
        emulator.until_moving()
        killed_ns = CLOCK.now_ns()
        os.kill(children(run.pid)["controller"], SIGKILL)
        next_end()
        next_go()
        emulator.until_moving()
        os.kill(run.pid, SIGSTOP)
        halted_ns = CLOCK.now_ns()
        CLOCK.sleep_until(halted_ns + HALTED_NS)
        os.kill(run.pid, SIGCONT)
        next_end()
        wait_for("the last recording", lambda: len(of_kind(folder, Kind.RECORDING_SEALED)) == len(ended))
        run.terminate()
        end_of(run)

    log = (tmp_path / "run.log").read_text()
    assert [end.body["reason"] for end in ended] == ["safety_stop", "budget", "controller_lost", "lease_lapsed"], log
    assert [end.episode for end in ended] == [go.episode for go in went], "one episode each"
    assert rest_after_s(folder, ended[0].episode, stopped_ns) < AT_REST_S
    assert rest_after_s(folder, ended[2].episode, killed_ns) < AT_REST_S
    assert rest_after_s(folder, ended[3].episode, halted_ns) < AT_REST_S
    raised = [hold.body["code"] for hold in of_kind(folder, Kind.HOLD_RAISED)]
    assert "operator_stop" in raised and raised[-1] == "lease_lapsed", "a person looks before it moves again"
    (begun,), (over,) = (of_kind(folder, kind) for kind in (Kind.INTERVENTION_BEGAN, Kind.INTERVENTION_ENDED))
    assert begun.episode == went[1].episode
    assert (begun.body["kind"], begun.body["by"], over.body["kind"]) == ("take_over", "device", "take_over")
    t_ns, state = recorded(folder, begun.episode, "arm/state")
    driven = (t_ns > begun.body["t_ns"]) & (t_ns < over.body["t_ns"])
    tool = np.column_stack([state[f"tcp.{axis}"] for axis in "xyz"])[driven]
    assert np.linalg.norm(tool[-1] - tool[0]) > 0.02, "the hand moved the tool"
    asked_ns = recorded(folder, begun.episode, "policy")[1]["request_ns"]
    assert not ((asked_ns > begun.body["t_ns"]) & (asked_ns < over.body["t_ns"])).any(), "the policy was not asked"
    assert verify_campaign(folder).problems == []
