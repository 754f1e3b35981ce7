"""A GR00T policy server on loopback, of either calling convention, that answers well or in one of the ways that fail.

It speaks with its own bytes (msgpack and numpy alone, not the code under test) and takes requests as strictly as the
real ones: N1.6 calls its policy with keywords, N1.5 with the observation itself.
"""

from __future__ import annotations

import io
import json
import threading
from typing import Any, Self

import msgpack
import numpy as np
import zmq

from labctl.drivers.policy.codec import ANSWER_BYTES

VIDEO, STATE = ("front",), ("joint_position",)
ACTIONS = ("joint_position", "gripper_position")
TASK = {"n1.5": "annotation.human.action.task_description", "n1.6": "annotation.human.task_description"}


def packed(value: Any) -> bytes:
    def array(found: np.ndarray) -> dict[str, Any]:
        file = io.BytesIO()
        np.save(file, found)
        return {"__ndarray_class__": True, "as_npy": file.getvalue()}

    return msgpack.packb(value, default=array)


def unpacked(data: bytes) -> Any:
    def array(found: dict[str, Any]) -> Any:
        return np.load(io.BytesIO(found["as_npy"])) if "__ndarray_class__" in found else found

    return msgpack.unpackb(data, object_hook=array)


class FakeGr00t:
    """See the module. faults, from the `after`-th action on: block, error, bare_error, flat_reply, wrong_shape, nan,
    no_gripper, torch, garbage, text; at once: token, nameless (it does not describe itself), silent (no answer at all).
    """

    def __init__(
        self,
        convention: str = "n1.6",
        *,
        fault: str | None = None,
        after: int = 0,
        video: tuple[str, ...] = (),
        steps: tuple[int, ...] = (0,),
        task: bool = True,
        info: dict[str, Any] | None = None,
        port: int = 0,
    ) -> None:
        self._convention, self._fault, self._after = convention, fault, after
        self._video, self._steps, self._task = video, steps, task
        self._info = info or {}  # beside the actions of N1.6
        self.heard: list[Any] = []
        self.resets = 0
        self.over = threading.Event()
        self._context = zmq.Context()
        self._socket = self._context.socket(zmq.REP)
        self._socket.linger = 0
        self._socket.bind(f"tcp://127.0.0.1:{port or '*'}")
        self.uri = self._socket.getsockopt_string(zmq.LAST_ENDPOINT)
        self.port = int(self.uri.rpartition(":")[2])
        self._thread = threading.Thread(target=self._serve, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._thread.join(5)
        self._context.destroy(linger=0)

    def _serve(self) -> None:
        while not self.over.is_set():
            if not self._socket.poll(20):
                continue
            request = self._socket.recv()
            if self._fault == "silent":
                self.over.wait()
                return
            try:
                reply = self._answer(unpacked(request))
            except Exception as error:
                reply = packed({"error": str(error)})
            if reply is not None:
                self._socket.send(reply)

    def _answer(self, request: dict[str, Any]) -> bytes | None:
        if self._fault == "token" and request.get("api_token") != "secret":
            return packed({"error": "Unauthorized: Invalid API token"})
        endpoint = request.get("endpoint", "get_action")
        if endpoint == "ping":
            return packed({"status": "ok", "message": "Server is running"})
        if endpoint == "get_modality_config":
            return packed({} if self._fault == "nameless" else self._described())
        if endpoint == "reset" and self._convention == "n1.6":
            self.resets += 1
            return packed(self._reset(**request["data"]))
        if endpoint != "get_action":
            raise ValueError(f"Unknown endpoint: {endpoint}")
        data = request["data"]
        actions = self._act(**data) if self._convention == "n1.6" else self._act_flat(data)
        if self._fault is None or len(self.heard) <= self._after:
            return packed(actions)
        return self._fail(actions)

    def _fail(self, actions: Any) -> bytes | None:
        match self._fault:
            case "block":
                self.over.wait()
                return None
            case "error":
                raise RuntimeError("CUDA out of memory\nTried to allocate 2.00 GiB")
            case "huge":
                return bytes(ANSWER_BYTES + 1)
            case "bare_error":
                return b"ERROR"
            case "flat_reply":
                return packed({f"action.{key}": value[0] for key, value in actions[0].items()})
            case "wrong_shape":
                return packed([{key: np.zeros((1, 16, 5), np.float32) for key in ACTIONS}, {}])
            case "nan":
                return packed([{key: np.full_like(value, np.nan) for key, value in actions[0].items()}, {}])
            case "no_gripper":
                return packed([{"joint_position": actions[0]["joint_position"]}, {}])
            case "torch":
                return b"PK\x03\x04 archive/data.pkl"
            case "garbage":
                return b"\xc1\x00"
            case "text":
                return packed("busy")
        return packed(actions)

    def _described(self) -> dict[str, Any]:
        flat = self._convention == "n1.5"
        task = TASK[self._convention]
        keys = {"video": self._video, "state": STATE, "action": ACTIONS, "language": (task,) if self._task else ()}
        made = {}
        for part, names in keys.items():
            steps = list(self._steps) if part == "video" else list(range(16)) if part == "action" else [0]
            named = [f"{part}.{name}" if flat and part != "language" else name for name in names]
            config = {"delta_indices": steps, "modality_keys": named}
            made[part] = {"__ModalityConfig_class__": True, "as_json": json.dumps(config) if flat else config}
        return made

    def _reset(self, options: Any) -> dict[str, Any]:
        return {}

    def _act(self, observation: dict[str, Any], options: Any) -> list[Any]:
        """N1.6: a batch, a time axis, float32 and uint8, text in two lists; anything else is an error."""
        self.heard.append(observation)
        state = observation["state"]["joint_position"]
        if state.dtype != np.float32 or state.shape != (1, 1, 7):
            raise ValueError(f"State key 'joint_position' must be float32 (B, T, D), got {state.dtype} {state.shape}")
        for name in self._video:
            video = observation["video"][name]
            if video.dtype != np.uint8 or video.ndim != 5 or video.shape[1] != len(self._steps):
                raise ValueError(f"Video key {name!r} must be uint8 (B, T, H, W, C), got {video.dtype} {video.shape}")
        if self._task and not isinstance(observation["language"][TASK["n1.6"]][0][0], str):
            raise ValueError("Language must be a list of lists of text")
        joints = np.tile(state[:, :1], (1, 16, 1))
        return [{"joint_position": joints, "gripper_position": np.zeros((1, 16, 1), np.float32)}, self._info]

    def _act_flat(self, observation: dict[str, Any]) -> dict[str, Any]:
        """N1.5: whole keys, a time axis, no batch."""
        self.heard.append(observation)
        state = observation["state.joint_position"]
        assert state.shape == (1, 7) and isinstance(observation[TASK["n1.5"]], list)
        joints = np.tile(state, (16, 1))
        return {"action.joint_position": joints, "action.gripper_position": np.zeros((16, 1), np.float32)}
