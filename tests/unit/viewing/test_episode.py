"""What a view of an episode holds: which robot a cell has, through whatever wraps its driver, and nothing that tells
arms apart while the campaign is blinded.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from labctl.core import timeline
from labctl.core.events import Kind
from labctl.store.traces import TraceStore
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
