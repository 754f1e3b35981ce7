"""Runs nodes in one process under a manual clock: the same code as in the lab, in simulated time, reproducible to the
byte.

May not: read a clock, open a socket, or know what a message means beyond "hello", "beat", "exited" and "@host"
requests.

Nodes are stepped in the order of their due time and then of their name. Mail wakes its receiver at once. A blocking
call (`Work`) is made at once and its result arrives after its modelled duration.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable

from labctl.bus import Message, Node, Step, Work
from labctl.clock import MILLISECOND, ManualClock, Suspensions
from labctl.errors import DeviceError, LabctlError
from labctl.messages.processes import Exited, Hello, Shutdown, Suspended
from labctl.runtime.hosting.requests import obey

BEAT_NS = 500 * MILLISECOND
END_NS = 3_000 * MILLISECOND
PAUSE_NS = MILLISECOND  # until the next visit of a node that is due now again, without mail: it must not stop time
Factory = Callable[[str], Node]
_NEVER = 1 << 62


class LoopHost:
    """Nodes, mailboxes and due times in one loop.

    `factory(name)` makes the node that run asks for by a message to "@host" of kind "spawn" (body: name); "kill"
    removes one.
    A node whose step raises a DeviceError is taken for a dead process: it is removed and reported to run ("exited").
    """

    def __init__(self, clock: ManualClock, factory: Factory) -> None:
        self.clock = clock
        self._suspensions = Suspensions(clock)
        self._factory = factory
        self._nodes: dict[str, Node] = {}
        self._due: dict[str, int] = {}
        self._mail: dict[str, list[Message]] = {}
        self._topics: dict[str, list[str]] = {}
        self._later: list[tuple[int, int, str, Message]] = []
        self._order = itertools.count()
        self._next_beat = clock.now_ns()

    def add(self, node: Node) -> None:
        """Start a node: it is due now, and run hears "hello" from it."""
        self._nodes[node.name] = node
        self._due[node.name] = self.clock.now_ns()
        self._mail[node.name] = []
        for topic in node.topics:
            self._topics.setdefault(topic, []).append(node.name)
            self._topics[topic].sort()
        if node.name != "run":
            self._deliver(Hello().to("run", sender=node.name))

    def remove(self, name: str) -> None:
        """End a node as a killed process ends: at once, its mail lost."""
        self._nodes.pop(name, None)
        self._due.pop(name, None)
        self._mail.pop(name, None)
        for names in self._topics.values():
            if name in names:
                names.remove(name)
        self._later = [item for item in self._later if item[2] != name]
        heapq.heapify(self._later)

    def run(self, until: Callable[[], bool], *, limit_ns: int = _NEVER) -> None:
        """Step nodes until `until()` holds, nothing is due, or the clock passes `limit_ns`."""
        while not until():
            now = self._next_time()
            if now >= _NEVER or now > limit_ns:
                return
            self.clock.sleep_until(now)
            self._beat(now)
            while self._later and self._later[0][0] <= now:
                _, _, name, message = heapq.heappop(self._later)
                if name in self._nodes:
                    self._mail[name].append(message)
                    self._due[name] = now
            self._tell_of_suspension(now)
            name = min((due, name) for name, due in self._due.items())[1]
            if self._due[name] <= now:
                self._step(name, now)

    def end_all(self) -> None:
        """Ask every node that has not finished to do so, so that stores are closed."""
        for name in [name for name, node in self._nodes.items() if getattr(node, "finished", True)]:
            self.remove(name)
        for name in sorted(self._nodes):
            self._mail[name].append(Shutdown().to(name, sender="@host"))
            self._due[name] = self.clock.now_ns()
        over = self.clock.now_ns() + END_NS
        self.run(lambda: all(getattr(node, "finished", True) for node in self._nodes.values()), limit_ns=over)
        self._nodes.clear()

    def _next_time(self) -> int:
        soonest = min(self._due.values(), default=_NEVER)
        if self._later:
            soonest = min(soonest, self._later[0][0])
        return max(soonest, self.clock.now_ns()) if soonest < _NEVER else _NEVER

    def _tell_of_suspension(self, now: int) -> None:
        suspended_ns = self._suspensions.new_ns()
        if suspended_ns:
            for name, mail in self._mail.items():
                mail.insert(0, Suspended(suspended_ns).to(name, sender="@host"))
                self._due[name] = now

    def _beat(self, now: int) -> None:
        if now < self._next_beat or "run" not in self._nodes:
            return
        self._next_beat = now + BEAT_NS
        names = [name for name, node in self._nodes.items() if name != "run" and not getattr(node, "hung", False)]
        self._deliver(Message("run", "beats", {"names": sorted(names)}, sender="@host"))

    def _step(self, name: str, now: int) -> None:
        node, inbox = self._nodes[name], self._mail[name]
        self._mail[name] = []
        self._due[name] = _NEVER
        try:
            step = node.step(now, inbox)
        except DeviceError as error:
            self.remove(name)
            self._exited(name, str(error))
            return
        if step.due_ns is not None and name in self._nodes:
            at_once = now if inbox else now + PAUSE_NS
            self._due[name] = min(self._due[name], step.due_ns if step.due_ns > now else at_once)
        self._carry_out(name, step, now)

    def _carry_out(self, name: str, step: Step, now: int) -> None:
        if step.refused:
            raise ValueError(f"{name}: {step.refused[0]}")  # nobody but nodes of this program writes here
        for message in step.out:
            message.sender = message.sender or name
            self.post(message)
        for work in step.work:
            message, duration = finish_work(work)
            message.to = name
            heapq.heappush(self._later, (now + duration, next(self._order), name, message))

    def post(self, message: Message) -> None:
        """Put a message into the mail of whoever it is for."""
        if message.to == "@host":
            obey(self, message, self.clock.now_ns())
        elif message.to.startswith("@"):
            for name in self._topics.get(message.to, ()):
                self._mail[name].append(message)
                self._due[name] = self.clock.now_ns()
        else:
            self._deliver(message)

    def _deliver(self, message: Message) -> None:
        if message.to in self._nodes:
            self._mail[message.to].append(message)
            self._due[message.to] = self.clock.now_ns()

    def kill(self, name: str, now_ns: int) -> None:
        """Take a node away at once, and say so to the run."""
        if name in self._nodes:
            self.remove(name)
            self._exited(name, "killed", asked=True)

    def spawn(self, name: str) -> None:
        """Build a node unless it is there; a device that cannot be opened is reported as a process that ended."""
        if name not in self._nodes:
            try:
                self.add(self._factory(name))
            except DeviceError as error:
                self._exited(name, str(error))

    def _exited(self, name: str, reason: str, *, asked: bool = False) -> None:
        self._deliver(Exited(name, reason, asked).to("run", sender="@host"))


def finish_work(work: Work) -> tuple[Message, int]:
    """Make a blocking call; its result (or error) as a message, and how long it is modelled to take.

    Errors of devices and of users travel in the message; anything else is a bug and is raised.
    """
    try:
        result = work.call()
    except LabctlError as error:
        return Message("", work.kind, {"error": str(error), "tag": work.tag}), 0
    return Message("", work.kind, {"result": result, "tag": work.tag}), int(work.modelled_ns(result))
