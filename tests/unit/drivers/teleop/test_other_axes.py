"""A device leads a rail, a vacuum and five fingers by the same gate as joints and a gripper."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from support.runs.axes import cell_of, teleop
from support.runs.campaigns import ROOT

from labctl.clock import MILLISECOND, SECOND, ManualClock
from labctl.config.cell_schema import parse_cell
from labctl.devices import Observation, declared_axes
from labctl.drivers.teleop.controller import Teleop
from labctl.drivers.teleop.gate import Reading, axis_map
from labctl.drivers.teleop.other_axes import HandGrip, other_axes

PLAIN = (ROOT / "hw_configs/sim_fr3.toml").read_text("utf-8")
Q = np.array([0.1, 0.0, -0.8, 0.0, -2.4, 0.0, 1.6, 0.8])  # the rail first


class Person:
    """A labctl teleoperation on a robot of other axes, whose device says what `reading` holds."""

    def __init__(self, driver: str, *, leader: bool = False) -> None:
        text = PLAIN
        for old, new in cell_of(driver).items():
            text = text.replace(old, new, 1)
        cell = parse_cell(text.replace("[readiness]", f"{teleop('gamepad', driver)}\n[readiness]", 1), "cell.toml")
        axes = declared_axes(cell.robot.driver, cell.robot.options)
        assert cell.teleop is not None and axes is not None
        self.clock, self.now = ManualClock(SECOND), {"axes": np.zeros(6), "grip": None, "engaged": True}
        device = SimpleNamespace(leader=leader, quiet=False, open=None, poll=None, close=None)
        self.teleop = Teleop(
            device, "stick", cell.teleop, axes=axis_map(cell.teleop.axes), opening_m=(0.0, 0.08),
            others=other_axes(cell.teleop, axes), clock=self.clock,
        )  # fmt: skip
        self.teleop._poller = SimpleNamespace(newest=self.read)  # type: ignore[assignment]

    def read(self) -> Reading:
        return Reading(self.clock.now_ns(), **self.now)

    def asks(self, q: np.ndarray, hand: np.ndarray, *, ms: int = 600, **now: object):
        """What is asked for, `ms` after the last question, with a reading that says this from then on."""
        self.clock.sleep_until(self.clock.now_ns() + ms * MILLISECOND)
        self.now |= now
        return self.teleop.infer(Observation(self.clock.now_ns(), {"q": q, "gripper": hand}))


def test_the_stick_that_the_cell_names_moves_the_rail_alone_and_the_others_the_tool() -> None:
    person = Person("sim_rail")
    person.asks(Q, np.zeros(1))
    rail = person.asks(Q, np.zeros(1), axes=np.array([0, 0, 0, 0, -1.0, 0]))
    assert rail.space == "joint_velocity" and rail.values.shape == (5, 8)
    assert rail.values[0] == pytest.approx([-0.3, *7 * [0.0]])
    tool = person.asks(Q, np.zeros(1), axes=np.array([1.0, 0, 0, 0, 0.04, 0]))
    assert tool.space == "tcp_velocity" and tool.values[0, 0] > 0.3, "a stick within its deadband moves no rail"


def test_letting_go_of_the_clutch_stops_the_rail_and_keeps_what_the_cup_holds() -> None:
    person = Person("sim_rail")
    person.asks(Q, np.zeros(1), axes=np.array([0, 0, 0, 0, 1.0, 0]), grip=1.0)
    assert person.asks(Q, np.zeros(1), grip=0.0).gripper[0] == 1.0, "closed is what draws"
    let_go = person.asks(Q, np.ones(1), engaged=False, grip=1.0)
    assert let_go.space == "tcp_velocity" and not let_go.values.any() and let_go.gripper[0] == 1.0


AT_REST = np.array([0.0, -0.8, 0.0, -2.4, 0.0, 1.6, 0.8, 0.0, 0.0, 0.0])  # joints, then a base's speeds


def test_a_push_along_the_axes_that_the_cell_names_drives_the_base_and_letting_go_asks_for_no_speed() -> None:
    person = Person("sim_base")
    person.asks(AT_REST, np.full(1, 0.08))
    pushed = person.asks(AT_REST, np.full(1, 0.08), axes=np.array([0, 0, 0, 1.0, 0.5, 0]))
    assert pushed.space == "joint_velocity" and pushed.values.shape == (5, 10)
    assert pushed.values[0] == pytest.approx([*7 * [0.0], 0.2 * (0.5 - 0.05) / 0.95, -0.2, 0.0])
    assert len(pushed.values) * pushed.dt_s == pytest.approx(0.1), "and for no longer than a tenth of a second"
    rolling = AT_REST + np.array([*7 * [0.0], 0.1, -0.2, 0.0])
    for now in ({"engaged": False}, {"engaged": True, "axes": np.zeros(6)}):
        left = person.asks(rolling, np.full(1, 0.08), **now)
        assert left.space == "tcp_velocity" and not left.values.any()


def test_a_leader_that_takes_over_a_base_under_way_does_not_keep_its_speed() -> None:
    person = Person("sim_base", leader=True)
    rolling = AT_REST + np.array([*7 * [0.0], 0.1, -0.2, 0.3])
    for _ in range(2):
        asked = person.asks(rolling, np.full(1, 0.08), joints=rolling[:7], axes=None)
        assert asked.space == "joint_position" and not asked.values[:, 7:].any()


def test_a_leader_of_seven_joints_leads_those_that_turn_and_the_rail_stays() -> None:
    person = Person("sim_rail", leader=True)
    joints = Q[1:] + 0.1
    person.asks(Q, np.zeros(1), axes=None, joints=joints)
    asked = [person.asks(Q + 0.03 * np.eye(8)[0], np.zeros(1), ms=20, joints=joints + 0.02 * k) for k in range(12)]
    assert all(one.space == "joint_position" and one.values[0, 0] == Q[0] for one in asked)
    assert np.abs(asked[-1].values[0, 1:] - Q[1:]).max() > 0.1
    assert len(person.teleop.hand(Q)["gap_rad"] or ()) == 7


def test_fingers_stay_one_by_one_as_a_policy_had_them_until_the_person_takes_them_over() -> None:
    person, held = Person("sim_hand"), np.array([1.0, 0.7, 0.7, 0.2, 0.0])
    person.teleop.hold(held)
    assert person.asks(Q[1:], np.zeros(5), grip=None).gripper[0] == pytest.approx(held)
    taken = person.asks(Q[1:], held, grip=0.0).gripper
    assert taken.shape == (5, 5) and (taken == 1.4).all(), "the first press of a button counts"


def test_a_hand_goes_from_closed_to_open_whichever_of_them_is_the_greater() -> None:
    for closed, opened in ((1.0, 0.0), (-0.5, 0.5)):
        grip = HandGrip(np.array([closed]), np.array([opened]), trigger=False)
        grip.hear(None)
        assert grip.asks(0.25, np.array([closed]), 0, engaged=True) == pytest.approx(closed + (opened - closed) / 4)
