"""Timestamps of heads by an authority: what they date is held against the chain, and a network holds up nobody."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import urllib.error
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.machine import time_authority
from support.machine.time_authority import Authority
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy, unblind
from support.runs.forging import forge, rewrite_heads
from support.runs.live_campaign import end_of, of_kind, running
from support.runs.recordings import copied

from labctl.backup.moving import move
from labctl.cli import call
from labctl.clock import SECOND, MonotonicClock
from labctl.core.events import Kind
from labctl.errors import BrokenRecord, Unreachable
from labctl.runtime.campaign_run import run_campaign
from labctl.store.chain_heads import head_text, read_heads
from labctl.store.verifying import timestamps
from labctl.store.verifying.timestamps import FOLDER, kept, query

pytest.importorskip("rfc3161_client")
pytestmark = pytest.mark.skipif(not time_authority.AVAILABLE, reason="the test authority is openssl's")


def recorded(lab: Path) -> Path:
    folder = make_campaign(lab, [HUMAN, policy("policy-a")]).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    return folder


@pytest.fixture(scope="module")
def keys(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return time_authority.made(tmp_path_factory.mktemp("authority") / "keys").folder


@pytest.fixture
def authority(keys: Path) -> Iterator[Authority]:
    with time_authority.serving(Authority(keys)) as one:
        yield one


@pytest.fixture
def folder(tmp_path: Path, recordings, authority: Authority) -> Path:
    """A copy of an unblinded campaign in a lab that names the authority."""
    lab = copied(recordings.of(recorded).parents[1], tmp_path / "lab")
    names(lab, authority)
    (found,) = (lab / "campaigns").iterdir()
    return found


def names(lab: Path, authority: Authority, *, timeout_s: float = 20.0) -> None:
    shutil.copy(authority.root, lab / "root.pem")
    table = f'authority = "{authority.address}"\ncertificates = "root.pem"\ntimeout_s = {timeout_s}\n'
    (lab / "lab.toml").write_text(f"[timestamps]\n{table}")


def stamp(folder: Path) -> int:
    return call(["stamp", str(folder)])


def verified(folder: Path, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    capsys.readouterr()
    return call(["verify", str(folder)]), capsys.readouterr().out


def test_a_stamped_head_dates_the_entries_up_to_it_and_nothing_more_is_claimed(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = read_heads(folder)[-1]
    assert stamp(folder) == 0 and list(kept(folder)) == [last.seq]
    assert f"head {last.seq}:{last.hash} stamped at 20" in capsys.readouterr().out
    code, said = verified(folder, capsys)
    assert code == 0 and "not checked against an outside head" in said
    assert "1 timestamp, trusted by the certificates" in said
    assert f"entries 1 to {last.seq} of {last.seq} existed at 20" in said
    assert "after they say they were written (entry 1)" in said, "its simulated clock is not the authority's"
    out = folder.parents[1] / "report"
    assert call(["report", str(folder), "--out", str(out), "--boot", "9", "--perm", "9"]) == 0
    assert "existed at 20" in json.loads((out / "report.json").read_text())["lab"]["provenance"]["timestamps"]


def test_a_record_made_anew_does_not_have_the_stamps_of_the_first(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stamp(folder) == 0
    rewrite_heads(folder, forge(folder))
    code, said = verified(folder, capsys)
    assert code == 1 and f"bad timestamp: {FOLDER}/" in said and "does not prove head" in said
    out = folder.parents[1] / "report"
    assert call(["report", str(folder), "--out", str(out)]) == 65 and not out.exists()


def test_stamps_that_were_taken_away_are_missed_where_the_lab_names_an_authority(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no head has a timestamp, though lab.toml names an authority" in verified(folder, capsys)[1]


def test_a_stamp_is_checked_in_the_place_that_a_lab_is_moved_to(folder: Path, tmp_path: Path) -> None:
    assert stamp(folder) == 0
    moved = move(folder.parents[1], tmp_path / "new", MonotonicClock().anchor())
    assert "1 timestamp, trusted by the certificates" in "\n".join(moved.verified[folder.name].notes)
    assert not moved.problems


@pytest.mark.parametrize("mood", ["refuses", "lies", "hangs"])
def test_an_authority_that_gives_no_good_stamp_is_one_line_and_leaves_none(
    folder: Path, authority: Authority, mood: str, capsys: pytest.CaptureFixture[str]
) -> None:
    authority.mood = mood
    names(folder.parents[1], authority, timeout_s=0.5 if mood == "hangs" else 20.0)
    assert stamp(folder) == (65 if mood == "lies" else 69)
    said = capsys.readouterr().err.strip()
    assert "\n" not in said and authority.address in said and "timestamp" in said
    assert kept(folder) == {}


def test_a_refusal_leaves_no_connection_open(authority: Authority) -> None:
    authority.mood = "refuses"
    with pytest.raises(Unreachable, match="503") as refused:
        timestamps._ask(timestamps.Authority(authority.address, b"", 20.0), b"", MonotonicClock())
    answer = refused.value.__context__
    assert isinstance(answer, urllib.error.HTTPError) and answer.closed


def test_a_stamp_of_an_authority_that_the_lab_does_not_name_proves_nothing(
    folder: Path, authority: Authority, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with time_authority.serving(time_authority.made(tmp_path / "stranger")) as stranger:
        names(folder.parents[1], stranger)
        assert stamp(folder) == 0
    assert verified(folder, capsys)[0] == 0
    names(folder.parents[1], authority)
    code, said = verified(folder, capsys)
    assert code == 1 and "bad timestamp" in said


def test_scrap_in_place_of_a_stamp_is_named_and_a_stamp_beyond_the_end_too(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    last = read_heads(folder)[-1].seq
    (folder / FOLDER).mkdir()
    (folder / FOLDER / f"{last}.tsr").write_bytes(b"scrap")
    (folder / FOLDER / f"{last + 7}.tsr").write_bytes(b"scrap")
    code, said = verified(folder, capsys)
    assert code == 1 and f"{FOLDER}/{last}.tsr" in said and f"the journal ends at {last}" in said


def test_stamps_without_a_lab_that_names_an_authority_and_foreign_proofs_are_called_unchecked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stamp(folder) == 0
    (folder / FOLDER / "5.ots").write_bytes(b"a proof")
    (folder.parents[1] / "lab.toml").write_text("")
    code, said = verified(folder, capsys)
    assert code == 0 and "1 timestamp in timestamps/, unchecked" in said
    assert "OpenTimestamps proofs of heads 5 lie in timestamps/, unchecked" in said


def test_without_the_library_a_stamp_is_unchecked_and_says_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert stamp(folder) == 0
    monkeypatch.setitem(sys.modules, "rfc3161_client", None)
    code, said = verified(folder, capsys)
    assert code == 0 and "unchecked: checking a timestamp needs" in said and "labctl[timestamps]" in said
    assert call(["stamp", str(folder)]) == 0, "the newest has its own already"


def test_a_head_without_an_authority_is_refused_in_one_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder.parents[1] / "lab.toml").write_text("")
    assert stamp(folder) == 2
    assert "[timestamps]" in capsys.readouterr().err
    (folder.parents[1] / "lab.toml").write_text('[timestamps]\nauthority = "file:///etc"\ncertificates = "x"\n')
    assert stamp(folder) == 2
    (folder.parents[1] / "lab.toml").write_text('[timestamps]\nauthority = "http://127.0.0.1/"\ncertificates = "x"\n')
    assert stamp(folder) == 2
    assert "root certificate" in capsys.readouterr().err


def test_what_an_authority_learns_is_a_digest_of_the_head_under_a_nonce_of_its_own(folder: Path) -> None:
    head = read_heads(folder)[-1]
    one, other = query(head.seq, head.hash), query(head.seq, head.hash)
    assert one != other
    assert hashlib.sha256(f"{head.seq}:{head.hash}".encode()).digest() in one
    assert head.hash.encode() not in one and bytes.fromhex(head.hash) not in one


def test_openssl_stamps_what_we_ask_and_its_check_and_ours_agree_on_head_digest_and_authority(
    keys: Path, tmp_path: Path
) -> None:
    """RFC 3161 by an implementation that nobody here wrote, as authority and as second opinion."""
    ours, stranger = Authority(keys), time_authority.made(tmp_path / "stranger")
    hash, other = "ab" * 32, "cd" * 32
    asked = query(7, hash)
    (tmp_path / "asked").write_bytes(asked)
    read = subprocess.run(
        ["openssl", "ts", "-query", "-in", tmp_path / "asked", "-text"], capture_output=True, text=True
    )
    assert (
        read.returncode == 0 and "Hash Algorithm: sha256" in read.stdout and "Certificate required: yes" in read.stdout
    )
    answers = {authority.root: authority.answer(asked) for authority in (ours, stranger)}
    for root, answer in answers.items():
        (tmp_path / "answer").write_bytes(answer)
        for by in answers:
            for said in (hash, other):
                digest = hashlib.sha256(head_text(7, said).encode()).hexdigest()
                words = ["openssl", "ts", "-verify", "-in", tmp_path / "answer", "-digest", digest, "-CAfile", by]
                theirs = subprocess.run(words, capture_output=True).returncode == 0
                named = timestamps.Authority("http://127.0.0.1/", by.read_bytes(), 1.0)
                try:
                    found = bool(timestamps.stamped_at(answer, 7, said, named))
                except BrokenRecord:
                    found = False
                assert found is theirs is (by == root and said == hash)


def test_opening_and_closing_go_on_without_a_network(
    folder: Path, authority: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = folder.parents[1]
    authority.mood = "refuses"
    assert call(["open", str(lab / "protocols/p.toml"), "--cell", str(lab / "cells/c.toml"), "--lab", str(lab)]) == 0
    assert "warning: no timestamp" in capsys.readouterr().err
    (opened,) = (path for path in (lab / "campaigns").iterdir() if path != folder)
    authority.mood = "stamps"
    assert call(["close", str(opened), "--reason", "a test"]) == 0
    assert list(kept(opened)) == [events_of(opened)[-1].seq]


@pytest.mark.thorough
@pytest.mark.real_time
def test_a_run_waits_for_no_authority_that_hangs_and_says_at_its_end_what_is_missing(
    tmp_path: Path, authority: Authority
) -> None:
    folder, log = make_campaign(tmp_path, [policy("a"), policy("b")], live=True).folder, tmp_path / "run.log"
    authority.mood, timeout_s = "hangs", 15.0
    names(tmp_path, authority, timeout_s=timeout_s)
    with running(folder, log) as run:
        assert end_of(run) == 0, log.read_text()
    scored, later = of_kind(folder, Kind.OUTCOME_RECORDED)
    (staged,) = (event for event in of_kind(folder, Kind.TRIAL_STAGING) if event.trial == later.trial)
    assert staged.at_ns - scored.at_ns < timeout_s * SECOND / 2, "the next trial did not wait"
    assert kept(folder) == {} and authority.asked >= 1
    assert "the last head has no timestamp" in log.read_text()


@pytest.mark.thorough
@pytest.mark.real_time
def test_the_last_head_of_a_run_is_stamped_and_verified(
    tmp_path: Path, authority: Authority, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, log = make_campaign(tmp_path, [policy("a"), policy("b")], live=True).folder, tmp_path / "run.log"
    names(tmp_path, authority)
    with running(folder, log) as run:
        assert end_of(run) == 0, log.read_text()
    assert max(kept(folder)) == read_heads(folder)[-1].seq == events_of(folder)[-1].seq
    code, said = verified(folder, capsys)
    assert code == 0 and f"entries 1 to {max(kept(folder))} of {max(kept(folder))} existed at 20" in said
