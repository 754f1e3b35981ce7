"""A lab made from a snapshot, in a folder that is not there yet, with proof: each digest, each campaign verified.

May not: write into a folder that is there, or say that a campaign holds which was not verified.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from labctl.backup.repository import FileKept, Repository, Snapshot
from labctl.core.campaign_state import Phase
from labctl.errors import BrokenRecord, InputError
from labctl.plain import count
from labctl.store.atomic_files import folder_in_one_step, sync_folder
from labctl.store.chain_heads import head_text, noted
from labctl.store.lab_folder import MARK, campaigns
from labctl.store.verifying.verify import Verification, verify_campaign


@dataclass(frozen=True, slots=True)
class Restored:
    """What was made: of which snapshot, and for each campaign in it what verifying found. `missing`: campaigns whose
    head the snapshot has and whose journal it has not.
    """

    folder: Path
    snapshot: Snapshot
    verified: dict[str, Verification]
    missing: list[str]

    @property
    def whole(self) -> bool:
        """Whether every campaign is there and holds, up to the head that it had."""
        return not self.missing and not any(found.problems for found in self.verified.values())

    @property
    def open(self) -> list[str]:
        """Campaigns that can go on. Only one copy of each may."""
        return [head.campaign for head in self.snapshot.heads if head.phase == Phase.OPEN]


def restore(
    repository: Repository, to: Path, name: str | None = None, say: Callable[[str], None] = lambda line: None
) -> Restored:
    """Make a lab of a snapshot (the newest, or the one whose time begins with `name`) and verify its campaigns.

    It is put in its place as the last step before that, whole. say: called with "k/n files".

    Raises InputError where `to` is there already, BrokenRecord where the backup is damaged (nothing is left then),
    StorageError.
    """
    if to.exists():
        text = f"{to} is there already; a lab is restored into a new folder, so that nothing is written over"
        stopped = "if a restore was stopped while it verified, every file is there: labctl verify each campaign instead"
        raise InputError(f"{text}; {stopped}" if (to / MARK).is_file() else text)
    snapshot = repository.snapshot(name)
    if not any(one.path == MARK for one in snapshot.files):
        raise BrokenRecord(f"snapshot {snapshot.taken} holds no {MARK}; take another (labctl restore --at TIME)")
    with folder_in_one_step(to, mode=0o700) as part:
        for folder in snapshot.folders:
            (part / folder.path).mkdir(parents=True, mode=0o700)
        for number, kept in enumerate(snapshot.files, 1):
            _write(part / kept.path, kept, repository)
            say(f"{number}/{count(len(snapshot.files), 'file')}")
        for folder in reversed(snapshot.folders):
            sync_folder(part / folder.path)
            (part / folder.path).chmod(folder.mode)
        sync_folder(part)
        part.chmod(0o755)
    heads = {head.campaign: head_text(head.seq, head.hash) for head in snapshot.heads}
    verified = proved(to, heads)
    return Restored(to, snapshot, verified, [name for name in heads if name not in verified])


def _write(path: Path, kept: FileKept, repository: Repository) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        for piece in repository.pieces(kept):
            file.write(piece)
        file.flush()
        os.fsync(file.fileno())
    path.chmod(kept.mode & 0o777)
    os.utime(path, ns=(kept.changed_ns, kept.changed_ns))


def proved(lab: Path, heads: Mapping[str, str]) -> dict[str, Verification]:
    """What verifying each campaign of a lab finds, held against its head (N:HASH; "" and none: it has no known one)."""
    return {
        folder.name: verify_campaign(folder, noted(heads.get(folder.name) or None, None), lab=True)
        for folder in campaigns(lab)
    }
