"""The LeRobot bridge, with a policy in the place of LeRobot's: it speaks as openpi's server does, errors and all."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from support.policies.cards import CAMERA, card
from support.policies.observations import GIVEN, SEEN, Q

from labctl.devices import load
from labctl.drivers.bridges import lerobot_openpi as bridge
from labctl.drivers.policy import codec
from labctl.errors import DeviceRefused

LONG_S = 60.0  # of nothing here a wait


class Policy:
    """What the bridge asks of a LeRobot policy."""

    about: dict[str, Any] = {  # noqa: RUF012
        "policy": "act",
        "inputs": {"observation.state": [7]},
        "resources": {"parameters": 52_000_000, "model_bytes": 208_000_000},
    }

    def __init__(self) -> None:
        self.resets = 0
        self.heard: list[dict[str, Any]] = []

    def reset(self) -> None:
        self.resets += 1

    def resources(self) -> dict[str, int]:
        return {"gpu_memory_bytes": 1_500_000_000}

    def infer(self, question: dict[str, Any]) -> np.ndarray:
        if "observation.state" not in question:
            raise KeyError("this policy reads observation.state; missing: observation.state")
        self.heard.append(question)
        return np.append(np.tile(question["observation.state"], (6, 1)), np.zeros((6, 1)), axis=1).astype(np.float32)


@contextmanager
def served(policy: Policy) -> Iterator[int]:
    """The port of a bridge that serves a policy from a loop in another thread."""
    ready: list[int] = []
    loop, started = asyncio.new_event_loop(), threading.Event()
    over = asyncio.Event()

    async def run() -> None:
        async with bridge.server(policy, "127.0.0.1", 0) as listening:
            ready.append(next(iter(listening.sockets)).getsockname()[1])
            started.set()
            await over.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(run(),))
    thread.start()
    assert started.wait(60)
    yield ready[0]
    loop.call_soon_threadsafe(over.set)
    thread.join(60)
    loop.close()


def client(port: int, prefix: str = "observation.") -> Any:
    made = card(inputs=CAMERA.format(key="observation.images.wrist", camera="wrist"))
    made["input"][0]["key"] = f"{prefix}state"
    made["timing"]["give_up_s"] = made["server"]["ready_s"] = LONG_S
    return load("policy_openpi", {"card": made, "endpoint": f"ws://127.0.0.1:{port}"}, **GIVEN)


def test_our_client_asks_and_each_connection_is_a_new_episode():
    with served(Policy()) as port:
        for _ in range(2):
            policy = client(port)
            policy.load()
            chunk = policy.infer(SEEN)
            policy.close()
            assert np.allclose(chunk.values, Q, atol=1e-6) and chunk.execute == 4 and 0 <= chunk.server_s < LONG_S


def test_it_tells_the_size_of_its_model_and_the_memory_it_holds():
    with served(Policy()) as port:
        policy = client(port)
        policy.load()
        assert policy.told == {"parameters": 52e6, "model_mb": 208.0}
        policy.warm(SEEN)
        assert policy.told["gpu_memory_mb"] == policy.infer(SEEN).gpu_memory_mb == pytest.approx(1500.0)
        policy.close()


def test_a_new_connection_resets_the_policy_once():
    lerobots = Policy()
    with served(lerobots) as port:
        for _ in range(2):
            policy = client(port)
            policy.load()
            policy.infer(SEEN)
            policy.infer(SEEN)
            policy.close()
    assert lerobots.resets == 2 and len(lerobots.heard) == 4
    assert lerobots.heard[0]["observation.images.wrist"].shape == (48, 64, 3)


def test_a_question_it_cannot_answer_comes_back_in_words(capfd: pytest.CaptureFixture[str]):
    with served(Policy()) as port:
        policy = client(port, prefix="other.")
        policy.load()
        with pytest.raises(DeviceRefused, match=r"this policy reads observation\.state; missing"):
            policy.infer(SEEN)
        policy.close()


def test_it_says_that_it_is_well():
    with served(Policy()) as port, urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
        assert answer.status == 200 and answer.read() == b"OK\n"


@given(npst.arrays(st.sampled_from([np.dtype("<f4"), np.dtype("|u1"), np.dtype("<i8")]), npst.array_shapes(max_side=3)))
def test_its_bytes_are_the_codecs(array: np.ndarray):
    value = {"a": array, "n": np.float32(0.5), "t": ["å", 1]}
    assert bridge.pack(value) == codec.pack(value)
    assert bridge.unpack(bridge.pack(value))["a"].tobytes() == array.tobytes()


def test_it_needs_nothing_of_labctl(tmp_path: Path):
    """As a copy, in a Python that cannot see labctl, it says what it wants."""
    target = tmp_path / "serve.py"
    wrote = [sys.executable, "-m", "labctl.drivers.bridges", "lerobot", str(target)]
    assert subprocess.run(wrote, capture_output=True).returncode == 0
    again = subprocess.run(wrote, capture_output=True, text=True)
    assert again.returncode == 2 and "nothing was written" in again.stderr, "a file is never written over"
    source = target.read_text()
    assert "labctl" not in source.split('"""')[2], "no import of labctl"
    told = subprocess.run([sys.executable, str(target), "--help"], capture_output=True, text=True)
    assert told.returncode == 0 and "--device" in told.stdout
    lost = subprocess.run([sys.executable, str(target), "nowhere"], capture_output=True, text=True)
    assert lost.returncode == 1 and "no LeRobot 0.4 or later" in lost.stderr and "Traceback" not in lost.stderr
