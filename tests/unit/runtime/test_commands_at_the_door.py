"""Whatever command arrives is answered: what makes no sense is refused in one line and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message, decode, encode
from labctl.core.events import Kind
from labctl.runtime.command_handler import ORDERS
from labctl.store.campaign import Campaign

ANN: dict[str, Any] = {"id": "c-1", "who": "ann", "role": "operator"}
PERSON = {"id": "ann", "roles": ["operator"]}
SCORE = {"items_staged": 2, "moved": 1, "lost": 0, "remaining": 1}
LONE = "\ud800"  # half of a surrogate pair: JSON can carry it, UTF-8 cannot

# what is wrong, and what the refusal has to name
WRONG: list[tuple[dict[str, Any], str]] = [
    ({}, "verb"),
    ({"verb": "note", "role": "operator", "args": {"text": "x"}}, "who"),
    ({**ANN, "verb": 7}, "verb"),
    ({**ANN, "verb": ["stop"]}, "verb"),
    ({**ANN, "verb": "note", "who": 7}, "who"),
    ({**ANN, "verb": "note", "who": LONE, "args": {"text": "x"}}, "who"),
    ({**ANN, "verb": "note", "args": {"text": LONE}}, "text"),
    ({**ANN, "verb": "note", "args": {"text": 5}}, "text"),
    ({**ANN, "verb": "note", "args": "x"}, "args"),
    ({**ANN, "verb": "note", "id": {"a": 1}, "args": {"text": "x"}}, "id"),
    ({**ANN, "verb": "note", "id": LONE, "args": {"text": "x"}}, "id"),
    ({**ANN, "verb": "end", "role": "king"}, "role"),
    ({**ANN, "verb": "end", "role": None}, "role"),
    ({**ANN, "verb": "end", "version": "new"}, "version"),
    ({**ANN, "verb": "end", "args": {"reason": "boredom"}}, "reason"),
    ({**ANN, "verb": "acknowledge"}, "code"),
    ({**ANN, "verb": "acknowledge", "args": {"code": "operator_stop", "contact": "perhaps"}}, "contact"),
    ({**ANN, "verb": "count", "args": {"by": "two"}}, "by"),
    ({**ANN, "verb": "count", "args": {"by": 0.5}}, "by"),
    ({**ANN, "verb": "session"}, "people"),
    ({**ANN, "verb": "session", "args": {"people": "ann"}}, "people"),
    ({**ANN, "verb": "session", "args": {"people": [{"roles": ["operator"]}]}}, "id"),
    ({**ANN, "verb": "session", "args": {"people": [{"id": "ann"}]}}, "roles"),
    ({**ANN, "verb": "session", "args": {"people": [PERSON], "checks": [1]}}, "checks"),
    ({**ANN, "verb": "session", "args": {"people": [PERSON], "session": "s-1"}}, "session"),
    ({**ANN, "verb": "session_close", "args": {"handover": ["x"]}}, "handover"),
    ({**ANN, "verb": "touch", "args": {"phase": ["begin"]}}, "phase"),
    ({**ANN, "verb": "touch", "args": {"phase": "begin", "kind": ["x"]}}, "kind"),
    ({**ANN, "verb": "wait", "args": {"after": ["trial"]}}, "after"),
    ({**ANN, "verb": "void", "args": {"reason": {}}}, "reason"),
    ({**ANN, "verb": "void", "args": {"reason": "scene_error", "evidence": "7"}}, "evidence"),
    ({**ANN, "verb": "reference", "args": {"reason": "x", "camera": ["wrist"]}}, "camera"),
    ({**ANN, "verb": "commit", "args": {"override": ["x"]}}, "override"),
    ({**ANN, "verb": "score", "args": {**SCORE, "tags": 3}}, "tags"),
    ({**ANN, "verb": "score", "args": {**SCORE, "tags": [["x"]]}}, "tags"),
    ({**ANN, "verb": "score", "args": {**SCORE, "notes": float("nan")}}, "notes"),
    ({**ANN, "verb": "score", "args": {**SCORE, "stage_reached": {}}}, "stage_reached"),
    ({**ANN, "verb": "correct", "args": {"trial": "TRIAL", "why": 3, **SCORE}}, "why"),
    ({**ANN, "verb": "guess", "args": {"trial": ["x"]}}, "trial"),
    ({**ANN, "verb": "guess", "args": {"trial": "TRIAL", "guess": ["x"]}}, "guess"),
    ({**ANN, "verb": "review", "args": {"trial": "TRIAL", "operations": 5}}, "operations"),
    ({**ANN, "verb": "review", "args": {"trial": "TRIAL", "operations": [{"result": "success"}]}}, "t_ns"),
    ({**ANN, "verb": "review", "args": {"trial": "TRIAL", "operations": [{"t_ns": 5}]}}, "result"),
    ({**ANN, "verb": "practice", "args": {"person": "ann", "object": "x", "moved": [1]}}, "moved"),
]


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """A run in whose first trial an episode has gone."""
    where = tmp_path_factory.mktemp("door")
    folder = make_campaign(where, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2).folder
    with Campaign.open(Path(folder), writer=True) as campaign:
        made = Bench(campaign)
        made.begin()
        episode = made.start()
        made.hear(Message("run", "go", {"episode": episode, "go_ns": made.now_ns}, sender="controller"))
        yield made


@pytest.mark.parametrize(("body", "names"), WRONG, ids=lambda value: ascii(value))
def test_a_command_that_makes_no_sense_is_refused_by_name_and_changes_nothing(bench, body, names):
    trial = next(iter(bench.campaign.state.trials))
    if isinstance(body.get("args"), dict) and body["args"].get("trial") == "TRIAL":
        body = {**body, "args": {**body["args"], "trial": trial}}
    before = len(bench.events())
    out = bench.hear(decode(encode(Message("run", "command", body, sender="console"))))
    (reply,) = [message for message in out if message.kind == "reply"]
    assert (reply.to, reply.body["ok"]) == ("console", False)
    assert names in reply.body["error"] and "\n" not in reply.body["error"]
    reply.body["error"].encode()
    assert (len(bench.events()), bench.state()) == (before, "running")


def test_every_order_but_a_stop_is_refused_when_its_arguments_are_no_table(bench):
    for verb in set(ORDERS) - {"stop"}:
        out = bench.hear(Message("run", "command", {**ANN, "verb": verb, "args": [1]}, sender="console"))
        (reply,) = [message.body for message in out if message.kind == "reply"]
        assert not reply["ok"] and "args" in reply["error"]
    assert bench.state() == "running"


def test_an_unknown_key_that_nobody_reads_is_let_pass_and_not_kept(bench):
    assert bench.command("note", text="lamp replaced", colour="red")["ok"]
    assert bench.events(Kind.NOTE)[-1].body == {"text": "lamp replaced"}


@pytest.mark.parametrize(
    ("wrong", "who"),
    [({"role": "king"}, "ann"), ({"args": [1]}, "ann"), ({"who": 7}, "unknown"), ({"who": LONE, "id": {}}, "unknown")],
    ids=ascii,
)
def test_a_stop_is_carried_out_whatever_else_is_wrong_with_its_command(tmp_path, wrong, who):
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra")], items=2).folder
    with Campaign.open(Path(folder), writer=True) as campaign:
        made = Bench(campaign)
        made.begin()
        episode = made.start()
        made.hear(Message("run", "go", {"episode": episode, "go_ns": made.now_ns}, sender="controller"))
        body = {**ANN, "verb": "stop", **wrong}
        out = made.hear(decode(encode(Message("run", "command", body, sender="console"))))
        assert [message.to for message in out if message.kind == "stop"]
        assert [event.body["reason"] for event in made.events(Kind.EPISODE_ENDED)] == ["safety_stop"]
        assert [(event.who, event.body["code"]) for event in made.events(Kind.HOLD_RAISED)] == [(who, "operator_stop")]
