"""`labctl joint verify` looks at every part that lies in the lab, and at what is named."""

from __future__ import annotations

import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from support.joint.joint_labs import Labs, answering, make_labs
from support.runs.campaigns import make_campaign

from labctl.cli import call


def joined_in_one_lab(tmp_path: Path) -> Labs:
    """A seal host in whose lab both cells' campaigns lie."""
    labs = make_labs(tmp_path)
    with answering(labs):
        for cell in "ab":
            folder = labs.join(cell)
            folder.rename(labs.host / "campaigns" / folder.name)
    return labs


def edited(folder: Path, sql: str) -> None:
    with closing(sqlite3.connect(folder / "journal.db")) as raw, raw:
        raw.execute("DROP TRIGGER event_no_update")
        raw.execute(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "UPDATE event SET body = json_set(body, '$.arming_s', 99)",
        "UPDATE event SET body = json_set(body, '$.joint', 3)",
        "UPDATE event SET body = json_remove(body, '$.joint')",
        "DROP TABLE event",
    ],
)
def test_parts_in_the_lab_of_the_seal_are_verified_without_being_named(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sql: str
) -> None:
    """Of a part in the same lab it was said that it is not here, and that the record holds."""
    labs = joined_in_one_lab(tmp_path)
    verify = ["joint", "verify", "two", "--lab", str(labs.host)]
    assert call(verify) == 0
    assert "cells read: a, b" in capsys.readouterr().out
    edited(labs.host / "campaigns/two-a", sql)
    for named in ([], ["two-b"]):
        assert call([*verify, *named]) == 1
        assert re.search("^[a-z ]+: two-a: .*^broken$", capsys.readouterr().out, re.MULTILINE | re.DOTALL)


def test_a_part_is_given_by_its_name_or_its_folder_and_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    labs = joined_in_one_lab(tmp_path)
    shutil.copytree(labs.host / "campaigns/two-a", tmp_path / "copies/two-a")
    verify = ["joint", "verify", "two", "--lab", str(labs.host)]
    here = str(labs.host / "campaigns/two-a")
    for named in ([here], ["two-a", here, "two-b"], [str(tmp_path / "copies/two-a")]):
        assert call([*verify, *named]) == 0
        assert "cells read: a, b" in capsys.readouterr().out
    assert call([*verify, "two-c"]) == 2
    assert "campaigns: two-a, two-b" in capsys.readouterr().err


def test_a_campaign_by_itself_is_refused_and_breaks_no_record(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Given by mistake it made the record "broken"."""
    labs = make_labs(tmp_path)
    make_campaign(labs.host, name="two-alone")
    verify = ["joint", "verify", "two", "--lab", str(labs.host)]
    assert call(verify) == 0
    capsys.readouterr()
    assert call([*verify, "two-alone"]) == 2
    said = capsys.readouterr()
    assert "two-alone is no part of a joint campaign; verify it by itself: labctl verify two-alone" in said.err
    assert said.out == ""
