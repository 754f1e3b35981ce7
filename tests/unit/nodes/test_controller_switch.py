"""A switched instruction counts from the next question on; the hand of a person is told, and of a policy none."""

import numpy as np
import pytest
from support.policies.controller_bench import DOF, Bench, Policy, good

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.nodes import controller as module


@pytest.fixture
def bench(monkeypatch):
    policy = Policy()
    monkeypatch.setattr(module, "load", lambda driver, options, **given: policy)
    return Bench(policy)


class Person(Policy):
    """A policy whose actions come from a hand."""

    def hand(self, q: np.ndarray) -> dict:
        return {"device": "gello", "waits": "hold the clutch", "joints": len(q)}


def test_the_hand_of_a_person_is_told_five_times_a_second_from_the_first_moment(monkeypatch):
    person = Person()
    monkeypatch.setattr(module, "load", lambda driver, options, **given: person)
    bench = Bench(person)
    bench.prepare()
    bench.send(bench.obs())
    bench.finish()
    bench.said.clear()
    for _ in range(10):
        bench.now_ns += SECOND // 10
        bench.send(bench.obs())
    told = [message for message in bench.said if message.kind == "hand"]
    assert len(told) == 5
    assert told[0].to == "run" and told[0].body["episode"] == "e"
    assert told[0].body["hand"] == {"device": "gello", "waits": "hold the clutch", "joints": DOF}


def test_of_a_policy_no_hand_is_told(bench):
    bench.go()
    assert not [message for message in bench.said if message.kind == "hand"]


def switch(bench: Bench, instruction: str, number: int = 0, episode: str = "e") -> list[Message]:
    body = {"episode": episode, "number": number, "instruction": instruction}
    return bench.send(Message("controller", "switch", body))


def taken(out: list[Message]) -> list[dict]:
    return [dict(message.body) for message in out if message.kind == "switched"]


def test_a_switch_counts_from_the_next_question_on_and_the_old_chunk_is_followed_to_its_end(bench):
    bench.go()
    bench.finish()
    bench.now_ns += 100 * MILLISECOND
    out = switch(bench, "Move the red ones.")
    assert taken(out) == [{"episode": "e", "number": 0, "t_ns": bench.now_ns}]
    bench.send(bench.obs())
    assert bench.work == [], "the chunk asked for before is not cut short"
    bench.now_ns += 100 * MILLISECOND
    bench.send(bench.obs())
    bench.finish()
    assert [seen.instruction for seen in bench.policy.saw] == ["Move.", "Move the red ones."]
    assert len([message for message in bench.said if message.kind == "target"]) == 2


def test_an_answer_that_was_awaited_at_the_switch_is_used(bench):
    bench.go()
    bench.now_ns += 50 * MILLISECOND
    switch(bench, "Move the red ones.")
    bench.finish()
    assert [message.kind for message in bench.said].count("target") == 1
    assert [row["executed"] for row in bench.rows()] == [2]


@pytest.mark.parametrize("when", ["before the answer", "after the answer"])
def test_a_task_that_was_done_before_the_switch_is_done_no_more(bench, when):
    bench.go()
    bench.policy.answer = lambda: good(done=True)
    if when == "before the answer":
        switch(bench, "Move the red ones.")
    bench.finish()
    if when == "after the answer":
        switch(bench, "Move the red ones.")
    bench.now_ns += 200 * MILLISECOND
    bench.send(bench.obs())
    assert "done" not in bench.kinds() and len(bench.work) == 1, "it is asked again"
    bench.finish()
    bench.now_ns += 200 * MILLISECOND
    bench.send(bench.obs())
    assert bench.kinds()[-1] == "done"


def test_a_switch_at_the_moment_of_a_question_comes_after_it(bench):
    bench.go()
    asked_ns = bench.now_ns
    (told,) = taken(switch(bench, "Move the red ones."))
    assert told["t_ns"] == asked_ns + 1, "or the question would seem to be asked with it"


@pytest.mark.parametrize("phase", ["not gone", "over", "another episode"])
def test_a_switch_that_cannot_be_taken_is_not_answered(bench, phase):
    if phase == "not gone":
        bench.warm_up()
    else:
        bench.go()
    if phase == "over":
        bench.send(Message("controller", "close", {"episode": "e"}))
    assert taken(switch(bench, "Move the red ones.", episode="f" if phase == "another episode" else "e")) == []
