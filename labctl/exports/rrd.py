"""Exports episodes as Rerun recordings: each as `labctl show` draws it, masked for whom the export is for.

May not: draw anything itself, or import a viewer: what draws is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from labctl.exports.selection import Selection
from labctl.viewing.episode import look_at


def write_rrds(campaign: Path, selection: Selection, folder: Path, views: Any, say: Callable[[str], None]) -> None:
    """Write EPISODE.rrd for every chosen episode.

    views: the module `labctl.ui.rerun.episode`. Raises MissingExtra without rerun-sdk, StorageError.
    """
    for number, chosen in enumerate(selection.episodes, 1):
        seen = _hidden(look_at(campaign, chosen.episode, masked=selection.masked), selection)
        views.save_episode(folder / f"{chosen.episode}.rrd", views.view_of(seen))
        say(f"{number}/{len(selection.episodes)} {chosen.episode}")


def _hidden(seen: Mapping[str, Any], selection: Selection) -> dict[str, Any]:
    """What `look_at` found with every masked arm's name replaced in all that is text."""
    hide = selection.hide
    texts = {name: hide(seen[name]) for name in ("title", "facts")}
    lanes = {name: [replace(mark, label=hide(mark.label)) for mark in marks] for name, marks in seen["lanes"].items()}
    events = [(t_ns, level, hide(text)) for t_ns, level, text in seen["events"]]
    return {**seen, **texts, "lanes": lanes, "events": events}
