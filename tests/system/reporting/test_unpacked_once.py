"""A report unpacks what it reads of its traces once: while they are verified."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import make_campaign, unblind

from labctl.reporting.campaign_report import report_campaign
from labctl.runtime.campaign_run import run_campaign
from labctl.store import read_once
from labctl.store.traces import TraceStore


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_campaign(tmp_path_factory.mktemp("lab")).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    return folder


def report(folder: Path, out: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[dict[str, bytes], list[str]]:
    """The files of its report, and the streams that were read after it had been verified."""
    asked: list[str] = []
    whole = TraceStore.read

    def read(store: TraceStore, episode: str, stream: str):
        asked.append(stream)
        return whole(store, episode, stream)

    monkeypatch.setattr(TraceStore, "read", read)
    report_campaign(folder, out, boot=20, perm=20)
    monkeypatch.setattr(TraceStore, "read", whole)
    return {path.name: path.read_bytes() for path in out.rglob("*") if path.is_file()}, asked


def test_what_was_verified_is_not_unpacked_again(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    _, asked = report(folder, tmp_path / "r", monkeypatch)
    assert asked == []


def test_what_is_too_much_to_be_unpacked_at_once_is_read_later_and_gives_the_same_report(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a").mkdir(), (tmp_path / "b").mkdir()
    whole, _ = report(folder, tmp_path / "a" / "r", monkeypatch)
    monkeypatch.setattr(read_once, "MOST_BYTES", 0)
    again, asked = report(folder, tmp_path / "b" / "r", monkeypatch)
    assert "arm/state" in asked and again == whole
