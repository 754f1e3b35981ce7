"""Pairs of new arms over fixed anchors: who is compared, what is left out, and how it is printed."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest

from labctl.analysis.episodes.linked import CampaignTable, linked_pairs
from labctl.analysis.report import headlines
from labctl.analysis.report.sections.linked_section import files, section
from labctl.analysis.survival.verdicts import holm
from labctl.errors import LinkError

BUDGET_S = 60.0


def told(name: str, seed: int, means: Mapping[str, float], objects: Mapping[str, str] | None = None) -> CampaignTable:
    """A campaign of 12 episodes of one item for each arm: exponential times cut at the budget. objects: by arm."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for arm, mean in means.items():
        for number in range(12):
            time = min(float(rng.exponential(mean)), BUDGET_S)
            rows.append(
                {
                    "episode": f"{arm}-{number}",
                    "arm": arm,
                    "object": (objects or {}).get(arm, "cup"),
                    "kind": "success" if time < BUDGET_S else "censored",
                    "time_s": time,
                    "budget_s": BUDGET_S,
                }
            )
    return CampaignTable(name, rows, "sim")


FIRST = told("first", 1, {"human": 5, "frozen": 20, "a1": 2, "a2": 30})
SECOND = told("second", 2, {"human": 5, "frozen": 20, "b": 30})


def compared(
    first: CampaignTable = FIRST, second: CampaignTable = SECOND, anchors: tuple[str, ...] = ("human", "frozen")
) -> Any:
    return linked_pairs(first, second, anchors, tau=BUDGET_S, alpha=0.05)


def test_every_new_arm_meets_every_other_and_holm_counts_them() -> None:
    found = compared()
    pairs = {(pair["a"], pair["b"]): pair for pair in found["pairs"]}
    assert list(pairs) == [("a1", "b"), ("a2", "b")] and found["anchors"] == ["human", "frozen"]
    assert {key: pair["p_holm"] for key, pair in pairs.items()} == holm({key: p["p"] for key, p in pairs.items()})
    assert pairs["a1", "b"]["verdict"] == "a1 takes less time" and pairs["a1", "b"]["ratio"] < 0.6
    assert pairs["a2", "b"]["verdict"] == "not resolved at this N"


def test_what_its_section_says_is_the_level_and_never_an_end_at_1() -> None:
    found = compared() | {"alpha": 0.005}
    found["pairs"][0] |= {"ratio": 0.8, "interval": (0.64, 0.997), "verdict": "a1 takes less time"}
    shown = section(found)
    assert shown is not None and "held to 0.005:" in shown.tables[0][1].note
    assert shown.tables[0][1].rows[0][3] == "0.800 [0.640, 0.997]"
    claim = headlines.claims({"linked": found}, {})[0]
    assert "RMST ratio 0.800 [0.640, 0.997] through" in claim.text


def test_a_name_in_both_that_was_not_fixed_as_an_anchor_is_two_arms() -> None:
    found = compared(anchors=("human",))
    assert found["anchors"] == ["human"] and {pair["anchors"][0] for pair in found["pairs"]} == {"human"}
    assert {(pair["a"], pair["b"]) for pair in found["pairs"]} >= {("frozen", "frozen"), ("a1", "frozen")}
    assert any(text.startswith("one anchor only (human)") for text in found["warnings"])


def test_an_anchor_without_an_episode_is_left_out_and_said() -> None:
    found = compared(second=told("second", 2, {"human": 5, "b": 30}))
    assert found["anchors"] == ["human"]
    assert "anchor frozen has no scored episode in one of the campaigns and is left out" in found["warnings"]


def test_a_pair_without_a_common_object_does_not_take_the_others_with_it() -> None:
    found = compared(first=told("first", 1, {"human": 5, "frozen": 20, "a1": 2, "a2": 30}, {"a2": "pan"}))
    assert [pair["a"] for pair in found["pairs"]] == ["a1"]
    assert any(text.startswith("not compared: no object was met by a2, b") for text in found["warnings"])


@pytest.mark.parametrize(
    ("second", "anchors", "says"),
    [
        (told("second", 2, {"b": 30, "c": 20}), ("human",), r"share no anchor .* \(planned: human\)"),
        (told("second", 2, {"human": 5, "frozen": 20}), ("human", "frozen"), "every scored arm of second is an anchor"),
        (CampaignTable("second", SECOND.rows, "real"), ("human",), "first is sim and second is real"),
        (told("second", 2, {"human": 5, "b": 3}, {"b": "pan"}), ("human",), "no object was met by"),
    ],
)
def test_where_nothing_can_be_compared_one_line_says_why(
    second: CampaignTable, anchors: tuple[str, ...], says: str
) -> None:
    with pytest.raises(LinkError, match=says) as caught:
        compared(second=second, anchors=anchors)
    assert "\n" not in str(caught.value)


def test_an_anchor_taken_on_somebodys_word_is_marked() -> None:
    found = {**compared(), "head": "ab" * 32, "changed": ["frozen"]}
    page = section(found)
    assert page is not None
    (_, _), (heading, drift) = page.tables
    assert heading.startswith("The anchors")
    assert {row[0]: row[-1] for row in drift.rows} == {
        "frozen": "on its opener\N{RIGHT SINGLE QUOTATION MARK}s word",
        "human": "by its digest",
    }
    rows = list(csv.DictReader(files(found)["figures/linked_anchors.csv"].decode().splitlines()))
    assert [row["anchor"] for row in rows] == ["frozen", "human"]
    assert section(None) is None and files(None) == {}
