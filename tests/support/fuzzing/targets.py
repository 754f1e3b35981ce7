"""What is read from outside: for each parser good inputs, and how bytes are handed to it.

May not: be kind. A parser returns, or raises what it declares: a `LabctlError` of one line, or what its caller catches.
Not here, as bytes alone do not reach them: SQLite files and published folders (tests/system/publishing), video and
pictures (FFmpeg and OpenCV, which are fuzzed by their own people), what a browser posts to a running page.
"""

from __future__ import annotations

import importlib
import json
import tempfile
import zlib
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np

from labctl import bus
from labctl.analysis.episodes_table.from_csv import from_csv
from labctl.analysis.episodes_table.from_inspect_robots import from_inspect_robots
from labctl.analysis.episodes_table.from_lerobot import from_lerobot
from labctl.analysis.episodes_table.from_roboarena import from_roboarena
from labctl.analysis.episodes_table.reading import read_either
from labctl.backup.repository import SNAPSHOTS, FileKept, FolderKept, HeadKept, Repository, Snapshot
from labctl.config.cell_schema import parse_cell, parse_fixture, parse_lab
from labctl.config.policy_card import parse_card
from labctl.config.protocol_schema import parse_protocol
from labctl.drivers.franka.emulator.wire import COMMAND, read_command
from labctl.drivers.policy.codec import pack, pack_npy, unpack, unpack_npy
from labctl.drivers.sensors.scale import parsed
from labctl.drivers.ur.calibration import calibration_in
from labctl.errors import LabctlError
from labctl.joint.keys import read_invitation
from labctl.joint.wire import (
    Compared,
    Head,
    HelloAnswer,
    OpeningAnswer,
    PartAnswer,
    Question,
    RevealAnswer,
    read_answer,
    read_question,
)
from labctl.messages import typed
from labctl.pages.measured import preference
from labctl.people.personal_codes import codes_of
from labctl.queue.lab_files import KEYS, SHIFTS, key_table, read_keys, read_shifts
from labctl.queue.making import request_of
from labctl.queue.request import Signed, new_key, read_signed, sign
from labctl.store.chain_heads import read_heads
from labctl.store.chunks import decode_chunk, encode_chunk
from labctl.streams import StreamSpec
from support.foreign_results import EPISODES, LOG, SESSIONS
from support.fuzzing.further_targets import of_devices, of_records, of_strangers
from support.fuzzing.target import Parse, Target, one_line

ROOT = Path(__file__).resolve().parents[3]
KEPT = ROOT / "tests" / "releases" / "before-0.1"


def files(*patterns: str) -> Callable[[], list[bytes]]:
    """The bytes of files of the repository, some kilobytes of each."""
    return cache(lambda: [path.read_bytes()[:20_000] for one in patterns for path in sorted(ROOT.glob(one))])


@cache
def _requests() -> list[bytes]:
    """A signed request."""
    words = dict(lab="l", campaign="c", policy="p", who="w", contact="c", endpoint="wss://policy.example")
    card = (ROOT / "protocols/cards").glob("*.toml")
    texts = [text for path in sorted(card) if "wss" not in (text := path.read_text("utf-8")) and "start =" not in text]
    with tempfile.TemporaryDirectory() as folder:
        key = Path(folder) / "k.pem"
        new_key(key)
        return [sign(request_of(texts[0], "card.toml", "2026-01-01T00:00:00+00:00", 14, words), key)]


def in_file(read: Callable[[Path], object], name: str) -> Parse:
    """A parser that reads a file of this name."""

    def parse(data: bytes, folder: Path) -> object:
        (folder / name).write_bytes(data)
        return read(folder / name)

    return parse


def text(parse: Callable[[str, str], object]) -> Parse:
    """A parser of text; where it is no UTF-8 whoever reads the file has refused it."""
    return lambda data, folder: parse(data.decode("utf-8", "replace"), "a.toml")


def _dump(name: str) -> Parse:
    """RoboArena's dump with one of its two files spoilt."""

    def parse(data: bytes, folder: Path) -> object:
        for other, good in ROBOARENA.items():
            (folder / other).write_bytes(data if other == name else good)
        return from_roboarena(folder)

    return parse


ROBOARENA = {"sessions.csv": SESSIONS.encode(), "episodes.csv": EPISODES.encode()}


def _eval_info() -> list[bytes]:
    episodes = [{"success": bool(i % 2), "seed": 100 + i, "sum_reward": 0.5} for i in range(3)]
    tasks = [{"task_group": "libero", "task_id": 0, "metrics": {"successes": [True, False]}}]
    return [json.dumps(one).encode() for one in ({"per_episode": episodes}, {"per_task": tasks})]


def _messages() -> list[bytes]:
    made = []
    for schema in _schemas():
        body = {
            name: {"str": "a", "int": 1, "float": 1.5, "bool": True}.get(str(kind), {})
            for name, kind in _fields(schema)
        }
        made.append(bus.joined(bus.encode(bus.Message("run", schema.KIND, body, {"q": np.zeros(7)}, "robot"))))
    return made


@cache
def _schemas() -> list[type[typed.Typed]]:
    """Every message, wherever it is declared."""
    for path in (ROOT / "labctl" / "messages").glob("*.py"):
        importlib.import_module(f"labctl.messages.{path.stem}")
    return typed.Typed.__subclasses__()


def _fields(schema: type[typed.Typed]) -> list[tuple[str, object]]:
    return [(name, one.type) for name, one in schema.__dataclass_fields__.items()]


def _message(data: bytes, folder: Path) -> object:
    """As a socket hands it on: parted, decoded, and read as every message that could be meant."""
    message = bus.decode(bus.parted(data))
    for schema in _schemas():
        try:
            typed.read(schema, message)
        except typed.Misfit as error:
            one_line(error)
    return message


def _snapshots() -> list[bytes]:
    with tempfile.TemporaryDirectory() as name:
        repository = Repository.made(Path(name), of=ROOT)
        kept = FileKept("campaigns/c/journal.db", 12, 0o600, "ab" * 32, 1, database=True)
        head = HeadKept("c", 3, "cd" * 32, "open")
        repository.keep(
            Snapshot("20260101T000000Z", "1.0", "lab", [kept], [FolderKept("campaigns", 493)], [head], [], [])
        )
        return [path.read_bytes() for path in (Path(name) / SNAPSHOTS).iterdir()]


def _snapshot(data: bytes, folder: Path) -> object:
    (folder / SNAPSHOTS).mkdir()
    (folder / "labctl-backup.json").write_bytes(b'{\n "format": "labctl.backups/1"\n}\n')
    (folder / SNAPSHOTS / "20260101T000000Z.json").write_bytes(data)
    return Repository(folder).snapshot()


def _codes(data: bytes, folder: Path) -> object:
    (folder / "personal-codes.json").write_bytes(data)
    (folder / "personal-codes.json").chmod(0o600)
    return codes_of(folder)


def _answers(packed: Callable[[object], bytes]) -> Callable[[], list[bytes]]:
    answer = {"actions": np.zeros((4, 8), np.float32), "server_timing": {"infer_ms": 12.5}, "text": "a", "none": None}
    return lambda: [packed(answer), packed({"action": [np.arange(3), {"x": np.float64(1.0)}]})]


def _chunks() -> list[bytes]:
    spec = StreamSpec("q", ("a", "b"), "rad", 100.0, "<f4")
    return [
        encode_chunk(spec, np.arange(5), np.zeros((5, 2))),
        b'{"v":1,"n":1,"k":1,"dtype":"<f8"}\n' + zlib.compress(bytes(16)),
    ]


def _posted(data: bytes, folder: Path) -> object:
    found = json.loads(data)
    return preference(found) if isinstance(found, dict) else None


def _questions() -> list[bytes]:
    head, clock = Head(seq=3, hash="0" * 64), Compared(offset_s=0.1, bound_s=0.2)
    whole = Question(id="q", asks="reveal", trial="t-abc", head=head, clock=clock, skipped=("t-abd",))
    return [whole.model_dump_json().encode(), b'{"id": "q", "asks": "hello"}']


def _joint_answers() -> list[bytes]:
    arm = RevealAnswer(id="q", arm="a", head=Head(seq=3, hash="0" * 64))
    hello = HelloAnswer(id="q", gone=False, not_yours=("t-abc",), parts=1, limit_s=1.0)
    return [arm.model_dump_json().encode(), hello.model_dump_json().encode()]


def _joint_answer(data: bytes, folder: Path) -> object:
    """As each answer that it could be."""
    found: object = None
    for form in (RevealAnswer, HelloAnswer, PartAnswer, OpeningAnswer):
        with suppress(LabctlError):
            found = read_answer(data, form)
    return read_answer(data, RevealAnswer) if found is None else found


def _invitations() -> list[bytes]:
    names = ("joint", "cell", "commitment", "host_key", "public_key", "secret_key")
    key = "x" * 40
    return ["".join([*(f'{name} = "{key}"\n' for name in names), 'address = "tcp://127.0.0.1:7441"\n']).encode()]


def _invitation(data: bytes, folder: Path) -> object:
    path = folder / "a.invitation.toml"
    path.write_bytes(data)
    path.chmod(0o600)
    return read_invitation(path)


CSV_MAP = {"block": "block", "arm": "arm", "success": "success", "score": "score"}
TARGETS: dict[str, Target] = {
    "protocol": Target(files("protocols/*.toml", "labctl/templates/first.toml"), text(parse_protocol)),
    "cell": Target(files("hw_configs/*.toml", "labctl/templates/*cell.toml"), text(parse_cell)),
    "fixture": Target(files("fixtures/*.toml"), text(parse_fixture)),
    "lab": Target(files("labctl/templates/lab.toml"), text(parse_lab)),
    "card": Target(files("protocols/cards/*.toml"), text(parse_card)),
    "request": Target(_requests, in_file(lambda path: read_signed(path).asked("r"), "r.json")),
    "request's text": Target(
        lambda: [json.loads(one)["request"].encode() for one in _requests()],
        lambda data, _: Signed("", "", data.decode("utf-8", "replace")).asked("r"),
    ),
    "queue's keys": Target(
        lambda: [b'lab = "l"\nnetworks = ["10.0.0.0/8"]\n' + key_table("0" * 64, "a", "b").encode()],
        in_file(lambda path: read_keys(path.parent), KEYS),
    ),
    "shifts": Target(
        lambda: [b'[[shift]]\nfrom = 2026-10-26T18:00:00\nto = 2026-10-26T21:00:00Z\nwho = ["p1"]\n'],
        in_file(lambda path: read_shifts(path.parent), SHIFTS),
    ),
    "operations": Target(lambda: [(KEPT / "operations.csv").read_bytes()], in_file(read_either, "t.csv")),
    "episodes": Target(lambda: [(KEPT / "episodes.csv").read_bytes()], in_file(read_either, "t.csv")),
    "any csv": Target(
        lambda: [(KEPT / "episodes.csv").read_bytes()], in_file(lambda path: from_csv(path, CSV_MAP), "t.csv")
    ),
    "roboarena sessions": Target(lambda: [ROBOARENA["sessions.csv"]], _dump("sessions.csv")),
    "roboarena episodes": Target(lambda: [ROBOARENA["episodes.csv"]], _dump("episodes.csv")),
    "lerobot": Target(_eval_info, in_file(lambda path: from_lerobot([path], ["a"]), "eval_info.json")),
    "inspect robots": Target(
        lambda: [json.dumps(LOG).encode()], in_file(lambda path: from_inspect_robots([path], ["a"]), "log.json")
    ),
    "message": Target(_messages, _message, (LabctlError, ValueError)),  # a transport drops what is no message
    "openpi": Target(_answers(pack), lambda data, _: unpack(data)),
    "gr00t": Target(_answers(pack_npy), lambda data, _: unpack_npy(data)),
    "chunk": Target(_chunks, lambda data, _: decode_chunk(data)),
    "heads": Target(
        lambda: [b"1 " + b"ab" * 32 + b" 2026-01-01T00:00:00.000000+00:00\n"],
        in_file(lambda path: read_heads(path.parent), "heads.log"),
    ),
    "backup": Target(_snapshots, _snapshot),
    "personal codes": Target(
        lambda: [json.dumps({"p1": dict(salt="00", scrypt="00", n=16384, r=8, p=1, set="2026-01-01")}).encode()], _codes
    ),
    "preference": Target(
        lambda: [b'{"first": "e-1", "second": "e-2", "preferred": "first", "why": "x"}'],
        _posted,
        (LabctlError, ValueError, RecursionError),  # of JSON itself, which the page answers
    ),
    "scale": Target(
        lambda: [b"S S      0.123 kg", b"S D     -12.5 g", b"S I"],
        lambda data, _: parsed(data.decode("ascii", "replace")),
    ),
    "ur kinematics": Target(
        lambda: [bytes(5) + bytes(200), b"\x00\x00\x00\xe1\x05" + bytes(220)], lambda data, _: calibration_in(data)
    ),
    "joint question": Target(_questions, lambda data, _: read_question(data)),
    "joint answer": Target(_joint_answers, _joint_answer),
    "invitation": Target(_invitations, _invitation),
    "fr3 command": Target(lambda: [bytes(COMMAND.size)], lambda data, _: read_command(data)),
    **of_strangers(),
    **of_devices(),
    **of_records(),
}
