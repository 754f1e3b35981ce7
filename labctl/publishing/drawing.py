"""Rerun recordings of a published campaign's episodes, drawn from its record.

May not: show what is withheld.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from labctl.errors import BrokenRecord, in_words
from labctl.store.atomic_files import file_errors
from labctl.store.verifying.withheld import Withheld
from labctl.ui.rerun.episode import save_episode
from labctl.viewing.episode import look_at

RECORDINGS = "recordings"  # the folder of a publication, and of a site


def draw(folder: Path, episode: str, withheld: Withheld, path: Path) -> int:
    """Write an episode of a campaign's record as an .rrd, without what is withheld: its bytes.

    The samples of the episode are there. Raises MissingExtra without rerun-sdk, BrokenRecord for an episode of which a
    stranger wrote what no labctl does, StorageError.
    """
    try:
        return _drawn(folder, episode, withheld, path)
    except (ArithmeticError, AttributeError, IndexError, KeyError, RecursionError, TypeError, ValueError) as error:
        raise BrokenRecord(f"episode {episode} of {folder.name} cannot be drawn: {in_words(error)}") from error


def _drawn(folder: Path, episode: str, withheld: Withheld, path: Path) -> int:
    view = look_at(folder, episode)
    hidden = {folder / name for name in withheld.files}
    videos = {
        name: replace(video, depth=None) if video.depth and video.depth.path in hidden else video
        for name, video in view.videos.items()
        if video.path not in hidden
    }
    photos = {name: photo for name, photo in view.photos.items() if photo not in hidden}
    save_episode(path, replace(view, videos=videos, photos=photos))
    with file_errors(str(path)):
        return path.stat().st_size
