"""Serves a LeRobot policy in openpi's websocket dialect. One file: copy it to where LeRobot is installed, run it there.

    pip install msgpack websockets        # beside lerobot 0.4 or later
    python lerobot_openpi.py PATH_OR_HUB_NAME --port 8000 --device cuda

A question is one table with LeRobot's own keys: "observation.state" (D,), "observation.images.NAME" (height, width, 3)
uint8 RGB, "task" text. The answer is {"actions": (n, D) float32, "server_timing": {"infer_ms"}}: a whole chunk, after
the policy's own post-processing; on a GPU also "resources": {"gpu_memory_bytes"}. The metadata tells parameters,
their size and the versions that it runs on. Each connection begins a new episode: the policy is reset.

May not: serve a policy that wants several observations at once (a client sends one each time), or import labctl.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import threading
import traceback
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

import msgpack
import numpy as np
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed

ODD = frozenset("OVcUSMm")  # kinds of dtype that do not travel


def pack(value: Any) -> bytes:
    """Bytes of plain values and arrays, as openpi's client reads them."""

    def extend(found: Any) -> Any:
        if not isinstance(found, np.ndarray | np.generic) or found.dtype.kind in ODD:
            raise ValueError(f"a {type(found).__name__} does not travel")
        if isinstance(found, np.generic):
            return {b"__npgeneric__": True, b"data": found.item(), b"dtype": found.dtype.str}
        return {b"__ndarray__": True, b"data": found.tobytes(), b"dtype": found.dtype.str, b"shape": found.shape}

    packed: Any = msgpack.packb(value, default=extend)  # bytes: None with a stream alone
    return packed


def unpack(data: bytes) -> Any:
    """The reverse of `pack`."""

    def restore(found: dict[Any, Any]) -> Any:
        is_array = b"__ndarray__" in found
        if not is_array and b"__npgeneric__" not in found:
            return found
        dtype = np.dtype(found[b"dtype"])
        if dtype.kind in ODD:
            raise ValueError(f"values of dtype {dtype} do not travel")
        return np.frombuffer(found[b"data"], dtype).reshape(found[b"shape"]) if is_array else dtype.type(found[b"data"])

    return msgpack.unpackb(data, object_hook=restore)


def installed(*names: str) -> dict[str, str]:
    """The versions of those distributions that are there."""
    found: dict[str, str] = {}
    for name in names:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found


class Policy:
    """A LeRobot policy with the processing that its checkpoint says. Raises SystemExit with one line when it cannot be
    served.
    """

    def __init__(self, path: str, device: str) -> None:
        try:
            from lerobot.configs.policies import PreTrainedConfig  # pyright: ignore[reportMissingImports]
            from lerobot.policies.factory import (  # pyright: ignore[reportMissingImports]
                get_policy_class,
                make_pre_post_processors,
            )
        except ImportError as error:
            raise SystemExit(f"this Python has no LeRobot 0.4 or later ({error}); use the one you train with") from None
        config = PreTrainedConfig.from_pretrained(path)
        config.device = device
        steps = getattr(config, "n_obs_steps", 1)
        if steps > 1:
            raise SystemExit(f"a {config.type} policy reads {steps} observations at once; this bridge hands over one")
        self._policy = get_policy_class(config.type).from_pretrained(path, config=config).to(device).eval()
        self._before, self._after = make_pre_post_processors(
            policy_cfg=config,
            pretrained_path=path,
            preprocessor_overrides={"device_processor": {"device": device}},
        )
        self._device = device
        self._alone = threading.Lock()
        self.reads = {name: list(feature.shape) for name, feature in config.input_features.items()}
        self.about = {"bridge": "lerobot", "policy": config.type, "weights": path, "inputs": self.reads}
        self.about["outputs"] = {name: list(feature.shape) for name, feature in config.output_features.items()}
        weights = list(self._policy.parameters())
        size = sum(part.numel() * part.element_size() for part in weights)
        self.about["resources"] = {"parameters": sum(part.numel() for part in weights), "model_bytes": size}
        self.about["versions"] = installed("lerobot", "torch", "transformers", "numpy") | {"python": python_version()}

    def reset(self) -> None:
        """Forget what an earlier episode left."""
        with self._alone:
            self._policy.reset()

    def infer(self, question: dict[str, Any]) -> np.ndarray:
        """Actions (n, D) float32. Raises KeyError that says what the policy reads and what it was given."""
        import torch  # pyright: ignore[reportMissingImports]

        missing = [name for name in self.reads if name not in question]
        if missing:
            text = f"it got {', '.join(sorted(question))}"
            raise KeyError(f"this policy reads {', '.join(self.reads)}; missing: {', '.join(missing)}; {text}")
        batch: dict[str, Any] = {"task": str(question.get("task", ""))}
        for name in self.reads:
            batch[name] = self._tensor(question[name], torch)[None].to(self._device)
        with self._alone, torch.inference_mode():
            chunk = self._policy.predict_action_chunk(self._before(batch))
            actions = [self._after(chunk[:, i, :]) for i in range(chunk.shape[1])]
        return torch.cat(actions).to("cpu", torch.float32).numpy()

    def resources(self) -> dict[str, int]:
        """The GPU memory that was held at most so far; nothing on a CPU."""
        import torch  # pyright: ignore[reportMissingImports]

        if not self._device.startswith("cuda"):
            return {}
        return {"gpu_memory_bytes": torch.cuda.max_memory_reserved(self._device)}

    @staticmethod
    def _tensor(value: Any, torch: Any) -> Any:
        found = np.asarray(value)
        if found.dtype == np.uint8:  # a picture: colour first, from 0 to 1
            return torch.from_numpy(np.ascontiguousarray(np.moveaxis(found, -1, -3))).to(torch.float32) / 255
        return torch.from_numpy(np.array(found, np.float32))


def server(policy: Any, host: str, port: int) -> Any:
    """The websocket server of a policy (`about`, `reset`, `infer`, `resources`), to be entered in a running loop."""

    async def talk(connection: ServerConnection) -> None:
        try:
            await asyncio.to_thread(policy.reset)
            await connection.send(pack(policy.about))
            async for message in connection:
                began = asyncio.get_running_loop().time()
                question: Any = message
                actions = await asyncio.to_thread(policy.infer, unpack(question))
                infer_ms = 1000 * (asyncio.get_running_loop().time() - began)
                answer: dict[str, Any] = {"actions": actions, "server_timing": {"infer_ms": infer_ms}}
                if held := policy.resources():
                    answer["resources"] = held
                await connection.send(pack(answer))
        except ConnectionClosed:
            return
        except Exception:
            await connection.send(traceback.format_exc())
            await connection.close(1011, "Internal server error. Traceback included in previous frame.")

    def healthy(connection: ServerConnection, request: Any) -> Any:
        return connection.respond(HTTPStatus.OK, "OK\n") if request.path == "/healthz" else None

    return serve(talk, host, port, compression=None, max_size=None, ping_interval=None, process_request=healthy)


async def run(policy: Any, host: str, port: int, say: Callable[[str], object]) -> None:
    """Serve until cancelled; says where once it listens."""
    async with server(policy, host, port) as listening:
        where = next(iter(listening.sockets)).getsockname()
        text = f"serving {policy.about['policy']} at ws://{where[0]}:{where[1]}"
        say(f"{text}; it reads {policy.about['inputs']}\n")
        await listening.serve_forever()


def main() -> None:
    """Read the command line, load the policy, serve it."""
    words = argparse.ArgumentParser(description="Serve a LeRobot policy in openpi's websocket dialect.")
    words.add_argument("path", help="a checkpoint folder (…/pretrained_model) or a name on the hub")
    words.add_argument("--host", default="127.0.0.1", help="0.0.0.0 to serve other machines (default: this one alone)")
    words.add_argument("--port", type=int, default=8000)
    words.add_argument("--device", default="cuda", help="cuda, cpu or mps (default: cuda)")
    given = words.parse_args()
    policy = Policy(given.path, given.device)
    try:
        asyncio.run(run(policy, given.host, given.port, sys.stderr.write))
    except KeyboardInterrupt:
        sys.exit(0)


if __name__ == "__main__":
    main()
