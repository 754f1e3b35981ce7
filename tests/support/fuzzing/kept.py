"""What lies in records, labs and the tables of a second site, and what pages post, beside what `further` has.

May not: be kind, as `targets`.
"""

from __future__ import annotations

import io
import json
import tempfile
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from labctl.analysis.binary.pooling import rates
from labctl.analysis.episodes_table.reading import read_either
from labctl.analysis.report.report_folder import _is_report
from labctl.checks.clock_page import ClockPage
from labctl.checks.planner import planner_of
from labctl.checks.site.judging import OF_OBJECTS, check_objects, judge_assessor
from labctl.checks.site.kit import TEMPLATE, parse_kit
from labctl.checks.usage_reports import reporting
from labctl.cli.compare import _strata
from labctl.cli.options import numbers
from labctl.clock import ManualClock
from labctl.config.cell_schema import Cell, parse_cell
from labctl.core import commands
from labctl.core.commands import command_from
from labctl.core.events import Event
from labctl.core.reviewed import Item, checked
from labctl.core.task import ITEMS, Task
from labctl.core.trial import fold
from labctl.drivers.common.robot_tables import FR3
from labctl.drivers.sim.options import Replay
from labctl.drivers.sim.replay import build as replay
from labctl.errors import LabctlError
from labctl.joint.keys import check_address
from labctl.pages.measured import posted
from labctl.pages.reviewing import operations_of
from labctl.publishing.check import _is_line_of
from labctl.publishing.leaving_out import SALTS, _salts
from labctl.runtime.attach import run_of
from labctl.store.chain_heads import noted
from labctl.store.footage import note_beside
from labctl.store.journal import events_of
from labctl.store.lab_folder import MARK, MOVED, admit_zone, refuse_moved
from labctl.store.ledger import CARDS, FOLDER, OPENINGS, PROTOCOL, REVEALS, SCHEDULE, Ledger
from labctl.store.locks import CONTACT
from labctl.store.opened_list import OPENED, opened_in
from labctl.store.pictures import decode_png
from labctl.store.rubric_pictures import _read
from labctl.store.verifying.timestamps import Authority, stamped_at
from labctl.store.verifying.verify import _check_history
from labctl.store.video import VideoWriter, count_frames, mend, read_frames
from labctl.testing.given import FIXTURE

ROOT = Path(__file__).resolve().parents[3]
RECORD = ROOT / "docs" / "published" / "simulated-cell" / "campaigns" / "simulated-cell"


def kit(data: bytes, folder: Path) -> object:
    return parse_kit(data.decode("utf-8", "replace"), "kit.toml")


OBJECTS = f"{','.join(OF_OBJECTS)}\nS1,0.25,0.045,0.015,0.031\n".encode()
LABELS = "".join(["episode,label\n", *(f"e{n},{n % 3}\n" for n in range(40))]).encode()
WORDS = "".join(["episode,label\n", *(f'e{n},"{("yes", "no")[n % 2]}"\n' for n in range(40))]).encode()


def objects(data: bytes, folder: Path) -> object:
    """A site's measurements of anchor objects."""
    (folder / "measured.csv").write_bytes(data)
    return check_objects(parse_kit(TEMPLATE, "kit.toml"), folder / "measured.csv")


def labels(data: bytes, folder: Path) -> object:
    """An assessor's labels of common videos."""
    (folder / "reference.csv").write_bytes(LABELS)
    (folder / "own.csv").write_bytes(data)
    return judge_assessor(parse_kit(TEMPLATE, "kit.toml"), folder / "reference.csv", folder / "own.csv")


def counts(data: bytes, folder: Path) -> object:
    """A table of counts that rates are pooled from."""
    (folder / "counts.csv").write_bytes(data)
    return rates(folder / "counts.csv", ("category",))


@cache
def parquets() -> list[bytes]:
    """A small table of episodes as Parquet."""
    import pyarrow
    import pyarrow.parquet

    rows = {"block": ["1", "1"], "arm": ["a", "b"], "success": [1, 0], "episode": ["e1", "e2"]}
    held = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(rows), held)
    return [held.getvalue()]


def parquet(data: bytes, folder: Path) -> object:
    (folder / "t.parquet").write_bytes(data)
    return read_either(folder / "t.parquet")


def _seal(name: str) -> Callable[[bytes, Path], object]:
    """A file of a seal, the others as they were published."""

    def parse(data: bytes, folder: Path) -> object:
        (folder / FOLDER).mkdir()
        for other in (SCHEDULE, PROTOCOL, OPENINGS):
            if other != name:
                (folder / FOLDER / other).symlink_to(RECORD / FOLDER / other)
        (folder / FOLDER / name).write_bytes(data)
        ledger = Ledger.open(folder)
        return ledger.loose_permissions, ledger.cards(), ledger.revealed(), ledger.open_all(), ledger.protocol_text()

    return parse


schedule, openings, reveals, cards, frozen = map(_seal, (SCHEDULE, OPENINGS, REVEALS, CARDS, PROTOCOL))


@cache
def histories() -> list[bytes]:
    """Entries of a whole campaign as lines of JSON, and its first twelve."""
    lines = [
        json.dumps([e.kind, e.at_ns, e.wall, e.who, e.trial, e.episode, e.body]).encode() for e in events_of(RECORD)
    ]
    return [b"\n".join(lines[:count]) for count in (4, 12, 24)]


def history(data: bytes, folder: Path) -> object:
    """Entries that a stranger chained anew, so that the chain holds, whatever stands in them."""
    events: list[Event] = []
    for line in data.split(b"\n"):
        try:
            kind, at_ns, wall, who, trial, episode, body = json.loads(line)
        except (ValueError, TypeError, RecursionError):
            continue
        texts = all(isinstance(one, str) for one in (kind, wall, who))
        if texts and isinstance(at_ns, int) and isinstance(body, dict):  # the journal's own reader sees to that
            own = [one if isinstance(one, str) else None for one in (trial, episode)]
            events.append(Event(len(events) + 1, kind, at_ns, "b", wall, who, *own, body=body))
    return _check_history(events)


def opened(data: bytes, folder: Path) -> object:
    """A lab's list of what it opened."""
    (folder / OPENED).write_bytes(data)
    return opened_in(folder)


@cache
def opened_lists() -> list[bytes]:
    from labctl.store.opened_list import add_opened

    with tempfile.TemporaryDirectory() as name:
        words = dict(protocol="p", protocol_sha256="ab" * 32, commitment="cd" * 32, wall="2026-01-01T00:00:00+00:00")
        for campaign in ("a", "b"):
            add_opened(Path(name), ManualClock(0), campaign=campaign, **words)
        return [(Path(name) / OPENED).read_bytes()]


def moved(data: bytes, folder: Path) -> object:
    """What lies where a lab was, and the mark of one."""
    (folder / MARK).write_bytes(data)
    admit_zone(folder)
    admit_zone(None)
    (folder / MOVED).write_bytes(data)
    return refuse_moved(folder)


def contact(data: bytes, folder: Path) -> object:
    """What a run says of itself, or a stranger in a campaign's folder."""
    (folder / CONTACT).write_bytes(data)
    return run_of(folder)


def beside(data: bytes, folder: Path) -> object:
    """Small files of JSON beside others: of a camera, salts, a report, Rerun's settings; a line of a journal."""
    for name in ("note.json", SALTS, "report.json"):
        (folder / name).write_bytes(data)
    (folder / "rerun").mkdir()
    (folder / "rerun" / "analytics.json").write_bytes(data)
    found = note_beside(folder / "note.json"), _is_report(folder / "report.json"), _is_line_of(events()[0], data)
    reporting(lambda _: True, {"XDG_CONFIG_HOME": str(folder)}, folder)
    return found, _salts(folder, ("a",))


@cache
def events() -> list[Event]:
    return events_of(RECORD)


@cache
def videos() -> list[bytes]:
    """A video as a camera's process writes it."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "a.mp4"
        writer = VideoWriter(path, 64, 48, rate_hz=10.0)
        for number in range(4):
            writer.write(np.full((48, 64, 3), 40 * number, np.uint8), 100_000 * number)
        writer.close()
        return [path.read_bytes()]


def video(data: bytes, folder: Path) -> object:
    (folder / "a.mp4").write_bytes(data)
    mend(folder / "a.mp4")
    return count_frames(folder / "a.mp4"), sum(1 for _ in read_frames(folder / "a.mp4"))


@cache
def pictures() -> list[bytes]:
    made: list[bytes] = []
    for kind in ("PNG", "JPEG"):
        held = io.BytesIO()
        Image.fromarray(np.arange(8 * 6 * 3, dtype=np.uint8).reshape(6, 8, 3)).save(held, kind)
        made.append(held.getvalue())
    return made


def picture(data: bytes, folder: Path) -> object:
    """A reference, and an anchor of a rubric: its reader says which file it was by ValueError."""
    try:
        _read(data)
    except ValueError as error:
        assert str(error)
    return None if data.startswith(b"\xff\xd8") else decode_png(data)


@cache
def recordings() -> list[bytes]:
    """A recording that a robot is replayed from."""
    columns = [*(f"q.{name}" for name in FR3.joint_names), "gripper"]
    held = io.BytesIO()
    np.savez(held, t_ns=np.arange(3) * 10**7, values=np.zeros((3, len(columns))), columns=np.array(columns))
    return [held.getvalue()]


@cache
def _cell() -> Cell:
    return parse_cell((ROOT / "hw_configs" / "sim_fr3.toml").read_text("utf-8"), "sim_fr3.toml")


def recording(data: bytes, folder: Path) -> object:
    (folder / "a.npz").write_bytes(data)
    return replay(Replay(file=str(folder / "a.npz"), arm="fr3"), cell=_cell(), fixture=FIXTURE)


def stamp(data: bytes, folder: Path) -> object:
    """A timestamp that an authority gave: trusted by nobody here, so that it is refused, whatever it is."""
    return stamped_at(data, 1, "ab" * 32, Authority("http://h", b"", 1.0))


@cache
def _page() -> ClockPage:
    return ClockPage(ManualClock(10**9))


def clock_page(data: bytes, folder: Path) -> object:
    """What a page with a clock posts: its handler answers 400 to these."""
    with suppress(KeyError, TypeError, ValueError, OverflowError, RecursionError):
        return json.dumps(_page().answered(json.loads(data)))
    return None


POSTED = json.dumps(
    {"moved": 2, "lost": 0, "score": 0.5, "operations": [{"at_ns": n, "result": "success"} for n in (5, 6)]}
).encode()
TASK = Task("", ITEMS, 3, 60.0, "")


def judged(data: bytes, folder: Path) -> object:
    """What pages of assessors post of an episode."""
    body = json.loads(data)
    if not isinstance(body, dict):
        return None
    said = posted(TASK, body), posted(Task("", "score", 1, 60.0, ""), {"score": 1.0, **body})
    trial = next(iter(fold(events()).trials.values()))
    return said, checked(trial, operations_of(Item(trial), body))


def ordered(data: bytes, folder: Path) -> object:
    """A command as a console sends it, with arguments read as each verb's."""
    body = json.loads(data)
    if not isinstance(body, dict):
        return None
    command = command_from(body)
    for form in forms():
        with suppress(LabctlError):
            command.arguments(form)
    return command


@cache
def forms() -> tuple[Any, ...]:
    found = [one for one in vars(commands).values() if isinstance(one, type) and issubclass(one, commands.BaseModel)]
    return tuple(one for one in found if one not in (commands.BaseModel, commands.Command))


def typed(data: bytes, folder: Path) -> object:
    """Lists, heads and counts of a command line."""
    text = data.decode("utf-8", "replace")
    for read in (
        lambda: numbers(text, "--n"),
        lambda: noted(text, text),
        lambda: _strata(text),
        lambda: check_address(text, "a"),
        lambda: planner_of(text),
    ):
        try:
            read()
        except LabctlError as error:
            assert "\n" not in str(error)
    return None
