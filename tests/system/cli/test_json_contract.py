"""Every verb with --json prints one document, which has its name and the shape that `labctl schema` says."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import click
import pytest
from support.joint.joint_labs import make_labs
from support.json_documents import judged
from support.runs.campaigns import HUMAN, make_campaign, policy, recorded_with_cameras, unblinded_copy

from labctl import cli
from labctl.checks.site.kit import TEMPLATE
from labctl.cli import call
from labctl.cli.contract.documents import BARE, DOCUMENTS, document_text
from labctl.nodes.practice import Ended
from labctl.store.campaign import Opened

FEW = ["--boot", "9", "--perm", "19"]
PERIOD = {"items": 1, "budget": 3.0, "arming": 1.0, "blocks": 2}
EPISODES = "block,arm,success\n1,a,1\n1,b,0\n2,a,1\n2,b,1\n"
COUNTS = "arm,axis,successes,trials\na,V-SC,3,5\nb,V-SC,1,5\n"
# Documents of what needs a screen, a policy's server or a robot; the tests that have one judge them.
ELSEWHERE = {
    "alerts/1": "tests/unit/alerts/test_sending.py",
    "bugreport/1": "tests/system/cli/test_bugreport.py",
    "database/1": "tests/system/postgres/test_store_copy.py",
    **dict.fromkeys(
        ("dry_run/1", "key_made/1", "queue/1", "queue_act/1", "queue_key/1", "queue_verify/1"),
        "tests/system/queue/test_submission.py",
    ),
    **dict.fromkeys(("request_made/1", "submission/1"), "tests/system/queue/test_submission.py"),
    "demo/1": "test_the_demo_says_what_it_made, below",
    "emulator/1": "tests/system/devices/test_emulate.py",
    **dict.fromkeys(("joint_act/1", "joint_serving/1"), "tests/system/joint/test_joint_json.py"),
    "keyframe_questions/1": "tests/system/reporting/test_static.py",
    "lab_moved/1": "tests/system/store/test_lab_move.py",
    "latency/1": "tests/system/checks/test_doctor_latency.py",
    "look/1": "tests/unit/reporting/test_interim_look.py",
    "media/1": "tests/system/media/test_media_verbs.py",
    "published_made/1": "tests/system/publishing/test_published.py",
    "report_again/1": "tests/system/publishing/test_published.py",
    "site_made/1": "tests/system/publishing/test_site.py",
    "static/1": "tests/system/reporting/test_static.py",
    "teleop/1": "test_how_a_drive_ended_is_a_document, below",
    "verify_published/1": "tests/system/publishing/test_published.py",
    **dict.fromkeys(
        ("joint_published/1", "report_published_joint/1", "verify_published_joint/1"),
        "tests/system/joint/test_published_parts.py",
    ),
}
WITHOUT = {"console", "schema"}  # a screen, and what prints schemas
Typed = Callable[..., Any]


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Typed:
    """A command as typed in a lab, with --json: its document, judged; and which documents were seen."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LABCTL_LAB", str(tmp_path))
    monkeypatch.setenv("LABCTL_WHO", "p01")
    (tmp_path / "lab.toml").touch()

    def run(*words: object, name: str | None = None, code: int = 0) -> Any:
        left = call([*map(str, words), "--json"])
        told = capsys.readouterr()
        assert left == code, (words, told.err)
        found = judged(told.out, name)
        run.seen.add(name or found["schema"].removeprefix("labctl."))  # type: ignore[attr-defined]
        run.verbs.add(words[0])  # type: ignore[attr-defined]
        return found

    run.seen, run.verbs = set(), set()  # type: ignore[attr-defined]
    return run


def leaves(command: click.Command, name: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, by what is typed for it."""
    if not isinstance(command, click.Group):
        yield name, command
        return
    for below in command.list_commands(click.Context(command)):
        found = command.get_command(click.Context(command), below)
        assert found is not None, (name, below)
        yield from leaves(found, f"{name} {below}".strip())


def test_every_command_has_json_but_a_screen_and_what_prints_schemas() -> None:
    commands = dict(leaves(cli.group, ""))
    assert {name.split()[0] for name in commands} == {*cli.VERBS} and len(commands) > len(cli.VERBS)
    without = {name for name, one in commands.items() if all(option.name != "as_json" for option in one.params)}
    assert without == WITHOUT


def test_every_document_is_as_its_schema_says(typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = make_campaign(tmp_path, [HUMAN, policy("zebra", skill="swift")], cameras=True, **PERIOD)
    name, table = made.name, tmp_path / "episodes.csv"
    table.write_text(EPISODES)
    (tmp_path / "counts.csv").write_text(COUNTS)
    typed("new", tmp_path / "another")
    typed("doctor")
    assert typed("plan", "protocols/p.toml")["trials"] == 4
    opened = typed(
        "open",
        tmp_path / "another/protocols/first.toml",
        "--cell",
        tmp_path / "another/cells/sim_fr3.toml",
        "--offline",
    )
    assert opened["commitment"]
    assert typed("run", name, "--headless", "--simulated-time")["complete"] is True
    one, all_ = typed("status", name, "--hours"), typed("status")
    assert one.keys() == all_.keys()
    assert {entry["campaign"] for entry in all_["campaigns"]} == {name, opened["campaign"]}
    episodes = typed("episodes", name)["episodes"]
    assert len(episodes) == 4 and "arm" not in episodes[0]
    typed("episodes", name, "--page", "page.html")
    typed("show", episodes[0]["episode"], "--campaign", name, "--save", "one.rrd")
    typed("scene", name)
    typed("stop", name)
    typed("review", name, "--list", "--who", "p09")
    typed("practice", name)
    for lines, more, did in (("blue-9513\n", [], "set"), ("blue-9513\n", ["--remove"], "removed")):
        monkeypatch.setattr("sys.stdin", io.StringIO(lines))
        assert typed("people", "code", "p07", *more)["did"] == did
    typed("people", "list")
    assert typed("close", name)["phase"] == "closed"
    assert "arms" not in typed("freeze", name, "--unreviewed")
    assert typed("unblind", name)["arms"].keys() == {one["trial"] for one in episodes}
    typed("verify")
    typed("verify", name)
    for form, out in (("table", "ops.csv"), ("episodes", "eps.csv"), ("parquet", "parquet"), ("npz", "npz")):
        typed("export", name, "--to", form, "--out", out)
    typed("report", name, "--out", "report", *FEW)
    typed("analyze", "ops.csv", "--reference", "human", "--margin", "1.5", "--random", "session", *FEW)
    typed("analyze", table, *FEW)
    typed("import", "csv", table, "--out", "imported.csv")
    typed("experiment", "ops.csv", "--sizes", "2", "--outer", "3", "--inner", "9", "--tau", "3")
    typed("rates", "counts.csv", "--by", "arm", name="rates/1")
    typed("compare", "17/20", "14/20")
    typed("compare", "17/20", "14/20", "--paired", "5,2")
    typed("compare", "9/10,8/10", "7/10,4/10")
    typed("compare", "--counts", "counts.csv", "--between", "arm", "--within", "axis")
    typed("power", "--half-width", "0.1", "--trial-s", "60")
    typed("power", "--rates", "0.9,0.4", "--n", "10")
    typed("power", "--discordant", "0.4", "--difference", "0.3", "--n", "20")
    typed("power", "--rmst", "20,40", "--tau", "60", "--items", "1", "--budget-s", "60", "--n", "4", "--runs", "20",
          "--perm", "19", "--trial-s", "60")  # fmt: skip
    backups = tmp_path.with_name(f"{tmp_path.name}-backups")
    for more in ([], ["--list"], ["--check"]):
        typed("backup", backups, *more)
    typed("restore", backups, tmp_path.with_name(f"{tmp_path.name}-again"))
    labs = make_labs(tmp_path / "several")
    typed("joint", "open", labs.host / "protocols/two.toml", "--name", "other", "--lab", labs.host)
    typed("joint", "status", "two", "--lab", labs.host)
    typed("joint", "verify", "two", "--lab", labs.host)
    typed("qualify", "new", "kit.toml")
    assert (tmp_path / "kit.toml").read_text() == TEMPLATE
    (tmp_path / "labels.csv").write_text("episode,label\n" + "".join(f"e{i},{i % 3}\n" for i in range(60)))
    typed("qualify", "assessor", "kit.toml", "labels.csv", "labels.csv", "--person", "p9")
    assert [one["person"] for one in typed("qualify", "list")["assessors"]] == ["p9"]
    for asked in (
        ["extend", name, "none.toml", "--cell", "cells/c.toml"],
        ["look", name],
        ["stamp", name],
        ["database", "check", name],
        ["media", "check", name],
        ["lab", "move", "."],
        ["static", name, "--policy", "zebra"],
        ["publish", name, "--licence", "mine", "--out", "published"],
        ["site", "nowhere", "--out", "site"],
        ["queue", "approve", "s-none", "--reason", "x"],
        ["submit", "key", "none/k.pem", "--who", "", "--contact", "x"],
        ["qualify", "assessor", "none.toml", "a.csv", "b.csv", "--person", "p9"],
        ["joint", "status", "none"],
        ["emulate", "fr3", "--host", "127.0.0.9", "--stats"],
        ["teleop", "--cell", "cells/c.toml"],
        ["demo", "--dir", "."],
    ):
        failed = typed(*asked, code=typed_code(asked[0]))
        assert failed["schema"] == "labctl.error/1" and failed["message"]
    assert {*cli.VERBS} - typed.verbs == {"bugreport", *WITHOUT}
    assert {*DOCUMENTS} - typed.seen == {*ELSEWHERE}, "each document is judged, here or there"


def typed_code(verb: str) -> int:
    """What each of those ends with."""
    return {"look": 1, "queue": 1, "stamp": 2, "emulate": 69}.get(verb, 2)


def test_a_schema_is_printed_for_every_document_and_written_where_it_is_asked_for(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert call(["schema", "all"]) == 0
    names = capsys.readouterr().out.split()
    assert names == [f"labctl.{name}" for name in DOCUMENTS]
    for name in names:
        assert call(["schema", name]) == 0
        schema = json.loads(capsys.readouterr().out)
        assert schema["title"] == name
        assert (name.removeprefix("labctl.") in BARE) == ("properties" not in schema)
    assert call(["schema", "status", "--out", "-"]) == 0
    assert capsys.readouterr().out == document_text("status/2")
    assert call(["schema", "status", "--out", str(tmp_path / "s.json")]) == 0
    assert (tmp_path / "s.json").read_text() == document_text("status")
    assert call(["schema", "stauts"]) == 2
    assert "no schema 'stauts'; of files: protocol" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["analyze", "t.csv"], {"kind": "bad_input", "exit_code": 2, "file": "t.csv", "line": 3}),
        (["compare", "3/2", "1/2"], {"kind": "bad_input", "exit_code": 2, "file": None, "line": None}),
        (["status", "--colour"], {"kind": "bad_input", "exit_code": 2, "file": None, "line": None}),
        (["no-such-verb"], {"kind": "bad_input", "exit_code": 2, "file": None, "line": None}),
    ],
)
def test_an_error_is_a_document_too_and_its_line_stands_on_stderr(
    words: list[str], told: dict[str, Any], typed: Typed, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "t.csv").write_text("episode,arm,object,kind,time_s\ne1,a,cup,success,1\ne2,a,cup,sucess,2\n")
    assert call([*words, "--json"]) == 2
    printed = capsys.readouterr()
    found = judged(printed.out)
    assert told.items() <= found.items()
    assert printed.err == f"error: {found['message']}\n"
    assert found["remedy"] is None or found["message"].endswith(found["remedy"])


def test_a_dash_is_standard_input_and_output(
    typed: Typed, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def piped(text: str, *words: str) -> str:
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
        assert call(list(words)) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    (tmp_path / "e.csv").write_text(EPISODES)
    (tmp_path / "c.csv").write_text(COUNTS)
    assert piped(EPISODES, "analyze", "-", *FEW, "--json") == piped("", "analyze", "e.csv", *FEW, "--json")
    assert piped(COUNTS, "rates", "-", "--json") == piped("", "rates", "c.csv", "--json")
    imported = piped(EPISODES, "import", "csv", "-", "--out", "-")
    assert imported.splitlines()[0] == "block,arm,success" and len(imported.splitlines()) == 5
    piped(EPISODES, "report", "-", "--out", "report", *FEW)
    assert (tmp_path / "report/index.html").exists() or list((tmp_path / "report").glob("*.html"))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"block,arm\n1\n")))
    assert call(["analyze", "-"]) == 2
    assert capsys.readouterr().err.startswith("error: -:")


def test_a_table_of_a_campaign_goes_to_a_pipe(
    recordings: Any, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = str(recordings.of(recorded_with_cameras))
    assert call(["export", folder, "--to", "table", "--out", str(tmp_path / "t.csv")]) == 0
    capsys.readouterr()
    assert call(["export", folder, "--to", "table", "--out", "-"]) == 0
    assert capsys.readouterr().out == (tmp_path / "t.csv").read_text("utf-8")
    assert call(["export", folder, "--to", "table", "--out", "-", "--json"]) == 2
    assert "both go to standard output" in capsys.readouterr().err
    assert call(["export", folder, "--to", "npz", "--out", "-"]) == 2
    assert "--out - prints a table" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("ended", "code"), [(Ended("", False, True, 4.0), 0), (Ended("unplugged", True, True, 1.0), 69)]
)
def test_how_a_drive_ended_is_a_document(
    ended: Ended, code: int, typed: Typed, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("labctl.runtime.practice_run.practise", lambda *given, **more: ended)
    assert typed("teleop", "--cell", "c.toml", code=code)["why"] == ended.why


def test_the_demo_says_what_it_made(
    typed: Typed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, recordings: Any
) -> None:
    """Its campaign is one that was run already: here it is not the run that is judged."""
    folder = unblinded_copy(tmp_path / "ran", str(recordings.of(recorded_with_cameras)))
    made = Opened(folder, folder.name, "c0ffee", "head")
    monkeypatch.setattr("labctl.store.campaign.open_campaign", lambda *given, **more: made)
    monkeypatch.setattr("labctl.runtime.campaign_run.run_campaign", lambda *given, **more: True)
    for verb in ("close", "freeze", "unblind"):
        monkeypatch.setattr(f"labctl.store.campaign.{verb}_campaign", lambda *given, **more: ["done"])
    told = typed("demo", "--dir", "shown")
    assert Path(told["report"]).is_file() and told["campaign"] == folder.name
