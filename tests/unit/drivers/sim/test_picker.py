"""Simulated controllers in a closed loop with the simulated arms: what skill means, and what must not matter."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given as given_by
from hypothesis import settings
from hypothesis import strategies as st

from labctl.devices import Observation, load
from labctl.errors import DeviceLost, DeviceRefused, InputError


@pytest.fixture(scope="module")
def fr3(given):
    return load("sim_fr3", {}, **given)


def _policy(given, **options):
    return load("sim_policy", options, **given)


@pytest.mark.parametrize("arm", ["fr3", "ur5"])
@pytest.mark.parametrize("thing", ["wooden spoons", "batteries"])
def test_a_person_moves_every_item_in_about_ten_seconds_each(rig, given, given_ur5, arm, thing):
    robot = load("sim_fr3", {}, **given) if arm == "fr3" else load("sim_ur5", {}, **given_ur5)
    run = rig.episode(robot, load("sim_person", {}, **given), seed=2, thing=thing)
    assert (run.reason, len(run.of("success"))) == ("all_done", 4)
    assert 6.0 < run.end_s / 4 < 14.0


@pytest.mark.parametrize("arm", ["fr3", "ur5"])
def test_a_swift_policy_moves_items_on_either_arm(rig, given, given_ur5, arm):
    robot = load("sim_fr3", {}, **given) if arm == "fr3" else load("sim_ur5", {}, **given_ur5)
    moved = [len(rig.episode(robot, _policy(given, skill="swift"), seed=seed).of("success")) for seed in range(3)]
    assert sum(moved) >= 8


@pytest.mark.parametrize("name", ["sim_policy", "sim_person"])
def test_a_robot_that_tells_of_no_items_is_refused_before_anything_moves(given, name):
    seen = Observation(0, {"q": np.zeros(7), "tcp": np.zeros(7), "gripper": np.array([0.08])})
    with pytest.raises(DeviceRefused, match="this cell's robot tells of none"):
        load(name, {}, **given).warm(seen)


@pytest.mark.thorough
def test_skills_differ_visibly(rig, given, fr3):
    seconds = {}
    for skill in ("swift", "steady", "clumsy"):
        runs = [rig.episode(fr3, _policy(given, skill=skill), seed=seed) for seed in range(5)]
        seconds[skill] = sum(run.end_s for run in runs) / max(1, sum(len(run.of("success")) for run in runs))
    assert seconds["swift"] * 1.25 < seconds["steady"]
    assert seconds["steady"] * 1.25 < seconds["clumsy"]


@settings(max_examples=8, deadline=None)
@given_by(seed=st.integers(0, 10**6), skill=st.sampled_from(["swift", "clumsy", "slow"]))
def test_items_are_conserved_and_each_is_reported_once(rig, given, fr3, seed, skill):
    run = rig.episode(fr3, _policy(given, skill=skill), seed=seed, budget_s=60.0, keep=True)
    for seen in run.ticks:
        visible, moved, lost, held = seen["items"][:, 4:].T
        in_the_air = (visible == 0) & (lost == 0)
        resting = (visible == 1) & (moved == 0) & (held == 0)
        assert (moved + lost + held + in_the_air + resting == 1).all()
        assert held.sum() <= 1
    reported = [event.body["item"] for event in run.events if event.kind in ("success", "lost")]
    assert len(reported) == len(set(reported))
    last = run.ticks[-1]["items"]
    assert set(reported) == {i for i in range(4) if last[i, 5] or last[i, 6]}


def test_events_come_in_order_and_within_their_tick(rig, given, fr3):
    run = rig.episode(fr3, load("sim_person", {}, **given), seed=5)
    times = [event.t_ns for event in run.events]
    assert times == sorted(times) and times[-1] <= run.end_s * 1e9


def test_name_and_start_up_do_not_change_behaviour(rig, given):
    """Blinding rests on it: two arms of equal options but for endpoint and load_s leave the same record."""
    a = _policy(given, skill="steady", endpoint="sim://a", load_s=0.0)
    b = _policy(given, skill="steady", endpoint="sim://b", load_s=4.0)
    one, two = (
        rig.episode(load("sim_fr3", {}, **given), policy, seed=3, budget_s=40.0, keep=True) for policy in (a, b)
    )
    assert (a.load_s, b.load_s) == (0.0, 4.0)
    assert one.events == two.events
    for left, right in zip(one.batches, two.batches, strict=True):
        assert left.stream == right.stream and left.values.tobytes() == right.values.tobytes()


def test_an_episode_depends_on_its_seed_and_not_on_the_one_before(rig, given, fr3):
    policy = _policy(given, skill="clumsy")
    first = rig.episode(fr3, policy, seed=4, budget_s=30.0, keep=True)
    rig.episode(fr3, policy, seed=5, budget_s=10.0)
    again = rig.episode(fr3, policy, seed=4, budget_s=30.0, keep=True)
    other = rig.episode(fr3, policy, seed=6, budget_s=30.0, keep=True)
    q = [np.concatenate([sent.q for sent in run.sent]) for run in (first, again, other)]
    assert q[0].tobytes() == q[1].tobytes() and q[0].tobytes() != q[2].tobytes()


def test_latency_delays_the_answer_and_nothing_else(given, fr3):
    fr3.stage({"object": "towels", "layout": "layout-1", "items": 4}, 1, 0)
    seen = Observation(0, fr3.observe())
    quick, late = _policy(given, latency_s=0.0), _policy(given, latency_s=0.5)
    for policy in (quick, late):
        policy.reset(1)
    a, b = quick.infer(seen), late.infer(seen)
    assert a.delay_s == 0.0 and 0.3 < b.delay_s < 0.8
    assert (a.values == b.values).all()


def test_a_controller_with_nothing_left_to_do_says_so(given, fr3):
    fr3.stage({"object": "towels", "layout": "layout-1", "items": 2}, 1, 0)
    arrays = fr3.observe()
    arrays["items"] = arrays["items"].copy()
    policy = _policy(given)
    policy.reset(0)
    arrays["items"][:, 4:] = [[1, 1, 0, 0], [0, 0, 1, 0]]
    assert policy.infer(Observation(0, arrays)).done
    arrays["items"][1, 4:] = [0, 0, 0, 0]  # in the air: it may yet fall back into the source
    policy.reset(0)
    assert not policy.infer(Observation(0, arrays)).done


def test_difficulty_comes_from_the_fixture(given):
    assert load("sim_policy", {}, **given)._difficulty == (1.0, 0.8, 1.4, 1.2)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (
            {"skil": "swift"},
            "no option 'skil'; did you mean 'skill'.; known options: skill, endpoint, load_s, warm_s, latency_s",
        ),
        ({"skill": "brilliant"}, 'must be one of "swift", "steady", "halting", "clumsy", "slow", found'),
        ({"load_s": -1}, "load_s must be a number, 0 or more, found -1"),
        ({"latency_s": float("nan")}, "latency_s must be a number, 0 or more, found nan"),
        ({"crash_at": "dawn"}, 'crash_at must be one of "load", "infer"'),
    ],
)
def test_a_wrong_option_is_one_line_that_names_the_right_ones(given, options, says):
    with pytest.raises(InputError, match=says):
        load("sim_policy", options, **given)


def test_a_person_has_no_skill_to_choose(given):
    with pytest.raises(InputError, match="known options: load_s, crash_at"):
        load("sim_person", {"skill": "swift"}, **given)


def test_a_controller_told_to_crash_does_so_on_cue(given, fr3):
    with pytest.raises(DeviceLost):
        _policy(given, crash_at="load").load()
    crashing = _policy(given, crash_at="infer")
    crashing.load()
    fr3.stage({"object": "towels", "layout": "layout-1", "items": 2}, 1, 0)
    with pytest.raises(DeviceLost):
        crashing.infer(Observation(0, fr3.observe()))


def test_a_changed_instruction_makes_it_think_and_plan_anew(given, fr3):
    fr3.stage({"object": "towels", "layout": "layout-1", "items": 2}, 1, 0)
    arrays = fr3.observe()

    def standing(*told: str, **options: float) -> int:
        """How many actions of its answer to the last instruction it stands still for."""
        policy = _policy(given, skill="swift", **options)
        policy.reset(3)
        for instruction in told[:-1]:
            policy.infer(Observation(0, arrays, instruction))
        rows = policy.infer(Observation(0, arrays, told[-1])).values[:, :3]
        return int((np.abs(rows - arrays["tcp"][:3]).max(axis=1) < 1e-9).sum())

    plain = standing("Move.", adapt_s=0.4)
    assert standing("Move.", "Move the red ones.", adapt_s=0.4) == plain + 4, "0.4 s of 0.1 s each"
    assert standing("Move.", "Move the red ones.", adapt_s=0.0) == plain
    assert standing("Move.", "Move.", adapt_s=0.4) < plain, "the same one again: it goes on with its plan"
