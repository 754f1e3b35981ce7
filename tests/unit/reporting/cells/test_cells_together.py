"""What a joint campaign's cells counted, put together: hours, practice and judgements, each number by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from support.night import Night

from labctl.analysis.report.lab_tables import answer_table
from labctl.analysis.report.sections import lab_sections
from labctl.analysis.report.sections.judgement_section import OF_CELLS, section
from labctl.analysis.report.sections.operator_sections import section as people_section
from labctl.core.events import EndReason, Kind
from labctl.core.outcome import Outcome
from labctl.reporting.cells.counts import hours_of, practice_of
from labctl.reporting.cells.measured import answer_times_of, sensors_of, stress_of
from labctl.reporting.judgements import judgements
from labctl.reporting.practice import practice
from labctl.reporting.times.hours import hours


def part(cell: str, number: int = 1) -> Any:
    return {"name": "two", "cell": cell, "part": number, "cells": ["b", "a"]}


def evening(*trials: tuple[str, float], hold_s: float = 0, operator: str = "ana") -> Night:
    """Trials with the seconds each ran, and 116 s more: 60 reset, 30 staging, 6 arming, 20 scoring. A hold, if one,
    stands before the first.
    """
    night = Night()
    night.start()
    night.session(operator)
    if hold_s:
        night.tell(0, Kind.HOLD_RAISED, code="operator_stop", text="")
        night.tell(hold_s, Kind.HOLD_CLEARED, code="operator_stop", acknowledged_by=operator)
    for trial, running_s in trials:
        night.whole(trial, running_s=running_s)
    return night


def spent(night: Night, *, blocks_before: int = 0) -> Any:
    """The hours of an unblinded part. blocks_before: how many blocks of the schedule were other parts'."""
    record = night.record
    trials = {name: replace(one, block=one.block + blocks_before) for name, one in record.state.trials.items()}
    unblinded: Any = {"schedule": []}
    return hours(replace(record, state=replace(record.state, trials=trials), unblinding=unblinded))


def test_hours_of_cells_add_up_and_blocks_and_people_bear_their_cell() -> None:
    found = hours_of(
        "two",
        [
            (part("b"), spent(evening(("t-0", 50), hold_s=300))),
            (part("a"), spent(evening(("t-0", 100), ("t-1", 40), hold_s=30))),
            (part("a", 2), spent(evening(("t-0", 10)), blocks_before=1)),
        ],
    )
    # b: 116 + 50 + 300 = 466; a: 2 × 116 + 100 + 40 + 30 = 402 and 116 + 10 = 126, together 528; all 994
    assert [(line["of"], line["trials"], line["total_s"]) for line in found["cells"]] == [
        ("b", 1, pytest.approx(466)), ("a", 3, pytest.approx(528))
    ]  # fmt: skip
    total = found["total"]
    assert (total["of"], total["trials"], total["total_s"]) == ("all", 4, pytest.approx(994))
    assert total["ran_s"] == pytest.approx(50 + 100 + 40 + 10)
    by = {"reset": 240, "staging": 120, "arming": 24, "running": 200, "scoring": 80, "hold": 330}
    assert total["by"] == pytest.approx(by) and total["holds"] == pytest.approx({"operator_stop": 330})
    # t-0 and t-1 are one block (`support.night`)
    of_blocks = {line["of"]: line["total_s"] for line in found["blocks"]}
    assert of_blocks == pytest.approx({"b: 1": 466, "a: 1": 402, "a: 2": 126}), "in this order"
    assert list(of_blocks) == ["b: 1", "a: 1", "a: 2"]
    people = {line["of"]: line["total_s"] for line in found["operators"] if line["total_s"]}
    assert people == pytest.approx({"b: ana": 466, "a: ana": 528})
    assert (found["campaign"], found["schema"]) == ("two", "labctl.hours/1")


def test_what_consoles_saw_is_added_up_over_cells() -> None:
    def at(keys: int, waited_s: float) -> Any:
        night = evening()
        night.begin("t-0")
        night.end("t-0")
        night.score("t-0", hands={"keys": keys, "waited_s": waited_s})
        return spent(night)

    found = hours_of("two", [(part("a"), at(5, 12.0)), (part("b"), at(8, 3.5))])
    assert found["total"]["console"] == {"trials": 2, "keys": 13, "waited_s": 15.5, "robot_s": pytest.approx(200)}
    (hours_section,) = lab_sections.sections({"hours": found}, {}, {})
    first = dict(hours_section.tables)["By cell"].rows[0]
    # a: one trial of 216 s, 5 keys, 12 s of its operator, 100 s of the robot
    assert first[:7] == ("a", "1", "3.6", "3.6", "5.0", "0.2", "1.7")


def test_the_section_has_a_line_a_cell_and_says_what_their_sum_is_not() -> None:
    two = [(part(cell), spent(evening(("t-0", 100)))) for cell in "ab"]
    (shown,) = lab_sections.sections({"hours": hours_of("two", two)}, {}, {})
    assert [heading for heading, _ in shown.tables] == ["By cell", "By block", "By operator"]
    cells, blocks, people = (table for _, table in shown.tables)
    # 216 s are 3.6 minutes; two cells 7.2, for two trials
    assert [row[:4] for row in cells.rows] == [
        ("a", "1", "3.6", "3.6"), ("b", "1", "3.6", "3.6"), ("all", "2", "7.2", "3.6")
    ]  # fmt: skip
    assert [row[0] for row in blocks.rows] == ["a: 1", "b: 1", "all"]
    assert [row[0] for row in people.rows if row[1] == "1"] == ["a: ana", "b: ana"]
    assert "Cells may run at once" in shown.note
    (alone,) = lab_sections.sections({"hours": hours_of("two", two[:1])}, {}, {})
    assert [heading for heading, _ in alone.tables] == ["By block", "By operator"]
    assert "Cells may run at once" not in alone.note


def practised(night: Night, person: str, seconds: float) -> None:
    night.tell(1, Kind.PRACTICE_RECORDED, person=person, object="towels", moved=4, staged=4, duration_s=seconds)


def test_practice_is_of_a_person_in_a_cell_and_ends_with_their_first_reference_episode_there() -> None:
    one, two, other = evening(), evening(), evening(operator="p07")
    practised(one, "ana", 60)  # 4 in 60 s: 240 an hour
    one.whole("t-0")  # the reference
    practised(one, "ana", 30)
    practised(two, "ana", 20)  # a further part of the same cell: ana drove the reference before
    practised(two, "ben", 48)  # 300
    practised(other, "ana", 40)  # 360: another cell's ana is another person
    practised(other, "ana", 36)  # 400
    human = frozenset({"t-0"})
    in_a = practice([(one.record, human), (two.record, human)])
    found = practice_of({"a": in_a, "b": practice([(other.record, human)])})
    assert [(who["person"], who["rates"], who["rate_at_end"]) for who in found["people"]] == [
        ("a: ana", [240.0], 240.0), ("a: ben", [300.0], 300.0), ("b: ana", [360.0, 400.0], 380.0)
    ]  # fmt: skip
    assert found["rule"] == in_a["rule"]
    shown = people_section(None, found)
    assert shown is not None and [row[:3] for row in shown.tables[0][1].rows] == [
        ("a: ana", "1", "240"), ("a: ben", "1", "300"), ("b: ana", "2", "360, 400")
    ]  # fmt: skip


def outcome(moved: int) -> Outcome:
    return Outcome(1, moved, 0, 1 - moved, EndReason.BUDGET)


def body(moved: int) -> dict[str, Any]:
    return {"items_staged": 1, "moved": moved, "lost": 0, "remaining": 1 - moved, "end_reason": "budget"}


def judged(cell: str, pairs: Sequence[tuple[int, int]], guesses: Mapping[int, str], over: int = 0) -> Any:
    """A part's record, every episode of arm policy-a. pairs: what was scored, and what a second assessor, the
    operator's tally and a model said each; guesses: of the arm, by episode; over: how many were gone over since.
    """
    arms = {f"{cell}-{i}": "policy-a" for i in range(len(pairs))}
    opened = {"conditions": [{"id": "towels"}], "items_staged": 1, "budget_s": 60.0, "instruction": ""}
    scored = []
    for i, (first, second) in enumerate(pairs):
        trial = SimpleNamespace(id=f"{cell}-{i}", outcome=outcome(first), condition="towels", said=())
        said = ({"model": "m", "value": second}, body(first))
        episode = SimpleNamespace(
            counted=second, detected=None, reviewed=() if i < over else None, confirmed_by=None,
            judged=(("eva", outcome(second)),), judged_against=body(first), witnessed=(said,),
            guesses=(("ann", guesses[i]),) if i in guesses else (),
        )  # fmt: skip
        scored.append((trial, episode))
    return SimpleNamespace(unblinding={}, arms=arms, scored=scored, state=SimpleNamespace(opened=opened))


A = judged("a", [(1, 1), (1, 1), (0, 0), (0, 1)], {0: "policy-a", 1: "human"}, over=4)
B = judged("b", [(1, 1), (1, 1), (1, 0), (0, 0)], {0: "policy-a", 2: "policy-a"})
ARMS = ["policy-a", "human"]


def test_agreement_is_of_all_judgements_and_of_each_cell() -> None:
    """Cohen's kappa by hand. a: 3 of 4 the same, by chance (2/4)(3/4) + (2/4)(1/4) = 1/2: (3/4 - 1/2) / (1/2) = 1/2; b
    is its mirror image. All: 6 of 8, by chance (5/8)(5/8) + (3/8)(3/8) = 34/64: (48 - 34) / (64 - 34) = 7/15. With two
    values the weighted kappa is the same.
    """
    found = {"all": judgements([A, B], ARMS), "a": judgements([A], ARMS), "b": judgements([B], ARMS)}
    by_hand = {"all": (8, 6 / 8, 7 / 15, 2), "a": (4, 3 / 4, 1 / 2, 1), "b": (4, 3 / 4, 1 / 2, 1)}
    over = {"all": 1, "a": 1, "b": 0}
    for cell, (n, same, kappa, differ) in by_hand.items():
        (second,), (model,), (tally, *_) = found[cell]["second"], found[cell]["models"], found[cell]["witnesses"]
        assert (second["n"], second["same"], second["agreement"]) == (n, same, pytest.approx(kappa))
        assert (second["disagreements"], second["adjudicated"]) == (differ, over[cell])
        assert (model["n"], model["same"], model["agreement"]) == (n, same, pytest.approx(kappa))
        assert (tally["n"], tally["same"], tally["kappa"]) == (n, same, pytest.approx(kappa))
    # Bang: with two arms right less wrong over said. a: (1 - 1) / 2, b: 2 / 2, all (3 - 1) / 4
    guessed = {cell: one["guesses"][0]["index"] for cell, one in found.items()}
    assert guessed == {"all": 0.5, "a": 0.0, "b": 1.0}


def test_the_section_names_the_cells_and_warns_of_kappa_over_cells_that_differ() -> None:
    cells = {"a": judgements([A], ARMS), "b": judgements([B], ARMS)}
    shown = section({**judgements([A, B], ARMS), "by_cell": cells})
    assert shown is not None and shown.note == OF_CELLS
    tables = dict(shown.tables)
    second = tables["Does a second assessor agree?"]
    assert [column.label for column in second.columns][:3] == ["Task", "Cell", "Judged by"]
    assert [(row[1], row[3], row[4], row[6], row[7]) for row in second.rows] == [
        ("all", "8", "75.0", "2", "1"), ("a", "4", "75.0", "1", "1"), ("b", "4", "75.0", "1", "0")
    ]  # fmt: skip
    assert [row[:2] for row in tables["Could people tell the arm?"].rows] == [
        ("policy-a", "all"), ("policy-a", "a"), ("policy-a", "b")
    ]  # fmt: skip
    one = section({**judgements([A], ARMS), "by_cell": {"a": cells["a"]}})
    assert one is not None and one.note == "" and all("Cell" not in [c.label for c in t.columns] for _, t in one.tables)


def test_cells_of_unlike_tasks_agree_more_together_than_each_by_itself() -> None:
    """What the warning says. In a all but one is moved, in b nothing but one, and one judgement of four differs in
    each: a: 3/4 the same, by chance 3/4 × 1 = 3/4: kappa 0; b alike. All: 6/8, by chance (4/8)(4/8)... = 1/2: 1/2.
    """
    high = judged("a", [(1, 1), (1, 1), (1, 1), (0, 1)], {})
    low = judged("b", [(0, 0), (0, 0), (0, 0), (1, 0)], {})
    each = [judgements([one], ARMS)["second"][0]["agreement"] for one in (high, low)]
    assert each == pytest.approx([0.0, 0.0])
    assert judgements([high, low], ARMS)["second"][0]["agreement"] == pytest.approx(0.5)


def lab_of(episode: str, latency_s: float, *, questions: int) -> Any:
    """A part's own facts: one arm, one episode."""
    one = {"value": latency_s, "ci": None, "episodes": 1}
    return {
        "answer_times": [{"arm": "p", "questions": questions, "late": 0, "unanswered": 1, "told": {}}],
        "stress": {
            "rate_hz": 10.0,
            "arms": [{"arm": "p", "episodes": 1, "inference_hz": one, "latency_s": one, "latency_worst_p95_s": None,
                      "roughness_rad": one, "stability": one}],
            "episodes": [{"episode": episode, "arm": "p", "latency_s": latency_s}],
            "taken_over": [episode],
        },
        "sensors": [{"sensor": "scale", "column": "mass", "unit": "kg", "drawn": True, "curves": []}],
    }  # fmt: skip


def test_what_is_read_from_traces_stands_cell_by_cell_and_is_never_put_together() -> None:
    parts = [("a", lab_of("e-1", 0.1, questions=9)), ("b", lab_of("e-2", 0.5, questions=5))]
    answers, stress = answer_times_of(parts), stress_of(parts)
    assert stress is not None
    assert [(one["cell"], one["questions"]) for one in answers] == [("a", 9), ("b", 5)]
    assert [(one["cell"], one["latency_s"]["value"]) for one in stress["arms"]] == [("a", 0.1), ("b", 0.5)]
    assert stress["taken_over"] == ["e-1", "e-2"]
    assert [one["sensor"] for one in sensors_of(parts)] == ["a: scale", "b: scale"]
    assert stress_of([("a", {})]) is None and answer_times_of([("a", {})]) == []
    lab: Any = {"answer_times": answers, "stress": stress}
    table = answer_table(lab)
    assert table is not None and [row[:3] for row in table.rows] == [("p", "a", "9"), ("p", "b", "5")]
    (shown,) = lab_sections.sections(lab, {}, {})
    of_arms, resources = (table for _, table in shown.tables)
    # 0.1 s are 100 ms, and 1 / 0.1 s 10 Hz
    assert [(row[0], row[1], row[4], row[5]) for row in of_arms.rows] == [
        ("p", "a", "100", "10.00"), ("p", "b", "500", "2.00")
    ]  # fmt: skip
    assert [row[:3] for row in resources.rows] == [("p", "a", "8"), ("p", "b", "4")]
    head, *lines = lab_sections.files(lab)["figures/stress.csv"].decode().splitlines()
    assert head.endswith(",cell") and [line.rsplit(",", 1)[1] for line in lines] == ["a", "b"]
