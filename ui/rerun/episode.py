"""One episode, or two side by side, as a Rerun recording (.rrd) with its blueprint.

May not: read a campaign, open a viewer or a port, or hide anything of a view: what made it did.

The .rrd is derived and can always be made again. Every sample and every video frame stands at its measured host time,
on the timeline "since_go" in seconds since the policy was handed its first observation, and on "utc".
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from labctl.errors import MissingExtra, StorageError
from labctl.ui.rerun.episode_view import EpisodeView

APPLICATION = "labctl"
SIDES = ("a", "b")


def save_episode(path: Path, episode: EpisodeView) -> None:
    """Write an episode as an .rrd with its blueprint.

    Raises MissingExtra without rerun-sdk, StorageError when the file or a video cannot be used.
    """
    _save(path, {"": episode})


def save_side_by_side(path: Path, first: EpisodeView, second: EpisodeView) -> None:
    """Write two episodes as one .rrd: the same views in two columns, on one timeline since each one's go.

    Raises as `save_episode` does.
    """
    _save(path, dict(zip(SIDES, (first, second), strict=True)))


def _save(path: Path, episodes: Mapping[str, EpisodeView]) -> None:
    try:
        import rerun as rr
    except ModuleNotFoundError as error:
        raise MissingExtra("rerun", "an .rrd recording") from error
    from labctl.ui.rerun.blueprint import blueprint
    from labctl.ui.rerun.robots import log_episode

    for view in episodes.values():
        for file in (*(video.path for video in view.videos.values()), *view.photos.values()):
            if not file.is_file():
                raise StorageError(f"{file} is missing; `labctl verify` says what else is")
    title = " | ".join(view.title for view in episodes.values())
    recording = rr.RecordingStream(APPLICATION, recording_id=title, send_properties=False)
    building = path.with_name(f".{path.stem}.building.rrd")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        recording.save(building, default_blueprint=blueprint(episodes))
        recording.send_recording_name(title)
        for prefix, view in episodes.items():
            log_episode(recording, view, prefix)
        recording.flush()
        recording.disconnect()
        building.replace(path)
    except (OSError, RuntimeError) as error:
        raise StorageError(f"cannot write {path}: {error}") from error
    finally:
        building.unlink(missing_ok=True)
