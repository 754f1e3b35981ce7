"""The controller starts the clock warm and with a live observation, and keeps to itself why it failed."""

from collections.abc import Callable

import numpy as np
import pytest

from labctl.bus import Message, Work
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import ActionChunk, Observation, Pace
from labctl.errors import DeviceLost
from labctl.nodes import controller as module
from labctl.nodes.controller import POLICY, ControllerNode
from labctl.nodes.playing import chunk_problem

DOF = 7
POSE = np.array([0.4, 0.0, 0.3, 1.0, 0.0, 0.0, 0.0])


def good(n: int = 4, **changes) -> ActionChunk:
    values = {"space": "tcp_pose", "values": np.tile(POSE, (n, 1)), "gripper": np.zeros(n), "dt_s": 0.1, "execute": 2}
    return ActionChunk(**{**values, **changes})


class Policy:
    """Answers with what it is told to, and notes what was asked of it."""

    kind, load_s, warm_s = "sim", 1.0, 0.5
    pace = Pace()

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.saw: list[Observation] = []
        self.answer: Callable[[], ActionChunk] = good

    def load(self) -> None:
        self.asked.append("load")

    def warm(self, observation: Observation) -> None:
        self.asked.append("warm")

    def reset(self, seed: int) -> None:
        self.asked.append(f"reset {seed}")

    def infer(self, observation: Observation) -> ActionChunk:
        self.saw.append(observation)
        return self.answer()

    def close(self) -> None:
        self.asked.append("close")


class Bench:
    """A controller node whose calls are made when `finish` says so."""

    def __init__(self, policy: Policy) -> None:
        self.policy, self.node = policy, ControllerNode({}, {})
        self.now_ns = SECOND
        self.said: list[Message] = []
        self.work: list[Work] = []
        self.due_ns: int | None = None

    def send(self, *messages: Message) -> list[Message]:
        step = self.node.step(self.now_ns, list(messages))
        self.said += step.out
        self.work += step.work
        self.due_ns = step.due_ns
        return step.out

    def finish(self) -> list[Message]:
        """Make the oldest call and hand in what came of it."""
        work = self.work.pop(0)
        try:
            body = {"result": work.call(), "tag": ""}
        except DeviceLost as error:
            body = {"error": str(error), "tag": ""}
        return self.send(Message("controller", work.kind, body))

    def obs(self, t_ns: int | None = None) -> Message:
        arrays = {"q": np.zeros(DOF), "tcp": POSE}
        return Message("@obs", "obs", {"t_ns": self.now_ns if t_ns is None else t_ns}, arrays)

    def prepare(self) -> None:
        task = {"driver": "p", "options": {"endpoint": "x"}, "seed": 5, "episode": "e", "instruction": "Move."}
        self.send(Message("controller", "open", {"episode": "e"}), Message("controller", "prepare", task))

    def warm_up(self) -> None:
        self.prepare()
        self.send(self.obs())
        self.finish()
        self.finish()

    def start(self) -> None:
        self.send(Message("controller", "start", {"episode": "e", "epoch": 3}))

    def go(self) -> None:
        """Start with the first observation after it: go is now, and the first question is open."""
        self.warm_up()
        self.now_ns += MILLISECOND
        self.start()
        self.now_ns += MILLISECOND
        self.send(self.obs())

    def rows(self) -> list[dict[str, int]]:
        """The recorded questions."""
        self.send(Message("controller", "close", {"episode": "e"}))
        chunks = [message for message in self.said if message.kind == "chunk"]
        return [dict(zip(POLICY.columns, row, strict=True)) for c in chunks for row in c.arrays["values"].tolist()]

    def frame(self, camera: str = "wrist", t_ns: int | None = None) -> Message:
        body = {"camera": camera, "t_ns": self.now_ns if t_ns is None else t_ns}
        return Message("@frames", "frame", body, {"image": np.zeros((4, 4, 3), np.uint8)})

    def kinds(self) -> list[str]:
        return [message.kind for message in self.said if message.to in ("run", "arm")]

    def failure(self) -> dict:
        (failed,) = [dict(message.body) for message in self.said if message.kind == "failed"]
        return failed


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


def test_a_late_answer_is_not_used_and_a_fresh_question_is_asked(bench):
    bench.policy.pace = Pace(deadline_s=0.2, late="hold", give_up_s=2.0)
    bench.go()
    asked_ns = bench.now_ns
    bench.now_ns += 201 * MILLISECOND
    bench.send(bench.obs())
    assert "target" not in bench.kinds() and len(bench.work) == 1, "the question is still open: the arm stands"
    bench.now_ns += 50 * MILLISECOND
    bench.finish()
    assert "target" not in bench.kinds() and not bench.work, "what was seen before the late answer is not asked about"
    bench.now_ns += 10 * MILLISECOND
    bench.send(bench.obs())
    assert len(bench.work) == 1
    bench.finish()
    assert bench.policy.saw[-1].t_ns == bench.now_ns and bench.kinds()[-1] == "target"
    first, second = bench.rows()
    assert (first["late"], first["executed"], first["first_ns"]) == (1, 0, -1)
    assert first["reply_ns"] - first["request_ns"] == 251 * MILLISECOND and first["request_ns"] == asked_ns
    assert (second["late"], second["executed"]) == (0, 2)


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
