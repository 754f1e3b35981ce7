"""Published campaigns for tests that only read them, and what a hostile publisher makes of one."""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import closing
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from labctl.core.events import GENESIS, Event, canonical, event_hash
from labctl.publishing.leaving_out import Choice
from labctl.publishing.publish import Request, publish
from labctl.store.journal import events_of
from support.machine.processes import end_with_parent
from support.runs.campaigns import unblinded_copy

FEW = 19  # bootstrap samples and label swaps of a report that is only looked at
NAME = "trial-run"
LABCTL = str(Path(sys.executable).with_name("labctl"))
AT = f"campaigns/{NAME}"


def request(**given: Any) -> Request:
    """A request for a publication with a small report."""
    return Request("CC-BY-4.0", boot=FEW, perm=FEW, **given)


def published(lab: Path, blinded: str, withheld: int = 0) -> Path:
    """Of the campaign at the path `blinded` a copy in `lab`, unblinded and published in lab/published; the pictures of
    so many episodes are withheld.
    """
    folder = unblinded_copy(lab, blinded)
    episodes = sorted(path.name for path in (folder / "video").iterdir())[:withheld]
    choice = Choice(withhold=dict.fromkeys(episodes, "a visitor"))
    return publish(folder, lab / "published", request(choice=choice)).folder


def manifest_of(folder: Path) -> dict[str, Any]:
    """The manifest as it lies there."""
    return json.loads((folder / "published.json").read_text("utf-8"))


def rewrite(folder: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the manifest."""
    manifest = manifest_of(folder)
    change(manifest)
    (folder / "published.json").write_text(json.dumps(manifest), "utf-8")


def listed(folder: Path, *names: str) -> None:
    """Have the manifest say of these files what they are now, as their publisher can."""

    def say(manifest: dict[str, Any]) -> None:
        for name in names:
            data = (folder / name).read_bytes()
            manifest["files"][name] = {"size": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    rewrite(folder, say)


def altered(folder: Path, name: str, *statements: str) -> None:
    """Carry out SQL in a database of the folder, and list it as it is then."""
    with closing(sqlite3.connect(folder / name)) as raw, raw:
        for statement in statements:
            raw.execute(statement)
    listed(folder, name)


def zipped(path: Path, entries: dict[str, bytes], *, method: int = zipfile.ZIP_STORED, attributes: int = 0) -> Path:
    """An archive with these entries, whatever they are called."""
    with zipfile.ZipFile(path, "w", method) as packed:
        for name, data in entries.items():
            info = zipfile.ZipInfo(name)
            info.external_attr = attributes
            info.compress_type = method
            packed.writestr(info, data)
    return path


def alone(words: list[str], home: Path) -> subprocess.CompletedProcess[str]:
    """The labctl that is tested, as somebody else has it: another home, another folder, no lab."""
    environment = {name: os.environ[name] for name in ("PATH", "PYTHONPATH", "PYTHONSAFEPATH") if name in os.environ}
    environment |= {"HOME": str(home), "XDG_CACHE_HOME": str(home / "c"), "TZ": "Asia/Tokyo"}
    return subprocess.run(
        [LABCTL, *words], cwd=home, env=environment, capture_output=True, text=True, preexec_fn=end_with_parent
    )


def forged(folder: Path, change: Callable[[Event], Event]) -> None:
    """Change entries of the journal and make all that follows from them anew, as its publisher can: chain, heads, the
    lines of JSON, the manifest.
    """
    prev, made = GENESIS, list[Event]()
    for event in map(change, events_of(folder / AT)):
        linked = replace(event, prev=prev, hash="")
        made.append(replace(linked, hash=event_hash(linked)))
        prev = made[-1].hash
    rows = [
        (e.kind, e.at_ns, e.wall, e.who, e.trial, e.episode, canonical(e.body).decode(), e.prev, e.hash, e.seq)
        for e in made
    ]
    with closing(sqlite3.connect(folder / AT / "journal.db")) as raw, raw:
        to = "kind = ?, at_ns = ?, wall = ?, who = ?, trial = ?, episode = ?, body = ?, prev = ?, hash = ?"
        raw.executemany(f"UPDATE event SET {to} WHERE seq = ?", rows)
    last = made[-1]
    (folder / AT / "heads.log").write_text(f"{last.seq} {last.hash} {last.wall}\n", "utf-8")
    lines = b"".join(canonical(asdict(event)) + b"\n" for event in made)
    (folder / "tables/journal.jsonl").write_bytes(lines)
    listed(folder, f"{AT}/journal.db", f"{AT}/heads.log", "tables/journal.jsonl")
    rewrite(folder, lambda manifest: manifest.update(head=f"{last.seq}:{last.hash}"))
