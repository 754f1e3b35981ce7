"""A person's mistakes and a machine's shortages: one line, an exit code, nothing half-written."""

from __future__ import annotations

import contextlib
import io
import os
import resource
import sqlite3
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from labctl import cli

HEADER = "episode,arm,object,kind,time_s,budget_s\n"
GOOD = "e1,human,towels,success,5.0,120\ne1,human,towels,censored,10,120\ne2,robot,towels,success,9.0,120\n"


@dataclass(frozen=True)
class Answer:
    """What the command line said."""

    code: int
    out: str
    err: str


def labctl(*arguments: str | Path, cwd: Path) -> Answer:
    """Type a command, in this process: the same function the console script calls."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(cwd), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = cli.call([str(argument) for argument in arguments])
    return Answer(code, out.getvalue(), err.getvalue())


def labctl_on_a_full_disk(*arguments: str | Path, cwd: Path, room: int) -> Answer:
    """Type a command in a process whose files cannot grow past `room` bytes each. It writes no bytecode: Python puts
    half of one in its place and says nothing, and every later process of this checkout would fail on it.
    """

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))

    command = [sys.executable, "-B", "-c", "import labctl.cli; labctl.cli.main()", *map(str, arguments)]
    done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, preexec_fn=limit, timeout=120)
    return Answer(done.returncode, done.stdout, done.stderr)


def is_one_line(answer: Answer, *parts: str, code: int) -> None:
    """The answer is one `error:` line that holds all parts, and the exit code."""
    assert answer.err.startswith("error: ") and answer.err.count("\n") == 1, answer.err
    assert [part for part in parts if part not in answer.err] == [], answer.err
    assert answer.code == code


@pytest.fixture(autouse=True)
def no_lab_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LABCTL_LAB", raising=False)


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    folder = tmp_path / "lab"
    assert labctl("new", folder, cwd=tmp_path).code == 0
    return folder


@pytest.fixture
def campaign(lab: Path) -> Path:
    assert labctl("open", "protocols/first.toml", "--cell", "cells/sim_fr3.toml", cwd=lab).code == 0
    return lab / "campaigns" / "first"


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ("arming_s", "armming_s", ("first.toml:13", "armming_s", "arming_s")),
        ("two_totes.toml", "no_totes.toml", ("first.toml:7", "no_totes.toml", "two_totes.toml")),
        ("budget_s_per_item = 30.0", "budget_s_per_item = 0.0", ("first.toml:12", "budget_s_per_item")),
        ("arming_s = 6.0", "arming_s = -6.0", ("first.toml:13", "arming_s", "-6")),
        ("items_staged = 4", 'items_staged = "four"', ("first.toml:11", "items_staged")),
        ('"towels"]', '"towls"]', ("first.toml", "towls", "towels")),
        ("tau_s = 120.0", "tau_s = 500.0", ("first.toml", "tau_s")),
        ('controller = "sim_person"', 'controller = "sim_persom"', ("first.toml", "sim_persom", "sim_person")),
    ],
    ids=[
        "unknown key",
        "missing fixture",
        "budget 0",
        "negative time",
        "wrong type",
        "unknown object",
        "tau",
        "driver",
    ],
)
def test_a_wrong_protocol_is_refused_with_file_and_line_and_opens_nothing(
    lab: Path, old: str, new: str, parts: tuple[str, ...]
):
    change(lab / "protocols" / "first.toml", old, new)
    answer = labctl("open", "protocols/first.toml", "--cell", "cells/sim_fr3.toml", cwd=lab)
    is_one_line(answer, *parts, code=2)
    assert list((lab / "campaigns").iterdir()) == []


def test_a_wrong_protocol_is_refused_by_plan_too(lab: Path):
    change(lab / "protocols" / "first.toml", "arming_s", "armming_s")
    is_one_line(labctl("plan", "protocols/first.toml", cwd=lab), "first.toml:13", "armming_s", code=2)


def test_broken_toml_is_refused_with_its_line(lab: Path):
    change(lab / "cells" / "sim_fr3.toml", 'name = "sim-fr3"', 'name = "sim-fr3')
    answer = labctl("open", "protocols/first.toml", "--cell", "cells/sim_fr3.toml", cwd=lab)
    is_one_line(answer, "sim_fr3.toml:4", code=2)


@pytest.mark.parametrize(
    ("rows", "line", "parts"),
    [
        ("e1,human,towels,success,-1,120\n", 2, ("time_s", "-1")),
        ("e1,human,towels,censored,5,120\ne1,human,towels,censored,6,120\n", 3, ("e1", "censored")),
        ("e1,human,towels,success,5,0\n", 2, ("budget_s", "0")),
        ("e1,human,towels,finished,5,120\n", 2, ("finished", "success, censored, ghost")),
        ("e1,human,towels,success,nan,120\n", 2, ("time_s", "nan")),
        ("e1,human,towels,success,5,120\ne1,robot,towels,success,5,120\n", 3, ("arm", "robot", "human")),
    ],
    ids=["negative time", "two censored rows", "budget 0", "unknown kind", "not a number", "two arms"],
)
@pytest.mark.parametrize("verb", ["analyze", "report"])
def test_a_wrong_table_is_refused_with_file_and_line_and_writes_nothing(
    tmp_path: Path, verb: str, rows: str, line: int, parts: tuple[str, ...]
):
    (tmp_path / "table.csv").write_text(HEADER + rows)
    out = ("--out", "report") if verb == "report" else ()
    is_one_line(labctl(verb, "table.csv", *out, cwd=tmp_path), f"table.csv:{line}", *parts, code=2)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]


def test_a_table_with_an_unknown_column_names_the_known_ones(tmp_path: Path):
    (tmp_path / "table.csv").write_text(HEADER.strip() + ",colour\ne1,human,towels,success,5,120,red\n")
    is_one_line(labctl("analyze", "table.csv", cwd=tmp_path), "colour", "tote_side", "--extra", code=2)
    assert labctl("analyze", "table.csv", "--extra", "--boot", "9", "--perm", "9", cwd=tmp_path).code == 0


@pytest.mark.parametrize(
    ("row", "parts"),
    [("a,6,5\n", ("6", "5")), ("a,-1,5\n", ("successes", "-1")), ("a,x,5\n", ("successes", "x"))],
    ids=["more successes than trials", "negative", "not a number"],
)
def test_wrong_counts_are_refused_with_file_and_line(tmp_path: Path, row: str, parts: tuple[str, ...]):
    (tmp_path / "counts.csv").write_text("arm,successes,trials\n" + row)
    is_one_line(labctl("rates", "counts.csv", "--by", "arm", cwd=tmp_path), "counts.csv:2", *parts, code=2)


@pytest.mark.parametrize("verb", ["plan", "analyze", "rates"])
def test_a_missing_file_is_one_line(tmp_path: Path, verb: str):
    is_one_line(labctl(verb, "nothing.here", cwd=tmp_path), "nothing.here", code=2)


@pytest.mark.parametrize("verb", ["analyze", "rates"])
def test_a_picture_instead_of_a_table_is_one_line(tmp_path: Path, verb: str):
    (tmp_path / "photo.csv").write_bytes(b"\x89PNG\r\n\x1a\n\x00\xff")
    is_one_line(labctl(verb, "photo.csv", cwd=tmp_path), "photo.csv", "UTF-8", code=2)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_one_line(lab: Path):
    (lab / "protocols" / "first.toml").chmod(0)
    answer = labctl("plan", "protocols/first.toml", cwd=lab)
    is_one_line(answer, "first.toml", "permission", code=2)


@pytest.mark.parametrize("verb", ["status", "episodes", "verify", "close", "freeze", "unblind"])
def test_an_unknown_campaign_lists_the_known_ones(campaign: Path, verb: str):
    answer = labctl(verb, "frist", cwd=campaign.parents[1])
    is_one_line(answer, "no campaign 'frist'", "first", code=2)


def test_outside_a_lab_the_remedy_is_named(tmp_path: Path):
    is_one_line(labctl("status", cwd=tmp_path), "--lab", "labctl new", code=2)


def test_an_unknown_verb_and_a_bad_option_are_one_line(tmp_path: Path):
    is_one_line(labctl("statsu", cwd=tmp_path), "statsu", "status", code=2)
    is_one_line(labctl("plan", "x.toml", "--staging-s", "soon", cwd=tmp_path), "--staging-s", "soon", code=2)


def test_an_unknown_export_format_says_which_ones_there_are(campaign: Path):
    answer = labctl("export", "first", "--to", "xlsx", "--out", "x.xlsx", cwd=campaign.parents[1])
    is_one_line(answer, "xlsx", "table", "parquet", code=2)
    assert not (campaign.parents[1] / "x.xlsx").exists()


def test_a_report_before_unblinding_is_refused_with_what_to_do(campaign: Path):
    answer = labctl("report", "first", "--out", "report", cwd=campaign.parents[1])
    is_one_line(answer, "open", "unblind", code=1)
    assert not (campaign.parents[1] / "report").exists()


def test_early_unblinding_asks_for_a_reason(campaign: Path):
    is_one_line(labctl("unblind", "first", cwd=campaign.parents[1]), "--reason", code=1)


def test_a_locked_journal_is_one_line_and_nothing_is_written(campaign: Path):
    before = (campaign / "heads.log").read_bytes()
    with sqlite3.connect(campaign / "journal.db", isolation_level=None) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        answer = labctl("close", "first", "--reason", "test", cwd=campaign.parents[1])
        holder.execute("ROLLBACK")
    holder.close()
    is_one_line(answer, "lock", code=69)
    assert (campaign / "heads.log").read_bytes() == before
    assert "open" in labctl("status", "first", cwd=campaign.parents[1]).out


def test_a_full_disk_at_opening_is_one_line_and_leaves_no_campaign(lab: Path):
    command = ("open", "protocols/first.toml", "--cell", "cells/sim_fr3.toml")
    is_one_line(labctl_on_a_full_disk(*command, cwd=lab, room=8192), code=69)
    assert list((lab / "campaigns").glob("[!.]*")) == []
    assert labctl(*command, cwd=lab).code == 0


def test_a_full_disk_at_closing_is_one_line_and_the_campaign_stays_whole(campaign: Path):
    size = (campaign / "journal.db").stat().st_size
    answer = labctl_on_a_full_disk("close", "first", "--reason", "test", cwd=campaign.parents[1], room=size)
    is_one_line(answer, code=69)
    assert labctl("verify", "first", cwd=campaign.parents[1]).code == 0
    assert labctl("close", "first", "--reason", "test", cwd=campaign.parents[1]).code == 0


@pytest.mark.thorough
def test_a_full_disk_at_a_report_is_one_line_and_leaves_no_folder(tmp_path: Path):
    import matplotlib.font_manager as fonts  # it lists them in a file once, and says so where that cannot be written

    assert fonts.fontManager.ttflist
    (tmp_path / "table.csv").write_text(HEADER + GOOD)
    command = ("report", "table.csv", "--out", "report", "--boot", "9", "--perm", "9")
    is_one_line(labctl_on_a_full_disk(*command, cwd=tmp_path, room=2000), code=69)
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    assert labctl(*command, cwd=tmp_path).code == 0


def test_a_folder_that_holds_something_else_is_not_overwritten_by_a_report(tmp_path: Path):
    (tmp_path / "table.csv").write_text(HEADER + GOOD)
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    answer = labctl("report", "table.csv", "--out", "thesis", "--boot", "9", "--perm", "9", cwd=tmp_path)
    is_one_line(answer, "thesis", "--out", code=2)
    assert [path.name for path in (tmp_path / "thesis").iterdir()] == ["chapter.txt"]


def test_a_new_lab_over_an_old_one_is_refused(lab: Path):
    before = (lab / "protocols" / "first.toml").read_bytes()
    is_one_line(labctl("new", lab, cwd=lab.parent), "there already", code=2)
    assert (lab / "protocols" / "first.toml").read_bytes() == before
