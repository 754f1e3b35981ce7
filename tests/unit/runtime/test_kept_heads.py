"""Claims about heads: whatever changes what a report counts has a head outside the database, whoever writes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.reviewed_now import correct, review
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.recordings import copied
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.core.events import Kind
from labctl.core.reviewed import queue
from labctl.runtime.campaign_run import run_campaign
from labctl.runtime.review_writer import finish, register
from labctl.store.campaign import Campaign, close_campaign
from labctl.store.chain_heads import HEADS, head_text, read_heads

NONE_MOVED = {"items_staged": 2, "moved": 0, "lost": 0, "remaining": 2}


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra")], items=2).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


def voided_before_go(bench: Bench) -> None:
    bench.begin()
    bench.commit()
    assert bench.command("void", reason=bench.campaign.opened["void_reasons"][0])["ok"]


def voided_by_the_protocol(bench: Bench) -> None:
    episode = bench.running()
    bench.hear(Message("run", "exited", {"name": "controller", "reason": "killed"}, sender="@host"))
    bench.seal(episode)


def scored(bench: Bench) -> str:
    episode = bench.running()
    assert bench.command("end")["ok"]
    bench.seal(episode)
    assert bench.command("score", **{**NONE_MOVED, "moved": 1, "remaining": 1})["ok"]
    return str(bench.events(Kind.OUTCOME_RECORDED)[-1].trial)


def corrected(bench: Bench) -> str:
    trial = scored(bench)
    assert bench.command("correct", trial=trial, role="assessor", why="miscounted", **NONE_MOVED)["ok"]
    return trial


def reviewed(bench: Bench) -> None:
    assert bench.command("review", trial=corrected(bench), role="assessor", operations=[])["ok"]


@pytest.mark.parametrize(
    ("act", "kind"),
    [
        (voided_before_go, Kind.EPISODE_VOIDED),
        (voided_by_the_protocol, Kind.EPISODE_VOIDED),
        (scored, Kind.OUTCOME_RECORDED),
        (corrected, Kind.OUTCOME_CORRECTED),
        (reviewed, Kind.OPERATIONS_REVIEWED),
    ],
)
def test_what_a_run_journals_of_an_outcome_has_a_head_that_is_printed_before_anything_else_happens(
    bench: Bench, act: Callable[[Bench], object], kind: Kind
) -> None:
    act(bench)
    entry, last = bench.events(kind)[-1], bench.events()[-1]
    assert entry == last, "nothing came after it"
    assert read_heads(bench.campaign.folder)[-1].hash == entry.hash
    assert sum(head_text(entry.seq, entry.hash) in line for line in bench.lines) == 1


def test_a_session_and_a_run_end_with_a_head(bench: Bench) -> None:
    bench.begin_session()
    assert bench.command("session_close", handover="all well")["ok"]
    assert read_heads(bench.campaign.folder)[-1].hash == bench.events()[-1].hash
    bench.node.leave()
    assert read_heads(bench.campaign.folder)[-1].hash == bench.events(Kind.RUN_STOPPED)[-1].hash


def test_a_head_that_cannot_be_kept_is_printed_all_the_same_and_the_next_one_covers_it(bench: Bench) -> None:
    heads = bench.campaign.folder / HEADS
    kept = heads.read_bytes()
    heads.unlink()
    heads.mkdir()  # nothing can be appended to it, whoever tries
    voided_before_go(bench)
    entry = bench.events(Kind.EPISODE_VOIDED)[-1]
    (said,) = [line for line in bench.lines if head_text(entry.seq, entry.hash) in line]
    assert "is not kept" in said and HEADS in said
    heads.rmdir()
    heads.write_bytes(kept)
    bench.node.leave()
    assert read_heads(bench.campaign.folder)[-1].seq > entry.seq


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A campaign of two scored trials, run in simulated time."""
    lab = tmp_path_factory.mktemp("lab")
    folder = make_campaign(lab, [HUMAN, policy("zebra", skill="swift")], items=2, budget=40.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


def test_what_is_judged_after_a_run_has_a_head_each_time(done: Path, tmp_path: Path) -> None:
    folder = copied(done, tmp_path / done.name)

    def last_is_kept() -> bool:
        return read_heads(folder)[-1].hash == events_of(folder)[-1].hash

    register(folder, "bea")
    assert events_of(folder)[-1].kind == Kind.SESSION_CLOSED and last_is_kept()
    with Campaign.open(folder) as campaign:
        items = queue(campaign.record())
    register(folder, "bea")
    assert last_is_kept()
    for item in items:
        review(folder, item.trial.id, item.operations, who="bea")
        assert last_is_kept()
    correct(folder, items[0].trial.id, {**NONE_MOVED, "wrong_end": True}, who="bea", why="they are all still there")
    assert events_of(folder)[-1].kind == Kind.OUTCOME_CORRECTED and last_is_kept()
    review(folder, items[0].trial.id, [], who="bea")
    close_campaign(folder, who="bea")
    finish(folder, who="bea")
    assert events_of(folder)[-1].kind == Kind.CAMPAIGN_REVIEWED and last_is_kept()
    seqs = [head.seq for head in read_heads(folder)]
    assert seqs == sorted(set(seqs)), "each once, in order"
