"""Our wire against openpi's own client, in an environment of its own: it wants numpy below 2, which nothing else does.

Set OPENPI_CLIENT to the Python of one, for example:
python -m venv v && v/bin/pip install openpi-client typing_extensions && export OPENPI_CLIENT=v/bin/python
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence

import numpy as np
import pytest
from support.policies.policy_servers import FakeServer

from labctl.drivers.policy.codec import pack, unpack
from labctl.drivers.policy.inputs import padded

pytestmark = pytest.mark.interop
SAMPLES = """
import numpy as np
rng = np.random.default_rng(7)
SAMPLES = [
    {}, {"prompt": "Räume den Tisch auf", "n": 3, "flag": True, "none": None, "x": 0.5},
    {"observation/joint_position": rng.standard_normal(7), "observation/gripper_position": np.zeros(1, np.float32)},
    {"image": rng.integers(0, 255, (3, 5, 3), dtype=np.uint8), "nested": {"deep": [np.arange(3), "text"]}},
    {"scalars": [np.float32(0.1), np.int64(-5), np.uint8(7), np.bool_(True), np.float64(2.5)]},
    {"empty": np.zeros((0, 8)), "one": np.array(3.0), "half": np.ones(2, np.float16), "big": np.arange(2, dtype=">i4")},
    {"turned": np.arange(6).reshape(2, 3).T, "cut": np.arange(10)[::2]},
    {"actions": rng.standard_normal((15, 8)).astype(np.float32), "server_timing": {"infer_ms": 80.1}},
]
"""
PACK = SAMPLES + "\nfrom openpi_client import msgpack_numpy\nfor s in SAMPLES: print(msgpack_numpy.packb(s).hex())"
UNPACK = """
import sys
import numpy as np
from openpi_client import msgpack_numpy
for line in sys.stdin:
    print(msgpack_numpy.packb(msgpack_numpy.unpackb(bytes.fromhex(line))).hex())
"""
RESIZE = """
import numpy as np
from openpi_client import image_tools
rng = np.random.default_rng(3)
for height, width in ((180, 320), (480, 640), (720, 1280), (224, 224), (300, 100), (97, 131)):
    image = rng.integers(0, 255, (height, width, 3), dtype=np.uint8)
    print(image_tools.resize_with_pad(image, 224, 224).tobytes().hex())
"""
ASK = """
import sys
import numpy as np
from openpi_client.websocket_client_policy import WebsocketClientPolicy
policy = WebsocketClientPolicy("127.0.0.1", int(sys.argv[1]))
print(policy.get_server_metadata())
for joint in (0.25, 0.5):
    answer = policy.infer({"observation/joint_position": np.full(7, joint), "prompt": "go"})["actions"]
    print(answer.shape, answer.dtype, float(answer[-1, 0]))
"""


def samples() -> list[dict]:
    """The same values that the other side makes of SAMPLES."""
    made: dict = {}
    exec(SAMPLES, made)
    return made["SAMPLES"]


def theirs(program: str, *words: str, given: str = "") -> list[str]:
    """Lines that a program prints in openpi-client's environment."""
    python = os.environ.get("OPENPI_CLIENT")
    assert python, "set OPENPI_CLIENT to the Python of an environment with openpi-client"
    done = subprocess.run([python, "-c", program, *words], input=given, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def hexed(packed: Sequence[bytes]) -> list[str]:
    return [data.hex() for data in packed]


def test_our_bytes_are_theirs() -> None:
    assert hexed([pack(sample) for sample in samples()]) == theirs(PACK)


def test_their_bytes_read_here_and_sent_back_are_theirs() -> None:
    written = theirs(PACK)
    again = [pack(unpack(bytes.fromhex(line))).hex() for line in written]
    assert again == written
    assert theirs(UNPACK, given="\n".join(hexed([pack(sample) for sample in samples()]))) == written


def test_a_picture_is_padded_to_the_same_bytes() -> None:
    rng = np.random.default_rng(3)
    sizes = ((180, 320), (480, 640), (720, 1280), (224, 224), (300, 100), (97, 131))
    ours = [padded(rng.integers(0, 255, (h, w, 3), dtype=np.uint8), 224, 224).tobytes().hex() for h, w in sizes]
    assert ours == theirs(RESIZE)


def test_their_client_takes_our_fake_server_for_one_of_theirs() -> None:
    """The server that the other tests fail in every way speaks as a real one does."""
    with FakeServer(needs={"reset_pose": [0.0, 1.0]}) as server:
        said = theirs(ASK, str(server.port))
    assert said == ["{'reset_pose': [0.0, 1.0]}", "(8, 8) float32 0.25", "(8, 8) float32 0.5"]
    assert [question["prompt"] for question in server.heard] == ["go", "go"]
