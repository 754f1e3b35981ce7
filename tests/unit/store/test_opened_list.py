"""Claims about a lab's list of opened campaigns: none is left out, and no line is changed without a word."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from labctl.clock import SECOND, MonotonicClock
from labctl.core.events import GENESIS
from labctl.errors import BrokenRecord
from labctl.store import opened_list
from labctl.store.opened_list import OPENED, add_opened, opened_in

CLOCK = MonotonicClock()


def add(lab: Path, name: str) -> None:
    about = {"protocol": "p", "protocol_sha256": "0" * 64, "commitment": name * 8, "wall": "2026-11-23T03:00:00+00:00"}
    add_opened(lab, CLOCK, campaign=name, **about)


def test_campaigns_are_listed_in_the_order_they_were_opened(tmp_path):
    assert opened_in(tmp_path) == [], "a lab of before keeps no list"
    for name in "abc":
        add(tmp_path, name)
    found = opened_in(tmp_path)
    assert [entry.campaign for entry in found] == ["a", "b", "c"]
    assert [entry.prev for entry in found] == [GENESIS, found[0].hash, found[1].hash]


def test_two_that_open_at_once_both_stand_in_the_chain(tmp_path, monkeypatch):
    monkeypatch.setattr(opened_list, "PATIENCE_NS", 600 * SECOND)  # each waits for the disk of those before it
    threads = [threading.Thread(target=add, args=(tmp_path, name)) for name in "abcdef"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(entry.campaign for entry in opened_in(tmp_path)) == list("abcdef")


def drop_the_second(lines: list[str]) -> list[str]:
    return [lines[0], *lines[2:]]


def rename_one(lines: list[str]) -> list[str]:
    return [lines[0], lines[1].replace('"campaign":"b"', '"campaign":"x"'), lines[2]]


def swap(lines: list[str]) -> list[str]:
    return [lines[1], lines[0], lines[2]]


def cut_the_first(lines: list[str]) -> list[str]:
    return lines[1:]


def scribble(lines: list[str]) -> list[str]:
    return [lines[0], "nothing of the kind", lines[2]]


@pytest.mark.parametrize("attack", [drop_the_second, rename_one, swap, cut_the_first, scribble])
def test_a_line_that_is_gone_or_changed_is_named(tmp_path, attack):
    for name in "abc":
        add(tmp_path, name)
    path = tmp_path / OPENED
    path.write_text("\n".join(attack(path.read_text().splitlines())) + "\n")
    with pytest.raises(BrokenRecord, match=rf"{OPENED}:[123]: this lab's list of opened campaigns is broken"):
        opened_in(tmp_path)
    with pytest.raises(BrokenRecord):
        add(tmp_path, "d")
