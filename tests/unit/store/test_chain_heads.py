"""Claims about heads: what the database alone cannot show, they show."""

from __future__ import annotations

import pytest
from support.chains import chain

from labctl.errors import BrokenRecord, StorageError
from labctl.store.atomic_files import append_line, replace_file, whole_lines
from labctl.store.chain_heads import Head, append_head, head_problems, read_heads


def test_heads_are_read_back_in_order(tmp_path):
    append_head(tmp_path, 3, "a" * 64, "2026-01-01T00:00:00+00:00")
    append_head(tmp_path, 9, "b" * 64, "2026-01-01T00:01:00+00:00")
    assert [(h.seq, h.hash[0]) for h in read_heads(tmp_path)] == [(3, "a"), (9, "b")]
    assert read_heads(tmp_path / "nothing") == []


def test_a_chain_agrees_with_its_own_heads():
    events = chain(5)
    assert head_problems([Head(e.seq, e.hash, "w") for e in events], events) == []


@pytest.mark.parametrize("cut", [1, 2, 5], ids="cut by {}".format)
def test_a_cut_tail_is_named_however_little_was_cut(cut: int) -> None:
    events = chain(6)
    heads = [Head(event.seq, event.hash, "w") for event in (events[0], events[-1])]
    (problem,) = head_problems(heads, events[:-cut])
    assert (problem.what, problem.where) == ("cut tail", f"journal after seq {6 - cut}")


def test_a_rehashed_chain_is_named():
    events = chain(5)
    heads = [Head(5, events[4].hash, "w")]
    (problem,) = head_problems(heads, chain(5, "other"))
    assert (problem.what, problem.where) == ("rehashed chain", "journal seq 5")


def test_the_torn_line_of_a_killed_writer_is_cut_off_and_the_next_is_whole(tmp_path):
    append_head(tmp_path, 1, "a" * 64, "w")
    with (tmp_path / "heads.log").open("a") as file:
        file.write("2 bbb")
    assert len(read_heads(tmp_path)) == 1
    append_head(tmp_path, 2, "b" * 64, "w")
    assert [h.seq for h in read_heads(tmp_path)] == [1, 2]


def test_an_edited_line_is_refused_with_its_number(tmp_path):
    append_head(tmp_path, 1, "a" * 64, "w")
    append_line(tmp_path / "heads.log", "not a head")
    with pytest.raises(BrokenRecord, match=r"heads\.log:2"):
        read_heads(tmp_path)


def test_a_torn_first_line_leaves_an_empty_file_not_a_mixed_line(tmp_path):
    path = tmp_path / "log"
    path.write_text("torn")
    append_line(path, "whole")
    assert whole_lines(path) == ["whole"]


def test_a_file_is_replaced_whole_and_a_failure_leaves_the_old_one(tmp_path):
    path = tmp_path / "f"
    replace_file(path, b"one")
    replace_file(path, b"two", mode=0o600)
    assert path.read_bytes() == b"two"
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(StorageError):
        replace_file(tmp_path / "no folder" / "f", b"three")
    assert [p.name for p in tmp_path.iterdir()] == ["f"]


def test_a_full_disk_is_one_line(tmp_path, monkeypatch):
    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(StorageError, match="disk is full"):
        append_head(tmp_path, 1, "a" * 64, "w")
    with pytest.raises(StorageError, match="disk is full"):
        replace_file(tmp_path / "f", b"x")
    assert not (tmp_path / "f").exists()
