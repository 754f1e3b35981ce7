"""A live view draws what is published, at the time it carries, and nothing that tells how a policy behaves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.robots.cells import cell_named
from support.screens.rerun_files import decoded

from labctl.axes import Axis
from labctl.bus import Message
from labctl.clock import SECOND, ManualClock

rr = pytest.importorskip("rerun")

from labctl.ui.rerun.live import LiveCell, LiveView  # noqa: E402
from labctl.viewing.showing import hand_axes  # noqa: E402

TOTES = {
    "left": ((0.48, 0.24, 0.0), (0.34, 0.30, 0.12), False),
    "right": ((0.48, -0.24, 0.0), (0.34, 0.30, 0.12), False),
}
CELL = LiveCell("first", "fr3", TOTES, ["wrist"])


def observation(t_ns: int, mode: str = "moving", **body: object) -> Message:
    arrays = {
        "q": np.full(7, t_ns / SECOND),
        "dq": np.full(7, 3.0),
        "tcp": np.array([0.4, 0.0, 0.3, 0, 1, 0, 0]),
        "gripper": np.array([0.04]),
        "items": np.array([[0.4, 0.2, 0.0, 0.5, 1, 0, 0, 1]]),
        "object": np.array([0.1, 0.05, 0.02, 0.02]),
        "target_tote": np.array([0.48, -0.24, 0.0, 0.34, 0.30, 0.12]),
    }
    return Message("@obs", "obs", {"t_ns": t_ns, "mode": mode, "reason": "", "clipped": "speed", **body}, arrays)


@pytest.fixture
def drawn(tmp_path: Path):
    """Draw messages into a file; what it says."""

    def draw(*messages: Message, cell: LiveCell = CELL) -> dict:
        recording = rr.RecordingStream("labctl", recording_id="live", send_properties=False)
        recording.save(tmp_path / "live.rrd")
        view = LiveView(cell, ManualClock(0).anchor(), recording=recording)
        view.draw(messages, 9 * SECOND)
        view.close()
        return decoded(tmp_path / "live.rrd")

    rr.set_strict_mode(True)
    yield draw
    rr.set_strict_mode(False)


def times(said: list[dict]) -> list[int]:
    stood = [row["utc"] for row in said if row.get("utc") is not None]
    return sorted(np.datetime64(t, "ns").astype(int) % (10 * SECOND) for t in stood)


def test_observations_stand_at_the_time_they_carry(drawn):
    said = drawn(observation(1 * SECOND), observation(2 * SECOND))
    for entity in ("/joints/q", "/gripper", "/world/tcp", "/world/items", "/world/joints/fr3_joint7"):
        assert times(said[entity]) == [1 * SECOND, 2 * SECOND], entity
    assert "/world/totes/right/label" in said and "right, target" in repr(said["/world/totes/right/label"])


def test_pictures_and_the_board_are_drawn(drawn):
    picture = Message(
        "@preview", "preview", {"camera": "wrist", "t_ns": SECOND}, {"image": np.zeros((48, 64, 3), np.uint8)}
    )
    board = {"trial": "t-1", "trial_state": "running", "condition": "towels/layout-1", "progress": [3, 8]}
    holds = [{"code": "disk_low", "text": "little disk is left"}]
    said = drawn(picture, Message("@state", "state", {**board, "holds": holds}))
    assert times(said["/cameras/wrist"]) == [SECOND] and times(said["/lanes/1_trial"]) == [9 * SECOND]
    assert "3 of 8 trials" in repr(said["/about"]) and "disk_low" in repr(said["/lanes/3_holds"])


def test_a_state_that_does_not_change_is_said_once(drawn):
    board = Message("@state", "state", {"trial": "t-1", "trial_state": "armed", "progress": [0, 8], "holds": []})
    said = drawn(board, board, board)
    assert len(times(said["/lanes/1_trial"])) == len(times(said["/about"])) == 1


def test_nothing_tells_how_a_policy_behaves(drawn):
    """No speeds, no limits that were met, and not when the arm pauses; that it was stopped is shown."""
    told = repr(drawn(observation(SECOND, "moving"), observation(2 * SECOND, "idle")))
    assert not [word for word in ("moving", "idle", "speed", "clipped", "dq") if word in told]
    assert "safety_stop" in repr(drawn(observation(SECOND, "safety_stop"))["/lanes/2_arm"])


def test_what_is_not_understood_is_left_out(drawn):
    bare = Message(
        "@obs",
        "obs",
        {"t_ns": SECOND, "mode": "idle"},
        {k: v for k, v in observation(0).arrays.items() if k in ("q", "tcp", "gripper")},
    )
    said = drawn(bare, Message("@other", "other"))
    assert times(said["/joints/q"]) == [SECOND]


def test_an_opening_is_in_millimetres_and_another_axis_of_a_hand_in_its_own_unit(drawn):
    """A share of suction of 0.5 was drawn as 500 mm."""
    said = drawn(observation(SECOND))
    assert "40.0" in repr(said["/gripper"])
    hand = (Axis("suction", "vacuum", "1", hand=True), Axis("thumb", "revolute", "rad", hand=True))
    message = observation(SECOND)
    message.arrays["gripper"] = np.array([0.5, 0.25])
    said = drawn(message, cell=replace(CELL, hand=hand))
    told = repr(said["/gripper"])
    assert "0.5, 0.25" in told and "suction" in told and "thumb, rad" in told and "500" not in told
    assert not times(said.get("/world/joints/fr3_finger_joint1", [])), "no finger has that opening"


@pytest.mark.parametrize(
    ("cell", "axes"),
    [
        ("sim_fr3", [("gripper", "m")]),
        ("sim_pair", [("left.gripper", "m"), ("right.gripper", "m")]),
        ("sim_hand", None),
    ],
)
def test_the_hand_is_what_the_cells_drivers_declare(cell: str, axes: list[tuple[str, str]] | None):
    of = cell_named(cell)
    axes_of_hand = hand_axes(of.names, [(robot.driver, robot.options) for robot in of.robots])
    found = [(axis.name, axis.unit) for axis in axes_of_hand]
    assert found == axes if axes else len(found) > 1 and {unit for _, unit in found} == {"rad"}


def test_the_speeds_of_a_base_are_not_drawn_nor_where_its_robot_stands(drawn):
    arm = [[f"fr3_joint{i}", "rad"] for i in range(1, 8)]
    axes = [*arm, ["base.vx", "m/s"], ["base.wz", "rad/s"], ["gripper", "m"]]
    message = observation(SECOND, axes=axes)
    message.arrays["q"] = np.append(message.arrays["q"], [9.0, 8.0])
    said = drawn(message, cell=replace(CELL, drives=True))
    told = repr(said["/joints/q"])
    assert "1.0" in told and "9.0" not in told and "8.0" not in told
    assert not [entity for entity in said if entity.startswith("/world/joints")]


def test_a_robot_without_a_description_has_its_own_axes_in_the_legend_with_their_units(drawn):
    """The metres of a rail were the curve "joint1", the first joint "joint2", and the last had no name."""
    axes = [["rail", "m"], *[[f"joint{i}", "rad"] for i in range(1, 8)], ["suction", "1"]]
    message = observation(SECOND, axes=axes)
    message.arrays["q"] = np.append([0.39], message.arrays["q"])
    told = repr(drawn(message, message, cell=replace(CELL, robot="rail"))["/joints/q"])
    assert "['rail, m', 'joint1', 'joint2'" in told and "'joint7']" in told


def test_the_joints_of_two_robots_are_named_by_robot_also_where_the_first_is_drawn(drawn):
    """Fourteen curves had the seven names of the left robot's joints."""
    arms = [[f"{side}.fr3_joint{i}", "rad"] for side in ("left", "right") for i in range(1, 8)]
    message = observation(SECOND, axes=[*arms, ["left.gripper", "m"], ["right.gripper", "m"]])
    message.arrays["q"] = np.arange(14) / 10
    told = repr(drawn(message, message)["/joints/q"])
    assert "'left.fr3_joint1'" in told and "'right.fr3_joint7']" in told
    one = observation(SECOND, axes=[*([f"fr3_joint{i}", "rad"] for i in range(1, 8)), ["gripper", "m"]])
    assert "['joint1', " in repr(drawn(one)["/joints/q"]), "of one robot the short names stay"
