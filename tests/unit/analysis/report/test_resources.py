"""What servers report about themselves, as the report prints it: nothing is blank that could be taken for nothing."""

from __future__ import annotations

import pytest

from labctl.analysis.report.sections import lab_sections

SPREAD = {"p50": 0.0801, "p95": 0.125}
TALKATIVE = {
    "arm": "a",
    "questions": 12,
    "unanswered": 2,
    "server_s": SPREAD,
    "rest_s": {"p50": 0.0044, "p95": 0.0123},
    "told": {"gpu_memory_mb": 7100.4, "parameters": 3.3e9},
}
SILENT = {"arm": "b", "questions": 3, "unanswered": 0, "server_s": None, "rest_s": None, "told": {}}


def test_each_arm_says_what_its_server_reported_and_what_it_did_not():
    found = lab_sections.resources_table([TALKATIVE, SILENT, {**SILENT, "arm": "human", "by_hand": True}])
    assert found is not None
    assert [column.label for column in found.columns][:4] == [
        "Arm",
        "Answers",
        "Server’s inference ms",
        "Rest of the answer ms",
    ]
    assert found.rows == (
        ("a", "10", "80.1 / 125.0", "4.4 / 12.3", "7100", "not reported", "not reported", "3300"),
        ("b", "3", *["not reported"] * 6),
        ("human", "3", *["no server"] * 6),
    )


def test_it_stands_beside_the_stress_measures_and_only_where_somebody_was_asked():
    measure = {"value": None, "ci": None, "episodes": 0}
    names = ("inference_hz", "latency_s", "roughness_rad", "stability")
    arm = {"arm": "a", "episodes": 1, "latency_worst_p95_s": None, **dict.fromkeys(names, measure)}
    lab = {"stress": {"rate_hz": 10.0, "arms": [arm]}, "answer_times": [TALKATIVE]}
    (section,) = lab_sections.sections(lab, {}, {})
    assert [heading for heading, _ in section.tables] == ["", "What servers report about themselves"]
    latency = {"value": 0.05862, "ci": [0.05, 0.08], "episodes": 3}  # NEBULA's table 4: 58.62 ms beside 16.98 Hz
    told = {**lab, "stress": {"rate_hz": 10.0, "arms": [{**arm, "latency_s": latency}]}, "answer_times": []}
    (found,) = (table for _, table in lab_sections.sections(told, {}, {})[0].tables)
    assert found.columns[4].label == "1 / latency Hz [95 %]" and "NEBULA’s inference frequency" in found.note
    assert float(found.rows[0][4].split()[0]) == pytest.approx(16.98, abs=0.1) and "[12.50, 20.00]" in found.rows[0][4]
    (section,) = lab_sections.sections({**lab, "answer_times": []}, {}, {})
    assert [heading for heading, _ in section.tables] == [""]
