"""Claims about the episodes table of a campaign with tasks: each measure in its columns, sets, early ends."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow.parquet
import pytest
from support.runs.run_bench import Bench
from support.runs.task_campaign import open_tasks

from labctl.analysis.episodes.estimand import Estimand, counted
from labctl.analysis.episodes_table.reading import read_episodes
from labctl.analysis.episodes_table.stages import stage_count
from labctl.analysis.episodes_table.table import table_from_rows
from labctl.clock import SECOND
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.core.task import SCORE, SUCCESS
from labctl.reporting.episodes_table import as_counted, columns_of, episodes, with_preferences, with_tasks
from labctl.reporting.facts import by_episodes, voids_left_out
from labctl.reporting.measured_report import episode_rows
from labctl.reporting.operations_table import operations, write_table
from labctl.store.campaign import Campaign


def row_of(folder: Path, condition: str, outcome: dict[str, Any], *, keys: int = 0) -> tuple[dict[str, Any], Record]:
    """The row of an episode that was ended for futility three seconds after go, or after so many stages a second."""
    opened = open_tasks(folder, conditions=[condition], protocol={'early_end = "forbidden"\n': ""})
    with Campaign.open(opened.folder, writer=True) as campaign:
        bench = Bench(campaign)
        episode = bench.running()
        for number in range(1, keys + 1):
            bench.wait(SECOND)
            assert bench.command("reach", stage=number)["ok"]
        bench.wait((3 - keys) * SECOND)
        assert bench.command("end", reason="futility")["ok"]
        bench.seal(episode)
        assert bench.command("score", role="assessor", **outcome)["ok"]
        record = record_of(campaign.events())
    trials = {episode.id: trial for trial, episode in record.scored}
    (row,) = with_tasks(episodes(operations(record), {}, ""), record.state.opened, trials)
    return row, record


def test_a_success_that_did_not_come_is_censored_at_the_whole_budget_also_where_it_was_ended_early(tmp_path):
    row, record = row_of(tmp_path, "over-base", {"reached_s": []})
    assert (row["success"], row["score"], row["time_s"], row["budget_s"]) == (0, 0.0, 16.0, 16.0)
    assert (row["task"], row["condition"], row["set"], row["tags"]) == ("over", "over-base", "over-base 1", "bin")
    assert row["moved"] is row["staged"] is None and "stage_1_s" not in columns_of([row])
    assert by_episodes(record.state.opened)
    assert episode_rows(record, operations(record)) == [{**row, "end_reason": "futility", "evaluator": "ann"}]


def test_a_success_has_the_time_at_which_it_was_seen(tmp_path):
    row, _ = row_of(tmp_path, "over-base", {"reached_s": [1.0]}, keys=1)
    assert (row["success"], row["score"], row["time_s"]) == (1, 1.0, 1.0)


def test_stages_are_points_reached_of_points_possible_with_their_times(tmp_path):
    """One of 1 + 3 points."""
    row, _ = row_of(tmp_path, "stages", {"reached_s": [1.0]}, keys=1)
    assert (row["success"], row["score"], row["stage"], row["time_s"]) == (0, 0.25, 1, 30.0)
    assert (row["stage_1_s"], row["stage_2_s"]) == (1.0, None)
    assert columns_of([row])[-2:] == ["stage_1_s", "stage_2_s"]


@pytest.mark.parametrize(("keys", "times"), [(1, (1.0, None)), (0, (None, None))])
def test_a_parquet_table_has_the_stages_as_numbers_also_where_none_was_reached(tmp_path, keys, times):
    row, _ = row_of(tmp_path, "stages", {"reached_s": [1.0][:keys]}, keys=keys)
    write_table([row], tmp_path / "episodes.parquet", columns_of([row]))
    table = pyarrow.parquet.read_table(tmp_path / "episodes.parquet")
    (found,) = table.to_pylist()
    assert (found["stage"], found["steps"], found["stage_1_s"], found["stage_2_s"]) == (keys, None, *times)
    types = {name: str(table.schema.field(name).type) for name in ("stage", "steps", "stage_1_s", "stage_2_s")}
    assert types == {"stage": "int64", "steps": "int64", "stage_1_s": "double", "stage_2_s": "double"}
    if "arm" not in found:
        table = table.append_column("arm", pyarrow.array(["a"]))
        pyarrow.parquet.write_table(table, tmp_path / "episodes.parquet")
    assert stage_count(read_episodes(tmp_path / "episodes.parquet")) == 2


def test_a_score_is_what_the_assessor_gave_and_no_success(tmp_path):
    row, _ = row_of(tmp_path, "score", {"score": 0.35})
    assert (row["success"], row["score"], row["time_s"]) == (None, 0.35, None)


def test_voids_after_go_are_counted_apart_by_what_their_task_is_judged_by() -> None:
    """Three voids of arm a, two of them of a task that an assessor scores; one of b before go, which is none."""
    conditions = [{"id": name, "task": name} for name in ("put", "fold")]
    tasks = [{"name": "put", "measure": SUCCESS}, {"name": "fold", "measure": SCORE}]
    plain = {"stages": [], "rubric": [], "instruction": "", "budget_s": 60.0, "failure_tags": [], "items_staged": 1}
    at = {"t1": "put", "t2": "fold", "t3": "fold", "t4": "put"}
    voids = [SimpleNamespace(id=trial, trial=trial, void=SimpleNamespace(after_go=trial != "t4")) for trial in at]
    state = SimpleNamespace(
        opened={"conditions": conditions, "tasks": [{**plain, **task} for task in tasks]},
        trials={trial: SimpleNamespace(condition=condition) for trial, condition in at.items()},
    )
    arms = {trial: "b" if trial == "t4" else "a" for trial in at}
    record: Any = SimpleNamespace(episodes={void.id: void for void in voids}, arms=arms, state=state)
    assert dict(voids_left_out(record, [])) == {"a": 3}
    assert dict(voids_left_out(record, [], {SUCCESS})) == {"a": 1}
    assert dict(voids_left_out(record, [{"episode": "t1"}], {SUCCESS})) == {}


def test_an_outcome_that_counts_as_no_success_gives_no_stages_and_no_score(tmp_path):
    """[estimand] help = "no_success" and an episode that somebody touched: whatever was recorded, nothing was done."""
    _, record = row_of(tmp_path, "stages", {"reached_s": [1.0]}, keys=1)
    trials = {episode.id: trial for trial, episode in record.scored}
    helped = [{**row, "interventions": 1} for row in operations(record)]
    rows = counted(helped, Estimand("no_success", "left_out", "by_reason", "failure"))
    (row,) = with_tasks(episodes(rows, {}, ""), record.state.opened, as_counted(rows, trials))
    assert (row["success"], row["score"], row["stage"], row["time_s"]) == (0, 0.0, None, 30.0)


def test_a_preference_names_both_arms_in_the_order_they_ran_wherever_arms_may_be_named_and_both_are_there(tmp_path):
    """The table is read back by the reader of the statistics, which checks order, block and names."""
    opened = open_tasks(tmp_path, conditions=["score"], protocol={"[analysis]": "[preference]\n[analysis]"})
    with Campaign.open(opened.folder, writer=True) as campaign:
        bench = Bench(campaign)
        bench.begin_session()
        for score in (0.4, 0.6):
            bench.stage()
            episode = bench.start()
            bench.go(episode)
            bench.wait(31 * SECOND)
            bench.seal(episode)
            assert bench.command("score", role="assessor", score=score)["ok"]
        pair = {key: bench.shown()["compare"][key] for key in ("first", "second")}
        assert bench.command("prefer", role="assessor", **pair, preferred="second", why="neater")["ok"]
        record = record_of(campaign.events())
        arms = {name: campaign.ledger.reveal(name) for name in record.state.trials}
    trials = {episode.id: trial for trial, episode in record.scored}
    rows = with_tasks(episodes(operations(record), {}, ""), record.state.opened, trials)
    assert all(row["compared"] is None for row in with_preferences(rows, record, str)), "arms are sealed still"
    told = [{**row, "arm": arms[trials[row["episode"]].id]} for row in rows]
    unsealed = {
        "schedule": [{"trial": name, "arm": arm} for name, arm in arms.items()],
        "secret_hex": "",
        "openings": [],
    }
    opened_record = replace(record, unblinding=unsealed)
    found = with_preferences(told, opened_record, str)
    first, second = (arms[trials[pair[side]].id] for side in ("first", "second"))
    assert {(row["compared"], row["preferred"]) for row in found} == {(f"{first}|{second}", second)}
    assert table_from_rows(found).of_block("preferred") == [second]
    assert with_preferences(told[:1], opened_record, str)[0]["compared"] is None, "one of the two is not there"


def test_a_stop_that_does_not_count_is_an_end_by_the_operator_whatever_the_measure(tmp_path):
    """The table of a task that is not counted in items had safety_stop, its report operator."""
    opened = open_tasks(tmp_path, conditions=["over-base"])
    with Campaign.open(opened.folder, writer=True) as campaign:
        bench = Bench(campaign)
        episode = bench.running()
        assert bench.command("stop")["ok"]
        assert bench.command("acknowledge", code="operator_stop", cause="mistaken_key", why="a sleeve")["ok"]
        bench.seal(episode)
        assert bench.command("score", role="assessor", reached_s=[])["ok"]
        record = record_of(campaign.events())
    assert [(row["kind"], row["cause"]) for row in operations(record)] == [("censored", "operator")]
    assert operations(record, all_stops=True)[0]["cause"] == "safety_stop"
    assert [row["end_reason"] for row in episode_rows(record, operations(record))] == ["operator"]
