"""A cell asks its seal host: one question at a time over a link that may lose, delay or cut, until there is an answer.

May not: keep an arm, guess one, or wait longer than its patience.

Each try has a socket of its own, so that a link that died is left behind; those before go on waiting, so that one that
is only slow is not. A question that is asked again is the same question: the seal host gives the same answer, and
journals that it did.
"""

from __future__ import annotations

import uuid
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from labctl.bus import Body
from labctl.clock import SECOND, MonotonicClock
from labctl.errors import BrokenRecord, StateError, Unreachable
from labctl.joint.keys import Invitation
from labctl.joint.state import ClockBody, HeadBody
from labctl.joint.wire import (
    MOST_BYTES,
    Answer,
    Asks,
    Compared,
    Files,
    Found,
    Head,
    HelloAnswer,
    OpeningAnswer,
    PartAnswer,
    Question,
    RevealAnswer,
    read_answer,
)
from labctl.messages.body_parts import SlotWithArm

if TYPE_CHECKING:
    import zmq

TRY_S = 2.0
PATIENCE_S = 8.0


@dataclass(frozen=True, slots=True)
class Hello:
    """What the seal host says of a cell: trials that are another cell's now, whether it is declared gone, how many
    parts it has; the clock as compared (this host's wall clock less the seal host's).
    """

    clock: ClockBody
    not_yours: Sequence[str]
    gone: bool
    parts: int
    limit_s: float


@dataclass(frozen=True, slots=True)
class Revealed:
    """One arm; head: the seal host's, clock: as it was compared before."""

    trial: str
    arm: str
    head: HeadBody
    clock: ClockBody


class SealLink:
    """Asks as one cell. patience_s: how long a question may take in all, with its tries of `try_s` each."""

    def __init__(
        self,
        invitation: Invitation,
        *,
        part: int = 1,
        patience_s: float = PATIENCE_S,
        try_s: float = TRY_S,
    ) -> None:
        self._invitation, self._part = invitation, part
        self._patience_ns, self._try_ns = round(patience_s * SECOND), round(try_s * SECOND)
        self._clock = MonotonicClock()

    @property
    def address(self) -> str:
        return self._invitation.address

    def hello(self) -> Hello:
        """Is it there? Compares the clocks. Raises Unreachable, StateError and what else the seal host raises."""
        answer, sent_ns, came_ns = self._ask(HelloAnswer, "hello")
        mine_ns = (sent_ns + came_ns) // 2 + self._clock.wall_ahead_ns()
        its_ns, its_took_ns = (answer.came_ns + answer.left_ns) // 2, answer.left_ns - answer.came_ns
        bound_ns = max(0, came_ns - sent_ns - its_took_ns) // 2
        clock = ClockBody(offset_s=round((mine_ns - its_ns) / SECOND, 6), bound_s=round(bound_ns / SECOND, 6))
        return Hello(clock, answer.not_yours, answer.gone, answer.parts, answer.limit_s)

    def reveal(self, trial: str, head: HeadBody, skipped: Sequence[str] = ()) -> Revealed:
        """The arm of the next trial. Raises as `hello`."""
        clock = self.hello().clock
        about = {"trial": trial, "head": Head(**head), "clock": Compared(**clock), "skipped": tuple(skipped)}
        answer, _, _ = self._ask(RevealAnswer, "reveal", about)
        return Revealed(trial, answer.arm, answer.head.body(), clock)

    def part(self, files: Files) -> PartAnswer:
        """What a cell opens its campaign with. Raises as `hello`."""
        return self._ask(PartAnswer, "part", {"files": files})[0]

    def join(self, head: HeadBody) -> None:
        """From here on the cell's chain is the one that begins so. Raises as `hello`."""
        self._ask(Answer, "join", {"head": Head(**head)})

    def close(self, head: HeadBody, phase: str) -> None:
        """The cell's campaign is over. Raises as `hello`."""
        self._ask(Answer, "close", {"head": Head(**head), "phase": phase})

    def opening(self) -> tuple[list[SlotWithArm], str]:
        """The slots of the part with their arms, and the nonce that binds them. Raises as `hello`."""
        answer = self._ask(OpeningAnswer, "opening")[0]
        return [slot.sealed() for slot in answer.slots], answer.nonce_hex

    def _ask(self, form: type[Found], asks: Asks, about: Body | None = None) -> tuple[Found, int, int]:
        """The answer, when the try that brought it was sent and when it came, ns of this host's monotonic clock."""
        question = Question(id=uuid.uuid4().hex, asks=asks, part=self._part, **(about or {}))
        raw_question = question.model_dump_json(exclude_defaults=True).encode()
        with self._tries() as tries:
            raw, sent_ns = tries.answer(raw_question, self._patience_ns, self._try_ns)
            came_ns = self._clock.now_ns()
        if raw is None:
            after = self._patience_ns / SECOND
            raise Unreachable(
                f"the seal host at {self.address} does not answer within {after:g} s; see that `labctl joint "
                "serve` runs there, what it says of other connections, and that this cell's key is the one it invited"
            )
        answer = read_answer(raw, form)
        if answer.id != question.id:
            raise BrokenRecord("the seal host answered another question than the one that was asked")
        return answer, sent_ns, came_ns

    @contextmanager
    def _tries(self) -> Generator[_Tries, None, None]:
        import zmq

        tries = _Tries(self._invitation, self._clock)
        try:
            yield tries
        except zmq.ZMQError as error:
            raise StateError(f"the seal host at {self.address} cannot be asked: {str(error).lower()}") from None
        finally:
            tries.close()


class _Tries:
    """The tries of one question, each through a socket of its own; all of them are listened to until one answers."""

    def __init__(self, invitation: Invitation, clock: MonotonicClock) -> None:
        import zmq

        self._invitation, self._clock = invitation, clock
        self._context, self._poller = zmq.Context(), zmq.Poller()
        self._sent_ns: dict[zmq.Socket[bytes], int] = {}

    def answer(self, raw: bytes, patience_ns: int, try_ns: int) -> tuple[bytes | None, int]:
        """The first answer and when the try that brought it was sent; None when there is none in time."""
        until_ns = self._clock.now_ns() + patience_ns
        while (now_ns := self._clock.now_ns()) < until_ns:
            self._send(raw, now_ns)
            for socket, _ in self._poller.poll(max(1, min(try_ns, until_ns - now_ns) // 10**6)):
                return socket.recv(), self._sent_ns[socket]
        return None, until_ns

    def _send(self, raw: bytes, now_ns: int) -> None:
        import zmq

        socket = self._context.socket(zmq.DEALER)
        self._sent_ns[socket] = now_ns
        socket.linger = 0
        socket.curve_serverkey = self._invitation.host_key.encode()
        socket.curve_publickey = self._invitation.public_key.encode()
        socket.curve_secretkey = self._invitation.secret_key.encode()
        socket.setsockopt(zmq.MAXMSGSIZE, MOST_BYTES << 4)
        socket.connect(self._invitation.address)
        socket.send(raw, zmq.NOBLOCK)
        self._poller.register(socket, zmq.POLLIN)

    def close(self) -> None:
        """Whatever else comes is not wanted."""
        for socket in self._sent_ns:
            socket.close()
        self._context.term()
