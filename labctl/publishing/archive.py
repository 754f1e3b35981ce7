"""A published folder as one archive: a zip without compression, the same bytes for the same folder; and one that a
stranger made, unpacked without trusting a word of its directory.

May not: unpack more than the archive's own size allows, or anything but plain files below the folder.
"""

from __future__ import annotations

import shutil
import stat
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from labctl.errors import BrokenRecord, InputError, StorageError
from labctl.plain import count
from labctl.publishing.guard import MOST_FILES, check_path
from labctl.store.atomic_files import file_errors, file_in_one_step
from labctl.store.database_backend import PUBLISHED

ENDING = ".zip"
EPOCH = (1980, 1, 1, 0, 0, 0)
RATIO, ROOM = 200, 1 << 20  # unpacked bytes for each packed one, and so many besides
PIECE = 1 << 20
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)  # whose errors are zlib's; no publication needs another


def check_place(path: Path, *, force: bool) -> None:
    """Raises InputError where an archive may not be written: something is there, and is no archive of a publication, or
    is one and nobody said that it may be replaced.
    """
    if not path.exists() and not path.is_symlink():
        return
    if path.is_symlink() or not path.is_file() or not _is_published(path):
        raise InputError(f"--archive: {path} is there and is nothing that labctl published; choose another --out")
    if not force:
        raise InputError(f"--archive: {path} is there already; choose another --out, or replace it with --force")


def _is_published(path: Path) -> bool:
    try:
        with zipfile.ZipFile(path) as packed:
            return PUBLISHED in packed.namelist()
    except (OSError, ValueError, zipfile.BadZipFile, NotImplementedError):
        return False


def write_archive(folder: Path, path: Path) -> None:
    """Pack a published folder into `path`, whole or not at all. Raises StorageError."""
    with file_errors(str(folder)):
        files = sorted(one for one in folder.rglob("*") if one.is_file())
    replaced = file_in_one_step(path, durable=False, large=True, as_before=True)
    with replaced as part, zipfile.ZipFile(part, "w", zipfile.ZIP_STORED) as packed:
        for one in files:
            info = zipfile.ZipInfo(one.relative_to(folder).as_posix(), EPOCH)
            info.external_attr = (stat.S_IFREG | 0o644) << 16
            info.file_size = one.stat().st_size
            with one.open("rb") as source, packed.open(info, "w") as to:
                shutil.copyfileobj(source, to, PIECE)


@contextmanager
def unpacked(path: Path) -> Iterator[Path]:
    """A folder with what is in an archive, gone afterwards. Raises BrokenRecord for what is no plain archive of files,
    or unpacks to more than it may, StorageError.
    """
    with tempfile.TemporaryDirectory(prefix="labctl-published-") as work:
        folder = Path(work) / "published"
        with file_errors(str(path)):
            folder.mkdir()
            try:
                with zipfile.ZipFile(path) as packed:
                    for info in _checked(path, packed):
                        _unpack(packed, info, folder)
            except _UNSOUND as error:
                raise BrokenRecord(f"{path}: not a sound zip archive ({str(error)[:100]}); get it anew") from None
        yield folder


_UNSOUND = (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, ValueError)


def _checked(path: Path, packed: zipfile.ZipFile) -> list[zipfile.ZipInfo]:
    """The files of an archive, once its directory is believable."""
    entries, size = packed.infolist(), path.stat().st_size
    if len(entries) > MOST_FILES:
        raise BrokenRecord(f"{path}: {count(len(entries), 'file')}; {MOST_FILES} are the most")
    names: set[str] = set()
    for info in entries:
        name = info.filename.rstrip("/") if info.is_dir() else info.filename
        check_path(name, f"{path.name} holds")
        kind = stat.S_IFMT(info.external_attr >> 16)
        if kind not in (0, stat.S_IFREG, stat.S_IFDIR):
            raise BrokenRecord(f"{path.name} holds {name[:100]!r}, which is a link or no plain file")
        if info.compress_type not in METHODS:
            raise BrokenRecord(
                f"{path.name} holds {name[:100]!r}, packed by method {info.compress_type}; zip's own is 8"
            )
        if name in names:
            raise BrokenRecord(f"{path.name} holds {name[:100]!r} twice")
        names.add(name)
    if sum(info.compress_size for info in entries) > size:
        raise BrokenRecord(f"{path.name}: its files overlap: together they are longer than the archive")
    if (total := sum(info.file_size for info in entries)) > RATIO * size + ROOM:
        raise BrokenRecord(f"{path.name}: {size} bytes that unpack to {total}; more than {RATIO} for one is a bomb")
    return [info for info in entries if not info.is_dir()]


def _unpack(packed: zipfile.ZipFile, info: zipfile.ZipInfo, folder: Path) -> None:
    path, left = folder / info.filename, info.file_size
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        raise StorageError(f"{path}: a file and a folder have the same name")
    with packed.open(info) as source, path.open("xb") as to:
        while piece := source.read(min(PIECE, left + 1)):
            left -= len(piece)
            if left < 0:
                raise BrokenRecord(f"{info.filename[:100]!r} unpacks to more than the {info.file_size} bytes announced")
            to.write(piece)
