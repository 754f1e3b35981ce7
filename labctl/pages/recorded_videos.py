"""The videos of a campaign's episodes as a page plays them, verified first and on the time since go; and the pictures
of its rubrics.

May not: hand out anything but the cameras' pictures, when they were taken, and a rubric's: no other stream, no arm.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from labctl.clock import SECOND
from labctl.core.record import Episode, Record
from labctl.core.recorded.projection import capture_ns
from labctl.core.task import Task
from labctl.errors import InputError
from labctl.messages.body_parts import VideoEntry
from labctl.pages.playable import pictures, playable
from labctl.store.campaign import Campaign
from labctl.store.pictures import encode_png, load_photo
from labctl.store.verifying.verified import samples_of, sealed_video, verified

KEPT_BYTES = 400_000_000  # of videos that are ready to be played; what was looked at longest ago goes first


@dataclass(frozen=True, slots=True)
class Reel:
    """A camera of an episode. frames_s (n,): when each picture was taken, seconds since go; zero_s: what the video's
    own zero is on that time.
    """

    camera: str
    frames_s: np.ndarray
    zero_s: float


class RecordedVideos:
    """Of one campaign. An episode is verified when it is first looked at, and the bytes of a video each time they are
    read; what is kept are copies that can be played. May be asked from several threads.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = threading.RLock()
        self._reels: dict[str, list[Reel]] = {}
        self._videos: dict[tuple[str, str], VideoEntry] = {}
        self._playable: OrderedDict[tuple[str, str], bytes] = OrderedDict()

    def anchor(self, task: Task | None, place: str) -> bytes:
        """The picture of a rubric's anchor, as PNG, by its place. Raises InputError where there is none, BrokenRecord
        for one that is not as it was kept, StorageError.
        """
        photos = [anchor.get("picture") for anchor in task.rubric] if task else []
        photo = next((one for number, one in enumerate(photos) if str(number) == place), None)
        if photo is None:
            raise InputError(f"no anchor {place!r} of the rubric has a picture; load the page again")
        return encode_png(load_photo(self._folder, photo))

    def reels(self, episode: str) -> list[Reel]:
        """The cameras that filmed an episode, in the cell's order; [] where none did. Raises BrokenRecord for a
        recording that does not hold, InputError for an unknown episode.
        """
        with self._lock:
            if episode not in self._reels:
                with verified(self._folder, [episode]) as shown:
                    record = shown.campaign.record()
                    self._reels[episode] = reels_of(shown.campaign, record, episode)
                    self._videos |= {(episode, name): one for name, one in record.episodes[episode].videos.items()}
            return self._reels[episode]

    def video(self, episode: str, camera: str) -> bytes:
        """A video as a browser plays it. Raises as `reels`, and InputError for an unknown camera."""
        with self._lock:
            if all(reel.camera != camera for reel in self.reels(episode)):
                raise InputError(f"no video of a camera {camera!r} in episode {episode}")
            key = (episode, camera)
            if key not in self._playable:
                self._playable[key] = playable(sealed_video(self._folder, self._videos[key]))
            self._playable.move_to_end(key)
            while len(self._playable) > 2 and sum(map(len, self._playable.values())) > KEPT_BYTES:
                self._playable.popitem(last=False)
            return self._playable[key]

    def strip(
        self, episode: str, camera: int, at_s: Sequence[float], width: int
    ) -> tuple[str, list[tuple[float, np.ndarray]]]:
        """The pictures nearest before these moments (ascending, s since go) by one camera, counted on from the first:
        (its name, [(when it was taken, (height, width, 3) uint8 RGB)]); ("", []) where nothing was filmed. Moments
        beyond the video's ends have its first or last picture. Raises as `video`, and StorageError.
        """
        reels = self.reels(episode)
        if not reels:
            return "", []
        reel = reels[camera % len(reels)]
        numbers = np.clip(np.searchsorted(reel.frames_s, np.asarray(at_s) + 1e-6, side="right") - 1, 0, None)
        times = [float(reel.frames_s[number]) for number in numbers]
        at_us = [round((at - reel.zero_s) * 1e6) for at in times]
        return reel.camera, list(zip(times, pictures(self.video(episode, reel.camera), at_us, width), strict=True))


def reels_of(campaign: Campaign, record: Record, name: str, most: int | None = None) -> list[Reel]:
    """The cameras of a verified episode that got to go, in the cell's order, no more than `most`. Raises InputError for
    an unknown one.
    """
    episode: Episode | None = record.episodes.get(name)
    if episode is None:
        raise InputError(f"no episode {name!r} in {campaign.folder.name}; list them with: labctl episodes")
    if episode.go_ns is None:
        return []
    found: list[Reel] = []
    store = samples_of(campaign, held=True)
    try:
        specs = {spec.name: spec for spec in store.streams(name)}
        for camera in campaign.cell.camera:
            if len(found) == most:
                break
            entry, spec = episode.videos.get(camera.name), specs.get(f"camera/{camera.name}")
            if entry is None or not entry["frames"] or spec is None:
                continue
            _, values = store.read(name, spec.name)
            if not len(values):
                continue
            column = {one: values[:, i] for i, one in enumerate(spec.columns)}
            frames_s = (capture_ns(column["host_ns"], camera.latency_s) - episode.go_ns) / SECOND
            found.append(Reel(camera.name, frames_s, float(frames_s[0]) - float(column["pts_us"][0]) / 1e6))
    finally:
        store.close()
    return found
