"""An arm's results as entries of `.eval_results/*.yaml`, by which a model's card on the Hub shows them.

The form: https://huggingface.co/docs/hub/eval-results. May not: pool arms, or leave out how sure a number is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from labctl.plain import Json
from labctl.publishing.manifest import Manifest

TAU = re.compile(r" \(tau [^()]* s\)")
FORMERLY: Mapping[str | None, str] = {
    "rmst": "seconds_per_item"
}  # until November 2026; elsewhere that is another measure

# key of an arm in the report -> (task, key of its interval, factor, words)
MEASURES: Mapping[str, tuple[str, str, float, str]] = {
    "moved": ("items_moved", "moved_ci", 100.0, "items moved, %"),
    "rate": ("success", "rate_ci", 100.0, "episodes that succeeded, %"),
    "score": ("score", "score_ci", 100.0, "mean score, %"),
    "rmst": ("rmst", "rmst_ci", 1.0, "restricted mean time to the next item, s"),
    "hrt": ("human_relative_throughput", "hrt_ci", 100.0, "human-relative throughput, %"),
}


def results_of(
    arms: Sequence[Mapping[str, Json]], tau_s: float | None, arm: str, manifest: Manifest
) -> list[dict[str, Json]]:
    """One entry a measure that the report has of this arm, among `arms` of its result; [] for one that it has not.
    tau_s: what its mean times are restricted to, None where it has none.
    """
    found: Mapping[str, Json] = next((one for one in arms if one["arm"] == arm), {})
    entries: list[dict[str, Json]] = []
    for key, (task, interval, factor, words) in MEASURES.items():
        value = found.get(key)
        if not isinstance(value, int | float):
            continue
        within = f" (tau {tau_s:g} s)" if key == "rmst" and tau_s is not None else ""
        notes = f"{words}{within}; {found['episodes']} episodes ({manifest.kind}), blinded"
        bounds = found.get(interval)
        if isinstance(bounds, list) and isinstance(bounds[0], int | float) and isinstance(bounds[1], int | float):
            notes += f"; 95 % interval {bounds[0] * factor:.4g} to {bounds[1] * factor:.4g}"
        notes += f"; labctl campaign {manifest.campaign}, head {manifest.head}"
        dataset = {"id": manifest.dataset, "task_id": task}
        entry: dict[str, Json] = {"dataset": dataset, "value": round(value * factor, 6)}
        entries.append({**entry, **({"date": manifest.frozen} if manifest.frozen else {}), "notes": notes})
    return entries


def as_formerly(published: Json, here: Json) -> Json:
    """The entries made anew in the form of a published file that still has the restricted mean time under its former
    name and without tau; as they are for any other.
    """
    if not isinstance(published, list) or not isinstance(here, list):
        return here
    then = {_task(entry) for entry in published} - {None}
    return [_formerly(entry) if FORMERLY.get(_task(entry)) in then else entry for entry in here]


def _task(entry: Json) -> str | None:
    dataset = entry.get("dataset") if isinstance(entry, Mapping) else None
    task = dataset.get("task_id") if isinstance(dataset, Mapping) else None
    return task if isinstance(task, str) else None


def _formerly(entry: Json) -> Json:
    assert isinstance(entry, Mapping) and isinstance(entry["dataset"], Mapping), "an entry that was made here"
    dataset: Json = {**entry["dataset"], "task_id": FORMERLY[_task(entry)]}
    return {**entry, "dataset": dataset, "notes": TAU.sub("", str(entry["notes"]), count=1)}
