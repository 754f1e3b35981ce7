"""An outcome is checked alike wherever it comes in: scored, corrected by the run process, corrected without one. And a
protocol that forbids early ends forbids each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.reviewed_now import correct
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.core.events import Kind
from labctl.errors import InputError
from labctl.store.campaign import Campaign

ARMS = [HUMAN, policy("zebra", endpoint="sim://zebra")]
GOOD = {"items_staged": 4, "moved": 3, "lost": 0, "remaining": 1}
WRONG = {
    "one item of four": ({"items_staged": 1, "moved": 1, "lost": 0, "remaining": 0}, "this campaign has 4"),
    "five items of four": ({"items_staged": 5, "moved": 5, "lost": 0, "remaining": 0}, "this campaign has 4"),
    "another's stage": ({**GOOD, "stage_reached": "flown"}, "stage 'flown' is not in the protocol"),
    "another's tag": ({**GOOD, "tags": ["fell over"]}, "tag 'fell over' is not in the protocol"),
    "counts that do not add up": ({**GOOD, "moved": 4}, "is not the 4 items staged"),
}


def made(folder: Path, **protocol: str) -> Path:
    return make_campaign(folder, ARMS, items=4, protocol=protocol).folder


@pytest.fixture
def scoring(tmp_path: Path) -> Iterator[Bench]:
    """An episode that waits for its score."""
    with Campaign.open(made(tmp_path), writer=True) as campaign:
        bench = Bench(campaign)
        episode = bench.running()
        assert bench.command("end")["ok"]
        bench.seal(episode)
        yield bench


def by_score(bench: Bench, outcome: dict[str, Any]) -> str:
    return str(bench.command("score", role="assessor", **outcome).get("error", ""))


def by_correction(bench: Bench, outcome: dict[str, Any]) -> str:
    assert not by_score(bench, GOOD)
    trial = bench.events(Kind.OUTCOME_RECORDED)[-1].trial
    return str(bench.command("correct", role="assessor", trial=trial, why="x", **outcome).get("error", ""))


def by_correction_without_a_run(bench: Bench, outcome: dict[str, Any]) -> str:
    assert not by_score(bench, GOOD)
    trial = bench.events(Kind.OUTCOME_RECORDED)[-1].trial
    bench.campaign.close()
    try:
        correct(bench.campaign.folder, trial, outcome, who="ann", why="x")
    except InputError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("door", [by_score, by_correction, by_correction_without_a_run])
@pytest.mark.parametrize(("outcome", "why"), WRONG.values(), ids=WRONG)
def test_an_outcome_that_cannot_be_of_this_campaign_is_refused(
    scoring: Bench, door: Callable[[Bench, dict[str, Any]], str], outcome: dict[str, Any], why: str
) -> None:
    """Issue 17.12: one item staged and moved, in a campaign of four, became a success."""
    assert why in door(scoring, outcome)


@pytest.mark.parametrize("door", [by_score, by_correction, by_correction_without_a_run])
def test_an_outcome_of_this_campaign_is_taken(scoring: Bench, door: Callable[[Bench, dict[str, Any]], str]) -> None:
    assert not door(scoring, {**GOOD, "moved": 2, "lost": 1})


@pytest.mark.parametrize("running", [True, False])
def test_a_correction_needs_a_reason_at_every_door(scoring: Bench, running: bool) -> None:
    assert not by_score(scoring, GOOD)
    trial, other = scoring.events(Kind.OUTCOME_RECORDED)[-1].trial, {**GOOD, "moved": 2, "lost": 1}
    if running:
        error = scoring.command("correct", role="assessor", trial=trial, why=" ", **other)["error"]
    else:
        scoring.campaign.close()
        with pytest.raises(InputError) as refused:
            correct(scoring.campaign.folder, trial, other, who="ann", why=" ")
        error = str(refused.value)
    assert error == "the reason for the correction is empty; say it in a few words"


@pytest.mark.parametrize("reason", ["operator", "futility"])
@pytest.mark.parametrize(("rule", "ends"), [("allowed", True), ("forbidden", False)])
def test_a_protocol_that_forbids_early_ends_forbids_each(tmp_path: Path, reason: str, rule: str, ends: bool) -> None:
    """Issue 17.13: it refused only `futility`, and the end key left its tail as observed."""
    folder = made(tmp_path, **{"[design]": f'early_end = "{rule}"\n[design]'})
    with Campaign.open(folder, writer=True) as campaign:
        bench = Bench(campaign)
        bench.running()
        reply = bench.command("end", reason=reason)
        assert reply["ok"] is ends and bool(bench.events(Kind.EPISODE_ENDED)) is ends
        assert ends or ("stop" in reply["error"] and "void" in reply["error"])
