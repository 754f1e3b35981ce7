"""Where an export goes: a folder or file that appears whole or not at all, with room for it, over nothing by accident.

May not: know a format, or remove a folder that is not an export of labctl.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from labctl.errors import InputError, StorageError
from labctl.store.atomic_files import file_errors, sync_folder

MARK = "labctl.json"  # in every folder that an export made: where it comes from, and that it may be replaced


def check_destination(path: Path, campaign: Path, *, force: bool) -> None:
    """Refuse a place that is taken (unless `force`), that is no export of ours, or that lies in the campaign itself.

    Raises InputError with what to do.
    """
    here = path.resolve()
    if here.is_relative_to(campaign.resolve()):
        raise InputError(f"--out {path} lies in the campaign's own folder, which exports never touch; choose another")
    if not path.exists() and not path.is_symlink():
        return
    if not force:
        raise InputError(f"--out {path} is there already; choose another, or replace it with --force")
    if path.is_dir() and any(path.iterdir()) and not (path / MARK).is_file():
        raise InputError(f"--out {path} is a folder that labctl did not write (no {MARK}); it is not replaced")


def check_room(path: Path, needed: int) -> int:
    """Free bytes where `path` will be. Raises StorageError when fewer than `needed` bytes are left there."""
    place = next(parent for parent in (path.resolve(), *path.resolve().parents) if parent.is_dir())
    with file_errors(str(place)):
        free = shutil.disk_usage(place).free
    if needed > free:
        raise StorageError(
            f"{place}: the export may take {size(needed)} and {size(free)} are free; nothing was written; "
            "free some space, or export less with --where COLUMN=VALUE"
        )
    return free


@contextmanager
def whole_folder(path: Path, about: Mapping[str, Any]) -> Iterator[Path]:
    """An empty folder beside `path` to fill; it takes the place of `path` when the block ends well, else it is gone.

    `about` is written into it as labctl.json. What was there before is removed only once the new one stands.
    Raises StorageError when the disk refuses.
    """
    building = _beside(path, "part")
    with file_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        _sweep(path)
        building.mkdir()
        try:
            yield building
            (building / MARK).write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")
            _to_disk(building)
            _put(building, path)
        finally:
            shutil.rmtree(building, ignore_errors=True)


def _put(building: Path, path: Path) -> None:
    old = _beside(path, "old")
    if path.exists() or path.is_symlink():
        path.rename(old)
    try:
        building.rename(path)
    except OSError:
        if old.exists() or old.is_symlink():
            old.rename(path)
        raise
    if old.is_dir() and not old.is_symlink():
        shutil.rmtree(old)
    else:
        old.unlink(missing_ok=True)
    sync_folder(path.parent)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{ending}")


def _sweep(path: Path) -> None:
    """Remove what killed exports to the same place have left."""
    for left in path.parent.glob(f".{path.name}.*.part"):
        number = left.name.removesuffix(".part").rpartition(".")[2]
        if number.isdecimal() and not _alive(int(number)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:
        pass
    return True


def _to_disk(folder: Path) -> None:
    for root, _, names in os.walk(folder):
        for name in names:
            descriptor = os.open(Path(root) / name, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        sync_folder(Path(root))


def size(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
