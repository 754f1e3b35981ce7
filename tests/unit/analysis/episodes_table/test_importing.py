"""Other people's results become an episodes table whole, with a word on what was left out, or not at all."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from support.foreign_results import EPISODES, LOG, SESSIONS

from labctl import cli
from labctl.analysis.episodes_table.reading import read_episodes
from labctl.analysis.episodes_table.stages import stage_count

pytestmark = pytest.mark.usefixtures("no_collector")


def run(*words: str | Path) -> Result:
    """The verb as typed; its error is that of `labctl`, raised."""
    return CliRunner().invoke(cli.group, ["import", *map(str, words)])


def told(done: Result) -> str:
    """The one line of a refusal."""
    assert done.exit_code != 0 and done.exception is not None
    said = str(done.exception)
    assert "\n" not in said
    return said


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    folder = tmp_path / "dump"
    folder.mkdir()
    (folder / "sessions.csv").write_text(SESSIONS)
    (folder / "episodes.csv").write_text(EPISODES)
    return folder


def test_roboarenas_dump_becomes_blocks_in_the_order_they_ran_without_names(dump: Path, tmp_path: Path) -> None:
    done = run("roboarena", dump, "--out", tmp_path / "t.csv")
    assert done.exit_code == 0, done.exception
    written = (tmp_path / "t.csv").read_text()
    assert written.splitlines() == [
        "block,arm,success,score,position,site,evaluator,instruction,steps,compared,preferred",
        "u-early,q,0,0.4,1,Lab East,e01,open the drawer,399,q|p,tie",
        "u-early,p,0,0,2,Lab East,e01,open the drawer,399,q|p,tie",
        "u-late,p,0,0.25,1,Lab West,e02,put the cup away,399,p|q,q",
        "u-late,q,1,1.0,2,Lab West,e02,put the cup away,120,p|q,q",
        "u-late,r,0,0.5,3,Lab West,e02,put the cup away,399,p|q,q",
    ]
    assert "lab" not in written.replace("Lab", "")
    assert done.output.splitlines() == [
        "1 session left out: their evaluation_notes do not say VALID_SESSION",
        "1 episode left out: their session_id is in no row of sessions.csv",
        "2 evaluators, numbered in order of their first session; no name is written",
        f"wrote 5 episodes of 3 arms in 2 blocks to {tmp_path / 't.csv'}",
    ]


def test_scores_in_percent_are_told_by_the_file(dump: Path, tmp_path: Path) -> None:
    percent = EPISODES.replace("0.25", "25").replace("1.0,", "100,").replace(",0.5,", ",50,").replace(",0.4,", ",40,")
    (dump / "episodes.csv").write_text(percent)
    assert "partial_success was read as percent" in run("roboarena", dump, "--out", tmp_path / "t.csv").output
    assert read_episodes(tmp_path / "t.csv").number["score"].tolist() == [0.4, 0, 0.25, 1, 0.5]
    (dump / "episodes.csv").write_text(percent.replace(",50,", ",0.5,"))
    said = told(run("roboarena", dump, "--out", tmp_path / "u.csv"))
    assert "episodes.csv:4: partial_success is 0.5, in a file whose others go beyond 1" in said
    assert not (tmp_path / "u.csv").exists()


def test_a_session_in_which_a_policy_ran_twice_is_left_out_and_counted(dump: Path, tmp_path: Path) -> None:
    (dump / "episodes.csv").write_text(EPISODES + "9,8,q,again,0,0.1,5,,2026-02-01 10:20:00\n")
    done = run("roboarena", dump, "--out", tmp_path / "t.csv", "--json")
    assert json.loads(done.output)["notes"][0] == "1 session left out: a policy has two episodes"


def test_a_dump_without_a_file_or_a_column_is_one_line(dump: Path, tmp_path: Path) -> None:
    out = ("--out", tmp_path / "t.csv")
    assert told(run("roboarena", dump / "no", *out)).endswith(
        "is no folder; give the one with the dump's two CSV files"
    )
    (dump / "episodes.csv").write_text(EPISODES.replace("partial_success", "score"))
    assert "episodes.csv:1: missing column partial_success; needed are session_id," in told(
        run("roboarena", dump, *out)
    )
    (dump / "episodes.csv").unlink()
    assert "holds no CSV file of episodes, one with the columns session_id," in told(run("roboarena", dump, *out))
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        (
            "sessions",
            "1,8,u-early",
            "1,7,u-early",
            "sessions.csv:6: id '7' stands in line 2 too; every session has",
        ),
        ("sessions", "u-early", "u-late", "sessions.csv:6: session_uuid 'u-late' stands in line 2 too"),
        ("sessions", "u-early", "", "sessions.csv:6: session_uuid is empty"),
        ("sessions", "evaluation_location", "session_uuid", "sessions.csv:1: column 'session_uuid' appears 2 times"),
        ("episodes", "command", "policy_name", "episodes.csv:1: column 'policy_name' appears 2 times; keep one"),
        (
            "episodes",
            "0.25",
            "1.2",
            "episodes.csv:2: partial_success is 1.2, the most of the file: neither a share",
        ),
        ("episodes", "0.25", "inf", "episodes.csv:2: score is 'inf'; allowed is a number from 0 to 1"),
        ("episodes", "1,7,p,", "1,7,a\x07b,", "episodes.csv:2: arm is 'a\\x07b', with a line break or another control"),
    ],
)
def test_what_stands_twice_or_cannot_be_meant_in_a_dump_is_one_line_with_its_place(
    dump: Path, tmp_path: Path, file: str, old: str, new: str, said: str
) -> None:
    text = {"sessions": SESSIONS, "episodes": EPISODES}[file]
    (dump / f"{file}.csv").write_text(text.replace(old, new))
    assert said in told(run("roboarena", dump, "--out", tmp_path / "t.csv"))
    assert not (tmp_path / "t.csv").exists()


def test_a_session_that_says_it_is_not_valid_is_left_out_and_a_preference_that_cannot_be_read_is_counted(
    dump: Path, tmp_path: Path
) -> None:
    (dump / "sessions.csv").write_text(SESSIONS.replace("VALID_SESSION: ok", "VALID_SESSION: no"))
    done = run("roboarena", dump, "--out", tmp_path / "t.csv")
    assert "1 session left out: their evaluation_notes say VALID_SESSION no" in done.output
    (dump / "sessions.csv").write_text(SESSIONS.replace("PREFERENCE=B", "PREFERENCE=the second"))
    done = run("roboarena", dump, "--out", tmp_path / "t.csv", "--force")
    assert "1 session with no preference that can be read: A, B or TIE, about two policies that ran" in done.output


def eval_info(tmp_path: Path, name: str, document: object) -> Path:
    path = tmp_path / name / "eval_info.json"
    path.parent.mkdir()
    path.write_text(json.dumps(document))
    return path


def test_lerobots_runs_are_paired_by_seed_or_by_number_and_called_as_their_folder(tmp_path: Path) -> None:
    first, second = (
        eval_info(tmp_path, name, {"per_episode": [{"success": s, "seed": 100 + i} for i, s in enumerate(done)]})
        for name, done in (("act", [True, False]), ("pi0", [True, True]))
    )  # fmt: skip
    assert run("lerobot", first, second, "--out", tmp_path / "t.csv").exit_code == 0
    table = read_episodes(tmp_path / "t.csv")
    assert table.blocks == ("seed 100", "seed 101") and table.grid("success").tolist() == [[1, 1], [0, 1]]
    tasks = [{"task_group": "libero", "task_id": k, "metrics": {"successes": [True, False]}} for k in (0, 1)]
    done = run("lerobot", eval_info(tmp_path, "x", {"per_task": tasks}), "--arm", "mine", "--out", tmp_path / "u.csv")
    assert done.output.startswith("episodes of one number are taken as a block: that holds if all runs had one --seed")
    assert read_episodes(tmp_path / "u.csv").blocks[2] == "libero/1 episode 0"


def test_lerobots_runs_of_which_one_has_no_seeds_are_paired_by_number_all(tmp_path: Path) -> None:
    seeds = {"act": [100, 101], "pi0": [None, None]}
    runs = [
        eval_info(
            tmp_path, name, {"per_episode": [{"episode_ix": i, "success": True, "seed": s} for i, s in enumerate(own)]}
        )
        for name, own in seeds.items()
    ]
    done = run("lerobot", *runs, "--out", tmp_path / "t.csv")
    assert done.output.startswith("episodes of one number are taken as a block: that holds if all runs had one --seed")
    table = read_episodes(tmp_path / "t.csv")
    assert table.blocks == ("episode 0", "episode 1") and table.grid("success").tolist() == [[1, 1], [1, 1]]


@pytest.mark.parametrize("times", ["1.0,,3.0", "1.0,,"])
def test_a_stage_without_a_time_stays_a_column_and_what_is_written_is_read_again(tmp_path: Path, times: str) -> None:
    (tmp_path / "s.csv").write_text(f"block,arm,success,stage_1_s,stage_2_s,stage_3_s\n1,a,0,{times}\n1,b,0,2.0,,\n")
    assert run("csv", tmp_path / "s.csv", "--out", tmp_path / "t.csv").exit_code == 0
    assert stage_count(read_episodes(tmp_path / "t.csv")) == 3


@pytest.mark.parametrize("said", ["put\rit away", "put\nit away", "put\r\nit away"])
def test_a_text_of_several_lines_is_written_so_that_it_is_read_again(tmp_path: Path, said: str) -> None:
    (tmp_path / "s.csv").write_bytes(f'block,arm,success,instruction\n1,a,1,"{said}"\n1,b,0,x\n'.encode())
    assert run("csv", tmp_path / "s.csv", "--out", tmp_path / "t.csv").exit_code == 0
    read_episodes(tmp_path / "t.csv")
    with (tmp_path / "t.csv").open(newline="") as file:
        assert [row["instruction"] for row in csv.DictReader(file)] == [said, "x"]
    assert (tmp_path / "t.csv").read_bytes().endswith(b",x\n")


def test_inspect_robots_trials_are_episodes_and_an_error_is_no_failure(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(json.dumps(LOG))
    (tmp_path / "b.json").write_text(json.dumps(LOG))
    done = run(
        "inspect-robots",
        tmp_path / "a.json",
        tmp_path / "b.json",
        "--arm",
        "x",
        "--arm",
        "y",
        "--out",
        tmp_path / "t.csv",
    )
    assert "2 trials left out, ended in an error and without a score" in done.output
    assert (tmp_path / "t.csv").read_text().splitlines()[:3] == [
        "block,arm,success,task,instruction,steps,end_reason",
        "kitchen s0 place the fork #1,x,1,kitchen,place the fork,60.0,success",
        "kitchen s0 place the fork #3,x,0,kitchen,place the fork,9,max_steps",
    ]


def test_a_trial_that_ended_in_an_error_takes_its_counterpart_out_of_its_pair_and_not_another(tmp_path: Path) -> None:
    """The first trial of x ended in an error: its second one is not held against the first of y."""
    scene = LOG["samples"][0]
    for name, epochs in (("a", [{}, {"operator": 1}]), ("b", [{"operator": 0}, {"operator": 1}])):
        (tmp_path / f"{name}.json").write_text(json.dumps({**LOG, "samples": [{**scene, "epochs": epochs}]}))
    arms = ("--arm", "x", "--arm", "y")
    run("inspect-robots", tmp_path / "a.json", tmp_path / "b.json", *arms, "--out", tmp_path / "t.csv")
    table = read_episodes(tmp_path / "t.csv")
    grid = dict(zip(table.blocks, table.grid("success").tolist(), strict=True))
    assert grid["kitchen s0 place the fork #2"] == [1, 1]
    assert str(grid["kitchen s0 place the fork #1"]) == "[nan, 0.0]"


def test_arms_that_were_judged_by_different_scorers_are_not_one_table(tmp_path: Path) -> None:
    scene = LOG["samples"][0]
    for name, scores in (("a", {"operator": 1, "quality": 0.4}), ("b", {"success_at_end": 1, "quality": 0.5})):
        (tmp_path / f"{name}.json").write_text(json.dumps({**LOG, "samples": [{**scene, "epochs": [scores]}]}))
    given = [tmp_path / "a.json", tmp_path / "b.json", "--arm", "x", "--arm", "y", "--out", tmp_path / "t.csv"]
    assert run("inspect-robots", *given).exit_code == 0, "quality is the one that both have"
    assert read_episodes(tmp_path / "t.csv").number["score"].tolist() == [0.4, 0.5]
    (tmp_path / "b.json").write_text(json.dumps({**LOG, "samples": [{**scene, "epochs": [{"success_at_end": 1}]}]}))
    said = told(run("inspect-robots", *given, "--force"))
    assert "b.json: samples[0].epochs[0] has the scorers success_at_end and samples[0].epochs[0] of" in said
    assert "a.json operator, quality: all trials are judged by one; name the one to take with --scorer" in said


@pytest.mark.parametrize(
    ("verb", "document", "said"),
    [
        ("lerobot", "{", "a.json:1: is not JSON: Expecting property name"),
        ("lerobot", '{"info": 1}', "a.json: has neither per_task nor per_episode but info; give lerobot-eval's"),
        ("lerobot", '{"per_episode": 3}', "a.json: per_episode is a number; expected a list"),
        ("lerobot", '{"per_episode": [{"success": "yes"}]}', "per_episode[0].success is 'yes'; expected true or false"),
        ("lerobot", '{"per_task": [{"task_id": 0}]}', "per_task[0].metrics is missing; expected an object"),
        ("lerobot", "[" * 100_000, "a.json: is nested too deeply to be read"),
        ("lerobot", '{"per_episode": [{"seed": ' + "9" * 5000 + "}]}", "a.json: holds a number too long to be read"),
        ("lerobot", '{"per_episode": [], "per_episode": []}', "the key 'per_episode' stands twice in one object"),
        ("lerobot", '{"per_episode": [{"success": true, "seed": 1}, {"success": 0, "seed": 1}]}',
         "a.json: per_episode[1]: seed 1 of 'x' stands in this file already"),
        ("lerobot", '{"per_task": [{"task_group": "\\ud800", "metrics": {"successes": [1]}}]}',
         "half of a character that no file can hold"),
        ("inspect-robots", '{"version": 2, "samples": []}', "is no log that is known: version is 2; expected a log of"),
        ("inspect-robots", json.dumps({**LOG, "samples": []}), "no episode to import"),
        ("inspect-robots", json.dumps({**LOG, "samples": [{"epochs": [{"a": 1, "b": 0}]}]}), "the scorers a, b; name"),
        ("inspect-robots", json.dumps({**LOG, "samples": [{"epochs": [{"a": 7}]}]}), "epochs[0].a is 7; expected"),
        ("inspect-robots", json.dumps({**LOG, "samples": [{"epochs": [{"a": 10**400}]}]}), "a is 1000"),
        ("inspect-robots", json.dumps({**LOG, "samples": [{"epochs": [{"a": 1, "episode_length": 6.5}]}]}),
         "samples[0].epochs[0].episode_length is 6.5; expected a whole number of steps"),
    ],
)  # fmt: skip
def test_a_document_of_another_kind_is_one_line(tmp_path: Path, verb: str, document: str, said: str) -> None:
    (tmp_path / "a.json").write_text(document)
    line = told(run(verb, tmp_path / "a.json", "--arm", "x", "--out", tmp_path / "t.csv"))
    assert said in line and len(line) < 300 + len(str(tmp_path))
    assert not (tmp_path / "t.csv").exists()


@pytest.mark.parametrize("letter", ["\ud800", "\x00"])
def test_what_is_wrong_in_the_second_of_two_files_is_said_of_that_one_and_where_in_it(
    tmp_path: Path, letter: str
) -> None:
    """The first file was named, with a number that is no line of either."""
    for name, task in (("a", "t"), ("b", f"t{letter}")):
        tasks = [{"task_group": task, "task_id": 0, "metrics": {"successes": [True, False]}}]
        (tmp_path / f"{name}.json").write_text(json.dumps({"per_task": tasks}))
        trials = [{"scene_id": task, "epochs": [{"operator": 1}, {"operator": 0}]}]
        (tmp_path / f"log-{name}.json").write_text(json.dumps({**LOG, "samples": trials}))
    rest = ("--arm", "x", "--arm", "y", "--out", tmp_path / "t.csv")
    line = told(run("lerobot", tmp_path / "a.json", tmp_path / "b.json", *rest))
    assert f"{tmp_path}/b.json: per_task[0].metrics.successes[0]: block is 't" in line
    line = told(run("inspect-robots", tmp_path / "log-a.json", tmp_path / "log-b.json", *rest))
    assert f"{tmp_path}/log-b.json: samples[0].epochs[0]: " in line and "log-a.json" not in line
    assert not (tmp_path / "t.csv").exists()


def test_any_csv_is_taken_by_its_map_and_keeps_its_lines_in_errors(tmp_path: Path) -> None:
    source, out = tmp_path / "r.csv", tmp_path / "t.csv"
    source.write_text("session,policy,done,mood,site\n1,p,yes,ok,s\n1,q,No,ok,s\n")
    mapped = ("--map", "block=session", "--map", "arm=policy", "--map", "success=done")
    assert run("csv", source, *mapped, "--out", out).output.splitlines()[0] == "columns left out: mood"
    assert out.read_text() == "block,arm,success,site\n1,p,1,s\n1,q,0,s\n"
    assert told(run("csv", source, *mapped, "--out", out)).endswith("give another name, or --force to replace it")
    source.write_text("session,policy,done\n1,p,yes\n\n1,q,maybe\n")
    assert "r.csv:4: success is 'maybe'; allowed is 0 or 1" in told(
        run("csv", source, *mapped, "--out", out, "--force")
    )
    assert out.read_text().startswith("block,arm,success,site")
    assert "no column 'went' to map success to; it has session, policy, done" in told(
        run("csv", source, "--map", "success=went", "--out", out, "--force")
    )
    source.write_text("session,session,policy,done\n1,2,p,yes\n")
    assert "r.csv:1: column 'session' appears 2 times; keep one" in told(
        run("csv", source, *mapped, "--out", out, "--force")
    )
    assert "--map x=y: no column 'x' in an episodes table" in told(run("csv", source, "--map", "x=y", "--out", out))
    assert "missing column block, arm" in told(run("csv", source, "--map", "success=done", "--out", tmp_path / "u.csv"))


@pytest.mark.parametrize("source", ["roboarena", "lerobot", "inspect-robots", "csv"])
def test_each_source_explains_itself_with_an_example(source: str) -> None:
    shown = run(source, "--help")
    assert shown.exit_code == 0 and f"labctl import {source}" in shown.output.split("Example:")[1]
