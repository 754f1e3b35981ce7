"""Driver "policy_gr00t": a GR00T policy server over ZeroMQ, N1.5 and N1.6 or later.

May not: wait on a server that is gone (a request socket that timed out is thrown away: it can never be used again),
load a pickle, or send an observation that the server's own description does not ask for.

Keys in the card begin with video., state. and language. or annotation.;
keys of actions have no prefix. N1.6 and later take a nested observation and answer with a list of two, N1.5 takes a
flat one and answers with a table: the server's description tells which.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Mapping
from typing import Any

import numpy as np
import zmq

from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture
from labctl.config.policy_card import Card
from labctl.drivers.policy.client import PolicyClient, card_for
from labctl.drivers.policy.codec import ANSWER_BYTES, pack_npy, unpack_npy
from labctl.drivers.policy.options import Gr00tOptions
from labctl.drivers.policy.websocket import last_line
from labctl.errors import DeviceLost, DeviceRefused, in_words

SLICE_MS = 100  # how soon a waiting call hears that it is no longer wanted
PING_S = 2.0
NESTED, FLAT = "n1.6", "n1.5"


class Gr00tLink:
    """GR00T's dialect over a request socket. See `client.Link`."""

    def __init__(self, endpoint: str, card: Card) -> None:
        self._endpoint = endpoint
        self._card = card
        self._token_env = card.server.api_key_env
        self._convention = card.gr00t.convention if card.gr00t else "auto"
        self._clock = MonotonicClock()
        self._socket: zmq.Socket | None = None
        self._closed = threading.Event()
        self._busy = threading.Lock()

    def connect(self, timeout_s: float) -> Mapping[str, Any]:
        alive = self._call("ping", None, min(timeout_s, PING_S))
        described = self._call("get_modality_config", None, min(timeout_s, PING_S))
        if not isinstance(described, Mapping):
            raise DeviceRefused(f"the server describes itself by {type(described).__name__} instead of a table")
        if self._convention == "auto":
            self._convention = convention_of(described)
        problem = misfit({part: _config(entry) for part, entry in described.items()}, self._card)
        if problem is not None:
            raise DeviceRefused(problem)
        return alive if isinstance(alive, Mapping) else {}

    def ask(self, observation: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
        if self._convention == NESTED:
            data: Any = {"observation": nested(observation), "options": None}
        else:
            data = flat(observation)
        answer = self._call("get_action", data, timeout_s)
        info: Mapping[str, Any] = {}
        if isinstance(answer, list) and answer and isinstance(answer[0], Mapping):
            info = answer[1] if len(answer) > 1 and isinstance(answer[1], Mapping) else {}
            answer = answer[0]
        if not isinstance(answer, Mapping):
            raise DeviceRefused(f"the answer is no table of actions but {type(answer).__name__}")
        beside = {str(key): value for key, value in info.items() if not isinstance(value, np.ndarray)}
        return {**beside, **{str(key).removeprefix("action."): value for key, value in answer.items()}}

    def reset(self, session: str, timeout_s: float) -> None:
        """A new episode begins; servers have a reset from N1.6 on."""
        if self._convention == NESTED:
            self._call("reset", {"options": None}, timeout_s)

    def close(self) -> None:
        self._closed.set()
        if self._busy.acquire(timeout=5 * SLICE_MS / 1000):
            try:
                self._drop()
            finally:
                self._busy.release()

    def _call(self, endpoint: str, data: Any, timeout_s: float) -> Any:
        request: dict[str, Any] = {"endpoint": endpoint}
        if data is not None:
            request["data"] = data
        if self._token_env is not None:
            token = os.environ.get(self._token_env)
            if not token:
                raise DeviceRefused(f"the environment variable {self._token_env} (api_key_env) is not set")
            request["api_token"] = token
        with self._busy:
            reply = self._exchange(pack_npy(request), timeout_s)
        if reply == b"ERROR":
            raise DeviceRefused("the policy server failed and says no more than ERROR")
        answer = unpack_npy(reply)
        if isinstance(answer, Mapping) and "error" in answer:
            reason = last_line(str(answer["error"]))
            remedy = "; see api_key_env in the card's [server]" if "Unauthorized" in reason else ""
            raise DeviceRefused(f"the policy server failed: {reason}{remedy}")
        return answer

    def _exchange(self, request: bytes, timeout_s: float) -> bytes:
        """One question and its answer. Whatever goes wrong, the next one has a socket of its own."""
        if self._closed.is_set():
            raise DeviceLost("the connection to the policy server is closed")
        peer = self._socket
        if peer is None:
            peer = self._socket = zmq.Context.instance().socket(zmq.REQ)
            peer.linger = 0
            peer.setsockopt(zmq.MAXMSGSIZE, ANSWER_BYTES)
            peer.connect(self._endpoint)
        until_ns = self._clock.now_ns() + round(timeout_s * SECOND)
        try:
            peer.send(request, zmq.NOBLOCK)
            while not self._closed.is_set():
                left_ms = (until_ns - self._clock.now_ns()) // 1_000_000
                if left_ms <= 0:
                    raise DeviceLost(f"the policy server did not answer within {timeout_s:.1f} s")
                if peer.poll(min(left_ms, SLICE_MS)):
                    return peer.recv()
            raise DeviceLost("the connection to the policy server is closed")
        except zmq.ZMQError as error:
            self._drop()
            raise DeviceLost(f"{self._endpoint} does not answer ({error})") from None
        except DeviceLost:
            self._drop()
            raise

    def _drop(self) -> None:
        if self._socket is not None:
            self._socket.close(linger=0)
            self._socket = None


def convention_of(described: Mapping[str, Any]) -> str:
    """Which way a server is called, by how it describes itself: JSON as text is N1.5, as a table N1.6 or later.

    Raises DeviceRefused when it does not say.
    """
    kinds = {type(entry) for entry in described.values()}
    if kinds == {str}:
        return FLAT
    if kinds == {dict}:
        return NESTED
    text = "[gr00t] convention to n1.5 or n1.6"
    raise DeviceRefused(f"the server does not describe itself in a way labctl knows; set the card's {text}")


def nested(observation: Mapping[str, Any]) -> dict[str, Any]:
    """{"video.a": picture, "state.b": vector, "language.c": text} with a batch of one, as N1.6 and later read it."""
    made: dict[str, Any] = {"video": {}, "state": {}, "language": {}}
    for key, value in observation.items():
        part, _, name = key.partition(".")
        if part == "video":
            made["video"][name] = _timed(value)[None]
        elif part == "state":
            made["state"][name] = np.asarray(value, np.float32)[None, None, :]
        else:
            made["language"][name if part == "language" else key] = [[value]]
    return made


def flat(observation: Mapping[str, Any]) -> dict[str, Any]:
    """The same as N1.5 reads it: whole keys, a time axis, no batch."""
    made: dict[str, Any] = {}
    for key, value in observation.items():
        if key.startswith("video."):
            made[key] = _timed(value)
        elif key.startswith("state."):
            made[key] = np.asarray(value, np.float32)[None, :]
        else:
            made[key] = [value]
    return made


def _timed(picture: np.ndarray) -> np.ndarray:
    """With a time axis in front, which one picture (height, width, 3) alone has not."""
    return picture if picture.ndim > 3 else picture[None]


def _config(entry: Any) -> Mapping[str, Any]:
    try:
        found = json.loads(entry) if isinstance(entry, str) else entry
    except (ValueError, RecursionError) as error:
        raise DeviceRefused(f"what the server says of its modalities is no JSON: {last_line(str(error))}") from None
    return found if isinstance(found, Mapping) else {}


def misfit(described: Mapping[str, Mapping[str, Any]], card: Card) -> str | None:
    """Why a card does not give a server what it reads, or reads actions that it does not answer with.

    described: {part: {modality_keys, delta_indices}} of a server; a part it does not describe is not compared.
    """
    try:
        return _misfit(described, card)
    except (TypeError, ValueError, AttributeError) as error:  # a number where a list of names belongs
        return f"the server's description of itself is not of GR00T's form ({in_words(error)})"


def _misfit(described: Mapping[str, Mapping[str, Any]], card: Card) -> str | None:
    inputs = card.input
    for part, prefixes in (("video", ("video.",)), ("state", ("state.",)), ("language", ("language.", "annotation."))):
        if "modality_keys" not in described.get(part, {}):
            continue
        wanted = {_bare(key) for key in described[part]["modality_keys"]}
        given = {_bare(entry.key) for entry in inputs if entry.key.startswith(prefixes)}
        if wanted != given:
            has = f"the card has: {', '.join(sorted(given)) or 'none'}"
            return f"the server reads {part}: {', '.join(sorted(wanted)) or 'none'}; {has}"
    for entry in inputs:
        steps = list(described.get(entry.key.split(".")[0], {}).get("delta_indices") or entry.steps)
        if entry.key.startswith(("video.", "state.")) and steps != list(entry.steps):
            return f"the server reads {entry.key!r} at the steps {steps}; the card gives {list(entry.steps)}"
    answers = [_bare(key) for key in described.get("action", {}).get("modality_keys", card.action.keys)]
    missing = [key for key in card.action.keys if key not in answers]
    if missing:
        return f"the card reads {', '.join(missing)} from the answer; the server answers with {', '.join(answers)}"
    return None


def _bare(key: str) -> str:
    """A key without the part it belongs to: N1.5 writes "video.front", N1.6 "front"."""
    for prefix in ("video.", "state.", "action.", "language."):
        key = key.removeprefix(prefix)
    return key


def build(options: Gr00tOptions, *, cell: Cell, fixture: Fixture) -> PolicyClient:
    """A policy behind a GR00T server. Raises InputError for a card that does not fit the cell."""
    card, body = card_for("policy_gr00t", options, cell)
    return PolicyClient(card, Gr00tLink(options.endpoint, card), body)
