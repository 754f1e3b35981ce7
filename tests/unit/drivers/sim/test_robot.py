"""The simulated robot and its scene: what it reports, when it stops, and that no item is ever lost count of."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st

from labctl.devices import Setpoints, load
from labctl.drivers.common import kinematics
from labctl.drivers.sim.world import RELEASE_M
from labctl.errors import DeviceRefused, InputError
from labctl.testing.given import FIXTURE

SCENE = {"object": "batteries", "layout": "layout-1", "items": 4}
PERIOD_NS = 10_000_000


@pytest.fixture
def robot(given):
    arm = load("sim_fr3", {}, **given)
    arm.stage(SCENE, 1, 0)
    return arm


class Hand:
    """Drives a robot through tool poses, keeping every setpoint pair it was answered."""

    def __init__(self, robot):
        self.robot, self.t_ns, self.opening = robot, 0, 0.08
        self.limited, self.sent, self.events = [], [], []

    def setpoints(self, q: np.ndarray) -> None:
        for row in np.array_split(q, max(1, len(q) // 10)):
            t_ns = self.t_ns + PERIOD_NS * np.arange(1, len(row) + 1)
            self.t_ns = int(t_ns[-1])
            actions = self.robot.follow(Setpoints(t_ns, row, np.full(len(row), self.opening)))
            self.limited.append(actions.limited)
            self.sent.append(actions.sent)
            self.events += self.robot.events()

    def go(self, x: float, y: float, z: float, yaw: float = 0.0, seconds: float = 2.0) -> None:
        start = self.robot.observe()["tcp"]
        s = np.linspace(0, 1, round(seconds * 100))[:, None]
        goal = np.array([x, y, z, np.cos(yaw / 2), np.sin(yaw / 2), 0, 0])
        path = start + s**3 * (10 - 15 * s + 6 * s * s) * (goal - start)
        path[:, 3:] /= np.linalg.norm(path[:, 3:], axis=1, keepdims=True)
        self.setpoints(self.robot.to_joints(path, self.robot.observe()["q"]))
        self.wait(0.3)

    def grip(self, opening: float) -> None:
        self.opening = opening
        self.wait(1.0)

    def wait(self, seconds: float) -> None:
        self.setpoints(np.repeat(self.robot.observe()["q"][None, :], round(seconds * 100), axis=0))

    def pick(self, index: int = 0) -> None:
        x, y, z, yaw = self.robot.observe()["items"][index, :4]
        self.go(x, y, z + 0.12, yaw)
        self.go(x, y, z, yaw)
        self.grip(0.0)
        self.go(x, y, 0.25, yaw)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.events]


@pytest.fixture
def hand(robot):
    return Hand(robot)


def test_an_item_gripped_carried_and_let_go_over_the_target_is_a_success_when_it_lands(hand):
    hand.pick()
    assert hand.robot.observe()["items"][0, 7] == 1.0
    target = hand.robot.observe()["target_tote"]
    hand.go(target[0], target[1], 0.2)
    before_ns = hand.t_ns
    hand.grip(0.08)
    assert hand.kinds() == ["success"]
    landed = hand.events[0]
    # fingers open 2 mm beyond the width at 0.1 m/s, then a free fall of 0.193 m takes sqrt(2 h / g) = 0.198 s
    assert (landed.t_ns - before_ns) / 1e9 == pytest.approx(RELEASE_M / 0.1 + 0.198, abs=0.03)
    assert hand.robot.observe()["items"][0, 4:].tolist() == [1.0, 1.0, 0.0, 0.0]


def test_an_item_let_go_between_the_totes_is_lost_and_says_so_once(hand):
    hand.pick()
    hand.go(0.48, 0.0, 0.2)
    hand.grip(0.08)
    hand.wait(2.0)
    assert hand.kinds() == ["lost"]
    assert hand.events[0].body["cause"] == "dropped_outside"
    assert hand.robot.observe()["items"][0, 4:].tolist() == [0.0, 0.0, 1.0, 0.0]


def test_an_item_let_go_over_the_source_is_back_in_play(hand):
    hand.pick()
    source = hand.robot.observe()["source_tote"]
    hand.go(source[0], source[1], 0.2)
    hand.grip(0.08)
    assert hand.kinds() == []
    assert hand.robot.observe()["items"][0, 4:].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_fingers_that_close_beside_an_item_close_to_nothing(hand):
    x, y, z, yaw = hand.robot.observe()["items"][0, :4]
    hand.go(x + 0.03, y, z + 0.12, yaw)
    hand.go(x + 0.03, y, z, yaw)
    hand.grip(0.0)
    assert hand.robot.observe()["gripper"][0] == 0.0
    assert not hand.robot.observe()["items"][:, 7].any()


def test_fingers_move_no_faster_than_they_can_and_stop_at_the_item(hand):
    hand.pick()
    openings = np.concatenate([sent[:, -1] for sent in hand.sent])
    assert np.abs(np.diff(openings)).max() <= 0.1 * 0.01 + 1e-12
    assert openings[-1] == pytest.approx(0.014)  # grasp_width_m of the batteries in two_totes.toml


def test_hitting_a_tote_wall_stops_the_arm_until_a_person_recovers_it(hand):
    source = hand.robot.observe()["source_tote"]
    hand.go(source[0], source[1], 0.06)
    hand.go(source[0], 0.0, 0.06)
    assert hand.kinds() == ["safety_stop"]
    assert "wall of tote 'right'" in hand.events[0].body["reason"]
    assert hand.robot.status().mode == "safety_stop"
    stood = hand.robot.observe()["q"]
    hand.go(0.45, 0.0, 0.3)
    assert hand.robot.status().mode == "safety_stop"
    assert (hand.robot.observe()["q"] == stood).all()
    hand.robot.recover()
    hand.go(0.45, float(hand.robot.observe()["tcp"][1]), 0.3)
    assert hand.robot.observe()["tcp"][2] == pytest.approx(0.3, abs=1e-3)


def test_a_tool_faster_than_the_safety_limit_stops_the_arm_where_limited_and_sent_part(hand):
    hand.go(0.48, 0.45, 0.3)
    hand.go(0.48, -0.45, 0.3, seconds=0.8)
    assert hand.kinds() == ["safety_stop"]
    assert "faster" in hand.events[0].body["reason"]
    parted = [i for i, (a, b) in enumerate(zip(hand.limited, hand.sent, strict=True)) if (a != b).any()]
    assert parted
    speed = np.abs(np.diff(np.concatenate([sent[:, :-1] for sent in hand.sent]), n=2, axis=0)).max() / 0.01**2
    assert speed <= 8.0 + 1e-6  # the cell's acceleration limit holds in the stop too


def test_stop_brakes_within_the_acceleration_limit_and_stays(hand):
    q = hand.robot.observe()["q"] + np.linspace(0, 0.15, 30)[:, None] * np.eye(7)[0]
    hand.setpoints(q)
    threading.Thread(target=hand.robot.stop).start()
    hand.robot.stop()
    assert hand.robot.status().mode == "stopped"
    hand.setpoints(np.repeat(q[-1:] + 1.0, 100, axis=0))
    sent = np.concatenate([rows[:, :-1] for rows in hand.sent])
    assert np.abs(np.diff(sent, n=2, axis=0)).max() / 0.01**2 <= 8.0 + 1e-9
    assert (sent[-1] == sent[-50]).all()


def test_an_arm_still_braking_refuses_to_recover(hand):
    hand.setpoints(hand.robot.observe()["q"] + np.linspace(0, 0.15, 30)[:, None] * np.eye(7)[0])
    hand.robot.stop()
    with pytest.raises(DeviceRefused, match="still moving"):
        hand.robot.recover()
    hand.wait(1.0)
    hand.robot.recover()
    assert hand.robot.status().mode == "idle"


def test_an_arm_without_setpoints_brakes_by_itself_and_the_record_shows_it(hand):
    hand.setpoints(hand.robot.observe()["q"] + np.linspace(0, 0.15, 30)[:, None] * np.eye(7)[0])
    state = next(batch for batch in hand.robot.drain(hand.t_ns + 10**9) if batch.stream == "arm/state")
    columns = next(spec for spec in hand.robot.streams if spec.name == "arm/state").columns
    speed = state.values[:, columns.index("dq.fr3_joint1")]
    assert speed.max() > 0.3 and speed[-1] == 0.0
    assert np.abs(np.diff(speed)).max() / 0.01 <= 8.0 + 1e-6


def test_setpoints_for_a_time_already_passed_move_nothing(hand):
    hand.wait(0.5)
    before = hand.robot.observe()["q"]
    wanted = Setpoints(np.arange(1, 11) * PERIOD_NS, np.repeat(before[None, :] + 0.1, 10, axis=0), np.full(10, 0.08))
    actions = hand.robot.follow(wanted)
    assert (actions.sent[:, :-1] == before).all() and (actions.limited[:, :-1] == before).all()
    assert (actions.t_ns == wanted.t_ns).all()
    assert (hand.robot.observe()["q"] == before).all()


def test_state_is_sampled_at_its_rate_without_gaps_and_agrees_with_its_own_kinematics(hand):
    hand.go(0.5, 0.2, 0.3)
    first = hand.robot.drain(hand.t_ns)
    hand.go(0.4, -0.2, 0.3)
    second = hand.robot.drain(hand.t_ns)
    state = [batch for batch in (*first, *second) if batch.stream == "arm/state"]
    t_ns = np.concatenate([batch.t_ns for batch in state])
    values = np.concatenate([batch.values for batch in state])
    assert (np.diff(t_ns) == PERIOD_NS).all() and t_ns[-1] == hand.t_ns
    assert np.abs(kinematics.poses(hand.robot.robot_model.chain, values[:, :7]) - values[:, 21:28]).max() < 1e-12
    assert np.abs(values[1:, 7:14] - np.diff(values[:, :7], axis=0) * 100).max() < 1e-6


def test_the_tracker_stream_holds_what_was_observed(hand):
    hand.wait(0.1)
    hand.robot.drain(hand.t_ns)
    seen = [hand.robot.observe()["items"] for _ in range(2)]
    tracked = next(batch for batch in hand.robot.drain(hand.t_ns) if batch.stream == "tracker")
    assert tracked.values[:, 0].tolist() == [0, 1, 2, 3, 0, 1, 2, 3]
    assert (tracked.values[:, 1:] == np.concatenate(seen)).all()


def test_where_items_lie_does_not_change_by_being_looked_at(hand):
    first, second = (hand.robot.observe() for _ in range(2))
    assert (first["items"][:, :4] != second["items"][:, :4]).any(), "the tracker is noisy"
    assert (first["lying"] == second["lying"]).all()
    off = first["items"][:, :4] - first["lying"]
    assert np.abs(off[:, :3]).max() < 0.006 and np.abs(off[:, 3]).max() < 0.12, "6 sd of its 1 mm and 0.02 rad"


def test_a_target_out_of_the_box_is_answered_inside_it_and_noted_once(robot):
    pose = np.array([[0.48, 0.0, -0.2, 1, 0, 0, 0.0]])
    q = robot.to_joints(np.repeat(pose, 5, axis=0), robot.observe()["q"])
    assert kinematics.positions(robot.robot_model.chain, q)[2].min() >= 0.0
    robot.to_joints(pose, robot.observe()["q"])
    notes = robot.events()
    assert [note.kind for note in notes] == ["note"]
    assert "out of reach by 0.201 m" in notes[0].body["reason"]


@pytest.mark.parametrize("seed", [0, 7])
def test_the_same_seed_stages_the_same_scene_and_another_does_not(given, seed):
    scenes = []
    for s in (seed, seed, seed + 1):
        arm = load("sim_fr3", {}, **given)
        arm.stage(SCENE, s, 0)
        scenes.append(arm.observe()["items"])
    assert (scenes[0] == scenes[1]).all()
    assert not (scenes[0] == scenes[2]).all()


@pytest.mark.parametrize(("layout", "side"), [("layout-1", 1.0), ("layout-2", -1.0)])
def test_the_layout_says_which_tote_is_the_target(robot, layout, side):
    robot.stage({**SCENE, "layout": layout}, 1, 0)
    seen = robot.observe()
    assert np.sign(seen["target_tote"][1]) == side
    assert (np.sign(seen["items"][:, 1]) == -side).all()


@settings(max_examples=30, deadline=None)
@given_by(seed=st.integers(0, 2**63), n=st.integers(1, 12))
def test_staged_items_lie_in_the_source_tote_apart_from_each_other(given, seed, n):
    arm = load("sim_fr3", {}, **given)
    arm.stage({**SCENE, "items": n}, seed, 0)
    items = arm.world.pose
    assert all(arm.world.source.beyond(x, y) < -0.03 for x, y in items[:, :2])
    apart = np.linalg.norm(items[:, None, :2] - items[None, :, :2], axis=2) + np.eye(n)
    assert apart.min() > 0.015


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"object": "spanners"}, "no object 'spanners'; known: wooden spoons"),
        ({"layout": "x"}, "known: layout-1, layout-2"),
    ],
)
def test_a_scene_the_fixture_does_not_know_is_refused(robot, change, says):
    with pytest.raises(InputError, match=says):
        robot.stage({**SCENE, **change}, 0, 0)


def test_a_simulated_robot_takes_no_options_and_only_its_own_limits(given, given_ur5):
    with pytest.raises(InputError, match="no options, found 'speed'"):
        load("sim_fr3", {"speed": 2}, **given)
    with pytest.raises(InputError, match="list of 6 numbers"):
        load("sim_ur5", {}, **given)
    with pytest.raises(InputError, match="two totes, found 1"):
        load("sim_ur5", {}, cell=given_ur5["cell"], fixture=FIXTURE.model_copy(update={"tote": FIXTURE.tote[:1]}))
