"""What devices, servers and the clients of emulated controllers say, beside what `further` has.

May not: be kind, as `targets`.
"""

from __future__ import annotations

import io
import json
import socket
import struct
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image as Picture

from labctl.clock import MonotonicClock
from labctl.config.policy_card import Card, parse_card
from labctl.drivers.bridges import lerobot_openpi
from labctl.drivers.common.robot_tables import FR3, UR5E
from labctl.drivers.franka.capture import Datagram
from labctl.drivers.franka.emulator import wire as franka
from labctl.drivers.franka.emulator.robot import FciRobot
from labctl.drivers.franka.state import STATE_BYTES, samples
from labctl.drivers.policy import gr00t, roboarena
from labctl.drivers.policy.codec import pack, pack_npy, unpack
from labctl.drivers.policy.server_metadata import MODEL_TIMES, resources_reported, seconds_reported
from labctl.drivers.ros2.camera import _decoded, _raw
from labctl.drivers.ros2.messages import CompressedImage, Image
from labctl.drivers.sim.control_link import ControlLink
from labctl.drivers.sim.control_port import Arguments, Number, Words, _answer, _verbs, checked_fault
from labctl.drivers.sim.plant import SimulatedPlant
from labctl.drivers.teleop.pucks import PUCKS, deflection
from labctl.drivers.ur import version
from labctl.drivers.ur.emulator.body import Body
from labctl.drivers.ur.emulator.dashboard import Dashboard
from labctl.drivers.ur.emulator.robot_api import RobotApiServer, request_end
from labctl.drivers.ur.robot_api import BASE, RobotApi
from labctl.reporting.times.spans import send
from labctl.store.verifying import timestamps
from labctl.testing.given import FIXTURE
from support.fuzzing.further import HTTP, Answering, served
from support.robots.emulators import address

ROOT = Path(__file__).resolve().parents[3]


@cache
def _card(name: str) -> Card:
    path = ROOT / "protocols" / "cards" / f"{name}.toml"
    return parse_card(path.read_text("utf-8"), path.name)


def greetings() -> list[bytes]:
    """What policy servers say of themselves, in openpi's and RoboArena's dialect."""
    sizes = {"gpu_memory_mb": 1e4, "model": {"model_size_gib": 6, "num_params": 3_000_000_000}, "image": [1, 2]}
    needs = {"action_space": "joint_position", "n_external_cameras": 2, "needs_wrist_camera": True}
    timing = {"policy_timing": {"infer_ms": 40.0}, "server_timing": {"infer_ms": 55.0}}
    return [pack(sizes), pack({**needs, "image_resolution": [224, 224], "needs_session_id": False}), pack(timing)]


def greeting(data: bytes, folder: Path) -> object:
    """As both dialects and the report take it."""
    told = unpack(data)
    if not isinstance(told, dict):
        return None
    found = resources_reported(told), seconds_reported(told, MODEL_TIMES)
    return found, roboarena.misfit(told, _card("roboarena_droid"))


def descriptions() -> list[bytes]:
    """How GR00T's servers describe themselves, N1.5 and later."""
    part = {"delta_indices": [0], "modality_keys": ["exterior_image_1_left", "wrist_image_left"]}
    table = {"video": part, "state": {"delta_indices": [0], "modality_keys": ["joint_position"]}}
    return [pack_npy(table), pack_npy({name: json.dumps(one) for name, one in table.items()})]


def description(data: bytes, folder: Path) -> object:
    """As `Gr00tLink.connect` takes it."""
    link, told = gr00t.Gr00tLink("tcp://127.0.0.1:1", _card("gr00t_n17_droid")), iter((data, data))
    link.__dict__.update(_exchange=lambda request, timeout_s: next(told))
    return link.connect(1.0)


def bridge(data: bytes, folder: Path) -> object:
    """A question to the bridge: what it answers with is its caller's."""
    with suppress(ValueError, KeyError, TypeError, AttributeError, SyntaxError, OverflowError):
        return lerobot_openpi.unpack(data)
    return None


def pictures() -> list[bytes]:
    """A raw picture of ROS 2 as its fields and bytes, and compressed ones."""
    made = []
    for kind in ("PNG", "JPEG"):
        held = io.BytesIO()
        Picture.new("RGB", (8, 6), (200, 10, 30)).save(held, kind)
        made.append(held.getvalue())
    return [struct.pack("<III", 2, 2, 6) + b"rgb8" + bytes(12), *made]


def picture(data: bytes, folder: Path) -> object:
    """Either as bytes of a compressed picture, or as a raw one whose fields are what they are."""
    if len(data) >= 16 and data[12:16] in (b"rgb8", b"bgr8"):
        height, width, step = struct.unpack_from("<III", data)
        fields: dict[str, Any] = {"height": height, "width": width, "step": step, "encoding": data[12:16].decode()}
        return _raw(Image(**fields, is_bigendian=0, data=data[16:]))
    return _decoded(CompressedImage(format="jpeg", data=data))


def pucks(data: bytes, folder: Path) -> None:
    for puck in PUCKS.values():
        deflection(puck, data)


def states() -> list[bytes]:
    return [bytes(STATE_BYTES), struct.pack("<Q", 1) + bytes(STATE_BYTES - 9) + b"\x03"]


def state(data: bytes, folder: Path) -> object:
    """What `Capture` lets through: as long as a state is."""
    if len(data) != STATE_BYTES:
        data = data.ljust(STATE_BYTES, b"\xff")[:STATE_BYTES]
    one = Datagram(data)
    with np.errstate(all="ignore"):
        return one.mode, one.errors, one.pose_c, samples([one])


@cache
def _fci() -> FciRobot:
    return FciRobot(SimulatedPlant(FR3, FIXTURE, 0.001, now_ns=0), address())


def fci_requests() -> list[bytes]:
    """Each request of a client once, and all of them."""
    made = []
    for command, size in franka.SIZES.items():
        payload = struct.pack("<HH", franka.ROBOT_VERSION, 5000).ljust(size, b"\0")[:size]
        made.append(franka.HEADER.pack(command, 7, franka.HEADER.size + size) + payload)
    return [*made, b"".join(made)]


def fci(data: bytes, folder: Path) -> None:
    """Bytes of a client to the emulated robot; it steps once afterwards."""
    own, other = socket.socketpair()
    own.setblocking(False)
    robot = _fci()
    robot.__dict__.update(_tcp=own, _host="127.0.0.1", _rest=b"")
    with np.errstate(all="ignore"):  # a load of 10^300 kg is one
        served(robot.read, data, other, own)
    if robot._tcp is not None:
        robot.drop_client()


@cache
def _dashboard() -> Dashboard:
    return Dashboard(Body(UR5E, 0.002), "UR5", "10.12.0", "1", lambda: None)


def dashboard(data: bytes, folder: Path) -> object:
    """A line that a client sent to an emulated dashboard."""
    return _dashboard().answer(data.decode(errors="replace")).encode()


def api_requests() -> list[bytes]:
    def request(method: str, path: str, body: str = "") -> bytes:
        return f"{method} {BASE}{path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()

    return [
        request("GET", "/system/v1/controlmode"),
        request("PUT", "/robotstate/v1/state", '{"action": "POWER_ON"}'),
        request("PUT", "/program/v1/state", '{"action": "stop"}') + request("GET", "/openapi.json"),
    ]


def api_request(data: bytes, folder: Path) -> None:
    """As the emulator's server parts and answers them."""
    server, rest = RobotApiServer(_dashboard(), (10, 12, 0, 0)), data.decode("utf-8", "replace")
    while end := request_end(rest):
        server.answer(rest[:end]).encode()
        rest = rest[end:]


ARGUMENTS: Arguments = {"deaf": {"s": Number(), "n": Number(whole=True), "to": Words()}}


class _Emulator:
    """As much of one as its control port asks."""

    name, ports, faults = "none", {}, {"deaf": "hears nothing"}

    def __init__(self) -> None:
        self.plant = SimulatedPlant(FR3, FIXTURE, 0.001, now_ns=0)

    def inject(self, name: str, args: Any) -> None:
        checked_fault(name, args, self.faults, ARGUMENTS)

    def clear(self) -> None: ...
    def stats(self) -> dict[str, Any]:
        return {}


@cache
def _control() -> Any:
    import threading

    return _verbs(_Emulator(), threading.Event())  # type: ignore[arg-type]


def control_requests() -> list[bytes]:
    condition = '{"object": "batteries", "layout": "grid", "items": 3}'
    staged = f'{{"do": "stage", "condition": {condition}, "seed": 3}}\n'
    return [staged.encode(), b'{"do": "sense"}\n', b'{"do": "fault", "name": "deaf", "args": {"s": 1}}\n']


def control_request(data: bytes, folder: Path) -> object:
    """A line at an emulator's control port."""
    return json.dumps(_answer(_control(), data))


def control_answer(data: bytes, folder: Path) -> object:
    """What a driver of simulated fingers or scenes is told by an emulator."""
    own, other = socket.socketpair()
    with own, other:
        other.sendall(data[:60_000])
        other.shutdown(socket.SHUT_WR)
        link = ControlLink("127.0.0.1")
        link.__dict__.update(_socket=own)
        return link.ask({"do": "sense"})


def versions() -> list[bytes]:
    head = version.HEAD
    accepted = head.pack(head.size + 1, version.VERSION_2) + b"\x01"
    return [accepted + head.pack(head.size + 16, version.VERSION) + version.ASKED.pack(5, 11, 0, 1)]


def controller_version(data: bytes, folder: Path) -> object:
    """What a controller answers to who asks for its version."""
    own, other = socket.socketpair()
    with other:
        other.sendall(data[:60_000])
        other.shutdown(socket.SHUT_WR)
        before = socket.create_connection
        version.socket.create_connection = lambda *_: own  # type: ignore[assignment]
        try:
            return version.controller_version("h", 1.0)
        finally:
            version.socket.create_connection = before


@cache
def _server() -> Answering:
    return Answering()


def _answered(ask: Callable[[str], object]) -> Callable[[bytes, Path], object]:
    """Ask a server whose answer is these bytes."""

    def parse(data: bytes, folder: Path) -> object:
        server = _server()
        server.bytes = data[:60_000]
        return ask(server.address)

    return parse


def _robot_api(address: str) -> object:
    api = RobotApi("127.0.0.1", int(address.rstrip("/").rpartition(":")[2]))
    api._do("power on", "POWER_ON")
    return api.in_remote_control()


def _planner(address: str) -> object:
    from labctl.checks.planner import Planner

    return Planner("m", address)._ask("which?", [])


def _authority(address: str) -> object:
    at = timestamps.Authority(address, b"", 1.0)
    return timestamps._ask(at, b"q", MonotonicClock())


ANSWERS = (
    *HTTP,
    b'HTTP/1.1 200 OK\r\nContent-Length: 18\r\n\r\n{"mode": "REMOTE"}',
    b"HTTP/1.1 307 Moved\r\nLocation: /universal-robots/robot-api/v2/state\r\nContent-Length: 0\r\n\r\n",
    b'HTTP/1.1 200 OK\r\nContent-Length: 45\r\n\r\n{"choices": [{"message": {"content": "A."}}]}',
)
robot_api, planner, authority = _answered(_robot_api), _answered(_planner), _answered(_authority)
collector = _answered(lambda address: send(b"{}", address))
