"""Where an export goes: a folder or file that appears whole or not at all, with room for it, over nothing by accident.

May not: know a format, or remove a folder that is not an export of labctl.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from labctl.core.events import digest
from labctl.errors import InputError, StorageError, WorkersLost
from labctl.exports.workers import DONE
from labctl.plain import Json
from labctl.store.atomic_files import file_errors, sync_folder

SAME = ".same"  # while it is built: what it is to be, as a digest
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
def whole_folder(
    path: Path, about: Mapping[str, Json], asked: str = "", say: Callable[[str], None] = print
) -> Iterator[Path]:
    """A folder beside `path` to fill; it takes the place of `path` when the block ends well, else it is gone.

    Empty, or what an export of the same `about` and `asked` that was broken off has left. Whoever breaks one off
    (KeyboardInterrupt) is told what is kept for the next; so is whoever lost what worked for it (WorkersLost). `about`
    is written into it as labctl.json. What was there before is removed only once the new one stands. Raises
    StorageError when the disk refuses.
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
        except (KeyboardInterrupt, WorkersLost):
            finished = len(list((building / DONE).glob("*.json")))
            if finished:
                say(
                    f"broken off; {finished} finished files are kept in {building}: the same command goes on from there"
                )
            else:
                shutil.rmtree(building, ignore_errors=True)
            raise
        except BaseException:
            shutil.rmtree(building, ignore_errors=True)
            raise


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


def _sweep(path: Path, same: str) -> Path | None:
    """Remove what exports to the same place that were killed or broken off have left; one that was to be the same
    stays, and is where it goes on.
    """
    kept = None
    for left in path.parent.glob(f".{path.name}.*.part"):
        number = left.name.removesuffix(".part").rpartition(".")[2]
        if not number.isdecimal() or (_alive(int(number)) and int(number) != os.getpid()):
            continue
        if kept is None and _content_key(left / SAME) == same:
            kept = left
        else:
            shutil.rmtree(left, ignore_errors=True)
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
