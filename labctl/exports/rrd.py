"""Exports episodes as Rerun recordings: each as `labctl show` draws it, masked for whom the export is for.

May not: draw anything itself, or import a viewer: what draws is given.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Protocol

from labctl.exports.recordings import Recordings
from labctl.exports.selection import Chosen, Selection
from labctl.viewing.episode import EpisodeView, look_at


class Drawing(Protocol):
    """What the module `labctl.ui.rerun.episode` is to whoever exports."""

    def save_episode(self, path: Path, episode: EpisodeView) -> None: ...


def write_episode(
    views: Callable[[], Drawing], campaign: Path, recordings: Recordings, chosen: Chosen, path: Path
) -> dict[str, int]:
    """Write an episode, for `episode_files`.

    views: what loads the module `labctl.ui.rerun.episode`. Raises MissingExtra without rerun-sdk, StorageError.
    """
    drawing, selection = views(), recordings.selection
    seen = look_at(campaign, chosen.episode, masked=selection.masked)
    drawing.save_episode(path, _hidden(seen, selection))
    return {}


def _hidden(seen: EpisodeView, selection: Selection) -> EpisodeView:
    """What `look_at` found with every masked arm's name replaced in all that is text."""
    hide = selection.hide
    timelines = {
        name: [replace(mark, label=hide(mark.label)) for mark in marks] for name, marks in seen.timelines.items()
    }
    events = [(t_ns, level, hide(text)) for t_ns, level, text in seen.events]
    return replace(seen, title=hide(seen.title), facts=hide(seen.facts), timelines=timelines, events=events)
