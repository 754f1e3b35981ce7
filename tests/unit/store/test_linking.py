"""Claims about linked campaigns: what an anchor is, what is refused before an evening is spent, what stays sealed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.handwritten_journal import BODIES, EPISODIC, PATHS

from labctl.clock import ManualClock
from labctl.core.trial import State
from labctl.errors import BrokenRecord, InputError, LabctlError, StateError
from labctl.store.campaign import Campaign, close_campaign, freeze_campaign, unblind_campaign
from labctl.store.chain_heads import HEADS
from labctl.store.linking import opened_links, pair_up, unlike
from labctl.store.verifying.opened_seal import check_openings

NOW = ManualClock().anchor()
FROZEN = policy("frozen", skill="steady")
FIRST = [HUMAN, FROZEN, policy("a", skill="swift")]
SECOND = [HUMAN, FROZEN, policy("b", skill="clumsy")]


SWITCH = '[[switch]]\nname = "s"\nat_s = 2.0\ninstruction = "Now the red ones."\n'


def score(folder: Path, arms: set[str] | None = None) -> None:
    """Journal every trial of the given arms (all) as scored, the others as not run; no recording is behind them."""
    with Campaign.open(folder, writer=True) as campaign:
        for trial in list(campaign.state.trials):
            wanted = arms is None or campaign.ledger.reveal(trial) in arms
            for kind in PATHS[State.SCORED if wanted else State.NOT_RUN]:
                episode = f"e-{trial}" if kind in EPISODIC else None
                campaign.log(kind, BODIES[kind], anchor=NOW, who="run", trial=trial, episode=episode)


def unblind(folder: Path) -> Path:
    close_campaign(folder, who="t", anchor=NOW, reason="enough")
    freeze_campaign(folder, who="t", anchor=NOW, unreviewed=True)
    unblind_campaign(folder, who="t", anchor=NOW)
    return folder


def finished(lab: Path, arms: list[dict[str, Any]] = FIRST, name: str = "first", **more: Any) -> Path:
    folder = make_campaign(lab, arms, name=name, **more).folder
    score(folder)
    return unblind(folder)


@pytest.fixture
def first(tmp_path: Path) -> Path:
    return finished(tmp_path)


def head_of(folder: Path) -> str:
    return events_of(folder)[-1].hash


def link_text(head: str, anchors: str = '["frozen"]', campaign: str = "first") -> str:
    return f'[[link]]\ncampaign = "{campaign}"\nhead = "{head}"\nanchors = {anchors}\n'


def test_arms_that_are_the_same_treatment_in_both_are_the_anchors(tmp_path, first):
    made = make_campaign(tmp_path, SECOND, name="second", extends=first)
    (link,) = made.links
    assert (link.campaign, link.anchors, link.changed) == ("first", ("human", "frozen"), ())
    assert link.head == head_of(first)


def test_a_name_alone_makes_no_anchor_but_a_person_may_answer_for_it(tmp_path, first):
    other = [policy("frozen", skill="swift"), policy("b", skill="clumsy")]
    with pytest.raises(StateError, match="no anchor: frozen differ in kind, controller, options or card") as caught:
        make_campaign(tmp_path, other, name="second", extends=first)
    assert "(a, frozen, human)" in str(caught.value) and "--anchor ARM" in str(caught.value)
    (link,) = make_campaign(tmp_path, other, name="second", extends=first, anchors=["frozen"]).links
    assert (link.anchors, link.changed) == (("frozen",), ("frozen",))


def test_no_arm_in_both_is_refused(tmp_path, first):
    with pytest.raises(StateError, match="no anchor: no arm is in both; add an arm of first as it was"):
        make_campaign(tmp_path, [policy("x"), policy("y")], name="second", extends=first)
    assert not (tmp_path / "campaigns/second").exists()


def test_an_arm_that_was_never_scored_anchors_nothing(tmp_path):
    folder = make_campaign(tmp_path, FIRST, name="first").folder
    score(folder, {"human", "a"})
    unblind(folder)
    assert make_campaign(tmp_path, SECOND, name="second", extends=folder).links[0].anchors == ("human",)
    with pytest.raises(InputError, match="'frozen' was not scored in first; arms scored there are: a, human"):
        make_campaign(tmp_path, SECOND, name="third", extends=folder, anchors=["frozen"])


@pytest.mark.parametrize(
    ("anchor", "arms", "says"),
    [
        ("a", SECOND, "anchor 'a' is no arm of .*its arms are: human, frozen, b"),
        ("b", SECOND, "anchor 'b' was not scored in first"),
        (
            "human",
            [{**HUMAN, "kind": "policy", "controller": "sim_policy"}, FROZEN],
            "'human' is a policy here and a human in first",
        ),
    ],
)
def test_an_anchor_is_the_same_arm_in_both(tmp_path, first, anchor, arms, says):
    with pytest.raises(InputError, match=says):
        make_campaign(tmp_path, arms, name="second", extends=first, anchors=[anchor])


def test_a_blind_campaign_is_not_extended_and_its_seal_is_not_asked(tmp_path, monkeypatch):
    folder = make_campaign(tmp_path, FIRST, name="first").folder
    score(folder)
    close_campaign(folder, who="t", anchor=NOW)
    monkeypatch.setattr(
        "labctl.store.linking.Ledger.open", lambda *_: pytest.fail("a blind campaign's seal was opened")
    )
    with pytest.raises(StateError, match=r"first is closed, and its arms stay sealed .* unblind first first"):
        make_campaign(tmp_path, SECOND, name="second", extends=folder)


def test_the_protocol_may_say_it_all(tmp_path, first):
    sealed = events_of(first)[0].hash  # noted down when the first was opened; the chain has grown since
    for more in ({}, {"extends": first}):
        made = make_campaign(tmp_path, SECOND, name="second", link=link_text(sealed), **more)
        assert [(link.campaign, link.anchors, link.head) for link in made.links] == [
            ("first", ("frozen",), head_of(first))
        ]
    over = make_campaign(tmp_path, SECOND, name="second", link=link_text(sealed), extends=first, anchors=["human"])
    assert over.links[0].anchors == ("human",)


@pytest.mark.parametrize(
    ("campaign", "head", "says"),
    [("first", "a" * 64, "head aaaaaaaaaaaaaaaa… is no entry of first"), ("zero", None, "no campaign 'zero'")],
)
def test_a_link_that_does_not_hold_is_refused_at_its_line(tmp_path, first, campaign, head, says):
    text = link_text(head or head_of(first), campaign=campaign)
    with pytest.raises(InputError, match=says) as caught:
        make_campaign(tmp_path, SECOND, name="second", link=text)
    assert "p.toml:" in str(caught.value) and "\n" not in str(caught.value)
    assert not (tmp_path / "campaigns/second").exists()


def test_a_chain_that_does_not_hold_is_not_leaned_on(tmp_path, first):
    heads = (first / HEADS).read_text().splitlines()
    (first / HEADS).write_text("\n".join([heads[0].replace(heads[0].split()[1], "b" * 64), *heads[1:]]) + "\n")
    with pytest.raises(BrokenRecord, match=r"rehashed chain.*nothing is linked to it"):
        make_campaign(tmp_path, SECOND, name="second", extends=first)


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ({"durable": True, "cell": {'kind = "sim"': 'kind = "replay"'}}, "first is sim and cell test-cell is replay"),
        (
            {"link": SWITCH},
            "p.toml is another task than first: switch: none in first, 'Now the red ones.' at 2 s in p.toml",
        ),
        (
            {"protocol": {'"Move the items."': '"Move only the red items."'}},
            "is another task than first: instruction: 'Move the items.' in first, 'Move only the red items.' in p.toml",
        ),
        (
            {"items": 2, "budget": 2.0, "protocol": {"tau_s = 2.0": "tau_s = 4.0"}},
            "another task than first: items_staged: 1 in first, 2 in p.toml; plan the same in both",
        ),
        ({"budget": 5.0}, "an episode of first has 4 s, one of .* 5 s; unequal budgets"),
        ({"protocol": {'objects = ["towels"]': 'objects = ["scissors"]'}}, "plan at least one of: towels"),
    ],
)
def test_what_could_never_be_compared_is_refused_before_it_is_run(tmp_path, first, more, says):
    with pytest.raises(StateError, match=says):
        make_campaign(tmp_path, SECOND, name="second", extends=first, **more)


COUNTED = "they end, void or count episodes by other rules, which anchors do not take out: "
REASONS = '"arm_lost", "camera_lost", "controller_lost", "recorder_lost", "process_lost"'


def ruled(table: str, line: str) -> dict[str, Any]:
    """A protocol with this line in a table, for `make_campaign`."""
    return {"protocol": {f"[{table}]": f"[{table}]\n{line}"}}


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (ruled("estimand", 'help = "no_success"'), "estimand.help: as_it_went in first, no_success in p.toml"),
        (ruled("estimand", 'voids = "no_success"'), "estimand.voids: left_out in first, no_success in p.toml"),
        (ruled("estimand", 'early_ends = "carried"'), "estimand.early_ends: by_reason in first, carried in p.toml"),
        ({"crash": "failure"}, "estimand.crash: void in first, failure in p.toml"),
        ({"process_lost": "score"}, "process_lost: void in first, score in p.toml"),
        ({"camera_lost": "end"}, "camera_lost: mark in first, end in p.toml"),
        (ruled("trial", 'stops_count = ["danger"]'), "stops_count: contact, danger in first, danger in p.toml"),
        (ruled("trial", 'early_end = "forbidden"'), "early_end: allowed in first, forbidden in p.toml"),
        (
            ruled("trial", f'void_reasons = [{REASONS}, "hit"]'),
            "void_reasons: the machine's alone in first, hit in p.toml",
        ),
    ],
)
def test_a_campaign_that_counts_otherwise_is_linked_with_a_note_at_its_opening(tmp_path, first, more, says):
    made = make_campaign(tmp_path, SECOND, name="second", extends=first, **more)
    (note,) = made.links[0].notes
    assert note == COUNTED + says, "nothing else differs"
    bodies = [events_of(folder)[0].body for folder in (first, made.folder)]
    assert unlike(*bodies) == [note.replace("p.toml", "second")]


def test_campaigns_that_ask_and_count_alike_have_no_note(tmp_path, first):
    made = make_campaign(tmp_path, SECOND, name="second", extends=first)
    assert made.links[0].notes == () and unlike(*(events_of(of)[0].body for of in (first, made.folder))) == []


def test_what_an_earlier_labctl_counted_without_saying_so_is_no_difference(tmp_path, first):
    body = events_of(first)[0].body
    assert body["estimand"]["crash"] == "void"
    later = {**body, "campaign": "later", "stops_count": ["mistaken_key", "contact", "danger"]}
    unsaid = ("stops_count", "estimand", "camera_lost", "early_end", "takeover", "switches")
    before = {key: value for key, value in body.items() if key not in unsaid}
    assert unlike(before, later) == []
    assert unlike(before, {**later, "takeover": "allowed"}) == [
        f"{COUNTED}takeover: forbidden in first, allowed in later"
    ]
    assert unlike({**before, "process_lost": "score"}, later) == [
        f"{COUNTED}estimand.crash: ended in first, void in later; process_lost: score in first, void in later"
    ]


def test_campaigns_that_were_linked_with_another_task_before_that_was_refused_are_said_to_be(first):
    body = events_of(first)[0].body
    assert unlike(body, {**body, "campaign": "later", "items_staged": 4, "instruction": "Move two."}) == [
        "they are not of one task, which anchors do not take out: instruction: 'Move the items.' in first, 'Move two.' "
        "in later; items_staged: 1 in first, 4 in later"
    ]


def test_another_horizon_is_said_before_the_evenings_are_spent(tmp_path, first):
    made = make_campaign(tmp_path, SECOND, name="second", extends=first, protocol={"tau_s = 4.0": "tau_s = 3.0"})
    (note,) = made.links[0].notes
    assert note.startswith("tau_s is 4.0 in first, 3.0 in p.toml: ") and "no leaderboard will hold both" in note


def test_the_anchors_names_stay_in_the_seal_until_unblinding_proves_them(tmp_path, first):
    folder = make_campaign(tmp_path, SECOND, name="second", extends=first).folder
    opened = events_of(folder)[0].body
    said = json.dumps(opened)
    assert "frozen" not in said and '"human"' not in said and "policy" not in said
    assert opened["links"][0].keys() == {"campaign", "head", "anchors", "sealed"} and opened["links"][0]["anchors"] == 2
    unblind(folder)
    events = events_of(folder)
    body = events[-1].body
    (link,) = opened_links(opened, body)
    assert link.anchors == ("human", "frozen")
    assert check_openings(events, body) == []
    without = {**body, "openings": []}
    assert check_openings(events, without) == [
        "the anchors shared with campaign first: their sealed value was not opened"
    ]


def test_which_arm_is_an_anchor_shows_in_nothing_but_a_sealed_digest(tmp_path, first):
    one, two = (
        events_of(
            make_campaign(tmp_path, SECOND, name="second", extends=first, entropy=bytes(32), anchors=[arm]).folder
        )
        for arm in ("human", "frozen")
    )
    mine, other = ({**events[0].body, "campaign": "", "links": []} for events in (one, two))
    assert mine == other and len(one) == len(two) == 1
    (link,), (another,) = (events[0].body["links"] for events in (one, two))
    assert {key for key in link if link[key] != another[key]} == {"sealed"}


def test_two_campaigns_are_paired_in_either_order(tmp_path, first):
    second = make_campaign(tmp_path, SECOND, name="second", extends=first).folder
    for folders in ((first, second), (second, first)):
        pairing = pair_up(folders)
        assert (pairing.earlier, pairing.later) == (first, second)


def test_what_is_not_linked_is_not_paired(tmp_path, first):
    def refused(*folders: Path) -> str:
        with pytest.raises(LabctlError) as caught:
            pair_up(folders)
        return str(caught.value)

    alone = make_campaign(tmp_path, SECOND, name="alone").folder
    assert "campaigns first and alone share no anchor" in refused(first, alone)
    assert "is given twice" in refused(first, first)
    assert "3 campaigns given" in refused(first, alone, first)
    bench = make_campaign(tmp_path, SECOND, name="bench", durable=True, cell={'kind = "sim"': 'kind = "replay"'}).folder
    assert "first is sim and bench is replay; episodes of different kinds" in refused(first, bench)
    second = make_campaign(tmp_path, SECOND, name="second", extends=first).folder
    again = tmp_path / "elsewhere"
    impostor = finished(again, FIRST, entropy=bytes(32))
    assert "second was linked to another first" in refused(impostor, second)
