"""Runs nodes in one process over pyzmq under the monotonic clock: sockets, mailboxes, heartbeats, orderly end.

May not: interpret a message beyond its address, bind anything but ipc sockets in an owner-only folder, or touch a
device.

Addresses: run and recorder are ROUTERs that every other process reaches by a DEALER named after itself; the robot takes
targets and stops on
PULL sockets of its own, so that a stop never passes through run; topics ("@obs", "@lease", …) are published by the
process that makes them.
Nothing that must not be lost is ever published (measured: PUB/SUB drops after a stalled second; facts on
orchestration). No send waits, whoever does not read: mail to a hub that takes none is held here up to HELD_BYTES and
goes out in its order once there is room; beats and targets, which grow old, are dropped.
Full pictures ("@frames") have sockets of their own that keep the newest one only, on both sides.
"""

from __future__ import annotations

import contextlib
import logging
import os
import queue
import socket
import threading
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import zmq

from labctl.bus import Message, Node, Step, Work, decode, encode, joined, parted
from labctl.clock import MILLISECOND, SECOND, Clock, Suspensions
from labctl.errors import LabctlError
from labctl.messages.processes import Failing, Hello, Shutdown, Suspended
from labctl.runtime.hosting.ending import on_signals
from labctl.runtime.hosting.lease_keeper import LeaseKeeper, LeaseTerms
from labctl.runtime.hosting.requests import Processes, obey

_log = logging.getLogger("hosting")
LEASE = "lease"  # the socket of the run process that a thread of its own sends by
BEATS = "beats"
BEAT_NS = 200 * MILLISECOND
PUBLISHERS = {"@obs": ("arm",), "@lease": (LEASE,), "@state": ("run",)}  # "@preview" comes from the cameras
LINGER_NS = 3 * SECOND
FRAMES = "@frames"
HELD_BYTES = 64_000_000
PREVIEWS = 2  # pictures that wait for someone slow; further ones are dropped, so that looking on disturbs nothing


def endpoint(directory: Path, name: str) -> str:
    """The ipc address of a named socket in the runtime folder of one campaign."""
    return f"ipc://{directory / name.replace(':', '-')}"


class Mailroom:
    """The sockets of one process, which is named after its first node. topics: that its nodes hear; cameras: those
    there may be.
    """

    def __init__(self, directory: Path, main: str, topics: tuple[str, ...] = (), cameras: tuple[str, ...] = ()) -> None:
        self._context = zmq.Context()
        self._directory = directory
        self._main = main
        self.poller = zmq.Poller()
        self._pub = self._socket(zmq.PUB, bind=f"{self._main}.pub", most=PREVIEWS if self._films() else 0)
        self._router: zmq.Socket | None = None
        self._dealers: dict[str, zmq.Socket] = {}
        self._held: deque[tuple[str, list[bytes]]] = deque()
        self._held_bytes = 0
        self._push_robot: zmq.Socket | None = None
        self._inputs: list[zmq.Socket] = []
        self._looking: zmq.Socket | None = None
        self._leases = self._socket(zmq.PUB, bind=f"{LEASE}.pub") if self._main == "run" else None
        if self._main in ("run", "recorder"):
            self._router = self._socket(zmq.ROUTER, bind=f"{self._main}.in", read=True)
        for hub in ("run", "recorder"):
            if hub != self._main and not (hub == "recorder" and self._main == "run"):
                self._dealers[hub] = self._socket(zmq.DEALER, connect=f"{hub}.in", read=True, identity=self._main)
        self._frames = self._socket(zmq.PUB, bind=f"{self._main}.frames", newest=True) if self._films() else None
        if self._main == "arm":
            self._socket(zmq.PULL, bind="arm.in", read=True)
            self._socket(zmq.PULL, bind="arm.stop", read=True)
        elif self._main == "controller":
            self._push_robot = self._socket(zmq.PUSH, connect="arm.in")
        if topics:
            self._subscribe(tuple(topic for topic in topics if topic != FRAMES), cameras)
        if FRAMES in topics and cameras:
            self._look_on(cameras)

    def _films(self) -> bool:
        return self._main.startswith("camera:")

    def _socket(
        self,
        kind: int,
        *,
        bind: str = "",
        connect: str = "",
        read: bool = False,
        identity: str = "",
        most: int = 0,
        newest: bool = False,
    ) -> zmq.Socket:
        made = self._context.socket(kind)
        made.linger = 500
        if newest:
            made.setsockopt(zmq.CONFLATE, 1)  # before it is bound or connected, or it has no effect
        if most:
            made.sndhwm = most
        if identity:
            made.identity = identity.encode()
        if bind:
            path = self._directory / bind.replace(":", "-")
            path.unlink(missing_ok=True)
            made.bind(endpoint(self._directory, bind))
        if connect:
            made.connect(endpoint(self._directory, connect))
        if read:
            self.poller.register(made, zmq.POLLIN)
            self._inputs.append(made)
        return made

    def _subscribe(self, topics: tuple[str, ...], cameras: tuple[str, ...]) -> None:
        listening = self._socket(zmq.SUB, read=True)
        for topic in topics:
            listening.subscribe(topic.encode())
            for publisher in PUBLISHERS.get(topic, cameras):
                if publisher != self._main:
                    listening.connect(endpoint(self._directory, f"{publisher}.pub"))

    def _look_on(self, cameras: tuple[str, ...]) -> None:
        """Take the newest full picture of every camera; what was not looked at in time was never sent."""
        looking = self._looking = self._socket(zmq.SUB, read=True, newest=True)
        looking.subscribe(b"")
        for camera in cameras:
            looking.connect(endpoint(self._directory, f"{camera}.frames"))

    def send_lease(self, message: Message) -> None:
        """Publish a lease, by a socket of its own: no other thread may use it at the same time."""
        assert self._leases is not None, "only run publishes leases"
        self._leases.send_multipart([message.to.encode(), *encode(message)])

    def send(self, message: Message) -> None:
        """Send a message on its way. A receiver that is not there loses it; what must arrive is kept by its sender
        until acknowledged.
        """
        frames = encode(message)
        if message.to == FRAMES:
            assert self._frames is not None, "only a camera publishes full pictures"
            self._frames.send(joined(frames), copy=False)
        elif message.to.startswith("@"):
            self._pub.send_multipart([message.to.encode(), *frames])
        elif message.to in self._dealers:
            self._hand_on(message.to, frames, kept=message.kind != BEATS)
        elif message.to == "arm" and self._push_robot is not None:
            _sent(self._push_robot, frames)
        elif self._router is not None:
            self._router.send_multipart([message.to.encode(), *frames])

    def _hand_on(self, hub: str, frames: list[bytes], *, kept: bool) -> None:
        behind = any(to == hub for to, _ in self._held)  # what is held goes first
        if not behind and _sent(self._dealers[hub], frames):
            return
        size = sum(map(len, frames))
        if not kept:
            return
        if self._held_bytes + size > HELD_BYTES:
            _log.error("%s: a message is lost: %s takes none, and %d bytes wait for it", self._main, hub, HELD_BYTES)
            return
        self._held.append((hub, frames))
        self._held_bytes += size

    def send_held(self) -> None:
        """Send on what was held, as far as there is room for it now."""
        full: set[str] = set()
        for _ in range(len(self._held)):
            hub, frames = self._held.popleft()
            if hub not in full and _sent(self._dealers[hub], frames):
                self._held_bytes -= sum(map(len, frames))
            else:
                full.add(hub)
                self._held.append((hub, frames))

    def receive(self) -> list[Message]:
        """All messages that have arrived."""
        arrived = []
        for source in self._inputs:
            while True:
                try:
                    frames = source.recv_multipart(zmq.NOBLOCK)
                except zmq.Again:
                    break
                try:
                    if source is self._looking:
                        frames = parted(frames[0])
                    elif source.type in (zmq.ROUTER, zmq.SUB):
                        frames = frames[1:]
                    arrived.append(decode(frames))
                except ValueError as error:  # whoever reaches this socket may write there
                    _log.warning("%s: refused: %s", self._main, error)
        return arrived

    def close(self) -> None:
        self._context.destroy(linger=500)


def _sent(to: zmq.Socket, frames: list[bytes]) -> bool:
    """Send if there is room."""
    try:
        to.send_multipart(frames, zmq.NOBLOCK)
    except zmq.Again:
        return False
    return True


def last_words(directory: Path, name: str, reason: str) -> None:
    """Report to run why this process is about to end; a run that is not there does not get it."""
    mailroom = Mailroom(directory, name)
    mailroom.send(Failing(name, reason).to("run", sender=name))
    mailroom.close()


class ProcessHost:
    """One process's nodes, stepped when due or when mail arrives. The first node names the process; others share its
    mail. lease: the terms of the motion lease, where a node here grants it.
    """

    def __init__(
        self,
        nodes: list[Node],
        directory: Path,
        clock: Clock,
        *,
        cameras: tuple[str, ...] = (),
        parent: int | None = None,
        lease: LeaseTerms | None = None,
    ) -> None:
        self.clock = clock
        self._suspensions = Suspensions(clock)
        self._nodes = {node.name: node for node in nodes}
        self._main = nodes[0].name
        topics = tuple(sorted({topic for node in nodes for topic in node.topics}))
        self._mailroom = Mailroom(directory, self._main, topics, cameras)
        self._keeper = LeaseKeeper(self._mailroom.send_lease, clock, lease) if lease is not None else None
        self._mail: dict[str, list[Message]] = {name: [] for name in self._nodes}
        self._due: dict[str, int | None] = {name: clock.now_ns() for name in self._nodes}
        self._pool = ThreadPoolExecutor(max_workers=2, thread_name_prefix="work")
        self._done: queue.SimpleQueue[tuple[str, Message]] = queue.SimpleQueue()
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._mailroom.poller.register(self._wake_in, zmq.POLLIN)
        self._parent = parent
        self._next_beat = 0
        self._ending_ns: int | None = None
        self._requests: list[Message] = []

    def run(self, others: Processes | None = None) -> None:
        """Step until a signal that ends processes or the parent's death, then let the nodes finish for at most
        LINGER_NS. others: the processes beside this one, which do what a node here asks of "@host".
        """
        self.heed_signals()
        if self._main != "run":
            self._mailroom.send(Hello(os.getpid()).to("run", sender=self._main))
        if self._keeper is not None:
            self._keeper.start()
        try:
            while not self._finished():
                self._turn()
                if others is not None:
                    self._look_after(others, self.clock.now_ns())
        finally:
            if self._keeper is not None:
                self._keeper.close()
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._mailroom.close()
            self._wake_in.close()
            self._wake_out.close()

    def heed_signals(self) -> None:
        """From now on a signal that ends processes ends this one in order, before its nodes step too. Whoever can be
        found by others heeds them first.
        """
        on_signals(lambda asked: self.end() if asked.kind == Shutdown.KIND else self._put(asked.to, asked))

    def end(self) -> None:
        """Ask every node to finish."""
        if self._ending_ns is None:
            self._ending_ns = self.clock.now_ns()
            for name in self._nodes:
                self._put(name, Shutdown().to(name, sender="@host"))

    def _look_after(self, others: Processes, now_ns: int) -> None:
        asked, self._requests = self._requests, []
        for request in asked:
            obey(others, request, now_ns)
        for message in others.poll(now_ns):
            self._put(message.to, message)

    def _finished(self) -> bool:
        if self._ending_ns is None:
            return all(getattr(node, "finished", False) for node in self._nodes.values())
        quiet = all(getattr(node, "finished", True) for node in self._nodes.values())
        return quiet or self.clock.now_ns() - self._ending_ns > LINGER_NS

    def _turn(self) -> None:
        now = self.clock.now_ns()
        dues = [due for due in self._due.values() if due is not None]
        wait_ns = min([*dues, now + BEAT_NS // 2]) - now
        if wait_ns > 0 and not any(self._mail.values()):
            self._mailroom.poller.poll(-(-wait_ns // MILLISECOND))  # not sooner: it would only wait again
        self._collect()
        suspended_ns = self._suspensions.new_ns()
        if suspended_ns:
            for name, mail in self._mail.items():
                mail.insert(0, Suspended(suspended_ns).to(name, sender="@host"))
        now = self.clock.now_ns()
        self._beat(now)
        for name, node in sorted(self._nodes.items()):
            due = self._due[name]
            if self._mail[name] or (due is not None and due <= now):
                inbox, self._mail[name] = self._mail[name], []
                step = node.step(self.clock.now_ns(), inbox)
                self._due[name] = step.due_ns
                self._carry_out(name, step)

    def _collect(self) -> None:
        self._mailroom.send_held()
        for message in self._mailroom.receive():
            self._place(message)
        try:
            while self._wake_in.recv(64):
                pass
        except BlockingIOError:
            pass  # drained: the queue below holds what the wake-ups were for
        while not self._done.empty():
            name, message = self._done.get()
            self._put(name, message)

    def _place(self, message: Message) -> None:
        """Put arrived or local mail into the boxes of the nodes that live here."""
        if message.to.startswith("@"):
            for name, node in self._nodes.items():
                if message.to in node.topics:
                    self._put(name, message)
        else:
            self._put(message.to if message.to in self._nodes else self._main, message)

    def _put(self, name: str, message: Message) -> None:
        if name in self._mail:
            self._mail[name].append(message)

    def _beat(self, now: int) -> None:
        if now < self._next_beat:
            return
        self._next_beat = now + BEAT_NS
        if self._main != "run":
            self._mailroom.send(Message("run", BEATS, {"names": [self._main]}, sender=self._main))
        if self._parent is not None and os.getppid() != self._parent:
            self.end()

    def _carry_out(self, name: str, step: Step) -> None:
        for line in step.refused:
            _log.warning("%s: %s", name, line)
        for message in step.out:
            message.sender = message.sender or name
            if message.to == "@host":
                self._requests.append(message)
            elif message.to in self._nodes:
                self._put(message.to, message)
            elif message.to == "@lease" and self._keeper is not None:
                self._keeper.grant(message)
            else:
                self._mailroom.send(message)
                if message.to.startswith("@"):
                    self._place(message)
        for work in step.work:
            if work.alone:
                threading.Thread(target=self._work, args=(name, work), name=work.kind, daemon=True).start()
            else:
                self._pool.submit(self._work, name, work)

    def _work(self, name: str, work: Work) -> None:
        started = self.clock.now_ns()
        body: dict[str, object] = {"tag": work.tag}
        try:
            result = work.call()
            until_ns = started + int(work.modelled_ns(result))
        except LabctlError as error:
            body["error"] = str(error)
        except BaseException as error:  # whatever a controller raises, sys.exit too: silence would hang its episode
            body["error"] = f"{type(error).__name__}: {error}"
        else:
            body["result"] = result
            self.clock.sleep_until(until_ns)
        self._done.put((name, Message(name, work.kind, body, sender="@host")))
        with contextlib.suppress(OSError):  # the loop has ended meanwhile
            self._wake_out.send(b"1")
