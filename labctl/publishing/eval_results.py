"""An arm's results as entries of `.eval_results/*.yaml`, by which a model's card on the Hub shows them.

The form: https://huggingface.co/docs/hub/eval-results. May not: pool arms, or leave out how sure a number is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labctl.plain import Json
from labctl.publishing.manifest import Manifest

# key of an arm in the report -> (task, key of its interval, factor, words)
MEASURES: Mapping[str, tuple[str, str, float, str]] = {
    "moved": ("items_moved", "moved_ci", 100.0, "items moved, %"),
    "rate": ("success", "rate_ci", 100.0, "episodes that succeeded, %"),
    "score": ("score", "score_ci", 100.0, "mean score, %"),
    "rmst": ("seconds_per_item", "rmst_ci", 1.0, "restricted mean time to the next item, s"),
    "hrt": ("human_relative_throughput", "hrt_ci", 100.0, "human-relative throughput, %"),
}


def results_of(arms: Sequence[Mapping[str, Json]], arm: str, manifest: Manifest) -> list[dict[str, Json]]:
    """One entry a measure that the report has of this arm, among `arms` of its result; [] for one that it has not."""
    found: Mapping[str, Json] = next((one for one in arms if one["arm"] == arm), {})
    entries: list[dict[str, Json]] = []
    for key, (task, interval, factor, words) in MEASURES.items():
        value = found.get(key)
        if not isinstance(value, int | float):
            continue
        notes = f"{words}; {found['episodes']} episodes ({manifest.kind}), blinded"
        bounds = found.get(interval)
        if isinstance(bounds, list) and isinstance(bounds[0], int | float) and isinstance(bounds[1], int | float):
            notes += f"; 95 % interval {bounds[0] * factor:.4g} to {bounds[1] * factor:.4g}"
        notes += f"; labctl campaign {manifest.campaign}, head {manifest.head}"
        dataset = {"id": manifest.dataset, "task_id": task}
        entry: dict[str, Json] = {"dataset": dataset, "value": round(value * factor, 6)}
        entries.append({**entry, **({"date": manifest.frozen} if manifest.frozen else {}), "notes": notes})
    return entries
