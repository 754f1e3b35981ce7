"""What a campaign's journal says of its media: which files there are, which may leave this computer, which a media
store holds, and which were removed here afterwards.

May not: look at a file or a store, or believe an entry that names another digest than the one that was sealed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from labctl.core.event_bodies import RecordingSealed, body_of
from labctl.core.events import Event, Kind
from labctl.messages.body_parts import FileEntry
from labctl.messages.media import MediaStored, MediaTrimmed, StoredFile
from labctl.streams import SEEN

After = Literal["recording", "closing", "unblinding"]
OPENS: Mapping[After, Kind | None] = {
    "recording": None,
    "closing": Kind.CAMPAIGN_CLOSED,
    "unblinding": Kind.CAMPAIGN_UNBLINDED,
}


@dataclass(frozen=True, slots=True)
class MediaFile:
    """A file that was sealed with a recording. file: its path in the campaign's folder; bulky: a video or depth, which
    may be removed here; tells: whether there is one may depend on the arm; at: when it was sealed (ISO 8601).
    """

    episode: str
    file: str
    sha256: str
    bulky: bool
    tells: bool
    at: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A verified copy in a media store, as journalled. until: to when the store refuses to delete it (ISO 8601)."""

    place: str
    bytes: int
    checked: str
    version: str | None = None
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Held:
    """Of one campaign. stored: the newest copy of each file by digest and place; trimmed: digests of files that were
    removed here; reached: the kinds of entry that let files go (closed, unblinded).
    """

    files: Sequence[MediaFile] = ()
    stored: Mapping[tuple[str, str], Copy] = field(default_factory=dict[tuple[str, str], Copy])
    trimmed: frozenset[str] = frozenset()
    reached: frozenset[str] = frozenset()

    def may_leave(self, file: MediaFile, after: After) -> bool:
        """Whether a file may be sent now. What tells arms apart waits for unblinding, whatever the lab says."""
        opens = Kind.CAMPAIGN_UNBLINDED if file.tells else OPENS[after]
        return opens is None or opens in self.reached

    def copies(self, sha256: str) -> list[Copy]:
        """Every copy of a file, in order of journalling."""
        return [copy for (digest, _), copy in self.stored.items() if digest == sha256]


def held(events: Iterable[Event]) -> Held:
    """What the events of a campaign say of its media. Raises KeyError for a body without what its kind must have."""
    files: dict[str, MediaFile] = {}
    stored: dict[tuple[str, str], Copy] = {}
    trimmed: set[str] = set()
    reached: set[str] = set()
    for event in events:
        match event.kind:
            case Kind.RECORDING_SEALED:
                for camera, video in body_of(event, RecordingSealed)["videos"].items():
                    for entry, bulky in ((video, True), (video.get("depth"), True), (video.get("about"), False)):
                        if entry is not None:
                            one = _file(event, entry, bulky=bulky, tells=camera.endswith(SEEN))
                            files[one.file] = one
            case Kind.MEDIA_STORED:
                body = body_of(event, MediaStored)
                for kept in body["files"]:
                    if _same(files, kept):
                        made = (kept["bytes"], body["checked"], kept.get("version"), kept.get("until"))
                        stored.pop((kept["sha256"], body["place"]), None)  # the newest stands last
                        stored[kept["sha256"], body["place"]] = Copy(body["place"], *made)
            case Kind.MEDIA_TRIMMED:
                trimmed |= {gone["sha256"] for gone in body_of(event, MediaTrimmed)["files"] if _same(files, gone)}
            case Kind.CAMPAIGN_CLOSED | Kind.CAMPAIGN_FROZEN | Kind.CAMPAIGN_UNBLINDED:
                reached.add(event.kind)
            case _:
                pass
    gone = frozenset(digest for digest in trimmed if any(digest == one for one, _ in stored))
    return Held(tuple(files.values()), stored, gone, frozenset(reached))


def _file(event: Event, entry: FileEntry, *, bulky: bool, tells: bool) -> MediaFile:
    return MediaFile(event.episode or "", entry["file"], entry["sha256"], bulky, tells, event.wall)


def _same(files: Mapping[str, MediaFile], entry: FileEntry | StoredFile) -> bool:
    known = files.get(entry["file"])
    return known is not None and known.sha256 == entry["sha256"]
