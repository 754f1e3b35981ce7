"""The command that makes a report's statistics again from its table, and what of them may then be otherwise.

May not: run it, or promise the numbers of a table that does not hold what they rest on.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TypedDict

from labctl.analysis.family import STATISTICS
from labctl.analysis.report.lab_facts import Lab
from labctl.analysis.survival.curves import KAPLAN_MEIER
from labctl.analysis.survival.resample import BY_DESIGN
from labctl.analysis.survival.result import AnalysisResult
from labctl.analysis.survival.verdicts import ALPHA

Said = list[tuple[str, str]]
"""Alternating text and command."""
BY_SCHEDULE = (
    ": the same numbers, but for p-values and what rests on them (verdicts, letters, the level of intervals that hold "
    "at once). This report exchanged labels as the schedule could have drawn them, which a table does not hold."
)


class Asked(TypedDict):
    """What the result of either table says that it was asked for; None where an older one does not."""

    reference: str | None
    tau: float | None
    alpha: float | None
    seed: int | None


FACTORS = ("session", "operator")


def of_operations(result: AnalysisResult, lab: Lab, perm: int | None = None) -> Said:
    """How the record is verified, if there is one, and the statistics are had again. perm: the label swaps tried."""
    margin, family, estimator = result.get("margin"), tuple(result.get("family") or ()), result.get("estimator")
    by = {name for one in result.get("anew") or () for name in one["factors"]}
    asked = [
        ("--family", ",".join(family) if family != STATISTICS and family else None),
        ("--estimator", estimator if estimator != KAPLAN_MEIER else None),
        ("--margin", margin and _exact(margin["rmst_ratio"])),
        ("--non-inferior-to", margin and margin["non_inferior_to"]),
        ("--random", ",".join(name for name in FACTORS if name in by) or None),
    ]
    of: Asked = {
        "reference": result.get("reference"),
        "tau": result.get("tau"),
        "alpha": result.get("alpha"),
        "seed": result.get("seed"),
    }
    by_schedule = any(pair.get("relabelled_by") == BY_DESIGN for pair in result.get("pairs") or ())
    if stream := (lab.get("labels") or {}).get("asked"):
        return [*_verified(lab), *_whole(stream, lab, result, perm)]
    table = "operations table, by the same labels," if lab else "operations table"
    return _said(lab, table, _command(of, result.get("boot"), perm, asked), by_schedule=by_schedule)


def of_episodes(asked: Asked, lab: Lab, boot: int | None = None, perm: int | None = None) -> Said:
    """The same of a table of episodes. boot, perm: of its plan."""
    return _said(lab, "episodes table", _command(asked, boot, perm, ()), by_schedule=False)


def _command(
    of: Asked,
    boot: int | None,
    perm: int | None,
    further: Sequence[tuple[str, str | None]],
) -> str:
    """What was asked for, as typed in a shell; what `labctl analyze` takes for granted is left out."""
    tau, alpha, seed = of["tau"], of["alpha"], of["seed"]
    asked = [
        ("--reference", of["reference"]),
        ("--tau", None if tau is None else _exact(tau)),
        ("--alpha", None if alpha is None or alpha == ALPHA else _exact(alpha)),
        *further,
        ("--boot", None if boot is None else str(boot)),
        ("--perm", None if perm is None else str(perm)),
        ("--seed", None if seed is None else str(seed)),
    ]
    words = [word for name, value in asked if value is not None for word in (name, shlex.quote(value))]
    return " ".join(["labctl analyze TABLE.csv", *words])


def _exact(value: float) -> str:
    """With all its digits: 30, 0.025."""
    return repr(float(value)).removesuffix(".0")


def _said(lab: Lab, table: str, command: str, *, by_schedule: bool) -> Said:
    same = (BY_SCHEDULE if by_schedule else ": the same table and seed give the same numbers.", "")
    return [
        *(_verified(lab) if lab else ()),
        (f"The statistics alone can be had again from the {table} with ", command),
        same,
    ]


def _verified(lab: Lab) -> Said:
    head = lab.get("head")
    return [
        ("", f"labctl verify {_name(lab)}" + (f" --head {head}" if head else "")),
        (" hashes the journal’s chain, the commitment and every recording again and names what does not hold. ", ""),
    ]


def _whole(stream: str, lab: Lab, result: AnalysisResult, perm: int | None) -> Said:
    """Of other labels than the best nobody writes a table: the report itself is made again."""
    drawn = [("--boot", result.get("boot")), ("--perm", perm), ("--seed", result.get("seed"))]
    words = [word for name, value in drawn if value is not None for word in (name, str(value))]
    command = " ".join(["labctl report", shlex.quote(_name(lab)), "--labels", stream, *words, "--out DIR"])
    text = "No operations table is exported by these labels: the same record gives the same numbers again with "
    return [(text, command), (".", "")]


def _name(lab: Lab) -> str:
    return lab.get("campaign") or "CAMPAIGN"
