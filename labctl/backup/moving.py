"""Move a lab to another disk: copied while nothing runs, proved, and the old place marked. To another computer: by a
snapshot, which is restored there.

May not: delete anything, leave two places that are both the lab, or mark the old one before the new one is proved.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from labctl.backup.repository import Repository, copied
from labctl.backup.restoring import proved
from labctl.backup.snapshot import Taken, take_snapshot, what_is_there
from labctl.clock import Anchor
from labctl.errors import BrokenRecord, InputError, LabctlError, StateError, StorageError, in_words
from labctl.plain import count
from labctl.store.atomic_files import file_errors, folder_in_one_step, replace_file, sync_folder
from labctl.store.chain_heads import head_text
from labctl.store.footage import file_digest
from labctl.store.journal import events_of
from labctl.store.lab_folder import ARRIVING, JOURNAL, MARK, MOVED, campaigns, refuse_moved
from labctl.store.locks import LOCKS, Lock, campaign_lock
from labctl.store.verifying.verify import Verification

SPARE_BYTES = 64 << 20  # that stay free on the new disk
Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Moved:
    """What was moved. heads: campaign -> its newest entry (N:HASH), the same in both places; digest: sha256 hex over
    the sorted lines `SHA256  PATH` of every file, as `sha256sum` writes them; verified: each campaign at the new place;
    left: what is no file of a lab, and stayed.
    """

    to: str
    files: int
    size: int
    digest: str
    heads: Mapping[str, str]
    verified: Mapping[str, Verification] = field(default_factory=dict[str, Verification])
    left: Sequence[str] = ()

    @property
    def problems(self) -> list[str]:
        """What does not hold in the new place, and so did not in the old one: every byte is the same."""
        return [f"{name}: {problem}" for name, found in self.verified.items() for problem in found.problems]


def move(lab: Path, to: Path, anchor: Anchor, say: Say = lambda line: None) -> Moved:
    """Move the lab folder `lab` to `to`, which is not there yet. Nothing of the old place is deleted; no command takes
    it for a lab afterwards. A move that was killed is started again (to another folder where `to` is there by then);
    after the mark it is finished. say: called with "k/n files".

    Raises StateError while anything of the lab runs, InputError for a place that will not do, BrokenRecord where what
    arrived is not what was there (the old place is the lab then), StorageError.
    """
    if (lab / MOVED).is_file():
        return _finished(lab, to)
    _check_place(lab, to)
    with still(lab, "lab move"):
        heads = _heads(lab)
        files, folders, left = what_is_there(lab, everything=True)
        size = sum(path.stat().st_size for path in files)
        _check_room(to, size)
        with folder_in_one_step(to, mode=0o700) as part:
            digests = _copied(lab, part, files, folders, say)
            if _heads(lab) != heads or _heads(part) != heads:
                raise BrokenRecord(f"{lab}: a campaign went on while it was copied; the lab stays where it is")
            part.chmod(stat.S_IMODE(lab.stat().st_mode))
        try:
            verified, listed = proved(to, heads), _listed(digests)
            moved = Moved(str(to.resolve()), len(files), size, listed, heads, verified, left)
            _mark(lab, moved.to, heads, listed, anchor)
        except BaseException:
            if not (lab / MOVED).is_file():
                shutil.rmtree(to, ignore_errors=True)
            raise
        _arrive(to)
    return moved


def move_by_snapshot(lab: Path, backups: Path, anchor: Anchor, say: Say = lambda line: None) -> tuple[Taken, Moved]:
    """Keep a last snapshot in a folder of backups, read every kept file of it again, and mark the lab as moved: it is
    restored on another computer. Raises as `move`, and StateError for one that was moved already: its mark says where.
    """
    refuse_moved(lab)
    with still(lab, "lab move"):
        repository = Repository.made(backups, of=lab)
        heads = _heads(lab)
        with Lock(backups / ".lock", "lab move", what=f"{backups}"):
            taken = take_snapshot(lab, repository, anchor, say)
            for number, kept in enumerate(taken.snapshot.files, 1):
                for _ in repository.pieces(kept):
                    pass
                say(f"{number}/{count(len(taken.snapshot.files), 'file')} read again")
        kept_heads = {one.campaign: head_text(one.seq, one.hash) for one in taken.snapshot.heads}
        if kept_heads != heads or _heads(lab) != heads:
            raise BrokenRecord(f"{lab}: a campaign went on while it was kept; the lab stays where it is")
        files = taken.snapshot.files
        listed = _listed({one.path: one.sha256 for one in files})
        where = f"snapshot {taken.name} in {backups.resolve()}"
        _mark(lab, where, heads, listed, anchor)
        return taken, Moved(where, len(files), sum(one.size for one in files), listed, heads)


@contextmanager
def still(lab: Path, verb: str) -> Iterator[None]:
    """Hold every campaign, every seal of a joint one and every cell of a lab while the block runs. Raises StateError
    naming who has one.
    """
    with ExitStack() as held:
        for folder in campaigns(lab):
            held.enter_context(campaign_lock(folder, verb))
        for journal in sorted(lab.glob(f"joint/*/{JOURNAL}")):  # a seal host's, which locks for each answer
            held.enter_context(Lock(journal.with_name(".lock"), verb, what=f"the seal of {journal.parent.name}"))
        for path in sorted((lab / LOCKS).rglob("*.lock")):
            what = f"the lab's {path.stem[1:]}" if path.name.startswith(".") else f"cell {path.stem}"
            held.enter_context(Lock(path, verb, what=what))
        yield


def _check_place(lab: Path, to: Path) -> None:
    if (to / ARRIVING).is_file():
        text = f"{to} was left by a move that was killed; if it was one of {lab}, that is still the lab"
        raise InputError(f"{text}: delete {to} and give the command again; if of another lab, end that move first")
    if to.exists() or to.is_symlink():
        raise InputError(f"{to} is there already; a lab is moved to a new folder, so that nothing is written over")
    if to.resolve().is_relative_to(lab.resolve()):
        raise InputError(f"{to} lies in the lab; name a place outside it")
    if not to.parent.is_dir():
        raise InputError(f"there is no folder {to.parent}; make it first, or mount the disk")


def _check_room(to: Path, size: int) -> None:
    with file_errors(str(to.parent)):
        free = shutil.disk_usage(to.parent).free
    if free < size + SPARE_BYTES:
        raise StorageError(
            f"{to.parent} has {free / 1e6:.0f} MB free, the lab takes {size / 1e6:.0f} MB; the lab stays where it is"
        )


def _heads(lab: Path) -> dict[str, str]:
    """The newest entry of every campaign; "" of a journal that cannot be read, whose bytes are moved as they are."""
    found: dict[str, str] = {}
    for folder in campaigns(lab):
        try:
            last = events_of(folder)[-1]
        except (LabctlError, IndexError):
            found[folder.name] = ""
        else:
            found[folder.name] = head_text(last.seq, last.hash)
    return found


def _copied(lab: Path, to: Path, files: Sequence[Path], folders: Sequence[Path], say: Say) -> dict[str, str]:
    """Copy, then read what was written again, from the disk where the system lets go of it: path -> sha256 hex."""
    found: dict[str, str] = {}
    for folder in folders:
        with file_errors(str(to)):
            (to / folder.relative_to(lab)).mkdir(mode=0o700)
    for number, path in enumerate(files, 1):
        name = path.relative_to(lab).as_posix()
        target = to / (ARRIVING if name == MARK else name)
        with file_errors(str(path)):
            about = path.stat()
            found[name], _ = copied(path, target)
            target.chmod(stat.S_IMODE(about.st_mode))
            os.utime(target, ns=(about.st_atime_ns, about.st_mtime_ns))
            if file_digest(target) != found[name]:
                raise BrokenRecord(f"{name}: what was read back from {to.parent} is not what was written there")
        say(f"{number}/{count(len(files), 'file')}")
    for folder in reversed(folders):
        there = to / folder.relative_to(lab)
        sync_folder(there)
        there.chmod(stat.S_IMODE(folder.stat().st_mode))
    sync_folder(to)
    return found


def _listed(digests: Mapping[str, str]) -> str:
    lines = "".join(f"{sha256}  {name}\n" for name, sha256 in sorted(digests.items()))
    return hashlib.sha256(lines.encode()).hexdigest()


def _mark(lab: Path, to: str, heads: Mapping[str, str], listed: str, anchor: Anchor) -> None:
    """From here on the old place is no lab. The mark is written first: with it alone every command refuses already."""
    text = {"schema": "labctl.moved/1", "to": to, "at": anchor.wall, "heads": dict(heads), "digest": listed}
    replace_file(lab / MOVED, (json.dumps(text, indent=1, ensure_ascii=False) + "\n").encode())
    with file_errors(str(lab)):
        (lab / MARK).rename(lab / f"{MARK}.before")
        sync_folder(lab)


def _arrive(to: Path) -> None:
    with file_errors(str(to)):
        (to / ARRIVING).rename(to / MARK)
        sync_folder(to)


def _finished(lab: Path, to: Path) -> Moved:
    """A move that was killed after the mark: the new place is whole, and becomes the lab."""
    try:
        said = json.loads((lab / MOVED).read_text("utf-8"))
        where, heads, listed = str(said["to"]), dict(said["heads"]), str(said["digest"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise BrokenRecord(f"{lab / MOVED} cannot be read: {in_words(error)}") from error
    if where != str(to.resolve()) or not (to / ARRIVING).is_file():
        raise StateError(f"{lab} was moved to {where}; go on there")
    verified = proved(to, heads)
    with file_errors(str(lab)):
        if (lab / MARK).is_file():
            (lab / MARK).rename(lab / f"{MARK}.before")
            sync_folder(lab)
    files, _, left = what_is_there(to, everything=True)
    size = sum(path.stat().st_size for path in files)
    _arrive(to)
    return Moved(where, len(files), size, listed, heads, verified, left)
