"""Claims about campaigns: opened whole or not at all, sealed once, ended in order, proven by the journal alone."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from labctl.clock import ManualClock
from labctl.core.events import Kind
from labctl.core.trial import Phase, State
from labctl.errors import BrokenRecord, InputError, StateError, StorageError
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign, open_campaign, unblind_campaign
from labctl.store.chain_heads import read_heads
from labctl.store.journal import chain_problems
from labctl.store.ledger import check_commitment
from labctl.store.locks import campaign_lock

ROOT = Path(__file__).parents[3]
NOW = ManualClock().anchor()
SECRET = bytes(range(32))


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    for name in ("protocols/demo.toml", "fixtures/two_totes.toml", "hw_configs/sim_fr3.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text((ROOT / name).read_text())
    return tmp_path


def opened(lab: Path, **more):
    protocol, cell = lab / "protocols/demo.toml", lab / "hw_configs/sim_fr3.toml"
    return open_campaign(protocol, cell, lab, entropy=SECRET, anchor=NOW, who="p-1", **more)


def ended(folder: Path) -> None:
    close_campaign(folder, who="p-1", anchor=NOW, reason="enough")
    freeze_campaign(folder, who="p-1", unreviewed=True, anchor=NOW)


def log(folder: Path, *kinds: Kind, **bodies) -> str:
    """Journal events about the first trial; returns its id."""
    with Campaign.open(folder, writer=True) as campaign:
        trial = next(iter(campaign.state.trials))
        for kind in kinds:
            campaign.log(kind, bodies.get(kind.name, {}), anchor=NOW, who="run", trial=trial)
    return trial


def test_opening_leaves_everything_a_run_needs_and_one_event(lab):
    made = opened(lab)
    names = {path.name for path in made.folder.iterdir()}
    assert names == {"cell.toml", "fixture.toml", "journal.db", "traces.db", "heads.log", "seal"}
    with Campaign.open(made.folder, writer=True) as campaign:
        assert campaign.opened["commitment"] == made.commitment
        assert len(campaign.state.trials) == 4 * 4 * 3
        assert campaign.opened["budget_s"] == 120.0
        assert campaign.protocol.protocol.name == "demo-bin-to-bin"
        assert {campaign.ledger.reveal(trial) for trial in campaign.state.trials} == {
            a.name for a in campaign.protocol.arm
        }
        assert [head.hash for head in read_heads(made.folder)] == [campaign.state.head]


def test_what_is_published_at_opening_names_no_arm_and_no_endpoint(lab):
    made = opened(lab)
    with Campaign.open(made.folder) as campaign:
        text = json.dumps(campaign.opened)
    assert "policy-" not in text and "sim://" not in text and '"arm"' not in text and '"human"' not in text
    for path in made.folder.iterdir():
        if path.is_file():
            assert b"policy-a" not in path.read_bytes(), path.name


def test_the_schedule_is_the_one_the_entropy_gives(lab):
    one, two = opened(lab), opened(lab)
    assert (one.name, two.name) == ("demo-bin-to-bin", "demo-bin-to-bin-2")
    assert one.commitment == two.commitment


@pytest.mark.parametrize(
    ("file", "old", "new", "says"),
    [
        ("protocols/demo.toml", "items_staged = 4", "items_staged = 0", "items_staged"),
        (
            "protocols/demo.toml",
            'controller = "sim_person"',
            'controller = "sim_persom"',
            "no driver named 'sim_persom'",
        ),
        ("protocols/demo.toml", "two_totes.toml", "three_totes.toml", "three_totes.toml"),
        ("hw_configs/sim_fr3.toml", 'driver = "sim_fr3"', 'driver = "fr4"', "no driver named 'fr4'"),
        ("hw_configs/sim_fr3.toml", "[lease]", "[leash]", "leash"),
    ],
)
def test_a_mistake_in_a_file_is_named_with_its_line_and_nothing_is_written(lab, file, old, new, says):
    path = lab / file
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InputError, match=says) as caught:
        opened(lab)
    assert f"{path.name}:" in str(caught.value)
    assert not (lab / "campaigns").exists()


def test_a_failure_while_opening_leaves_nothing_behind(lab, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("labctl.store.campaign.append_head", full)
    with pytest.raises(StorageError, match="disk is full"):
        opened(lab)
    assert list((lab / "campaigns").iterdir()) == []


def test_a_head_that_cannot_be_kept_hides_nothing_of_what_was_done(lab, monkeypatch):
    """The entry stands and cannot be taken back: whoever reads the error is not led to try again."""
    folder = opened(lab).folder

    def full(*_, **__):
        raise StorageError("heads.log: the disk is full")

    monkeypatch.setattr("labctl.store.campaign.append_head", full)
    with pytest.raises(StorageError, match=r"done and journalled.*[0-9]+:[0-9a-f]{64}.*the disk is full"):
        close_campaign(folder, who="p-1", anchor=NOW, reason="enough")
    with Campaign.open(folder) as campaign:
        assert campaign.state.phase == Phase.CLOSED


def test_those_that_are_opened_at_once_are_each_whole_and_named_apart(lab):
    with ThreadPoolExecutor(3) as pool:
        made = [future.result() for future in [pool.submit(opened, lab) for _ in range(3)]]
    assert {one.name for one in made} == {"demo-bin-to-bin", "demo-bin-to-bin-2", "demo-bin-to-bin-3"}
    for one in made:
        with Campaign.open(one.folder, writer=True) as campaign:
            assert campaign.opened["campaign"] == one.name and len(campaign.state.trials) == 4 * 4 * 3


def test_a_given_name_is_checked_and_never_reused(lab):
    opened(lab, name="evening-1")
    with pytest.raises(InputError, match="there already"):
        opened(lab, name="evening-1")
    with pytest.raises(InputError, match="campaign name"):
        opened(lab, name="../x")


def test_a_reader_gets_no_ledger(lab):
    with Campaign.open(opened(lab).folder) as campaign, pytest.raises(StateError, match="seal stays closed"):
        _ = campaign.ledger


def test_a_campaign_that_would_not_be_opened_now_is_read_written_and_ended(lab, monkeypatch):
    """Opened by an earlier labctl: a person listed as a policy, a box in mm, arming for ever."""
    for name, old, new in (
        ("protocols/demo.toml", 'kind = "human"', 'kind = "policy"'),
        ("protocols/demo.toml", "arming_s = 6.0", "arming_s = 1e7"),
        ("hw_configs/sim_fr3.toml", "box_max_m = [0.80, 0.60, 0.80]", "box_max_m = [800.0, 600.0, 800.0]"),
    ):
        text = (lab / name).read_text()
        assert old in text
        (lab / name).write_text(text.replace(old, new, 1))
    with monkeypatch.context() as before:
        before.setattr("labctl.config.conditions.check_new", lambda *given: None)
        before.setattr("labctl.config.cell_schema.check_metres", lambda *given: None)
        before.setattr("labctl.store.driver_options.check_controllers", lambda *given: None)
        folder = opened(lab).folder
    ended(folder)
    unblind_campaign(folder, who="p-1", anchor=NOW)
    with Campaign.open(folder) as campaign:
        assert campaign.cell.robot.limits.box_max_m == (800.0, 600.0, 800.0)
        assert campaign.record().unblinding is not None


def test_closing_with_trials_left_needs_a_reason_and_records_each_as_not_run(lab):
    folder = opened(lab).folder
    with pytest.raises(StateError, match="not run yet: 48 of 48 trials"):
        close_campaign(folder, who="p-1", anchor=NOW)
    close_campaign(folder, who="p-1", anchor=NOW, reason="enough")
    with Campaign.open(folder) as campaign:
        events = campaign.events()
        assert campaign.state.phase == Phase.CLOSED
        assert {trial.state for trial in campaign.state.trials.values()} == {State.NOT_RUN}
    skipped = [event for event in events if event.kind == Kind.TRIAL_SKIPPED]
    assert len(skipped) == 48 and {event.body["reason"] for event in skipped} == {"campaign_closed"}


def test_closing_counts_every_trial_that_was_not_run_whenever_that_was_said(lab):
    folder = opened(lab).folder
    with Campaign.open(folder, writer=True) as campaign:
        for trial in campaign.state.order:
            campaign.log(Kind.TRIAL_SKIPPED, {"reason": "max_voids"}, anchor=NOW, who="p-1", trial=trial)
    assert close_campaign(folder, who="p-1", anchor=NOW)[0] == "closed: of 48 trials 0 scored, 48 not run"


def test_a_campaign_is_given_up_for_a_reason_which_the_journal_keeps(lab):
    folder = opened(lab).folder
    with pytest.raises(StateError, match="not run yet: "):
        close_campaign(folder, who="p-1", anchor=NOW, abandon=True)
    told = close_campaign(folder, who="p-1", anchor=NOW, abandon=True, reason="the rig broke")[0]
    assert told == "abandoned: of 48 trials 0 scored, 48 not run"
    with Campaign.open(folder) as campaign:
        closed, record = campaign.events()[-1], campaign.record()
    assert (closed.body["reason"], closed.body["abandoned"]) == ("the rig broke", True)
    assert record.closing == closed.body and record.closed_by == "p-1"


def test_a_staged_trial_is_released_before_it_is_skipped(lab):
    folder = opened(lab).folder
    trial = log(folder, Kind.TRIAL_STAGING, TRIAL_STAGING={"setter": "p-2"})
    close_campaign(folder, who="p-1", anchor=NOW, reason="enough")
    with Campaign.open(folder) as campaign:
        kinds = [event.kind for event in campaign.events() if event.trial == trial]
    assert kinds == [Kind.TRIAL_STAGING, Kind.TRIAL_RELEASED, Kind.TRIAL_SKIPPED]


def test_an_open_episode_refuses_closing(lab):
    folder = opened(lab).folder
    log(folder, Kind.TRIAL_STAGING, Kind.SCENE_COMMITTED)
    with Campaign.open(folder, writer=True) as campaign:
        trial = next(iter(campaign.state.trials))
        journal = campaign.journal
        journal.append(Kind.ARM_REVEALED, anchor=NOW, who="run", trial=trial, episode="e-1", body={"sealed": "0" * 64})
    with pytest.raises(StateError, match="open episode"):
        close_campaign(folder, who="p-1", anchor=NOW, reason="enough")


def test_an_episode_that_nobody_has_scored_refuses_closing(lab):
    """Closed, it could be neither scored nor voided, and the campaign never be frozen. It has ended: nobody is told to
    end it.
    """
    folder = opened(lab).folder
    log(folder, Kind.TRIAL_STAGING, Kind.SCENE_COMMITTED)
    with Campaign.open(folder, writer=True) as campaign:
        trial = next(iter(campaign.state.trials))
        given = {"anchor": NOW, "who": "run", "trial": trial, "episode": "e-1"}
        campaign.journal.append(Kind.ARM_REVEALED, body={"sealed": "0" * 64}, **given)
        campaign.journal.append(Kind.EPISODE_STARTED, body={}, **given)
        campaign.journal.append(Kind.GO, body={"go_ns": 1}, **given)
        campaign.journal.append(Kind.EPISODE_ENDED, body={"reason": "operator", "end_ns": 2}, **given)
    with pytest.raises(StateError, match=r"has ended and has no score; score or void it first: labctl run"):
        close_campaign(folder, who="p-1", anchor=NOW, reason="enough")


def test_a_campaign_ends_only_in_order(lab):
    folder = opened(lab).folder
    with pytest.raises(StateError, match="is open"):
        freeze_campaign(folder, who="p-1", anchor=NOW)
    with pytest.raises(StateError, match="--reason"):
        unblind_campaign(folder, who="p-1", anchor=NOW)
    close_campaign(folder, who="p-1", anchor=NOW, reason="enough")
    with pytest.raises(StateError, match="is closed"):
        close_campaign(folder, who="p-1", anchor=NOW, reason="again")
    assert freeze_campaign(folder, who="p-1", unreviewed=True, anchor=NOW)[0] == "frozen without a review"
    unblind_campaign(folder, who="p-1", anchor=NOW)
    with pytest.raises(StateError, match="unblinded already"):
        unblind_campaign(folder, who="p-1", anchor=NOW)
    with Campaign.open(folder) as campaign:
        events = campaign.events()
        assert campaign.state.phase == Phase.UNBLINDED and not campaign.state.unblinded_early
    frozen = next(event for event in events if event.kind == Kind.CAMPAIGN_FROZEN)
    assert (frozen.body["reviewed"], frozen.body["head"]) == (False, frozen.prev)
    assert chain_problems(events) == []


def test_a_campaign_is_frozen_without_a_review_only_on_somebodys_word(lab):
    folder = opened(lab).folder
    close_campaign(folder, who="p-1", anchor=NOW, reason="enough")
    with pytest.raises(StateError, match=r"labctl review \S+ --finish"):
        freeze_campaign(folder, who="p-1", anchor=NOW)
    with Campaign.open(folder) as campaign:
        assert campaign.state.phase == Phase.CLOSED
    freeze_campaign(folder, who="p-2", unreviewed=True, anchor=NOW)
    with Campaign.open(folder) as campaign:
        record = campaign.record()
    assert (record.reviewed, record.frozen, record.frozen_by) == (False, True, "p-2")


def test_the_journal_alone_proves_the_commitment_after_unblinding(lab):
    made = opened(lab)
    ended(made.folder)
    unblind_campaign(made.folder, who="p-1", anchor=NOW)
    for path in (made.folder / "seal").iterdir():
        path.unlink()
    with Campaign.open(made.folder) as campaign:
        body = campaign.events()[-1].body
    assert check_commitment(made.commitment, body) == []
    assert body["secret_hex"] == SECRET.hex() and len(body["schedule"]) == 48


def test_early_unblinding_is_recorded_with_its_reason(lab):
    folder = opened(lab).folder
    unblind_campaign(folder, who="p-1", anchor=NOW, reason="a person was hurt")
    with Campaign.open(folder) as campaign:
        assert campaign.state.unblinded_early
        assert campaign.events()[-1].body["reason"] == "a person was hurt"


def test_a_swapped_seal_is_not_unblinded(lab):
    folder = opened(lab).folder
    ended(folder)
    path = folder / "seal" / "schedule.json"
    sealed = json.loads(path.read_text())
    sealed["slots"][0]["arm"], sealed["slots"][1]["arm"] = sealed["slots"][1]["arm"], sealed["slots"][0]["arm"]
    path.write_text(json.dumps(sealed))
    with pytest.raises(BrokenRecord, match="not the one that was drawn"):
        unblind_campaign(folder, who="p-1", anchor=NOW)
    with Campaign.open(folder) as campaign:
        assert campaign.state.phase == Phase.FROZEN


def test_each_ending_verb_leaves_a_head_outside_the_database(lab):
    folder = opened(lab).folder
    ended(folder)
    with Campaign.open(folder) as campaign:
        assert [head.seq for head in read_heads(folder)] == [1, campaign.state.last_seq - 1, campaign.state.last_seq]


def test_a_verb_waits_for_no_running_campaign(lab):
    folder = opened(lab).folder
    with campaign_lock(folder, "run"), pytest.raises(StateError, match="in use by `run`"):
        close_campaign(folder, who="p-1", anchor=NOW, reason="enough")


def test_nothing_is_appended_to_a_chain_that_lost_its_tail(lab):
    folder = opened(lab).folder
    with (folder / "heads.log").open("a") as file:
        file.write(f"7 {'a' * 64} 2026-01-01T00:00:00+00:00\n")
    with pytest.raises(BrokenRecord, match="cut tail"):
        Campaign.open(folder, writer=True)


def test_a_folder_that_is_no_campaign_is_one_line(lab):
    with pytest.raises(StorageError, match="no such database"):
        Campaign.open(lab)
    with pytest.raises(InputError, match="is no campaign"):
        close_campaign(lab, who="p-1")
