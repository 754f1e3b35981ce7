"""A campaign's videos in a bucket of a real S3 server (Ceph's radosgw): versions, object lock, checksums, quota,
rights, uploads that are killed, hosts that upload the same, and a server that is away, silent or slow.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.machine.postgres import Relay
from support.media.buckets import Bucket, a_file
from support.media.campaigns import blind_lab, media_of, name_store, open_lab, uploaded, videos
from support.media.ceph import CLOCK, Ceph, needs_s3
from support.runs.campaigns import make_campaign, policy
from support.runs.live_campaign import running, wait_for
from support.runs.recordings import Recordings, copied

from labctl.clock import MILLISECOND, SECOND, days_later
from labctl.core.events import Kind
from labctl.errors import BrokenRecord, StorageError, Unreachable
from labctl.runtime.hosting.store_copy import StoreCopy
from labctl.store.footage import file_digest
from labctl.store.journal import events_of
from labctl.store.media.held import Held
from labctl.store.media.looking import ask
from labctl.store.media.opening import open_store
from labctl.store.media.places import PART, check_object, digest_in, object_name
from labctl.store.media.reading import local_file
from labctl.store.media.trimming import trim
from labctl.store.verifying.verify import verify_campaign

pytestmark = [pytest.mark.thorough, pytest.mark.limit(300), *needs_s3]
PUT = """
import sys
from pathlib import Path
from labctl.config.media import MediaTable
from labctl.store.media.opening import open_store
table = MediaTable.model_validate_json(sys.argv[3])
def told(done):
    print(done, flush=True)
    if len(sys.argv) > 4:
        sys.stdin.readline()
open_store(table).put(Path(sys.argv[1]), sys.argv[2], None, told)
"""


def name_bucket(folder: Path, bucket: Bucket, **more: object) -> None:
    name_store(folder, bucket.url, *bucket.lines(**more))


def stored_files(folder: Path) -> list[dict[str, object]]:
    return [file for event in events_of(folder) if event.kind == Kind.MEDIA_STORED for file in event.body["files"]]


def test_version_and_lock_are_in_the_journal_and_the_server_refuses_to_delete(
    ceph: Ceph, recordings: Recordings, tmp_path: Path
) -> None:
    """By S3's own call, whoever asks; the version stays what is read, whatever comes on top of it."""
    folder, bucket = open_lab(recordings, tmp_path / "lab"), Bucket(ceph, lock=True)
    table = name_store(folder, bucket.url, *bucket.lines(lock_days=2, lock="compliance"))
    done = uploaded(folder, table)
    files = stored_files(folder)
    assert done.stored == len(files) == len(media_of(folder).files) and not done.broken
    for one in files:
        key = f"lab/{object_name(str(one['sha256']))}"
        said = bucket.ask("head_object", Key=key, VersionId=one["version"])
        assert said["ObjectLockMode"] == "COMPLIANCE" and said["ObjectLockRetainUntilDate"].isoformat() == one["until"]
        assert days_later(str(one["until"]), 0) > days_later(CLOCK.anchor().wall, 1.9)
        assert said["Metadata"] == {} and said["ContentType"] == "binary/octet-stream", "nothing tells files apart"
        with pytest.raises(PermissionError, match="object lock"):
            bucket.ask("delete_object", Key=key, VersionId=one["version"])
    store = open_store(table)
    video = next(file for file in media_of(folder).files if file.file.endswith(".mp4"))
    assert videos(folder) and trim(folder, store, table, 0, who="p01").files and not videos(folder)
    key = f"lab/{object_name(video.sha256)}"
    bucket.ask("put_object", Key=key, Body=b"on top of it")
    assert file_digest(local_file(folder, {"file": video.file, "sha256": video.sha256})) == video.sha256
    bucket.ask("delete_object", Key=key)  # a marker
    assert not ask(folder, store, table).problems, "each journalled version holds"
    assert not verify_campaign(folder).problems


def test_what_was_there_without_a_lock_is_locked_by_the_next_upload(
    ceph: Ceph, recordings: Recordings, tmp_path: Path
) -> None:
    folder, bucket = open_lab(recordings, tmp_path / "lab"), Bucket(ceph, lock=True)
    uploaded(folder, name_store(folder, bucket.url, *bucket.lines()))
    assert {one.get("until") for one in stored_files(folder)} == {None}
    table = name_store(folder, bucket.url, *bucket.lines(lock_days=2, lock="compliance"))
    assert len(trim(folder, open_store(table), table, 0, who="p01").broken) == len(videos(folder)) > 0
    done = uploaded(folder, table)
    assert done.sent == 0 and not done.broken and all(copy.until for copy in media_of(folder).stored.values())
    assert trim(folder, open_store(table), table, 0, who="p01").files and not videos(folder)


def test_objects_are_called_by_digest_alone_and_come_in_its_order(
    ceph: Ceph, recordings: Recordings, tmp_path: Path
) -> None:
    folder, bucket = blind_lab(recordings, tmp_path / "lab"), Bucket(ceph)
    table = name_store(folder, bucket.url, *bucket.lines())
    uploaded(folder, table)
    wanted = sorted({f"lab/{object_name(file.sha256)}" for file in media_of(folder).files})
    listed = bucket.ask("list_objects_v2")["Contents"]
    assert sorted(one["Key"] for one in listed) == wanted
    assert [one["Key"] for one in sorted(listed, key=lambda one: one["LastModified"])] == wanted
    assert bucket.ask("get_bucket_location")["ResponseMetadata"]["HTTPStatusCode"] == 200
    tagged = [bucket.ask("get_object_tagging", Key=key).get("TagSet") for key in wanted]
    assert tagged == [[]] * len(wanted)


def test_the_server_s_checksum_is_compared_where_the_lab_asks_for_that_and_bytes_are_read_otherwise(
    ceph: Ceph, tmp_path: Path
) -> None:
    bucket = Bucket(ceph)
    for size in (1000, PART, PART + 1, 3 * PART):
        path, sha256 = a_file(tmp_path / "video", size, seed=size)
        for check in ("server_checksum", "read_back"):
            table = bucket.table(check=check)
            store = open_store(table)
            kept = store.find(sha256) or store.put(path, sha256, None)
            assert check_object(store, table, path, sha256, kept) == check
            assert digest_in(store, sha256, None) == sha256
        other, _ = a_file(tmp_path / "other", size, seed=7)
        assert store.checksum_of(other) != kept.checksum
    altered, _ = a_file(tmp_path / "altered", 1000, seed=9)
    bucket.ask("put_object", Key=f"lab/{object_name('ab' * 32)}", Body=altered.read_bytes())
    kept = store.find("ab" * 32)
    assert kept is not None
    with pytest.raises(BrokenRecord, match="other bytes"):
        check_object(store, table, altered, "ab" * 32, kept)


def test_an_object_that_was_altered_is_named_and_never_given_out(
    ceph: Ceph, recordings: Recordings, tmp_path: Path
) -> None:
    folder, bucket = open_lab(recordings, tmp_path / "lab"), Bucket(ceph)  # without versions
    table = name_store(folder, bucket.url, *bucket.lines())
    uploaded(folder, table)
    store = open_store(table)
    one, other, *_ = [file for file in media_of(folder).files if file.file.endswith(".mp4")]
    size = (folder / one.file).stat().st_size
    bucket.ask("put_object", Key=f"lab/{object_name(one.sha256)}", Body=bytes(size))
    kept = trim(folder, store, table, 0, who="p01")
    assert (folder / one.file).is_file() and not (folder / other.file).is_file() and "other bytes" in kept.broken[0]
    bucket.ask("delete_object", Key=f"lab/{object_name(other.sha256)}")
    assert [problem.split(": ")[0] for problem in ask(folder, store, table).problems] == [one.file, other.file]
    with pytest.raises(Unreachable, match=r"could not be fetched: .* has no object") as told:
        local_file(folder, {"file": other.file, "sha256": other.sha256})
    assert "\n" not in str(told.value)


def test_a_process_that_is_killed_in_mid_upload_loses_one_part_at_most(ceph: Ceph, tmp_path: Path) -> None:
    bucket, relay = Bucket(ceph), Relay(ceph.port)
    path, sha256 = a_file(tmp_path / "video", 5 * PART)
    table = bucket.table(endpoint=f"http://127.0.0.1:{relay.port}")
    words = [sys.executable, "-c", PUT, str(path), sha256, table.model_dump_json(), "asks before it goes on"]
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as sender:
        assert sender.stdin is not None and sender.stdout is not None
        for part in range(3):
            assert sender.stdout.readline()
            if part < 2:
                print(file=sender.stdin, flush=True)
        sender.send_signal(signal.SIGKILL)
    store = open_store(table)
    assert store.find(sha256) is None and bucket.unfinished() == 1, "no half object, and an upload that was begun"
    before = relay.bytes
    store.put(path, sha256, None)
    assert relay.bytes - before < 2.5 * PART, "three of five parts were there"
    assert bucket.unfinished() == 0 and digest_in(store, sha256, None) == sha256


def test_two_hosts_that_upload_the_same_end_with_one_object_that_holds(
    ceph: Ceph, recordings: Recordings, tmp_path: Path
) -> None:
    """A large file at once by two processes, and a campaign by two copies of its lab, on a bucket with versions."""
    bucket = Bucket(ceph, versions=True)
    path, sha256 = a_file(tmp_path / "video", 4 * PART)
    words = [sys.executable, "-c", PUT, str(path), sha256, bucket.table().model_dump_json()]
    both = [subprocess.Popen(words, stdout=subprocess.DEVNULL) for _ in range(2)]
    assert [one.wait() for one in both] == [0, 0]
    assert digest_in(open_store(bucket.table()), sha256, None) == sha256 and bucket.unfinished() == 0
    first = blind_lab(recordings, tmp_path / "first")
    second = copied(tmp_path / "first", tmp_path / "second") / "campaigns" / first.name
    tables = [name_store(folder, bucket.url, *bucket.lines()) for folder in (first, second)]
    with ThreadPoolExecutor(2) as pool:
        done = list(pool.map(uploaded, (first, second), tables))
    number = len(media_of(first).files)
    assert [one.stored for one in done] == [number, number] and not done[0].broken and not done[1].broken
    assert len(bucket.keys()) == len({file.sha256 for file in media_of(first).files}) + 1
    for folder, table in zip((first, second), tables, strict=True):
        assert not ask(folder, open_store(table), table).problems, "each host's journal has a version that holds"


def test_a_store_that_is_full_keeps_what_was_verified_and_takes_the_rest_later(
    ceph: Ceph, recordings: Recordings, tmp_path: Path
) -> None:
    folder, bucket = blind_lab(recordings, tmp_path / "lab"), Bucket(ceph)
    table = name_store(folder, bucket.url, *bucket.lines())
    ceph.quota("lab", 1)
    try:
        with pytest.raises(StorageError, match="it is full") as told:
            uploaded(folder, table)
        assert "\n" not in str(told.value)
    finally:
        ceph.quota("lab", -1)
    assert len(videos(folder)) == sum(file.file.endswith(".mp4") for file in media_of(folder).files)
    assert uploaded(folder, table).stored == len(media_of(folder).files)


def test_refused_keys_missing_buckets_and_no_keys_are_one_line_without_a_secret(
    ceph: Ceph, monkeypatch: pytest.MonkeyPatch
) -> None:
    bucket = Bucket(ceph)
    ceph.user("stranger")
    said: list[str] = []

    def refused(url: str = bucket.url) -> None:
        with pytest.raises(StorageError) as told:
            open_store(bucket.table().model_copy(update={"url": url})).find("ab" * 32)
        said.append(str(told.value))

    refused("s3://no-such-bucket")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stranger")
    refused()
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "hush-99")
    refused()
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "nobody")
    refused()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    refused()
    assert ["no such bucket" in said[0], *("refused" in one for one in said[1:4]), "no keys" in said[4]] == [True] * 5
    assert not any("\n" in one or "hush-99" in one or "not-in-any-log" in one for one in said), said


def test_a_bucket_without_object_lock_refuses_a_lock_in_one_line(ceph: Ceph, tmp_path: Path) -> None:
    table = Bucket(ceph).table(lock_days=1)
    path, sha256 = a_file(tmp_path / "video", 1000)
    with pytest.raises(StorageError, match="object lock"):
        open_store(table).put(path, sha256, days_later(CLOCK.anchor().wall, 1))


def test_a_server_that_is_away_or_silent_is_given_up_in_time_and_a_slow_one_is_not(ceph: Ceph, tmp_path: Path) -> None:
    bucket = Bucket(ceph)
    path, sha256 = a_file(tmp_path / "video", 2 * PART)
    relay = SlowRelay(ceph.port)
    store = open_store(bucket.table(endpoint=f"http://127.0.0.1:{relay.port}", timeout_s=2.0))
    store.put(path, sha256, None)
    assert relay.passed_in_pieces > 100, "it took the slow way"
    relay.silent = True
    for how in ("silent", "away"):
        if how == "away":
            relay.cut()
        began_ns = CLOCK.now_ns()
        with pytest.raises(StorageError, match="does not answer; what was recorded is safe"):
            store.find(sha256)
        assert CLOCK.now_ns() - began_ns < 30 * SECOND
    ceph.kill()
    ceph.start()
    assert digest_in(open_store(bucket.table()), sha256, None) == sha256, "what it had acknowledged is there"


class SlowRelay(Relay):
    """A way to the server on which each piece takes a while."""

    passed_in_pieces = 0

    def _pass(self, source, target) -> None:  # type: ignore[no-untyped-def]
        class Slowly:
            def recv(inner, size: int) -> bytes:
                CLOCK.sleep_until(CLOCK.now_ns() + MILLISECOND)
                self.passed_in_pieces += 1
                return source.recv(min(size, 16384))

            def shutdown(inner, how: int) -> None:
                source.shutdown(how)

        super()._pass(Slowly(), target)  # type: ignore[arg-type]


@pytest.mark.real_time
def test_a_run_does_not_notice_a_store_that_stands_still(ceph: Ceph, tmp_path: Path) -> None:
    """It takes connections and answers nothing, from the first episode to the end of the run; then it goes on."""
    arms = [policy("policy-a", skill="swift"), policy("policy-b", skill="swift")]
    folder = make_campaign(tmp_path, arms, name="still", live=True, cameras=True, items=1, budget=4.0).folder
    bucket = Bucket(ceph)
    table = name_store(folder, bucket.url, *bucket.lines(timeout_s=2.0))
    ceph.freeze(True)
    try:
        with running(folder, tmp_path / "run.log") as run:
            wait_for("the end of the run", lambda: run.poll() is not None)
        assert run.returncode == 0
    finally:
        ceph.freeze(False)
    kinds = {event.kind for event in events_of(folder)}
    assert not kinds & {Kind.HOLD_RAISED, Kind.CELL_FAULTED, Kind.START_WITHHELD}
    void = {event.body["reason"] for event in events_of(folder) if event.kind == Kind.EPISODE_VOIDED}
    assert void <= {"not_ready"}, "a busy machine has a controller late"
    assert "the media store has not all of it" in (tmp_path / "run.log").read_text()
    assert "it is tried again" in (folder / "logs/media.log").read_text() and not media_of(folder).stored
    done = uploaded(folder, table)
    assert done.stored == len(media_of(folder).files) > 0 and not verify_campaign(folder).problems


@pytest.mark.real_time
def test_the_process_beside_a_run_uploads_through_an_outage_and_leaves_the_journal_to_a_verb(
    ceph: Ceph, recordings: Recordings, tmp_path: Path
) -> None:
    folder, bucket = blind_lab(recordings, tmp_path / "lab"), Bucket(ceph)
    name_bucket(folder, bucket, timeout_s=2.0)
    head = events_of(folder)[-1].seq
    ceph.kill()
    log = folder / "logs/media.log"
    beside = StoreCopy(folder)
    wait_for("the outage", lambda: log.is_file() and "it is tried again" in log.read_text())
    ceph.start()
    number = len({file.sha256 for file in media_of(folder).files})
    wait_for("the uploads", lambda: len(bucket.keys()) == number)
    assert beside.close() == ""
    assert events_of(folder)[-1].seq == head, "the run's journal has one writer"
    text = log.read_text()
    assert "Traceback" not in text and "not-in-any-log" not in text and os.environ["AWS_SECRET_ACCESS_KEY"] not in text
    table = name_store(folder, bucket.url, *bucket.lines())
    done = uploaded(folder, table)
    assert done.sent == 0 and done.stored == len(media_of(folder).files) and media_of(folder) != Held()
