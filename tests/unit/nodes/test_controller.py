"""The controller starts the clock warm and with a live observation, and keeps to itself why it failed."""

import numpy as np
import pytest
from support.policies.controller_bench import DOF, POSE, Bench, Policy, good

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.errors import DeviceLost
from labctl.nodes import controller as module
from labctl.nodes.playing import chunk_problem
from labctl.nodes.policy_stream import POLICY


@pytest.fixture
def bench(monkeypatch):
    policy = Policy()
    monkeypatch.setattr(module, "load", lambda driver, options, **given: policy)
    return Bench(policy)


def test_ready_is_said_after_loading_and_warming_with_the_warm_up_forgotten(bench):
    bench.prepare()
    bench.send(bench.obs())
    bench.finish()
    assert bench.kinds() == []
    bench.finish()
    assert bench.kinds() == ["ready"]
    assert set(bench.said[-1].body["private"]) == {"load_s", "warm_s"}
    assert bench.policy.asked == ["load", "reset 5", "warm", "reset 5"]


def test_warming_waits_for_an_observation(bench):
    bench.prepare()
    bench.finish()
    assert bench.work == []
    bench.send(bench.obs())
    assert [work.kind for work in bench.work] == ["warmed"]


def test_loading_takes_its_modelled_time(bench):
    bench.prepare()
    assert bench.work[0].modelled_ns(bench.policy) == SECOND


def test_go_needs_an_observation_captured_after_start(bench):
    bench.warm_up()
    before_ns = bench.now_ns
    bench.now_ns += 10 * MILLISECOND
    bench.start()
    bench.send(bench.obs(before_ns))
    assert "go" not in bench.kinds() and not bench.policy.saw
    bench.now_ns += MILLISECOND
    bench.send(bench.obs())
    (go,) = [message.body for message in bench.said if message.kind == "go"]
    assert go == {"episode": "e", "go_ns": bench.now_ns}
    bench.finish()
    assert [(seen.t_ns, seen.instruction) for seen in bench.policy.saw] == [(bench.now_ns, "Move.")]


def test_a_controller_that_is_not_warm_does_not_start(bench):
    bench.prepare()
    bench.start()
    bench.send(bench.obs())
    assert "go" not in bench.kinds()


def test_targets_are_the_executed_part_of_the_answer_from_when_it_came(bench):
    bench.go()
    bench.now_ns += 50 * MILLISECOND
    bench.finish()
    (target,) = [message for message in bench.said if message.kind == "target"]
    assert target.to == "arm" and target.body["epoch"] == 3
    assert target.arrays["t_ns"].tolist() == [bench.now_ns + 100 * MILLISECOND, bench.now_ns + 200 * MILLISECOND]
    assert target.arrays["values"].shape == (2, 7)
    assert target.body["expires_ns"] == bench.now_ns + 200 * MILLISECOND


def test_capture_request_and_reply_are_recorded(bench):
    bench.go()
    (asked_ns,) = [message.body["go_ns"] for message in bench.said if message.kind == "go"]
    bench.now_ns += 50 * MILLISECOND
    bench.finish()
    bench.send(Message("controller", "close", {"episode": "e"}))
    (chunk,) = [message for message in bench.said if message.kind == "chunk"]
    row = dict(zip(POLICY.columns, chunk.arrays["values"][0].tolist(), strict=True))
    assert row == {
        "capture_ns": asked_ns,
        "request_ns": asked_ns,
        "reply_ns": bench.now_ns,
        "first_ns": bench.now_ns,
        "actions": 4,
        "executed": 2,
        "dt_ns": 100 * MILLISECOND,
        "image_ns": -1,
        "server_us": -1,
        "late": 0,
        "call_us": -1,
        "gpu_memory_mb": -1,
    }


def test_what_a_server_tells_is_a_private_row_and_a_private_word(bench):
    """The stream is arm-dependent, the word goes where an arm's name goes; a controller that tells nothing has none."""
    bench.policy.told = {"parameters": 3e9}
    bench.policy.answer = lambda: good(server_s=0.0801, call_s=0.0954, gpu_memory_mb=7100.4)
    bench.go()
    bench.finish()
    bench.send(Message("controller", "close", {"episode": "e"}))
    (chunk,) = [message for message in bench.said if message.kind == "chunk"]
    row = dict(zip(POLICY.columns, chunk.arrays["values"][0].tolist(), strict=True))
    assert (row["server_us"], row["call_us"], row["gpu_memory_mb"]) == (80_100, 95_400, 7100)
    assert POLICY.arm_dependent
    (ready,) = [message.body for message in bench.said if message.kind == "ready"]
    assert ready["private"].pop("told") == {"parameters": 3e9} and set(ready) == {"episode", "private"}


BAD = {
    "nan": good(values=np.full((4, 7), np.nan)),
    "infinite gripper": good(gripper=np.array([0, 0, np.inf, 0.0])),
    "one row without columns": good(values=POSE),
    "nothing": good(values=np.zeros((0, 7)), gripper=np.zeros(0)),
    "other length of gripper": good(gripper=np.zeros(3)),
    "two grippers": good(gripper=np.zeros((4, 2))),
    "six numbers of a pose": good(values=np.zeros((4, 6))),
    "joints of another robot": good(space="joint_position", values=np.zeros((4, 6))),
    "an unknown space": good(space="wrench"),
    "none to execute": good(execute=0),
    "no time between actions": good(dt_s=0.0),
    "time that is no number": good(dt_s=float("nan")),
}


@pytest.mark.parametrize("chunk", BAD.values(), ids=BAD.keys())
def test_an_answer_that_cannot_be_executed_fails_the_episode_and_reaches_no_arm(bench, chunk):
    bench.policy.answer = lambda: chunk
    bench.go()
    bench.finish()
    failure = bench.failure()
    assert set(failure) == {"name", "episode", "private"}, "why it failed may name it: in `private` alone"
    assert failure["private"]
    assert not [message for message in bench.said if message.to == "arm"]


def test_an_answer_that_can_be_executed_has_no_problem():
    assert chunk_problem(good(), DOF) is None
    assert chunk_problem(good(space="joint_position", values=np.zeros((4, DOF))), DOF) is None


@pytest.mark.parametrize("verb", ["load", "warm", "infer"])
def test_a_policys_last_words_are_private(bench, monkeypatch, verb):
    def die(*given):
        raise DeviceLost("no answer from zebra://endpoint")

    monkeypatch.setattr(bench.policy, verb, die)
    bench.prepare()
    bench.send(bench.obs())
    bench.finish()
    if verb != "load":
        bench.finish()
    if verb == "infer":
        bench.start()
        bench.send(bench.obs())
        bench.finish()
    assert bench.failure()["private"] == "no answer from zebra://endpoint"
    for message in bench.said:
        public = {key: value for key, value in message.body.items() if key != "private"}
        assert "zebra" not in str(public)


def test_an_answer_that_comes_after_the_end_moves_nothing(bench):
    bench.go()
    bench.send(Message("controller", "close", {"episode": "e"}))
    bench.finish()
    assert "target" not in bench.kinds()
    assert bench.policy.asked[-1] == "close"


def test_a_controller_that_is_done_says_so_after_its_last_targets(bench):
    bench.policy.answer = lambda: good(done=True)
    bench.go()
    bench.finish()
    assert bench.kinds()[-1] == "target", "its two targets of 0.1 s are still to be followed"
    bench.now_ns += 199 * MILLISECOND
    bench.send(bench.obs())
    assert bench.kinds()[-1] == "target"
    bench.now_ns += 2 * MILLISECOND
    bench.send(bench.obs())
    assert bench.kinds()[-1] == "done" and not bench.work


def test_it_tells_nobody_what_it_was_told(bench):
    bench.go()
    bench.finish()
    assert "endpoint" not in str([(message.to, message.kind, dict(message.body)) for message in bench.said])


def test_warming_takes_its_modelled_time(bench):
    bench.prepare()
    bench.send(bench.obs())
    bench.finish()
    assert bench.work[0].modelled_ns(bench.policy) == SECOND // 2


def test_a_controller_that_is_still_loading_is_closed_with_its_episode(bench):
    bench.prepare()
    work = bench.work[0]
    bench.policy.load = lambda: bench.send(Message("controller", "close", {"episode": "e"}))
    work.call()
    assert "close" in bench.policy.asked
    bench.finish()
    assert bench.kinds() == [], "what it loaded came too late to matter"


def test_it_is_closed_once(bench):
    bench.go()
    bench.policy.answer = lambda: good(values=np.full((4, 7), np.nan))
    bench.finish()
    bench.send(Message("controller", "close", {"episode": "e"}))
    bench.send(Message("controller", "shutdown"))
    assert bench.policy.asked.count("close") == 1
