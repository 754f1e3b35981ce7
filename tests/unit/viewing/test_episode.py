"""What a view of an episode holds: which robot a cell has, through whatever wraps its driver, and nothing that tells
arms apart while the campaign is blinded.
"""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.runs.run_bench import Bench
from support.runs.task_campaign import open_tasks

from labctl.clock import SECOND
from labctl.core import timeline
from labctl.core.events import Event, Kind
from labctl.store.campaign import Campaign
from labctl.store.traces import TraceStore
from labctl.testing.given import FIXTURE
from labctl.viewing import episode as viewing
from labctl.viewing.episode import look_at, robot_model

OLD = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab" / "campaigns" / "old"
EPISODE = "e-5c32db9dea"


@pytest.mark.parametrize("tells_apart", [False, True])
def test_a_gap_in_a_stream_that_tells_arms_apart_is_not_in_a_masked_view(
    tells_apart: bool, monkeypatch: pytest.MonkeyPatch
):
    """Not even that there is such a stream."""
    gap = {"stream": "tracker", "from_ns": 7_500_000_000, "to_ns": 7_600_000_000, "lost": 3, "why": "late"}
    folded, attempted, streams = viewing.record_of, timeline.attempt, TraceStore.streams

    def with_a_gap(events, state):
        record = folded(events, state)
        record.episodes[EPISODE] = replace(record.episodes[EPISODE], gaps=(gap,))
        return record

    def with_its_entry(events, name):
        found = attempted(events, name)
        return [*found, replace(found[-1], kind=Kind.GAP, body=gap)]

    def declared(store, name):
        found = streams(store, name)
        return [replace(spec, arm_dependent=tells_apart and spec.name == "tracker") for spec in found]

    monkeypatch.setattr(viewing, "record_of", with_a_gap)
    monkeypatch.setattr(timeline, "attempt", with_its_entry)
    monkeypatch.setattr(TraceStore, "streams", declared)
    view = look_at(OLD, EPISODE, masked=True)
    shown = [*view.streams, *view.timelines, *(text for _, _, text in view.events)]
    assert any("tracker" in text for text in shown) is not tells_apart
    assert any("gap" in text for text in shown) is not tells_apart


@pytest.mark.parametrize(
    ("driver", "options", "model"),
    [
        ("sim_fr3", {}, "fr3"),
        ("sim_ur5", {}, "ur5"),
        ("franka", {"host": "172.16.0.2"}, "fr3"),
        ("ur5", {"model": "ur5e"}, "ur5e"),
        ("ur5", {"host": "10.0.0.2"}, "ur5e"),  # what drivers/ur/options.py takes where nothing is said
        ("ur5", {"host": "10.0.0.2", "model": "ur5"}, "ur5"),
        ("emulated", {"driver": "ur5", "driver_options": {"model": "ur5e"}}, "ur5e"),
        ("faults", {"driver": "emulated", "driver_options": {"driver": "franka"}}, "fr3"),
        ("replay", {"arm": "ur5"}, "ur5"),
        ("replay", {"file": "x.npz"}, "fr3"),
        ("their_robot:build", {"model": "ur10"}, "ur10"),  # a driver that is not here any more
    ],
)
def test_the_model_is_found(driver, options, model):
    assert robot_model(driver, options) == model


def test_a_condition_with_a_name_of_its_own_has_its_objects_size_and_its_layouts_target():
    """Both were read out of the name, which is "object/layout" in the short form alone: no tote was the target, and
    every item a cube of 3 cm.
    """
    short = look_at(OLD, EPISODE, masked=True)
    entry = {"id": "fold a towel", "object": "towels", "layout": "layout-1"}
    campaign: Any = SimpleNamespace(opened={"conditions": [entry]}, fixture=FIXTURE)
    trial: Any = SimpleNamespace(condition="fold a towel")
    thing, layout = viewing._staged(campaign, trial)
    assert viewing._item_size(campaign, thing) == short.item_size_m is not None
    assert viewing._totes(campaign, layout) == short.totes
    assert [target for *_, target in short.totes.values()].count(True) == 1


def test_an_episode_of_a_task_that_is_not_counted_in_items_lacks_no_move(tmp_path: Path):
    opened = open_tasks(tmp_path, conditions=["score"], protocol={'early_end = "forbidden"\n': ""})
    with Campaign.open(opened.folder, writer=True) as campaign:
        bench = Bench(campaign)
        episode = bench.running()
        bench.wait(6 * SECOND)
        bench.command("end", reason="futility")
        bench.seal(episode)
        bench.command("score", role="assessor", score=0.5)
    view = look_at(opened.folder, episode, masked=True)
    assert "operations" not in view.timelines and view.facts["score"] == 0.5
    assert "scored: score 0.5" in [text for _, _, text in view.events]


def test_a_view_without_samples_lasts_until_its_episode_was_scored_however_late_it_is_corrected() -> None:
    def entry(seq: int, kind: Kind, at_ns: int) -> Event:
        return Event(seq, kind, at_ns, "b", "2026-01-01T00:00:00Z", "run", "t", "e")

    told = [entry(1, Kind.ARM_REVEALED, 5), entry(2, Kind.OUTCOME_RECORDED, 9), entry(3, Kind.OUTCOME_CORRECTED, 9_000)]
    assert viewing._span(told, {}) == (5, 9)
