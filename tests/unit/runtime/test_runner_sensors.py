"""What the run process does about sensors: a loss or a limit holds what comes before an episode, and ends one that runs
as the cell declares it, never silently.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench
from support.runs.sensing import SENSOR_REASONS, scale, with_scale

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.store.campaign import Campaign

SCALE = "sensor:scale"


def bench_of(tmp_path: Path, table: str, **rules: Any) -> Iterator[Bench]:
    arms = [HUMAN, policy("zebra")]
    folder = make_campaign(tmp_path, arms, cell=with_scale(table), protocol=SENSOR_REASONS, **rules).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


@pytest.fixture
def needed(tmp_path: Path) -> Iterator[Bench]:
    """A cell that does not go on without its scale."""
    yield from bench_of(tmp_path, scale())


@pytest.fixture
def spare(tmp_path: Path) -> Iterator[Bench]:
    """A cell that can do without it."""
    yield from bench_of(tmp_path, scale(required=False))


def ended(bench: Bench) -> dict[str, Any]:
    return dict(bench.events(Kind.EPISODE_ENDED)[-1].body)


def voids(bench: Bench) -> list[tuple[str, bool]]:
    return [(event.body["reason"], event.body["after_go"]) for event in bench.events(Kind.EPISODE_VOIDED)]


def told(bench: Bench) -> tuple[str, str]:
    entry = bench.shown()["devices"]["sensor scale"]
    return entry["state"], entry["text"]


def test_a_required_sensor_that_gives_no_values_holds_what_comes_before_an_episode(needed: Bench) -> None:
    needed.begin()
    needed.sensor(SCALE, "the cable is out")
    assert "sensor scale gives no values: the cable is out" in needed.command("commit")["error"]
    assert told(needed) == ("wrong", "no values: the cable is out")
    needed.sensor(SCALE)
    assert told(needed) == ("ok", "answers")
    assert needed.command("commit")["ok"]


def test_a_required_sensor_that_is_lost_ends_the_episode_which_is_void_by_the_machines_reason(needed: Bench) -> None:
    episode = needed.running()
    needed.sensor(SCALE, "the cable is out")
    assert ended(needed)["reason"] == "sensor_lost"
    assert ended(needed)["cause"] == "sensor scale gives no values: the cable is out"
    needed.seal(episode)
    assert voids(needed) == [("sensor_lost", True)]


def test_where_the_protocol_scores_lost_processes_the_episode_of_a_lost_sensor_is_scored(tmp_path: Path) -> None:
    for bench in bench_of(tmp_path, scale(), process_lost="score"):
        bench.seal_after = bench.running()
        bench.sensor(SCALE, "gone")
        bench.seal(bench.seal_after)
        assert voids(bench) == [] and bench.state() == "scoring"


def test_a_sensor_whose_process_ends_is_lost_as_one_that_says_so(needed: Bench) -> None:
    needed.running()
    needed.hear(Message("run", "exited", {"name": SCALE, "reason": "ended by signal 9"}))
    assert (
        ended(needed)["reason"] == "sensor_lost" and "its process was lost: ended by signal 9" in ended(needed)["cause"]
    )


def test_a_sensor_that_is_not_required_is_no_hold_and_its_loss_is_said_and_ends_nothing(spare: Bench) -> None:
    spare.begin()
    spare.sensor(SCALE, "the cable is out")
    assert spare.shown()["holds"] == [] and told(spare)[0] == "wrong"
    episode = spare.start()
    spare.go(episode)
    spare.sensor(SCALE)
    spare.sensor(SCALE, "it is out again")
    assert spare.events(Kind.EPISODE_ENDED) == []
    assert any("the episode goes on, the gap is marked" in line for line in spare.lines)
    spare.hear(Message("run", "exited", {"name": SCALE, "reason": "ended by signal 9"}))
    assert spare.events(Kind.EPISODE_ENDED) == []


@pytest.mark.parametrize(
    ("then", "reason", "void"), [("end", "interlock", []), ("void", "sensor_limit", [("sensor_limit", True)])]
)
def test_a_limit_ends_the_episode_as_the_cell_declares_it(tmp_path: Path, then: str, reason: str, void: list) -> None:
    for bench in bench_of(tmp_path, scale(limit=f"5.0 {then}"), process_lost="score"):
        episode = bench.running()
        bench.sensor(SCALE, beyond=[0])
        assert (ended(bench)["reason"], ended(bench)["cause"]) == (reason, "sensor scale: mass above 5 kg")
        assert [m.body["until_ns"] for m in bench.sent if m.kind == "lease"][-1] == 0, "nothing moves any more"
        bench.seal(episode)
        assert voids(bench) == void


def test_a_limit_that_holds_lets_the_episode_go_on_and_begins_none(tmp_path: Path) -> None:
    for bench in bench_of(tmp_path, scale(limit="5.0 hold")):
        bench.running()
        bench.sensor(SCALE, beyond=[0])
        assert bench.events(Kind.EPISODE_ENDED) == []
        assert [hold["code"] for hold in bench.shown()["holds"]] == ["sensor_limit:scale"]
        bench.sensor(SCALE)
        assert bench.shown()["holds"] == []


def test_a_limit_exceeded_before_the_commit_is_a_hold_whatever_it_would_end(tmp_path: Path) -> None:
    for bench in bench_of(tmp_path, scale(limit="5.0 void")):
        bench.begin()
        bench.sensor(SCALE, beyond=[0])
        assert "sensor scale: mass above 5 kg" in bench.command("commit")["error"]


@pytest.mark.parametrize("reports", [{"lost": "the cable is out"}, {"beyond": [0]}])
def test_a_loss_or_a_limit_after_the_budget_voids_nothing(tmp_path: Path, reports: dict[str, Any]) -> None:
    for bench in bench_of(tmp_path, scale(limit="5.0 void")):
        episode = bench.running()
        deadline_ns = bench.now_ns + round(bench.campaign.opened["budget_s"] * SECOND)
        bench.wait(deadline_ns + 50 * MILLISECOND - bench.now_ns)
        bench.sensor(SCALE, **reports)
        assert ended(bench) == {"reason": "budget", "end_ns": deadline_ns}
        assert not any("ended, " in line for line in bench.lines), "the sensor ended nothing"
        bench.seal(episode)
        assert voids(bench) == [] and bench.state() == "scoring"
