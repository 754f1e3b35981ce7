"""Which pictures of a recording are shown at a moment of it: never one that had not come, nor one that is too old."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from support.runs.campaigns import cell_toml

from labctl.bus import Message
from labctl.checks.keyframe_questions import oldest_ns, pictures_at
from labctl.checks.keyframes import Keyframe
from labctl.checks.offline_frames import Path, observations
from labctl.checks.witness import _seen, _shown
from labctl.clock import MILLISECOND, SECOND
from labctl.config.cell_schema import parse_cell
from labctl.devices import Pace
from labctl.exports.recordings import Pictures, Recording
from labctl.nodes.observation_buffer import ObservationBuffer
from labctl.store.video import VideoWriter

GO_NS, END_NS = SECOND, 12 * SECOND
LATENCY_S = 0.15
RECEIVED_NS = np.array([n * SECOND // 10 for n in range(50)] + [10 * SECOND + n * SECOND // 10 for n in range(15)])


def at(*seconds: float) -> list[Keyframe]:
    return [Keyframe(round(one * SECOND), "even") for one in seconds]


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Recording:
    """10 pictures a second from a second before go on, none from 5 to 10 s; each grey by its number."""
    path = tmp_path_factory.mktemp("video") / "wrist.mp4"
    places = (RECEIVED_NS // 1000).tolist()
    writer = VideoWriter(path, 64, 48, rate_hz=10.0)
    for number, place_us in enumerate(places):
        writer.write(np.full((48, 64, 3), 3 * number, np.uint8), place_us)
    writer.close()
    filmed = Pictures(path, RECEIVED_NS, np.array(places), LATENCY_S)
    return cast(Recording, SimpleNamespace(pictures={"wrist": filmed}, go_ns=GO_NS, end_ns=END_NS))


def way() -> Path:
    t_ns = np.arange(0, END_NS + 1, SECOND // 100)
    n = len(t_ns)
    return Path(t_ns, np.zeros((n, 7)), np.zeros((n, 7)), np.tile([0, 0, 0, 0, 0, 0, 1.0], (n, 1)), np.zeros(n))


def on_the_robot(t_ns: int, pace: Pace) -> list[tuple[int, int]] | None:
    """When the pictures of a question at t_ns were taken, and their greys; None where the question waits."""
    buffer = ObservationBuffer({"wrist": LATENCY_S})
    buffer.pace = pace
    buffer.see(Message("@obs", "obs", {"t_ns": t_ns}, {}))
    for number, came_ns in enumerate(RECEIVED_NS.tolist()):
        if came_ns == GO_NS + SECOND // 10:
            buffer.forget()  # at go, which was before this picture
        image = np.full((1, 1), 3 * number)
        if came_ns <= t_ns:
            buffer.see(Message("@frames", "frame", {"camera": "wrist", "t_ns": came_ns}, {"image": image}))
    if not buffer.ready(t_ns):
        return None
    return [(one.t_ns, int(one.image[0, 0])) for one in buffer.observation("").images["wrist"]]


@pytest.mark.parametrize("history_s", [0.0, 1.0])
@pytest.mark.parametrize("max_age_s", [0.3, 60.0])
def test_a_keyframe_is_shown_what_the_policy_would_have_had_then(
    recording: Recording, max_age_s: float, history_s: float
) -> None:
    pace = Pace(cameras=("wrist",), max_age_s=max_age_s, history_s=history_s)
    times = np.array([1050, 1400, 2000, 4990, 5080, 7000, 9990, 10000, 10400, 11300]) * MILLISECOND
    found = observations(recording, way(), times, instruction="", pace=pace)
    for t_ns, one in zip(times.tolist(), found, strict=True):
        shown = one and [(picture.t_ns, round(picture.image.mean())) for picture in one.images["wrist"]]
        expected = on_the_robot(t_ns, pace)
        assert (shown is None) == (expected is None), f"at {t_ns / SECOND} s"
        for (taken_ns, grey), (right_ns, right) in zip(shown or [], expected or [], strict=True):
            assert taken_ns == right_ns and grey == pytest.approx(right, abs=1), f"at {t_ns / SECOND} s"
    assert [one is None for one in found].count(True) == (3 if max_age_s < 1 else 0)


def test_a_moment_in_a_gap_has_no_picture_and_a_picture_says_when_it_was_taken(recording: Recording) -> None:
    found = pictures_at(recording, "wrist", at(2.0, 5.5, 6.0, 9.5, 10.5), SECOND)
    times = {t_ns / SECOND: taken_ns / SECOND for t_ns, (taken_ns, _) in found.items()}
    assert times == {2.0: 1.95, 5.5: 4.75, 10.5: 10.45}
    for taken_ns, image in found.values():
        number = int(np.flatnonzero(recording.pictures["wrist"].taken_ns == taken_ns)[0])
        assert image.mean() == pytest.approx(3 * number, abs=1)


def test_a_picture_of_a_slow_camera_may_be_three_of_its_pictures_old() -> None:
    camera = parse_cell(cell_toml(cameras=True), "c.toml").camera[0]
    slow = camera.model_copy(update={"name": "slow", "rate_hz": 0.5})
    assert oldest_ns([camera, slow]) == {
        name: limit for one, limit in ((camera.name, SECOND), ("slow", 6 * SECOND)) for name in (one, f"{one}.seen")
    }


def test_a_witness_is_sent_no_picture_twice_and_none_from_a_gap_and_is_told_who_has_the_end(
    recording: Recording,
) -> None:
    filmed = recording.pictures["wrist"]
    short = replace(filmed, t_ns=filmed.t_ns[:50], pts_us=filmed.pts_us[:50])  # its cable came out at 5 s
    both = cast(Recording, SimpleNamespace(pictures={"front": short, "wrist": filmed}))
    oldest = {"front": SECOND, "wrist": SECOND}
    sent, images, ended = _shown(both, at(2.0, 5.0, 5.5, 7.0, 12.0), oldest)
    assert {view: [t_ns / SECOND for t_ns in times] for view, times in sent.items()} == {
        "front": [1.95, 4.75],
        "wrist": [1.95, 4.75, 11.25],
    }
    assert ended == {"wrist"} and len(images) == 5
    assert _seen({"front": 2, "wrist": 3}, ended) == (
        "You see 2 pictures of camera 1, not to the end; 3 pictures of camera 2, to the end of the attempt, "
        "each in the order of time."
    )
    assert _seen({"wrist": 3}, ended) == (
        "You see 3 pictures of camera 1, each in the order of time, to the end of the attempt."
    )
    blind = cast(Recording, SimpleNamespace(pictures={"front": short}))
    assert _shown(blind, at(2.0, 12.0), oldest)[2] == set()
