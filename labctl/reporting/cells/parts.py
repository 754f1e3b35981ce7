"""Which folders are the parts of one campaign in several cells, by what they say of themselves; nothing is verified.

May not: read more of a folder than its first entry.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.errors import InputError, LabctlError
from labctl.messages.joint import JointPart
from labctl.store.journal import events_of
from labctl.store.lab_folder import campaign_folder, campaigns, find_lab

SEALS = "joint"  # of a seal host's lab, as labctl.joint has it, which is not imported from here


def part_of(folder: Path) -> JointPart | None:
    """Which part of a joint campaign a folder is; None for a campaign by itself, or what cannot be read."""
    try:
        return body_of(events_of(folder, most=1)[0], CampaignOpened).get("joint")
    except (LabctlError, IndexError):
        return None


def parts_named(names: Sequence[str], lab: Path | None) -> list[Path] | None:
    """The folders of one joint campaign, by their names or by its own; None where they are campaigns by themselves.

    Raises InputError for a name that there is not, and where some are parts and some are not.
    """
    folders = folders_of(names[0], lab) if len(names) == 1 else [_folder(name, lab) for name in names]
    parts = [part_of(folder) for folder in folders]
    if all(part is None for part in parts):
        return None
    if alone := [folder.name for folder, part in zip(folders, parts, strict=True) if part is None]:
        raise InputError(f"{alone[0]} is no part of a joint campaign, and the others are; report it by itself")
    return folders


def folders_of(name: str | None, lab: Path | None) -> list[Path]:
    """The folder of a campaign, as `campaign_folder` finds it, or those of a joint campaign's parts by its own name.

    Raises InputError for neither.
    """
    found = [] if name is None else _of_joint(name, lab)
    try:
        return [_folder(name, lab)]
    except InputError:
        if not found:
            raise
        return found


def _folder(name: str | None, lab: Path | None) -> Path:
    try:
        return campaign_folder(name, lab)
    except InputError as error:
        if name is None or not _sealed_here(name, lab):
            raise
        text = f"{name} is a joint campaign whose seal is here; name its parts instead, those elsewhere by their paths"
        raise InputError(text) from error


def _sealed_here(name: str, lab: Path | None) -> bool:
    try:
        return (find_lab(lab) / SEALS / name).is_dir()
    except LabctlError:
        return False


def _of_joint(name: str, lab: Path | None) -> list[Path]:
    try:
        folders = campaigns(find_lab(lab))
    except LabctlError:
        return []
    return [folder for folder in folders if (part := part_of(folder)) is not None and part["name"] == name]
