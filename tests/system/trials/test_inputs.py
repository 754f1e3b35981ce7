"""A campaign with a condition and its blurred, delayed twin: what policies see is edited, alike for every arm, both
pictures are recorded, and a person's view is as it was.
"""

from __future__ import annotations

import json
from contextlib import closing
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.policies import keeping_policy
from support.policies.cards import CAMERA, card_toml
from support.runs.campaigns import HUMAN, events_of, policy, unblind
from support.runs.task_campaign import open_tasks

from labctl.clock import MILLISECOND
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.exports.writing import Grid, Request, export_campaign
from labctl.nodes.edited_pictures import EditedPictures
from labctl.reporting.campaign_report import report_campaign
from labctl.runtime.campaign_run import run_campaign
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign
from labctl.store.video import read_frames
from labctl.viewing.episode import look_at

DELAY_S, DROPPED = 0.2, 0.25
INPUTS = f"""
[[condition.inputs]]
edit = "blur"
sigma_px = 3.0
cameras = ["wrist"]
[[condition.inputs]]
edit = "occlude"
share = 0.2
cameras = ["wrist"]
[[condition.inputs]]
edit = "drop"
share = {DROPPED}
cameras = ["wrist"]
[[condition.inputs]]
edit = "latency"
delay_s = {DELAY_S}
"""
CONDITIONS = ("over-base", "over-dim")
CAMERAS = ("over_shoulder", "wrist")
SHORT = {"budget_s = 16.0": "budget_s = 4.0", "tau_s = 16.0": "tau_s = 4.0", "arming_s = 4.0": "arming_s = 1.0"}


def keeper(lab: Path) -> dict:
    """An arm whose policy is a function that keeps its pictures."""
    cards = lab / "protocols/cards"
    cards.mkdir(parents=True)
    shown = CAMERA.format(key=keeping_policy.PICTURE, camera="wrist").replace("width = 64", "width = 96")
    text = card_toml("callable", inputs=shown.replace("height = 48", "height = 64"))
    (cards / "keeper.toml").write_text(text, "utf-8")
    options = {"card": "cards/keeper.toml", "function": "support.policies.keeping_policy:stand"}
    return {"name": "keeper", "kind": "policy", "controller": "policy_callable", "options": options}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lab = tmp_path_factory.mktemp("lab")
    arms = [HUMAN, policy("zebra", skill="swift"), keeper(lab)]
    stressed = {'family = "light"\nstress = "v1"\n': f'family = "sight"\nstress = "v1"\n{INPUTS}'}
    cell = {"width = 320": "width = 96", "height = 240": "height = 64", "rate_hz = 10.0": "rate_hz = 5.0"}
    made = open_tasks(
        lab, arms, protocol={**stressed, **SHORT},
        conditions=CONDITIONS, cell=cell, cameras=True,
    )  # fmt: skip
    keeping_policy.pictures.clear()
    run_campaign(made.folder, lambda line: None, manual=True)
    return made.folder


def episodes(folder: Path, condition: str) -> list[str]:
    """The scored episodes of a condition."""
    record = record_of(events_of(folder))
    return [episode.id for trial, episode in record.scored if trial.condition == condition]


def of_kind(folder: Path, kind: Kind, condition: str) -> list[Event]:
    own = episodes(folder, condition)
    return [event for event in events_of(folder) if event.kind == kind and event.episode in own]


def unblind_once(folder: Path) -> None:
    """Unblind it where an earlier test has not."""
    if not any(event.kind == Kind.CAMPAIGN_UNBLINDED for event in events_of(folder)):
        unblind(folder)


def film(folder: Path, episode: str, camera: str) -> dict[int, np.ndarray]:
    """The pictures of a video by when the host received each, ns."""
    with closing(TraceStore.open(f"sqlite:///{folder / 'traces.db'}", "tasks", readonly=True)) as store:
        index = store.read(episode, f"camera/{camera}")[1]
    pictures = dict(read_frames(folder / f"video/{episode}/{camera}.mp4"))
    return {int(row[2]): pictures[int(row[3])] for row in index}


def unlike(one: np.ndarray, other: np.ndarray) -> float:
    """Mean absolute difference of two pictures, in levels of 255."""
    return float(np.abs(one.astype(float) - other.astype(float)).mean())


def test_raw_and_edited_pictures_are_both_recorded_and_verified_in_every_trial_of_the_condition(folder: Path) -> None:
    plain, edited = (of_kind(folder, Kind.RECORDING_SEALED, name) for name in CONDITIONS)
    assert [sorted(event.body["videos"]) for event in plain] == [["over_shoulder", "wrist"]] * 3
    assert [sorted(event.body["videos"]) for event in edited] == [["over_shoulder", "wrist", "wrist.seen"]] * 3
    assert all("camera/wrist.seen" in event.body["streams"] for event in edited)
    assert all(event.body["gaps"] == 0 for event in (*plain, *edited)), "what is dropped on purpose is no gap"
    found = verify_campaign(folder)
    assert found.problems == []
    assert [note for note in found.notes if "seen" in note] == []


def test_the_recorded_edit_is_that_of_the_recorded_raw_picture_by_the_seed_in_the_journal(folder: Path) -> None:
    first = of_kind(folder, Kind.EPISODE_STARTED, "over-dim")[0]
    edits = next(entry for entry in events_of(folder)[0].body["conditions"] if entry["id"] == "over-dim")["inputs"]
    raw, seen = film(folder, first.episode, "wrist"), film(folder, first.episode, "wrist.seen")
    again = EditedPictures("wrist", edits, first.body["inputs_seed"])
    made = {t_ns: again.of(picture) for t_ns, picture in raw.items()}
    assert [t_ns for t_ns, picture in made.items() if picture is not None] == list(seen)
    assert 0 < len(raw) - len(seen) < len(raw) / 2
    apart = [unlike(made[t_ns], picture) for t_ns, picture in seen.items()]
    assert max(apart) < 4.0, "but for what coding costs"
    assert min(unlike(raw[t_ns], picture) for t_ns, picture in seen.items()) > 10.0


def test_the_edit_is_the_same_for_all_arms_of_a_block(folder: Path) -> None:
    seeds = {event.body["inputs_seed"] for event in of_kind(folder, Kind.EPISODE_STARTED, "over-dim")}
    assert len(seeds) == 1
    patches, kept = [], set()
    for episode in episodes(folder, "over-dim"):
        raw, seen = film(folder, episode, "wrist"), film(folder, episode, "wrist.seen")
        grey = np.all([np.abs(picture.astype(int) - 128).max(axis=2) < 12 for picture in seen.values()], axis=0)
        patches.append(grey)
        times = list(raw)
        kept.add(tuple(times.index(t_ns) for t_ns in seen if times.index(t_ns) < 20))
    both, either = np.all(patches, axis=0).sum(), np.any(patches, axis=0).sum()
    assert both > 0.8 * either > 0.15 * patches[0].size, "the patch lies at one place"
    assert len(kept) == 1, "the same frames are dropped"


def test_a_policy_was_shown_what_is_recorded_as_edited(folder: Path) -> None:
    shown = [picture for picture in keeping_policy.pictures if np.ptp(picture)]  # one of grey was asked about first
    plain, edited = (
        [picture for episode in episodes(folder, name) for picture in film(folder, episode, camera).values()]
        for name, camera in zip(CONDITIONS, ("wrist", "wrist.seen"), strict=True)
    )
    nearest = [
        tuple(min(unlike(picture, other) for other in recorded) for recorded in (plain, edited)) for picture in shown
    ]
    of_plain = [a for a, b in nearest if a < b]
    of_edited = [b for a, b in nearest if b < a]
    assert len(of_plain) > 5 and len(of_edited) > 5
    assert max((*of_plain, *of_edited)) < 4.0


def test_answers_of_policies_carry_the_latency_and_a_persons_do_not(folder: Path) -> None:
    unblind_once(folder)
    record = record_of(events_of(folder))
    waited: dict[tuple[str, str], float] = {}
    with closing(TraceStore.open(f"sqlite:///{folder / 'traces.db'}", "tasks", readonly=True)) as store:
        for trial, episode in record.scored:
            rows = store.read(episode.id, "policy")[1]
            waited[record.arms[trial.id], trial.condition] = float((rows[:, 1] - rows[:, 0]).min()) / 1e9
    for arm in ("zebra", "keeper"):
        assert waited[arm, "over-base"] < DELAY_S / 2
        assert DELAY_S <= waited[arm, "over-dim"] < 2 * DELAY_S
    assert waited["human", "over-dim"] < DELAY_S / 2


def test_when_the_clock_starts_tells_no_arm(folder: Path) -> None:
    for name, least_s in zip(CONDITIONS, (0.0, DELAY_S), strict=True):
        started = {event.episode: event.at_ns for event in of_kind(folder, Kind.EPISODE_STARTED, name)}
        late = {event.body["go_ns"] - started[event.episode] for event in of_kind(folder, Kind.GO, name)}
        assert all(abs(one / 1e9 - least_s) < 0.11 for one in late)
        assert max(late) - min(late) < 50 * MILLISECOND


def test_show_and_exports_have_the_edited_pictures_beside_the_raw_ones(folder: Path, tmp_path: Path) -> None:
    episode = episodes(folder, "over-dim")[0]
    view = look_at(folder, episode, masked=True)
    assert {"wrist", "wrist.seen"} <= set(view.videos)
    assert view.streams["camera/wrist.seen"].columns == view.streams["camera/wrist"].columns
    export_campaign(folder, Request("mcap", tmp_path / "m", where=(f"episode={episode}",)), lambda line: None)
    (made,) = (tmp_path / "m").glob("*.mcap")
    assert b"/camera/wrist.seen" in made.read_bytes()
    export_campaign(folder, Request("parquet", tmp_path / "p", where=(f"episode={episode}",)), lambda line: None)
    assert [path for path in (tmp_path / "p").rglob("*") if "wrist.seen" in path.name], "its stream"


@pytest.mark.parametrize("form", ["lerobot-v3", "lerobot-v2.1"])
def test_every_episode_of_a_dataset_has_the_same_features_edited_or_not(
    folder: Path, tmp_path: Path, form: str
) -> None:
    grid = Grid(action="measured")
    export_campaign(folder, Request(form, tmp_path / "d", grid=grid), lambda line: None)
    listed = json.loads((tmp_path / "d/meta/info.json").read_text("utf-8"))["features"]
    assert [name for name in listed if "images" in name] == [f"observation.images.{name}" for name in CAMERAS]
    assert listed["labctl.capture_time"]["names"] == list(CAMERAS)
    parts = [pq.read_schema(path) for path in sorted((tmp_path / "d/data").rglob("*.parquet"))]
    assert len(parts) == 6 and all(part.equals(parts[0]) for part in parts)
    assert not [path for path in (tmp_path / "d").rglob("*seen*")]


def test_the_report_has_latency_against_adaptation_of_policies_by_level(folder: Path, tmp_path: Path) -> None:
    unblind_once(folder)
    report_campaign(folder, tmp_path / "r", boot=19, perm=19)
    text = (tmp_path / "r/report.md").read_text("utf-8")
    section = text.split("## Latency against adaptation")[1].split("\n## ")[0]
    assert "| v1 (+200 ms) | zebra |" in section and "human" not in section.split("\n\n")[-2]
    assert (tmp_path / "r/figures/latency.svg").is_file()
    late = json.loads((tmp_path / "r/report.json").read_text("utf-8"))["lab"]["lateness"]["levels"]
    measured = {(one["arm"], one["level"]): one["measured_s"] for one in late}
    assert {arm for arm, _ in measured} == {"zebra", "keeper"}
    for arm in ("zebra", "keeper"):
        assert measured[arm, "v1"] - measured[arm, "base"] == pytest.approx(DELAY_S, abs=0.1)
