"""Claims about what people recorded beside outcomes: it is counted by arm, after unblinding only."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from labctl.analysis.episodes.stress import Traces
from labctl.analysis.report.sections.judgement_section import section
from labctl.errors import StateError
from labctl.reporting.judgements import judgements
from labctl.reporting.measures import watched


def told(moved: int):
    return [{"op_index": i, "result": "success", "t_ns": i, "cause": None} for i in range(moved)]


def record(*episodes: tuple, unblinded: bool = True):
    """episodes: (arm, moved, tally, detected, tags, guesses as (who, guess))."""
    arms, scored = {}, []
    for i, (arm, moved, tally, detected, tags, guesses) in enumerate(episodes):
        arms[f"t-{i}"] = arm
        trial = SimpleNamespace(id=f"t-{i}", outcome=SimpleNamespace(moved=moved, tags=tags, measured=False))
        found = SimpleNamespace(
            counted=tally, detected=None if detected is None else told(detected), reviewed=None, judged=(), witnessed=()
        )
        found.guesses, found.events = tuple(guesses), ()
        scored.append((trial, found))
    return SimpleNamespace(unblinding={} if unblinded else None, arms=arms, scored=scored)


CASE = (
    ("a", 4, 4, 4, (), [("ann", "b"), ("ann", "a")]),
    ("a", 2, 2, 3, ("dropped",), [("ann", "a")]),
    ("b", 1, None, 1, ("dropped", "stuck"), [("ann", None)]),
    ("b", 0, 0, None, ("stuck",), [("ann", "a"), ("ben", "b")]),
)


def test_guesses_tags_and_witnesses_are_counted_by_arm():
    found = judgements([record(*CASE)], ["a", "b"])
    by_arm = {g["arm"]: (g["said"], g["right"], g["unknown"], g["index"]) for g in found["guesses"]}
    assert by_arm == {"a": (2, 2, 0, 1.0), "b": (3, 1, 1, 0.0)}  # the last word of each person counts
    assert found["tags"] == [
        {"arm": "a", "episodes": 2, "by_tag": {"dropped": 1, "stuck": 0}},
        {"arm": "b", "episodes": 2, "by_tag": {"dropped": 1, "stuck": 2}},
    ]
    assert [(w["witness"], w["n"], round(w["same"], 3)) for w in found["witnesses"]] == [
        ("the operator's tally", 3, 1.0), ("the detector", 3, 0.667)
    ]  # fmt: skip


def test_the_section_shows_what_was_recorded_and_is_not_there_where_nothing_was():
    shown = section(judgements([record(*CASE)], ["a", "b"]))
    assert shown is not None
    guesses, tags, witnesses = (table for _, table in shown.tables)
    assert guesses.rows[0][:4] == ("a", "2", "2", "0") and guesses.rows[1][4].startswith("0.00")
    assert tags.rows[1] == ("b", "2", "1 (50.0 %)", "2 (100.0 %)")
    assert witnesses.rows[1][:3] == ("the detector", "3", "66.7")
    assert section(judgements([record(("a", 1, None, None, (), []))], ["a", "b"])) is None
    assert section(None) is None


def test_nothing_is_said_before_unblinding():
    with pytest.raises(StateError, match="not unblinded"):
        judgements([record(*CASE, unblinded=False)], ["a", "b"])


def test_a_switch_is_ignored_where_the_assessor_ticked_the_tag_that_the_protocol_names():
    """The tags of the episode's outcome reach the measure; a switch without a tag is judged by nobody."""
    switches = [
        {"name": "red", "at_s": 5.0, "instruction": "Red.", "ignored": "went on"},
        {"name": "blue", "at_s": 9.0, "instruction": "Blue."},
    ]
    told = {name: SimpleNamespace(id=name, switches=()) for name in ("e-1", "e-2")}
    scored = [
        (SimpleNamespace(outcome=SimpleNamespace(tags=tags)), told[name])
        for name, tags in (("e-1", ("went on",)), ("e-2", ()))
    ]
    record = SimpleNamespace(scored=scored, episodes=told)
    episodes = [Traces(name, "a", "towels", 0, 1) for name in told]
    found = watched(episodes, record, [], (), switches)  # type: ignore[arg-type]
    assert [one.ignored for one in found] == [{"red": True}, {"red": False}]
