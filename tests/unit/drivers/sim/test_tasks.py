"""The simulated cell with tasks: the instruction decides, a lid opens and closes, a weakness shows on its own axis."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.robots.task_table import BASE, BY_AXIS, GIVEN, TABLE, TRAINED, staged, told

from labctl.devices import Observation, load
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.sim.mind import Mind
from labctl.drivers.sim.plant import SimulatedPlant

NAMES = [thing.name for thing in TABLE.object]
SEEDS = range(6)
Run = Any


@pytest.fixture(scope="module")
def robot() -> Any:
    return load("sim_fr3", {}, **GIVEN)


def policy(weak: Sequence[str] = (), trained: Sequence[str] = TRAINED) -> Any:
    return load("sim_policy", {"skill": "swift", "weak": list(weak), "trained": list(trained)}, **GIVEN)


def run(rig: SimpleNamespace, robot: Any, name: str, controller: Any, seed: int, words: str | None = None) -> Run:
    return rig.episode(
        robot,
        controller,
        seed=seed,
        items=1,
        budget_s=30.0,
        keep=True,
        condition=staged(name),
        told=words or told(name),
    )


def lies_in_target(one: Run) -> list[str]:
    last = one.ticks[-1]
    return [NAMES[int(kind)] for kind, row in zip(last["kinds"], last["items"], strict=True) if row[5]]


def test_the_instruction_decides_which_of_the_things_is_put_over(rig, robot):
    for words, thing in (("Put the scissors over.", "scissors"), ("Move one spoon, please", "wooden spoons")):
        one = run(rig, robot, BASE, policy(), 1, words)
        assert lies_in_target(one) == [thing] and one.reason == "controller_done"
        assert not one.of("success"), "the thing that the condition is about lies where it was"
    one = run(rig, robot, BASE, policy(), 1)
    assert lies_in_target(one) == ["towels"] and len(one.of("success")) == 1


@pytest.mark.parametrize("axis", BY_AXIS)
def test_a_weakness_costs_success_on_its_own_axis_and_changes_nothing_elsewhere(rig, robot, axis):
    weak, strong = policy([axis]), policy()
    on_it, without, others = [], [], []
    for seed in SEEDS:
        on_it.append(bool(run(rig, robot, BY_AXIS[axis], weak, seed).of("success")))
        without.append(bool(run(rig, robot, BY_AXIS[axis], strong, seed).of("success")))
    for name in (BASE, *(BY_AXIS[other] for other in BY_AXIS if other != axis)):
        both = [run(rig, robot, name, controller, 3) for controller in (weak, strong)]
        others.append([[event.t_ns for event in one.events] for one in both])
    assert sum(without) >= 5 and sum(on_it) <= 3
    assert all(one == other for one, other in others)


def test_a_box_is_opened_filled_and_closed_and_a_device_tells_each(rig, robot):
    one = rig.episode(robot, policy(), seed=0, items=99, budget_s=60.0, condition=staged("box"), told=told("box"))
    order = ["opened", "grasped", "lifted", "placed", "closed"]
    assert [event.body["what"] for event in one.of("sensed")] == order and one.reason == "controller_done"
    times = [event.t_ns for event in one.of("sensed")]
    assert times == sorted(times) and times[0] > 3e9


def test_what_is_dropped_on_a_closed_lid_is_not_in_the_box(rig, robot):
    one = policy()
    think = one._think
    one._think = lambda arrays, *rest: think({k: v for k, v in arrays.items() if k != "lid"}, *rest)  # sees no lid
    found = rig.episode(robot, one, seed=0, items=1, budget_s=20.0, condition=staged("box"), told="", keep=True)
    assert not found.of("success") and found.of("sensed")[-1].body["what"] != "placed"
    heights = [tick["items"][0, 2] for tick in found.ticks if not tick["items"][0, 7]]
    assert max(heights) > 0.12, "it lies on the lid"


def test_a_box_is_left_open_while_what_slipped_is_still_falling(robot):
    robot.stage(staged("box"), 3, 0)
    seen, one, sees = robot.observe(), policy(), 4  # the column of what is visible
    falling, closed = seen["items"].copy(), seen["lid"][:3]
    falling[:, sees] = 0.0
    seen["lid"] = np.array([*seen["lid"][:6], 1.0, 0.0])
    one.reset(3)
    waits = one.infer(Observation(0, {**seen, "items": falling}, told("box"), {}))
    assert not waits.done and np.ptp(waits.values[:, :3], axis=0).max() == 0.0, "it stands, and asks again soon"
    assert waits.execute == 1
    picks = one.infer(Observation(0, seen, told("box"), {}))
    ways = np.concatenate([picks.values[:, :2], one._plan[:, :2]])
    to_item, to_lid = (np.hypot(*(ways - place[:2]).T).min() for place in (seen["items"][0], closed))
    assert to_item < 0.02 < to_lid


def test_pictures_show_each_thing_as_what_it_is_and_the_lid_where_it_is(robot):
    def seen(name: str) -> dict[str, Any]:
        robot.stage(staged(name), 3, 0)
        return robot.observe()

    def picture(observation: dict[str, Any]) -> np.ndarray:
        options = {"width": 240, "height": 180, "rate_hz": 3.0, "view": "over_shoulder"}
        camera = load("sim_camera", options, **GIVEN)
        camera.connect(0)
        camera.sense(observation)
        frame = camera.grab(0)
        assert frame is not None
        return frame.image.astype(int)

    three, box = seen(BASE), seen("box")
    alike = {key: values for key, values in three.items() if key != "kinds"}
    assert (np.abs(picture(three) - picture(alike)).max(axis=2) > 40).sum() > 50, "all of one kind look otherwise"
    slid = {**box, "lid": np.array([*box["lid"][:6], 1.0, 0.0])}
    moved = np.abs(picture(box) - picture(slid)).max(axis=2) > 8
    assert moved.mean() > 0.01, "the lid is where it was slid to"


def test_an_emulated_cell_is_told_of_kinds_and_lid_as_a_simulated_one_is():
    plant = SimulatedPlant(FR3, TABLE, 0.01, now_ns=0)
    plant.stage(staged(BASE), 3)
    scene = plant.sense()["scene"]
    assert scene["kinds"] == [0.0, 1.0, 2.0] and "lid" not in scene
    plant.stage(staged("box"), 3)
    scene = plant.sense()["scene"]
    assert scene["lid"] == [0.48, -0.3, 0.15, 0.0, -0.16, 0.0, 0.0, 0.0] and "kinds" not in scene


def test_a_trial_of_no_task_reports_what_it_always_did(rig, given):
    one = rig.episode(load("sim_fr3", {}, **given), load("sim_person", {}, **given), seed=2)
    assert {event.kind for event in one.events} == {"success"}


def test_words_that_mean_a_thing_are_known_to_all_but_who_is_weak_at_language():
    kinds = np.array([0, 1, 2])
    strong, weak = Mind(NAMES), Mind(NAMES, ["S-LANG"])
    guesses = set()
    for seed in range(20):
        strong.reset(seed)
        weak.reset(seed)
        assert strong.wanted("The cloth belongs over there.", 0, kinds) == 0
        assert strong.wanted("Cut it with the shears.", 0, kinds) == 2
        assert weak.wanted("Put the towel over.", 0, kinds) == 0, "the name it knows"
        guesses.add(weak.wanted("The cloth belongs over there.", 0, kinds))
    assert guesses == {0, 1, 2}


@pytest.mark.parametrize(
    ("names", "words", "meant"),
    [
        (("blue_block", "red_block"), "Put the red_block over.", "red_block"),
        (("blue_block", "red_block"), "Put the red block over.", "red_block"),
        (("spoons", "tea-towels"), "Put one of the tea-towels over.", "tea-towels"),
        (("cube1", "cube2"), "Put cube2 over.", "cube2"),
        (("battery 1", "battery 2", "towels"), "Put the battery 2 over.", "battery 2"),
        (("cube 2", "spoons"), "Put 2 spoons over.", "spoons"),
        (("Gabel", "Löffel"), "Lege den LÖFFEL hinüber.", "Löffel"),
        (("red block", "blue block"), "Move the block that is blue.", "blue block"),
        (("red block", "block"), "Move the block.", "block"),
        (("red block", "block"), "Move the block that is red.", "red block"),
        (("wooden spoons", "towels"), "Put the towel onto the wooden spoons.", "towels"),
        (("tea towels", "spoons"), "The cloth belongs over there.", "tea towels"),
    ],
)
def test_a_name_of_several_words_is_known_however_it_is_written(names: Sequence[str], words: str, meant: str) -> None:
    mind, kinds = Mind(names), np.arange(len(names))
    for seed in SEEDS:
        mind.reset(seed)
        assert names[mind.wanted(words, 0, kinds)] == meant
