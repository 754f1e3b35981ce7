"""A LeRobot dataset shows at each frame what was recorded nearest to it, says how near, and is refused when it is not.

The format itself, as its readers demand it: tests/interop/test_lerobot.py.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import av
import numpy as np
import pandas
import pyarrow.parquet as pq
import pytest
from support.cameras.coded_camera import mark_of
from support.runs.campaigns import unblind
from support.runs.coded_campaign import PERSON, QUAGGA, ZEBRA, run_coded

from labctl.cli import call
from labctl.core.events import Kind
from labctl.exports.lerobot_episode import STAGES
from labctl.store.campaign import Campaign
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore

PLACES = {
    "lerobot-v3": ("data/chunk-000/file-{:03d}.parquet", "videos/{}/chunk-000/file-{:03d}.mp4"),
    "lerobot-v2.1": ("data/chunk-000/episode_{:06d}.parquet", "videos/chunk-000/{}/episode_{:06d}.mp4"),
}
CAMERAS = ("over_shoulder", "wrist")


def export(folder: Path, out: Path, *words: str, form: str = "lerobot-v3") -> int:
    return call(["export", str(folder), "--to", form, "--out", str(out), *words])


OLDER = pytest.param("lerobot-v2.1", marks=pytest.mark.thorough)


@pytest.fixture(scope="module", params=["lerobot-v3", OLDER])
def form(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module")
def dataset(unblinded: Path, form: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("lerobot") / "out"
    assert export(unblinded, out, form=form) == 0
    return out


@pytest.fixture(scope="module")
def episodes(dataset: Path, form: str) -> list[dict[str, Any]]:
    if form == "lerobot-v3":
        return pq.read_table(dataset / "meta/episodes/chunk-000/file-000.parquet").to_pylist()
    return [json.loads(line) for line in (dataset / "meta/episodes.jsonl").read_text().splitlines()]


def frames(dataset: Path, form: str, number: int) -> dict[str, np.ndarray]:
    """Columns of an episode, (n,) or (n, k)."""
    table = pq.read_table(dataset / PLACES[form][0].format(number))
    return {name: np.array(table[name].to_pylist(), float) for name in table.column_names}


@pytest.fixture(scope="module")
def store(unblinded: Path) -> Any:
    made = TraceStore.open(sqlite_url(unblinded / "traces.db"), unblinded.name, readonly=True)
    yield made
    made.close()


@pytest.fixture(scope="module")
def go_ns(unblinded: Path) -> dict[str, int]:
    with Campaign.open(unblinded) as campaign:
        return {trial.episode or "": trial.go_ns or 0 for trial in campaign.state.trials.values()}


def columns_of(store: TraceStore, episode: str, stream: str) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    spec = next(spec for spec in store.streams(episode) if spec.name == stream)
    t_ns, values = store.read(episode, stream)
    return t_ns, {name: values[:, i] for i, name in enumerate(spec.columns)}


def test_frames_stand_on_a_uniform_grid_from_go_to_the_end(dataset: Path, form: str, episodes: list[dict]) -> None:
    first = 0
    for number, episode in enumerate(episodes):
        found = frames(dataset, form, number)
        n = episode["length"]
        np.testing.assert_array_equal(found["timestamp"], (np.arange(n) / 10).astype(np.float32))
        np.testing.assert_array_equal(found["frame_index"], np.arange(n))
        np.testing.assert_array_equal(found["index"], np.arange(first, first + n))
        assert set(found["episode_index"]) == {number} and set(found["task_index"]) == {0}
        np.testing.assert_allclose(np.diff(found["labctl.since_go"]), 0.1, atol=1e-8)
        assert 0 <= found["labctl.since_go"][0] < 0.2
        first += n
    told = json.loads((dataset / "labctl.json").read_text())["contents"]
    assert first == told["frames"] > 1000 and len(episodes) == 6


def test_state_is_the_arms_own_at_each_frame(
    dataset: Path, form: str, episodes: list[dict], store: TraceStore, go_ns: dict[str, int]
) -> None:
    """Against numpy's interpolation of the recorded samples, done here."""
    joints = json.loads((dataset / "meta/info.json").read_text())["features"]["observation.state"]["names"]
    for number, episode in enumerate(episodes):
        found = frames(dataset, form, number)
        t_ns, state = columns_of(store, episode["labctl.episode"], "arm/state")
        since = (t_ns - go_ns[episode["labctl.episode"]]) / 1e9
        for i, joint in enumerate(joints):
            name = "gripper" if joint == "gripper" else f"q.{joint}"
            wanted = np.interp(found["labctl.since_go"], since, state[name])
            np.testing.assert_allclose(found["observation.state"][:, i], wanted, atol=2e-6)
        speeds = np.interp(found["labctl.since_go"], since, state["dq.fr3_joint1"])
        np.testing.assert_allclose(found["labctl.joint_velocity"][:, 0], speeds, atol=1e-5)
        assert np.abs(np.linalg.norm(found["labctl.tcp_pose"][:, 3:], axis=1) - 1).max() < 1e-6


def test_an_action_is_the_setpoint_that_stands_when_its_frame_ends(
    dataset: Path, form: str, episodes: list[dict], store: TraceStore, go_ns: dict[str, int]
) -> None:
    for number, episode in enumerate(episodes):
        found = frames(dataset, form, number)
        t_ns, action = columns_of(store, episode["labctl.episode"], "arm/action")
        due = found["labctl.since_go"] + 0.1
        since = (t_ns - go_ns[episode["labctl.episode"]]) / 1e9
        last = np.searchsorted(since, due + 1e-9, side="right") - 1
        begun = last >= 0
        assert begun.sum() > 0.9 * len(due)
        for stage in STAGES:
            key = "action" if stage == "sent" else f"labctl.action_{stage}"
            wanted = action[f"{stage}.fr3_joint2"][last[begun]]
            np.testing.assert_allclose(found[key][begun, 1], wanted, atol=1e-6)
        np.testing.assert_allclose(found["labctl.action_age"][begun], (due - since[last])[begun], atol=1e-6)
        np.testing.assert_allclose(found["action"][~begun], found["observation.state"][~begun], atol=1e-3)
        assert np.isnan(found["labctl.action_age"][~begun]).all()


def test_every_frame_shows_the_picture_taken_nearest_to_it_and_says_when(
    dataset: Path, form: str, episodes: list[dict], unblinded: Path, go_ns: dict[str, int]
) -> None:
    """A picture's mark says when it was taken: it must be the time that is told, and none of the others be nearer."""
    worst = 0.0
    for number, episode in enumerate(episodes):
        found = frames(dataset, form, number)
        go = go_ns[episode["labctl.episode"]]
        for i, camera in enumerate(CAMERAS):
            with av.open(str(dataset / PLACES[form][1].format(f"observation.images.{camera}", number))) as container:
                assert container.streams.video[0].average_rate == 10
                marks = [mark_of(frame.to_ndarray(format="rgb24")) for frame in container.decode(video=0)]
            taken = np.array([mark.t_ns for mark in marks if mark])
            assert len(taken) == episode["length"]
            np.testing.assert_allclose((taken - go) / 1e9, found["labctl.capture_time"][:, i], atol=1e-9)
            store = TraceStore.open(sqlite_url(unblinded / "traces.db"), unblinded.name, readonly=True)
            all_taken = store.read(episode["labctl.episode"], f"camera/{camera}")[0]
            store.close()
            at = go + np.round(found["labctl.since_go"] * 1e9)
            error = np.abs(taken - at)
            assert (error <= np.abs(all_taken[None, :] - at[:, None]).min(axis=1) + 1).all()
            worst = max(worst, error.max() / 1e6)
    told = json.loads((dataset / "labctl.json").read_text())["contents"]["max_error_ms"]
    assert worst == pytest.approx(told, abs=0.01) and 1 < worst < 10
    assert max(episode["labctl.max_error_ms"] for episode in episodes) == told


def test_items_moved_rise_when_the_table_says_so(
    dataset: Path, form: str, episodes: list[dict], unblinded: Path
) -> None:
    with Campaign.open(unblinded) as campaign:
        told = campaign.events()
    looked = 0
    for number, episode in enumerate(episodes):
        found = frames(dataset, form, number)
        own = [event for event in told if event.episode == episode["labctl.episode"]]
        go = next(event.body["go_ns"] for event in own if event.kind == Kind.GO)
        moves = [e.body["t_ns"] for e in own if e.kind == Kind.OPERATION_RECORDED and e.body["result"] == "success"]
        wanted = [sum((t_ns - go) / 1e9 <= since + 1e-6 for t_ns in moves) for since in found["labctl.since_go"]]
        np.testing.assert_array_equal(found["labctl.items_moved"], wanted)
        looked += len(moves)
    assert looked >= 6


def test_tables_about_it_agree_with_what_is_there(dataset: Path, form: str, episodes: list[dict]) -> None:
    info = json.loads((dataset / "meta/info.json").read_text())
    assert info["codebase_version"] == {"lerobot-v3": "v3.0", "lerobot-v2.1": "v2.1"}[form]
    assert (info["total_episodes"], info["total_frames"], info["fps"]) == (6, sum(e["length"] for e in episodes), 10)
    table = pq.read_table(dataset / PLACES[form][0].format(0))
    videos = {name for name, one in info["features"].items() if one["dtype"] == "video"}
    assert videos == {f"observation.images.{camera}" for camera in CAMERAS}
    assert set(table.column_names) == set(info["features"]) - videos, "an undeclared column breaks the loader"
    for name in table.column_names:
        kind, one = table.schema.field(name).type, info["features"][name]
        width, inner = (kind.list_size, kind.value_type) if hasattr(kind, "list_size") else (1, kind)
        assert one["shape"] == [width] and one["dtype"] == str(inner).replace("double", "float64").replace(
            "float", "float32" if str(inner) == "float" else "float"
        )
        assert one["names"] is None or len(one["names"]) == width
    assert [e["labctl.success"] for e in episodes].count(True) == 2
    assert {e["labctl.arm"] for e in episodes} == {ZEBRA, QUAGGA, PERSON}
    modality = json.loads((dataset / "meta/modality.json").read_text())
    assert modality["action"] == {"arm": {"start": 0, "end": 7}, "gripper": {"start": 7, "end": 8}}


def test_statistics_are_those_of_all_frames(dataset: Path, form: str, episodes: list[dict]) -> None:
    parts = [frames(dataset, form, number) for number in range(len(episodes))]
    if form == "lerobot-v3":
        stats = [json.loads((dataset / "meta/stats.json").read_text())]
        parts = [{name: np.concatenate([part[name] for part in parts]) for name in parts[0]}]
    else:
        lines = (dataset / "meta/episodes_stats.jsonl").read_text().splitlines()
        stats = [json.loads(line)["stats"] for line in lines]
    for part, found in zip(parts, stats, strict=True):
        for name in ("observation.state", "action", "timestamp", "labctl.items_moved"):
            values = part[name].reshape(len(part[name]), -1)
            np.testing.assert_allclose(found[name]["mean"], values.mean(axis=0), atol=1e-6)
            np.testing.assert_allclose(found[name]["q90"], np.quantile(values, 0.9, axis=0), atol=1e-6)
            assert found[name]["count"] == [len(values)]
        image = found["observation.images.wrist"]
        assert np.shape(image["std"]) == (3, 1, 1) and 0.2 < np.mean(image["mean"]) < 0.8


def test_a_v3_task_is_found_by_its_place_in_the_index_as_pandas_reads_it(
    dataset: Path, form: str, episodes: list[dict]
) -> None:
    if form == "lerobot-v3":
        tasks = pandas.read_parquet(dataset / "meta/tasks.parquet")
        assert tasks.iloc[0].name == "Move the items." and tasks.loc["Move the items."].task_index == 0
    else:
        assert json.loads((dataset / "meta/tasks.jsonl").read_text()) == {"task_index": 0, "task": "Move the items."}
    assert all(episode["tasks"] == ["Move the items."] for episode in episodes)


@pytest.mark.thorough
def test_both_versions_hold_the_same_frames(unblinded: Path, tmp_path: Path) -> None:
    for form in PLACES:
        assert export(unblinded, tmp_path / form, "--where", "outcome=success", form=form) == 0
    for number in range(2):
        data = [pq.read_table(tmp_path / form / PLACES[form][0].format(number)) for form in PLACES]
        assert data[0].equals(data[1])
        for camera in CAMERAS:
            key = f"observation.images.{camera}"
            videos = [(tmp_path / form / PLACES[form][1].format(key, number)).read_bytes() for form in PLACES]
            assert videos[0] == videos[1]


@pytest.mark.thorough
def test_another_rate_another_action_and_failures_alone(unblinded: Path, tmp_path: Path) -> None:
    words = ["--fps", "25", "--action", "requested", "--where", "outcome=failure", "--where", f"arm={ZEBRA}"]
    assert export(unblinded, tmp_path / "out", *words) == 0
    info = json.loads((tmp_path / "out/meta/info.json").read_text())
    assert info["fps"] == 25 and info["total_episodes"] == 2
    assert "labctl.action_sent" in info["features"] and "labctl.action_requested" not in info["features"]
    told = json.loads((tmp_path / "out/labctl.json").read_text())["contents"]
    assert 40 < told["max_error_ms"] < 60, "half of a camera's period and its jitter"


@pytest.fixture(scope="module")
def holed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign whose camera gave no picture for nearly half a second."""
    folder = run_coded(tmp_path_factory.mktemp("holed"), name="holed", hole_after=120, hole_ms=480)
    unblind(folder)
    return folder


@pytest.mark.thorough
def test_an_episode_that_does_not_fit_the_grid_is_refused_with_its_error(
    holed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(holed, tmp_path / "out", "--fps", "20") == 2
    err = capsys.readouterr().err
    assert "1 of 6 episodes" in err and "camera/over_shoulder is 2" in err and "(bound 125.0)" in err
    assert "--max-error-ms" in err and "--skip-inexact" in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.thorough
def test_it_can_be_left_out_or_let_in_and_both_are_said(
    holed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(holed, tmp_path / "without", "--fps", "20", "--skip-inexact") == 0
    out = capsys.readouterr().out
    assert "left out: e-" in out and "wrote 5 episodes, " in out and ", 1 left out" in out
    info = json.loads((tmp_path / "without/meta/info.json").read_text())
    assert info["total_episodes"] == 5
    contents = json.loads((tmp_path / "without/labctl.json").read_text())["contents"]
    assert len(contents["skipped"]) == 1 and contents["episodes"] == 5
    assert export(holed, tmp_path / "with", "--fps", "20", "--max-error-ms", "500") == 0
    told = json.loads((tmp_path / "with/labctl.json").read_text())["contents"]
    assert told["skipped"] == [] and 125 < told["error_ms"]["camera/over_shoulder"]["max"] < 300


def test_a_stated_bound_holds_for_everything(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(unblinded, tmp_path / "out", "--max-error-ms", "7") == 2
    assert "(bound 7.0)" in capsys.readouterr().err


def test_before_unblinding_actions_stay_sealed_and_the_next_state_can_stand_in(
    blinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(blinded, tmp_path / "out") == 1
    assert "--action measured" in capsys.readouterr().err and list(tmp_path.iterdir()) == []
    assert export(blinded, tmp_path / "out", "--action", "measured", "--where", "block=0") == 0
    found = frames(tmp_path / "out", "lerobot-v3", 0)
    assert not any(name.startswith("labctl.action") for name in found)
    np.testing.assert_array_equal(found["action"][:-1], found["observation.state"][1:])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--fps", "0"], "1 to 1000"),
        (["--max-error-ms", "-1"], "0 or more"),
        (["--max-error-ms", "nan"], "0 or more"),
        (["--action", "dreamt"], "sent, limited, requested, measured"),
    ],
)
def test_numbers_that_cannot_be_are_one_line(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    assert export(unblinded, tmp_path / "out", *words) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1 and list(tmp_path.iterdir()) == []


def test_options_of_a_grid_are_refused_where_there_is_none(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert export(unblinded, tmp_path / "out", "--fps", "10", form="parquet") == 2
    assert "are for lerobot-v3, lerobot-v2.1, not parquet" in capsys.readouterr().err
