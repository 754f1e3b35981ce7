"""The controller node: a policy or a person in the loop. The only node that knows which arm of the experiment runs.

May not: pass on which arm it is, start its clock before a warm controller has a live observation, send a target
outside its episode, go on with an answer that came too late, or ask a policy while a person's hand drives.

The clock starts at go: the first observation captured after `start` is handed to the loaded and warmed controller
(methodology §1). Loading and warming happen before, so they never enter a measured time; every answer after go does:
the robot stands until it comes.

A switch of the instruction counts from the next question on. What was asked before it is followed to its end, as a
policy's own open-loop stretch is part of how fast it adapts; only its word that the task is done no longer holds.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from enum import StrEnum

import numpy as np

from labctl.bus import Body, Message, Step, Work
from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import ActionChunk, ByHand, Controller, Observation, Telling, load
from labctl.errors import DeviceError
from labctl.messages import driving
from labctl.messages.processes import Shutdown
from labctl.messages.recording import Ack, Close, Open, Resend
from labctl.nodes.observation_buffer import ObservationBuffer
from labctl.nodes.phase_table import On, OnRaw, by_kind, entered, hear
from labctl.nodes.playing import Play, chunk_problem
from labctl.nodes.policy_stream import POLICY, Question, question_row
from labctl.nodes.takeover import TakeOver
from labctl.nodes.tracing import TraceSender, acknowledged, resend
from labctl.plain import Json

HAND_NS = SECOND // 5  # how often a person's screen hears of the hand


class Phase(StrEnum):
    """Where a controller stands in its one episode. `FOLLOWS` has what may come after each; what leads there stands at
    the end of the module: `MESSAGES` for what arrives, `SEEN` for what a new observation makes due.
    """

    IDLE = "idle"
    LOADING = "loading"
    LOADED = "loaded"
    WARMING = "warming"
    READY = "ready"
    STARTED = "started"
    RUNNING = "running"
    OVER = "over"


FOLLOWS: Mapping[Phase, frozenset[Phase]] = {
    Phase.IDLE: frozenset({Phase.LOADING, Phase.OVER}),
    Phase.LOADING: frozenset({Phase.LOADED, Phase.OVER}),
    Phase.LOADED: frozenset({Phase.WARMING, Phase.OVER}),
    Phase.WARMING: frozenset({Phase.READY, Phase.OVER}),
    Phase.READY: frozenset({Phase.STARTED, Phase.OVER}),
    Phase.STARTED: frozenset({Phase.RUNNING, Phase.OVER}),
    Phase.RUNNING: frozenset({Phase.OVER}),
    Phase.OVER: frozenset(),
}


class ControllerNode:
    """See the module. `cell` and `fixture` are what drivers are built with."""

    name = "controller"
    topics = ("@obs", "@frames")

    def __init__(self, cell: Cell, fixture: Fixture, *, chunk_ns: int = SECOND) -> None:
        self._cell = cell
        self._fixture = fixture
        self.sender = TraceSender("controller", [POLICY], chunk_ns=chunk_ns)
        self._controller: Controller | None = None
        self._by_hand: ByHand | None = None  # the same, where a person's hand drives
        self._closed = False
        self._task: driving.Prepare | None = None
        self._buffer = ObservationBuffer.of(cell)
        self._phase = Phase.IDLE
        self._instruction = ""
        self._last_asked_ns = -1
        self._epoch = -1
        self._started_ns = 0
        self._asked: Question | None = None
        self._play: Play | None = None
        self._began_ns = self._loaded_ns = 0
        self._next_hand_ns, self._shown = 0, False  # when the screens hear of a hand next; whether they have one
        self._next_ns: int | None = None  # a question waits for an observation that is no older
        self._hand: TakeOver | None = None
        self._overtaken = False  # the answer that is awaited was asked for before a hand took over: never used
        self.finished = False

    def step(self, now_ns: int, inbox: list[Message]) -> Step:
        """One visit: mail first, then whatever the phase asks for."""
        step = Step()
        for message in inbox:
            hear(MESSAGES, self._phase, self, message, now_ns, step, self._enter)
        self._buffer.let_in(now_ns)
        seen_ns = self._buffer.t_ns
        if seen_ns is not None:
            if self._phase in SEEN:
                SEEN[self._phase](self, seen_ns, now_ns, step)
            self._tell_hand(now_ns, step)
        step.out += self.sender.poll(now_ns)
        step.due_ns = self._due()
        return step

    @property
    def phase(self) -> Phase:
        return self._phase

    def _enter(self, phase: Phase) -> None:
        self._phase = entered(FOLLOWS, self._phase, phase)

    @property
    def _episode(self) -> str:
        assert self._task is not None, "there is an episode from prepare on"
        return self._task.episode

    def _tell_hand(self, now_ns: int, step: Step) -> None:
        """Tell the screens of a person's device, also of one that took over; there is nothing to tell of a policy."""
        device = self._by_hand or self._hand
        if device is None or self._phase in (Phase.IDLE, Phase.OVER) or now_ns < self._next_hand_ns:
            return
        hand = device.hand(np.asarray(self._buffer.measured()["q"]))
        if hand is not None or self._shown:
            self._next_hand_ns, self._shown = now_ns + HAND_NS, hand is not None
            step.out.append(driving.HandState(hand, self._episode).to("run"))

    def _run(self, seen_ns: int, now_ns: int, step: Step) -> None:
        if self._driven(self._buffer.live_ns, now_ns, step):
            if self._asked is not None:
                self._wait(self._asked, now_ns, step)
            return
        if self._play is not None:
            step.out += self._play.targets(now_ns, self._buffer.measured())
        if self._asked is not None:
            self._wait(self._asked, now_ns, step)
        elif self._next_ns is not None and seen_ns >= self._next_ns:
            if self._play is not None and self._play.done:  # its last targets have been followed
                self._next_ns = None
                step.out.append(driving.Done(self._episode).to("run"))
            elif self._buffer.ready(now_ns):  # never on a picture that is too old: the robot stands until there is one
                self._ask(seen_ns, now_ns, step)

    def _driven(self, seen_ns: int, now_ns: int, step: Step) -> bool:
        """A hand has the robot: its targets take the place of the policy's, which is asked again once it lets go."""
        hand = self._hand
        if hand is None:
            return False
        before, had = hand.driving, not hand.lost
        asked = None if self._play is None else self._play.hand(now_ns)
        chunk = hand.look(Observation(seen_ns, self._buffer.measured()), now_ns, asked)
        if hand.driving != before:
            phase = "begin" if hand.driving else "end"
            step.out.append(driving.TouchByDevice(self._episode, phase, now_ns).to("run"))
            self._play, self._overtaken = None, self._asked is not None
            self._next_hand_ns = now_ns
            self._next_ns = None if hand.driving else now_ns  # what is seen since it let go is asked about
        if had and hand.lost:
            step.out.append(driving.HandLost(self._episode, hand.lost).to("run"))
        if chunk is not None:
            play = Play(chunk, seen_ns, now_ns, self._epoch, self._episode)
            step.out += play.targets(now_ns, self._buffer.measured())
        return hand.driving

    def _due(self) -> int | None:
        """When to look again without mail: at a step, and when a question has waited too long."""
        if self._phase != Phase.RUNNING:
            return None
        due = [] if self._play is None else [self._play.due_ns]
        if self._asked is not None:
            pace = self._buffer.pace
            patience = min(pace.give_up_s, pace.deadline_s if pace.late == "end" else math.inf)
            due.append(None if patience == math.inf else self._asked.request_ns + round(patience * SECOND))
        return min((at for at in due if at is not None), default=None)

    # -- messages

    def _see(self, message: Message, now_ns: int, step: Step) -> None:
        self._buffer.see(message)

    def _prepare(self, sent: driving.Prepare, now_ns: int, step: Step) -> None:
        self._task, self._began_ns = sent, now_ns
        self._instruction, self._buffer.delay_ns = sent.instruction, round(sent.delay_s * SECOND)
        step.work.append(Work(self._load, "loaded", lambda loaded: round(loaded.load_s * SECOND)))

    def _loaded(self, message: Message, now_ns: int, step: Step) -> None:
        if self._succeeded(message.body, step):
            self._buffer.pace = message.body["result"].pace
            self._loaded_ns = now_ns

    def _warmed(self, message: Message, now_ns: int, step: Step) -> None:
        if self._succeeded(message.body, step):
            times = (self._loaded_ns - self._began_ns, now_ns - self._loaded_ns)
            private: dict[str, Json] = {"load_s": times[0] / SECOND, "warm_s": times[1] / SECOND}
            if isinstance(self._controller, Telling) and self._controller.told:
                private["told"] = dict(self._controller.told)
            if software := getattr(self._controller, "software", None):
                private["software"] = dict(software)
            step.out.append(driving.Ready(self._episode, private).to("run"))

    def _open(self, sent: Open, now_ns: int, step: Step) -> None:
        step.out += self.sender.open(sent.episode)

    def _start(self, sent: driving.Start, now_ns: int, step: Step) -> None:
        self._epoch, self._started_ns = sent.epoch, now_ns

    def _switch(self, sent: driving.Switch, now_ns: int, step: Step) -> None:
        """Another instruction from the next question on: of two things at one moment, the question was before."""
        if sent.episode != self._episode:
            return
        self._instruction = sent.instruction
        if self._play is not None:
            self._play.done = False
        step.out.append(driving.Switched(sent.episode, sent.number, max(now_ns, self._last_asked_ns + 1)).to("run"))

    def _close(self, sent: Close | Shutdown, now_ns: int, step: Step) -> None:
        step.out += self.sender.close(now_ns)
        self._stop()
        problem = self._release()
        if problem is not None:
            self._fail(problem, step)

    def _shut_down(self, sent: Shutdown, now_ns: int, step: Step) -> None:
        self._close(sent, now_ns, step)
        self.finished = True

    # -- the controller's calls

    def _load(self) -> Controller:
        task = self._task
        assert task is not None
        made: Controller = load(task.driver, task.options, cell=self._cell, fixture=self._fixture)
        self._controller = made  # so that it can be closed while it loads
        self._by_hand = made if isinstance(made, ByHand) else None
        made.load()
        made.reset(task.seed)
        if task.hand:
            hand = load(task.hand["driver"], task.hand["options"], cell=self._cell, fixture=self._fixture)
            self._hand = TakeOver(hand)  # so that it can be closed while it loads
            hand.load()
        return made

    def _warm(self, seen_ns: int, now_ns: int, step: Step) -> None:
        """Loaded: warm with the first observation that is complete."""
        controller, task = self._controller, self._task
        if not self._buffer.ready(now_ns):
            return
        assert controller is not None and task is not None
        seen = self._buffer.observation(self._instruction)

        def warm() -> Controller:
            controller.warm(seen)
            controller.reset(task.seed)  # history built while warming must not reach the episode
            return controller

        self._enter(Phase.WARMING)
        step.work.append(Work(warm, "warmed", lambda warmed: round(warmed.warm_s * SECOND)))

    def _go(self, seen_ns: int, now_ns: int, step: Step) -> None:
        """Started: the first complete observation from after the start begins the clock."""
        if seen_ns >= self._started_ns and self._buffer.ready(now_ns):
            assert self._task is not None
            if self._task.kind == "human":  # its go came as late as a policy's, and its view is as it is
                seen_ns = self._buffer.undelayed(now_ns)
            step.out.append(driving.Go(self._episode, now_ns).to("run"))
            self._enter(Phase.RUNNING)
            self._buffer.forget()
            self._ask(seen_ns, now_ns, step)

    def _ask(self, seen_ns: int, now_ns: int, step: Step) -> None:
        controller = self._controller
        assert controller is not None
        seen = self._buffer.observation(self._instruction)
        self._next_ns, self._last_asked_ns = None, now_ns
        self._asked = Question(seen_ns, self._buffer.image_ns(), now_ns, self._instruction)
        call = Work(lambda: _timed(controller.infer(seen)), "answer", lambda chunk: round(chunk.delay_s * SECOND))
        step.work.append(call)

    def _wait(self, question: Question, now_ns: int, step: Step) -> None:
        """A question is open: give up when its time is over."""
        if why := self._given_up(question, now_ns):
            self.sender.add(question_row(question, now_ns, late=True))
            self._fail(why, step)

    def _given_up(self, question: Question, now_ns: int) -> str:
        """Why a question without an answer by now ends the episode, "" while it is waited for."""
        pace, waited_s = self._buffer.pace, (now_ns - question.request_ns) / SECOND
        if pace.late == "end" and waited_s >= pace.deadline_s:
            return f'no answer within the deadline of {pace.deadline_s:g} s, and the card says late = "end"'
        return f"no answer within {pace.give_up_s:g} s; given up" if waited_s >= pace.give_up_s else ""

    def _use(self, message: Message, now_ns: int, step: Step) -> None:
        """An answer has come."""
        question, self._asked = self._asked, None
        assert question is not None
        if not self._succeeded(message.body, step):
            self.sender.add(question_row(question, now_ns))
            return
        if self._overtaken:
            self._overtaken = False
            self.sender.add(question_row(question, now_ns, reply_ns=now_ns))
            return
        chunk: ActionChunk = message.body["result"]
        seen = self._buffer.measured()
        problem = chunk_problem(chunk, len(seen["q"]), np.size(seen.get("gripper", 0.0)), len(self._cell.robots))
        if problem:
            self.sender.add(question_row(question, now_ns, reply_ns=now_ns))
            self._fail(problem, step)
            return
        if why := self._given_up(question, now_ns - 1):  # it came before this node's turn, and after its time
            self.sender.add(question_row(question, now_ns, reply_ns=now_ns, chunk=chunk, late=True))
            self._fail(why, step)
            return
        play = Play(chunk, question.capture_ns, now_ns, self._epoch, self._episode)
        late = now_ns - question.request_ns > self._buffer.pace.deadline_s * SECOND
        if late or not len(play.t_ns):
            self.sender.add(question_row(question, now_ns, reply_ns=now_ns, chunk=chunk, late=True))
            self._next_ns = question.capture_ns + 1  # not used: the robot stands, what was seen since is asked about
            return
        self._play = play
        play.done = play.done and question.instruction == self._instruction
        self.sender.add(question_row(question, now_ns, reply_ns=now_ns, chunk=chunk, play=play))
        self._next_ns = play.ends_ns - round(self._buffer.pace.ask_ahead_s * SECOND)
        step.out += play.targets(now_ns, self._buffer.measured())

    def _succeeded(self, body: Body, step: Step) -> bool:
        """Whether a call came back with a result; its failure is reported."""
        if "error" in body:
            self._fail(body["error"], step)
        return "error" not in body

    def _fail(self, reason: str, step: Step) -> None:
        self._stop()
        episode = None if self._task is None else self._task.episode
        step.out.append(driving.Failed(self.name, episode, reason).to("run"))
        self._release()

    def _stop(self) -> None:
        self._enter(Phase.OVER)
        self._asked = self._play = self._next_ns = None

    def _release(self) -> str | None:
        """Close the controller, once; what it says against that."""
        if self._controller is None or self._closed:
            return None
        self._closed = True
        problem = None
        for device in (self._controller, self._hand):
            try:
                if device is not None:
                    device.close()
            except DeviceError as error:
                problem = str(error)
        return problem


def _timed(answer: ActionChunk) -> ActionChunk:
    """An answer that says how long it took; controllers of others are not checked by types. Raises DeviceError."""
    if not isinstance(answer, ActionChunk):
        raise DeviceError(f"the controller's answer is {type(answer).__name__}, not an ActionChunk")
    if not 0 <= answer.delay_s < math.inf:
        raise DeviceError(f"the controller's answer took {answer.delay_s} s by its own account")
    return answer


_ALL = frozenset(Phase)

# What arrives: the phases in which it counts, what is done, the phase that follows. A call that has failed, and an
# answer that cannot be used, lead to OVER from wherever they come.
MESSAGES = by_kind(
    (
        OnRaw("obs", _ALL, ControllerNode._see),
        OnRaw("frame", _ALL, ControllerNode._see),
        On(Open, _ALL, ControllerNode._open),
        On(driving.Prepare, frozenset({Phase.IDLE}), ControllerNode._prepare, Phase.LOADING),
        OnRaw("loaded", frozenset({Phase.LOADING}), ControllerNode._loaded, Phase.LOADED),
        OnRaw("warmed", frozenset({Phase.WARMING}), ControllerNode._warmed, Phase.READY),
        On(driving.Start, frozenset({Phase.READY}), ControllerNode._start, Phase.STARTED),
        On(driving.Switch, frozenset({Phase.RUNNING}), ControllerNode._switch),
        OnRaw("answer", frozenset({Phase.RUNNING}), ControllerNode._use),
        On(Ack, _ALL, acknowledged),
        On(Resend, _ALL, resend),
        On(Close, _ALL, ControllerNode._close, Phase.OVER),
        On(Shutdown, _ALL, ControllerNode._shut_down, Phase.OVER),
    )
)

# What an observation makes due, in which phase: LOADED leads to WARMING, STARTED to RUNNING.
SEEN: Mapping[Phase, Callable[[ControllerNode, int, int, Step], None]] = {
    Phase.LOADED: ControllerNode._warm,
    Phase.STARTED: ControllerNode._go,
    Phase.RUNNING: ControllerNode._run,
}
