"""An archive of a publication is a stranger's: whatever is wrong with one, a line says it before it is unpacked."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from support.runs.published import zipped

from labctl.errors import LabctlError
from labctl.publishing.archive import unpacked, write_archive
from labctl.publishing.check import check_published

pytestmark = pytest.mark.usefixtures("no_collector")


def twice(path: Path) -> Path:
    """The second name is the first's too, in both of its places."""
    path.write_bytes(path.read_bytes().replace(b"README.mx", b"README.md"))
    return path


def _directory(path: Path, change: Callable[[bytearray, int], None]) -> Path:
    """Change each entry of an archive's directory, by where it begins."""
    data = bytearray(path.read_bytes())
    at = data.find(b"PK\x01\x02")
    while at >= 0:
        change(data, at)
        at = data.find(b"PK\x01\x02", at + 4)
    path.write_bytes(data)
    return path


def said_small(path: Path) -> Path:
    """Its directory says 100 bytes, unpacked."""

    def change(data: bytearray, at: int) -> None:
        data[at + 24 : at + 28] = (100).to_bytes(4, "little")

    return _directory(path, change)


def overlapping(path: Path) -> Path:
    """Each entry of its directory leads to the first file."""

    def change(data: bytearray, at: int) -> None:
        data[at + 42 : at + 46] = bytes(4)

    return _directory(path, change)


def locked(path: Path) -> Path:
    """Its directory says that a password is needed."""

    def change(data: bytearray, at: int) -> None:
        data[at + 8] |= 1

    return _directory(path, change)


def no_utf8(path: Path) -> Path:
    """A name that is flagged as UTF-8, and is none."""
    path.write_bytes(path.read_bytes().replace("ä".encode(), b"\xc3("))
    return path


def spoilt_lzma(path: Path) -> Path:
    """Packed by another method, and then not."""
    data = bytearray(zipped(path, {"README.md": b"hello world " * 20}, method=zipfile.ZIP_LZMA).read_bytes())
    data[51:59] = bytes(byte ^ 0xFF for byte in data[51:59])
    path.write_bytes(data)
    return path


ARCHIVES: dict[str, tuple[Callable[[Path], Path], str]] = {
    "a path that goes up": (lambda at: zipped(at, {"../x": b""}), "which does not lie in the folder"),
    "an absolute path": (lambda at: zipped(at, {"/tmp/x": b""}), "which does not lie in the folder"),
    "a link": (lambda at: zipped(at, {"README.md": b"/etc/passwd"}, attributes=0o120777 << 16), "which is a link"),
    "a bomb": (
        lambda at: zipped(at, {"README.md": bytes(30 << 20)}, method=zipfile.ZIP_DEFLATED),
        "more than 200 for one is a bomb",
    ),
    "a name twice": (lambda at: twice(zipped(at, {"README.md": b"a", "README.mx": b"b"})), "twice"),
    "a path with backslashes": (lambda at: zipped(at, {"a\\..\\x": b""}), "which does not lie in the folder"),
    "a bomb that says it is small": (
        lambda at: said_small(zipped(at, {"README.md": bytes(30 << 20)}, method=zipfile.ZIP_DEFLATED)),
        "not a sound zip archive|longer than",
    ),
    "files that overlap": (
        lambda at: overlapping(zipped(at, {f"{n}.md": b"a" * 1000 for n in range(4)})),
        "overlap|not a sound zip archive",
    ),
    "a locked file": (lambda at: locked(zipped(at, {"README.md": b"a" * 100})), "not a sound zip archive"),
    "a name that is no UTF-8": (lambda at: no_utf8(zipped(at, {"ä.csv": b"1"})), "not a sound zip archive"),
    "another method, spoilt": (spoilt_lzma, "packed by method 14"),
    "another method": (
        lambda at: zipped(at, {"README.md": b"hello"}, method=zipfile.ZIP_BZIP2),
        "packed by method 12",
    ),
    "no archive": (lambda at: at.write_bytes(b"PK" * 100) and at, "not a sound zip archive"),
}


@pytest.mark.parametrize("weapon", ARCHIVES)
def test_an_archive_is_unpacked_below_its_folder_and_no_further_than_its_size(weapon: str, tmp_path: Path) -> None:
    make, expected = ARCHIVES[weapon]
    with pytest.raises(LabctlError, match=expected), unpacked(make(tmp_path / "a.zip")):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["a.zip"]


def test_an_archive_is_the_folder(whole: Path, tmp_path: Path) -> None:
    left = tmp_path / ".a.zip.4194305.part"  # of a process that was killed: none has this number
    left.write_bytes(b"half")
    write_archive(whole, tmp_path / "a.zip")
    assert not left.exists()
    write_archive(whole, tmp_path / "b.zip")
    assert (tmp_path / "a.zip").read_bytes() == (tmp_path / "b.zip").read_bytes()
    with unpacked(tmp_path / "a.zip") as folder:
        assert check_published(folder).problems == []
