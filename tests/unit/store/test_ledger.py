"""Claims about the seal: drawn once, private, and everything said to be sealed opens after unblinding."""

from __future__ import annotations

import hashlib
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from labctl.core.design import draw, drbg
from labctl.core.events import Event, Kind, canonical
from labctl.errors import BrokenRecord, StateError
from labctl.messages.body_parts import GapBody
from labctl.store import ledger as ledger_module
from labctl.store.ledger import Ledger, check_commitment, sealed_digest
from labctl.store.verifying.opened_seal import check_openings

SECRET = bytes(range(32))
GAP: GapBody = {"stream": "policy", "from_ns": 1, "to_ns": 2, "lost": 1, "why": "chunk never arrived"}
SCHEDULE = draw(["spoons/layout-1", "towels/layout-1"], ["human", "policy-a", "policy-b"], 2, SECRET)


@pytest.fixture
def commitment(tmp_path: Path) -> str:
    return Ledger.create(tmp_path, SCHEDULE, SECRET, "text = 'å'")


def revealed(ledger: Ledger, seq: int, trial: str, episode: str) -> Event:
    sealed = ledger.seal_value(episode, "arm", ledger.reveal(trial))
    return Event(seq, Kind.ARM_REVEALED, 0, "b", "w", "run", trial, episode, {"sealed": sealed})


def test_the_seal_reveals_the_drawn_arm_of_each_trial(tmp_path, commitment):
    ledger = Ledger.open(tmp_path)
    assert [ledger.reveal(slot.trial) for slot in SCHEDULE.slots] == [slot.arm for slot in SCHEDULE.slots]
    assert ledger.protocol_text() == "text = 'å'"
    with pytest.raises(StateError, match="not in the sealed schedule"):
        ledger.reveal("t-none")


def test_the_commitment_is_the_hash_of_schedule_and_nonce_and_nothing_else(tmp_path, commitment):
    opened = Ledger.open(tmp_path).open_all()
    nonce = drbg(bytes.fromhex(opened["secret_hex"]), "commitment")
    assert commitment == hashlib.sha256(canonical(opened["schedule"]) + nonce).hexdigest()
    assert check_commitment(commitment, opened) == []


def test_a_schedule_changed_after_the_commitment_is_found(tmp_path, commitment):
    opened = Ledger.open(tmp_path).open_all()
    first, second = opened["schedule"][:2]
    first["arm"], second["arm"] = second["arm"], first["arm"]
    assert len(check_commitment(commitment, opened)) == 1


def test_only_the_owner_may_read_the_seal(tmp_path, commitment):
    seal = tmp_path / "seal"
    ledger = Ledger.open(tmp_path)
    ledger.seal_value("e-1", "arm", "human")
    assert seal.stat().st_mode & 0o777 == 0o700
    assert {p.stat().st_mode & 0o777 for p in seal.iterdir()} == {0o600}
    assert not ledger.loose_permissions
    (seal / "schedule.json").chmod(0o644)
    assert ledger.loose_permissions


def test_a_schedule_is_sealed_once(tmp_path, commitment):
    with pytest.raises(StateError, match="once"):
        Ledger.create(tmp_path, SCHEDULE, SECRET, "")


@pytest.mark.parametrize("name", ["schedule.json", "protocol.toml", "openings.jsonl"])
def test_a_missing_file_of_the_seal_is_refused(tmp_path, commitment, name):
    (tmp_path / "seal" / name).unlink()
    with pytest.raises(BrokenRecord, match=name):
        Ledger.open(tmp_path)


def test_a_damaged_schedule_is_refused(tmp_path, commitment):
    (tmp_path / "seal" / "schedule.json").write_text("{")
    with pytest.raises(BrokenRecord, match="cannot be read"):
        Ledger.open(tmp_path)


@given(value=st.text(), one=st.text(max_size=5), two=st.text(max_size=5))
def test_equal_values_look_unrelated_in_different_episodes_and_fields(value, one, two):
    digests = {sealed_digest(SECRET, f"e-{i}-{part}", "arm", value) for i, part in enumerate((one, two))}
    assert len(digests | {sealed_digest(SECRET, f"e-0-{one}", "controller", value)}) == 3


def test_every_sealed_digest_opens_after_unblinding(tmp_path, commitment):
    ledger = Ledger.open(tmp_path)
    trials = [slot.trial for slot in SCHEDULE.slots]
    events = [revealed(ledger, i, trial, f"e-{i}") for i, trial in enumerate(trials)]
    card = ledger.seal_value("e-0", "controller", {"endpoint": "x"})
    events.append(Event(99, Kind.EPISODE_STARTED, 0, "b", "w", "run", trials[0], "e-0", {"sealed": card}))
    assert check_openings(events, ledger.open_all()) == []


def test_an_opening_that_is_missing_altered_or_of_another_arm_is_found(tmp_path, commitment):
    ledger = Ledger.open(tmp_path)
    first, second = SCHEDULE.slots[:2]
    events = [revealed(ledger, 1, first.trial, "e-1")]
    opened = ledger.open_all()

    without = {**opened, "openings": []}
    assert "was not opened" in check_openings(events, without)[0]

    altered = deepcopy(opened)
    altered["openings"][0]["value"] = "policy-z"
    assert "does not give its own digest" in check_openings(events, altered)[0]

    assert first.arm != second.arm
    sealed = ledger.seal_value("e-2", "arm", second.arm)
    lie = Event(2, Kind.ARM_REVEALED, 0, "b", "w", "run", first.trial, "e-2", {"sealed": sealed})
    assert "is not the one drawn" in check_openings([lie], ledger.open_all())[0]


def test_seeds_repeat_and_differ_by_label(tmp_path, commitment):
    one, two = Ledger.open(tmp_path), Ledger.open(tmp_path)
    assert one.seed("a") == two.seed("a") != one.seed("b")
    assert 0 <= one.seed("a") < 2**63


def test_policy_cards_are_sealed_beside_the_protocol_and_for_the_owner_alone(tmp_path):
    Ledger.create(tmp_path, SCHEDULE, SECRET, "text", {"cards/a.toml": "name = 'å'"})
    ledger = Ledger.open(tmp_path)
    assert ledger.cards() == {"cards/a.toml": "name = 'å'"}
    assert {path.stat().st_mode & 0o077 for path in (tmp_path / "seal").iterdir()} == {0}


def test_a_protocol_without_cards_has_none(tmp_path, commitment):
    assert Ledger.open(tmp_path).cards() == {}


def test_damaged_cards_are_a_broken_seal(tmp_path):
    Ledger.create(tmp_path, SCHEDULE, SECRET, "text", {"cards/a.toml": "x"})
    (tmp_path / "seal" / "cards.json").write_text("{")
    with pytest.raises(BrokenRecord, match=r"cards\.json cannot be read"):
        Ledger.open(tmp_path).cards()


def test_a_gap_is_sealed_without_reading_all_that_was_sealed_before(tmp_path, commitment, monkeypatch):
    """A camera or a sensor that fails all evening has thousands of them."""
    ledger = Ledger.open(tmp_path)
    ledger.seal_gap("e-0", GAP)
    reads: list[str] = []
    read = ledger_module.whole_lines
    monkeypatch.setattr(ledger_module, "whole_lines", lambda path: [reads.append(path.name), *read(path)][1:])
    ledger = Ledger.open(tmp_path)
    for number in range(20):
        ledger.seal_gap(f"e-{number % 2}", {**GAP, "lost": number})
        ledger.gaps("e-1")
    assert reads.count("openings.jsonl") <= 2, "once for the gaps, once for what binds them"
    assert [gap["lost"] for gap in ledger.gaps("e-0")] == [1, *range(0, 20, 2)]
    assert ledger.gaps("e-1") == Ledger.open(tmp_path).gaps("e-1") and len(ledger.gaps("e-1")) == 10
    fields = [one["field"] for one in ledger.open_all()["openings"] if one["episode"] == "e-0"]
    assert fields == [f"gap:{number}" for number in range(11)]
