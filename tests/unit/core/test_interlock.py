"""Claims about holds: what is silent holds, what is wrong holds, and nothing else does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.clock import SECOND
from labctl.core.interlock import Limits, Look, SensorSeen, Snapshot, holds, overridable
from labctl.core.trial import Verb
from labctl.runtime.campaign_run import free_gb

CLEAR = Snapshot(
    robot_age_ns=0, recorder_age_ns=0, camera_age_ns={"wrist": 0, "shoulder": 0}, free_gb=100.0, session_open=True
)
LIMITS = Limits(SECOND, 1.0, 4.0)
TOWARDS_MOTION = (Verb.STAGE, Verb.COMMIT, Verb.REVEAL, Verb.START)
OTHERS = tuple(verb for verb in Verb if verb not in TOWARDS_MOTION)
DEAD = Snapshot(
    robot_age_ns=None,
    recorder_age_ns=None,
    camera_age_ns={"wrist": None},
    free_gb=None,
    session_open=False,
    robot_mode="lost",
    faulted="clean-up failed",
    unacknowledged={"arm_lost": "look at the robot"},
)


def codes(snapshot: Snapshot, act: Verb = Verb.START) -> list[str]:
    return [hold.code for hold in holds(snapshot, LIMITS, act)]


@pytest.mark.parametrize("act", Verb)
def test_a_healthy_cell_is_held_by_nothing(act):
    assert codes(CLEAR, act) == []


@pytest.mark.parametrize("act", OTHERS)
def test_ending_releasing_voiding_and_judging_are_never_held(act):
    assert codes(DEAD, act) == []


def test_everything_wrong_is_said_at_once_in_a_fixed_order():
    assert codes(DEAD) == [
        "no_session",
        "cell_faulted",
        "unacknowledged:arm_lost",
        "arm_stale",
        "arm_fault",
        "disk_low",
        "recorder_stale",
        "camera_stale:wrist",
    ]


@pytest.mark.parametrize("act", TOWARDS_MOTION)
@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"session_open": False}, "no_session"),
        ({"faulted": "x"}, "cell_faulted"),
        ({"unacknowledged": {"safety_stop": "x"}}, "unacknowledged:safety_stop"),
        ({"robot_age_ns": None}, "arm_stale"),
        ({"robot_age_ns": LIMITS.silent_ns + 1}, "arm_stale"),
        ({"robot_mode": "safety_stop"}, "arm_safety_stop"),
        ({"robot_mode": "fault"}, "arm_fault"),
        ({"robot_mode": "lost"}, "arm_fault"),
        ({"robot_mode": "a mode nobody foresaw"}, "arm_fault"),
        ({"free_gb": 0.99}, "disk_low"),
        ({"free_gb": None}, "disk_low"),
    ],
)
def test_one_thing_wrong_with_arm_cell_or_disk_holds_everything_towards_motion(act, change, code):
    assert codes(replace(CLEAR, **change), act) == [code]


@pytest.mark.parametrize("mode", ["fault", "safety_stop"])
@pytest.mark.parametrize(
    ("stands", "clears"),
    [
        ({"faulted": "gripper: not activated"}, "then acknowledge it (a): the robot is asked to recover"),
        ({"unacknowledged": {"safety_stop": "x"}}, "then acknowledge it (a): the robot is asked to recover"),
        ({}, "nothing to do: it was acknowledged, and the robot is asked to recover"),
    ],
)
def test_of_a_stop_that_was_acknowledged_nobody_is_asked_to_repair_the_robot(mode, stands, clears):
    """A new gripper says that it is to be acknowledged; beside it stood, and after it too, "repair or reconnect"."""
    (found,) = (h for h in holds(replace(CLEAR, robot_mode=mode, **stands), LIMITS, Verb.STAGE) if "arm_" in h.code)
    assert clears in found.clears and "repair" not in found.clears


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"recorder_age_ns": None}, "recorder_stale"),
        ({"recorder_age_ns": LIMITS.silent_ns + 1}, "recorder_stale"),
        ({"camera_age_ns": {"wrist": LIMITS.silent_ns + 1, "shoulder": 0}}, "camera_stale:wrist"),
        ({"camera_age_ns": {"wrist": 0, "shoulder": None}}, "camera_stale:shoulder"),
        ({"camera_lost": {"wrist": "the cable is out", "shoulder": ""}}, "camera_lost:wrist"),
    ],
)
def test_what_records_must_be_heard_from_commit_on_but_not_for_staging(change, code):
    snapshot = replace(CLEAR, **change)
    assert codes(snapshot, Verb.STAGE) == []
    assert codes(snapshot, Verb.COMMIT) == codes(snapshot, Verb.REVEAL) == codes(snapshot, Verb.START) == [code]


@given(
    age=st.none() | st.integers(0, 3 * SECOND),
    limit=st.integers(1, 2 * SECOND),
    act=st.sampled_from(TOWARDS_MOTION),
)
def test_a_signal_older_than_its_limit_or_never_heard_is_a_hold_and_no_other_is(age, limit, act):
    found = holds(replace(CLEAR, robot_age_ns=age), replace(LIMITS, silent_ns=limit), act)
    assert bool(found) == (age is None or age > limit)


@pytest.mark.parametrize(
    ("node", "change"),
    [
        ("arm", {"robot_age_ns": None}),
        ("recorder", {"recorder_age_ns": None}),
        ("camera:wrist", {"camera_age_ns": {"wrist": None}}),
        ("sensor:scale", {"sensors": {"scale": SensorSeen(None, "")}}),
    ],
)
def test_of_a_process_that_does_not_start_it_is_said_why(node, change):
    """A robot that drove a moment ago "was never heard", and why it did not come back stood in a log alone."""
    (hold,) = holds(replace(CLEAR, **change), LIMITS, Verb.START)
    assert hold.text.endswith("was never heard")
    (hold,) = holds(replace(CLEAR, **change, ended={node: "no emulator answers; start one"}), LIMITS, Verb.START)
    assert hold.text.endswith("is not there: no emulator answers; start one")


def test_a_disk_that_cannot_be_read_is_a_hold_and_ends_no_run(tmp_path):
    assert codes(replace(CLEAR, free_gb=free_gb(tmp_path / "gone"))) == ["disk_low"]


def test_a_hold_goes_when_its_cause_goes_and_has_no_memory():
    assert codes(DEAD) and codes(CLEAR) == []


def test_every_hold_says_what_clears_it():
    assert all(hold.text and hold.clears for hold in holds(DEAD, LIMITS, Verb.START))


def test_a_camera_that_is_not_heard_is_held_for_that_alone():
    assert codes(replace(CLEAR, camera_age_ns={"wrist": None}, camera_lost={"wrist": "x"})) == ["camera_stale:wrist"]


def test_a_cell_without_cameras_is_not_held_for_want_of_one():
    assert codes(replace(CLEAR, camera_age_ns={})) == []


# -- the staged scene


STILL = {"shift_px": [0.1, 0.0], "rotation_deg": 0.0, "moved_px": 0.1, "note": ""}
MATCH = {**STILL, "score": 97.0, "ssim": 0.99, "changed": 0.0, "regions": []}


def looked(limits: Limits = LIMITS, act: Verb = Verb.COMMIT, **look: object) -> list[str]:
    fields = {"scene": MATCH, "pose": STILL, "counts": True, "size": (640, 480), "needed": 80.0, **look}
    found = holds(replace(CLEAR, looks={"wrist": Look(**fields)}), limits, act)
    assert all(overridable(hold) for hold in found)
    return [hold.code for hold in found]


def test_a_scene_that_matches_and_a_camera_that_stands_hold_nothing():
    assert looked() == []


@given(score=st.floats(0, 100), least=st.floats(0, 100))
def test_a_scene_is_held_exactly_below_the_protocols_score(score, least):
    expected = ["scene_differs:wrist"] if score < least else []
    assert looked(needed=least, scene={**MATCH, "score": score}) == expected


@given(moved=st.floats(0, 100), most=st.floats(0.1, 100))
def test_a_camera_is_held_exactly_beyond_the_protocols_distance(moved, most):
    expected = ["camera_moved:wrist"] if moved > most else []
    assert looked(replace(LIMITS, max_camera_shift_px=most), needed=None, pose={**STILL, "moved_px": moved}) == expected


def test_only_a_reference_that_counts_holds_and_only_where_scores_are_asked_for():
    low = {**MATCH, "score": 3.0}
    assert looked(scene=low) == ["scene_differs:wrist"]
    assert looked(scene=low, counts=False) == []
    assert looked(needed=None, scene=low) == []
    assert looked(scene=None, problem="it is gone") == ["scene_unknown:wrist"]
    assert looked(scene=None, counts=False) == []


def test_a_moved_camera_is_said_alone_and_needs_no_scores():
    away = {**STILL, "moved_px": 9.0}
    assert looked(scene={**MATCH, "score": 3.0}, pose=away) == ["camera_moved:wrist"]
    assert looked(needed=None, scene=None, pose=away, counts=False) == ["camera_moved:wrist"]
    assert looked(pose={**STILL, "moved_px": None}) == [], "too little structure to tell is no movement"
    assert looked(pose={"note": "2 of 40 places were found", "moved_px": None}) == ["camera_moved:wrist"]


@pytest.mark.parametrize("act", [act for act in Verb if act != Verb.COMMIT])
def test_the_scene_holds_a_commit_and_nothing_else(act):
    assert looked(act=act, scene={**MATCH, "score": 3.0}, pose={**STILL, "moved_px": 9.0}) == []


def test_nothing_is_committed_while_its_photo_is_taken():
    assert codes(replace(CLEAR, photographing=True), Verb.COMMIT) == ["photographing"]
    assert codes(replace(CLEAR, photographing=True), Verb.START) == []
