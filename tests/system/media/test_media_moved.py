"""A lab whose media store is another one now: each file is said to be where it is; and one campaign that is broken."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.json_documents import judged
from support.media.campaigns import folder_store, media_of, open_lab, uploaded, videos
from support.runs.recordings import Recordings, copied

from labctl.cli import call
from labctl.store.media.looking import ask
from labctl.store.media.trimming import trim


def test_what_the_former_store_alone_has_is_neither_lost_nor_said_to_hold(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    table, store = folder_store(folder, tmp_path / "former")
    number = len(media_of(folder).files)
    uploaded(folder, table)
    gone = len(trim(folder, store, table, 0, who="p01").files)
    assert gone and not videos(folder)
    other, store = folder_store(folder, tmp_path / "store")
    assert ask(folder, store, other).elsewhere == number
    at = ["--lab", str(tmp_path / "lab")]
    assert call(["media", "upload", *at]) == 0
    told = capsys.readouterr()
    assert told.err == "" and f"; {gone} files in another store alone" in told.out
    done = uploaded(folder, other)
    assert (done.elsewhere, done.gone, done.broken, done.stored) == (gone, [], [], number - gone)
    assert call(["media", "check", *at]) == 0
    assert f"{number - gone} files in {other.url}, all hold; {gone} files in another store" in capsys.readouterr().out
    (folder / next(file.file for file in media_of(folder).files if not file.bulky)).unlink()
    assert uploaded(folder, other).gone == [], "both stores have it"


def test_a_campaign_whose_chain_does_not_hold_keeps_no_other_from_its_turn(
    recordings: Recordings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = open_lab(recordings, tmp_path / "lab")
    broken = copied(folder, folder.with_name("a-broken-one"))
    with closing(sqlite3.connect(broken / "journal.db")) as database:
        database.execute("PRAGMA writable_schema = ON")
        for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE event SET who = 'nobody' WHERE seq = 2")
        database.commit()
    folder_store(folder, tmp_path / "store", "keep_days = 0")
    number = len(media_of(folder).files)
    at = ["--lab", str(tmp_path / "lab")]
    for verb, code in (("list", 65), ("upload", 65), ("check", 1), ("trim", 65)):
        assert call(["media", verb, *at, "--json"]) == code
        told = capsys.readouterr()
        campaigns = {one["campaign"]: one for one in judged(told.out, "media/1")["campaigns"]}
        assert "see: labctl verify a-broken-one" in (told.err + json.dumps(campaigns)), verb
        assert folder.name in campaigns and campaigns[folder.name].get("broken", []) == [], verb
    assert not videos(folder) and videos(broken) and len(media_of(folder).stored) == number
    assert call(["media", "upload", broken.name, *at]) == 65
    assert capsys.readouterr().err.count("\n") == 1
