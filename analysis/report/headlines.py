"""What belongs among the headlines besides the comparison of arms: arms without a score, and linked campaigns.

May not: estimate, rank, or judge a pair (`verdicts` and `linked` do).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labctl.analysis.episode_facts import LinkedPairs
from labctl.analysis.numerals import MISSING, count, factor_digits, interval, listing, number
from labctl.analysis.report.lab_facts import Lab
from labctl.analysis.report.tables import Table
from labctl.analysis.report.wording import Claim

NEVER = "never scored"


def unscored(lab: Lab, scored: Sequence[str]) -> dict[str, str]:
    """Arms of the protocol that no episode was scored of, each with why, from the flow of the trials."""
    counts = lab.get("flow")
    by_arm = (counts.get("by_arm") if counts else None) or {}
    return {arm: _why(flow) for arm, flow in by_arm.items() if arm not in scored and not flow.get("scored")}


def _why(flow: Mapping[str, int]) -> str:
    """No arm without a cause: it was not begun, or every attempt was void."""
    planned, run, voids = (flow.get(key) or 0 for key in ("planned", "run", "voids"))
    if not run:
        return f"none of its {count(planned)} trials was begun"
    tries = f"{count(voids)} of {count(run)} attempts at its {count(planned)} trials were void"
    return tries if voids < run else f"each of {count(run)} attempts at its {count(planned)} trials was void"


def with_unscored(table: Table, missing: Mapping[str, str]) -> Table:
    """The main table with a row for each arm that was never scored."""
    if not missing:
        return table
    blank = (MISSING,) * (len(table.columns) - 3)
    rows = tuple((arm, NEVER, *blank, count(0)) for arm in missing)
    text = "; ".join(f"{arm}: {why}" for arm, why in missing.items())
    return Table(table.columns, (*table.rows, *rows), f"{table.note} Never scored: {text}.")


def claims(lab: Lab, missing: Mapping[str, str]) -> list[Claim]:
    """Of arms without a score, and the verdicts on pairs of a linked campaign."""
    found = [
        Claim("untested", f"Nothing can be said of {arm}: it was never scored, {why}.") for arm, why in missing.items()
    ]
    return found + _linked(lab.get("linked"))


def _linked(linked: LinkedPairs | None) -> list[Claim]:
    if not linked or not linked.get("pairs"):
        return []
    one, two = linked["campaigns"]
    found, open_pairs = [], []
    for pair in linked["pairs"]:
        names = f"{pair['a']} ({one}) and {pair['b']} ({two})"
        if "takes less time" not in str(pair["verdict"]):
            open_pairs.append(names)
            continue
        digits = factor_digits(pair["interval"] or ())
        ratio = f"{number(pair['ratio'], digits)} {interval(pair['interval'], digits=digits)}"
        text = f"Of {names}, {pair['verdict']}: RMST ratio {ratio} through {listing(pair['anchors'])}."
        found.append(Claim("resolved", text))
    if open_pairs:
        found.append(Claim("unresolved", f"Not resolved between the two campaigns: {'; '.join(open_pairs)}."))
    return found
