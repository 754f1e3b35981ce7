"""Practice stands beside a campaign: what it says, what is refused, and that it is in no number of the reference."""

from __future__ import annotations

import pytest
from support.runs.campaigns import events_of, make_campaign

from labctl.clock import ManualClock
from labctl.core.events import Event, Kind
from labctl.core.record_fold import record_of
from labctl.core.trial import CampaignState
from labctl.errors import InputError, StateError
from labctl.people.practised import practice_before, rule_of
from labctl.reporting.campaign_report import practised
from labctl.runtime.review_writer import record_practice
from labctl.store.campaign import close_campaign

ONE = {"person": "p07", "object": "towels", "moved": 4, "staged": 4, "duration_s": 60.0}
ANCHOR = ManualClock(10**9).anchor()


@pytest.fixture
def folder(tmp_path):
    return make_campaign(tmp_path, protocol={"[analysis]": "[human]\nplateau_last = 3\n[analysis]"}).folder


def test_practice_is_journalled_and_listed_by_person(folder):
    for seconds in (60.0, 48.0, 48.0, 48.0):
        record_practice(folder, {**ONE, "duration_s": seconds}, who="ann", anchor=ANCHOR)
    found = practised(folder)
    assert found["rule"] == {"last": 3, "within": 0.1, "stated": "as the protocol states it"}
    (person,) = found["people"]
    assert (person["person"], person["rates"], person["plateau"]) == ("p07", [240.0, 300.0, 300.0, 300.0], 4)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"person": " "}, "nobody"),
        ({"object": "swords"}, "not in the protocol; there: towels"),
        ({"moved": 5}, "5 of 4 items moved cannot be"),
        ({"moved": True}, "cannot be"),
        ({"staged": 0, "moved": 0}, "cannot be"),
        ({"duration_s": 0.0}, "no duration"),
        ({"duration_s": float("nan")}, "no duration"),
    ],
)
def test_what_cannot_be_is_refused_and_nothing_is_written(folder, change, said):
    before = len(events_of(folder))
    with pytest.raises(InputError, match=said):
        record_practice(folder, ONE | change, who="ann", anchor=ANCHOR)
    assert len(events_of(folder)) == before


def test_a_closed_campaign_takes_no_practice(folder):
    close_campaign(folder, who="ann", reason="test", anchor=ANCHOR)
    with pytest.raises(StateError, match="closed"):
        record_practice(folder, ONE, who="ann", anchor=ANCHOR)


def test_practice_after_a_persons_first_reference_episode_does_not_count():
    def event(seq, kind, trial=None, **body):
        return Event(seq, kind, seq, "b", "w", "ann", trial, None, body)

    events = [
        event(1, Kind.PRACTICE_RECORDED, **ONE),
        event(2, Kind.SESSION_OPENED, session="s", people=[{"id": "p07", "roles": ["operator"]}], checks={}),
        event(3, Kind.GO, "t-policy", go_ns=1),
        event(4, Kind.PRACTICE_RECORDED, **ONE),
        event(5, Kind.GO, "t-human", go_ns=2),
        event(6, Kind.PRACTICE_RECORDED, **ONE),
        event(7, Kind.PRACTICE_RECORDED, **(ONE | {"person": "p08"})),
    ]
    kept = record_of(events, CampaignState())
    assert [entry["person"] for entry in practice_before(kept, ["t-human"])] == [
        "p07",
        "p07",
        "p08",
    ]


def test_a_protocol_that_states_no_plateau_says_so():
    assert "labctl's default" in rule_of({})["stated"]
