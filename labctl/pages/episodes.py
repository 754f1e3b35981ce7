"""The episodes of campaigns as a page in a file: a table to sort and filter, each row with its videos, all of them at
one speed from their go.

May not: estimate or compare (what is said of campaigns side by side comes from who asks), or name an arm or an outcome
of a campaign that is blinded.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from urllib.parse import quote

from labctl.core.events import Event
from labctl.core.record import Episode, Record
from labctl.errors import BrokenRecord, Unreachable
from labctl.pages.episode_rows import (
    EpisodeRow,
    EpisodeVideo,
    Grid,
    ShownCampaign,
    Value,
    cells_away,
    mask_together,
    render,
)
from labctl.pages.playable import played
from labctl.pages.recorded_videos import Reel, reels_of
from labctl.store.atomic_files import file_errors, replace_file
from labctl.store.media.looking import bytes_elsewhere
from labctl.store.verifying.verified import in_passing, sealed_video, verified
from labctl.viewing.status import recorded

STORED = "it is in a media store alone"
COPIED_BYTES = 200_000_000  # of videos beside a page; beyond, it leads to the campaign's own files


def write_page(
    folders: Sequence[Path],
    page: Path,
    *,
    masked: bool = False,
    unverified: bool = False,
    beside: Sequence[Grid] = (),
    say: Callable[[str], None] = lambda line: None,
) -> int:
    """Write a page of these campaigns' episodes to `page` (.html), and their videos into the folder beside it,
    `page`.videos, those of several cells in a folder for each; how many bytes in all. beside: what is said of the
    campaigns side by side; `say` hears each one.

    Raises BrokenRecord for what does not hold, unless `unverified`: then the page says so; StorageError.
    """
    videos = page.with_suffix(".videos")
    files = page_files(
        folders, page.name, videos.name, page.parent, masked=masked, unverified=unverified, beside=beside, say=say
    )
    with file_errors(str(videos)):
        for place in {(page.parent / name).parent for name in files}:
            place.mkdir(parents=True, exist_ok=True)
    for name, data in files.items():
        if name != page.name:
            replace_file(page.parent / name, data, durable=False)
    replace_file(page, files[page.name], durable=False)
    return sum(map(len, files.values()))


def page_files(
    folders: Sequence[Path],
    page: str,
    videos: str,
    out: Path,
    *,
    masked: bool = False,
    unverified: bool = False,
    sure: bool = False,
    known: Mapping[Path, Sequence[Event]] = MappingProxyType({}),
    without: Mapping[Path, Mapping[str, str]] = MappingProxyType({}),
    cameras: int | None = None,
    beside: Sequence[Grid] = (),
    explore: bool = False,
    up: tuple[str, str] | None = None,
    views: Mapping[tuple[str, str], str] | None = None,
    put: Callable[[str, bytes], None] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, bytes]:
    """The page and its videos by their names below the folder `out`. sure: who asks has verified the campaigns; known:
    what of their journals it has read (see `Journal.events`); without: of a folder, episodes whose recordings are not
    looked at, and why; cameras: so many of each episode, of the cell's first. explore: with object and axes in columns
    of their own; up: another page, and what it is called; views: (campaign, episode) -> address of another view of it;
    put: takes each video as it is read, so that none is kept in memory.

    Where the videos are more than COPIED_BYTES in all the page leads to those in the campaigns' folders, unless `put`
    takes them.
    """
    files: dict[str, bytes] = {}
    shown = []
    size = sum(_size(folder, known.get(folder, ())) for folder in folders)
    copies = put is not None or size <= COPIED_BYTES
    take = put or files.__setitem__
    for folder in folders:
        unseen = without.get(folder, {})  # two labs may have an episode of one id
        with ExitStack() as opened:
            if sure:
                campaign, broken = opened.enter_context(in_passing(folder, known.get(folder, ()))), None
            else:
                found = opened.enter_context(verified(folder, unverified=unverified))
                campaign, broken = found.campaign, found.broken
            record = campaign.record()
            one = ShownCampaign(folder.name, masked or record.unblinding is None, campaign.opened.get("joint"))
            within = one.place() if len(folders) > 1 else ""
            if put is not None:
                within = f"{folder.name}/"  # ids of strangers' campaigns may be the same
            if broken:
                one.notes.append(f"{folder.name}: {broken}")
            for number, (seen, told) in enumerate(_rows(record, one.masked, explore=explore), 1):
                say(f"{number}/{len(record.episodes)} {seen['episode']}")
                episode = record.episodes[str(seen["episode"])]
                clips: list[EpisodeVideo | str] = [unseen[episode.id]] if episode.id in unseen else []
                if episode.id not in unseen:
                    reels = reels_of(campaign, record, episode.id, cameras)
                    clips += _shown_videos(folder, episode, reels, take, videos, None if copies else out, one, within)
                view = (views or {}).get((folder.name, episode.id), "")
                of = {"campaign": folder.name, "view": view}
                if one.part is not None:
                    of["cell"] = one.part["cell"]
                films = [clip for clip in clips if isinstance(clip, EpisodeVideo)]
                said = one.part is not None or explore
                why = next((clip for clip in clips if isinstance(clip, str)), "") if said else ""
                one.rows.append(EpisodeRow({**seen, **of}, told, films, why))
        shown.append(one)
    linked = "" if copies else f"the videos are {size / 1e6:.0f} MB: they are shown from the lab's folder"
    mask_together(shown)
    files[page] = render(shown, [*([linked] if linked else []), *cells_away(shown)], beside, up)
    return files


def _size(folder: Path, journal: Sequence[Event]) -> int:
    with file_errors(str(folder)):
        return sum(path.stat().st_size for path in (folder / "video").rglob("*.mp4")) + bytes_elsewhere(folder, journal)


def _rows(
    record: Record, masked: bool, *, explore: bool = False
) -> Iterator[tuple[Mapping[str, Value], Mapping[str, Value]]]:
    """A row for each episode, as `labctl episodes` lists it, and what is by arm or outcome, where it may be known."""
    conditions = {entry["id"]: entry for entry in record.state.opened["conditions"]} if explore else {}
    for entry in recorded(record):
        episode = record.episodes[entry["episode"]]
        trial = record.state.trials[episode.trial]
        row: dict[str, Value] = {key: entry[key] for key in ("episode", "block", "condition", "void", "gaps")}
        row["block"] = entry["block"] + 1
        if (condition := conditions.get(trial.condition)) is not None:
            row |= {"object": condition["object"], "axis": "+".join(condition["axes"]) or "none"}
        row |= {"state": str(entry["state"]), "ended": str(entry["ended"] or "").replace("_", " ")}
        told: dict[str, Value] = {}
        if not masked:
            outcome = trial.outcome if trial.episode == episode.id else None
            told |= {"arm": record.arms[trial.id], "duration_s": episode.duration_s}
            told |= {"reviewed": "yes" if episode.reviewed is not None else "no"}
            if outcome is not None:
                told |= {"outcome": outcome.extent, "moved": outcome.moved, "lost": outcome.lost}
        yield row, told


def _shown_videos(
    folder: Path,
    episode: Episode,
    reels: Sequence[Reel],
    take: Callable[[str, bytes], None],
    videos: str,
    out: Path | None,
    campaign: ShownCampaign,
    within: str,
) -> Iterator[EpisodeVideo | str]:
    """The videos of an episode: copies below `videos`, or, with `out`, where they lie as seen from there; or, in a few
    words, why one is not shown.
    """
    for reel in reels:
        entry = episode.videos[reel.camera]
        if out is not None:
            if not (folder / entry["file"]).is_file():
                campaign.note(
                    f"some videos are in a media store alone: labctl media fetch {folder.name} brings them back"
                )
                yield STORED
                continue
            source = Path(os.path.relpath(folder / entry["file"], out.resolve())).as_posix()
        else:
            source = f"{videos}/{within}{episode.id}-{reel.camera}.mp4"
            try:
                take(source, played(sealed_video(folder, entry)))
            except BrokenRecord as error:  # only of a record that is shown unverified
                campaign.note(str(error))
                yield "it is not as it was sealed"
                continue
            except Unreachable as error:
                campaign.note(f"no video of some episodes: {error}")
                yield STORED
                continue
        yield EpisodeVideo(reel.camera, quote(source), round(-reel.zero_s, 6))
