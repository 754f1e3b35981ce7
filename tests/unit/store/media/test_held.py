"""What a journal says of a campaign's media: which files may leave, which copies count, which may be missing here."""

from __future__ import annotations

from labctl.core.events import Event, Kind
from labctl.plain import Json
from labctl.store.media.held import held
from labctl.store.media.uploading import pending

A, B, C, D = ("a" * 64, "b" * 64, "c" * 64, "d" * 64)
PLACE = "s3://videos/lab"


def event(seq: int, kind: Kind, **body: Json) -> Event:
    return Event(seq, kind, seq, "boot", f"2026-11-0{seq}T10:00:00.000000+00:00", "p01", None, "e1", body)


def sealed() -> Event:
    videos: Json = {
        "wrist": {"file": "video/e1/wrist.mp4", "sha256": B, "frames": 1,
                  "about": {"file": "video/e1/wrist.json", "sha256": C},
                  "depth": {"file": "video/e1/wrist.depth.mkv", "sha256": A, "frames": 1}},
        "wrist.seen": {"file": "video/e1/wrist.seen.mp4", "sha256": D, "frames": 1},
    }  # fmt: skip
    return event(1, Kind.RECORDING_SEALED, videos=videos)


def stored(sha256: str, file: str, seq: int = 2, place: str = PLACE) -> Event:
    one: Json = {"file": file, "sha256": sha256, "bytes": 9, "version": f"v{seq}"}
    return event(seq, Kind.MEDIA_STORED, place=place, checked="read_back", files=[one])


def trimmed(sha256: str, file: str, seq: int = 3) -> Event:
    return event(seq, Kind.MEDIA_TRIMMED, place=PLACE, rule="r", files=[{"file": file, "sha256": sha256, "bytes": 9}])


def test_pictures_as_a_policy_got_them_wait_for_unblinding_whatever_the_lab_says() -> None:
    """Whether there are any may depend on the arm."""
    from labctl.config.media import MediaTable

    table = MediaTable(url=PLACE)
    files, waits = pending(held([sealed()]), table)
    assert [file.sha256 for file in files] == [A, B, C] and waits == 1
    files, waits = pending(held([sealed(), event(2, Kind.CAMPAIGN_UNBLINDED)]), table)
    assert [file.sha256 for file in files] == [A, B, C, D] and waits == 0
    later = table.model_copy(update={"after": "closing"})
    assert pending(held([sealed()]), later) == ([], 4)
    assert len(pending(held([sealed(), event(2, Kind.CAMPAIGN_CLOSED)]), later)[0]) == 3


def test_a_video_may_be_missing_here_only_after_it_was_stored_and_removed_by_the_journal() -> None:
    file = "video/e1/wrist.mp4"
    assert held([sealed(), trimmed(B, file)]).trimmed == frozenset(), "no store has it"
    assert held([sealed(), stored(B, file)]).trimmed == frozenset(), "nobody removed it"
    assert held([sealed(), stored(B, file), trimmed(B, file)]).trimmed == {B}


def test_an_entry_that_names_another_digest_than_the_sealed_one_counts_for_nothing() -> None:
    file = "video/e1/wrist.mp4"
    found = held([sealed(), stored(D, file), trimmed(D, file), stored(B, "video/e2/x.mp4", 4)])
    assert not found.stored and not found.trimmed


def test_the_newest_copy_in_a_place_is_the_one_that_counts() -> None:
    file = "video/e1/wrist.mp4"
    found = held([sealed(), stored(B, file), stored(B, file, 4)])
    assert [copy.version for copy in found.copies(B)] == ["v4"]


def test_copies_stand_in_the_order_in_which_they_were_last_journalled() -> None:
    file = "video/e1/wrist.mp4"
    found = held([sealed(), stored(B, file, 2), stored(B, file, 3, "file:///nas"), stored(B, file, 4)])
    assert [(copy.place, copy.version) for copy in found.copies(B)] == [("file:///nas", "v3"), (PLACE, "v4")]
