"""A person measured alone, and then beside policies with extra blocks of a person, the first printed as historical."""

from __future__ import annotations

import csv
import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.runs.campaigns import HUMAN, arms_toml, events_of, make_campaign, policy

from labctl.analysis.episodes import historical
from labctl.cli import group
from labctl.reporting.campaign_report import report_campaign
from labctl.reporting.historical import looked_up
from labctl.runtime.campaign_run import run_campaign
from labctl.runtime.review_writer import finish
from labctl.store.campaign import close_campaign, freeze_campaign, unblind_campaign
from labctl.store.lab_folder import read_plan
from labctl.store.opened_body import HISTORICAL
from labctl.store.verifying.verify import verify_campaign

SIZES = {"boot": 19, "perm": 19}


def invoke(*args: object) -> str:
    result = CliRunner().invoke(group, [str(arg) for arg in args], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


def done(folder: Path) -> Path:
    """Run, closed, reviewed, frozen and unblinded."""
    assert run_campaign(folder, lambda line: None, manual=True)
    close_campaign(folder, who="tester")
    finish(folder, who="sim-operator")
    freeze_campaign(folder, who="tester")
    unblind_campaign(folder, who="tester")
    return folder


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the campaigns `person` and `later`."""
    lab = tmp_path_factory.mktemp("lab")
    done(make_campaign(lab, [HUMAN], name="person", blocks=3, budget=12.0).folder)
    more = '[human]\nextra_blocks = 2\n[human.reference]\ncampaign = "person"\nhrt = true\n'
    text = (
        (lab / "protocols/p.toml").read_text("utf-8").split("[[arm]]")[0].replace('name = "person"', 'name = "later"')
    )
    text = text.replace("tau_s = 12.0", 'tau_s = 12.0\nreference = "human"')
    arms = arms_toml([HUMAN, policy("zebra", skill="swift")])
    (lab / "protocols/later.toml").write_text(text + more + arms, "utf-8")
    with pytest.MonkeyPatch.context() as drawn:  # the same episodes in every run, of which none is in dispute
        drawn.setattr(os, "urandom", lambda n: hashlib.sha256(b"later").digest()[:n])
        invoke("open", lab / "protocols/later.toml", "--cell", lab / "cells/c.toml", "--lab", lab, "--who", "ann")
    done(lab / "campaigns/later")
    return lab


def test_a_person_alone_is_planned_as_what_it_is(lab: Path) -> None:
    said = invoke("plan", lab / "protocols/p.toml", "--lab", lab)
    assert "One arm:      human, a person: a reference that is collected; nothing is compared" in said
    assert "Smallest p" not in said and "Resolvable" not in said
    found = json.loads(invoke("plan", lab / "protocols/p.toml", "--lab", lab, "--json"))
    assert (found["arms"], found["human"], found["trials"]) == (1, True, 3)
    assert set(found["resolution"]) == {"half_width_success", "half_width_items", "design_effect", "warnings", "blocks"}


def test_the_report_of_a_person_alone_has_its_numbers_and_curve_and_no_comparison(lab: Path, tmp_path: Path) -> None:
    report_campaign(lab / "campaigns/person", tmp_path / "r", **SIZES)
    text = (tmp_path / "r/report.md").read_text("utf-8")
    assert "One arm, human: its own numbers, and nothing to compare them with." in text
    assert "A person was the only arm, a reference that was collected: there was nothing to be blind to." in text
    assert "## Arm by object" in text and "## Success over time" in text
    assert (tmp_path / "r/figures/success-towels.svg").is_file()
    assert "## Pairs of arms" not in text and "## Compared with" not in text
    assert "Pairs of arms" not in (tmp_path / "r/report.html").read_text("utf-8")
    (arm,) = json.loads((tmp_path / "r/report.json").read_text("utf-8"))["result"]["arms"]
    assert arm["arm"] == "human" and arm["episodes"] == 3 and arm["hrt"] is None


def test_extra_blocks_are_drawn_labelled_and_counted_for_the_person_alone(lab: Path, tmp_path: Path) -> None:
    opened = events_of(lab / "campaigns/later")[0].body
    sizes = [sum(slot["block"] == block for slot in opened["schedule"]) for block in range(5)]
    assert sorted(sizes) == [1, 1, 2, 2, 2]
    assert opened["alone"] == [block for block, size in enumerate(sizes) if size == 1]
    assert opened["deducible_share"] == 1.0
    out = tmp_path / "ops.csv"
    invoke("export", "later", "--to", "table", "--out", out, "--lab", lab)
    with out.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["arm"] for row in rows if row["alone"] == "1"} == {"human"}
    assert len({row["episode"] for row in rows if row["alone"] == "1"}) == 2
    found = json.loads(invoke("analyze", out, "--reference", "human", "--boot", 19, "--perm", 19, "--json"))
    of = {arm["arm"]: arm for arm in found["arms"]}
    assert (of["human"]["episodes"], of["zebra"]["episodes"]) == (5, 3)
    assert of["zebra"]["hrt"] == pytest.approx(of["human"]["rmst"] / of["zebra"]["rmst"])
    assert found["pairs"][0]["relabellings"] == 8, "three blocks of both, either way round"


def test_a_person_of_before_is_frozen_at_opening_and_printed_as_historical(lab: Path, tmp_path: Path) -> None:
    folder = lab / "campaigns/later"
    entry = events_of(folder)[0].body["historical"]
    assert entry["source"].startswith("campaign person at head ") and entry["episodes"] == 3
    report_campaign(folder, tmp_path / "r", **SIZES)
    text = (tmp_path / "r/report.md").read_text("utf-8")
    section = text.split("## A person of another time (historical)")[1].split("\n## ")[0]
    assert "HISTORICAL: campaign person at head" in section and "test-cell (sim_fr3, sim); 2026" in section
    assert "episodes: 3" in section and "in no pair, no test" in section
    assert "historical HRT %" in section and "| zebra | towels |" in section
    assert " p " not in section.replace("no p", "") and "Holm" not in section
    record = json.loads((tmp_path / "r/report.json").read_text("utf-8"))
    assert [arm["arm"] for arm in record["result"]["arms"]] == ["human", "zebra"]
    assert record["lab"]["historical"]["sha256"] == entry["sha256"]
    assert f"sha256 {entry['sha256']}" in text.split("## Provenance")[1]


def test_intervals_of_a_person_of_before_are_drawn_as_the_rest_of_the_report_is(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They had 9999 draws by the seed 0, whatever was asked for and printed."""
    drawn: list[tuple[int, int]] = []

    def spied(*given: Any, boot: int, seed: int, **more: Any) -> Any:
        drawn.append((boot, seed))
        return worked_out(*given, boot=boot, seed=seed, **more)

    worked_out = historical.historical
    monkeypatch.setattr(historical, "historical", spied)
    report_campaign(lab / "campaigns/later", tmp_path / "r", **SIZES, seed=7)
    assert drawn == [(SIZES["boot"], 7)]


def test_verify_and_report_refuse_rows_of_before_that_were_changed(lab: Path, tmp_path: Path) -> None:
    folder = lab / "campaigns/later"
    kept = (folder / HISTORICAL).read_bytes()
    try:
        (folder / HISTORICAL).write_bytes(kept.replace(b"success", b"censored", 1))
        assert any("historical" in str(problem) for problem in verify_campaign(folder).problems)
        result = CliRunner().invoke(group, ["report", "later", "--lab", str(lab), "--out", str(tmp_path / "r")])
        assert result.exit_code != 0 and not (tmp_path / "r").exists()
        (folder / HISTORICAL).unlink()
        assert any("the file is gone" in str(problem) for problem in verify_campaign(folder).problems)
    finally:
        (folder / HISTORICAL).write_bytes(kept)
    assert verify_campaign(folder).problems == []


WRONG = {
    "no such campaign": ('campaign = "prson"', "campaign =", "prson"),
    "a pin of other rows": (f'campaign = "person"\nsha256 = "{"0" * 64}"', "sha256 =", "not those that were pinned"),
    "no such table": ('table = "t.csv"\narm = "human"\nrig = "r"\ndates = "d"', "table =", "is no file"),
    "no such arm": (
        'table = "ops.csv"\narm = "x"\nrig = "r"\ndates = "d"',
        "table =",
        "no arm 'x'; its arms are",
    ),
    "no table": ('table = "bad.csv"\narm = "x"\nrig = "r"\ndates = "d"', "table =", "missing column"),
}


@pytest.mark.parametrize(("named", "at", "says"), WRONG.values(), ids=WRONG)
def test_each_mistake_in_a_historical_reference_is_told_in_one_line(lab: Path, named: str, at: str, says: str) -> None:
    text = (lab / "protocols/later.toml").read_text("utf-8")
    (lab / "protocols/w.toml").write_text(text.replace('campaign = "person"\nhrt = true', named), "utf-8")
    kept = (lab / "campaigns/later" / HISTORICAL).read_text("utf-8")
    (lab / "protocols/ops.csv").write_text(kept, "utf-8")
    (lab / "protocols/bad.csv").write_text("a,b\n1,2\n", "utf-8")
    for verb in (["plan"], ["open", "--cell", str(lab / "cells/c.toml"), "--who", "ann"]):
        result = CliRunner().invoke(group, [*verb, str(lab / "protocols/w.toml"), "--lab", str(lab)])
        line = str(result.exception)
        assert result.exit_code in (1, 2) and says in line and "\n" not in line, line
        number = int(line.split("w.toml:")[1].split(":")[0])
        assert (lab / "protocols/w.toml").read_text("utf-8").splitlines()[number - 1].startswith(at)


def test_a_table_says_what_a_campaign_does_and_its_rows_are_frozen_alike(lab: Path) -> None:
    kept = (lab / "campaigns/later" / HISTORICAL).read_text("utf-8")
    (lab / "protocols/ops.csv").write_text(kept, "utf-8")
    text = (lab / "protocols/later.toml").read_text("utf-8")
    table = 'table = "ops.csv"\narm = "human"\nrig = "FR3, old gripper"\ndates = "May 2025"'
    (lab / "protocols/w.toml").write_text(text.replace('campaign = "person"\nhrt = true', table), "utf-8")
    found = looked_up(read_plan(lab / "protocols/w.toml"), lab)
    assert found is not None and found.text == kept
    assert (found.entry["rig"], found.entry["dates"], found.entry["hrt"]) == ("FR3, old gripper", "May 2025", False)
    assert "kind" not in found.entry
