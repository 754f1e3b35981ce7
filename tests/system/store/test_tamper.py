"""Whoever changes a record is found out: each kind of tampering is named for what it is, and the report refuses."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.runs.recordings import copied

from labctl.clock import SECOND, ManualClock
from labctl.core.events import Event, Kind, canonical, digest, event_hash
from labctl.errors import BrokenRecord
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign, open_campaign, unblind_campaign
from labctl.store.chain_heads import noted
from labctl.store.chunks import Chunk, decode_chunk, encode_chunk
from labctl.store.journal import Journal
from labctl.store.problem import Found
from labctl.store.traces import TraceStore
from labctl.store.verifying.recordings import check_recordings
from labctl.store.verifying.verify import read_all_but, verify_campaign
from labctl.streams import StreamSpec

ROOT = Path(__file__).parents[3]
STREAM = StreamSpec("arm/state", ("q1", "q2"), "rad", 100.0)
TRIGGERS = (
    "event_chain",
    "event_no_update",
    "event_no_delete",
    "command_once",
    "command_no_update",
    "command_no_delete",
)


def play(campaign: Campaign, traces: TraceStore, clock: ManualClock, trial: str, number: int) -> None:
    """One synthetic episode, journalled, recorded, sealed and scored as the runner does it."""
    episode = f"e-{number}"

    def log(kind: Kind, body: dict) -> None:
        campaign.journal.append(kind, anchor=clock.anchor(), who="run", trial=trial, episode=episode, body=body)
        clock.sleep_until(clock.now_ns() + SECOND // 10)

    log(Kind.TRIAL_STAGING, {"setter": "p-2"})
    log(Kind.SCENE_COMMITTED, {"photo": None, "snapshot": {}})
    log(Kind.ARM_REVEALED, {"sealed": campaign.ledger.seal_value(episode, "arm", campaign.ledger.reveal(trial))})
    card = campaign.ledger.seal_value(episode, "controller", {"endpoint": f"sim://{number}"})
    log(Kind.EPISODE_STARTED, {"kind": "sim", "durable": True, "budget_s": 120.0, "items_staged": 4, "sealed": card})
    go_ns = clock.now_ns()
    log(Kind.GO, {"go_ns": go_ns})
    traces.declare(episode, [STREAM])
    for seq in range(2):
        t_ns = go_ns + seq * SECOND + np.arange(100, dtype=np.int64) * (SECOND // 100)
        traces.write(episode, [Chunk(STREAM.name, seq, t_ns, np.stack([np.sin(t_ns / 1e9), t_ns / 1e9], axis=1))])
    clock.sleep_until(go_ns + 2 * SECOND)
    log(Kind.OPERATION_RECORDED, {"op_index": 0, "result": "success", "t_ns": go_ns + SECOND, "cause": None})
    log(Kind.EPISODE_ENDED, {"reason": "operator", "end_ns": go_ns + 2 * SECOND})
    video = campaign.folder / "video" / episode / "wrist.mp4"
    video.parent.mkdir(parents=True)
    video.write_bytes(b"frames of " + episode.encode() * 50)
    streams = traces.seal(episode)
    sealed = {
        "streams": streams,
        "root": digest({name: entry["root"] for name, entry in streams.items()}),
        "videos": {
            "wrist": {
                "file": video.relative_to(campaign.folder).as_posix(),
                "sha256": hashlib.sha256(video.read_bytes()).hexdigest(),
                "frames": 20,
            }
        },
        "gaps": 0,
    }
    log(Kind.RECORDING_SEALED, sealed)
    outcome = {"items_staged": 4, "moved": 1, "lost": 0, "remaining": 3, "end_reason": "operator"}
    log(Kind.OUTCOME_RECORDED, {"outcome": outcome})


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a closed, frozen and unblinded campaign with two episodes."""
    lab = tmp_path_factory.mktemp("lab")
    for name in ("protocols/demo.toml", "fixtures/two_totes.toml", "hw_configs/sim_fr3.toml"):
        (lab / name).parent.mkdir(exist_ok=True)
        (lab / name).write_text((ROOT / name).read_text())
    clock = ManualClock(SECOND)
    protocol, cell = lab / "protocols/demo.toml", lab / "hw_configs/sim_fr3.toml"
    folder = open_campaign(protocol, cell, lab, entropy=bytes(32), anchor=clock.anchor(), who="p-1").folder
    with Campaign.open(folder, writer=True) as campaign:
        traces = TraceStore.open(campaign.traces_url, campaign.opened["campaign"])
        for number, trial in enumerate(list(campaign.state.trials)[:2]):
            play(campaign, traces, clock, trial, number)
        traces.close()
    close_campaign(folder, who="p-1", reason="enough", anchor=clock.anchor())
    freeze_campaign(folder, who="p-1", anchor=clock.anchor(), unreviewed=True)
    unblind_campaign(folder, who="p-1", anchor=clock.anchor())
    return folder


@pytest.fixture
def folder(original: Path, tmp_path: Path) -> Path:
    return copied(original, tmp_path / original.name)


def events_of(folder: Path) -> list[Event]:
    journal = Journal.open(f"sqlite:///{folder / 'journal.db'}", folder.name, readonly=True)
    events = journal.events()
    journal.close()
    return events


def change(folder: Path, *statements: tuple[str, tuple], database: str = "journal.db") -> None:
    """What somebody with `sqlite3` and the owner's rights does: drop the triggers, then change rows."""
    raw = sqlite3.connect(folder / database)
    if database == "journal.db":
        for trigger in TRIGGERS:
            raw.execute(f"DROP TRIGGER {trigger}")
    for statement, values in statements:
        assert raw.execute(statement, values).rowcount > 0, "the tampering itself must have worked"
    raw.commit()
    raw.close()


def first_outcome(folder: Path) -> tuple[int, str]:
    """(seq, edited body text): the first outcome, turned into a perfect one."""
    event = next(e for e in events_of(folder) if e.kind == Kind.OUTCOME_RECORDED)
    outcome = {**event.body["outcome"], "moved": 4, "remaining": 0}
    return event.seq, canonical({"outcome": outcome}).decode()


def rehash_from(folder: Path, seq: int, body: str) -> None:
    """Edit one entry, then give it and every later one the hash that fits."""
    import json

    events = events_of(folder)
    statements = []
    for i in range(seq - 1, len(events)):
        changed = replace(events[i], prev=events[i - 1].hash)
        if i == seq - 1:
            changed = replace(changed, body=json.loads(body))
        events[i] = replace(changed, hash=event_hash(changed))
        values = (canonical(events[i].body).decode(), events[i].prev, events[i].hash, i + 1)
        statements.append(("UPDATE event SET body = ?, prev = ?, hash = ? WHERE seq = ?", values))
    change(folder, *statements)


def named(folder: Path, head: str | None = None) -> list[str]:
    """What verify calls the problems; the report must refuse for the first of them."""
    problems = verify_campaign(folder, noted(head, None)).problems
    if problems and head is None:
        with pytest.raises(BrokenRecord, match=problems[0].what):
            read_all_but(folder, ())
    return [problem.what for problem in problems]


def test_an_untouched_campaign_verifies_and_says_how_much_was_looked_at(folder):
    verified = verify_campaign(folder)
    assert verified.problems == []
    counts = verified.counts
    assert (counts.entries, counts.recordings, counts.chunks, counts.videos) == (len(events_of(folder)), 2, 4, 2)
    assert len(read_all_but(folder, ())[0]) == counts.entries


def test_an_outcome_edited_with_sqlite_is_named_at_its_entry(folder):
    seq, body = first_outcome(folder)
    change(folder, ("UPDATE event SET body = ? WHERE seq = ?", (body, seq)))
    (problem,) = verify_campaign(folder).problems
    assert (problem.what, problem.where) == ("edited entry", f"journal seq {seq} (OutcomeRecorded)")
    assert named(folder) == ["edited entry"]


def test_an_entry_replaced_by_insert_or_replace_is_named(folder):
    seq, body = first_outcome(folder)
    columns = "campaign, seq, kind, at_ns, boot, wall, who, trial, episode, ?, prev, hash"
    change(folder, (f"INSERT OR REPLACE INTO event SELECT {columns} FROM event WHERE seq = ?", (body, seq)))
    assert named(folder) == ["edited entry"]


def test_a_deleted_event_is_named(folder):
    seq, _ = first_outcome(folder)
    change(folder, ("DELETE FROM event WHERE seq = ?", (seq,)))
    assert "missing entry" in named(folder)
    assert f"before seq {seq + 1}" in verify_campaign(folder).problems[0].where


def test_a_cut_tail_is_named(folder):
    last = events_of(folder)[-1].seq
    change(folder, ("DELETE FROM event WHERE seq >= ?", (last - 1,)))
    assert set(named(folder)) == {"cut tail"}


def test_a_chain_rehashed_from_the_edit_on_is_caught_by_the_heads_outside_the_database(folder):
    rehash_from(folder, *first_outcome(folder))
    assert named(folder)[0] == "rehashed chain"


def test_a_rehashed_chain_with_its_heads_removed_is_caught_by_the_head_that_was_printed(folder):
    printed = events_of(folder)[-1].hash
    rehash_from(folder, *first_outcome(folder))
    (folder / "heads.log").unlink()
    assert named(folder, head=printed) == ["missing heads.log", "head not in chain"]
    assert named(folder, head=events_of(folder)[-1].hash) == ["missing heads.log"]


def test_a_changed_trace_chunk_is_named_with_its_place(folder):
    raw = sqlite3.connect(folder / "traces.db")
    (payload,) = raw.execute("SELECT payload FROM chunk WHERE episode = 'e-1' AND seq = 1").fetchone()
    raw.close()
    changed = payload[:-3] + bytes([payload[-3] ^ 1]) + payload[-2:]
    where = "WHERE episode = 'e-1' AND seq = 1"
    change(folder, (f"UPDATE chunk SET payload = ? {where}", (changed,)), database="traces.db")
    (problem,) = verify_campaign(folder).problems
    assert problem.what == "changed trace chunk" and problem.where.endswith("episode e-1 stream arm/state chunk 1")
    assert named(folder) == ["changed trace chunk"]


def test_a_trace_chunk_changed_together_with_its_digest_is_named(folder):
    raw = sqlite3.connect(folder / "traces.db")
    (payload,) = raw.execute("SELECT payload FROM chunk WHERE episode = 'e-0' AND seq = 0").fetchone()
    raw.close()
    t_ns, values = decode_chunk(payload)
    other = encode_chunk(STREAM, t_ns, values * 2)
    values = (other, hashlib.sha256(other).hexdigest())
    where = "WHERE episode = 'e-0' AND seq = 0"
    change(folder, (f"UPDATE chunk SET payload = ?, sha256 = ? {where}", values), database="traces.db")
    assert named(folder) == ["changed trace chunk"]


def test_a_deleted_trace_chunk_is_named(folder):
    change(folder, ("DELETE FROM chunk WHERE episode = 'e-0' AND seq = 1", ()), database="traces.db")
    assert named(folder) == ["missing or added trace chunk"]


def test_one_changed_byte_of_a_video_is_named(folder):
    path = folder / "video" / "e-0" / "wrist.mp4"
    content = bytearray(path.read_bytes())
    content[100] ^= 1
    path.write_bytes(content)
    (problem,) = verify_campaign(folder).problems
    assert problem.what == "changed video" and "video/e-0/wrist.mp4" in problem.where
    assert named(folder) == ["changed video"]


def test_a_missing_video_is_named(folder):
    (folder / "video" / "e-1" / "wrist.mp4").unlink()
    assert named(folder) == ["missing video"]


def test_a_file_that_is_no_video_is_held_to_the_digest_that_its_gap_has(folder):
    """The gap stands before its seal; nothing else binds what a camera left."""
    gap = {"stream": "camera/front", "from_ns": None, "to_ns": None, "lost": None, "why": "cannot be read as a video"}
    path = folder / "video" / "e-0" / "front.mp4"
    path.write_bytes(b"scrap")
    found = verify_campaign(folder)
    assert found.problems == [] and [note for note in found.notes if "video/e-0/front.mp4" in note] == [
        "video/e-0/front.mp4 (episode e-0) is bound by no entry of the journal: a change of it cannot be seen"
    ]
    bound = {**gap, "files": [{"file": "video/e-0/front.mp4", "sha256": hashlib.sha256(b"scrap").hexdigest()}]}
    about = Found()
    events = events_of(folder)
    at = next(event for event in events if event.kind == Kind.RECORDING_SEALED)
    with_gap = [events[0], replace(at, kind=Kind.GAP, body=bound), *events[1:]]
    check_recordings(folder, with_gap, about, ["e-0"])
    assert about.problems == [] and not [note for note in about.notes if "bound by no entry" in note]
    path.write_bytes(b"other")
    check_recordings(folder, with_gap, about, ["e-0"])
    assert [(one.what, one.episode) for one in about.problems] == [("changed video", "e-0")]
    path.unlink()
    about = Found()
    check_recordings(folder, with_gap, about, ["e-0"])
    assert about.problems == [] and [note for note in about.notes if "is not here" in note]


@pytest.mark.parametrize("holder", ["this run", "a run that was killed", "nobody", "a run that has gone on"])
def test_verify_says_being_sealed_of_nothing_that_waits_for_the_next_start(folder, holder):
    """A run that gave a recording up goes on with the next trial; what it left waits, as after a kill."""
    events = [one for one in events_of(folder) if one.kind not in (Kind.CAMPAIGN_CLOSED, Kind.RECORDING_SEALED)]
    end = max(at for at, one in enumerate(events) if one.kind == Kind.EPISODE_ENDED)
    events = events[: end + 1]
    pid = 1 << 30 if holder == "a run that was killed" else os.getpid()  # more than any process has
    (folder / ".lock").write_text("" if holder == "nobody" else f"{pid} run {folder.name}\n")
    if holder == "a run that has gone on":
        events.append(replace(events[end], seq=events[end].seq + 1, kind=Kind.TRIAL_STAGING, episode=None, body={}))
    about = Found()
    check_recordings(folder, events, about, None)
    (note,) = [note for note in about.notes if "episode e-1 is not sealed" in note]
    assert ("it is being sealed" in note) == (holder == "this run")
    assert ("the next start of its run seals what is there, or labctl close" in note) == (holder != "this run")


def swap_arms(events: list[Event]) -> dict:
    body = dict(events[-1].body)
    schedule = [dict(slot) for slot in body["schedule"]]
    schedule[0]["arm"], schedule[1]["arm"] = schedule[1]["arm"], schedule[0]["arm"]
    return {**body, "schedule": schedule}


def swap_openings(events: list[Event]) -> dict:
    body = dict(events[-1].body)
    openings = [dict(opening) for opening in body["openings"]]
    openings[0]["value"] = "human" if openings[0]["value"] != "human" else "policy-a"
    return {**body, "openings": openings}


@pytest.mark.parametrize(("forge", "what"), [(swap_arms, "broken commitment"), (swap_openings, "unopened seal")])
def test_arms_swapped_at_unblinding_are_caught_even_with_every_hash_made_to_fit(
    folder: Path, forge: Callable[[list[Event]], dict], what: str
) -> None:
    events = events_of(folder)
    rehash_from(folder, events[-1].seq, canonical(forge(events)).decode())
    (folder / "heads.log").write_text("")
    assert what in named(folder)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE event SET body = '{}' WHERE kind = 'OutcomeRecorded'",
        "DELETE FROM event WHERE kind = 'OutcomeRecorded'",
        "INSERT OR REPLACE INTO event SELECT * FROM event WHERE kind = 'OutcomeRecorded'",
    ],
)
def test_the_triggers_refuse_the_plain_attempt(folder, statement):
    raw = sqlite3.connect(folder / "journal.db")
    with pytest.raises(sqlite3.IntegrityError, match="append-only"):
        raw.execute(statement)
    raw.close()
    assert named(folder) == []
