"""A password in an address of the cell is warned of before it is sealed, and published only where somebody says so."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind
from support.runs.published import FEW

from labctl.cli import call
from labctl.runtime.campaign_run import run_campaign

SECRET = "viewer:hush-99@10.0.0.5"


def test_a_password_is_warned_of_before_a_campaign_is_sealed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = tmp_path / "lab"
    assert call(["new", str(lab)]) == 0
    cell, protocol = next((lab / "cells").glob("*.toml")), lab / "protocols/first.toml"
    text = protocol.read_text("utf-8")
    assert '"sim://' in text
    protocol.write_text(text.replace('"sim://', f'"sim://{SECRET}/', 1), "utf-8")
    capsys.readouterr()
    assert call(["open", str(protocol), "--cell", str(cell), "--offline", "--lab", str(lab)]) == 0
    said = capsys.readouterr()
    assert f"warn  secrets: {protocol}:" in said.err and "an address with a password; it is sealed" in said.err
    assert "-> have source_env of a camera name an environment variable" in said.err
    assert call(["doctor", str(cell), "--protocol", str(protocol), "--lab", str(lab), "--json"]) == 0
    also = capsys.readouterr().out
    assert '"secrets"' in also and "hush" not in said.err + said.out + also


def test_a_cell_with_a_password_is_published_only_where_somebody_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arms = [HUMAN, policy("far", skill="swift", endpoint=f"sim://{SECRET}/")]
    folder = make_campaign(tmp_path / "lab", arms).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    out = tmp_path / "p"
    words = ["publish", str(folder), "--licence", "CC0-1.0", "--out", str(out), "--boot", str(FEW), "--perm", str(FEW)]
    assert call(words) != 0
    refused = capsys.readouterr().err
    assert "not published: protocol.toml:" in refused and "endpoint of [arm far.options]" in refused
    assert "in the next campaign's cell have source_env name an environment variable" in refused
    assert not out.exists()
    assert call([*words, "--with-secrets"]) == 0
    said = capsys.readouterr()
    assert "and the addresses of cell and protocol, are in the record" in said.out
    assert "hush" not in refused + said.out + said.err
