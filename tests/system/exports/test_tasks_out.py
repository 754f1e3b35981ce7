"""A campaign of tasks leaves in every format, each episode with its own condition's words; and a policy is asked about
recorded episodes in them.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from support.policies.cards import CAMERA, card_toml
from support.runs.recordings import Recordings
from support.runs.task_campaign import run_filmed_tasks, unblinded_tasks

from labctl.checks.offline_evaluation import screen
from labctl.cli import call
from labctl.store.campaign import Campaign

PLAIN, OTHER, BOTH = "Put the towel into the empty tote.", "The cloth belongs into the other tote.", "Put both over."
LAB = """
import numpy as np
TOLD = []
def stay(seen):
    TOLD.append(seen["words"])
    return np.tile(np.concatenate([seen["joint_position"], [0.0]]), (4, 1))
"""


@pytest.fixture
def folder(recordings: Recordings) -> Path:
    """Unblinded; only read."""
    return recordings.of(unblinded_tasks, blinded=str(recordings.of(run_filmed_tasks)))


def words_of(folder: Path) -> dict[str, str]:
    """What was said in each scored episode, by its condition."""
    by_condition = {"over-base": PLAIN, "over-lang": OTHER, "stages": BOTH}
    with Campaign.open(folder) as campaign:
        return {episode.id: by_condition[trial.condition] for trial, episode in campaign.record().scored}


def rows_of(path: Path) -> list[dict[str, Any]]:
    return pq.read_table(path).to_pylist()


@pytest.mark.thorough
def test_a_lerobot_dataset_has_the_words_of_each_episodes_condition(folder: Path, tmp_path: Path) -> None:
    words = words_of(folder)
    assert call(["export", str(folder), "--to", "lerobot-v3", "--out", str(tmp_path / "v3")]) == 0
    tasks = {row["task_index"]: row["task"] for row in rows_of(tmp_path / "v3/meta/tasks.parquet")}
    assert sorted(tasks.values()) == sorted({PLAIN, OTHER, BOTH})
    of_episode = {}
    for path in sorted((tmp_path / "v3/data").rglob("*.parquet")):
        for row in rows_of(path):
            of_episode.setdefault(row["episode_index"], set()).add(tasks[row["task_index"]])
    listed = [row for path in sorted((tmp_path / "v3/meta/episodes").rglob("*.parquet")) for row in rows_of(path)]
    assert [one for row in listed for one in row["tasks"]] == list(words.values()), "one each, in the schedule's order"
    assert {row["episode_index"]: set(row["tasks"]) for row in listed} == of_episode


@pytest.mark.thorough
def test_so_has_one_of_the_earlier_layout(folder: Path, tmp_path: Path) -> None:
    assert call(["export", str(folder), "--to", "lerobot-v2.1", "--out", str(tmp_path / "v2")]) == 0
    lines = (tmp_path / "v2/meta/episodes.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["tasks"] for line in lines] == [[text] for text in words_of(folder).values()]


def test_an_export_for_one_arm_has_the_tasks_of_all_and_names_no_other_arm(folder: Path, tmp_path: Path) -> None:
    tables: dict[str, list[dict[str, str]]] = {}
    for name, options in (("all", []), ("zebra", ["--for-arm", "zebra"])):
        out = tmp_path / f"{name}.csv"
        assert call(["export", str(folder), "--to", "episodes", "--out", str(out), *options]) == 0
        tables[name] = list(csv.DictReader(out.read_text("utf-8").splitlines()))
    assert "human" not in (tmp_path / "zebra.csv").read_text("utf-8")
    assert {row["arm"] for row in tables["zebra"]} == {"zebra", "other-1"}
    measured = ("task", "condition", "set", "instruction", "success", "score", "stage", "stage_1_s", "time_s")
    for mine, whole in zip(tables["zebra"], tables["all"], strict=True):
        assert {key: mine[key] for key in measured} == {key: whole[key] for key in measured}
    assert call(["analyze", str(tmp_path / "zebra.csv"), "--json"]) == 0
    alone = tmp_path / "alone.csv"
    assert call(["export", str(folder), "--to", "episodes", "--out", str(alone), "--where", "arm=zebra"]) == 0
    places = {row["episode"]: row["position"] for row in tables["all"] if row["arm"] == "zebra"}
    assert {row["episode"]: row["position"] for row in csv.DictReader(alone.read_text("utf-8").splitlines())} == places
    assert set(places.values()) == {"1", "2"}, "what was chosen ran in the places in which it ran"


@pytest.mark.thorough
def test_a_policy_is_asked_in_each_conditions_words_and_its_scores_are_by_condition(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "tasks_lab.py").write_text(LAB, "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    lab = folder.parent.parent
    told = CAMERA.format(key="picture", camera="over_shoulder") + '[[input]]\nkey = "words"\nprompt = true\n'
    for part in ("protocols", "fixtures"):
        (tmp_path / part).mkdir()
        for path in (lab / part).iterdir():
            (tmp_path / part / path.name).write_bytes(path.read_bytes())
    (tmp_path / "protocols/stay.toml").write_text(card_toml("callable", prefix="", inputs=told), "utf-8")
    text = (tmp_path / "protocols/p.toml").read_text("utf-8")
    added = '[[arm]]\nname = "stay"\nkind = "policy"\ncontroller = "policy_callable"\n'
    added += '[arm.options]\ncard = "stay.toml"\nfunction = "tasks_lab:stay"\n'
    (tmp_path / "protocols/next.toml").write_text(text + added, "utf-8")
    found = screen(folder, ["stay"], protocol=tmp_path / "protocols/next.toml", keyframes=4)
    (stay,) = found["policies"]
    assert {one["object"] for one in stay["objects"]} == {"over-base", "over-lang", "stages"}
    import tasks_lab  # type: ignore[import-not-found]

    assert set(tasks_lab.TOLD) == {PLAIN, OTHER, BOTH}
