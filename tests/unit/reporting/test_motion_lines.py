"""What an arm got of the motion it asked for, from what was recorded: steps of a policy and paths alike."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from labctl.clock import SECOND
from labctl.errors import BrokenRecord
from labctl.nodes.policy_stream import POLICY
from labctl.reporting.times.motion_lines import device_lines, motion_lines
from labctl.streams import StreamSpec

STEP_NS = SECOND // 10
STATE, ACTION = ("q.a", "q.b", "dq.a"), ("requested.a", "requested.b", "requested.gripper")


class Store:
    """An episode `e` in which each action asks for `asked` rad of joint a, of which `share` is gone at its end."""

    def __init__(self, asked: float, share: float, *, broken: bool = False) -> None:
        self.broken = broken
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
        return [StreamSpec(name, tuple(table[0]), "", 100.0) for name, table in self.tables.items()]

    def read(self, episode: str, name: str) -> tuple[np.ndarray, np.ndarray]:
        if self.broken:
            raise BrokenRecord("a chunk does not match its digest")
        return self.tables[name][1:]


@pytest.mark.parametrize("share", [0.5, 1.0])
def test_the_share_of_each_action_that_is_gone_at_its_end(share: float) -> None:
    lines = motion_lines(Store(0.2, share), {"e": "p"}, ["p", "q"])
    assert lines == {
        "p:": f"{share:.2f} of the way an action asks for is covered when it ends, {10 * share:.1f} rad/s for "
        "each radian it asks for"
    }


def test_actions_that_ask_for_nothing_say_so_and_a_damaged_recording_says_nothing() -> None:
    lines = motion_lines(Store(0.001, 1.0), {"e": "p"}, ["p"])
    assert lines == {"p:": "no action asked for as much as a hundredth of a radian"}
    broken: Any = Store(0.2, 1.0, broken=True)
    assert motion_lines(broken, {"e": "p"}, ["p"]) == {} == device_lines(broken, ["e"])


def test_what_the_controller_said_is_summed_up_column_by_column() -> None:
    found = device_lines(Store(0.2, 0.5), ["e"])
    assert found["control_command_success_rate:"] == "0.95 in the median, from 0.9 to 1"
    assert found["tau_ext.a:"] == "1 in the median, from 0 to 2"
