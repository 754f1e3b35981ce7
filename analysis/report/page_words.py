"""The headings and standing sentences of a report, in one place, so that HTML and Markdown cannot differ.

May not: hold a number of a campaign or a claim about an arm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

HEADINGS: Mapping[str, str] = {
    "flow": "From plan to score",
    "flow_by_arm": "By arm",
    "voids": "If every void after go had been an episode without success",
    "success": "Success over time",
    "pp": "P–P plots",
    "pairs": "Pairs of arms",
    "effects": "Effect sizes and p-values",
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
    "worst the one with the fewest moved, of these the longest; stop the first that ended by a safety stop, an "
    "interlock or the operator. The bar below a picture shows how much of what is shown has passed."
)
FOOTER = (
    "Written by labctl from the operations table and the analysis result in report.json; every figure is in figures/ "
    "with the numbers it draws."
)


def sentences(page: Mapping[str, Any]) -> dict[str, str]:
    """The sentence that stands beside or in the place of each part of a page, "" for none. page: as `report` makes it,
    with flow, void_table, curves, band_note, reference, pp, pair_table, has_lab.
    """
    reference = page["reference"]
    flow = voids = ""
    if not page["flow"]:
        flow = "A bare table: what was planned, voided or never run is not recorded in it."
    elif not page["void_table"]:
        voids = "No episode was voided after go, so counting such voids as no success changes nothing."
    done = "Share of operations done within t seconds (Kaplan–Meier, lost items never done), one panel per object."
    followed = (
        f"Each point is one time t up to tau: what {reference} had done by then, and what the arm had. On the dotted "
        f"diagonal an arm would keep pace with {reference}; below it, it lags."
    )
    return {
        "flow": flow,
        "voids": voids,
        "success": f"{done} {page['band_note']}".strip() if page["curves"] else "The result holds no curves.",
        "hrt": "" if reference else "The table has no reference arm, so there is no human-relative throughput.",
        "pp": followed if page["pp"] else "",
        "pairs": "" if page["pair_table"].rows else "No pair of arms was compared.",
        "deviations": "None recorded." if page["has_lab"] else "A bare table: none can be recorded in it.",
        "warnings": "None.",
        "clips": CLIPS,
        "footer": FOOTER,
    }
