"""What cameras left on disk of an episode: its videos, depth and side files, digested and counted for the seal.

May not: change a picture, or believe a camera about its own file; what is sealed is what is there, and what is checked
is what was sealed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.errors import LabctlError
from labctl.messages.body_parts import FileEntry, FilmEntry, GapBody, Photo, VideoEntry
from labctl.plain import Json, count
from labctl.store.atomic_files import file_errors, sync_file, sync_names
from labctl.store.problem import Problem
from labctl.streams import SEEN

if TYPE_CHECKING:  # whoever compares digests alone does not wait for numpy
    import numpy as np


@dataclass(frozen=True, slots=True)
class Footage:
    """`videos`: {camera: {file, sha256, frames, about?, depth?}} as sealed, paths relative to the campaign; about:
    {file, sha256}, depth: {file, sha256, frames}. `notes`: [(camera, what is wrong with a file)]; `strange`: by note,
    the files that are no video, and what lies beside them, as far as they can be read.
    """

    videos: dict[str, VideoEntry] = field(default_factory=dict[str, VideoEntry])
    notes: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    strange: dict[tuple[str, str], list[FileEntry]] = field(default_factory=dict[tuple[str, str], list[FileEntry]])


def footage(folder: Path, episode: str, cameras: Sequence[str], *, durable: bool = False) -> Footage:
    """What there is of an episode's cameras in a campaign's folder, the pictures as a policy got them too. Nobody may
    be writing it any more.

    A fragment's header that was left half-written is cut off, since players refuse a file that ends in one. durable:
    all of it has reached the disk when this returns, and is found there. Raises StorageError when the disk refuses
    that.
    """
    from labctl.store.video import mend

    found = Footage()
    for camera in (name for given in cameras for name in (given, given + SEEN)):
        path = folder / "video" / episode / f"{camera}.mp4"
        if not path.is_file():
            continue
        about, depth = path.with_suffix(".json"), path.with_suffix(".depth.mkv")
        try:
            cut = mend(path)
            if cut:
                cut_off = f"a half-written header at the end of its video was cut off: {count(cut, 'byte')}"
                found.notes.append((camera, cut_off))
            entry = VideoEntry(**_video_file(folder, path))
        except LabctlError as error:
            _no_video(found, folder, camera, error, (path, about, depth))
            continue
        found.videos[camera] = entry
        try:
            if about.is_file():
                entry["about"] = _file(folder, about)
            if depth.is_file():
                entry["depth"] = _video_file(folder, depth)
        except LabctlError as error:
            _no_video(found, folder, camera, error, (depth,))
    if durable:
        _sync(folder, folder / "video" / episode)
    return found


def _no_video(found: Footage, folder: Path, camera: str, error: LabctlError, paths: Sequence[Path]) -> None:
    """Files that no video's entry binds: what cannot be read as a video may be all that there is of a camera."""
    note = (camera, str(error))
    found.notes.append(note)
    for path in paths:
        with suppress(LabctlError):  # it cannot be read at all, as the note says
            if path.is_file():
                found.strange.setdefault(note, []).append(_file(folder, path))


def filmed(folder: Path) -> set[str]:
    """The episodes of a campaign's folder of which there is a video, or a part of one. Raises StorageError."""
    with file_errors(str(folder)):
        return {path.parent.name for path in (folder / "video").glob("*/*")}


def _sync(campaign: Path, videos: Path) -> None:
    with file_errors(str(videos)):
        if videos.is_dir():
            for path in sorted(videos.iterdir()):
                sync_file(path)
            sync_names(videos, campaign)


def file_gaps(found: Footage, written: Mapping[str, int]) -> list[GapBody]:
    """What is wrong with the files as gaps: damage, and frames that a camera wrote (`written`) and its file lacks."""
    gaps = [_gap(camera, None, why, found.strange.get((camera, why), ())) for camera, why in found.notes]
    for camera, frames in written.items():
        there = found.videos[camera]["frames"] if camera in found.videos else 0
        if there != frames:
            held = f"its video holds {count(there, 'frame')}, {frames} were written"
            gaps.append(_gap(camera, max(0, frames - there), held))
    return gaps


def _gap(camera: str, lost: int | None, why: str, files: Sequence[FileEntry] = ()) -> GapBody:
    gap: GapBody = {"stream": f"camera/{camera}", "from_ns": None, "to_ns": None, "lost": lost, "why": why}
    if files:
        gap["files"] = list(files)
    return gap


def check_strange(folder: Path, gap: GapBody, whose: str) -> tuple[list[Problem], list[str]]:
    """Which of the files that a gap binds (`Footage.strange`) have changed; and a note on each that is gone: it is no
    video, and goes nowhere with a record.
    """
    found: list[Problem] = []
    notes: list[str] = []
    for entry in gap.get("files") or ():
        if not (folder / entry["file"]).is_file():
            notes.append(
                f"{entry['file']} ({whose}), which could not be read as a video when it was sealed, is not here"
            )
        found += [one for one in check_files(folder, {**entry}, whose) if not one.what.startswith("missing ")]
    return found, notes


def check_files(
    folder: Path, video: VideoEntry | Photo, whose: str, *, what: str = "video", elsewhere: Collection[str] = ()
) -> list[Problem]:
    """Which of a camera's journalled files are gone or have changed. `video`: its entry in RecordingSealed, or a photo
    (what). elsewhere: digests of files that a media store has and that were removed here.
    """
    found: list[Problem] = []
    for entry in (video, video.get("depth"), video.get("about")):
        if entry is None:
            continue
        path, where = folder / entry["file"], f"{entry['file']} ({whose})"
        kind = "side file" if entry is video.get("about") else what
        if not path.is_file():
            if entry["sha256"] not in elsewhere:
                found.append(Problem(f"missing {kind}", where, "the file is gone"))
            continue
        with file_errors(str(path)):
            sha256 = file_digest(path)
        if sha256 != entry["sha256"]:
            found.append(Problem(f"changed {kind}", where, "its bytes are not the ones that were sealed"))
    return found


def index_notes(folder: Path, video: VideoEntry, columns: Sequence[str], parts: Sequence[np.ndarray]) -> list[str]:
    """How a camera's index (parts: (n, len(columns)) each) and the frames of its files differ; [] when each has its
    other.

    Raises StorageError when a file cannot be read.
    """
    import numpy as np

    from labctl.store.video import frame_times

    found: list[str] = []
    rows = np.concatenate(parts) if parts else np.empty((0, len(columns)))
    for entry, column, unit_us in ((video, "pts_us", 1), (video.get("depth"), "depth_ms", 1000)):
        if entry is None or column not in columns:
            continue
        indexed = rows[:, list(columns).index(column)]
        filmed = frame_times(folder / entry["file"]) // unit_us
        lost, untimed = np.setdiff1d(indexed[indexed >= 0], filmed), np.setdiff1d(filmed, indexed)
        if len(lost):
            found.append(f"not in {entry['file']}: {count(len(lost), 'frame')} of the index")
        if len(untimed):
            frames = f"{count(len(untimed), 'frame')} of {entry['file']}"
            found.append(f"not in the index, so that when they were taken is lost: {frames}")
    return found


def file_digest(path: Path) -> str:
    """sha256 hex of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _file(folder: Path, path: Path) -> FileEntry:
    with file_errors(str(path)):
        return {"file": path.relative_to(folder).as_posix(), "sha256": file_digest(path)}


def _video_file(folder: Path, path: Path) -> FilmEntry:
    from labctl.store.video import count_frames

    return {**_file(folder, path), "frames": count_frames(path)}


def note_beside(path: Path) -> dict[str, Json]:
    """What was kept beside a camera's pictures (schema labctl.camera/1); empty when there is nothing readable."""
    try:
        found: Json = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return dict(found) if isinstance(found, Mapping) else {}
