"""A joint campaign as a site shows it: one entry and one report for all of its published parts.

May not: rank: no joint campaign is linked to another, and no part of one stands on a board by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.errors import InputError
from labctl.plain import count
from labctl.publishing.cells.check import Together
from labctl.publishing.cells.report import joint_report, refuse_unless_together
from labctl.publishing.cells.seal_record import read_seal_record
from labctl.publishing.shown import Shown

APART = "one campaign in several cells, which is linked to no other"


@dataclass(frozen=True, slots=True)
class JointShown:
    """A joint campaign. parts: as the site shows each by itself; together: how they hold together."""

    together: Together
    parts: Sequence[Shown]

    @property
    def name(self) -> str:
        return self.together.name

    @property
    def title(self) -> str:
        seal = self.together.seal
        return self.parts[0].manifest.title if seal is None else seal.manifest.title

    @property
    def frozen(self) -> str:
        """When the last of it was frozen, or else unblinded: wall time, ISO 8601, UTC."""
        return max(part.manifest.frozen for part in self.parts)

    @property
    def kind(self) -> str:
        return self.parts[0].manifest.kind

    @property
    def arms(self) -> list[str]:
        """Of every cell, each once."""
        return list(dict.fromkeys(arm["arm"] for part in self.parts for arm in part.result["arms"]))

    @property
    def scored(self) -> int:
        return sum(len(part.record.scored) for part in self.parts)


def joint_shown(
    campaigns: Mapping[Path, Shown],
    seals: Sequence[Path],
    reports: Path,
    say: Callable[[str], None] = lambda line: None,
) -> list[JointShown]:
    """The joint campaigns of a site, each with its report in a folder of its name below `reports`. campaigns: the
    published folders that are no seal host's record; seals: those that are.

    Raises as `refuse_unless_together`, InputError for a record without parts and where a name is taken.
    """
    groups: dict[str, list[Path]] = {}
    for folder, one in campaigns.items():
        joint = one.record.state.opened.get("joint")
        if joint is not None:
            groups.setdefault(joint["commitment"], []).append(folder)
    for folder in seals:
        manifest = read_seal_record(folder).manifest
        if manifest.commitment not in groups:
            raise InputError(f"{folder} is the seal host's record of {manifest.campaign}; give its published parts too")
        groups[manifest.commitment].append(folder)
    found: list[JointShown] = []
    for folders in groups.values():
        together = refuse_unless_together(folders)
        if (reports / together.name).exists():
            raise InputError(
                f"{folders[0]}: another campaign of a site is called {together.name} too; a site has each name once"
            )
        say(f"{together.name}: making the report of {count(len(together.parts), 'part')}")
        joint_report(together, reports / together.name, linked=False)
        found.append(JointShown(together, [campaigns[part.folder] for part in together.parts]))
    return sorted(found, key=lambda one: (one.frozen, one.name))
