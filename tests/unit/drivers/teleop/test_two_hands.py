"""A person at two devices leads two robots, each hand its own; one device alone is refused."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.robots.cells import cell_named, changed

from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.config.cell_schema import Cell, TeleopTable
from labctl.devices import ByHand, Observation, load
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gate import Reading, axis_map
from labctl.drivers.teleop.two_hands import TwoHands
from labctl.errors import InputError
from labctl.testing.given import FIXTURE

Q = np.linspace(-0.5, 0.5, 14)
SEEN = {"q": Q, "gripper": np.array([0.08, 0.08])}


class Hands:
    """Both hands at devices that say what `now` holds."""

    def __init__(self, *leaders: bool) -> None:
        self.clock = ManualClock(SECOND)
        self.now = [{"engaged": True, "grip": None}, {"engaged": True, "grip": None}]
        self.cell = cell_named("sim_pair")
        first, second = (self._hand(number, leader) for number, leader in enumerate(leaders))
        self.both = TwoHands(self.cell, (first, second))

    def _hand(self, number: int, leader: bool) -> Teleop:
        device = SimpleNamespace(leader=leader, quiet=False, open=None, poll=None, close=None)
        table = TeleopTable(device="stick", ramp_s=0.0)
        made = Teleop(
            device, "stick", table, axes=axis_map(table.axes), opening_m=(0.0, 0.08), clock=self.clock
        )  # fmt: skip
        still = {"joints": Q[7 * number : 7 * number + 7]} if leader else {"axes": np.zeros(6)}
        made._poller = SimpleNamespace(  # type: ignore[assignment]
            newest=lambda: Reading(self.clock.now_ns(), **{**still, **self.now[number]}), rest=lambda s: False
        )
        return made

    def asks(self, ms: int = 100):
        self.clock.sleep_until(self.clock.now_ns() + ms * MILLISECOND)
        return self.both.infer(Observation(self.clock.now_ns(), SEEN))


def test_each_stick_moves_the_tool_of_its_own_robot() -> None:
    hands = Hands(False, False)
    hands.asks()
    hands.now[1]["axes"] = np.array([1.0, 0, 0, 0, 0, 0])
    hands.asks()
    chunk = hands.asks()
    assert chunk.space == "tcp_velocity" and chunk.values.shape == (5, 12)
    assert not chunk.values[:, :6].any() and chunk.values[0, 6] == pytest.approx(0.15)
    assert chunk.gripper.shape == (5, 2)


def test_each_leader_leads_the_joints_of_its_own_robot() -> None:
    hands = Hands(True, True)
    hands.asks()
    hands.now[0]["joints"] = Q[:7] + 0.02
    hands.asks(30)
    chunk = hands.asks(30)
    assert chunk.space == "joint_position" and chunk.values.shape == (1, 14)
    assert np.abs(chunk.values[0, :7] - Q[:7]).max() > 0.005 and chunk.values[0, 7:] == pytest.approx(Q[7:])


def test_the_clock_waits_for_both_clutches_and_the_screen_says_whose_is_missing() -> None:
    hands = Hands(False, False)
    assert isinstance(hands.both, ByHand)
    hands.now[1]["engaged"] = False
    hand = hands.both.hand(Q)
    assert hand["waits"].startswith("right: ") and not hand["engaged"]
    assert hand["device"] == "stick + stick"


def test_either_hand_says_that_the_task_is_done() -> None:
    hands = Hands(False, False)
    hands.asks()
    assert not hands.asks().done
    hands.now[1]["done"] = True
    assert hands.asks().done


def test_a_leader_and_a_stick_are_refused_together() -> None:
    with pytest.raises(InputError, match="take two leaders or two sticks"):
        Hands(True, False)


def cell_with(**tables: object) -> Cell:
    return changed(cell_named("sim_pair"), tables)


def test_one_device_for_two_robots_is_refused_in_a_line_that_says_what_is_missing() -> None:
    with pytest.raises(InputError, match=r"\[teleop\] drives left alone; add \[second_teleop\]"):
        load("teleop", {}, cell=cell_with(teleop={"device": "gamepad"}), fixture=FIXTURE)
    with pytest.raises(InputError, match=r"has no \[teleop\] table"):
        load("teleop", {}, cell=cell_with(), fixture=FIXTURE)
