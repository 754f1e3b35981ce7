"""`labctl experiment` as typed: the paper's tables from anybody's operations, and one line for a mistake."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labctl import cli

HEAD = "episode,arm,object,op_index,kind,time_s,budget_s"


def typed(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.call(line.split())
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """Two arms, 6 and 8 episodes of one object, quick and slow; a third arm that met another object alone."""
    rows = [f"q{i},quick,cup,1,success,{5 + i}.25,60" for i in range(6)]
    rows += [f"s{i},slow,cup,1,success,{40 + i}.25,60" for i in range(8)]
    rows += [f"o{i},other,pan,1,success,{20 + i},60" for i in range(2)]
    path = tmp_path / "operations.csv"
    path.write_text("\n".join([HEAD, *rows]) + "\n")
    return path


def test_every_pair_at_every_size_once_and_with_replacement(table: Path, capsys: pytest.CaptureFixture[str]):
    code, out, err = typed(f"experiment {table} --sizes 4,7 --outer 20 --inner 30", capsys)
    assert (code, err) == (0, "")
    rows = [line.split() for line in out.splitlines() if line.strip().startswith("quick vs slow")]
    assert [row[3] for row in rows] == ["4", "4", "7"], "7 episodes cannot be drawn once each from 6"
    always, never = ["100.0", "±", "0.0"], ["0.0", "±", "0.0"]  # all of one and none of the other by 30 s, all by 60 s
    assert [row[-12:-3] for row in rows[::2]] == [always + never + always] * 2
    assert [row[4] for row in rows] == ["once", "with", "with"] and rows[1][-9:-6] == never
    assert "other" not in out and "are not power" in out and "20 subsamples, 30 resamples each" in out


def test_where_nothing_differs_halves_and_mixed_arms_at_three_levels(table: Path, capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed(f"experiment {table} --null --outer 20 --inner 30 --json", capsys)
    found = json.loads(out)
    assert code == 0 and found["schema"] == "labctl.experiment/1"
    kinds = [(one["kind"], one["a"], one["b"], one["episodes"]) for one in found["results"]]
    assert kinds == [
        ("halves", "other", "other", [[1, 1]]),
        ("halves", "quick", "quick", [[3, 3]]),
        ("halves", "slow", "slow", [[4, 4]]),
        ("mixed", "quick", "slow", [[6, 8]]),
    ]
    assert all(one["alphas"] == [0.01, 0.05, 0.1] for one in found["results"])
    code, out, _ = typed(f"experiment {table} --null --outer 20 --inner 30", capsys)
    assert code == 0 and "quick and slow, mixed" in out and "slow, its halves" in out and "mean p" in out


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--arms quick,sloe", "--arms: no arm 'sloe' in"),
        ("--arms other", "no two arms met the same object"),
        ("--sizes 4,x", "--sizes is '4,x'; allowed are whole numbers"),
    ],
)
def test_a_mistake_is_one_line(table: Path, capsys: pytest.CaptureFixture[str], options: str, said: str):
    code, out, err = typed(f"experiment {table} {options}", capsys)
    assert (code, out) == (2, "") and said in err and err.count("\n") == 1
