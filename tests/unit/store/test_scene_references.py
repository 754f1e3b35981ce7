"""Claims about references: which photo a scene is held against, what takes one back, and pictures given beforehand."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.runs.campaigns import ROOT, events_of, make_campaign

from labctl.cli import call
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.core.trial import CampaignState
from labctl.errors import BrokenRecord, InputError
from labctl.store.pictures import decode_png, encode_png, ghost, load_photo, small
from labctl.store.scene_references import Held, References, journalled_photos, rules

# two blocks of towels, one of spoons at the same side of the camera, one of spoons at the other
SLOTS = [
    *({"trial": f"t-{n}", "block": n // 2, "position": n % 2, "condition": "towels/left"} for n in range(4)),
    {"trial": "t-4", "block": 2, "position": 0, "condition": "spoons/left"},
    {"trial": "t-5", "block": 3, "position": 0, "condition": "spoons/right"},
]
CONDITIONS = [
    {"id": name, "camera_side": name.partition("/")[2]} for name in ("towels/left", "spoons/left", "spoons/right")
]
CAM = "shoulder"


def photo(name: str) -> dict[str, Any]:
    return {"file": f"photos/{name}.png", "sha256": hashlib.sha256(name.encode()).hexdigest()}


class Story:
    """References after a hand-written journal."""

    def __init__(self, **opened: Any) -> None:
        self.events: list[Event] = []
        self.references = References()
        self.tell(Kind.CAMPAIGN_OPENED, schedule=SLOTS, conditions=CONDITIONS, **opened)

    def tell(self, kind: Kind, trial: str | None = None, episode: str | None = None, **body: Any) -> None:
        seq = len(self.events) + 1
        event = Event(seq, kind, seq, "boot", "2026-01-01T00:00:00Z", "ann", trial, episode, body)
        self.events.append(event)
        self.references.note(event)

    def commit(self, trial: str, name: str | None = None, *, reveal: bool = True) -> None:
        self.tell(Kind.SCENE_COMMITTED, trial, photo={CAM: photo(name or trial)}, match={})
        if reveal:
            self.tell(Kind.ARM_REVEALED, trial, f"e-{trial}-{len(self.events)}")

    def accept(self, trial: str, name: str) -> None:
        self.tell(Kind.REFERENCE_SET, trial, camera=CAM, photo=photo(name), old=None, reason="it was knocked")

    def held(self, trial: str) -> Held:
        return self.references.held(trial, CAM)


def test_the_first_trial_of_a_campaign_is_held_against_nothing():
    assert Story().held("t-0") == Held(None, False, None)


def test_the_arms_of_a_block_are_held_against_its_first_photo():
    story = Story()
    story.commit("t-0")
    assert story.held("t-1") == Held(photo("t-0"), True, photo("t-0"))
    story.commit("t-1")
    assert story.held("t-1").scene == photo("t-0"), "not against the last one: small steps would add up"


def test_a_new_blocks_first_trial_is_shown_its_conditions_first_photo_for_information():
    story = Story()
    story.commit("t-0")
    assert story.held("t-2") == Held(photo("t-0"), False, photo("t-0"))
    story.commit("t-2")
    assert story.held("t-3") == Held(photo("t-2"), True, photo("t-0"))


def test_where_conditions_are_restored_every_block_is_held_against_the_first():
    story = Story(scene={"restore": "condition"})
    story.commit("t-0")
    story.commit("t-2")
    assert story.held("t-2") == Held(photo("t-0"), True, photo("t-0"))
    assert story.held("t-3").scene == photo("t-0")
    assert story.held("t-4").scene is None


def test_a_cameras_place_is_held_against_one_photo_of_its_side_whatever_lies_there():
    story = Story()
    story.commit("t-0")
    assert story.held("t-4") == Held(None, False, photo("t-0")), "other objects, the same camera mount"
    assert story.held("t-5") == Held(None, False, None), "the camera is moved to the other mount for this layout"


@pytest.mark.parametrize("restore", ["block", "condition"])
def test_a_given_picture_counts_from_the_first_trial_on(restore):
    given = {"towels/left": {CAM: photo("given")}}
    story = Story(references=given, scene={"restore": restore})
    assert story.held("t-0") == Held(photo("given"), True, photo("given"))
    story.commit("t-0")
    expected = photo("t-0") if restore == "block" else photo("given")
    assert story.held("t-1") == Held(expected, True, photo("given")), "pairs start from one scene"
    assert story.held("t-2").scene == photo("given")


def test_a_commit_that_is_given_back_takes_its_references_along():
    story = Story()
    story.commit("t-0", "wrong", reveal=False)
    assert story.held("t-0").scene == photo("wrong")
    story.tell(Kind.TRIAL_RELEASED, "t-0", reason="a towel was missing")
    assert story.held("t-0") == Held(None, False, None)
    story.commit("t-0", "right")
    assert story.held("t-1").scene == photo("right")


def test_a_void_after_the_reveal_keeps_the_reference_so_that_the_retry_starts_from_the_same_scene():
    story = Story()
    story.commit("t-0")
    story.tell(Kind.EPISODE_VOIDED, "t-0", reason="arm_lost")
    assert story.held("t-0") == Held(photo("t-0"), True, photo("t-0"))


def test_giving_back_a_later_commit_leaves_the_blocks_reference():
    story = Story()
    story.commit("t-0")
    story.commit("t-1", reveal=False)
    story.tell(Kind.TRIAL_RELEASED, "t-1", reason="look again")
    assert story.held("t-1").scene == photo("t-0")


@pytest.mark.parametrize("restore", ["block", "condition"])
def test_an_accepted_view_is_the_reference_from_then_on(restore):
    story = Story(references={"towels/left": {CAM: photo("given")}}, scene={"restore": restore})
    story.commit("t-0")
    story.accept("t-1", "accepted")
    assert story.held("t-1") == Held(photo("accepted"), True, photo("accepted"))
    later = story.held("t-2")
    assert later.pose == photo("accepted"), "the camera stands elsewhere now, in every block"
    assert later.scene == photo("accepted" if restore == "condition" else "given")
    assert story.held("t-4").pose == photo("accepted")


def test_each_camera_has_references_of_its_own():
    story = Story()
    story.commit("t-0")
    assert story.references.held("t-1", "wrist") == Held(None, False, None)


def test_journals_from_before_there_were_photos_are_read():
    story = Story()
    story.tell(Kind.SCENE_COMMITTED, "t-0", photo=None, snapshot={})
    story.tell(Kind.ARM_REVEALED, "t-0", "e-1")
    assert story.held("t-1") == Held(None, False, None)
    assert record_of(story.events, CampaignState()).episodes["e-1"].scene.photos == {}
    assert rules({})["require_photo"] is True


def test_the_photos_of_an_episode_are_those_of_the_commit_it_began_with():
    story = Story()
    story.commit("t-0", "first")
    story.commit("t-0", "second")
    first, second = (event.episode for event in story.events if event.kind == Kind.ARM_REVEALED)
    scenes = {name: episode.scene for name, episode in record_of(story.events, CampaignState()).episodes.items()}
    assert (scenes[first].photos, scenes[second].photos) == ({CAM: photo("first")}, {CAM: photo("second")})


def test_every_photo_the_journal_names_is_known_with_its_entry():
    story = Story(references={"towels/left": {CAM: photo("given")}})
    story.commit("t-0")
    story.accept("t-1", "accepted")
    named = [(seq, found["file"]) for seq, found in journalled_photos(story.events)]
    assert named == [(1, "photos/given.png"), (2, "photos/t-0.png"), (4, "photos/accepted.png")]


# -- pictures given beforehand


def picture(width: int = 320, height: int = 240, *, seed: int = 0) -> bytes:
    return encode_png(np.random.default_rng(seed).integers(0, 255, (height, width, 3)).astype(np.uint8))


def lab_with(tmp_path: Path, entry: str, files: dict[str, bytes], *, objects: str = '["towels"]') -> Any:
    """A campaign opened with a fixture whose first layout names pictures."""
    (tmp_path / "fixtures" / "pictures").mkdir(parents=True)
    for name, content in files.items():
        (tmp_path / "fixtures" / "pictures" / name).write_bytes(content)
    text = (ROOT / "fixtures/two_totes.toml").read_text("utf-8")
    start = text.index("instructions =", text.index('name = "layout-1"'))
    fixture = text[:start] + f"reference = {entry}\n" + text[start:]
    return make_campaign(
        tmp_path, cameras=True, fixture=fixture, protocol={'objects = ["towels"]': f"objects = {objects}"}
    )


def test_given_pictures_are_copied_into_the_campaign_and_journalled(tmp_path):
    content = picture()
    opened = lab_with(tmp_path, '{over_shoulder = "pictures/one.png"}', {"one.png": content})
    kept = events_of(opened.folder)[0].body["references"]["towels/layout-1"]["over_shoulder"]
    assert (opened.folder / kept["file"]).read_bytes() == content
    assert kept["sha256"] == hashlib.sha256(content).hexdigest()


def test_a_name_with_object_in_it_is_one_picture_for_each_object(tmp_path):
    files = {"towels.png": picture(seed=1), "batteries.png": picture(seed=2)}
    entry = '{wrist = "pictures/{object}.png"}'
    opened = lab_with(tmp_path, entry, files, objects='["towels", "batteries"]')
    given = events_of(opened.folder)[0].body["references"]
    assert len({entry["wrist"]["sha256"] for entry in given.values()}) == 2


REFUSED = {
    "no such file": ('{wrist = "pictures/none.png"}', {}, '["towels"]', "cannot be read (No such file"),
    "not a picture": ('{wrist = "pictures/one.png"}', {"one.png": b"hello"}, '["towels"]', "is not a readable PNG"),
    "cut off": ('{wrist = "pictures/one.png"}', {"one.png": picture()[:4000]}, '["towels"]', "is not a readable PNG"),
    "wrong size": (
        '{wrist = "pictures/one.png"}',
        {"one.png": picture(100, 80)},
        '["towels"]',
        "has 100 x 80 pixels, the camera's 320 x 240",
    ),
    "no such camera": (
        '{wirst = "pictures/one.png"}',
        {"one.png": picture()},
        '["towels"]',
        "no such camera; did you mean 'wrist'?",
    ),
    "one for several": (
        '{wrist = "pictures/one.png"}',
        {"one.png": picture()},
        '["towels", "batteries"]',
        "is one picture for 2 objects; write {object} in it",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_given_picture_that_cannot_serve_is_refused_with_the_fixtures_line(tmp_path, case):
    entry, files, objects, expected = REFUSED[case]
    with pytest.raises(InputError) as refused:
        lab_with(tmp_path, entry, files, objects=objects)
    line = next(
        n
        for n, row in enumerate((tmp_path / "fixtures/two_totes.toml").read_text().splitlines(), 1)
        if "reference" in row
    )
    assert f"two_totes.toml:{line}: " in str(refused.value)
    assert expected in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not list((tmp_path / "campaigns").iterdir()), "nothing half made"


def test_plan_refuses_a_missing_picture_too(tmp_path, capsys):
    lab_with(tmp_path, '{wrist = "pictures/one.png"}', {"one.png": picture()})
    (tmp_path / "fixtures/pictures/one.png").unlink()
    assert call(["plan", str(tmp_path / "protocols/p.toml")]) == 2
    assert "one.png" in capsys.readouterr().err


# -- pictures as files


def test_a_picture_survives_png_without_loss():
    image = np.random.default_rng(1).integers(0, 255, (7, 9, 3)).astype(np.uint8)
    assert np.array_equal(decode_png(encode_png(image)), image)


def test_a_photo_that_was_changed_or_is_gone_is_not_shown(tmp_path):
    content = picture(8, 8)
    kept = {"file": "photos/one.png", "sha256": hashlib.sha256(content).hexdigest()}
    with pytest.raises(BrokenRecord, match="is gone"):
        load_photo(tmp_path, kept)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos/one.png").write_bytes(picture(8, 8, seed=1))
    with pytest.raises(BrokenRecord, match="was changed"):
        load_photo(tmp_path, kept)
    (tmp_path / "photos/one.png").write_bytes(content)
    assert load_photo(tmp_path, kept).shape == (8, 8, 3)


def test_a_ghost_is_half_of_each_and_small_keeps_every_nth_pixel():
    black, white = np.zeros((4, 8, 3), np.uint8), np.full((4, 8, 3), 255, np.uint8)
    assert set(np.unique(ghost(black, white))) == {127}
    assert np.array_equal(ghost(white, white), white)
    assert small(white, 4).shape == (2, 4, 3) and small(white, 100).shape == (4, 8, 3)
