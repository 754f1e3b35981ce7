"""What a published record leaves out: files and traces that its journal holds the digests of, and nothing else; and
what a report of one knows that a lab's does not.

May not: decide what is withheld, read a manifest, or pass over what is there: a thing that was left out and lies there
all the same is a problem of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labctl.errors import LabctlError
from labctl.store.database_backend import Reader, sqlite_url
from labctl.store.ledger import SEALED_TRACES, TRACES
from labctl.store.problem import Problem

_OF_FILES = frozenset({"missing video", "missing side file", "missing photo"})
_OF_TRACES = frozenset({"changed stream declaration", "missing or added trace chunk"})
_EPISODES = "SELECT DISTINCT episode FROM stream UNION SELECT DISTINCT episode FROM chunk"


@dataclass(frozen=True, slots=True)
class Withheld:
    """files: paths below the campaign's folder, as the journal names them; traces: episodes none of whose samples are
    there.
    """

    files: frozenset[str] = frozenset()
    traces: frozenset[str] = frozenset()


NOTHING_WITHHELD = Withheld()


@dataclass(frozen=True, slots=True)
class Published:
    """withheld: what is not there; untraced, unseen: why the samples, or the pictures, of an episode are not; stated:
    rows of the provenance that are the lab's word; read_at: the folder that the report's links are made for, which the
    one it is written to need not be; linked: whether that folder leads to the record's own files; earlier,
    earlier_unseen: what is not there of the campaign that this one was linked to, where the report is of both.
    """

    withheld: Withheld = NOTHING_WITHHELD
    untraced: Mapping[str, str] = field(default_factory=dict[str, str])
    unseen: Mapping[str, str] = field(default_factory=dict[str, str])
    stated: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, Mapping[str, str]])
    read_at: Path | None = None
    linked: bool = True
    earlier: Withheld = NOTHING_WITHHELD
    earlier_unseen: Mapping[str, str] = field(default_factory=dict[str, str])

    def lines(self) -> list[str]:
        """What a report says of it: a line for each reason."""
        found: list[str] = []
        for what, of in (("samples", self.untraced), ("pictures", self.unseen)):
            for why in dict.fromkeys(of.values()):
                named = [episode for episode, reason in of.items() if reason == why]
                found.append(f"withheld when this was published, {what} of {', '.join(named)}: {why}")
        return found


IN_A_LAB = Published()


def but_withheld(folder: Path, problems: Sequence[Problem], withheld: Withheld) -> list[Problem]:
    """The problems of a record without those that are what was withheld, with those of what is there all the same."""
    if withheld == NOTHING_WITHHELD:
        return list(problems)
    return [one for one in problems if not _is_withheld(one, withheld)] + _there(folder, withheld)


def _is_withheld(problem: Problem, withheld: Withheld) -> bool:
    if problem.what in _OF_FILES:
        return problem.where.partition(" (")[0] in withheld.files
    return problem.what in _OF_TRACES and problem.episode in withheld.traces


def _there(folder: Path, withheld: Withheld) -> list[Problem]:
    text = "it is listed as withheld, and lies there"
    found = [Problem("withheld and there", name, text) for name in sorted(withheld.files) if (folder / name).exists()]
    for name in (TRACES, SEALED_TRACES):
        if not withheld.traces or not (folder / name).is_file():
            continue
        try:
            there = set(Reader(sqlite_url(folder / name)).rows(_EPISODES, str))
        except LabctlError:
            continue  # the traces themselves are checked, and named, elsewhere
        found += [
            Problem("withheld and there", f"{name} episode {episode}", text)
            for episode in sorted(there & withheld.traces)
        ]
    return found
