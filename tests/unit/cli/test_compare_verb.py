"""`labctl compare` and `labctl rates` as typed: one line for a mistake, numbers and words otherwise."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labctl import cli


def typed(line: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.call(line.split())
    said = capsys.readouterr()
    return code, said.out, said.err


def test_two_counts_are_compared_in_numbers_and_words(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed("compare 17/20 14/20", capsys)
    assert code == 0
    assert "85.0" in out and "[48.1, 85.5]" in out and "+15.0 points [−11.1, +39.0]" in out
    assert "Not resolved at this N" in out and "Boschloo" in out


def test_json_holds_the_whole_comparison(capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed("compare 17/20 14/20 --paired 5,2 --json", capsys)
    found = json.loads(out)
    assert code == 0 and found["schema"] == "labctl.compare/1" and found["discordant"] == [5, 2]
    assert set(found) >= {"first", "second", "difference", "ci", "p", "p_value", "test", "verdict", "alpha"}


def test_lists_are_strata_and_a_table_is_compared_pair_by_pair(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    code, out, _ = typed("compare 9/10,8/10 7/10,4/10", capsys)
    assert code == 0 and "Cochran-Mantel-Haenszel" in out
    file = tmp_path / "c.csv"
    file.write_text("arm,axis,successes,trials\na,V-SC,9,10\nb,V-SC,7,10\na,S-MO,8,10\nb,S-MO,4,10\nb,S-INT,1,5\n")
    code, out, _ = typed(f"compare --counts {file} --between arm --within axis", capsys)
    assert code == 0 and "a - b" in out and "S-INT: left out of 1 pair" in out
    code, out, _ = typed(f"compare --counts {file} --between arm --within axis --json", capsys)
    assert json.loads(out)["pairs"][0]["missing"] == ["S-INT"]
    code, out, _ = typed(f"rates {file} --by category,arm --json", capsys)
    assert [(r["category"], r["arm"], r["trials"]) for r in json.loads(out)] == [
        ("visual", "a", 10),
        ("visual", "b", 10),
        ("semantic", "a", 10),
        ("semantic", "b", 15),
    ]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("compare 17/20", "takes two counts and got 1"),
        ("compare 17/20 21/20", "21/20 cannot be"),
        ("compare 17/20 0/0", "0/0 cannot be"),
        ("compare seventeen 1/2", "'seventeen' is no count"),
        ("compare 1/2,1/2 1/2", "2 strata and 1/2 1"),
        ("compare 1/2,1/2 1/2,1/2 --paired 0,0", "--paired goes with one K/N each"),
        ("compare 17/20 14/20 --paired 5", "allowed are two counts such as 5,2"),
        ("compare 17/20 14/20 --paired 1,2", "b - c must be the difference"),
        ("compare 1/2 1/2 --between arm", "need --counts FILE"),
        ("compare 1/2 1/2 --counts t.csv", "goes with --between COLUMN"),
        ("compare 1/2 1/2 --alpha 0", "--alpha"),
        ("compare --counts none.csv --between arm", "none.csv: cannot be read"),
    ],
)
def test_a_mistake_is_one_line(line: str, said: str, capsys: pytest.CaptureFixture[str]):
    code, out, err = typed(line, capsys)
    assert code == 2 and out == ""
    assert said in err and err.startswith("error: ") and err.count("\n") == 1
