"""A campaign's videos in a media store that is a folder: uploaded, verified, journalled, removed here by a rule, and
read from there; nothing goes here before its copy was verified.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from support.media.campaigns import blind_lab, folder_store, media_of, name_store, open_lab, uploaded, videos
from support.runs.recordings import Recordings

from labctl.core.events import Kind
from labctl.errors import BrokenRecord, InputError, StateError, StorageError, Unreachable
from labctl.pages.episodes import write_page
from labctl.publishing.leaving_out import Choice, left_out
from labctl.store.footage import file_digest
from labctl.store.journal import events_of
from labctl.store.locks import campaign_lock
from labctl.store.media import reading
from labctl.store.media.looking import ask
from labctl.store.media.opening import open_store
from labctl.store.media.places import PART, object_name
from labctl.store.media.trimming import bring_back, trim
from labctl.store.verifying.verified import sealed_video, verified
from labctl.store.verifying.verify import verify_campaign
from labctl.viewing.episode import look_at

NOW = 0.0  # days: whatever was sealed until now


def objects(place: Path) -> list[Path]:
    return sorted(path for path in place.rglob("*") if path.is_file())


def test_every_file_is_stored_once_by_its_digest_and_journalled_after_its_bytes_were_read_back(
    recordings: Recordings, tmp_path: Path
) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    table, _ = folder_store(folder, tmp_path / "store")
    done = uploaded(folder, table)
    files = media_of(folder).files
    assert done.sent == done.stored == len(files) > 0 and not done.broken and not done.later
    assert sorted(path.name for path in objects(tmp_path / "store")) == sorted({file.sha256 for file in files})
    stored = [event for event in events_of(folder) if event.kind == Kind.MEDIA_STORED]
    assert [event.body["checked"] for event in stored] == ["read_back"] and stored[0].body["place"] == table.url
    again = uploaded(folder, table)
    assert again.sent == 0 and again.stored == done.stored
    assert len([event for event in events_of(folder) if event.kind == Kind.MEDIA_STORED]) == 1, "nothing new to say"
    found = verify_campaign(folder)
    assert not found.problems and any("here and in a media store" in note for note in found.notes)


def test_what_the_store_has_lost_is_sent_again_while_it_is_here(recordings: Recordings, tmp_path: Path) -> None:
    """As after a disk was replaced by an empty one; where nothing is here any more there is nothing to send."""
    folder = open_lab(recordings, tmp_path / "lab")
    table, store = folder_store(folder, tmp_path / "store")
    first = uploaded(folder, table)
    for path in objects(tmp_path / "store"):
        path.unlink()
    assert len(ask(folder, store, table).problems) == len(media_of(folder).files)
    again = uploaded(folder, table)
    assert (again.sent, again.sent_bytes, again.stored) == (first.sent, first.sent_bytes, first.stored)
    assert not again.broken and not ask(folder, store, table).problems
    assert uploaded(folder, table).sent == 0
    trim(folder, store, table, NOW, who="p01")
    for path in objects(tmp_path / "store"):
        path.unlink()
    here = [file for file in media_of(folder).files if (folder / file.file).is_file()]
    assert uploaded(folder, table).sent == len(here) < first.sent


def test_no_object_s_name_place_or_order_says_trial_camera_or_arm(recordings: Recordings, tmp_path: Path) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    table, _ = folder_store(folder, tmp_path / "store")
    uploaded(folder, table)
    for path in objects(tmp_path / "store"):
        assert str(path.relative_to(tmp_path / "store")) == object_name(file_digest(path))
        assert path.stat().st_mode & 0o777 == 0o440 and not os.listxattr(path)
    body = next(event.body for event in events_of(folder) if event.kind == Kind.MEDIA_STORED)
    digests = [one["sha256"] for one in body["files"]]
    assert digests == sorted(digests), "in the order of digests, not of trials"


def test_files_leave_when_the_lab_says_so(recordings: Recordings, tmp_path: Path) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    table, _ = folder_store(folder, tmp_path / "store", 'after = "unblinding"')
    done = uploaded(folder, table)
    assert done.sent == 0 and done.waits == len(media_of(folder).files) and not objects(tmp_path / "store")
    opened = open_lab(recordings, tmp_path / "open")
    table, _ = folder_store(opened, tmp_path / "store", 'after = "unblinding"')
    assert uploaded(opened, table).waits == 0 and objects(tmp_path / "store")


def test_a_local_copy_goes_by_the_rule_alone_and_after_its_copy_was_verified(
    recordings: Recordings, tmp_path: Path
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    table, store = folder_store(folder, tmp_path / "store")
    here = videos(folder)
    assert trim(folder, store, table, NOW, who="p01").kept == len(here), "none is stored yet"
    assert videos(folder) == here
    uploaded(folder, table)
    assert trim(folder, store, table, 9000, who="p01").files == [], "all of them are younger"
    altered = tmp_path / "store" / object_name(file_digest(here[0]))
    altered.chmod(0o640)
    altered.write_bytes(altered.read_bytes()[:-1] + b"!")
    gone = tmp_path / "store" / object_name(file_digest(here[1]))
    gone.unlink()
    dry = trim(folder, store, table, NOW, who="p01", dry=True)
    assert videos(folder) == here and len(dry.files) == len(here) - 2
    done = trim(folder, store, table, NOW, who="p01")
    assert videos(folder) == here[:2] and len(done.broken) == 2
    assert "other bytes" in done.broken[0] + done.broken[1] and "no more" in done.broken[0] + done.broken[1]
    last = [event for event in events_of(folder) if event.kind == Kind.MEDIA_TRIMMED][-1].body
    assert last["rule"] == "older than 0 days" and last["place"] == table.url
    assert {one["file"] for one in last["files"]} == set(done.files)
    asked = ask(folder, store, table)
    assert len(asked.problems) == 2, "the store is asked, whether the file is here or not"


def test_a_campaign_under_review_or_in_use_keeps_its_videos(recordings: Recordings, tmp_path: Path) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    table, store = folder_store(folder, tmp_path / "store")
    uploaded(folder, table)
    with pytest.raises(StateError, match="neither frozen nor unblinded"):
        trim(folder, store, table, NOW, who="p01")
    with campaign_lock(folder, "run x"), pytest.raises(StateError, match="in use"):
        trim(folder, store, table, NOW, who="p01", unsettled=True)
    assert len(videos(folder)) == sum(file.file.endswith(".mp4") for file in media_of(folder).files)


def test_an_upload_beside_a_run_is_journalled_by_the_next_one(recordings: Recordings, tmp_path: Path) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    table, _ = folder_store(folder, tmp_path / "store")
    with campaign_lock(folder, "run x"):
        done = uploaded(folder, table)
    assert done.sent and "in use" in done.later and not media_of(folder).stored
    again = uploaded(folder, table)
    assert again.sent == 0 and again.stored == done.sent


def test_whatever_shows_a_video_that_is_elsewhere_fetches_it_and_compares_its_digest(
    recordings: Recordings, tmp_path: Path, cache: Path
) -> None:
    """Page of episodes, clips of the report, the viewer's episode and the review's reader: as when it was here."""
    folder = open_lab(recordings, tmp_path / "lab")
    with verified(folder) as shown:
        record = shown.campaign.record()
    name = next(name for name, episode in record.episodes.items() if episode.videos)
    camera, entry = next(iter(record.episodes[name].videos.items()))
    before = sealed_video(folder, entry)
    write_page([folder], tmp_path / "before.html")
    table, store = folder_store(folder, tmp_path / "store")
    uploaded(folder, table)
    trim(folder, store, table, NOW, who="p01")
    assert not videos(folder) and not verify_campaign(folder).problems
    assert sealed_video(folder, entry) == before
    assert [path.name for path in cache.iterdir()] == [f"{entry['sha256']}.mp4"]
    assert (next(cache.iterdir()).stat().st_mode & 0o777, cache.stat().st_mode & 0o777) == (0o600, 0o700)
    assert cache.parent.stat().st_mode & 0o777 == 0o700, "where libraries lie as well"
    view = look_at(folder, name)
    assert view.videos[camera].path == cache / f"{entry['sha256']}.mp4"
    write_page([folder], tmp_path / "after.html")
    parts = [sorted(path.name for path in (tmp_path / f"{one}.videos").iterdir()) for one in ("before", "after")]
    assert parts[0] == parts[1] != []
    view.videos[camera].path.write_bytes(b"changed in the cache")
    assert sealed_video(folder, entry) == before, "what was changed in the cache is fetched again"
    assert not videos(folder), "nothing is written into the campaign's folder"


def test_what_is_withheld_is_listed_as_it_was_though_the_store_alone_has_it(
    recordings: Recordings, tmp_path: Path
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    with verified(folder) as shown:
        record, events = shown.campaign.record(), shown.campaign.events()
    choice = Choice(withhold=dict.fromkeys(record.episodes, "a visitor"))
    before = left_out(folder, events, record, choice)
    table, store = folder_store(folder, tmp_path / "store")
    uploaded(folder, table)
    trim(folder, store, table, NOW, who="p01")
    assert not videos(folder) and left_out(folder, events_of(folder), record, choice) == before


def test_a_store_that_is_away_or_gives_other_bytes_is_one_line(recordings: Recordings, tmp_path: Path) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    table, store = folder_store(folder, tmp_path / "store")
    uploaded(folder, table)
    trim(folder, store, table, NOW, who="p01")
    with verified(folder) as shown:
        record = shown.campaign.record()
    episode = next(episode for episode in record.episodes.values() if episode.videos)
    entry = next(iter(episode.videos.values()))
    (tmp_path / "store").rename(tmp_path / "unplugged")
    with pytest.raises(Unreachable, match="is its disk mounted") as told:
        sealed_video(folder, entry)
    assert "\n" not in str(told.value)
    write_page([folder], tmp_path / "page.html")
    assert "is its disk mounted" in (tmp_path / "page.html").read_text(), "the rest is shown, and this is said"
    (tmp_path / "unplugged").rename(tmp_path / "store")
    reading._away.clear()
    altered = tmp_path / "store" / object_name(entry["sha256"])
    altered.chmod(0o640)
    altered.write_bytes(b"something else")
    with pytest.raises(BrokenRecord, match="other bytes than those that were sealed"):
        sealed_video(folder, entry)
    (folder.parent.parent / "lab.toml").write_text("")
    with pytest.raises(Unreachable, match="names none"):
        sealed_video(folder, entry)


def test_a_file_that_went_without_the_rule_is_missing_and_can_be_fetched_back(
    recordings: Recordings, tmp_path: Path
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    table, store = folder_store(folder, tmp_path / "store")
    uploaded(folder, table)
    here = videos(folder)
    before = file_digest(here[0])
    here[0].unlink()
    assert [problem.what for problem in verify_campaign(folder).problems] == ["missing video"]
    assert bring_back(folder, store, table) == [str(here[0].relative_to(folder))]
    assert file_digest(here[0]) == before and not verify_campaign(folder).problems


def test_a_changed_file_is_not_sent_and_the_others_are(recordings: Recordings, tmp_path: Path) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    table, _ = folder_store(folder, tmp_path / "store")
    changed = videos(folder)[0]
    changed.write_bytes(changed.read_bytes() + b"!")
    done = uploaded(folder, table)
    assert len(done.broken) == 1 and "not the ones that were sealed" in done.broken[0]
    assert done.sent == len(media_of(folder).files) - 1


def test_an_upload_goes_on_where_it_was_broken_off_and_never_leaves_half_an_object(
    recordings: Recordings, tmp_path: Path
) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    _, store = folder_store(folder, tmp_path / "store")
    large = tmp_path / "large.mp4"
    large.write_bytes(os.urandom(3 * PART + 5))
    sha256 = file_digest(large)

    class Killed(BaseException): ...

    def kill(done: int) -> None:
        if done >= 2 * PART:
            raise Killed

    with pytest.raises(Killed):
        store.put(large, sha256, None, kill)
    assert store.find(sha256) is None, "half of it is no object"
    steps: list[int] = []
    assert store.put(large, sha256, None, steps.append).bytes == 3 * PART + 5
    assert steps == [3 * PART, 3 * PART + 5], "two parts were there already"
    assert [path.name for path in (tmp_path / "store").rglob("*") if path.is_file()] == [sha256]


def test_a_folder_that_is_not_there_or_has_no_lock_is_refused(recordings: Recordings, tmp_path: Path) -> None:
    folder = blind_lab(recordings, tmp_path / "lab")
    with pytest.raises(StorageError, match="is its disk mounted"):
        open_store(name_store(folder, f"file://{tmp_path / 'nowhere'}"))
    with pytest.raises(InputError, match="a folder has no object lock"):
        open_store(name_store(folder, f"file://{tmp_path}", "lock_days = 3"))
