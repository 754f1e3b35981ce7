"""A lab is kept while it runs, made again elsewhere with proof, and what is damaged in a backup is never restored."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from support.json_documents import judged
from support.runs.campaigns import HUMAN, make_campaign, policy, recorded_with_cameras, unblind
from support.runs.recordings import copied, digests

from labctl.backup.repository import Repository
from labctl.backup.restoring import Restored, restore
from labctl.backup.snapshot import take_snapshot
from labctl.cli import call
from labctl.clock import ManualClock
from labctl.core.events import Kind
from labctl.errors import BrokenRecord, InputError
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign
from labctl.store.chain_heads import append_head
from labctl.store.database_backend import copy_database
from labctl.store.journal import events_of
from labctl.store.verifying.verify import verify_campaign

NOW = ManualClock(0).anchor()


@pytest.fixture
def lab(tmp_path: Path, recordings) -> Path:
    """A copy of a lab with one campaign that was run, with videos."""
    return copied(recordings.of(recorded_with_cameras).parents[1], tmp_path / "lab")


def kept(lab: Path, backups: Path) -> Repository:
    repository = Repository.made(backups, of=lab)
    take_snapshot(lab, repository, NOW)
    return repository


def problems(made: Restored) -> list[str]:
    return [str(problem) for found in made.verified.values() for problem in found.problems]


def test_a_restored_lab_has_every_byte_and_right_of_the_first_and_its_campaigns_hold(lab: Path, tmp_path: Path) -> None:
    (folder,) = (lab / "campaigns").iterdir()
    unblind(folder)
    made = restore(kept(lab, tmp_path / "backups"), tmp_path / "again")
    databases = {name for name in digests(lab) if name.endswith(".db")}
    ours = {name: sha256 for name, sha256 in digests(lab).items() if not name.startswith(".locks")}
    theirs = digests(tmp_path / "again")
    assert ours.keys() == theirs.keys()
    assert {name for name in ours if ours[name] != theirs[name]} <= databases, "SQLite may lay pages out in another way"
    assert made.whole and made.verified[folder.name].outside is not None and not made.open
    for name in theirs:
        assert stat.S_IMODE((lab / name).stat().st_mode) == stat.S_IMODE((tmp_path / "again" / name).stat().st_mode)
    assert stat.S_IMODE((tmp_path / "again" / folder.relative_to(lab) / "seal").stat().st_mode) == 0o700


def test_what_did_not_change_is_kept_once_and_a_lab_can_be_had_as_of_each_snapshot(lab: Path, tmp_path: Path) -> None:
    repository = kept(lab, tmp_path / "backups")
    (lab / "notes.txt").write_text("the left camera was changed\n")
    again = take_snapshot(lab, repository, NOW)
    assert (again.new_files, again.new_bytes) == (1, len("the left camera was changed\n"))
    first, second = repository.names()
    assert not (restore(repository, tmp_path / "one", first).folder / "notes.txt").exists()
    assert (restore(repository, tmp_path / "two", second).folder / "notes.txt").exists()
    with pytest.raises(InputError, match="2 of its snapshots begin with '2026"):
        restore(repository, tmp_path / "three", "2026")


def test_a_snapshot_of_a_lab_whose_journal_grows_while_it_is_taken_holds(lab: Path, tmp_path: Path) -> None:
    (folder,) = (lab / "campaigns").iterdir()
    repository = Repository.made(tmp_path / "backups", of=lab)
    with Campaign.open(folder, writer=True) as campaign:
        trial = next(iter(campaign.state.trials))

        def grow(line: str) -> None:
            event = campaign.log(Kind.NOTE, {"text": line}, anchor=NOW, who="p-1", trial=trial)
            append_head(folder, event.seq, event.hash, event.wall)

        take_snapshot(lab, repository, NOW, grow)
    made = restore(repository, tmp_path / "again")
    assert not problems(made) and made.whole


def test_a_campaign_that_was_kept_in_mid_run_holds_and_goes_on_where_it_was_restored(tmp_path: Path) -> None:
    lab = tmp_path / "lab"
    folder = make_campaign(lab, [HUMAN, policy("policy-a", skill="swift")]).folder
    repository = Repository.made(tmp_path / "backups", of=lab)
    run_campaign(folder, lambda line: take_snapshot(lab, repository, NOW) and None, manual=True)
    names = repository.names()
    assert len(names) > 2
    for number, name in enumerate(names):
        made = restore(repository, tmp_path / f"as-of-{number}", name)
        assert not problems(made) and made.open == [folder.name]
    unfinished = tmp_path / "as-of-1" / folder.relative_to(lab)
    run_campaign(unfinished, lambda line: None, manual=True)
    found = verify_campaign(unfinished)
    assert not found.problems and found.counts.recordings == 2


def cut_before_the_second_reveal(folder: Path) -> str:
    """Journal and heads as they were then; the id of the episode that began."""
    second = [event for event in events_of(folder) if event.kind == Kind.ARM_REVEALED][1]
    with closing(sqlite3.connect(folder / "journal.db")) as raw, raw:
        raw.execute("DROP TRIGGER event_no_delete")
        raw.execute("DELETE FROM event WHERE seq >= ?", [second.seq])
    heads = (folder / "heads.log").read_text().splitlines(keepends=True)
    (folder / "heads.log").write_text("".join(line for line in heads if int(line.split()[0]) < second.seq))
    return str(second.episode)


def test_an_episode_that_began_after_its_journal_was_kept_is_in_the_next_snapshot_and_not_in_this(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lab = tmp_path / "lab"
    folder = make_campaign(lab, [HUMAN, policy("policy-a", skill="swift")]).folder
    run_campaign(folder, lambda line: None, manual=True)
    journal, whole = folder / "journal.db", tmp_path / "whole.db"
    copy_database(journal, whole)
    episode = cut_before_the_second_reveal(folder)

    def meanwhile(path: Path, to: Path) -> None:
        copy_database(path, to)
        if path == journal and whole.exists():
            whole.replace(journal)

    monkeypatch.setattr("labctl.backup.repository.copy_database", meanwhile)
    repository = Repository.made(tmp_path / "backups", of=lab)
    taken = take_snapshot(lab, repository, NOW)
    traces = f"{folder.relative_to(lab)}/traces.db"
    assert f"{traces}: {episode}, which began after the journal was kept" in taken.snapshot.left_out
    made = restore(repository, tmp_path / "again")
    assert not problems(made) and made.whole and not list(repository.folder.rglob("*.part*"))
    assert take_snapshot(lab, repository, NOW).snapshot.left_out == []
    later = restore(repository, tmp_path / "later")
    assert not problems(later) and later.verified[folder.name].counts.recordings == 2
    unfinished = tmp_path / "again" / folder.relative_to(lab)
    run_campaign(unfinished, lambda line: None, manual=True)
    found = verify_campaign(unfinished)
    assert not found.problems and found.counts.recordings == 2


def test_a_trial_is_not_run_under_an_id_under_which_a_lost_run_was_recorded(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path / "lab", [HUMAN, policy("policy-a", skill="swift")]).folder
    run_campaign(folder, lambda line: None, manual=True)
    lost = cut_before_the_second_reveal(folder)
    lines: list[str] = []
    run_campaign(folder, lines.append, manual=True)
    assert any(f"there is a recording of {lost} that the journal does not know" in line for line in lines)
    found = verify_campaign(folder)
    assert [str(one) for one in found.problems] == [
        f"unsealed trace: traces.db episode {lost}: the journal knows no such episode"
    ]
    assert found.counts.recordings == 2


def test_traces_that_no_journal_of_the_lab_knows_are_kept_as_they_lie_there(lab: Path, tmp_path: Path) -> None:
    (folder,) = (lab / "campaigns").iterdir()
    with closing(sqlite3.connect(folder / "traces.db")) as raw, raw:
        raw.execute("INSERT INTO stream SELECT campaign, 'e-strange', name, spec FROM stream LIMIT 1")
    made = restore(kept(lab, tmp_path / "backups"), tmp_path / "again")
    assert "e-strange: the journal knows no such episode" in "".join(problems(made))


def test_traces_that_cannot_be_read_are_kept_as_they_lie_there(lab: Path, tmp_path: Path) -> None:
    (folder,) = (lab / "campaigns").iterdir()
    with closing(sqlite3.connect(folder / "traces.db")) as raw, raw:
        raw.execute("DROP TABLE stream")
    repository = kept(lab, tmp_path / "backups")
    found = {one.path for one in repository.snapshot().files}
    assert f"{folder.relative_to(lab)}/traces.db" in found and not repository.snapshot().damaged


def test_a_backup_that_is_killed_leaves_no_snapshot_and_the_next_is_whole(lab: Path, tmp_path: Path) -> None:
    repository = Repository.made(tmp_path / "backups", of=lab)
    child = os.fork()
    if not child:
        take_snapshot(
            lab, repository, NOW, lambda line: os.kill(os.getpid(), signal.SIGKILL) if line[:2] == "9/" else None
        )
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    (repository.folder / "objects" / f"{child}.part").write_bytes(b"half of a file")
    assert repository.names() == []
    with pytest.raises(InputError, match="no whole snapshot"):
        restore(repository, tmp_path / "again")
    assert restore(kept(lab, repository.folder), tmp_path / "again").whole
    assert not list(repository.folder.rglob("*.part"))


@pytest.mark.parametrize("damage", [lambda path: path.write_bytes(b"x" + path.read_bytes()[1:]), Path.unlink])
def test_damaged_bytes_are_named_and_nothing_is_restored_from_them(lab: Path, tmp_path: Path, damage) -> None:
    repository = kept(lab, tmp_path / "backups")
    video = next(one for one in repository.snapshot().files if one.path.endswith(".mp4"))
    path = repository.object(video.sha256)
    path.chmod(0o600)
    damage(path)
    _, found = repository.problems()
    assert len(found) == 1 and found[0].startswith(f"{video.path}: its bytes ")
    with pytest.raises(BrokenRecord, match=video.path):
        restore(repository, tmp_path / "again")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["backups", "lab"], "nothing of it is left"


def test_a_snapshot_that_was_changed_is_refused_and_one_that_leads_out_of_the_lab_too(
    lab: Path, tmp_path: Path
) -> None:
    repository = kept(lab, tmp_path / "backups")
    (path,) = (repository.folder / "snapshots").iterdir()
    path.write_bytes(path.read_bytes().replace(b'"lab.toml"', b'"lab.tomk"'))
    with pytest.raises(BrokenRecord, match="it is not as it was written; restore an older one"):
        repository.snapshot()
    (lab / "notes").write_text("n")
    found = take_snapshot(lab, Repository.made(tmp_path / "fresh", of=lab), NOW).snapshot
    for place in ("../notes", "/notes", "a/../../notes"):
        moved = [replace(one, path=place) if one.path == "notes" else one for one in found.files]
        fresh = Repository(tmp_path / "fresh")
        fresh.keep(replace(found, files=moved))
        with pytest.raises(BrokenRecord, match="is no place in a lab"):
            restore(fresh, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_a_campaign_that_does_not_hold_is_kept_as_it_is_and_both_say_so(lab: Path, tmp_path: Path, capsys) -> None:
    (folder,) = (lab / "campaigns").iterdir()
    journal = folder / "journal.db"
    journal.write_bytes(journal.read_bytes()[:4096] + b"\0" * 4096)
    backups, again = str(tmp_path / "backups"), str(tmp_path / "again")
    assert call(["backup", backups, "--lab", str(lab)]) == 0
    assert "damaged, and kept so:" in capsys.readouterr().out
    restored = restore(Repository(Path(backups)), Path(again))
    assert (Path(again) / journal.relative_to(lab)).read_bytes() == journal.read_bytes()
    assert not restored.whole


def test_what_is_printed_to_be_typed_can_be_typed_whatever_the_folder_is_called(
    lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "Läufe, it's all"
    empty = Repository.made(tmp_path / "none yet", of=lab)
    assert call(["restore", str(folder), str(tmp_path / "x")]) == 2
    assert shlex.split(capsys.readouterr().err.split("with: ")[1]) == ["labctl", "backup", str(folder)]
    assert call(["restore", str(empty.folder), str(tmp_path / "x")]) == 2
    assert shlex.split(capsys.readouterr().err.split("with: ")[1]) == ["labctl", "backup", str(empty.folder)]
    assert call(["backup", str(folder), "--lab", str(lab)]) == 0
    said = capsys.readouterr().out.split("with: ")[1]
    assert shlex.split(said) == ["labctl", "restore", str(folder), "NEW-FOLDER"]


def test_links_and_environments_are_left_out_and_named(lab: Path, tmp_path: Path) -> None:
    (lab / "passwords").symlink_to("/etc/passwd")
    (lab / ".venv").mkdir()
    (lab / ".venv" / "pyvenv.cfg").touch()
    repository = kept(lab, tmp_path / "backups")
    assert repository.snapshot().left_out == [
        ".venv: a Python environment",
        "passwords: a link or a device, not a file",
    ]


def test_backups_are_their_owners_alone(lab: Path, tmp_path: Path) -> None:
    repository = kept(lab, tmp_path / "backups")
    for path in (repository.folder, *repository.folder.rglob("*")):
        assert not stat.S_IMODE(path.stat().st_mode) & 0o077, path


def test_as_typed(lab: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    monkeypatch.chdir(lab)
    outside, again = str(tmp_path / "backups"), str(tmp_path / "again")
    for words, name in (
        (["backup", outside], "backup/1"),
        (["backup", outside, "--list"], "backups/1"),
        (["backup", outside, "--check"], "backup_check/1"),
        (["restore", outside, again], "restored/1"),
    ):
        assert call([*words, "--json"]) == 0
        judged(capsys.readouterr().out, name)
    for words, line in (
        (["backup", "here"], "lies in the lab; keep backups outside it"),
        (["restore", outside, again], "is there already"),
        (["restore", str(lab), str(tmp_path / "x")], "holds no backups"),
        (["backup", str(tmp_path / "again")], "is not empty and holds no backups"),
        (["backup", outside, "--list", "--check"], "ask one of them"),
    ):
        assert call(words) == 2
        err = capsys.readouterr().err
        assert line in err and len(err.splitlines()) == 1, err
    assert json.loads((tmp_path / "backups" / "labctl-backup.json").read_text()) == {"format": "labctl.backups/1"}
