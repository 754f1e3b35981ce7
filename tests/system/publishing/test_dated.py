"""Timestamps in a published folder count by the certificates that whoever verifies it trusts, and by no others."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from support.machine import time_authority
from support.machine.time_authority import Authority
from support.runs.campaigns import recorded_with_cameras, unblinded_copy
from support.runs.published import request
from support.runs.recordings import Recordings

from labctl.cli import call
from labctl.publishing.again import report_again
from labctl.publishing.publish import publish
from labctl.store.chain_heads import read_heads
from labctl.store.lab_folder import lab_with
from labctl.store.verifying.timestamps import keep, query

pytest.importorskip("rfc3161_client")
pytestmark = pytest.mark.skipif(not time_authority.AVAILABLE, reason="the test authority is openssl's")


def test_timestamps_count_by_the_certificates_of_whoever_verifies(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = unblinded_copy(tmp_path / "lab", str(recordings.of(recorded_with_cameras)))
    mine, other = (time_authority.made(tmp_path / name) for name in ("keys", "others"))
    head = read_heads(folder)[-1]
    keep(folder, head.seq, mine.answer(query(head.seq, head.hash)))
    out = publish(folder, tmp_path / "p", request()).folder
    assert call(["verify", str(out)]) == 0
    assert "unchecked: 1 timestamp of an authority" in capsys.readouterr().out
    assert call(["verify", str(out), "--certificates", str(mine.root)]) == 0
    assert f"entries 1 to {head.seq} of {head.seq} existed at" in (said := capsys.readouterr().out)
    assert "timestamp of an authority" not in said
    assert call(["verify", str(out), "--certificates", str(other.root)]) == 1
    assert "bad timestamp" in capsys.readouterr().out
    within = _within_a_lab(out, tmp_path / "theirs", other)
    assert lab_with(within / "campaigns/trial-run") is None
    assert report_again(within, tmp_path / "r").same, "whatever lab it lies in"


def _within_a_lab(published: Path, lab: Path, authority: Authority) -> Path:
    """A copy below a lab of a reader, which names an authority of its own."""
    lab.mkdir()
    shutil.copy(authority.root, lab / "root.pem")
    table = 'timezone = "Asia/Tokyo"\n[timestamps]\nauthority = "http://127.0.0.1:9/"\ncertificates = "root.pem"\n'
    (lab / "lab.toml").write_text(table)
    return shutil.copytree(published, lab / "downloads/p")
