"""A client that reads the example recipe of Universal Robots' own C++ client from our emulator, by RTDE alone.

The C++ library is not on a package index: `make peer-ur-recipe UR_RECIPE=FILE` takes the recipe of its repository as a
file. The client below speaks the RTDE guide's protocol version 2 and shares no code with labctl.
"""

from __future__ import annotations

import os
import socket
import struct
from itertools import pairwise
from pathlib import Path

import pytest
from support.robots.emulators import Emulator

pytestmark = pytest.mark.interop

WIDTHS = {"DOUBLE": "d", "VECTOR6D": "6d", "VECTOR3D": "3d", "UINT32": "I", "INT32": "i", "UINT64": "Q", "UINT8": "B"}
WIDTHS |= {"BOOL": "?", "VECTOR6INT32": "6i", "VECTOR6UINT32": "6I"}


def ask(sock: socket.socket, kind: str, body: bytes = b"") -> bytes:
    sock.sendall(struct.pack(">HB", 3 + len(body), ord(kind)) + body)
    return heard(sock, kind)


def heard(sock: socket.socket, kind: str) -> bytes:
    """The body of the next message of a kind."""
    while True:
        size, said = struct.unpack(">HB", sock.recv(3, socket.MSG_WAITALL))
        body = sock.recv(size - 3, socket.MSG_WAITALL)
        if said == ord(kind):
            return body


@pytest.mark.parametrize("name", ["ur5e", "ur20"])
def test_every_field_of_the_recipe_is_served_and_stays_within_what_it_can_be(name: str) -> None:
    recipe = os.environ.get("UR_RECIPE")
    assert recipe, "set UR_RECIPE to the client library's examples/resources/rtde_output_recipe.txt"
    fields = Path(recipe).read_text().split()
    emulator = Emulator(name)
    try:
        with socket.create_connection((emulator.host, 30004), 5.0) as sock:
            assert ask(sock, "V", struct.pack(">H", 2)) == b"\1"
            answer = ask(sock, "O", struct.pack(">d", 125.0) + ",".join(fields).encode())
            kinds = answer[1:].decode().split(",")
            missing = [one for one, kind in zip(fields, kinds, strict=True) if kind == "NOT_FOUND"]
            assert not missing
            assert ask(sock, "S") == b"\1"
            unpacked = struct.Struct(">B" + "".join(WIDTHS[kind] for kind in kinds))
            rows = [unpacked.unpack(heard(sock, "U")) for _ in range(50)]
    finally:
        emulator.end()
    at = [1]
    for kind in kinds:
        at.append(at[-1] + int(WIDTHS[kind][:-1] or 1))
    values = {one: [row[a:b] for row in rows] for one, a, b in zip(fields, at[:-1], at[1:], strict=True)}
    times = [one[0] for one in values["timestamp"]]
    assert all(later > earlier for earlier, later in pairwise(times))
    assert values["robot_mode"][-1] == (7,) and values["safety_mode"][-1] == (1,), "running, normal"
    assert values["speed_scaling"][-1] == values["target_speed_fraction"][-1] == (1.0,)
    assert 0.05 < values["tcp_offset"][-1][2] < 0.3 or values["tcp_offset"][-1] == (0.0,) * 6
