"""What trials take in this lab, from the journals of its own campaigns, for whoever plans the next one.

May not: tell times by arm or of a block under way, take a simulated campaign for a person's pace unless it is named, or
read a record that does not hold.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from labctl.errors import InputError, LabctlError, StateError
from labctl.plain import count
from labctl.reporting.times.hours import DOING, hours
from labctl.store.lab_folder import campaign_folder, campaigns, lab_if_any
from labctl.store.verifying.verified import JOURNAL_ALONE, verified


@dataclass(frozen=True, slots=True)
class LabTimes:
    """Seconds and bytes for each scored trial, void attempts and holds included, over `trials` of `campaigns`."""

    campaigns: tuple[str, ...]
    trials: int
    staging_s: float  # reset and staging, with the holds that kept them
    running_s: float
    scoring_s: float
    trial_bytes: float  # on the disk, of all that the campaigns' folders hold

    @property
    def source(self) -> str:
        """Where these times are from, in words."""
        text = f"{count(self.trials, 'trial')} of {', '.join(self.campaigns)}"
        parts = (
            f"{self.staging_s:.0f} s to reset and stage, {self.running_s:.0f} s running, {self.scoring_s:.0f} s scoring"
        )
        return f"measured over {text}: {parts}; void attempts and holds are in them"


def lab_times(lab: Path | None, named: Sequence[str] = ()) -> LabTimes | None:
    """Of the named campaigns, else of every campaign of the lab whose cell is real; None without any, or where no lab
    is named and none is here.

    Raises StateError for named campaigns of which no whole block is scored, InputError for one that is not there, or
    a lab, BrokenRecord for one whose record does not hold.
    """
    if named:
        found = _times(campaign_folder(name, lab) for name in named)
        if found is None:
            raise StateError(
                f"no whole block of {', '.join(named)} is scored yet; name another campaign, or no --times-of"
            )
        return found
    if (home := lab_if_any(lab)) is None:
        return None
    try:
        folders = campaigns(home)
    except InputError:  # a folder that may not be looked into: times are stated then, or a guess
        return None
    return _times(folder for folder in folders if _real_and_whole(folder))


def _real_and_whole(folder: Path) -> bool:
    try:
        with verified(folder, JOURNAL_ALONE) as shown:
            return shown.campaign.opened.get("kind") == "real"
    except LabctlError:
        return False


def _times(folders: Iterable[Path]) -> LabTimes | None:
    trials, names, held = 0, [], 0
    sums = dict.fromkeys(DOING, 0.0)
    for folder in folders:
        with verified(folder, JOURNAL_ALONE) as shown:
            whole = [
                line for line in hours(shown.campaign.record())["blocks"] if line["of"].isdigit() and line["trials"]
            ]
        if whole:
            names.append(folder.name)
            held += sum(map(_bytes_of, folder.rglob("*")))
        for line in whole:
            trials += line["trials"]
            sums = {doing: sums[doing] + line["by"][doing] for doing in DOING}
    if not trials:
        return None
    staging = sums["reset"] + sums["staging"] + sums["hold"]
    running, scoring = sums["running"] / trials, sums["scoring"] / trials
    return LabTimes(tuple(names), trials, staging / trials, running, scoring, held / trials)


def _bytes_of(path: Path) -> int:
    """0 of a folder, and of a file that has gone meanwhile: a run may be going on."""
    try:
        return path.stat().st_size if path.is_file() else 0
    except FileNotFoundError:
        return 0


class Disk(TypedDict):
    """Bytes that a protocol's trials will take, as trials have so far, and bytes that are free where it lies."""

    needed: int
    free: int


def disk_of(trials: int, trial_bytes: float, beside: Path) -> Disk:
    """What the trials of a protocol will take on the disk that it lies on."""
    return {"needed": round(trials * trial_bytes), "free": shutil.disk_usage(beside.resolve().parent).free}
