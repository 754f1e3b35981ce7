"""The episodes of campaigns as a page in a file: a table to sort and filter, each row with its videos, all of them at
one speed from their go.

May not: estimate or compare (what is said of campaigns side by side comes from who asks), or name an arm or an outcome
of a campaign that is blinded.
"""

from __future__ import annotations

import base64
import hashlib
import importlib.resources
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from labctl.core.events import Event
from labctl.core.record import Episode, Record
from labctl.errors import BrokenRecord, Unreachable
from labctl.pages.playable import played
from labctl.pages.recorded_videos import Reel, reels_of
from labctl.store.atomic_files import file_errors, replace_file
from labctl.store.media.looking import bytes_elsewhere
from labctl.store.verifying.verified import in_passing, sealed_video, verified
from labctl.viewing.status import recorded

COPIED_BYTES = 200_000_000  # of videos beside a page; beyond, it leads to the campaign's own files
Value = str | int | float | None
# label, and whether it is a number: the columns of a page, in order; those that no campaign fills are left out
COLUMNS: Mapping[str, tuple[str, bool]] = {
    "campaign": ("Campaign", False),
    "block": ("Block", True),
    "arm": ("Arm", False),
    "condition": ("Condition", False),
    "object": ("Object", False),
    "axis": ("Axis", False),
    "outcome": ("Outcome", False),
    "moved": ("Moved", True),
    "lost": ("Lost", True),
    "duration_s": ("Seconds", True),
    "state": ("State", False),
    "ended": ("Ended by", False),
    "void": ("Void", False),
    "reviewed": ("Reviewed", False),
    "gaps": ("Gaps", True),
    "episode": ("Episode", False),
}


@dataclass(frozen=True, slots=True)
class Grid:
    """A table that is shown as it is given, text by text."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""


@dataclass(frozen=True, slots=True)
class EpisodeVideo:
    """A video of a row: its source as the page names it, and the time in it at which go was, s."""

    camera: str
    source: str
    go_s: float


@dataclass(slots=True)
class _Campaign:
    """What a page shows of one campaign."""

    name: str
    masked: bool
    notes: list[str] = field(default_factory=list)
    rows: list[tuple[Mapping[str, Value], list[EpisodeVideo]]] = field(default_factory=list)

    def note(self, line: str) -> None:
        """Say it once."""
        if line not in self.notes:
            self.notes.append(line)


def write_page(
    folders: Sequence[Path],
    page: Path,
    *,
    masked: bool = False,
    unverified: bool = False,
    beside: Sequence[Grid] = (),
    say: Callable[[str], None] = lambda line: None,
) -> int:
    """Write a page of these campaigns' episodes to `page` (.html), and their videos into the folder beside
    it, `page`.videos; how many bytes in all. beside: what is said of the campaigns side by side; `say` hears each one.

    Raises BrokenRecord for what does not hold, unless `unverified`: then the page says so; StorageError.
    """
    videos = page.with_suffix(".videos")
    files = page_files(
        folders, page.name, videos.name, page.parent, masked=masked, unverified=unverified, beside=beside, say=say
    )
    with file_errors(str(videos)):
        page.parent.mkdir(parents=True, exist_ok=True)
        if any(name != page.name for name in files):
            videos.mkdir(exist_ok=True)
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
    without: Collection[str] = (),
    cameras: int | None = None,
    beside: Sequence[Grid] = (),
    explore: bool = False,
    up: tuple[str, str] | None = None,
    views: Mapping[tuple[str, str], str] | None = None,
    put: Callable[[str, bytes], None] | None = None,
    say: Callable[[str], None] = lambda line: None,
) -> dict[str, bytes]:
    """The page and its videos by their names below the folder `out`. sure: who asks has verified the campaigns; known:
    what of their journals it has read (see `Journal.events`); without: episodes whose recordings are not looked at;
    cameras: so many of each episode, of the cell's first. explore: with object and axes in columns of their own; up:
    another page, and what it is called; views: (campaign, episode) -> address of another view of it; put: takes each
    video as it is read, so that none is kept in memory.

    Where the videos are more than COPIED_BYTES in all the page leads to those in the campaigns' folders, unless `put`
    takes them.
    """
    files: dict[str, bytes] = {}
    shown = []
    size = sum(_size(folder, known.get(folder, ())) for folder in folders)
    copies = put is not None or size <= COPIED_BYTES
    take = put or files.__setitem__
    for folder in folders:
        with ExitStack() as opened:
            if sure:
                campaign, broken = opened.enter_context(in_passing(folder, known.get(folder, ()))), None
            else:
                found = opened.enter_context(verified(folder, unverified=unverified))
                campaign, broken = found.campaign, found.broken
            record = campaign.record()
            one = _Campaign(folder.name, masked or record.unblinding is None)
            within = f"{folder.name}/" if put is not None else ""  # ids of strangers' campaigns may be the same
            if broken:
                one.notes.append(f"{folder.name}: {broken}")
            for number, cells in enumerate(_rows(record, one.masked, explore=explore), 1):
                say(f"{number}/{len(record.episodes)} {cells['episode']}")
                episode = record.episodes[str(cells["episode"])]
                clips: list[EpisodeVideo] = []
                if episode.id not in without:
                    reels = reels_of(campaign, record, episode.id, cameras)
                    clips = list(
                        _shown_videos(folder, episode, reels, take, videos, None if copies else out, one, within)
                    )
                view = (views or {}).get((folder.name, episode.id), "")
                one.rows.append(({**cells, "campaign": folder.name, "view": view}, clips))
        shown.append(one)
    linked = "" if copies else f"the videos are {size / 1e6:.0f} MB: they are shown from the lab's folder"
    files[page] = render(shown, [linked] if linked else [], beside, up)
    return files


def _size(folder: Path, journal: Sequence[Event]) -> int:
    with file_errors(str(folder)):
        return sum(path.stat().st_size for path in (folder / "video").rglob("*.mp4")) + bytes_elsewhere(folder, journal)


def _rows(record: Record, masked: bool, *, explore: bool = False) -> Iterator[Mapping[str, Value]]:
    """A row for each episode, as `labctl episodes` lists it; what is by arm or outcome only where it may be known."""
    conditions = {entry["id"]: entry for entry in record.state.opened["conditions"]} if explore else {}
    for entry in recorded(record):
        episode = record.episodes[entry["episode"]]
        trial = record.state.trials[episode.trial]
        row: dict[str, Value] = {key: entry[key] for key in ("episode", "block", "condition", "void", "gaps")}
        row["block"] = entry["block"] + 1
        if (condition := conditions.get(trial.condition)) is not None:
            row |= {"object": condition["object"], "axis": "+".join(condition["axes"]) or "none"}
        row |= {"state": str(entry["state"]), "ended": str(entry["ended"] or "").replace("_", " ")}
        if not masked:
            outcome = trial.outcome if trial.episode == episode.id else None
            row |= {"arm": record.arms[trial.id], "duration_s": episode.duration_s}
            row |= {"reviewed": "yes" if episode.reviewed is not None else "no"}
            if outcome is not None:
                row |= {"outcome": outcome.extent, "moved": outcome.moved, "lost": outcome.lost}
        yield row


def _shown_videos(
    folder: Path,
    episode: Episode,
    reels: Sequence[Reel],
    take: Callable[[str, bytes], None],
    videos: str,
    out: Path | None,
    campaign: _Campaign,
    within: str,
) -> Iterator[EpisodeVideo]:
    """The videos of an episode: copies below `videos`, or, with `out`, where they lie as seen from there."""
    for reel in reels:
        entry = episode.videos[reel.camera]
        if out is not None:
            if not (folder / entry["file"]).is_file():
                campaign.note(
                    f"some videos are in a media store alone: labctl media fetch {folder.name} brings them back"
                )
                continue
            source = Path(os.path.relpath(folder / entry["file"], out.resolve())).as_posix()
        else:
            source = f"{videos}/{within}{episode.id}-{reel.camera}.mp4"
            try:
                take(source, played(sealed_video(folder, entry)))
            except BrokenRecord as error:  # only of a record that is shown unverified
                campaign.note(str(error))
                continue
            except Unreachable as error:
                campaign.note(f"no video of some episodes: {error}")
                continue
        yield EpisodeVideo(reel.camera, source, round(max(0.0, -reel.zero_s), 6))


def render(
    campaigns: Sequence[_Campaign], notes: Sequence[str], beside: Sequence[Grid], up: tuple[str, str] | None = None
) -> bytes:
    """The page: one file but for its videos, which plays without a server and asks nobody for anything."""
    from jinja2 import DictLoader, Environment, StrictUndefined
    from markupsafe import Markup

    texts = {name: _text(name) for name in ("episodes.html.j2", "episodes.css", "episodes.js")}
    rows = [row for one in campaigns for row in one.rows]
    several = len(campaigns) > 1
    filled = {key for cells, _ in rows for key, value in cells.items() if value is not None}
    known = {key: _choices(rows, key) for key in COLUMNS if key in filled and (several or key != "campaign")}
    same = {key: options[0] for key, options in known.items() if len(rows) > 1 and _everywhere(rows, key)}
    columns = {key: COLUMNS[key] for key in known if key not in same}
    environment = Environment(
        loader=DictLoader(texts), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    script = texts["episodes.js"]
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    masked = [one.name for one in campaigns if one.masked]
    return (
        environment.get_template("episodes.html.j2")
        .render(
            title=f"{len(campaigns)} campaigns" if up and several else " · ".join(one.name for one in campaigns),
            columns=columns,
            rows=[([_cell(cells.get(key)) for key in columns], cells, clips) for cells, clips in rows],
            choices={key: known[key] for key, (_, number) in columns.items() if not number and key != "episode"},
            same=" · ".join(f"{COLUMNS[key][0].lower()} {text}" for key, text in same.items()),
            masked=masked,
            notes=[*notes, *(note for one in campaigns for note in one.notes)],
            beside=beside,
            up=up,
            seen=any(cells.get("view") for cells, _ in rows),
            css=Markup(texts["episodes.css"]),
            script=Markup(script),
            digest=digest,
        )
        .encode()
    )


def _choices(rows: Sequence[tuple[Mapping[str, Value], list[EpisodeVideo]]], key: str) -> list[str]:
    return sorted({_cell(cells.get(key))[0] for cells, _ in rows} - {""})


def _everywhere(rows: Sequence[tuple[Mapping[str, Value], list[EpisodeVideo]]], key: str) -> bool:
    """Whether a column says the same in every row, so that one line says it."""
    return len({_cell(cells.get(key)) for cells, _ in rows}) == 1


def _cell(value: Value) -> tuple[str, str]:
    """What stands in a cell, and what it is sorted by."""
    if value is None:
        return "", ""
    return (f"{value:.1f}" if isinstance(value, float) else str(value)), str(value)


def _text(name: str) -> str:
    return importlib.resources.files("labctl.pages").joinpath("templates", name).read_text("utf-8")
