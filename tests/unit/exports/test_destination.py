"""An export is there whole or not at all, and replaces nothing by accident."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from labctl.errors import InputError, StorageError
from labctl.exports.destination import MARK, check_destination, check_room, size, whole_folder
from labctl.exports.workers import Job, write_all


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def fill(path: Path, text: str = "new") -> None:
    with whole_folder(path, {"campaign": "c"}) as building:
        (building / "sub").mkdir()
        (building / "sub" / "file").write_text(text)
        assert not path.exists() or (path / "sub" / "file").read_text() != text


def test_a_folder_appears_at_the_end_with_its_mark(tmp_path: Path) -> None:
    fill(tmp_path / "a" / "out")
    assert names(tmp_path / "a") == ["out"]
    assert json.loads((tmp_path / "a" / "out" / MARK).read_text()) == {"campaign": "c"}


def test_a_failure_leaves_what_was_there(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "out", {}) as building:
        (building / "half").write_text("half")
        raise RuntimeError
    assert names(tmp_path) == ["out"] and (tmp_path / "out" / "sub" / "file").read_text() == "old"


def test_a_new_export_takes_the_place_of_an_old_one_whole(tmp_path: Path) -> None:
    fill(tmp_path / "out", "old")
    (tmp_path / "out" / "left").touch()
    fill(tmp_path / "out", "new")
    assert names(tmp_path / "out") == [MARK, "sub"] and names(tmp_path) == ["out"]


def test_what_a_killed_export_left_is_swept_and_what_a_living_one_builds_is_not(tmp_path: Path) -> None:
    dead = 2**22 + 1  # above the largest process id that Linux gives out
    for process in (dead, 1):
        (tmp_path / f".out.{process}.part").mkdir()
    fill(tmp_path / "out")
    assert names(tmp_path) == [".out.1.part", "out"]


@pytest.mark.parametrize("standing", [True, False], ids=["after the new one stood", "before"])
def test_one_killed_while_it_was_put_in_the_place_of_another_leaves_nothing_behind(
    tmp_path: Path, standing: bool
) -> None:
    """What was there before is removed where the new one stands, and put back where it does not."""
    fill(tmp_path / f".out.{2**22 + 1}.old", "old")
    if standing:
        fill(tmp_path / "out", "new")
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "out", {}):
        raise RuntimeError
    assert names(tmp_path) == ["out"]
    assert (tmp_path / "out" / "sub" / "file").read_text() == ("new" if standing else "old")


def test_what_an_export_of_a_longer_name_left_is_its_own(tmp_path: Path) -> None:
    (tmp_path / f".out.v2.{2**22 + 1}.part").mkdir()
    fill(tmp_path / "out")
    assert names(tmp_path) == [f".out.v2.{2**22 + 1}.part", "out"]


def broken_off(path: Path, about: dict[str, str], said: list[str]) -> None:
    with pytest.raises(KeyboardInterrupt), whole_folder(path, about, "fps 3", said.append) as building:
        for _ in write_all(building, [Job("one", ("1",))], write_text):
            raise KeyboardInterrupt


def write_text(path: Path, text: str) -> dict[str, str]:
    path.write_text(text)
    return {}


def test_the_same_export_goes_on_where_one_was_broken_off_and_another_begins_anew(tmp_path: Path) -> None:
    said: list[str] = []
    broken_off(tmp_path / "out", {"campaign": "c"}, said)
    assert "1 finished files are kept" in said[-1] and not (tmp_path / "out").exists()
    with whole_folder(tmp_path / "out", {"campaign": "c"}, "fps 3", said.append) as building:
        assert (building / "one").read_text() == "1"
    assert "going on" in said[-1] and names(tmp_path / "out") == [MARK, "one"] and names(tmp_path) == ["out"]
    broken_off(tmp_path / "out", {"campaign": "c"}, said)
    with whole_folder(tmp_path / "out", {"campaign": "other"}, "fps 3", said.append) as building:
        assert not (building / "one").exists()
    assert names(tmp_path) == ["out"]


def test_one_that_had_finished_nothing_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), whole_folder(tmp_path / "out", {}):
        raise KeyboardInterrupt
    assert names(tmp_path) == []


def test_a_taken_place_is_refused_until_forced(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    campaign.mkdir()
    fill(tmp_path / "out")
    with pytest.raises(InputError, match="--force"):
        check_destination(tmp_path / "out", campaign, force=False)
    check_destination(tmp_path / "out", campaign, force=True)
    check_destination(tmp_path / "free", campaign, force=False)


def test_force_does_not_remove_a_folder_of_somebody_else(tmp_path: Path) -> None:
    campaign, home = tmp_path / "campaign", tmp_path / "home"
    for folder in (campaign, home):
        folder.mkdir()
    (home / "thesis.tex").touch()
    with pytest.raises(InputError, match="did not write"):
        check_destination(home, campaign, force=True)


def test_a_place_inside_the_campaign_is_refused(tmp_path: Path) -> None:
    campaign = tmp_path / "campaign"
    campaign.mkdir()
    (tmp_path / "link").symlink_to(campaign)
    for place in (campaign, campaign / "out", campaign / "video" / ".." / "out", tmp_path / "link" / "out"):
        with pytest.raises(InputError, match="campaign's own folder"):
            check_destination(place, campaign, force=True)


def test_no_room_is_said_before_anything_is_written(tmp_path: Path) -> None:
    assert check_room(tmp_path / "not" / "there", 1) > 1
    with pytest.raises(StorageError, match=r"may take 1000\.0 TB.*nothing was written"):
        check_room(tmp_path / "not" / "there", 10**15)
    assert names(tmp_path) == []


def test_a_place_that_cannot_be_written_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match="file"), whole_folder(tmp_path / "file" / "out", {}):
        pass


def test_sizes_are_for_people() -> None:
    assert [size(n) for n in (0, 999, 1500, 2_340_000, 7 * 10**9)] == ["0 B", "999 B", "1.5 kB", "2.3 MB", "7.0 GB"]


@pytest.mark.parametrize("path", [".", "..", "../.."])
def test_the_folder_one_is_in_is_refused_before_anything_is_written(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a/b").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "a/b")
    with pytest.raises(InputError, match="is the folder itself in which it would be replaced; name a folder in it"):
        check_destination(Path(path), tmp_path / "campaign", force=True)
