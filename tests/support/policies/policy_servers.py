"""Policy servers on loopback that answer well, or in one of the ways in which real ones do not.

FakeServer speaks openpi's or RoboArena's dialect with its own bytes (msgpack alone, not the code under test).
"""

from __future__ import annotations

import select
import socket
import threading
import traceback
from collections.abc import Callable
from typing import Any, Self

import msgpack
import numpy as np
from websockets.exceptions import ConnectionClosed
from websockets.server import ServerProtocol
from websockets.sync.server import ServerConnection, serve

from labctl.drivers.policy.codec import ANSWER_BYTES

NEEDS = {
    "image_resolution": None,
    "needs_wrist_camera": False,
    "n_external_cameras": 0,
    "needs_stereo_camera": False,
    "needs_session_id": True,
    "action_space": "joint_position",
}
JOINTS = "observation/joint_position"


def packed(value: Any) -> bytes:
    """openpi's wire, written out for arrays alone."""

    def array(found: np.ndarray) -> dict[bytes, Any]:
        body = {b"data": found.tobytes(), b"dtype": found.dtype.str, b"shape": found.shape}
        return {b"__ndarray__": True, **body}

    return msgpack.packb(value, default=array)


def unpacked(data: bytes) -> Any:
    """The reverse of `packed`."""

    def array(found: dict[Any, Any]) -> Any:
        if b"__ndarray__" not in found:
            return found
        return np.frombuffer(found[b"data"], np.dtype(found[b"dtype"])).reshape(found[b"shape"])

    return msgpack.unpackb(data, object_hook=array)


def hold(observation: dict[str, Any], n: int = 8) -> dict[str, Any]:
    """A policy that keeps the arm where it is, with an open hand."""
    joints = np.asarray(observation.get(JOINTS, np.zeros(7)), np.float32)
    actions = np.column_stack([np.tile(joints, (n, 1)), np.zeros(n)]).astype(np.float32)
    return {"actions": actions, "server_timing": {"infer_ms": 12.5}}


class FakeServer:
    """A policy server in a thread. `fault` strikes from the call number `after` on (0: the first).

    faults: block (no answer until the end), traceback, close (1011 without an answer), cut (the line, in mid-answer),
    wrong_shape, nan, unknown_keys, garbage, twice, text, slow_metadata, text_metadata, no_entry, busy (HTTP 503), lend
    (a redirect to the address `elsewhere`).
    `heard` are the questions, `resets` the sessions that were begun, `visits` the connections.
    """

    def __init__(
        self,
        *,
        dialect: str = "openpi",
        fault: str | None = None,
        after: int = 0,
        policy: Callable[[dict[str, Any]], Any] = hold,
        needs: dict[str, Any] | None = None,
        first_call_s: float = 0.0,
        port: int = 0,
        elsewhere: str = "",
    ) -> None:
        self._elsewhere = elsewhere
        self._dialect, self._fault, self._after, self._policy = dialect, fault, after, policy
        self._needs = {**NEEDS, **(needs or {})} if dialect == "roboarena" else (needs or {})
        self._first_call_s = first_call_s
        self.heard: list[dict[str, Any]] = []
        self.resets: list[Any] = []
        self.visits = 0
        self.over = threading.Event()
        refuse = self._refuse if fault in ("no_entry", "busy", "lend") else None
        self._server = serve(
            self._talk, "127.0.0.1", port, compression=None, max_size=None, ping_interval=None, process_request=refuse
        )
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.port = self._server.socket.getsockname()[1]

    @property
    def uri(self) -> str:
        return f"ws://127.0.0.1:{self.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._server.shutdown()
        self._thread.join(5)

    def _refuse(self, connection: ServerConnection, request: Any) -> Any:
        if self._fault == "lend":
            answer = connection.respond(302, "elsewhere\n")
            answer.headers["Location"] = self._elsewhere
            return answer
        code, text = (401, "no\n") if self._fault == "no_entry" else (503, "loading\n")
        return connection.respond(code, text)

    def _talk(self, connection: ServerConnection) -> None:
        self.visits += 1
        try:
            if self._fault == "slow_metadata":
                self.over.wait()
                return
            connection.send("loading weights" if self._fault == "text_metadata" else packed(self._needs))
            for message in connection:
                self._answer(connection, unpacked(message))
        except ConnectionClosed:
            return
        except Exception:
            connection.send(traceback.format_exc())
            connection.close(1011, "Internal server error. Traceback included in previous frame.")

    def _answer(self, connection: ServerConnection, question: dict[str, Any]) -> None:
        if self._dialect == "roboarena" and question.pop("endpoint") == "reset":
            self.resets.append(question["session_id"])
            connection.send("reset successful")
            return
        self.heard.append(question)
        if len(self.heard) == 1 and self._first_call_s:
            self.over.wait(self._first_call_s)
        answer = self._policy(question)
        if self._fault is None or len(self.heard) <= self._after:
            connection.send(packed(answer))
            return
        match self._fault:
            case "block":
                self.over.wait()
            case "traceback":
                raise KeyError("observation/exterior_image_0_left")
            case "close":
                connection.close(1011, "out of memory")
            case "cut":
                whole = packed(answer)
                header = bytes([0x82, 126]) + len(whole).to_bytes(2, "big")
                connection.socket.sendall(header + whole[: len(whole) // 2])
                connection.socket.shutdown(socket.SHUT_RDWR)
            case "wrong_shape":
                connection.send(packed({"actions": np.zeros((8, 32))}))
            case "nan":
                connection.send(packed({"actions": np.full((8, 8), np.nan)}))
            case "unknown_keys":
                connection.send(packed({"joint_targets": np.zeros((8, 8))}))
            case "garbage":
                connection.send(b"\xc1\x00 not msgpack")
            case "twice":
                connection.send(packed(answer))
                connection.send(packed(answer))
            case "huge":
                connection.send(bytes(ANSWER_BYTES + 1))
            case "text":
                connection.send("one moment please")
            case other:
                raise AssertionError(f"no fault named {other}")


class DeafServer:
    """An openpi server that lets one client in and then reads nothing more, like a process that was stopped. `begun`:
    called once something of what comes next is there.
    """

    def __init__(self, begun: Callable[[], object] = lambda: None) -> None:
        self._begun, self._end = begun, threading.Event()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.uri = f"ws://127.0.0.1:{self._listening.getsockname()[1]}"
        self._kept: list[socket.socket] = []
        self._thread = threading.Thread(target=self._let_in, daemon=True)

    def _let_in(self) -> None:
        visitor, _ = self._listening.accept()
        self._kept.append(visitor)
        protocol = ServerProtocol()
        while not (requests := protocol.events_received()):
            protocol.receive_data(visitor.recv(65536))
        protocol.send_response(protocol.accept(requests[0]))
        protocol.send_binary(packed({}))
        visitor.sendall(b"".join(protocol.data_to_send()))
        while not self._end.is_set():
            if select.select([visitor], [], [], 0.02)[0]:
                self._begun()
                return

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join(60)
        for open_socket in (self._listening, *self._kept):
            open_socket.close()


_HELD: list[socket.socket] = []  # by which no other process is given a port that one here was told of


def closed_port() -> int:
    """A port on loopback where nobody listens, and nobody will who was not told of it: it stays taken, by a socket that
    lets those bind it who ask for it by number (SO_REUSEADDR), until this process ends.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    _HELD.append(held)
    return held.getsockname()[1]
