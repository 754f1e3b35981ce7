"""A recorded arm: what it plays, and what it does not take for a motion."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from support.robots.cells import FIXTURE, cell_named

from labctl.clock import SECOND
from labctl.devices import Actions, Robot, Setpoints, load
from labctl.drivers.common.robot_tables import FR3
from labctl.errors import InputError


def recorded(path: Path, seconds: np.ndarray, q: np.ndarray) -> Robot:
    """A robot that plays joints q (n, 7) of these times, its cell's controller at 100 Hz."""
    columns = [*(f"q.{name}" for name in FR3.joint_names), "gripper"]
    values = np.column_stack([q, np.full(len(q), 0.08)])
    np.savez(path, columns=np.array(columns), t_ns=np.round(seconds * SECOND).astype(np.int64), values=values)
    robot = load("replay", {"arm": "fr3", "file": str(path)}, cell=cell_named("sim_fr3"), fixture=FIXTURE)
    robot.connect(0)
    return robot


def played(robot: Robot, n: int, start: int = 0) -> Actions:
    t_ns = (start + 1 + np.arange(n)) * (SECOND // 100)
    return robot.follow(Setpoints(t_ns, np.repeat(FR3.home[None, :], n, axis=0), np.full(n, 0.08)))


def test_it_plays_what_was_recorded(tmp_path: Path) -> None:
    q = FR3.home + 0.3 * np.sin(np.linspace(0, 1, 101))[:, None] * np.eye(7)[0]
    robot = recorded(tmp_path / "a.npz", np.linspace(0, 1, 101), q)
    sent = played(robot, 100).sent
    assert np.abs(sent[:, :-1] - q[1:]).max() < 1e-9
    assert robot.clipped == "" and robot.events() == []


def test_stamps_that_crowd_are_no_motion_faster_than_the_cell_allows_and_it_says_so(tmp_path: Path) -> None:
    """Stamps of a real UR5's log lie 2 to 385 ms apart, its states 8 ms: by their stamps 15 rad/s (issue 20.25)."""
    seconds = np.concatenate([np.arange(50) * 0.008, 0.394 + np.arange(50) * 0.0005, 0.8 + np.arange(50) * 0.008])
    q = FR3.home + 0.004 * np.arange(150)[:, None] * np.eye(7)[2]  # 0.5 rad/s by the robot's own clock
    robot = recorded(tmp_path / "b.npz", seconds, q)
    most = cell_named("sim_fr3").robot.limits.velocity_rad_s[2]
    sent = played(robot, 150).sent[:, 2]
    assert np.abs(np.diff(sent)).max() * 100 <= most * (1 + 1e-9)
    assert abs(sent[-1] - q[-1, 2]) < 1e-9, "it comes after"
    (note,) = robot.events()
    assert note.kind == "note" and "the recording moves joint 3 at " in str(note.body["reason"])
    assert f"this cell allows {most:g} rad/s" in str(note.body["reason"]) and robot.events() == []


def test_the_joint_that_was_held_back_is_named_while_it_is(tmp_path: Path) -> None:
    q = np.repeat(FR3.home[None, :], 3, axis=0)
    q[1:, 0] += 0.3
    robot = recorded(tmp_path / "c.npz", np.array([0.0, 0.01, 1.0]), q)
    played(robot, 2)
    assert robot.clipped == "joint 1 speed"
    played(robot, 50, start=2)
    assert robot.clipped == ""
    robot.stage({}, 1, 0)
    played(robot, 2)
    assert len(robot.events()) == 2, "one for each time that it is played"


NOT_RECORDINGS = {
    "empty": b"",
    "cut off": b"PK\x03\x04 and no more",
    "text": b"t,q\n0,1\n",
}


@pytest.mark.parametrize("data", NOT_RECORDINGS.values(), ids=NOT_RECORDINGS)
def test_a_file_that_is_no_recording_is_one_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "d.npz"
    path.write_bytes(data)
    refused(path, "is not a recording")


def test_an_array_alone_or_rows_that_do_not_fit_their_columns_are_no_recording(tmp_path: Path) -> None:
    path, columns = tmp_path / "e.npz", np.array([*(f"q.{name}" for name in FR3.joint_names), "gripper"])
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    refused(path, "is not a recording")
    t_ns = np.arange(3) * SECOND
    for values in (np.zeros((3, 7)), np.zeros((2, 8)), np.zeros(3)):
        np.savez(path, columns=columns, t_ns=t_ns, values=values)
        refused(path, "values must have a row for each time and a column for each name")
    np.savez(path, columns=columns, t_ns=t_ns[::-1], values=np.zeros((3, 8)))
    refused(path, "times do not ascend")
    np.savez(path, columns=columns, t_ns=t_ns[::-1].astype(np.uint64), values=np.zeros((3, 8)))
    refused(path, "times do not ascend")
    np.savez(path, columns=columns, t_ns=np.int64(5), values=np.zeros((1, 8)))
    refused(path, "values must have a row for each time")


@pytest.mark.parametrize("wrong", [math.nan, math.inf, "text", "text of times", "dates"])
def test_a_recording_of_what_is_no_number_is_refused_and_not_played(tmp_path: Path, wrong: object) -> None:
    names = [*(f"q.{name}" for name in FR3.joint_names), "gripper", "wrench"]
    t_ns, values = np.arange(3) * SECOND, np.zeros((3, 9))
    if isinstance(wrong, float):
        values[1, 2] = wrong
    times: dict[object, str] = {"text of times": "U20", "dates": "datetime64[ns]"}
    path = tmp_path / "f.npz"
    np.savez(
        path,
        columns=np.array(names),
        t_ns=t_ns.astype(times.get(wrong, "i8")),
        values=values.astype("U5") if wrong == "text" else values,
    )
    refused(path, "is no number")


def test_a_gap_in_what_is_not_played_is_none(tmp_path: Path) -> None:
    names = [*(f"q.{name}" for name in FR3.joint_names), "gripper", "wrench"]
    values = np.zeros((3, 9))
    values[:, -1] = math.nan
    np.savez(tmp_path / "g.npz", columns=np.array(names), t_ns=np.arange(3) * SECOND, values=values)
    load("replay", {"arm": "fr3", "file": str(tmp_path / "g.npz")}, cell=cell_named("sim_fr3"), fixture=FIXTURE)


def refused(path: Path, says: str) -> None:
    with pytest.raises(InputError, match=says) as caught:
        load("replay", {"arm": "fr3", "file": str(path)}, cell=cell_named("sim_fr3"), fixture=FIXTURE)
    assert "\n" not in str(caught.value)
