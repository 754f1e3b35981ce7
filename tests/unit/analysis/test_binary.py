"""k-of-n tables are summed before they are divided, and refused with their line when they cannot be counts."""

from __future__ import annotations

from pathlib import Path

import pytest
from labctl.analysis.binary import rate, rates
from labctl.analysis.table import TableError

# Rows of the published BridgeV2-* conditions (k of 5), typed in.
STAR = """condition,axis,arm,successes,trials
Carrot Base,In-distribution,OpenVLA (OXE),3,5
Carrot Base,In-distribution,"OpenVLA (OXE, FT)",5,5
Knife Base,In-distribution,OpenVLA (OXE),2,5
Knife Base,In-distribution,"OpenVLA (OXE, FT)",3,5
"""


def write(folder: Path, text: str) -> Path:
    file = folder / "counts.csv"
    file.write_text(text)
    return file


def test_groups_are_pooled_in_order_of_appearance(tmp_path: Path) -> None:
    found = rates(write(tmp_path, STAR), ["axis", "arm"])
    assert [(r["axis"], r["arm"], r["successes"], r["trials"], r["rate"]) for r in found] == [
        ("In-distribution", "OpenVLA (OXE)", 5, 10, 0.5),
        ("In-distribution", "OpenVLA (OXE, FT)", 8, 10, 0.8),
    ]
    (everything,) = rates(write(tmp_path, STAR), [])
    assert (everything["successes"], everything["trials"]) == (13, 20)


def test_intervals_are_wilson_and_clopper_pearson() -> None:
    # R 4.2: binom.test(8, 10)$conf.int; prop.test(8, 10, correct = FALSE)$conf.int
    found = rate(8, 10)
    assert found["ci_exact"] == pytest.approx([0.4439045, 0.9747893], abs=1e-6)
    assert found["ci_wilson"] == pytest.approx([0.4901625, 0.9433178], abs=1e-6)


def test_no_trials_have_no_rate() -> None:
    assert rate(0, 0) == {"successes": 0, "trials": 0, "rate": None, "ci_wilson": None, "ci_exact": None}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("a,6,5", r":3: successes is 6 of 5 trials"),
        ("a,-1,5", r":3: successes is '-1'"),
        ("a,2.5,5", r":3: successes is '2.5'"),
        ("a,1,", r":3: trials is ''"),
        ("a,1", r":3: 2 values for 3 columns"),
    ],
)
def test_what_is_no_count_is_named_with_its_line(tmp_path: Path, line: str, found: str) -> None:
    with pytest.raises(TableError, match=found):
        rates(write(tmp_path, f"arm,successes,trials\nb,1,5\n{line}\n"), ["arm"])


def test_unknown_groups_list_the_known_ones(tmp_path: Path) -> None:
    with pytest.raises(TableError, match="no column 'axes' to group by; the grouping columns are condition, axis, arm"):
        rates(write(tmp_path, STAR), ["axes"])
    with pytest.raises(TableError, match="missing column trials"):
        rates(write(tmp_path, "arm,successes\na,1\n"), ["arm"])
    with pytest.raises(TableError, match="no rows"):
        rates(write(tmp_path, "arm,successes,trials\n"), ["arm"])
