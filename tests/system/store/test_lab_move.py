"""A lab is moved to another disk or computer with proof, and never is in two places."""

from __future__ import annotations

import hashlib
import os
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from support.joint.joint_labs import make_labs
from support.json_documents import judged
from support.media.campaigns import folder_store, open_lab, uploaded, videos
from support.runs.campaigns import recorded_with_cameras
from support.runs.recordings import Recordings, copied, digests

from labctl.backup import moving
from labctl.backup.moving import move
from labctl.cli import call
from labctl.clock import ManualClock
from labctl.errors import BrokenRecord, InputError, StateError, StorageError
from labctl.joint.seal_host import writing
from labctl.store.campaign import Campaign
from labctl.store.lab_folder import MARK, MOVED, find_lab
from labctl.store.locks import Lock, campaign_lock, cell_lock_in
from labctl.store.media.trimming import trim
from labctl.store.verifying.verify import verify_campaign

NOW = ManualClock(0).anchor()


@pytest.fixture
def lab(tmp_path: Path, recordings) -> Path:
    """A copy of a lab with one campaign that was run, with videos."""
    return copied(recordings.of(recorded_with_cameras).parents[1], tmp_path / "lab")


def test_a_moved_lab_has_every_byte_and_right_and_the_old_place_is_none_any_more(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lab / "notes.txt").write_text("the left camera was changed\n")
    (lab / "data").symlink_to("/")
    rights = {name: stat.S_IMODE((lab / name).stat().st_mode) for name in digests(lab)}
    before = {
        name: sha256 for name, sha256 in digests(lab).items() if not name.startswith(".locks") and ".lock" not in name
    }
    new = tmp_path / "new"
    assert call(["lab", "move", str(new), "--lab", str(lab), "--json"]) == 0
    said = judged(capsys.readouterr().out)
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(before.items()))
    assert said["digest"] == hashlib.sha256(lines.encode()).hexdigest()
    there = {name: sha256 for name, sha256 in digests(new).items() if not name.endswith(("-wal", "-shm"))}
    assert {name: sha256 for name, sha256 in there.items() if name in before} == before
    assert all(stat.S_IMODE((new / name).stat().st_mode) == rights[name] for name in before)
    assert said["left"] == ["data: a link or a device, not a file"]
    (folder,) = (new / "campaigns").iterdir()
    assert verify_campaign(folder).head.split() == said["heads"][folder.name].split(":")
    assert (lab / "notes.txt").is_file(), "nothing was deleted"
    old = lab / "campaigns" / folder.name
    for words in (
        ["status", "--lab", str(lab)],
        ["run", str(old)],
        ["verify", str(old)],
        ["plan", str(lab / "p.toml")],
    ):
        assert call(words) != 0
    assert f"this lab was moved to {new}" in capsys.readouterr().err
    with pytest.raises(StateError, match="this lab was moved to"):
        Campaign.open(old, writer=True)
    assert find_lab(new) == new


def test_a_lab_whose_videos_its_media_store_alone_has_is_proved_as_it_will_be_read(
    recordings: Recordings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    table, store = folder_store(folder, tmp_path / "store")
    uploaded(folder, table)
    assert trim(folder, store, table, 0, who="p01").files and not videos(folder)
    before = verify_campaign(folder, lab=True)
    with monkeypatch.context() as patched:
        patched.setattr(moving, "_arrive", dead)
        killed(lambda: move(tmp_path / "lab", tmp_path / "new", NOW))
    moved = move(tmp_path / "lab", tmp_path / "new", NOW)
    (after,) = moved.verified.values()
    assert after.problems == before.problems == [] == moved.problems
    assert after.notes == before.notes and any("in a media store alone" in note for note in after.notes)


def test_nothing_is_moved_while_anything_of_the_lab_runs(lab: Path, tmp_path: Path) -> None:
    (folder,) = (lab / "campaigns").iterdir()
    for held in (campaign_lock(folder, "run trial-run"), cell_lock_in(lab, "sim_fr3", "teleop")):
        with held, pytest.raises(StateError, match="is in use by"):
            move(lab, tmp_path / "new", NOW)
        assert find_lab(lab) == lab and not (tmp_path / "new").exists()


def test_a_seal_host_answers_nothing_while_its_lab_is_moved_and_at_the_old_place_never_again(tmp_path: Path) -> None:
    labs = make_labs(tmp_path, address="tcp://127.0.0.1:7441")
    with writing(labs.made.folder, "joint serve"), pytest.raises(StateError, match="the seal of two is in use by"):
        move(labs.host, tmp_path / "new", NOW)
    move(labs.host, tmp_path / "new", NOW)
    with pytest.raises(StateError, match="this lab was moved to"), writing(labs.made.folder, "joint serve"):
        pass
    with writing(tmp_path / "new/joint/two", "joint serve") as host:
        assert host.state.opened["name"] == "two"


def test_a_seal_host_that_waited_for_the_end_of_a_move_gives_nothing_at_the_old_place(tmp_path: Path) -> None:
    """The move holds the host's lock; what is asked meanwhile comes in when it lets go."""
    labs = make_labs(tmp_path, address="tcp://127.0.0.1:7441")
    by_the_move = Lock(labs.made.folder / ".lock", "lab move").__enter__()

    class UntilMoved(ManualClock):
        def sleep_until(self, t_ns: int) -> None:
            by_the_move.__exit__()
            move(labs.host, tmp_path / "new", NOW)
            super().sleep_until(t_ns)

    host = writing(labs.made.folder, "joint serve", UntilMoved(0))
    with pytest.raises(StateError, match="this lab was moved to"), host:
        pass


def killed(act: Callable[[], object]) -> None:
    child = os.fork()
    if not child:
        try:
            act()
        finally:
            os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def dead(*_: object, **__: object) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.parametrize("at", ["copied", "file_digest", "proved", "_mark", "_arrive", "rename"])
def test_a_move_that_is_killed_anywhere_leaves_one_lab_at_most_and_the_next_ends_it(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """After the mark is written and before the new place has it neither is a lab: no command goes on in either."""
    new = tmp_path / "new"
    with monkeypatch.context() as patched:
        if at == "rename":  # between the mark and the old place's lab.toml
            true = moving.replace_file
            patched.setattr(moving, "replace_file", lambda *given: (true(*given), dead()))
        else:
            patched.setattr(moving, at, dead)
        killed(lambda: move(lab, new, NOW))
    marked = (lab / MOVED).is_file()
    assert marked == (at in ("_arrive", "rename"))
    assert (new / MARK).is_file() is False, "never a second lab"
    if new.exists():
        for start in (new, new / "campaigns"):
            with pytest.raises(
                StateError, match=r"new: a move of a lab to here was broken off .*the same command again"
            ):
                find_lab(start=start)
    if not marked and new.exists():
        with pytest.raises(InputError, match=r"still the lab.*: delete .*new and give the command again"):
            move(lab, new, NOW)
        shutil.rmtree(new)
    moved = move(lab, new, NOW)
    assert not moved.problems and find_lab(new) == new and (lab / MOVED).is_file() and not (lab / MARK).exists()


def test_a_lab_with_a_journal_that_nobody_can_read_is_moved_with_every_byte_and_named(
    lab: Path, tmp_path: Path
) -> None:
    (lab / "campaigns/damaged").mkdir()
    (lab / "campaigns/damaged/journal.db").write_bytes(b"not a database")
    moved = move(lab, tmp_path / "new", NOW)
    assert moved.heads["damaged"] == "" and any(line.startswith("damaged: ") for line in moved.problems)
    assert (tmp_path / "new/campaigns/damaged/journal.db").read_bytes() == b"not a database"


def test_what_arrives_changed_is_refused_and_the_old_place_stays_the_lab(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    true = moving.copied

    def spoiled(path: Path, target: Path) -> tuple[str, int]:
        found = true(path, target)
        if path.name == "journal.db":
            data = bytearray(target.read_bytes())
            data[len(data) // 2] ^= 1
            target.write_bytes(data)
        return found

    monkeypatch.setattr(moving, "copied", spoiled)
    with pytest.raises(BrokenRecord, match="what was read back"):
        move(lab, tmp_path / "new", NOW)
    assert find_lab(lab) == lab and not list(tmp_path.glob("*new*")) and not list(tmp_path.glob(".new*"))


def test_places_that_will_not_do_are_named_in_a_line(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place, said in ((lab / "in", "lies in the lab"), (tmp_path, "there already"), (tmp_path / "a/b", "mount the")):
        with pytest.raises(InputError, match=said):
            move(lab, place, NOW)
    monkeypatch.setattr(moving, "SPARE_BYTES", 1 << 60)
    with pytest.raises(StorageError, match="MB free, the lab takes"):
        move(lab, tmp_path / "new", NOW)
    assert call(["lab", "move", "--lab", str(lab)]) == 2
    assert find_lab(lab) == lab


def test_a_lab_goes_to_another_computer_by_a_last_snapshot(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["lab", "move", "--by", str(tmp_path / "b"), "--lab", str(lab), "--json"]) == 0
    said = judged(capsys.readouterr().out)
    assert call(["status", "--lab", str(lab)]) == 1
    assert "was moved to snapshot" in capsys.readouterr().err
    assert call(["restore", str(tmp_path / "b"), str(tmp_path / "new")]) == 0
    (folder,) = (tmp_path / "new/campaigns").iterdir()
    assert verify_campaign(folder).head.split() == said["heads"][folder.name].split(":")


@pytest.mark.parametrize("first", [["new"], ["--by", "first"]])
def test_a_lab_that_was_moved_is_not_moved_by_a_snapshot_too_and_its_mark_stays(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, first: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["lab", "move", *first, "--lab", str(lab)]) == 0
    mark = (lab / MOVED).read_bytes()
    there = f"on the other computer: labctl restore {tmp_path / 'first'} NEW-FOLDER"
    assert (there in capsys.readouterr().out) == ("--by" in first), "a whole path: whoever is there is in no folder"
    assert call(["lab", "move", "--by", str(tmp_path / "b"), "--lab", str(lab)]) == 1
    assert "this lab was moved to" in capsys.readouterr().err
    assert (lab / MOVED).read_bytes() == mark and not (tmp_path / "b").exists()
