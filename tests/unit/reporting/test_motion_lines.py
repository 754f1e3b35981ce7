"""What an arm got of the motion it asked for, from what was recorded: steps of a policy and paths alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labctl.clock import SECOND
from labctl.errors import BrokenRecord
from labctl.nodes.policy_stream import POLICY
from labctl.reporting.times.motion_lines import _asked, device_lines, device_said, motion_lines, moved_in
from labctl.streams import StreamSpec

STEP_NS = SECOND // 10
STATE, ACTION = ("q.a", "q.b", "dq.a"), ("requested.a", "requested.b", "requested.gripper")


class Store:
    """An episode `e` in which each action asks for `asked` rad of joint a, of which `share` is gone at its end."""

    def __init__(self, asked: float, share: float, *, broken: bool = False, unit: str = "") -> None:
        self.broken, self.unit = broken, unit
        n = 20
        t_ns = SECOND + np.arange(n * 10 + 1, dtype=np.int64) * (STEP_NS // 10)
        went = asked * share * np.arange(n * 10 + 1) / 10
        begun = went[(np.arange(n * 10 + 1) // 10) * 10]
        wanted = np.column_stack([begun + asked, np.zeros(len(begun)), np.full(len(begun), 0.08)])
        wanted[3, :2] = np.nan  # of a stop that nobody asked for
        question = np.zeros((1, len(POLICY.columns)), np.int64)
        question[0, [4, 5, 7]] = n, STEP_NS, SECOND
        more = np.column_stack([np.linspace(0.9, 1.0, len(went)), went])
        self.tables = {
            "arm/state": (STATE, t_ns, np.column_stack([went, np.zeros((len(went), 2))])),
            "arm/action": (ACTION, t_ns, wanted),
            "policy": (POLICY.columns, np.array([SECOND]), question),
            "arm/device": (("control_command_success_rate", "tau_ext.a"), t_ns, more),
        }

    def streams(self, episode: str) -> list[Any]:
        unit = {"arm/state": self.unit}
        return [StreamSpec(name, tuple(table[0]), unit.get(name, ""), 100.0) for name, table in self.tables.items()]

    def read(self, episode: str, name: str) -> tuple[np.ndarray, np.ndarray]:
        if self.broken:
            raise BrokenRecord("a chunk does not match its digest")
        return self.tables[name][1:]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_share_of_each_action_that_is_gone_at_its_end(share: float) -> None:
    lines = motion_lines({"e": moved_in(Store(0.2, share), "e")}, {"e": "p"}, ["p", "q"])
    assert lines == {
        "p:": f"{share:.2f} of the way an action asks for is covered when it ends, {10 * share:.1f} rad/s for "
        "each radian it asks for"
    }


def test_actions_that_ask_for_nothing_say_so_and_a_damaged_recording_says_nothing() -> None:
    lines = motion_lines({"e": moved_in(Store(0.001, 1.0), "e")}, {"e": "p"}, ["p"])
    assert lines == {"p:": "no action asked for as much as a hundredth of a radian"}
    broken: Any = Store(0.2, 1.0, broken=True)
    assert (
        motion_lines({"e": moved_in(broken, "e")}, {"e": "p"}, ["p"]) == {} == device_lines([device_said(broken, "e")])
    )


def test_what_the_controller_said_is_summed_up_column_by_column() -> None:
    found = device_lines([device_said(Store(0.2, 0.5), "e")])
    assert found["control_command_success_rate:"] == "0.95 in the median, from 0.9 to 1"
    assert found["tau_ext.a:"] == "1 in the median, from 0 to 2"


def test_episodes_of_an_arm_are_summed_up_as_if_all_actions_were_of_one() -> None:
    """20 actions of 0.2 rad of which half is gone, and 20 of 0.1 rad that are gone whole: least squares through all of
    them is (20 x 0.2 x 0.1 + 20 x 0.1 x 0.1) / (20 x 0.2^2 + 20 x 0.1^2) = 0.6.
    """
    found = {"e1": moved_in(Store(0.2, 0.5), "e1"), "e2": moved_in(Store(0.1, 1.0), "e2")}
    (line,) = motion_lines(found, {"e1": "p", "e2": "p"}, ["p"]).values()
    assert line.startswith("0.60 of the way") and "6.0 rad/s" in line


def on_a_rail(asked_m: float, share_m: float) -> Store:
    """As `Store` with 0.2 rad of which half is gone, its joint b a rail in m that is asked for `asked_m`, of which
    `share_m` is gone.
    """
    store, rail = Store(0.2, 0.5, unit="rad m rad/s"), Store(asked_m, share_m)
    for name, column in (("arm/state", 0), ("arm/action", 0)):
        store.tables[name][2][:, 1] = rail.tables[name][2][:, column]
    return store


def test_metres_of_a_rail_and_radians_of_joints_are_never_in_one_sum() -> None:
    """Half of 0.2 rad and all of 0.3 m: in one sum it would be (0.2 x 0.1 + 0.3 x 0.3) / (0.2^2 + 0.3^2) = 0.85."""
    (line,) = motion_lines({"e": moved_in(on_a_rail(0.3, 1.0), "e")}, {"e": "p"}, ["p"]).values()
    assert line == (
        "rad: 0.50 of the way an action asks for is covered when it ends, 5.0 rad/s for each radian it asks for; "
        "m: 1.00 of the way an action asks for is covered when it ends, 10.0 m/s for each metre it asks for"
    )


def test_a_rail_that_is_asked_for_nothing_says_so_beside_its_joints() -> None:
    (line,) = motion_lines({"e": moved_in(on_a_rail(0.001, 1.0), "e")}, {"e": "p"}, ["p"]).values()
    assert line.endswith("; m: no action asked for as much as 5 mm") and line.startswith("rad: 0.50 of the way")


def test_actions_of_several_questions_are_those_of_each_in_turn() -> None:
    """Questions answered by 5, none, and 7 actions of different lengths: what was asked, and had, of each action by
    itself, worked out one by one.
    """
    store = Store(0.2, 0.5)
    columns, _, question = store.tables["policy"]
    questions = np.repeat(question, 3, axis=0)
    questions[:, [4, 5, 7]] = [[5, STEP_NS, SECOND], [0, STEP_NS, -1], [7, 2 * STEP_NS, SECOND + 6 * STEP_NS]]
    store.tables["policy"] = (columns, np.full(3, SECOND), questions)
    (_, t_ns, state), (_, at_ns, wanted) = store.tables["arm/state"], store.tables["arm/action"]
    known = np.isfinite(wanted[:, :2]).all(axis=1)
    at_ns, wanted, one_by_one = at_ns[known], wanted[known][:, :2], []
    for count, span, first in [(5, STEP_NS, SECOND), (7, 2 * STEP_NS, SECOND + 6 * STEP_NS)]:
        for number in range(count):
            begins, ends = first + number * span, first + (number + 1) * span
            here, there = np.flatnonzero(t_ns == begins)[0], np.flatnonzero(t_ns == ends)[0]
            asked = wanted[np.flatnonzero(at_ns < ends)[-1]] - state[here, :2]
            one_by_one += [
                [a, h, span / SECOND] for a, h in zip(asked, state[there, :2] - state[here, :2], strict=True)
            ]
    assert np.array_equal(_asked(store, "e")["rad"], np.array(one_by_one))
