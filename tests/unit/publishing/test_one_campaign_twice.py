"""A campaign under two names would stand twice on a board, and share one id in a feed."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from labctl.errors import InputError
from labctl.publishing import site


def test_two_folders_of_one_commitment_are_no_two_campaigns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """RFC 4287 4.1.1 has each entry of a feed by an id of its own."""

    def shown(folder: Path, *_: Any) -> Any:
        of = {"name": folder.name, "manifest": SimpleNamespace(commitment="c" if folder.name != "other" else "d")}
        return SimpleNamespace(**of)

    monkeypatch.setattr(site, "shown", shown)
    folders = [tmp_path / name for name in ("other", "may", "again")]
    for folder in folders:
        folder.mkdir()
    with pytest.raises(InputError, match=r"may and .*again are one campaign under two names, may and again"):
        site.make_site(folders, tmp_path / "s")
    assert not (tmp_path / "s").exists()
