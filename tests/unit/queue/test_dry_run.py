"""What a dry run measures, by hand: how long answers take, and where they lead."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
from support.policies.cards import card
from support.runs.campaigns import ROOT, cell_toml

from labctl.config.cell_schema import Setup, parse_cell, parse_fixture
from labctl.devices import ActionChunk, Observation, Robot
from labctl.errors import InputError
from labctl.queue import dry_run
from labctl.queue.observed import Source

CELL = parse_cell(cell_toml(cameras=False), "c.toml")
FIXTURE = parse_fixture((ROOT / "fixtures/two_totes.toml").read_text("utf-8"), "f.toml")
LIMITS = CELL.robot.limits
MIDDLE = (np.array(LIMITS.box_min_m) + np.array(LIMITS.box_max_m)) / 2


class Stands:
    """A robot whose tool is where its first three joints say, m."""

    def to_pose(self, q: np.ndarray) -> np.ndarray:
        return np.array([*q[:3], 0.0, 0.0, 0.0, 1.0])


ARM = cast(Robot, Stands())
Q = np.array([*MIDDLE, 0.0, 0.0, 0.0, 0.0])
SEEN = Observation(0, {"q": Q, "dq": 0 * Q, "tcp": np.array([*MIDDLE, 0, 0, 0, 1.0]), "gripper": np.array([0.04])}, "x")


def beyond(space: Any, values: np.ndarray, **given: Any) -> dry_run.Beyond:
    chunk = ActionChunk(space, values, np.zeros(len(values)), dt_s=0.1, execute=len(values), **given)
    return dry_run.beyond_limits(chunk, SEEN, ARM, CELL)


def test_who_stands_still_is_within_every_limit() -> None:
    assert beyond("joint_position", np.tile(Q, (4, 1))) == {"out_m": 0.0, "speed": 0.0}
    assert beyond("joint_velocity", np.zeros((4, 7))) == {"out_m": 0.0, "speed": 0.0}


def test_speed_is_counted_from_where_the_robot_stood_in_units_of_its_limit() -> None:
    fast = np.array(LIMITS.velocity_rad_s)
    step = np.zeros(7)
    step[6] = 0.1 * 3 * fast[6]  # in 0.1 s thrice as far as the limit has
    assert beyond("joint_position", (Q + step)[None, :])["speed"] == pytest.approx(3)
    assert beyond("joint_step", step[None, :])["speed"] == pytest.approx(3)
    assert beyond("joint_velocity", (step / 0.1)[None, :])["speed"] == pytest.approx(3)
    # With "capture" the first action is due at the observation: only the way from it to the next has a time.
    assert beyond("joint_position", np.array([Q + step, Q + step]), starts="capture")["speed"] == 0.0


def test_a_way_out_of_the_box_is_measured_in_metres() -> None:
    out = Q.copy()
    out[2] = LIMITS.box_min_m[2] - 0.25
    assert beyond("joint_position", np.array([Q, out]))["out_m"] == pytest.approx(0.25)
    assert beyond("tcp_pose", np.array([[*out[:3], 0, 0, 0, 1.0]]))["out_m"] == pytest.approx(0.25)


def test_only_what_would_be_executed_counts() -> None:
    out = Q.copy()
    out[0] = 9.0
    chunk = ActionChunk("joint_position", np.array([Q, out]), np.zeros(2), dt_s=0.1, execute=1)
    assert dry_run.beyond_limits(chunk, SEEN, ARM, CELL) == {"out_m": 0.0, "speed": 0.0}


def test_from_capture_the_first_action_is_never_executed_and_the_one_after_execute_is() -> None:
    out, fast = Q.copy(), np.array(LIMITS.velocity_rad_s)
    out[2] = LIMITS.box_max_m[2] + 0.25
    past = ActionChunk("joint_position", np.array([out, Q]), np.zeros(2), dt_s=9.0, execute=1, starts="capture")
    assert dry_run.beyond_limits(past, SEEN, ARM, CELL)["out_m"] == 0.0
    last = ActionChunk("joint_position", np.array([Q, out]), np.zeros(2), dt_s=9.0, execute=1, starts="capture")
    assert dry_run.beyond_limits(last, SEEN, ARM, CELL)["out_m"] == pytest.approx(0.25)
    speeds = np.array([2 * fast, 0 * fast, 0 * fast])
    assert beyond("joint_velocity", speeds, starts="capture") == {"out_m": 0.0, "speed": 0.0}
    assert beyond("joint_velocity", speeds[:1], starts="capture") == {"out_m": 0.0, "speed": 0.0}


def test_a_tool_is_as_fast_from_capture_as_from_the_reply() -> None:
    limits = LIMITS.model_copy(update={"tool_speed_m_s": 0.2})
    cell = CELL.model_copy(update={"robot": CELL.robot.model_copy(update={"limits": limits})})
    twists = np.zeros((3, 6))
    twists[:, 0] = [0.9, 0.1, 0.05]
    poses = np.tile(SEEN.arrays["tcp"], (3, 1))
    poses[:, 0] += [0.9, 0.91, 0.915]
    for space, values in (("tcp_velocity", twists), ("tcp_pose", poses)):
        chunk = ActionChunk(space, values, np.zeros(3), dt_s=0.1, execute=2, starts="capture")
        assert dry_run.beyond_limits(chunk, SEEN, ARM, cell)["speed"] == pytest.approx(0.5), "0.1 of 0.2 m/s"


def found(late: int, out: int, fast: int) -> dry_run.DryRun:
    took = [0.1] * (100 - late) + [0.3] * late
    each = [dry_run.Beyond(out_m=0.1 * (i < out), speed=2.0 * (i >= 100 - fast)) for i in range(100)]
    made = dry_run._failed(Source(Path(), "c"), "")
    made.update(latency=dry_run.latency(took, 0.2), bounds=dry_run.bounds(each))
    return made


def test_one_answer_in_twenty_may_be_late_or_beyond_and_not_more() -> None:
    assert list(dry_run.judged(found(5, 5, 5))) == []
    assert "6 of 100 answers came after deadline_s = 0.2" in next(dry_run.judged(found(6, 0, 0)))
    assert "6 of 100 answers lead out of the cell's box, by up to 0.100 m" in next(dry_run.judged(found(0, 6, 0)))
    assert "6 of 100 answers ask for more speed" in next(dry_run.judged(found(0, 0, 6)))


def test_times_are_quantiles_of_all_answers() -> None:
    told = dry_run.latency([0.01 * i for i in range(1, 101)], 0.905)
    # numpy's linear quantile of 1..100 hundredths: 50.5, 95.05 and 99.01.
    assert (told["median_s"], told["p95_s"], told["p99_s"]) == pytest.approx((0.505, 0.9505, 0.9901))
    assert (told["n"], told["max_s"], told["late"]) == (100, 1.0, 10)


QUESTION = dry_run.Question(
    folder=".",
    driver="policy_openpi",
    endpoint="ws://127.0.0.1:9",
    card=card(),
    networks=["127.0.0.0/8"],
    questions=1,
    published=True,
)


def test_a_strangers_folder_runs_no_driver_of_anybody_but_labctl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dry_run, "find_driver", lambda name: "their.package:Robot")
    monkeypatch.setattr(dry_run.endpoints, "only_allowed", lambda *_, **__: None)
    with pytest.raises(InputError, match="no other is run"):
        dry_run._asked(QUESTION, Source(Path(), "c", True), cast(Any, None), Setup(cell=CELL, fixture=FIXTURE))


def test_observations_of_two_robots_are_refused_and_no_answer_is_blamed_for_them() -> None:
    two = parse_cell((ROOT / "hw_configs/sim_pair.toml").read_text("utf-8"), "two.toml")
    with pytest.raises(InputError, match="has two robots, and a dry run follows one"):
        dry_run._asked(QUESTION, Source(Path(), "c", True), cast(Any, None), Setup(cell=two, fixture=FIXTURE))


def test_a_robot_whose_base_drives_is_refused_as_one() -> None:
    base = parse_cell((ROOT / "hw_configs/sim_base.toml").read_text("utf-8"), "base.toml")
    with pytest.raises(InputError, match="base of the robot of cell 'sim-base' drives"):
        dry_run._asked(QUESTION, Source(Path(), "c", False), cast(Any, None), Setup(cell=base, fixture=FIXTURE))
