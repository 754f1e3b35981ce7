"""The loop that runs nodes in simulated time: order, mail, work, death, and time that goes on."""

from collections.abc import Callable

import pytest

from labctl.bus import Message, Step, Work
from labctl.clock import SECOND, ManualClock
from labctl.errors import DeviceLost
from labctl.runtime.hosting.simulated_host import BEAT_NS, LoopHost

Act = Callable[[int, list[Message]], Step]


class Scripted:
    """A node that does what a function says and keeps what it was given."""

    def __init__(self, name: str, act: Act | None = None, topics: tuple[str, ...] = ()) -> None:
        self.name, self.topics = name, topics
        self._act = act or (lambda now_ns, inbox: Step())
        self.visits: list[tuple[int, list[str]]] = []

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        self.visits.append((now_ns, [message.kind for message in inbox]))
        return self._act(now_ns, inbox)


def every(period_ns: int) -> Act:
    return lambda now_ns, inbox: Step(due_ns=now_ns + period_ns)


def once(step: Step) -> Act:
    """The given step at the first visit, nothing afterwards."""
    steps = [step]
    return lambda now_ns, inbox: steps.pop() if steps else Step()


def host_of(*nodes: Scripted) -> LoopHost:
    def make(name: str) -> Scripted:
        raise DeviceLost(f"no {name} here")

    host = LoopHost(ManualClock(0), make)
    for node in nodes:
        host.add(node)
    return host


def test_nodes_hear_of_a_suspension_once_and_time_goes_on_where_it_stood():
    node = Scripted("a", every(SECOND))
    host = host_of(node)
    host.run(lambda: False, limit_ns=SECOND)
    host.clock.suspend(600 * SECOND)
    host.run(lambda: False, limit_ns=3 * SECOND)
    assert [kinds for _, kinds in node.visits if kinds] == [["suspended"]]
    assert node.visits[-1][0] <= 3 * SECOND


def test_nodes_are_stepped_by_due_time_and_then_by_name():
    order: list[tuple[int, str]] = []

    def noting(name: str, period_ns: int) -> Scripted:
        def act(now_ns: int, inbox: list[Message]) -> Step:
            order.append((now_ns, name))
            return Step(due_ns=now_ns + period_ns)

        return Scripted(name, act)

    host = host_of(noting("c", 30), noting("b", 20), noting("a", 60))
    host.run(lambda: False, limit_ns=60)
    assert order == sorted(order)
    assert order[:3] == [(0, "a"), (0, "b"), (0, "c")]
    assert order[-3:] == [(60, "a"), (60, "b"), (60, "c")]


def test_mail_wakes_its_receiver_at_once():
    receiver = Scripted("b")
    host = host_of(receiver, Scripted("a", once(Step([Message("b", "ping")]))))
    host.run(lambda: False, limit_ns=SECOND)
    assert receiver.visits == [(0, ["ping"])]


def test_a_topic_reaches_who_subscribed_and_no_other():
    near, far = Scripted("near", topics=("@obs",)), Scripted("far")
    host = host_of(near, far, Scripted("a", once(Step([Message("@obs", "obs")]))))
    host.run(lambda: False, limit_ns=SECOND)
    assert (0, ["obs"]) in near.visits and not any(kinds for _, kinds in far.visits)


def test_a_message_tells_its_sender():
    said: list[str] = []
    reader = Scripted("b", lambda now_ns, inbox: (said.extend(m.sender for m in inbox), Step())[1])
    host_of(reader, Scripted("a", once(Step([Message("b", "ping")])))).run(lambda: False, limit_ns=SECOND)
    assert said == ["a"]


def test_a_result_arrives_after_its_modelled_duration():
    work = Work(lambda: 7, "answer", lambda result: result * 100, tag="x")
    caller = Scripted("a", once(Step(work=[work])))
    host_of(caller).run(lambda: False, limit_ns=SECOND)
    assert caller.visits == [(0, []), (700, ["answer"])]


def test_results_due_together_arrive_in_the_order_they_were_asked_for():
    works = [Work(lambda: None, name, lambda result: 50) for name in ("z", "a")]
    caller = Scripted("a", once(Step(work=works)))
    host_of(caller).run(lambda: False, limit_ns=SECOND)
    assert caller.visits == [(0, []), (50, ["z", "a"])]


def test_an_error_of_a_device_travels_in_the_result():
    def call() -> None:
        raise DeviceLost("gone")

    bodies: list[object] = []
    acts = [
        lambda inbox: Step(work=[Work(call, "answer")]),
        lambda inbox: (bodies.append(dict(inbox[0].body)), Step())[1],
    ]
    host_of(Scripted("a", lambda now_ns, inbox: acts.pop(0)(inbox))).run(lambda: False, limit_ns=SECOND)
    assert bodies == [{"error": "gone", "tag": ""}]


def test_a_bug_in_a_call_is_raised():
    def call() -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        host_of(Scripted("a", once(Step(work=[Work(call, "answer")])))).run(lambda: False, limit_ns=SECOND)


def test_a_node_that_raises_a_device_error_is_a_dead_process_and_run_is_told():
    def dies(now_ns: int, inbox: list[Message]) -> Step:
        if now_ns < 500:
            return Step(due_ns=500)
        raise DeviceLost("link down")

    told: list[dict] = []
    run = Scripted(
        "run", lambda now_ns, inbox: (told.extend(dict(m.body) for m in inbox if m.kind == "exited"), Step())[1]
    )
    host = host_of(run, Scripted("arm", dies))
    host.run(lambda: False, limit_ns=SECOND)
    assert told == [{"name": "arm", "reason": "link down"}]
    assert "arm" not in host._nodes


def test_a_dead_nodes_mail_and_work_are_lost():
    caller = Scripted("a", once(Step(work=[Work(lambda: 1, "answer", lambda result: 100)])))
    host = host_of(caller)
    host.run(lambda: False, limit_ns=50)
    host.remove("a")
    host.post(Message("a", "ping"))
    host.run(lambda: False, limit_ns=SECOND)
    assert caller.visits == [(0, [])]


def test_a_node_that_cannot_be_made_is_told_to_run():
    run = Scripted("run", once(Step([Message("@host", "spawn", {"name": "arm"})])))
    host_of(run).run(lambda: False, limit_ns=SECOND)
    assert run.visits[1] == (0, ["exited"])


def test_run_hears_hello_and_heartbeats_of_nodes_that_are_not_hung():
    beating: list[list[str]] = []
    run = Scripted(
        "run", lambda now_ns, inbox: (beating.extend(m.body["names"] for m in inbox if m.kind == "beats"), Step())[1]
    )
    hung = Scripted("hung", every(BEAT_NS // 2))
    hung.hung = True  # type: ignore[attr-defined]
    host = host_of(run, hung, Scripted("well", every(BEAT_NS // 2)))
    host.run(lambda: False, limit_ns=2 * BEAT_NS)
    assert run.visits[0][1][:2] == ["hello", "hello"]
    assert beating == [["well"]] * 3


def test_a_node_due_now_for_ever_does_not_stop_time():
    busy, calm = Scripted("busy", lambda now_ns, inbox: Step(due_ns=now_ns)), Scripted("calm", every(SECOND // 200))
    host_of(busy, calm).run(lambda: len(busy.visits) > 1000, limit_ns=SECOND // 100)
    assert calm.visits[-1][0] == SECOND // 100, "time did not get that far"
    assert len(busy.visits) < 1000


def test_a_loop_ends_when_nothing_is_due():
    host = host_of(Scripted("a"))
    host.run(lambda: False)
    assert host.clock.now_ns() == 0


def test_the_end_waits_for_nodes_to_finish_but_not_for_ever():
    closing = Scripted("a", every(SECOND // 10))
    closing.finished = False  # type: ignore[attr-defined]
    host = host_of(closing)
    host.end_all()
    assert ["shutdown"] in [kinds for _, kinds in closing.visits]
    assert host.clock.now_ns() <= 3 * SECOND and "a" not in host._nodes
