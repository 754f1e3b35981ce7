"""Two people are two: a void after go is confirmed at another console or by a personal code, and the record says which
of the two it was, or that an id was typed at the same keyboard.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import SECOND, ManualClock
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.errors import InputError, StateError
from labctl.people.personal_codes import FILE, codes_of, set_code
from labctl.store.campaign import Campaign
from labctl.store.lab_folder import lab_with
from labctl.store.locks import lab_lock
from labctl.store.sealing import Findings

CODE = "blue-9513"


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    """An episode that ann ended; bea and cal are there too, and the lab has bea's code."""
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2).folder
    (folder.parent / "lab.toml").write_text("")
    set_code(lab_of(folder), "bea", CODE, ManualClock(0))
    with Campaign.open(folder, writer=True) as campaign:
        made = Bench(campaign)
        made.begin(bea=["assessor"], cal=["setter"])
        episode = made.start()
        made.hear(Message("run", "go", {"episode": episode, "go_ns": made.now_ns}, sender="controller"))
        assert made.command("end")["ok"]
        made.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
        made.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))
        yield made


def lab_of(folder: Path) -> Path:
    found = lab_with(folder)
    assert found is not None
    return found


def void(bench: Bench, second: str = "bea", **given: Any) -> str:
    """What is said against it; nothing when the episode is void."""
    reason = bench.campaign.opened["void_reasons"][0]
    return str(bench.command("void", **{"reason": reason, "confirmed_by": second, **given}).get("error", ""))


def confirm(bench: Bench, who: str = "bea", role: str = "assessor", **given: Any) -> str:
    about = {"episode": bench.shown()["episode"], "reason": bench.campaign.opened["void_reasons"][0], **given}
    return str(bench.command("confirm", who=who, role=role, **about).get("error", ""))


def said(bench: Bench) -> str:
    """How the second person confirmed it, as the journal has it; the report's line has it too."""
    how = str(bench.events(Kind.EPISODE_VOIDED)[-1].body["confirmed_at"])
    line = next(line for line in record_of(bench.events()).deviations if "voided" in line)
    assert line.endswith(how) and "confirmed by" in line
    return how


def test_a_personal_code_is_asked_for_and_the_record_says_that_it_was_given(bench: Bench) -> None:
    assert bench.shown()["with_code"] == ["bea"]
    assert "bea has a personal code: it is typed here" in void(bench)
    assert not void(bench, personal_code=CODE)
    assert said(bench) == "personal code (set 2026-01-01 00:00)"


def test_a_wrong_code_is_refused_in_a_line_that_has_neither_and_changes_nothing(bench: Bench) -> None:
    before = bench.events()[-1].seq
    refused = void(bench, personal_code="green-1111")
    assert refused == "that is not the personal code of bea" and bench.events()[-1].seq == before


def test_nobody_tries_codes_one_after_the_other_and_the_journal_says_that_somebody_did(bench: Bench) -> None:
    for _ in range(2):
        void(bench, personal_code="green-1111")
    assert "3 wrong in a row, none is taken for 30 s" in void(bench, personal_code="green-1111")
    assert "none is taken for another 30 s" in void(bench, personal_code=CODE), "the right one neither"
    journalled = bench.events(Kind.DEVIATION)[-1]
    assert journalled.body["text"] == "3 wrong personal codes of bea in a row, at a void that ann ordered"
    assert journalled.who == "ann"
    bench.wait(31 * SECOND)
    assert "4 wrong in a row, none is taken for 60 s" in void(bench, personal_code="green-1111")
    bench.wait(61 * SECOND)
    assert not void(bench, personal_code=CODE)


def test_who_confirms_at_another_console_needs_no_code(bench: Bench) -> None:
    assert not confirm(bench, console="console-of-bea")
    assert bench.shown()["confirmed"] == [{"by": "bea", "reason": bench.campaign.opened["void_reasons"][0]}]
    assert not void(bench)
    assert said(bench) == "another console"


@pytest.mark.parametrize("console", ["console", "console-of-both"])
def test_a_console_from_which_the_first_person_orders_is_not_another_one(bench: Bench, console: str) -> None:
    assert bench.command("note", text="x", console="console-of-both")["ok"]
    refused = confirm(bench, "cal", "setter", console=console)
    assert "this console was also ann's in this run, so it cannot stand for cal alone" in refused
    assert "labctl console --who cal" in refused and not bench.shown()["confirmed"]
    assert not void(bench, "cal")
    assert said(bench) == "the same keyboard"


def test_what_was_confirmed_for_another_reason_or_by_somebody_else_does_not_count(bench: Bench) -> None:
    other = bench.campaign.opened["void_reasons"][1]
    assert not confirm(bench, reason=other, console="console-of-bea")
    assert not confirm(bench, "cal", "setter", console="console-of-cal")
    assert "bea has a personal code" in void(bench)


def test_who_has_no_code_is_an_id_at_the_same_keyboard(bench: Bench) -> None:
    assert not void(bench, "cal")
    assert said(bench) == "the same keyboard"


def test_what_is_confirmed_is_the_episode_at_hand_and_a_reason_of_the_protocol(bench: Bench) -> None:
    assert "not 'e-9'" in confirm(bench, episode="e-9")
    assert "is not in the protocol" in confirm(bench, reason="it looked bad")
    assert "bea is assessor here, not operator" in confirm(bench, role="operator")
    assert not void(bench, personal_code=CODE)
    assert "nothing to confirm" in confirm(bench, episode="e-1")


def test_a_code_for_somebody_without_one_is_refused(bench: Bench) -> None:
    assert "cal has no personal code; leave it out, or set one: labctl people code cal" in void(
        bench, "cal", personal_code="1234"
    )


def test_ones_own_code_makes_nobody_a_second_person(bench: Bench) -> None:
    set_code(lab_of(bench.campaign.folder), "ann", CODE, ManualClock(0))
    assert "must be another one" in void(bench, "ann", personal_code=CODE)


@pytest.mark.parametrize("code", [7, ["blue-9513"], "\ud800blue-9513"])
def test_what_cannot_be_a_code_is_refused_without_being_shown(bench: Bench, code: object) -> None:
    refused = void(bench, personal_code=code)
    assert refused and "9513" not in refused and "7" not in refused


def test_no_code_is_in_the_lab_the_journal_or_what_consoles_hear(bench: Bench) -> None:
    void(bench, personal_code="green-1111")
    assert not void(bench, personal_code=CODE)
    lab = lab_of(bench.campaign.folder)
    files = [path for path in lab.rglob("*") if path.is_file()]
    assert len(files) > 5
    for secret in (CODE, "green-1111"):
        assert not [path for path in files if secret.encode() in path.read_bytes()]
        assert secret not in repr(bench.sent) and secret not in "".join(bench.lines)


def test_a_code_is_kept_as_a_salted_hash_for_the_owner_alone(tmp_path: Path) -> None:
    for person in ("bea", "cal"):
        set_code(tmp_path, person, CODE, ManualClock(0))
    assert (tmp_path / FILE).stat().st_mode & 0o777 == 0o600
    kept = json.loads((tmp_path / FILE).read_text())
    assert kept["bea"]["scrypt"] != kept["cal"]["scrypt"], "the same code, another salt"
    assert codes_of(tmp_path)["bea"].fits(CODE) and not codes_of(tmp_path)["bea"].fits(CODE.upper())


def test_of_two_codes_that_are_set_at_once_none_is_lost(tmp_path: Path) -> None:
    """Whoever comes second reads what the first one wrote."""
    with (
        lab_lock(tmp_path, "people", "people code", what="codes", clock=ManualClock()),
        pytest.raises(StateError, match="personal codes"),
    ):
        set_code(tmp_path, "bea", CODE, ManualClock(0))
    assert codes_of(tmp_path) == {}


def test_a_file_that_others_may_read_is_no_proof(tmp_path: Path) -> None:
    set_code(tmp_path, "bea", CODE, ManualClock(0))
    (tmp_path / FILE).chmod(0o640)
    with pytest.raises(StateError, match="chmod 600"):
        codes_of(tmp_path)
    (tmp_path / FILE).chmod(0o600)
    (tmp_path / FILE).write_text('{"bea": "1234"}')
    with pytest.raises(StateError, match="no file of personal codes"):
        codes_of(tmp_path)


def test_a_standing_code_is_asked_for_before_it_is_changed_or_taken_away(tmp_path: Path) -> None:
    set_code(tmp_path, "bea", CODE, ManualClock(0))
    for new in ("another one", None):
        with pytest.raises(StateError, match="not the code of bea; nothing was changed"):
            set_code(tmp_path, "bea", new, ManualClock(0), old="wrong")
        assert codes_of(tmp_path)["bea"].fits(CODE)
    set_code(tmp_path, "bea", "another one", ManualClock(0), old=CODE)
    set_code(tmp_path, "bea", None, ManualClock(0), old="another one")
    assert codes_of(tmp_path) == {}
    with pytest.raises(InputError, match="nothing to take away"):
        set_code(tmp_path, "bea", None, ManualClock(0))


@pytest.mark.parametrize(("person", "code"), [("bea", "123"), ("bea", "x" * 65), ("bea", " 1234"), ("b,a", "1234")])
def test_what_nobody_could_type_is_no_code(tmp_path: Path, person: str, code: str) -> None:
    with pytest.raises(InputError) as refused:
        set_code(tmp_path, person, code, ManualClock(0))
    assert code not in str(refused.value) and not (tmp_path / FILE).exists()
