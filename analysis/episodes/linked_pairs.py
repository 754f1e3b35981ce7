"""Every new arm of two linked campaigns against every other, through the anchors fixed when the later was opened.

May not: choose anchors, compare within a campaign (its own report does), or see more of a campaign than its table.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from labctl.analysis.episodes.linked import Campaign, Linked, compare_linked
from labctl.analysis.survival.cells import cells_of
from labctl.analysis.survival.multiplicity import holm
from labctl.analysis.table import NS, table_from_rows

from labctl.errors import LinkError

SCHEMA = "labctl.linked/1"
NOT_RESOLVED = "not resolved at this N"


@dataclass(frozen=True)
class Told:
    """One campaign as its lab tells it: rows of its operations table, and the kind of its episodes."""

    name: str
    rows: Sequence[Mapping[str, Any]]
    kind: str

    def campaign(self) -> Campaign:
        """Its cells, for `linked`. Raises `TableError`."""
        return Campaign(self.name, cells_of(table_from_rows(self.rows, source=self.name)), self.kind)


def linked_pairs(
    first: Told,
    second: Told,
    anchors: Sequence[str],
    *,
    tau: float,
    alpha: float,
    seed: int = 0,
    boot: int = 9999,
) -> dict[str, Any]:
    """The linked comparison as one plain dict: {schema, campaigns, tau, alpha, anchors, pairs, warnings}; tau in s.

    A pair is `linked.Linked` with p_holm (Holm over these pairs) and a verdict. An arm that only shares its name with
    one of the other campaign is no anchor. A pair that may not be compared is a warning beside others that may. Raises
    `LinkError` where nothing may be compared, `TableError`.
    """
    one, two = first.campaign(), second.campaign()
    met = [arm for arm in anchors if arm in one.arms() and arm in two.arms()]
    if not met:
        apart = f"campaigns {one.name} and {two.name} share no anchor with a scored episode in both"
        raise LinkError(f"{apart} (planned: {', '.join(anchors) or 'none'}); they cannot be compared")
    news = [sorted(side.arms() - set(met)) for side in (one, two)]
    if not all(news):
        done = [side.name for side, new in zip((one, two), news, strict=True) if not new]
        raise LinkError(f"every scored arm of {done[0]} is an anchor; the report of one campaign compares all there is")
    found: dict[tuple[str, str], Linked] = {}
    refused: list[LinkError] = []
    for a, b in itertools.product(*news):
        sides = _only(one, [a, *met]), _only(two, [b, *met])
        try:
            found[a, b] = compare_linked(sides[0], a, sides[1], b, tau_ns=round(tau * NS), seed=seed, boot=boot)
        except LinkError as error:
            refused.append(error)
    if not found:
        raise refused[0]
    adjusted = holm({key: pair.p for key, pair in found.items() if pair.p is not None})
    pairs = [_pair(pair, adjusted.get(key), alpha) for key, pair in found.items()]
    lost = [arm for arm in anchors if arm not in met]
    said = [f"anchor {arm} has no scored episode in one of the campaigns and is left out" for arm in lost]
    said += [f"not compared: {error}" for error in refused]
    said += [text for pair in found.values() for text in pair.warnings]
    return {
        "schema": SCHEMA,
        "campaigns": [one.name, two.name],
        "tau": tau,
        "alpha": alpha,
        "anchors": met,
        "pairs": pairs,
        "warnings": list(dict.fromkeys(said)),
    }


def _only(campaign: Campaign, arms: Iterable[str]) -> Campaign:
    kept = set(arms)
    return replace(campaign, cells={key: cell for key, cell in campaign.cells.items() if key[0] in kept})


def _pair(found: Linked, p_holm: float | None, alpha: float) -> dict[str, Any]:
    if p_holm is None or p_holm > alpha:
        verdict = NOT_RESOLVED
    else:
        verdict = f"{found.a} takes less time" if found.ratio < 1 else f"{found.b} takes less time"
    kept = {key: value for key, value in found.as_dict().items() if key not in ("campaigns", "warnings")}
    return {**kept, "p_holm": p_holm, "verdict": verdict}
