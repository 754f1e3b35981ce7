"""Every episode of a LeRobot dataset has the same features, whatever else was filmed of some of them."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labctl.clock import SECOND
from labctl.exports import lerobot_episode as module
from labctl.exports.lerobot import refusal
from labctl.exports.lerobot_episode import Misfit, Terms, features, plan
from labctl.exports.recordings import Pictures
from labctl.streams import STATE, StreamSpec

TERMS = Terms(5, "measured")


def recording(pictures: dict[str, np.ndarray]) -> Any:
    """Four seconds of a robot's states at 10 Hz, and cameras whose pictures were received at these times, host ns."""
    t_ns = np.arange(0, 4 * SECOND, SECOND // 10)
    specs = [StreamSpec(STATE, ("q.a", "gripper"), "rad m", 10.0)]
    specs += [StreamSpec(f"camera/{name}", ("host_ns", "pts_us"), "", 5.0, "<i8") for name in pictures]
    filmed = {name: Pictures(Path(name), at_ns, at_ns // 1000, 0.0) for name, at_ns in pictures.items()}
    return SimpleNamespace(
        specs=tuple(specs),
        pictures=filmed,
        go_ns=0,
        end_ns=4 * SECOND - 1,
        chosen=SimpleNamespace(episode="e"),
        episode=SimpleNamespace(gaps=(), interventions=()),
        robots=(STATE,),
        read=lambda stream: (t_ns, np.zeros((len(t_ns), 2))),
        has=lambda stream: stream == STATE,
        spec=lambda stream: next(spec for spec in specs if spec.name == stream),
    )


def test_an_episode_whose_pictures_were_edited_has_the_features_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that its condition dropped on purpose hold it to no bound either."""
    raw = np.arange(0, 4 * SECOND, SECOND // 5)
    seen = np.delete(raw, [5, 6, 7])
    monkeypatch.setattr(module, "frame_times", lambda path: (raw if path.name == "wrist" else seen) // 1000)
    plain = plan(recording({"wrist": raw}), TERMS, ["wrist"])
    edited = plan(recording({"wrist": raw, "wrist.seen": seen}), TERMS, ["wrist"])
    assert edited.problems(TERMS) == plain.problems(TERMS) == []
    assert [*edited.places_us] == [*plain.places_us] == ["wrist"]
    times = [features(found, TERMS, [])["labctl.capture_time"] for found in (plain, edited)]
    assert [one.names for one in times] == [("wrist",), ("wrist",)]
    np.testing.assert_array_equal(times[0].values, times[1].values)


def test_a_misfit_says_whether_a_larger_bound_lets_it_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hole of two seconds it does; no picture at all, and an episode without a frame, it does not."""
    raw = np.arange(0, 4 * SECOND, SECOND // 5)
    holed = np.delete(raw, range(5, 15))
    monkeypatch.setattr(module, "frame_times", lambda path: holed // 1000 if path.name == "holed" else raw[:0])
    late, never = plan(recording({"holed": holed, "dark": raw}), TERMS, ["holed", "dark"]).problems(TERMS)
    assert (late.text, late.of_time) == ("e camera/holed is 1000.0 ms off (bound 250.0)", True)
    assert (never.text, never.of_time) == ("e camera/dark has no sample", False)
    crashed = recording({})
    crashed.end_ns = SECOND // 100
    assert plan(crashed, TERMS, []).problems(TERMS) == [("e is shorter than a frame", False)]


@pytest.mark.parametrize(
    ("of_time", "helps"),
    [
        ([True, True], "with --skip-inexact, or allow more with --max-error-ms N"),
        ([False, True], "with --skip-inexact; --max-error-ms N lets in only what is off by a time"),
        ([False], "with --skip-inexact"),
    ],
)
def test_a_refusal_names_a_larger_bound_only_where_it_helps(of_time: list[bool], helps: str) -> None:
    said = refusal(10, 2, 6, [Misfit("e-1 will not do", one) for one in of_time])
    assert said.startswith("at 10 frames a second 2 of 6 episodes cannot be put on the grid: e-1 will not do; ")
    assert said.endswith(f"leave them out {helps}")


def test_a_camera_of_the_cell_is_in_it_whatever_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = np.arange(0, 4 * SECOND, SECOND // 5)
    monkeypatch.setattr(module, "frame_times", lambda path: raw // 1000)
    cameras = ["wrist", "wrist.seen"]
    assert [*plan(recording(dict.fromkeys(cameras, raw)), TERMS, cameras).places_us] == cameras
