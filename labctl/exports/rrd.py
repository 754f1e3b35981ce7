"""Exports episodes as Rerun recordings: each as `labctl show` draws it, masked for whom the export is for.

May not: draw anything itself, or import a viewer: what draws is given.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from labctl.exports.recordings import Recordings
from labctl.exports.selection import Chosen, Selection
from labctl.viewing.episode import look_at


def write_episode(
    views: Callable[[], Any], campaign: Path, recordings: Recordings, chosen: Chosen, path: Path
) -> dict[str, int]:
    """Write an episode, for `episode_files`.

    views: what loads the module `labctl.ui.rerun.episode`. Raises MissingExtra without rerun-sdk, StorageError.
    """
    drawing, selection = views(), recordings.selection
    seen = _hidden(look_at(campaign, chosen.episode, masked=selection.masked), selection)
    drawing.save_episode(path, drawing.view_of(seen))
    return {}


def _hidden(seen: Mapping[str, Any], selection: Selection) -> dict[str, Any]:
    """What `look_at` found with every masked arm's name replaced in all that is text."""
    hide = selection.hide
    texts = {name: hide(seen[name]) for name in ("title", "facts")}
    lanes = {name: [replace(mark, label=hide(mark.label)) for mark in marks] for name, marks in seen["lanes"].items()}
    events = [(t_ns, level, hide(text)) for t_ns, level, text in seen["events"]]
    return {**seen, **texts, "lanes": lanes, "events": events}
