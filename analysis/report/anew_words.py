"""Further evenings and teleoperators, in words: by how much two arms would differ there; asked for by a protocol alone.

May not: estimate (`analysis.episodes.random_factors` did), or order two arms: it says where an order goes no further.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.analysis.numerals import MISSING, listing, number, ratio
from labctl.analysis.report.tables import Column, Table
from labctl.analysis.report.wording import Claim, winner
from labctl.analysis.survival.result import AnalysisResult, Anew, Bounds

TITLE = "Another evening, another person"
LEVELS = {"session": "evenings", "operator": "teleoperators"}
UNABLE = {
    "unknown": "some episodes do not name theirs",
    "few": "an interval takes 4 or more",
    "confounded": "without one of them nothing is left of an arm at an object",
}


def claims(result: AnalysisResult) -> list[Claim]:
    """What is said of the first page's orders: which hold over evenings and people like those that were met, which do
    not, and what cannot be known; none where no random factor was registered.
    """
    found = [one for one in result.get("anew") or () if one["factors"]]  # of the others nothing was asked
    pairs = {(pair["a"], pair["b"]): pair for pair in result["pairs"]}
    ahead = {key for key, pair in pairs.items() if winner(pair) is not None}
    beyond, within, silent = ([one for one in found if _kind(one) == kind] for kind in ("beyond", "within", "silent"))
    out: list[Claim] = []
    if holds := [one for one in beyond if (one["a"], one["b"]) in ahead]:
        out.append(Claim("resolved", f"That goes beyond those who were met: {'; '.join(map(_one, holds))}."))
    if lost := [one for one in within if (one["a"], one["b"]) in ahead]:
        text = f"An order above is of these evenings and people alone: {'; '.join(map(_one, lost))}, which holds 1."
        out.append(Claim("unresolved", text))
    for name in LEVELS:
        for why, names in _by_why([one for one in silent if _main(one) == name]).items():
            out.append(Claim("untested", f"Nothing is known of further {LEVELS[name]} of {names}: {why}."))
    for why, names in _by_why([one for one in found if one["ci"] is not None and _why(one)]).items():
        out.append(Claim("untested", f"Of further {why}: what is said of {names} is of these."))
    return out


def table(result: AnalysisResult) -> Table | None:
    """A row for each pair and factor; None where no random factor was registered."""
    found = [one for one in result.get("anew") or () if one["factors"]]
    if not found:
        return None
    columns = (
        Column("Pair", "text"), Column("Time per item, ratio, over all [95 %]"), Column("t on"),
        Column("Factor", "text"), Column("Met"), Column("One further [95 %]"),
    )  # fmt: skip
    rows = tuple(
        (
            _names(one) if i == 0 else "",
            _ratio(one, one["ci"]) if i == 0 else "",
            ("" if i else number(one["df"])),
            LEVELS[name],
            str(factor["levels"]),
            _ratio(one, factor["further_ci"])
            if factor["unable"] is None
            else f"cannot be given: {UNABLE[factor['unable']]}",
        )
        for one in found
        for i, (name, factor) in enumerate(one["factors"].items())
    )
    note = (
        "The ratio of RMST, the first of a pair over the second, mean over objects. Over all: the interval of its mean "
        "over evenings and people like those that were met, of which these are a sample: t with the standard error of "
        "leaving each out once, on their number less one; of two factors after Cameron, Gelbach & Miller (2011), "
        "degrees of freedom after Satterthwaite. One further: what one more, of the size of these, would show by "
        "itself. Who teleoperates matters to the reference alone, and so to its pairs."
    )
    return Table(columns, rows, note)


def _main(one: Anew) -> str:
    """The factor that the interval stands or falls with: sessions, where they were asked for."""
    return next(name for name in LEVELS if name in one["factors"])


def _kind(one: Anew) -> str:
    if one["ci"] is None:
        return "silent"
    return "within" if one["ci"][0] <= 0 <= one["ci"][1] else "beyond"


def _one(one: Anew) -> str:
    able = [f"{f['levels']} {LEVELS[name]}" for name, f in one["factors"].items() if f["unable"] is None]
    return (
        f"{_names(one)} {_ratio(one, one['ci'])} over {listing(able)} (95 %, "
        f"t on {number(one['df'])} degrees of freedom)"
    )


def _why(one: Anew) -> str:
    """Which factors cannot be taken as a sample of more, and why; "" where all can."""
    return "; ".join(
        f"{LEVELS[name]}, {factor['levels']} met, {UNABLE[factor['unable']]}"
        for name, factor in one["factors"].items()
        if factor["unable"] is not None
    )


def _by_why(pairs: Sequence[Anew]) -> dict[str, str]:
    """The names of the pairs that one reason holds for."""
    found: dict[str, list[str]] = {}
    for one in pairs:
        found.setdefault(_why(one), []).append(_names(one))
    return {why: listing(names) for why, names in found.items()}


def _names(one: Anew) -> str:
    return f"{one['a']} – {one['b']}"


def _ratio(one: Anew, ends: Bounds) -> str:
    return MISSING if ends is None else ratio(one["log_rmst_ratio"], ends)
