"""What a policy's card says of its results is what the report says, under the report's names."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labctl.publishing.documents import apart_in
from labctl.publishing.eval_results import results_of
from labctl.publishing.versions import versions

MANIFEST: Any = SimpleNamespace(dataset="d", campaign="c", head="9:ab", kind="sim", frozen="")
ARM = {"arm": "stuck", "episodes": 4, "moved": 0.0, "rmst": 8.0, "rmst_ci": [8.0, 8.0], "seconds_per_item": "inf"}
MADE = results_of([ARM], 8.0, "stuck", MANIFEST)
NOTES = "4 episodes (sim), blinded; 95 % interval 8 to 8; labctl campaign c, head 9:ab"
THEN = [
    MADE[0],
    {
        "dataset": {"id": "d", "task_id": "seconds_per_item"},
        "value": 8.0,
        "notes": f"restricted mean time to the next item, s; {NOTES}",
    },
]


def test_a_restricted_mean_time_goes_by_its_own_name_and_says_to_what_it_is_restricted() -> None:
    """It stood there as seconds_per_item, which is seconds over items moved everywhere else: of none, without bound."""
    assert [entry["dataset"]["task_id"] for entry in MADE] == ["items_moved", "rmst"]
    assert MADE[1]["value"] == 8.0
    assert MADE[1]["notes"] == f"restricted mean time to the next item, s (tau 8 s); {NOTES}"


def held(tmp_path: Path, published: list[dict[str, Any]]) -> tuple[list[str], list[str], float]:
    """A published file against the one made anew, by another labctl."""
    for folder, entries in (("p", published), ("here", MADE)):
        (tmp_path / folder / "eval_results").mkdir(parents=True)
        (tmp_path / folder / "eval_results/stuck.yaml").write_text(json.dumps(entries))
    return apart_in("eval_results/stuck.yaml", tmp_path / "p", tmp_path / "here", {**versions(), "code": "0"})


def test_results_that_were_published_under_the_former_name_are_the_same(tmp_path: Path) -> None:
    assert held(tmp_path, THEN) == ([], [], 0.0)


def test_results_in_which_nobody_can_read_what_was_measured_are_others(tmp_path: Path) -> None:
    assert held(tmp_path, [{"dataset": "d"}, THEN[1]])[0]


@pytest.mark.parametrize("change", [{"value": 3.0}, {"notes": f"restricted mean time to the next item, s; 9 {NOTES}"}])
def test_and_another_number_under_the_former_name_is_another(tmp_path: Path, change: dict[str, Any]) -> None:
    assert held(tmp_path, [THEN[0], {**THEN[1], **change}])[0]
