"""Where an export goes: a folder or file that appears whole or not at all, with room for it, over nothing by accident.

May not: know a format, or remove a folder that is not an export of labctl.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from labctl.core.events import digest
from labctl.errors import InputError, StorageError, WorkersLost
from labctl.exports.workers import DONE
from labctl.plain import Json
from labctl.store.atomic_files import file_errors, sync_file, sync_folder

SAME = ".same"  # while it is built: what it is to be, as a digest
MARK = "labctl.json"  # in every folder that an export made: where it comes from, and that it may be replaced


def check_destination(path: Path, campaign: Path, *, force: bool) -> None:
    """Refuse a place that is taken (unless `force`), that is no export of ours, or that lies in the campaign itself.

    Raises InputError with what to do.
    """
    here = path.resolve()
    if path.name in ("", ".."):  # the folder that one is in cannot be replaced from within
        raise InputError(f"--out {path} is the folder itself in which it would be replaced; name a folder in it")
    if here.is_relative_to(campaign.resolve()):
        raise InputError(f"--out {path} lies in the campaign's own folder, which exports never touch; choose another")
    if not _is_there(path):
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
def whole_folder(
    path: Path, about: Mapping[str, Json], asked: str = "", say: Callable[[str], None] = print
) -> Iterator[Path]:
    """A folder beside `path` to fill; it takes the place of `path` when the block ends well, else it is gone.

    Empty, or what an export of the same `about` and `asked` that was broken off has left. One that ends by
    KeyboardInterrupt or WorkersLost says what is kept for the next. `about` is written into it as labctl.json. What
    was there before is removed only once the new one stands. Raises StorageError when the disk refuses.
    """
    building = _beside(path, "part")
    with file_errors(str(path)):
        path.parent.mkdir(parents=True, exist_ok=True)
        same = digest({"about": about, "asked": asked})
        kept = _sweep(path, same)
        if kept is None:
            building.mkdir()
        else:
            kept.rename(building)
            say(f"going on with what an export to {path} that was broken off had finished")
        (building / SAME).write_text(same, "utf-8")
        try:
            yield building
            (building / SAME).unlink()
            shutil.rmtree(building / DONE, ignore_errors=True)
            (building / MARK).write_text(json.dumps(about, indent=2, ensure_ascii=False) + "\n", "utf-8")
            _to_disk(building)
            _put(building, path)
        except BaseException as error:
            resumable = isinstance(error, KeyboardInterrupt | WorkersLost)
            finished = len(list((building / DONE).glob("*.json"))) if resumable else 0
            if finished:
                say(
                    f"broken off; {finished} finished files are kept in {building}: the same command goes on from there"
                )
            else:
                shutil.rmtree(building, ignore_errors=True)
            raise


def _put(building: Path, path: Path) -> None:
    old = _beside(path, "old")
    if _is_there(path):
        path.rename(old)
    try:
        building.rename(path)
    except OSError:
        if _is_there(old):
            old.rename(path)
        raise
    _remove(old)
    sync_folder(path.parent)


def _is_there(path: Path) -> bool:
    return path.exists() or path.is_symlink()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _beside(path: Path, ending: str) -> Path:
    return path.with_name(f".{path.name}.{os.getpid()}.{ending}")


def _sweep(path: Path, same: str) -> Path | None:
    """Remove what exports to the same place that were killed or broken off have left; one that was to be the same
    stays, and is where it goes on. What such a one had moved aside and not replaced is put back.
    """
    kept = None
    for left in list(path.parent.iterdir()):
        found = re.fullmatch(rf"\.{re.escape(path.name)}\.(\d{{1,9}})\.(part|old)", left.name)
        if found is None or (_alive(int(found[1])) and int(found[1]) != os.getpid()):
            continue
        if found[2] == "old" and not _is_there(path):
            left.rename(path)
        elif found[2] == "part" and kept is None and _content_key(left / SAME) == same:
            kept = left
        else:
            _remove(left)
    return kept


def _content_key(path: Path) -> str | None:
    try:
        return path.read_text("utf-8")
    except (OSError, ValueError):
        return None


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
            sync_file(Path(root) / name)
        sync_folder(Path(root))


def size(count: float) -> str:
    """A number of bytes for people."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"
