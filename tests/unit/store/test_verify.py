"""Claims about verification: frozen files, seal and history are looked at too, and nothing stops it half-way."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from labctl.clock import ManualClock
from labctl.core.events import Kind
from labctl.errors import InputError
from labctl.store.campaign import Campaign, open_campaign, unblind_campaign
from labctl.store.chain_heads import noted
from labctl.store.verifying.verify import verify_campaign

ROOT = Path(__file__).parents[3]
NOW = ManualClock().anchor()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("protocols/demo.toml", "fixtures/two_totes.toml", "hw_configs/sim_fr3.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    protocol, cell = tmp_path / "protocols/demo.toml", tmp_path / "hw_configs/sim_fr3.toml"
    return open_campaign(protocol, cell, tmp_path, entropy=bytes(32), anchor=NOW, who="p-1").folder


def named(folder: Path) -> list[str]:
    return [problem.what for problem in verify_campaign(folder).problems]


def test_a_fresh_campaign_holds_and_says_what_cannot_be_checked_yet(folder):
    verified = verify_campaign(folder)
    assert verified.problems == []
    assert any("not unblinded" in note for note in verified.notes)
    with Campaign.open(folder) as campaign:
        assert verified.head == f"1 {campaign.state.head}"


@pytest.mark.parametrize("name", ["cell.toml", "fixture.toml"])
def test_a_changed_or_missing_frozen_file_is_named(folder, name):
    (folder / name).write_text((folder / name).read_text() + "\n")
    assert named(folder) == ["changed frozen file"]
    (folder / name).unlink()
    assert named(folder) == ["missing frozen file"]


def test_a_changed_sealed_protocol_is_named(folder):
    path = folder / "seal" / "protocol.toml"
    path.write_text(path.read_text().replace("alpha = 0.05", "alpha = 0.50"))
    assert named(folder) == ["changed frozen file"]


def test_a_schedule_swapped_in_the_seal_is_named_before_unblinding_without_naming_an_arm(folder):
    path = folder / "seal" / "schedule.json"
    path.write_text(
        path.read_text().replace("policy-a", "tmp").replace("policy-b", "policy-a").replace("tmp", "policy-b")
    )
    (problem,) = verify_campaign(folder).problems
    assert problem.what == "broken commitment" and "policy" not in str(problem)


def test_a_missing_seal_is_named_before_unblinding(folder):
    (folder / "seal" / "schedule.json").unlink()
    assert set(named(folder)) == {"damaged seal"}


def test_a_seal_others_may_read_is_a_note_not_a_problem(folder):
    (folder / "seal").chmod(0o755)
    verified = verify_campaign(folder)
    assert verified.problems == [] and any("rests on trust" in note for note in verified.notes)


def test_early_unblinding_and_gaps_are_notes(folder):
    with Campaign.open(folder, writer=True) as campaign:
        trial = next(iter(campaign.state.trials))
        campaign.log(Kind.TRIAL_STAGING, {}, anchor=NOW, who="run", trial=trial)
        campaign.log(Kind.SCENE_COMMITTED, {}, anchor=NOW, who="run", trial=trial)
        sealed = campaign.ledger.seal_value("e-1", "arm", campaign.ledger.reveal(trial))
        for kind, body in (
            (Kind.ARM_REVEALED, {"sealed": sealed}),
            (Kind.GAP, {"stream": "arm/state", "why": "the open second was lost"}),
            (Kind.GAP, {"stream": "camera/wrist", "lost": 5, "why": "dropped by the device"}),
            (Kind.EPISODE_VOIDED, {"reason": "not_ready", "after_go": False, "by_recovery": True}),
        ):
            campaign.journal.append(kind, anchor=NOW, who="run", trial=trial, episode="e-1", body=body)
    unblind_campaign(folder, who="p-1", anchor=NOW, reason="a test")
    verified = verify_campaign(folder)
    assert verified.problems == []
    assert "gap in arm/state of episode e-1: the open second was lost" in verified.notes
    assert "gap in camera/wrist of episode e-1: 5 lost: dropped by the device" in verified.notes
    assert "unblinded early: a test" in verified.notes


def test_a_history_that_could_not_have_happened_is_named(folder):
    with Campaign.open(folder, writer=True) as campaign:
        trial = next(iter(campaign.state.trials))
        body = {"outcome": {}}
        campaign.journal.append(Kind.OUTCOME_RECORDED, anchor=NOW, who="x", trial=trial, episode="e-1", body=body)
    assert named(folder) == ["illegal history"]


def test_a_damaged_trace_store_does_not_stop_the_rest(folder):
    (folder / "traces.db").unlink()
    (folder / "cell.toml").unlink()
    assert named(folder) == ["missing frozen file", "unreadable traces"]


def test_an_unreadable_journal_is_a_problem_not_a_traceback(folder):
    (folder / "journal.db").write_bytes(b"scrap" * 1000)
    assert named(folder) == ["unreadable journal"]


def test_a_body_that_is_not_json_any_more_is_named(folder):
    raw = sqlite3.connect(folder / "journal.db")
    raw.execute("DROP TRIGGER event_no_update")
    raw.execute("UPDATE event SET body = 'x'")
    raw.commit()
    raw.close()
    (problem,) = verify_campaign(folder).problems
    assert "edited entry" in str(problem) and "seq 1" in str(problem)


def test_heads_that_are_gone_are_named(folder):
    (folder / "heads.log").unlink()
    assert named(folder) == ["missing heads.log"]


@pytest.mark.parametrize("head", ["", "xyz", "abc", "0123456789abcde", "1:" + "a" * 65, "1" * 19 + ":" + "a" * 64])
def test_a_head_that_is_no_hash_is_the_users_mistake(head):
    with pytest.raises(InputError, match="--head"):
        noted(head, None)


def test_sixteen_digits_of_a_head_are_enough(folder):
    head = verify_campaign(folder).head
    assert verify_campaign(folder, noted(head.split()[1][:16], None)).problems == []
    assert verify_campaign(folder, noted(head, None)).problems == []


def test_a_folder_that_is_no_campaign_is_refused(tmp_path):
    with pytest.raises(InputError, match="no campaign"):
        verify_campaign(tmp_path)
