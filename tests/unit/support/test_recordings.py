"""A shared recording is made once, is the same for everybody, and tells who wrote to it."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.recordings import Recordings

made: list[str] = []


def campaign(lab: Path, name: str = "one") -> Path:
    made.append(name)
    folder = lab / "campaigns" / name
    folder.mkdir(parents=True)
    (folder / "journal.db").write_text(name)
    return folder


def test_it_is_made_once_for_each_way_of_making_it(tmp_path: Path) -> None:
    made.clear()
    first, again = Recordings(tmp_path).of(campaign), Recordings(tmp_path).of(campaign)
    other = Recordings(tmp_path).of(campaign, name="two")
    assert first == again != other and made == ["one", "two"]
    assert first.joinpath("journal.db").read_text() == "one"


@pytest.mark.parametrize("what", ["changed", "added", "removed"])
def test_who_asks_after_somebody_wrote_is_told_what(tmp_path: Path, what: str) -> None:
    folder = Recordings(tmp_path).of(campaign)
    if what == "removed":
        folder.joinpath("journal.db").unlink()
    else:
        folder.joinpath("journal.db" if what == "changed" else "new").write_text("mine")
    with pytest.raises(AssertionError, match=r"which others read: \['campaigns/one/(journal\.db|new)'\]"):
        Recordings(tmp_path).of(campaign)


def test_what_a_killed_worker_left_half_made_is_made_again(tmp_path: Path) -> None:
    folder = Recordings(tmp_path).of(campaign)
    (folder.parents[2] / "made.json").unlink()
    folder.joinpath("half").touch()
    assert not Recordings(tmp_path).of(campaign).joinpath("half").exists()
