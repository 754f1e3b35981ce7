"""Values that no verb can work with are a user's mistake: one line, exit code 2, no traceback, nothing written."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.cli import call
from labctl.cli.options import campaign_folders
from labctl.errors import Exit, InputError

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "published" / "simulated-cell"
LAB = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab"
LONG = "a" * 300  # longer than a file system takes in one name
TABLE = "episode,arm,object,kind,time_s\ne1,a,x,success,10\ne2,b,x,success,12\n"
PAIRS = ["power", "--discordant", "0.3", "--difference", "0.15", "--trial-s", "3600"]


@pytest.mark.parametrize(
    "words",
    [
        ["power", "--half-width", "nan"],
        ["power", "--rates", "0.8,0.7", "--target", "nan"],
        [*PAIRS, "--evenings", "nan"],
        [*PAIRS, "--evenings", "inf"],
        ["compare", "17/20", "14/20", "--alpha", "nan"],
        ["experiment", "table.csv", "--tau", "nan"],
        ["verify", LONG],
        ["report", f"{LONG}.csv", "--out", "r"],
        ["report", "table.csv", "--out", "table.csv/r", "--boot", "9", "--perm", "9"],
        ["submit", "key", ".", "--who", "n", "--contact", "c"],
        ["submit", "key", "ours.toml", "--who", "n", "--contact", "c"],
        ["console", "first", "--web", "--port", "70000"],
        ["console", "first", "--port", "8000"],
        ["run", "first", "--headless", "--attended", "--simulated-time"],
        [*PAIRS, "--evenings", "3", "--n", "40"],
        ["doctor", "cell.toml", "--alerts"],
        ["doctor", "cell.toml", "--latency", "--protocol", "p.toml"],
        ["emulate", "fr3", "--arg", "name=joint_reflex"],
        ["console", "first", "--host", "127.0.0.2"],
        ["report", str(EXAMPLE), "--out", "r", "--head", "1:0123456789abcdef"],
        ["report", str(EXAMPLE), "--out", "r", "--seed", "1"],
        ["report", str(EXAMPLE), str(EXAMPLE), "--out", "r", "--commitment", "0123456789abcdef"],
    ],
    ids=lambda words: " ".join(words)[:50],
)
def test_what_cannot_be_is_one_line_and_writes_nothing(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("table.csv").write_text(TABLE, "utf-8")
    assert call(words) == Exit.BAD_INPUT
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ") and printed.err.count("\n") == 1 and not printed.out
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


@pytest.mark.parametrize("option", ["--page", "--spans"])
def test_a_file_that_is_no_page_and_no_spans_is_not_written_over(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`labctl status first --page protocols/first.toml` made HTML of the protocol."""
    named = tmp_path / "first.toml"
    named.write_text("kept", "utf-8")
    assert call(["status", "old", option, str(named), "--lab", str(LAB)]) == Exit.BAD_INPUT
    said = capsys.readouterr().err
    assert f"{option} {named}: a " in said and "ends in" in said and said.count("\n") == 1
    assert named.read_text("utf-8") == "kept"


def test_evenings_without_time_for_two_pairs_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert call([*PAIRS, "--evenings", "0.01"]) == Exit.BAD_INPUT
    assert "time for 0 trials in 0.01 evenings, and two of each arm are 4" in capsys.readouterr().err


def test_a_campaign_without_a_name_is_none_and_not_every_one() -> None:
    """`labctl media trim "$C"`, where C is not set, took away the copies of all."""
    with pytest.raises(InputError, match="no campaign ''"):
        campaign_folders("", LAB)
    assert campaign_folders(None, LAB) == campaign_folders("old", LAB)


def test_a_schema_takes_the_place_of_a_schema_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own, out = tmp_path / "thesis.md", tmp_path / "cell.json"
    own.write_text("chapter 1", "utf-8")
    assert call(["schema", "cell", "--out", str(own)]) == 2
    assert "is there and is no schema" in capsys.readouterr().err and own.read_text("utf-8") == "chapter 1"
    assert call(["schema", "cell", "--out", str(out)]) == call(["schema", "card", "--out", str(out)]) == 0
