"""The headings, standing sentences and methods notes of a report, so that HTML and Markdown cannot differ.

May not: hold a number of a campaign or a claim about an arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from labctl.analysis.report.lab_facts import Lab
    from labctl.analysis.report.page import Page

HEADINGS: Mapping[str, str] = {
    "flow": "From plan to score",
    "flow_by_arm": "By arm",
    "voids": "If every void after go had been an episode without success",
    "success": "Success over time",
    "pp": "P–P plots",
    "pairs": "Pairs of arms",
    "effects": "By how much they differ",
    "tests": "Tests",
    "objects": "Arm by object",
    "cells": "Every cell",
    "answers": "How fast each arm answered",
    "limits": "Deviations, warnings and blinding",
    "deviations": "Deviations from the protocol",
    "warnings": "Warnings of the analysis",
    "blinding": "Blinding",
    "notes": "Notes",
    "provenance": "Provenance",
    "sessions": "Sessions",
    "verify": "How to check this report",
    "methods": "What the words mean",
    "clips": "Clips",
    "episodes": "Episodes",
}
CLIPS = (
    "Chosen by rule, not by eye: typical is the episode nearest to its arm’s median of items moved, then of time; "
    "worst the one with the fewest moved, of these the longest. Of tasks that are not counted in items the score "
    "stands for items moved, and where an arm has both kinds the share done. Stop is the first that ended by a safety "
    "stop; without one, by an interlock; without one, by the operator. The bar below a picture shows how much of what "
    "is shown has passed."
)
EPISODES_PAGE = "To sort and filter, with every video at one speed in real time: "
FOOTER = (
    "Written by labctl from the operations table and the analysis result in report.json; every figure is in figures/ "
    "with the numbers it draws."
)


def sentences(page: Page, lab: Lab) -> dict[str, str]:
    """The sentence that stands beside or in the place of each part of a page, "" for none. page: all but
    these sentences; lab: the facts it was made from.
    """
    reference = page["reference"]
    flow = "" if page["flow"] else "A bare table: what was planned, voided or never run is not recorded in it."
    done = (
        "F(t): share of operations done within t seconds (Kaplan–Meier, lost items never done); one panel per object, "
        "and first their mean. A time budget that ran out counts as slow, not as failed, so F is no share of items "
        "moved: an arm that moved 4 of 12 can end at 100 %. Below each panel stands how many operations its curve "
        "rests on (a lost item stays among them) and how many items were moved of those staged; a curve is pale, and "
        "has no band, where it rests on fewer than five operations."
    )
    followed = (
        f"Each point is one time t up to tau: what {reference} had done by then, and what the arm had. On the dotted "
        f"diagonal an arm would keep pace with {reference}; below it, it lags."
    )
    return {
        "flow": flow,
        "voids": "" if page["void_table"] else _voids(lab),
        "success": f"{done} {page['band_note']}".strip() if page["curves"] else "The result holds no curves.",
        "hrt": "" if reference else "The table has no reference arm, so there is no human-relative throughput.",
        "pp": followed if page["pp"] else "",
        "pairs": "" if page["pair_table"].rows else "No pair of arms was compared.",
        "deviations": "None recorded." if page["has_lab"] else "A bare table: none can be recorded in it.",
        "warnings": "None.",
        "clips": CLIPS,
        "episodes_page": EPISODES_PAGE if page["episodes_page"] else "",
        "footer": FOOTER,
    }


def _voids(lab: Lab) -> str:
    """What stands in the place of the table of voids after go. lab: as the reports of a campaign have it, where such a
    table is missing only where every such void is among the episodes that count.
    """
    flow = lab.get("flow")
    after_go = flow.get("voids_after_go") if flow else None
    if after_go == 0:
        return "No episode was voided after go, so counting such voids as no success changes nothing."
    if not after_go or lab.get("void_as_failure") is None:
        return ""
    one = after_go == 1
    return (
        f"{after_go} episode{'' if one else 's'} voided after go {'counts' if one else 'count'} as no success already."
    )


def never_reviewed(lines: Sequence[str]) -> str:
    """What it means that campaigns were frozen without a review. lines: one of each."""
    reasons = "; ".join(lines)
    return f"{reasons}. Operation events of episodes that nobody went through stand as recorded, and stay unreviewed."


PHAIL = "PhAIL, arXiv 2605.29710"

NOTES: tuple[tuple[str, str], ...] = (
    (
        "Operation and its time",
        "An operation is one item moved to the target. Its time runs from the previous success of the episode, or from "
        "go for the first. Go is the first live observation handed to a connected, warmed-up policy, or the same cue "
        "given to a person, so loading and connecting never count and slow inference does. "
        f"(Operation time: {PHAIL}, section 3.1; go: labctl.)",
    ),
    (
        "Success curve",
        "F(t) is the Kaplan–Meier share of operations done within t seconds. A time budget that runs out censors the "
        "open operation: slow, not failed. So F is what would be done if every operation had the time, and not the "
        "share of items moved. F(budget) is its height at the end of the budget. Beyond the last observation the "
        "curve is carried flat. "
        f"({PHAIL}; Kaplan and Meier 1958.)",
    ),
    (
        "RMST",
        "Restricted mean survival time: the area above the success curve up to tau, that is the mean time per item "
        "with every operation cut at tau; of all operations pooled, unless the page says that every episode counts "
        "once. A median over successes only is never printed: it flatters an arm that "
        f"drops its hard items. (Definition: {PHAIL}.)",
    ),
    (
        "HRT",
        "Human-relative throughput: RMST of the human reference divided by RMST of the arm, per object, then averaged "
        "over objects with equal weights. It depends on tau and on who teleoperated. A robot that never moves scores "
        f"RMST of the reference over tau, not zero; that floor is printed beside it. (HRT: {PHAIL}; floor: labctl.)",
    ),
    (
        "Ghost",
        "An item lost outside the workspace, or the one operation that caused a safety stop, can never be finished. It "
        "enters the curve as an event at infinity, so the curve levels off below 100 %. Under censoring this biases "
        "RMST upwards; the Aalen–Johansen column, which uses when the item was lost, is the repaired estimate. "
        f"(Ghosts: {PHAIL}; bias and repair: labctl simulations; Aalen and Johansen 1978.)",
    ),
    (
        "Wang–Chang and first item",
        "Later operations have only what the earlier ones left of the budget, so pooling them flatters slow arms: by "
        "5 to 6.5 % in simulation, by up to 17.5 % where episodes differ much (gamma frailty). The Wang–Chang estimate "
        "and the RMST of first operations alone do not suffer from this and stand beside the pooled one. A protocol "
        "may register the Wang–Chang estimate as what RMST, HRT and their ratios are made of, and the page then says "
        "so; success curves pool all operations either way. It takes no later operation for harder. (Wang and "
        "Chang 1999.)",
    ),
    (
        "Tests and verdicts",
        "Each pair is tested by swapping the labels of its two arms within block and object; p = (b + 1) / (B + 1). "
        "A family of statistics is combined by its smallest p over one set of permutations, and Holm adjusts over "
        "pairs, those with the reference as one family and all others as another. A campaign fixes that family of "
        "statistics in its protocol before the first trial; a bare table has no record of "
        "it. A verdict is an order, different without an order (or as the object has it), or not resolved at this N. "
        "Not resolved means that this campaign was too small to tell, nothing more. "
        f"(Verdicts: {PHAIL}; permutation test: labctl, since the paper's bootstrap rejects too often.)",
    ),
    (
        "Intervals",
        "They are at 95 % where no other level stands beside them; those of several pairs at once are at 1 − alpha. "
        "All treat an episode, not an operation, as the unit, because operations of an episode depend on each other; "
        "where arms ran in the same blocks, whole blocks are drawn. RMST, HRT and the P–P area have studentised "
        "bootstrap intervals on a log or logit scale, with a deterministic t interval in their place where too few "
        "operations succeeded. The percentile interval is the paper's; at ten episodes per cell it is too narrow. "
        "Bands cover a whole curve at once. (Efron and Tibshirani 1993; calibration: labctl.)",
    ),
    (
        "Intervention",
        "A person's touch of an episode between go and its end, as an interval with a kind. It neither voids nor fails "
        "the episode: shares are of all scored episodes, and items moved unaided leave out those during whose time "
        "somebody touched it. (labctl.)",
    ),
    (
        "Void",
        "A technical fault makes an episode void: the slot is run again with the same arm. A void after go needs a "
        "machine event behind it or a second person; a table above counts those as no success, as a check.",
    ),
)
