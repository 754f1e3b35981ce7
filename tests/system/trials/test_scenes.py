"""Scenes in whole campaigns in simulated time: photographed, held against their block's first, and holding a commit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from support.runs.campaigns import HUMAN, ROOT, events_of, make_campaign, policy

import labctl.runtime.campaign_run
from labctl.cli import call
from labctl.clock import SECOND
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.core.trial import State, fold
from labctl.errors import DeviceLost, MissingExtra
from labctl.runtime.campaign_run import run_campaign
from labctl.store.pictures import decode_png
from labctl.store.verify import verify_campaign

ARMS = [HUMAN, policy("policy-a", skill="swift")]
QUICK = {"items": 1, "budget": 4.0, "arming": 2.0}
PUT_BACK_S = 30.0


def scene(*rules: str) -> dict[str, str]:
    """The protocol with lines in [scene]."""
    return {"[design]": "\n".join(["[scene]", *rules, "[design]"])}


def knocked(**fault: Any) -> dict[str, str]:
    """The cell whose over-the-shoulder camera has a fault from the first episode until PUT_BACK_S."""
    lines = "\n".join(f"{key} = {value}" for key, value in {"from_s": 3.0, "to_s": PUT_BACK_S, **fault}.items())
    return {
        'driver = "sim_camera"': 'driver = "support.cameras.knocked_camera:build"',
        'view = "over_shoulder"': f'view = "over_shoulder"\n{lines}',
    }


def run(folder: Path, **given: Any) -> list[str]:
    said: list[str] = []
    run_campaign(folder, said.append, manual=True, **given)
    return said


def commits(folder: Path) -> list[Event]:
    return [event for event in events_of(folder) if event.kind == Kind.SCENE_COMMITTED]


def since_start(folder: Path, event: Event) -> float:
    """Seconds since the run began."""
    began = next(entry for entry in events_of(folder) if entry.kind == Kind.RUN_STARTED)
    return (event.at_ns - began.at_ns) / SECOND


def test_pairs_start_from_one_scene_and_blocks_from_scenes_of_their_own(tmp_path):
    folder = make_campaign(tmp_path, ARMS, cameras=True, blocks=3, **QUICK).folder
    run(folder)
    events = events_of(folder)
    state, found = fold(events), commits(folder)
    assert len(found) == 6 and verify_campaign(folder).counts.photos == 12
    first: dict[int, Event] = {}
    for event in found:
        block = state.trials[event.trial].block
        for camera, match in event.body["match"].items():
            assert match["problem"] is None
            if block not in first:
                assert not match["counts"]
                continue
            assert match["counts"] and match["reference"] == first[block].body["photo"][camera]["sha256"]
            assert match["scene"]["score"] > 80 and match["pose"]["moved_px"] < 1.0
        first.setdefault(block, event)
    informed = [event.body["match"]["wrist"]["scene"] for event in first.values()]
    assert informed[0] is None and all(match["score"] < 60 for match in informed[1:]), "other places, and only said"
    for episode in record_of(events).episodes.values():
        pictures = [decode_png((folder / photo["file"]).read_bytes()) for photo in episode.scene.photos.values()]
        assert {picture.shape for picture in pictures} == {(240, 320, 3)}


def test_photos_are_taken_before_anything_is_revealed(tmp_path):
    folder = make_campaign(tmp_path, ARMS, cameras=True, **QUICK).folder
    run(folder)
    events = events_of(folder)
    for committed, revealed in zip(commits(folder), [e for e in events if e.kind == Kind.ARM_REVEALED], strict=True):
        assert revealed.seq == committed.seq + 1
        assert all(photo["t_ns"] <= committed.at_ns for photo in committed.body["photo"].values())


def test_a_retry_after_a_void_starts_from_the_scene_of_its_block(tmp_path):
    """The controller is lost once, in the second episode; the scene is staged again as it was for both."""
    folder = make_campaign(tmp_path, ARMS, cameras=True, **QUICK).folder
    visits: list[int] = []

    class Dies:
        def __init__(self, inner: Any) -> None:
            self.inner, self.name, self.topics = inner, inner.name, inner.topics
            visits.append(1)

        def step(self, now_ns: int, inbox: list[Any]) -> Any:
            if len(visits) == 2 and any(message.kind == "start" for message in inbox):
                raise DeviceLost("gone")
            return self.inner.step(now_ns, inbox)

        @property
        def finished(self) -> bool:
            return self.inner.finished

    run(folder, wrap=lambda node: Dies(node) if node.name == "controller" else node)
    found = commits(folder)
    assert len(found) == 3 and found[1].trial == found[2].trial
    assert [event.body["match"]["wrist"]["reference"] for event in found[1:]] == [
        found[0].body["photo"]["wrist"]["sha256"]
    ] * 2
    assert all(event.body["match"]["over_shoulder"]["scene"]["score"] > 80 for event in found[1:])


def test_a_knocked_camera_holds_the_next_commit_until_it_is_put_back(tmp_path):
    folder = make_campaign(tmp_path, ARMS, cameras=True, cell=knocked(shift_px=9), **QUICK).folder
    run(folder)
    first, second = commits(folder)
    assert since_start(folder, first) < 10
    assert PUT_BACK_S < since_start(folder, second) < PUT_BACK_S + 10
    assert second.body["match"]["over_shoulder"]["pose"]["moved_px"] < 0.5
    assert {trial.state for trial in fold(events_of(folder)).trials.values()} == {State.SCORED}


@pytest.mark.thorough
def test_a_camera_that_moved_less_than_the_protocol_allows_does_not_hold(tmp_path):
    folder = make_campaign(
        tmp_path, ARMS, cameras=True, cell=knocked(shift_px=9), protocol=scene("max_camera_shift_px = 12"), **QUICK
    ).folder
    run(folder)
    second = commits(folder)[1]
    assert since_start(folder, second) < PUT_BACK_S
    assert second.body["match"]["over_shoulder"]["pose"]["shift_px"] == pytest.approx([9.0, 0.0], abs=0.5)


@pytest.mark.thorough
def test_something_left_in_the_scene_holds_a_commit_that_needs_a_score(tmp_path):
    made = {"cameras": True, "cell": knocked(patch_px=24), **QUICK}
    free = make_campaign(tmp_path, ARMS, name="free", **made).folder
    run(free)
    assert since_start(free, commits(free)[1]) < PUT_BACK_S
    seen = commits(free)[1].body["match"]["over_shoulder"]["scene"]
    assert seen["score"] < 60 and seen["regions"][0]["box"] == pytest.approx([40, 40, 64, 64], abs=4)
    held = make_campaign(tmp_path, ARMS, name="held", protocol=scene("min_score = 60"), **made).folder
    run(held)
    assert since_start(held, commits(held)[1]) > PUT_BACK_S
    assert commits(held)[1].body["match"]["over_shoulder"]["scene"]["score"] > 60


@pytest.mark.thorough
def test_without_scikit_image_a_protocol_that_needs_scores_does_not_begin_and_others_say_so(tmp_path, monkeypatch):
    monkeypatch.setattr(labctl.runtime.campaign_run, "scores_available", lambda: False)
    needs = make_campaign(tmp_path, ARMS, name="needs", cameras=True, protocol=scene("min_score = 80"), **QUICK).folder
    with pytest.raises(MissingExtra, match=r"min_score = 80 .*labctl\[scene\]"):
        run(needs)
    assert len(events_of(needs)) == 1
    free = make_campaign(tmp_path, ARMS, name="free", cameras=True, **QUICK).folder
    assert any("pip install 'labctl[scene]'" in line for line in run(free))


def test_verify_names_a_photo_that_was_changed_or_is_gone(tmp_path):
    folder = make_campaign(tmp_path, ARMS, cameras=True, **QUICK).folder
    run(folder)
    one, other = (event.body["photo"]["wrist"]["file"] for event in commits(folder))
    (folder / one).write_bytes((folder / other).read_bytes())
    (folder / other).unlink()
    problems = [str(problem) for problem in verify_campaign(folder).problems]
    assert len(problems) == 2
    assert "changed photo" in problems[0] and one in problems[0] and f"seq {commits(folder)[0].seq}" in problems[0]
    assert "missing photo" in problems[1] and other in problems[1]


@pytest.mark.thorough
def test_a_scene_is_shown_as_one_picture_with_its_scores(tmp_path, capsys, monkeypatch):
    folder = make_campaign(tmp_path, ARMS, cameras=True, cell=knocked(patch_px=24), **QUICK).folder
    run(folder)
    first, second = commits(folder)
    monkeypatch.chdir(tmp_path)
    assert call(["scene", folder.name, "--out", "pictures"]) == 0
    printed = capsys.readouterr().out
    assert (
        second.trial in printed
        and "over_shoulder: " in printed
        and "of 100 against its reference: scene differs" in printed
    )
    with Image.open(tmp_path / "pictures" / f"scene-{second.trial}-1.png") as image:
        assert image.width == 1640
        marked = image.crop((3 * 408 + 8, 42, image.width, 342)).convert("RGB")
        assert (226, 60, 40) in {colour for _, colour in marked.getcolors(1 << 20)}, "the difference is marked"
    assert call(["scene", folder.name, "--trial", first.trial, "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["cameras"]["wrist"]["verdict"] == "first of its condition"
    assert Path(shown["picture"]).is_file()
    assert call(["scene", folder.name, "--trial", "t-unknown"]) == 2
    assert "no trial 't-unknown'" in capsys.readouterr().err


def test_a_scene_that_was_never_committed_cannot_be_shown(tmp_path, capsys):
    folder = make_campaign(tmp_path, ARMS, cameras=True, **QUICK).folder
    assert call(["scene", str(folder)]) == 2
    assert "no committed photo" in capsys.readouterr().err


def test_a_changed_photo_is_not_shown(tmp_path, capsys):
    folder = make_campaign(tmp_path, ARMS, cameras=True, **QUICK).folder
    run(folder)
    (folder / commits(folder)[1].body["photo"]["wrist"]["file"]).write_bytes(b"")
    assert call(["scene", str(folder), "--out", str(tmp_path)]) == 65
    assert "changed photo: photos/" in capsys.readouterr().err


@pytest.mark.thorough
def test_a_layout_that_has_the_camera_elsewhere_is_no_moved_camera(tmp_path):
    """Two layouts, the camera over the left shoulder and over the right: each side has a place of its own."""
    plain = (ROOT / "fixtures/two_totes.toml").read_text("utf-8")
    head, _, last = plain.rpartition('camera_side = "left"')
    layouts = {'layouts = ["layout-1"]': 'layouts = ["layout-1", "layout-2"]'}
    folder = make_campaign(
        tmp_path, ARMS, cameras=True, blocks=2, fixture=f'{head}camera_side = "right"{last}', protocol=layouts, **QUICK
    ).folder
    run(folder)
    found = commits(folder)
    assert len(found) == 8
    sides = {event.body["match"]["over_shoulder"]["pose_reference"] for event in found} - {None}
    assert len(sides) == 2
    for event in found:
        pose = event.body["match"]["over_shoulder"]["pose"]
        assert pose is None or pose["moved_px"] < 1.0
