"""Each message in each phase of a controller: what counts leads where the table says, all else changes nothing."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

import pytest
from support.policies.controller_bench import Bench, Policy, good

from labctl.bus import Message
from labctl.clock import MILLISECOND
from labctl.devices import Pace
from labctl.errors import StateError
from labctl.nodes import controller as module
from labctl.nodes import practice
from labctl.nodes.controller import MESSAGES, Phase
from labctl.nodes.phase_table import entered

# What leads on, by hand; everything else leaves the phase as it is.
LEADS = {
    (Phase.IDLE, "prepare"): Phase.LOADING,
    (Phase.LOADING, "loaded"): Phase.LOADED,
    (Phase.LOADING, "loaded with an error"): Phase.OVER,
    (Phase.LOADED, "obs"): Phase.WARMING,
    (Phase.WARMING, "warmed"): Phase.READY,
    (Phase.WARMING, "warmed with an error"): Phase.OVER,
    (Phase.READY, "start"): Phase.STARTED,
    (Phase.STARTED, "obs"): Phase.RUNNING,
    (Phase.RUNNING, "answer with an error"): Phase.OVER,
} | {(phase, kind): Phase.OVER for phase in Phase for kind in ("close", "shutdown")}


class Loaded:
    pace = Pace()


def message(kind: str, bench: Bench) -> Message:
    bodies = {
        "open": {"episode": "e"},
        "prepare": {"driver": "p", "options": {}, "kind": "policy", "seed": 5, "episode": "e", "instruction": "Move."},
        "loaded": {"result": Loaded(), "tag": ""},
        "warmed": {"result": None, "tag": ""},
        "answer": {"result": good(), "tag": ""},
        "start": {"episode": "e", "epoch": 3},
        "switch": {"episode": "e", "number": 0, "instruction": "Move the red ones."},
        "ack": {"episode": "e", "stream": "policy", "seq": 0},
    }
    if kind.endswith(" with an error"):
        return Message("controller", kind.removesuffix(" with an error"), {"error": "it broke", "tag": ""})
    if kind == "obs":
        return bench.obs()
    return bench.frame() if kind == "frame" else Message("controller", kind, bodies.get(kind, {"episode": "e"}))


def loaded(bench: Bench) -> None:
    bench.prepare()
    bench.finish()


def warming(bench: Bench) -> None:
    loaded(bench)
    bench.send(bench.obs())


def started(bench: Bench) -> None:
    bench.warm_up()
    bench.now_ns += MILLISECOND
    bench.start()


def over(bench: Bench) -> None:
    bench.go()
    bench.send(Message("controller", "close", {"episode": "e"}))


WAY: dict[Phase, Callable[[Bench], None]] = {
    Phase.IDLE: lambda bench: None,
    Phase.LOADING: Bench.prepare,
    Phase.LOADED: loaded,
    Phase.WARMING: warming,
    Phase.READY: Bench.warm_up,
    Phase.STARTED: started,
    Phase.RUNNING: Bench.go,
    Phase.OVER: over,
}
ERRORS = ("loaded with an error", "warmed with an error", "answer with an error")


@pytest.mark.parametrize("kind", [*MESSAGES, *ERRORS, "no such kind"])
@pytest.mark.parametrize("phase", list(Phase))
def test_a_message_leads_where_the_table_says_and_else_nowhere(phase, kind, monkeypatch):
    policy = Policy()
    monkeypatch.setattr(module, "load", lambda driver, options, **given: policy)
    bench = Bench(policy)
    WAY[phase](bench)
    assert bench.node.phase == phase
    bench.now_ns += MILLISECOND
    bench.send(message(kind, bench))
    assert bench.node.phase == LEADS.get((phase, kind), phase)


IGNORED = [(phase, kind) for phase in Phase for kind, row in MESSAGES.items() if phase not in row.phases]


@pytest.mark.parametrize(("phase", "kind"), IGNORED)
def test_what_does_not_count_in_a_phase_is_answered_with_nothing(phase, kind, monkeypatch):
    policy = Policy()
    monkeypatch.setattr(module, "load", lambda driver, options, **given: policy)
    bench = Bench(policy)
    WAY[phase](bench)
    waiting = len(bench.work)
    assert bench.send(message(kind, bench)) == []
    assert len(bench.work) == waiting, "no call is made"


def test_a_message_that_does_not_fit_is_refused_in_one_line_and_leads_nowhere():
    bench = Bench(Policy())
    step = bench.node.step(bench.now_ns, [Message("controller", "prepare", {"driver": "p"}, sender="run")])
    assert step.refused == ["message prepare: options is missing; refused, from run"]
    assert bench.node.phase == Phase.IDLE and step.work == []


# -- what may follow what, of a controller and of a practice

MOVES = [(table, a, b) for table in (module.FOLLOWS, practice.FOLLOWS) for a in table for b in table if a != b]


@pytest.mark.parametrize(("follows", "phase", "then"), MOVES)
def test_a_phase_is_entered_from_where_the_table_says_and_from_nowhere_else(follows, phase, then):
    if then in follows[phase]:
        assert entered(follows, phase, then) == then
    else:
        with pytest.raises(StateError, match=f"{then} may not follow {phase}"):
            entered(follows, phase, then)
    assert entered(follows, phase, phase) == phase, "where it stands it may stay"


@pytest.mark.parametrize("node", [module, practice], ids=lambda node: node.__name__)
def test_every_row_of_a_table_of_messages_leads_where_a_phase_may_follow(node):
    assert {*node.FOLLOWS} == {*node.Phase}
    leads = [(phase, row.then) for row in node.MESSAGES.values() for phase in row.phases if row.then is not None]
    assert [(phase, then) for phase, then in leads if then != phase and then not in node.FOLLOWS[phase]] == []


@pytest.mark.parametrize("node", [module, practice], ids=lambda node: node.__name__)
def test_a_phase_is_set_in_one_place(node):
    tree = ast.parse(Path(node.__file__).read_text("utf-8"))
    set_in = [
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        for part in ast.walk(function)
        if isinstance(part, ast.Attribute) and part.attr == "_phase" and isinstance(part.ctx, ast.Store)
    ]
    assert sorted(set_in) == ["__init__", "_enter"]
