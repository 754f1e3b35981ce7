"""One websocket to a policy server: connect, ask, close, each within a stated time. No other file imports websockets.

May not: ping a server that is busy thinking (a first call may compile for a minute), wait longer than it is asked to,
take an answer that nobody asked for or that is larger than any policy's, or send a question again.
"""

from __future__ import annotations

import contextlib
import os
import socket
import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import SplitResult, urlsplit

from labctl.clock import SECOND, MonotonicClock
from labctl.drivers.policy.codec import ANSWER_BYTES, pack, unpack
from labctl.errors import DeviceLost, DeviceRefused, MissingExtra

SLICE_S = 0.1  # how soon a waiting call hears that it is no longer wanted
OPEN_S = 2.0
CLOSE_S = 0.5
NO_ENTRY, ELSEWHERE = (401, 403), range(300, 400)


class PolicySocket:
    """See the module. `uri` is ws://HOST:PORT or wss://…; `api_key_env` names the environment variable of a key."""

    def __init__(self, uri: str, api_key_env: str | None = None) -> None:
        self.uri = uri
        self._key_env = api_key_env
        self._clock = MonotonicClock()
        self._closed = threading.Event()
        self._busy = threading.Lock()
        self._connection: Any = None
        self._held = contextlib.ExitStack()

    def connect(self, timeout_s: float) -> Mapping[str, Any]:
        """Connect, and return what the server says of itself, within `timeout_s`.

        Raises DeviceLost when it does not answer (yet), DeviceRefused when it never will like this.
        """
        connect, errors = _websockets()
        until_ns = self._clock.now_ns() + round(timeout_s * SECOND)
        place, headers = urlsplit(self.uri), self._headers()
        with self._busy:
            self._drop()
            try:
                opening = connect(
                    self.uri,
                    # Connected here: else the library follows a redirect to whatever server it names.
                    sock=_connected(place, min(timeout_s, OPEN_S)),
                    compression=None,
                    max_size=ANSWER_BYTES,
                    ping_interval=None,
                    proxy=None,
                    open_timeout=min(timeout_s, OPEN_S),
                    close_timeout=CLOSE_S,
                    additional_headers=headers,
                )
                self._connection = self._held.enter_context(opening)
            except errors.InvalidStatus as error:
                code = error.response.status_code
                if code in ELSEWHERE:
                    raise self._sends_elsewhere() from None
                if code in NO_ENTRY:
                    text = f"{self.uri} lets nobody in (HTTP {code}); see api_key_env in the card's [server]"
                    raise DeviceRefused(text) from None
                raise DeviceLost(f"{self.uri} answers with HTTP {code}") from None
            except (OSError, UnicodeError, errors.WebSocketException, EOFError) as error:
                raise DeviceLost(f"{self.uri} does not answer ({_short(error)})") from None
            except ValueError:  # of newer versions of the library, for a redirect
                raise self._sends_elsewhere() from None
            greeting = self._receive(until_ns)
        if isinstance(greeting, str):
            raise DeviceRefused(f"the server began with text instead of its metadata: {last_line(greeting)}")
        metadata = unpack(greeting)
        if not isinstance(metadata, Mapping):
            raise DeviceRefused(f"the server's metadata is no table but {type(metadata).__name__}")
        return metadata

    def ask(self, message: Mapping[str, Any], timeout_s: float) -> Any:
        """Send a message and return its answer: a text as it is, bytes unpacked. Raises DeviceLost, DeviceRefused."""
        until_ns = self._clock.now_ns() + round(timeout_s * SECOND)
        data = pack(dict(message))
        with self._busy:
            if self._connection is None or self._closed.is_set():
                raise DeviceLost("the connection to the policy server is closed")
            self._refuse_unasked()
            with _connection_closed():
                self._connection.send(data)
            answer = self._receive(until_ns)
        return answer if isinstance(answer, str) else unpack(answer)

    def close(self) -> None:
        """Let go: a call that waits in another thread ends within SLICE_S. Idempotent."""
        self._closed.set()
        if self._busy.acquire(timeout=2 * SLICE_S):
            try:
                self._drop()
            finally:
                self._busy.release()
        elif (connection := self._connection) is not None:  # a send that nobody reads: cut the line under it
            with contextlib.suppress(OSError):  # it may be cut already
                connection.socket.shutdown(socket.SHUT_RDWR)

    def _sends_elsewhere(self) -> DeviceRefused:
        return DeviceRefused(f"{self.uri} sends elsewhere; name the server itself in the endpoint")

    def _headers(self) -> dict[str, str] | None:
        if self._key_env is None:
            return None
        key = os.environ.get(self._key_env)
        if not key:
            raise DeviceRefused(f"the environment variable {self._key_env} (api_key_env) is not set")
        return {"Authorization": f"Api-Key {key}"}

    def _refuse_unasked(self) -> None:
        """An answer that is there before its question belongs to another one: the two sides are out of step."""
        try:
            with _connection_closed():
                self._connection.recv(timeout=0)
        except TimeoutError:
            return
        raise DeviceRefused("the server sent an answer that nobody asked for; which is which cannot be known any more")

    def _receive(self, until_ns: int) -> str | bytes:
        """The next message, within its time."""
        began_ns = self._clock.now_ns()
        while not self._closed.is_set():
            left_s = (until_ns - self._clock.now_ns()) / SECOND
            if left_s <= 0:
                waited_s = (until_ns - began_ns) / SECOND
                self._drop()
                raise DeviceLost(f"the policy server did not answer within {waited_s:.1f} s")
            with contextlib.suppress(TimeoutError), _connection_closed():
                return self._connection.recv(timeout=min(left_s, SLICE_S))
        raise DeviceLost("the connection to the policy server is closed")

    def _drop(self) -> None:
        self._connection = None
        self._held.close()


@contextlib.contextmanager
def _connection_closed() -> Iterator[None]:
    """Says what the library raises, but for a time that is over, as DeviceLost."""
    _, errors = _websockets()
    try:
        yield
    except TimeoutError:
        raise
    except (OSError, errors.WebSocketException) as error:
        raise DeviceLost(f"the server closed the connection ({_short(error)})") from None


def _connected(place: SplitResult, timeout_s: float) -> socket.socket:
    """A connection to the server of an address. Raises OSError."""
    port = place.port or (443 if place.scheme == "wss" else 80)
    found = socket.create_connection((place.hostname or "", port), timeout=timeout_s)
    found.settimeout(None)
    return found


def refuse_traceback(answer: Any) -> Any:
    """An answer that is no text; a text is the traceback of a server that has failed: DeviceRefused with its last line.

    The whole of it goes to standard error, which is the controller's private log.
    """
    if not isinstance(answer, str):
        return answer
    sys.stderr.write(answer.rstrip() + "\n")
    raise DeviceRefused(f"the policy server failed: {last_line(answer)}")


def last_line(text: str) -> str:
    """The last line of a text that says something, shortened to 200 characters."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:200] if lines else "it said nothing"


def _short(error: BaseException) -> str:
    return last_line(str(error)) if str(error) else type(error).__name__


def _websockets() -> tuple[Any, Any]:
    try:
        from websockets import exceptions
        from websockets.sync.client import connect
    except ModuleNotFoundError as error:
        raise MissingExtra("policy", "talking to a policy server") from error
    return connect, exceptions
