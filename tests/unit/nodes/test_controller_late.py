"""Questions are asked in time and of fresh pictures; an answer that comes too late is not used."""

import math

import numpy as np
import pytest
from support.policies.controller_bench import DOF, POSE, Bench, Policy, good

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import Pace
from labctl.nodes import controller as module


@pytest.fixture
def bench(monkeypatch):
    policy = Policy()
    monkeypatch.setattr(module, "load", lambda driver, options, **given: policy)
    return Bench(policy)


def test_a_late_answer_is_not_used_and_a_fresh_question_is_asked(bench):
    bench.policy.pace = Pace(deadline_s=0.2, late="hold", give_up_s=2.0)
    bench.go()
    asked_ns = bench.now_ns
    bench.now_ns += 201 * MILLISECOND
    bench.send(bench.obs())
    assert "target" not in bench.kinds() and len(bench.work) == 1, "the question is still open: the robot stands"
    seen_ns = bench.now_ns
    bench.now_ns += 50 * MILLISECOND
    bench.finish()
    assert "target" not in bench.kinds() and len(bench.work) == 1, "in the same visit, of what was seen meanwhile"
    bench.finish()
    assert bench.policy.saw[-1].t_ns == seen_ns and bench.kinds()[-1] == "target"
    first, second = bench.rows()
    assert (first["late"], first["executed"], first["first_ns"]) == (1, 0, -1)
    assert first["reply_ns"] - first["request_ns"] == 251 * MILLISECOND and first["request_ns"] == asked_ns
    assert (second["late"], second["executed"]) == (0, 2)


def test_after_a_late_answer_nothing_is_asked_twice_of_one_state(bench):
    bench.policy.pace = Pace(deadline_s=0.2)
    bench.go()
    bench.now_ns += 201 * MILLISECOND
    bench.finish()
    assert not bench.work, "nothing was seen since the question"
    bench.send(bench.obs())
    assert len(bench.work) == 1


def test_an_answer_at_the_deadline_is_in_time(bench):
    bench.policy.pace = Pace(deadline_s=0.2)
    bench.go()
    bench.now_ns += 200 * MILLISECOND
    bench.finish()
    assert bench.kinds()[-1] == "target"


@pytest.mark.parametrize(
    ("pace", "seconds", "why"),
    [
        (Pace(deadline_s=0.2, late="end", give_up_s=2.0), 0.2, 'deadline of 0.2 s, and the card says late = "end"'),
        (Pace(deadline_s=0.2, late="hold", give_up_s=2.0), 2.0, "no answer within 2 s; given up"),
    ],
)
def test_a_question_that_nobody_answers_ends_the_episode_in_its_time(bench, pace, seconds, why):
    bench.policy.pace = pace
    bench.go()
    due_ns = bench.now_ns + round(seconds * SECOND)
    assert bench.due_ns == due_ns
    bench.now_ns = due_ns - MILLISECOND
    bench.send()
    assert "failed" not in bench.kinds()
    bench.now_ns = due_ns
    bench.send()
    assert why in bench.failure()["private"] and bench.policy.asked[-1] == "close"
    bench.finish()
    assert "target" not in bench.kinds(), "its answer came when nobody listened any more"
    (row,) = bench.rows()
    assert (row["reply_ns"], row["executed"], row["late"]) == (-1, 0, 1)


@pytest.mark.parametrize(
    ("pace", "ms"),
    [(Pace(deadline_s=0.2, late="end", give_up_s=2.0), 200), (Pace(deadline_s=0.2, late="hold", give_up_s=2.0), 2000)],
)
def test_an_answer_that_came_too_late_for_its_question_ends_the_episode_whoever_sees_it_first(bench, pace, ms):
    """One that lay in the mailbox at the node's next turn was a late answer, and the episode went on."""
    bench.policy.pace = pace
    bench.go()
    bench.now_ns += ms * MILLISECOND + 1
    bench.finish()
    assert "no answer within" in bench.failure()["private"] and bench.policy.asked[-1] == "close"
    assert "target" not in bench.kinds()
    (row,) = bench.rows()
    assert (row["reply_ns"], row["executed"], row["late"]) == (bench.now_ns, 0, 1)


def test_an_answer_in_the_moment_in_which_it_would_be_given_up_is_in_time(bench):
    bench.policy.pace = Pace(deadline_s=0.2, late="end")
    bench.go()
    bench.now_ns += 200 * MILLISECOND
    bench.finish()
    assert bench.kinds()[-1] == "target"


def test_a_controller_that_names_no_patience_is_given_up_all_the_same(bench):
    bench.policy.pace = Pace()
    bench.go()
    assert bench.due_ns == bench.now_ns + 10 * SECOND
    bench.now_ns = bench.due_ns
    bench.send()
    assert "no answer within 10 s" in bench.failure()["private"]


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (None, "answer is NoneType, not an ActionChunk"),
        (good(delay_s=math.nan), "took nan s"),
        (good(delay_s=math.inf), "took inf s"),
        (good(delay_s=-1.0), "took -1.0 s"),
    ],
)
def test_an_answer_that_cannot_be_timed_ends_the_episode_with_its_reason(bench, answer, why):
    bench.policy.answer = lambda: answer
    bench.go()
    bench.finish()
    assert why in bench.failure()["private"] and "target" not in bench.kinds()


def test_a_question_waits_for_a_fresh_picture_and_the_arm_stands_meanwhile(bench):
    bench.policy.pace = Pace(cameras=("wrist",), max_age_s=0.1)
    bench.prepare()
    bench.send(bench.obs())
    bench.finish()
    assert not bench.work, "warming waits for a picture"
    bench.send(bench.frame())
    assert [work.kind for work in bench.work] == ["warmed"]
    bench.finish()
    bench.now_ns += SECOND
    bench.start()
    bench.send(bench.obs())
    assert "go" not in bench.kinds(), "no clock starts on an old picture"
    bench.send(bench.frame())
    assert "go" in bench.kinds()
    bench.finish()
    bench.now_ns += 200 * MILLISECOND
    bench.send(bench.obs())
    assert not bench.work, "its actions are followed, its picture is 200 ms old: it is not asked"
    taken_ns = bench.now_ns - 30 * MILLISECOND
    bench.send(bench.frame(t_ns=taken_ns))
    assert len(bench.work) == 1
    bench.finish()
    assert [row["image_ns"] for row in bench.rows()][1] == taken_ns


def test_history_of_before_go_does_not_reach_the_episode(bench):
    bench.policy.pace = Pace(cameras=("wrist",), history_s=1.0)
    bench.prepare()
    bench.send(bench.obs())
    bench.finish()
    for _ in range(5):
        bench.now_ns += 50 * MILLISECOND
        bench.send(bench.frame())
    bench.finish()
    bench.start()
    bench.now_ns += MILLISECOND
    bench.send(bench.obs())
    bench.finish()
    assert len(bench.policy.saw[0].images["wrist"]) == 1


def test_the_next_question_may_come_before_the_actions_run_out_and_takes_over(bench):
    bench.policy.pace = Pace(ask_ahead_s=0.15)
    bench.policy.answer = lambda: good(4, execute=4, starts="capture")
    bench.go()
    go_ns = bench.now_ns
    bench.finish()  # its actions are due 0, 0.1, 0.2 and 0.3 s after go; the first of them is past
    bench.now_ns = go_ns + 149 * MILLISECOND
    bench.send(bench.obs())
    assert not bench.work
    bench.now_ns = go_ns + 150 * MILLISECOND
    bench.send(bench.obs())
    assert len(bench.work) == 1
    bench.now_ns = go_ns + 270 * MILLISECOND
    bench.finish()
    last = [message for message in bench.said if message.kind == "target"][-1]
    assert last.arrays["t_ns"].tolist() == [go_ns + (350 + i * 100) * MILLISECOND for i in range(2)]
    assert [row["executed"] for row in bench.rows()] == [3, 2]


def test_an_answer_whose_every_action_is_past_is_late(bench):
    bench.policy.answer = lambda: good(4, execute=4, starts="capture")
    bench.go()
    bench.now_ns += 400 * MILLISECOND
    bench.finish()
    assert "target" not in bench.kinds()
    assert [(row["late"], row["executed"]) for row in bench.rows()] == [(1, 0)]


def test_steps_are_sent_one_by_one_on_what_is_measured(bench):
    bench.policy.answer = lambda: good(2, space="joint_step", values=np.full((2, DOF), 0.1), gripper=np.zeros(2))
    bench.go()
    bench.finish()
    assert bench.due_ns == bench.now_ns + 100 * MILLISECOND
    bench.now_ns += 101 * MILLISECOND
    moved = Message("@obs", "obs", {"t_ns": bench.now_ns}, {"q": np.full(DOF, 0.05), "tcp": POSE})
    bench.send(moved)
    targets = [message.arrays["values"][0, 0] for message in bench.said if message.kind == "target"]
    assert targets == pytest.approx([0.1, 0.15])
    bench.now_ns += 98 * MILLISECOND
    bench.send(bench.obs())
    assert not bench.work, "the second step is not over"
    bench.now_ns += 2 * MILLISECOND
    bench.send(bench.obs())
    assert len(bench.work) == 1
