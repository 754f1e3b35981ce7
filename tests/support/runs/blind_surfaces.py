"""Everything that a blind role can look at of a campaign, as text by where it stands."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from labctl.cli import call
from labctl.core.reviewed import queue
from labctl.pages.recorded_videos import RecordedVideos
from labctl.pages.reviewing import ReviewPage
from labctl.pages.server import PageRequest
from labctl.store.campaign import Campaign

ENTROPY = hashlib.sha256(b"blinding").digest()


def see_all(lab: Path, folder: Path, said: Iterable[str], capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    """Everything a blind role can look at: what was printed, what every verb prints, every file outside the seal."""
    seen = {"run": "\n".join(said)}
    table, name = lab / "table.csv", folder.name
    for words in (
        ["status", name],
        ["status", name, "--json"],
        ["status", name, "--hours", "--page", str(lab / "hours.html")],
        ["status", name, "--hours", "--json"],
        ["status"],
        ["episodes", name],
        ["episodes", name, "--json"],
        ["plan", str(lab / "protocols/p.toml")],
        ["plan", str(lab / "protocols/p.toml"), "--json"],
        ["export", name, "--to", "table", "--out", str(table)],
        ["verify", name],
        ["verify", name, "--json"],
        ["report", name, "--out", str(lab / "report")],
        ["unblind", name],
        ["freeze", name],
    ):
        place = [] if words[0] == "plan" else ["--lab", str(lab)]
        code = call([*words, *place])
        printed = capsys.readouterr()
        seen[" ".join(words)] = f"{code}\n{printed.out}\n{printed.err}"
    seen["hours.html"] = (lab / "hours.html").read_text("utf-8")
    if table.exists():
        seen["table.csv"] = table.read_text()
    files = sorted(
        path for path in folder.rglob("*") if path.is_file() and "seal" not in path.relative_to(folder).parts
    )
    # SQLite's -wal and -shm hold pages of the database beside them, with salts; the database is read whole, as rows.
    files = [path for path in files if not path.name.endswith(("-wal", "-shm"))]
    seen["names of files"] = "\n".join(str(path.relative_to(folder)) for path in files)
    for path in files:
        if path.suffix == ".db":
            with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
                seen[path.name] = "\n".join(db.iterdump())
        else:
            seen[str(path.relative_to(folder))] = path.read_bytes().decode("latin-1")
    return seen


def review_pages(folder: Path) -> dict[str, bytes]:
    """Everything that the page of a review is told."""

    def load() -> Any:
        with Campaign.open(folder) as campaign:
            return queue(campaign.record())

    def refuse(*given: object) -> Any:
        raise AssertionError("nothing is written here")

    routes = ReviewPage(folder.name, RecordedVideos(folder), load, refuse, refuse, refuse).routes()
    seen = {"queue": routes["GET /queue"](PageRequest({})).data}
    for item in load():
        seen[item.trial.id] = routes["GET /episode/{trial}"](PageRequest({"trial": item.trial.id})).data
        for camera in ("over_shoulder", "wrist"):
            asked = PageRequest({"episode": str(item.trial.episode), "camera": camera})
            seen[f"{item.trial.episode} {camera}"] = routes["GET /video/{episode}/{camera}"](asked).data
    return seen
