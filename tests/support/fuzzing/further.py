"""What else comes from outside: databases and publications that a stranger made, and what talks over a socket.

May not: be kind, as `targets`. A server of an emulator returns, whatever a client sends; a driver's reader raises what
its caller expects of a device.
"""

from __future__ import annotations

import io
import socket
import sqlite3
import tempfile
import threading
import zipfile
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from cyclonedds.idl import IdlStruct

from labctl.alerts.sending import _post
from labctl.config.policy_card import Card, parse_card
from labctl.drivers.franka.emulator import wire as franka
from labctl.drivers.franka.emulator.hand import PAYLOADS, FciHand
from labctl.drivers.policy.actions import answer_rows, to_chunk
from labctl.drivers.policy.codec import pack, unpack
from labctl.drivers.robotiq.emulator.rtu import RobotiqRtu
from labctl.drivers.robotiq.emulator.server import _answer as gripper_answer
from labctl.drivers.robotiq.socket import SocketWire
from labctl.drivers.ros2.messages import CompressedImage, Image, JointState
from labctl.drivers.sensors.line_options import LinesOptions
from labctl.drivers.sensors.lines import reader
from labctl.drivers.ur.emulator import rtde_wire
from labctl.drivers.ur.emulator.rtde_server import RtdeServer, Session
from labctl.errors import LabctlError
from labctl.publishing.archive import unpacked
from labctl.publishing.guard import admit
from labctl.store.chunks import Chunk
from labctl.store.database_backend import sqlite_url
from labctl.store.published_files import JOURNAL, TRACES, check_file
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign
from labctl.streams import StreamSpec

ROOT = Path(__file__).resolve().parents[3]
PUBLISHED = ROOT / "docs" / "published" / "simulated-cell"
RECORD = PUBLISHED / "campaigns" / "simulated-cell"


@cache
def _journals() -> list[bytes]:
    """A journal of six entries: small, so that a change hits something."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "journal.db"
        path.write_bytes((RECORD / "journal.db").read_bytes())
        db = sqlite3.connect(path)
        db.executescript("DELETE FROM event WHERE seq > 6; VACUUM;")
        db.close()
        return [path.read_bytes()]


def _journal(data: bytes, folder: Path) -> object:
    """As a stranger's, and as one's own that was damaged."""
    for name in ("cell.toml", "fixture.toml", "heads.log"):
        (folder / name).symlink_to(RECORD / name)
    (folder / "journal.db").write_bytes(data)
    try:
        check_file(folder / "journal.db", JOURNAL, "journal.db")
    except LabctlError as error:
        _line(error)
    for problem in verify_campaign(folder, recordings=()).problems:
        _line(problem)
    return None


@cache
def _traces() -> list[bytes]:
    with tempfile.TemporaryDirectory() as name:
        url = sqlite_url(Path(name) / "traces.db")
        store, spec = TraceStore.create(url, "c"), StreamSpec("q", ("a", "b"), "rad", 100.0, "<f4")
        store.declare("e-1", [spec])
        store.write("e-1", [Chunk("q", n, np.arange(5) + 5 * n, np.ones((5, 2))) for n in range(3)])
        store.close()
        db = sqlite3.connect(Path(name) / "traces.db")
        db.executescript("PRAGMA journal_mode=DELETE; VACUUM;")
        db.close()
        return [(Path(name) / "traces.db").read_bytes()]


def _trace(data: bytes, folder: Path) -> object:
    (folder / "traces.db").write_bytes(data)
    try:
        check_file(folder / "traces.db", TRACES, "traces.db")
    except LabctlError as error:
        _line(error)
    store = TraceStore.open(sqlite_url(folder / "traces.db"), "c", readonly=True)
    try:
        for spec in store.streams("e-1"):
            store.read("e-1", spec.name)
        return store.check("e-1", store.seal("e-1"))
    finally:
        store.close()


def _line(said: object) -> None:
    text = str(said)
    assert text.strip() and "\n" not in text and "\r" not in text, f"not one line: {text[:200]!r}"


def _manifest(data: bytes, folder: Path) -> object:
    (folder / "published.json").write_bytes(data)
    return admit(folder)


def _archives() -> list[bytes]:
    made = []
    for kind in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        held = io.BytesIO()
        with zipfile.ZipFile(held, "w", kind) as packed:
            packed.writestr("published.json", (PUBLISHED / "published.json").read_bytes())
            packed.writestr("campaigns/simulated-cell/heads.log", b"1 " + b"ab" * 32 + b"\n" * 3)
        made.append(held.getvalue())
    return made


def _archive(data: bytes, folder: Path) -> object:
    (folder / "a.zip").write_bytes(data)
    with unpacked(folder / "a.zip") as inside:
        return sorted(inside.rglob("*"))


def _rtde() -> list[bytes]:
    def message(kind: int, body: bytes) -> bytes:
        return rtde_wire.message(kind, body)

    outputs = message(rtde_wire.OUTPUTS, bytes(8) + b"actual_q,timestamp,output_int_register_0")
    inputs = message(rtde_wire.INPUTS, b"input_int_register_20,input_double_register_3,speed_slider_mask")
    data = message(rtde_wire.DATA, b"\x01" + bytes(16))
    start = message(rtde_wire.PROTOCOL, b"\0\2") + message(rtde_wire.VERSION, b"")
    return [start + outputs + inputs + message(rtde_wire.START, b"") + data, outputs, inputs + data]


def served(read: Callable[[socket.socket], object], data: bytes, other: socket.socket, own: socket.socket) -> None:
    """What a client sent, in two pieces, to a server that looks after each; and the client goes."""
    with other:
        other.setblocking(False)
        for piece in (data[: len(data) // 2][:60_000], data[len(data) // 2 :][:60_000]):
            if piece and own.fileno() >= 0 and other.send(piece):
                read(own)
    if own.fileno() >= 0:
        read(own)
    own.close()


def _rtde_server(data: bytes, folder: Path) -> None:
    own, other = socket.socketpair()
    server = RtdeServer.__new__(RtdeServer)
    server.__dict__.update(_rate_hz=500.0, _write=lambda values: None, version=(5, 11, 0, 0), sessions=[], _owners={})
    server.__dict__.update(sent=0, refuse_version=False, _listener=None)
    session = Session.__new__(Session)
    session.__dict__.update(sock=own, rest=b"", out=b"", outputs=None, inputs=[], every=1, started=False, sent=0)
    own.setblocking(False)
    session.controls = False
    server.sessions.append(session)
    served(server.read, data, other, own)


def gripper_client(data: bytes, folder: Path) -> object:
    """A line that a client of the URCap's socket sent."""
    return gripper_answer(_Fingers(), data.decode("ascii", "replace").split())  # type: ignore[arg-type]


def sensor_line(data: bytes, folder: Path) -> object:
    """A line of a sensor that speaks in lines."""
    return reader(LINES)(data.decode("utf-8", "replace"))


class _Plant:
    """Fingers that are somewhere."""

    opening = 0.04

    def grip(self, opening: float) -> None:
        assert opening == opening


def _hand_requests() -> list[bytes]:
    requests = []
    for number, (command, shape) in enumerate(sorted(PAYLOADS.items())):
        given = [1] * len(shape.unpack(bytes(shape.size)))
        header = franka.HAND_HEADER.pack(command, number, franka.HAND_HEADER.size + shape.size)
        requests.append(header + shape.pack(*given))
    return [*requests, b"".join(requests)]


def _hand(data: bytes, folder: Path) -> None:
    own, other = socket.socketpair()
    own.setblocking(False)
    hand = FciHand.__new__(FciHand)
    hand.__dict__.update(plant=_Plant(), _listener=None, _udp=None, _tcp=own, _host="h", _rest=b"")
    hand.__dict__.update(_peer=None, _job=None, _ms=0)
    served(hand.read, data, other, own)


class _Fingers:
    def write(self, values: dict[str, int]) -> None: ...

    def read(self, name: str) -> int:
        return 3


def _rtu(data: bytes, folder: Path) -> None:
    rtu = RobotiqRtu.__new__(RobotiqRtu)
    rtu.__dict__.update(_fingers=_Fingers())
    frame, rest = rtu._frame(data)
    while frame:
        rtu._answer(frame)
        frame, rest = rtu._frame(rest)


def _frames() -> list[bytes]:
    from labctl.drivers.robotiq.emulator.rtu import INPUTS, OUTPUTS, READ, SLAVE, WRITE, crc

    read = bytes([SLAVE, min(READ)]) + INPUTS.to_bytes(2, "big") + b"\0\3"
    write = bytes([SLAVE, WRITE]) + OUTPUTS.to_bytes(2, "big") + b"\0\3\6" + bytes([9, 0, 0, 100, 255, 0])
    return [read + crc(read), write + crc(write), read + crc(read) + write + crc(write)]


def _gripper_answers(data: bytes, folder: Path) -> object:
    """What a URCap's socket says to a driver."""
    own, other = socket.socketpair()
    with own, other:
        other.sendall(data[:60_000])
        other.shutdown(socket.SHUT_WR)
        driver = SocketWire("h")
        driver.__dict__.update(_socket=own)
        return driver.read()


@cache
def _card() -> Card:
    path = ROOT / "protocols" / "cards" / "pi05_droid.toml"
    return parse_card(path.read_text("utf-8"), path.name)


def _policy_answers() -> list[bytes]:
    rows = np.zeros((15, 8), np.float32)
    return [pack({key: rows for key in _card().action.keys}), pack({key: rows.tolist() for key in _card().action.keys})]


def _policy(data: bytes, folder: Path) -> object:
    """From a policy server's bytes to targets for a robot."""
    answer = unpack(data)
    if not isinstance(answer, dict):
        return None
    arrays = {"q": np.zeros(7), "tcp": np.array([0.4, 0, 0.3, 0, 0, 0, 1.0]), "gripper": np.zeros(1)}
    return to_chunk(answer_rows(answer, _card().action, 7), _card(), arrays)


LINES = LinesOptions(
    port="socket://h:1", rate_hz=10.0, columns=("force", "moment"), units=("N", "N.m"), words={"OVER": 1e3}
)
MESSAGES: Sequence[type[IdlStruct]] = (JointState, Image, CompressedImage)


def _samples_of_messages() -> list[bytes]:
    joints = JointState(name=["a", "b"], position=[0.1, 0.2], velocity=[0.0, 0.0], effort=[1.0, 1.0])
    image = Image(height=2, width=2, encoding="rgb8", is_bigendian=0, step=6, data=bytes(12))
    return [one.serialize() for one in (joints, image, CompressedImage(format="jpeg", data=bytes(8)))]


def _cdr(data: bytes, folder: Path) -> None:
    """Cyclone DDS's own reader in Python, as each message that the driver takes."""
    for kind in MESSAGES:
        try:
            kind.deserialize(data)
        except Exception as error:
            if isinstance(error, (MemoryError, RecursionError)):
                raise


class Answering:
    """A server on loopback that answers each request with the same bytes and goes."""

    def __init__(self) -> None:
        self.bytes = b""
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}/"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            client, _ = self._listener.accept()
            with client:
                try:
                    client.recv(65536)
                    client.sendall(self.bytes)
                except OSError:
                    continue


@cache
def _server() -> Answering:
    return Answering()


def _alert(data: bytes, folder: Path) -> None:
    """What a server of ntfy or a webhook answers to an alert."""
    server = _server()
    server.bytes = data[:60_000]
    _post(server.address, b"{}", {}, None, 2.0)


HTTP = (
    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    b"HTTP/1.1 204 No Content\r\nLocation: http://127.0.0.1:1/\r\nWWW-Authenticate: Basic realm=x\r\n\r\n",
)
