"""`labctl database`, as far as no server is asked."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from support.runs.campaigns import make_campaign

from labctl import cli
from labctl.errors import StateError
from labctl.store.server import comparing, connecting
from labctl.store.server.comparing import Compared

URL = "postgresql+psycopg://p07@127.0.0.1:1/labctl"


def test_a_campaign_that_a_login_is_blind_to_does_not_end_the_check_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = make_campaign(tmp_path).folder.parents[1]
    first = lab / "campaigns" / "trial-run"
    (lab / "campaigns" / "another").symlink_to(first)
    names = iter(("another", "trial-run"))

    def compare(*_: object) -> Compared:
        if (name := next(names)) == "another":
            raise StateError("samples of it are for the cell that copied them")
        return Compared(name, 3, 3, "3:ab", None)

    monkeypatch.setattr(comparing, "compare", compare)
    monkeypatch.setattr(connecting, "Server", lambda *_: SimpleNamespace(close=lambda: None))
    assert cli.call(["database", "check", "--lab", str(lab), "--url", URL]) == 1
    said = capsys.readouterr().out
    assert "another: not compared: samples of it are for the cell that copied them" in said
    assert "entries 1 to 3 of 3" in said
