"""A second campaign extends a finished one, and the report of both compares their new arms through the anchors."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind

from labctl import cli
from labctl.analysis.episodes.linked import Campaign, compare_linked
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.table import table_from_rows
from labctl.cli import leaving
from labctl.clock import SECOND
from labctl.errors import Exit
from labctl.runtime.campaign_run import run_campaign

pytestmark = pytest.mark.thorough

FROZEN = policy("frozen", skill="steady")
TAU_S = 30.0
RULES: dict[str, Any] = {"blocks": 3, "items": 1, "budget": TAU_S}


def ended(folder: Path) -> Path:
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    return folder


def labctl(*words: str) -> Any:
    return CliRunner().invoke(cli.group, list(words), catch_exceptions=True)


def refused(*words: str) -> str:
    """The one line that a command refuses with."""
    found = labctl(*words)
    told = leaving.failure(found.exception) if found.exception else None
    assert told is not None and told.exit in (Exit.REFUSED, Exit.BAD_INPUT), found
    return told.message


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """First: human, frozen, swift. Second extends it by the command: human, frozen, slow."""
    lab = tmp_path_factory.mktemp("lab")
    ended(make_campaign(lab, [HUMAN, FROZEN, policy("swift", skill="swift")], name="first", **RULES).folder)
    make_campaign(lab, [HUMAN, FROZEN, policy("slow", skill="slow")], name="second", **RULES)  # writes the files
    words = ("extend", "first", str(lab / "protocols/p.toml"), "--cell", str(lab / "cells/c.toml"))
    said = labctl(*words, "--lab", str(lab))
    assert said.exit_code == 0 and "anchors: human, frozen" in said.output and "opened second-2" in said.output
    line = refused("report", "first", "second-2", "--lab", str(lab), "--out", str(lab / "early"))
    assert (
        line == "campaign second-2 is open; close, review, freeze and unblind it first" and not (lab / "early").exists()
    )
    ended(lab / "campaigns/second-2")
    return lab


@pytest.fixture(scope="module")
def report(lab: Path) -> Path:
    out = lab / "report"
    words = ("report", "second-2", "first", "--lab", str(lab), "--out", str(out), "--boot", "99", "--perm", "99")
    assert labctl(*words).exit_code == 0
    return out


def exported(lab: Path, name: str) -> list[dict[str, str]]:
    path = lab / f"{name}.csv"
    found = labctl("export", name, "--lab", str(lab), "--to", "table", "--out", str(path), "--force")
    assert found.exit_code == 0, found.output
    return rows_of(path)


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def test_the_ratio_is_what_the_exported_tables_give(lab: Path, report: Path) -> None:
    told = json.loads((report / "report.json").read_text())["lab"]["linked"]
    assert (told["campaigns"], told["anchors"], told["changed"]) == (["first", "second-2"], ["human", "frozen"], [])
    (pair,) = told["pairs"]
    sides = [Campaign(n, cells_of(table_from_rows(exported(lab, n))), "sim") for n in ("first", "second-2")]
    again = compare_linked(sides[0], "swift", sides[1], "slow", tau_ns=int(TAU_S * SECOND))
    assert (pair["a"], pair["b"]) == ("swift", "slow")
    assert (pair["ratio"], pair["naive"]) == pytest.approx((again.ratio, again.naive), rel=1e-12)
    assert (pair["interval"], pair["p"]) == (pytest.approx(again.interval), pytest.approx(again.p))
    assert pair["p_holm"] == pair["p"]  # one pair, nothing to adjust

    # and from the RMSTs that each campaign's table gives by itself: ratio = (a / mean anchors) / (b / mean anchors)
    rmst = {}
    for name in ("first", "second-2"):
        path = str(lab / f"{name}.csv")
        found = labctl("analyze", path, "--tau", str(TAU_S), "--boot", "9", "--perm", "9", "--json")
        rmst[name] = {arm["arm"]: arm["rmst"] for arm in json.loads(found.output)["arms"]}
    anchored = [
        rmst[name][arm] / math.sqrt(rmst[name]["human"] * rmst[name]["frozen"])
        for name, arm in (("first", "swift"), ("second-2", "slow"))
    ]
    assert pair["ratio"] == pytest.approx(anchored[0] / anchored[1], rel=1e-6)
    assert pair["naive"] == pytest.approx(rmst["first"]["swift"] / rmst["second-2"]["slow"], rel=1e-6)
    drift = {moved["anchor"]: moved["ratio"] for moved in pair["drift"]}
    expected = {arm: rmst["second-2"][arm] / rmst["first"][arm] for arm in ("human", "frozen")}
    assert drift == pytest.approx(expected, rel=1e-6)


def test_page_markdown_and_tables_say_the_same(lab: Path, report: Path) -> None:
    (pair,) = json.loads((report / "report.json").read_text())["lab"]["linked"]["pairs"]
    low, high = pair["interval"]
    for page in ("report.html", "report.md"):
        text = re.sub(r"<[^>]+>", "", (report / page).read_text())
        assert "Against an earlier campaign" in text and f"{pair['ratio']:.2f} [{low:.2f}, {high:.2f}]" in text
        assert "The anchors, second campaign over first" in text and "linked to first at head" in text
        for moved in pair["drift"]:
            assert f"{moved['ratio']:.2f} [{moved['interval'][0]:.2f}, {moved['interval'][1]:.2f}]" in text
    (row,) = rows_of(report / "figures/linked.csv")
    assert (float(row["ratio"]), float(row["low"]), float(row["naive_ratio"])) == (pair["ratio"], low, pair["naive"])
    anchors = rows_of(report / "figures/linked_anchors.csv")
    assert [float(one["ratio"]) for one in anchors] == [moved["ratio"] for moved in pair["drift"]]


def test_a_report_of_the_later_alone_says_how_to_compare(lab: Path) -> None:
    out = lab / "alone"
    words = ("report", "second-2", "--lab", str(lab), "--out", str(out), "--boot", "9", "--perm", "9")
    assert labctl(*words).exit_code == 0
    told = json.loads((out / "report.json").read_text())["lab"]
    assert "linked" not in told and not (out / "figures/linked.csv").exists()
    (note,) = told["notes"]
    assert note.startswith("linked to first at head ") and note.endswith("labctl report first second-2")


def test_what_shares_no_anchor_is_refused_in_one_line(lab: Path) -> None:
    # `second` is the same protocol opened without a link: names in common are no anchors
    out = lab / "none"
    line = refused("report", "first", "second", "--lab", str(lab), "--out", str(out))
    assert line.startswith("campaigns first and second share no anchor: neither was opened linked to the other")
    assert "is a table" in refused("report", "first", "x.csv", "--lab", str(lab), "--out", str(out))
    assert not out.exists()


def test_the_record_of_a_linked_campaign_holds(lab: Path) -> None:
    found = labctl("verify", "second-2", "--lab", str(lab))
    assert found.exit_code == 0 and "holds" in found.output


def test_the_page_of_both_says_what_their_report_says_and_no_more(lab: Path, report: Path) -> None:
    page = lab / "both.html"
    said = labctl("episodes", "first", "second-2", "--lab", str(lab), "--page", str(page))
    assert said.exit_code == 0, said.output
    text = page.read_text("utf-8")
    (pair,) = json.loads((report / "report.json").read_text())["lab"]["linked"]["pairs"]
    assert f"{pair['ratio']:.2f} [" in text and "The anchors, second campaign over first" in text
    assert "Episodes of the two are never pooled" in text
    assert text.count('<tr data-campaign="first"') == text.count('<tr data-campaign="second-2"') == 9
    beside = (report / "episodes.html").read_text("utf-8")
    assert "The anchors, second campaign over first" in beside, "the report's own page has it too"
