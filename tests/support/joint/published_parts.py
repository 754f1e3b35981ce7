"""Published parts of a joint campaign and the seal host's record, which tests only read (`Recordings.of`)."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from labctl.core.events import GENESIS, event_hash
from labctl.publishing.cells.report import publish_joint
from labctl.publishing.cells.seal_record import ENTRIES, lines_of, read_seal_record
from labctl.publishing.publish import publish
from support.joint.joint_recordings import CELLS, cell_folders, recorded_cells
from support.runs.published import listed, request, rewrite

SEAL = "two"


def published_cells(lab: Path, *, blocks: int = 4, cameras: bool = False) -> Path:
    """A joint campaign in two cells, each part published in lab/published/two-a and two-b and the seal host's record
    with their report in lab/published/two. The folder of all three.
    """
    first = recorded_cells(lab, cameras=cameras, blocks=blocks)
    out = lab / "published"
    for folder in cell_folders(first):
        publish(folder, out / folder.name, request())
    publish_joint(lab / "host/joint/two", parts_of(out), out / SEAL, request(), "UTC")
    return out


def parts_of(published: Path) -> list[Path]:
    """The two parts' folders."""
    return [published / f"two-{cell}" for cell in CELLS]


def reforged(folder: Path, number: int, **changes: object) -> None:
    """Change the body of an entry of a published seal host's journal, and make all that follows from it anew, as its
    publisher can: chain, file, manifest.
    """
    prev, made = GENESIS, []
    for event in read_seal_record(folder).events:
        body = {**event.body, **changes} if event.seq == number else event.body
        linked = replace(event, prev=prev, hash="", body=body)
        made.append(replace(linked, hash=event_hash(linked)))
        prev = made[-1].hash
    (folder / ENTRIES).write_bytes(lines_of(made))
    listed(folder, ENTRIES)
    rewrite(folder, lambda manifest: manifest.update(head=f"{made[-1].seq}:{made[-1].hash}"))
