"""The seal host's door: a socket that only paired cells get through (CurveZMQ), and what is answered to each.

May not: answer a key that is not paired, let one cell ask for another, log an arm, or end for what a cell sends.
"""

from __future__ import annotations

import logging
import socket
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Self

from labctl.clock import MonotonicClock
from labctl.doors import Room
from labctl.errors import Busy, InputError, LabctlError, StorageError
from labctl.joint.keys import HOST_KEYS, HostKeys, read_host_keys
from labctl.joint.seal_host import SealHost, writing
from labctl.joint.state import HeadBody, not_yours
from labctl.joint.wire import (
    MOST_BYTES,
    Answer,
    Head,
    HelloAnswer,
    OpeningAnswer,
    Part,
    PartAnswer,
    PublicSlot,
    Question,
    RevealAnswer,
    SealedSlot,
    read_question,
    refused,
)

if TYPE_CHECKING:
    import zmq

_log = logging.getLogger("joint")
VERB = "joint serve"
EACH, ALL = 64, 512  # connections, from one address and from all, that have asked nothing: a cell has five at most
HANDSHAKE_MS = 10_000  # of ZeroMQ's, six ways over a slow link: no shorter than a cell's patience
LOOKED_AT = 1000  # comings and goings before the next question is answered


def answer(folder: Path, cell: str, raw: bytes, clock: MonotonicClock) -> bytes:
    """The answer to what a cell sent. What may not be, or cannot be now, is answered in one line too."""
    came_ns = clock.now_ns() + clock.wall_ahead_ns()
    question_id = ""
    try:
        question = read_question(raw)
        question_id = question.id
        with writing(folder, VERB, clock) as host:
            found = _ANSWERS[question.asks](host, cell, question)
    except LabctlError as error:
        _log.warning("a question of cell %s is refused: %s", cell, error)
        return refused(question_id, StorageError(str(error)) if isinstance(error, Busy) else error)
    times = {"id": question_id, "came_ns": came_ns, "left_ns": clock.now_ns() + clock.wall_ahead_ns()}
    return found.model_copy(update=times).model_dump_json().encode()


def _hello(host: SealHost, cell: str, question: Question) -> Answer:
    part = host.state.part(cell, question.part)
    return HelloAnswer(
        gone=cell in host.state.gone,
        not_yours=tuple(not_yours(host.state, part)),
        parts=len(host.state.parts_of(cell)),
        limit_s=host.state.opened["clock_limit_s"],
    )


def _part(host: SealHost, cell: str, question: Question) -> Answer:
    """What a cell needs to open its campaign, if it has the same files and may join with it."""
    opened, files = host.state.opened, question.files
    part = host.to_join(cell, question.part)
    if files is None:
        raise InputError("a part needs the digests of protocol, fixture and cards")
    for what, its, mine in (
        ("protocol is", files.protocol, opened["protocol"]),
        ("fixture is", files.fixture, opened["fixture"]),
        ("policy cards are", files.cards, opened["cards"]),
    ):
        if its != mine:
            raise InputError(f"the {what} not the seal host's, byte for byte; copy what it was made from")
    entry = Part(
        name=opened["name"],
        cell=cell,
        part=part.number,
        cells=tuple(opened["cells"]),
        blocks=part.dealt,
        of=len(host.state.blocks),
        commitment=opened["commitment"],
        head=Head(**host.state.last),
    )
    slots = tuple(PublicSlot(**slot) for slot in host.state.slots(part))
    return PartAnswer(joint=entry, slots=slots, commitment=part.commitment)


def _join(host: SealHost, cell: str, question: Question) -> Answer:
    host.join(cell, question.part, _needed(question.head))
    return Answer()


def _reveal(host: SealHost, cell: str, question: Question) -> Answer:
    if question.clock is None or question.trial is None:
        raise InputError("a reveal needs the trial, and the clock as it was compared")
    head, clock = _needed(question.head), question.clock.body()
    given = host.give(cell, question.part, question.trial, head, clock, question.skipped)
    return RevealAnswer(arm=given.arm, head=Head(**given.head))


def _close(host: SealHost, cell: str, question: Question) -> Answer:
    host.close(cell, question.part, _needed(question.head), question.phase or "closed")
    return Answer()


def _opening(host: SealHost, cell: str, question: Question) -> Answer:
    slots, nonce = host.opening(cell, question.part)
    return OpeningAnswer(slots=tuple(SealedSlot(**slot) for slot in slots), nonce_hex=nonce, early=host.state.early)


_ANSWERS: Mapping[str, Callable[[SealHost, str, Question], Answer]] = {
    "hello": _hello,
    "part": _part,
    "join": _join,
    "reveal": _reveal,
    "close": _close,
    "opening": _opening,
}


def _needed(head: Head | None) -> HeadBody:
    if head is None:
        raise InputError("the head of the cell's journal is missing")
    return head.body()


class Door:
    """The bound socket. `turn` answers what is there. `open` closes it at the end.

    ZeroMQ lets anybody connect and knows a key only after its handshake: who asks nothing is in a room of `Room`.
    """

    def __init__(self, folder: Path, address: str | None = None, *, each: int = EACH, most: int = ALL) -> None:
        """address: tcp://HOST:PORT to bind; None: as the keys have it. each, most: connections from one address and
        from all that have asked nothing. Raises InputError, StorageError.
        """
        import zmq
        from zmq.auth.thread import ThreadAuthenticator

        self._folder, self._clock = folder, MonotonicClock()
        keys = read_host_keys(folder / HOST_KEYS)
        self._names = {key: cell for cell, key in keys.cells.items()}
        self._context = zmq.Context()
        self._guard = ThreadAuthenticator(self._context, log=logging.getLogger("joint.keys"))
        self._guard.start()
        self._guard.configure_curve_callback(domain="*", credentials_provider=_Paired(keys))
        self._socket = self._context.socket(zmq.ROUTER)
        self._socket.curve_server = True
        self._socket.curve_publickey, self._socket.curve_secretkey = keys.public_key.encode(), keys.secret_key.encode()
        self._socket.linger = 0
        self._socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES)
        self._socket.setsockopt(zmq.ROUTER_HANDOVER, 1)
        self._socket.setsockopt(zmq.HEARTBEAT_IVL, 2000)
        self._socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)
        self._room = Room(each, most, _log.warning)
        self._socket.monitor("inproc://comings", zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        self._comings = self._context.socket(zmq.PAIR)
        self._comings.rcvhwm = 0  # at a bound ZeroMQ would wait, with all that it does
        self._comings.connect("inproc://comings")
        self._both = zmq.Poller()
        self._both.register(self._socket, zmq.POLLIN)
        self._both.register(self._comings, zmq.POLLIN)
        try:
            self._socket.bind(address or keys.address)
        except zmq.ZMQError as error:
            self.close()
            where = address or keys.address
            raise StorageError(f"{where}: {str(error).lower()}; name a free one with --bind") from None
        self.address = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)

    def turn(self, patience_ms: int) -> None:
        """Answer one question, or wait as long for one or for somebody who comes or goes."""
        import zmq

        ready = dict(self._both.poll(patience_ms))
        if self._comings in ready:
            self._look()
        if self._socket not in ready:
            return
        frames: list[zmq.Frame] = self._socket.recv_multipart(copy=False)
        self._room.left(frames[-1].get(zmq.SRCFD))  # it has a key
        cell = self._names.get(str(frames[-1].get("User-Id")))
        if cell is None or len(frames) != 2:
            _log.warning("a message that is no question was dropped")
            return
        reply = answer(self._folder, cell, bytes(frames[1].buffer), self._clock)
        with suppress(zmq.ZMQError):  # whoever asked is gone: it asks again
            self._socket.send_multipart([bytes(frames[0].buffer), reply], zmq.NOBLOCK)

    def _look(self) -> None:
        """Who came and who went."""
        import zmq
        from zmq.utils.monitor import parse_monitor_message

        for _ in range(LOOKED_AT):
            try:
                said = parse_monitor_message(self._comings.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return
            number = int(said["value"])
            if said["event"] != zmq.EVENT_ACCEPTED:
                self._room.left(number)
            elif (address := _peer(number)) is not None:
                self._room.came(number, address, partial(_end, number))

    def close(self) -> None:
        """Idempotent."""
        if not self._socket.closed:
            self._socket.disable_monitor()
        self._comings.close(linger=0)
        self._socket.close()
        if self._guard.is_alive():
            self._guard.stop()
        self._context.term()

    @contextmanager
    def open(self) -> Generator[Self, None, None]:
        """The door until the end of the block."""
        try:
            yield self
        finally:
            self.close()


def _peer(descriptor: int) -> str | None:
    """The address at the other end of one of ZeroMQ's sockets; None of one that is over."""
    with suppress(OSError), _lent(descriptor) as its:
        return str(its.getpeername()[0])
    return None


def _end(descriptor: int) -> None:
    """ZeroMQ hears that the other end is gone, and closes it."""
    with suppress(OSError), _lent(descriptor) as its:
        its.shutdown(socket.SHUT_RDWR)


@contextmanager
def _lent(descriptor: int) -> Generator[socket.socket, None, None]:
    its = socket.socket(fileno=descriptor)
    try:
        yield its
    finally:
        its.detach()


class _Paired:
    """Which keys get in: those of the invitations, and no other."""

    def __init__(self, keys: HostKeys) -> None:
        self._known = {key.encode() for key in keys.cells.values()}

    def callback(self, domain: str, key: bytes) -> bool:
        return key in self._known
