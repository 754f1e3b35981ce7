"""Sockets of a process: whoever only looks on holds nobody up, however slow he is."""

from __future__ import annotations

import math
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zmq

from labctl.bus import Message, Step, Work, decode, encode
from labctl.clock import SECOND, MonotonicClock
from labctl.runtime.hosting import transport
from labctl.runtime.hosting.ending import ENDING, LEAVE
from labctl.runtime.hosting.transport import PREVIEWS, Mailroom, ProcessHost, endpoint

PICTURE = np.zeros((240, 320, 3), np.uint8)
SENT = 400  # 92 MB
MANY = 4000  # messages; more than two sockets take together


def test_previews_that_nobody_takes_are_dropped_and_never_gathered(tmp_path: Path) -> None:
    camera = Mailroom(tmp_path, "camera:wrist")
    context = zmq.Context()
    idle = context.socket(zmq.SUB)
    idle.rcvhwm = PREVIEWS
    idle.subscribe(b"@preview")
    idle.connect(endpoint(tmp_path, "camera:wrist.pub"))
    try:
        while not idle.poll(20):  # until it is connected
            camera.send(Message("@preview", "preview", {"n": -1}, {"image": PICTURE}))
        for number in range(SENT):
            camera.send(Message("@preview", "preview", {"n": number}, {"image": PICTURE}))
        numbers = []
        while idle.poll(200):
            numbers.append(decode(idle.recv_multipart()[1:]).body["n"])
    finally:
        context.destroy(linger=0)
        camera.close()
    assert len(numbers) < 50, "hardly more than its share was kept for it"
    assert numbers == sorted(numbers)


@pytest.mark.parametrize(("process", "topic"), [("run", "@state"), ("arm", "@obs")])
def test_of_what_is_published_a_bounded_number_waits_for_a_console_that_hangs(
    tmp_path: Path, process: str, topic: str
) -> None:
    """Fifty of them, frozen for a night, cost a run no more memory than fifty frozen for a minute."""
    publisher = Mailroom(tmp_path, process)
    context = zmq.Context()
    idle = [context.socket(zmq.SUB) for _ in range(3)]
    try:
        for one in idle:
            one.subscribe(topic.encode())
            one.connect(endpoint(tmp_path, f"{process}.pub"))
        while not all(one.poll(20) for one in idle):  # until all are connected
            publisher.send(Message(topic, "told", {"n": -1}))
        for number in range(5 * MANY):
            publisher.send(Message(topic, "told", {"n": number}))
        kept = []
        for one in idle:
            numbers = []
            while one.poll(200):
                numbers.append(decode(one.recv_multipart()[1:]).body["n"])
            assert numbers == sorted(numbers)
            kept.append(len(numbers))
    finally:
        context.destroy(linger=0)
        publisher.close()
    assert max(kept) < 2 * MANY, "as many as two sockets and the system between them take, of 20,000"


def test_what_is_no_message_is_refused_in_one_line_and_the_next_message_is_read(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run = Mailroom(tmp_path, "run")
    context = zmq.Context()
    console = context.socket(zmq.DEALER)
    console.connect(endpoint(tmp_path, "run.in"))
    try:
        for frames in ([b"\x80"], [b'{"to": "run"}'], encode(Message("run", "command", {"verb": "look"}, sender="c"))):
            console.send_multipart(frames)
        arrived: list[Message] = []
        while not arrived:
            assert run.poller.poll(60_000), "nothing came"
            arrived += run.receive()
    finally:
        context.destroy(linger=0)
        run.close()
    assert [(message.kind, message.body) for message in arrived] == [("command", {"verb": "look"})]
    refused = caplog.messages
    assert len(refused) == 2 and all(line.startswith("run: refused: ") for line in refused)


class Caller:
    """A node that has calls made, and is finished when each of them was answered."""

    name, topics = "run", ()

    def __init__(self, *calls: Work) -> None:
        self.calls, self.answers = list(calls), []
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        self.answers += [message.body.get("error", message.body.get("result")) for message in inbox]
        self.finished = len(self.answers) >= 1 and not self.calls
        calls, self.calls = self.calls, []
        return Step(work=calls)


def leave() -> None:
    sys.exit("the policy has had enough")


@pytest.mark.parametrize(
    ("call", "modelled_ns", "answer"),
    [
        (lambda: None, lambda result: round(result.delay_s), "AttributeError"),
        (lambda: math.nan, lambda result: round(result), "ValueError"),
        (lambda: math.inf, lambda result: round(result), "OverflowError"),
        (leave, lambda result: 0, "SystemExit: the policy has had enough"),
    ],
    ids=["none", "nan", "inf", "exit"],
)
def test_a_call_is_answered_whatever_it_raises_and_whatever_cannot_be_timed(
    tmp_path: Path, call: Callable[[], object], modelled_ns: Callable[[Any], int], answer: str
) -> None:
    """Unanswered, a question of a running episode let its robot stand to the budget."""
    node = Caller(Work(call, "answer", modelled_ns))
    ProcessHost([node], tmp_path, MonotonicClock()).run()
    assert len(node.answers) == 1 and node.answers[0].startswith(answer)


def test_calls_that_never_return_take_nobodys_place(tmp_path: Path) -> None:
    never = threading.Event()
    hung = [Work(never.wait, "encoded", alone=True) for _ in range(5)]
    node = Caller(*hung, Work(lambda: "done", "answer"))
    ProcessHost([node], tmp_path, MonotonicClock()).run()
    never.set()
    assert node.answers == ["done"]


class Ended:
    """A node that is finished when it is asked to."""

    name, topics, finished = "run", (), False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        self.finished = any(message.kind == "shutdown" for message in inbox)
        return Step()


@pytest.fixture
def handlers() -> Iterator[None]:
    """Those of this process, put back."""
    before = {number: signal.getsignal(number) for number in (*ENDING, LEAVE)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def test_a_signal_that_comes_before_a_run_begins_to_step_ends_it_in_order(tmp_path: Path, handlers: None) -> None:
    """It killed the run, whose contact for others was left, in the moment between the two (seen on a busy machine)."""
    node = Ended()
    host = ProcessHost([node], tmp_path, MonotonicClock())
    host.heed_signals()
    signal.raise_signal(signal.SIGTERM)
    host.run()
    assert node.finished


class Lid(MonotonicClock):
    """A host whose lid is closed for ten minutes at its `closed`th look at the clocks."""

    def __init__(self, closed: int) -> None:
        super().__init__()
        self.looks, self.closed = 0, closed

    def suspended_ns(self) -> int:
        self.looks += 1
        return 600 * SECOND * (self.looks >= self.closed)


class Sleeper:
    """A node with mail waiting in each turn, finished when it has heard of a suspension."""

    name, topics = "arm", ()

    def __init__(self) -> None:
        self.heard: list[list[tuple[str, dict]]] = []
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        self.heard.append([(message.kind, dict(message.body)) for message in inbox])
        self.finished = any(message.kind == "suspended" for message in inbox)
        return Step(out=[Message("arm", "note", sender="arm")], due_ns=now_ns)


def test_each_process_tells_its_nodes_of_a_suspension_before_any_other_mail(tmp_path: Path) -> None:
    """Issue 17.19: the monotonic clock stands still meanwhile, so that only a second clock shows it."""
    node = Sleeper()
    ProcessHost([node], tmp_path, Lid(closed=5)).run()
    assert node.heard[-1] == [("suspended", {"for_ns": 600 * SECOND}), ("note", {})]
    assert not any(kind == "suspended" for inbox in node.heard[:-1] for kind, _ in inbox), "once"


def drained(run: Mailroom, arm: Mailroom, count: int) -> list[Message]:
    arrived: list[Message] = []
    while len(arrived) < count:
        arm.send_held()
        assert run.poller.poll(60_000), f"nothing came after {len(arrived)} of {count}"
        arrived += run.receive()
    return arrived


@pytest.mark.parametrize("there", [False, True], ids=["no run", "a run that hangs"])
def test_no_send_waits_and_what_was_held_arrives_in_its_order(tmp_path: Path, there: bool) -> None:
    """Seven minutes of a hung run filled the queue of its arm, whose loop stood in a send and read no stop."""
    run = Mailroom(tmp_path, "run") if there else None
    arm = Mailroom(tmp_path, "arm")
    context = zmq.Context()
    stop = context.socket(zmq.PUSH)
    stop.connect(endpoint(tmp_path, "arm.stop"))
    try:
        for number in range(MANY):
            arm.send(Message("run", "event", {"n": number}, sender="arm"))
            arm.send(Message("run", "beats", {"names": ["arm"]}, sender="arm"))
        stop.send_multipart(encode(Message("arm", "stop", sender="console")))
        assert arm.poller.poll(60_000) and [message.kind for message in arm.receive()] == ["stop"]
        run = run or Mailroom(tmp_path, "run")
        arrived: list[int] = []
        while len(arrived) < MANY:
            arrived += [message.body["n"] for message in drained(run, arm, 1) if message.kind == "event"]
    finally:
        context.destroy(linger=0)
        for room in (arm, run):
            if room is not None:
                room.close()
    assert arrived == list(range(MANY))


def test_what_is_held_is_bounded_and_a_loss_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(transport, "HELD_BYTES", 10_000)
    camera = Mailroom(tmp_path, "camera:wrist")
    try:
        for number in range(3000):
            camera.send(Message("recorder", "chunk", {"n": number}, sender="camera:wrist"))
    finally:
        camera.close()
    lost = caplog.messages
    assert lost and "a message is lost: recorder takes none" in lost[0]


def test_targets_for_an_arm_that_hangs_are_dropped(tmp_path: Path) -> None:
    controller = Mailroom(tmp_path, "controller")
    try:
        for number in range(3000):
            controller.send(Message("arm", "target", {"n": number}, sender="controller"))
    finally:
        controller.close()
