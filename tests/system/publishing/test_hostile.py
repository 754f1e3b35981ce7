"""A published folder is a stranger's: whatever is wrong with one, a line says it before anything of it is opened."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.runs.published import AT, altered, forged, listed, manifest_of, rewrite
from support.runs.recordings import copied

from labctl.cli import call
from labctl.core.events import Event, Kind
from labctl.errors import LabctlError
from labctl.publishing.again import held_against
from labctl.publishing.check import check_published, refuse_unless_it_holds

pytestmark = pytest.mark.usefixtures("no_collector")

Spoil = Callable[[Path], object]


def entry(name: str, size: int = 1) -> Spoil:
    """The manifest lists a further file."""
    return lambda folder: rewrite(folder, lambda m: m["files"].update({name: {"size": size, "sha256": "0" * 64}}))


def says(key: str, value: Any) -> Spoil:
    return lambda folder: rewrite(folder, lambda m: m.update({key: value}))


def written(name: str, text: str = "x", *, and_listed: bool = False) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
        if and_listed:
            listed(folder, name)

    return spoil


def replaced(name: str, by: Callable[[Path], object]) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).unlink()
        by(folder / name)

    return spoil


def with_wal(folder: Path) -> None:
    (folder / f"{AT}/journal.db-wal").write_bytes(b"x")
    listed(folder, f"{AT}/journal.db-wal")


def sql(name: str, *statements: str) -> Spoil:
    return lambda folder: altered(folder, f"{AT}/{name}", *statements)


def bytes_of(name: str, change: Callable[[bytes], bytes]) -> Spoil:
    def spoil(folder: Path) -> None:
        (folder / name).write_bytes(change((folder / name).read_bytes()))
        listed(folder, name)

    return spoil


def said_in(kind: Kind, **more: Any) -> Callable[[Event], Event]:
    """Entries of this kind say something else."""
    return lambda event: replace(event, body={**event.body, **more}) if event.kind == kind else event


def hollow(folder: Path) -> None:
    """A file that the manifest lists with its own size, of which nothing is on the disk."""
    (folder / "recordings").mkdir(exist_ok=True)
    with (folder / "recordings/e.rrd").open("wb") as file:
        file.truncate(1 << 40)
    entry("recordings/e.rrd", 1 << 40)(folder)


def in_journal(old: str, new: str) -> Spoil:
    return sql("journal.db", f"UPDATE event SET body = replace(body, '\"{old}', '\"{new}')")


def endless_view(folder: Path) -> None:
    sql(
        "journal.db",
        "DROP TABLE event",
        "CREATE VIEW event AS WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) "
        "SELECT 'trial-run' campaign, x seq, hex(zeroblob(1000000)) kind FROM n",
    )(folder)


def generated(folder: Path) -> None:
    sql(
        "journal.db",
        "DROP TABLE event",
        "CREATE TABLE event (campaign, seq, kind, at_ns, boot, wall, who, trial, episode, "
        "body GENERATED ALWAYS AS (hex(zeroblob(100000000))), prev, hash)",
    )(folder)


def same_page_often(data: bytes) -> bytes:
    """An interior page whose children are all one page."""
    size = int.from_bytes(data[16:18], "big") or 65536
    pages = [bytearray(data[at : at + size]) for at in range(0, len(data), size)]
    for page in pages[1:]:
        if page[0] == 5:  # interior, of a table
            cells = int.from_bytes(page[3:5], "big")
            for cell in range(cells):
                at = int.from_bytes(page[12 + 2 * cell : 14 + 2 * cell], "big")
                page[at : at + 4] = page[8:12]
            break
    return b"".join(pages)


WEAPONS: dict[str, tuple[Spoil, str]] = {
    "a path that goes up": (entry("../../.bashrc"), "which does not lie in the folder"),
    "a path that goes up on the way": (entry("tables/../../x"), "which does not lie in the folder"),
    "an absolute path": (entry("/etc/passwd"), "which does not lie in the folder"),
    "a path with backslashes": (entry("tables\\..\\x"), "which does not lie in the folder"),
    "a path with two slashes": (entry("tables//x"), "which does not lie in the folder"),
    "a path with an escape code": (entry("tables/\x1b[2J"), "printed characters alone"),
    "a hidden name": (entry("tables/.x"), "begins with no dot"),
    "a path of no end": (entry("tables/" + "x" * 300), "longer than 240 characters"),
    "a folder that no publication has": (entry("home/x"), "a published folder has README.md"),
    "another campaign's folder": (entry("campaigns/other/journal.db"), "a published folder has README.md"),
    "settings of a lab, by which modules are imported": (entry("campaigns/trial-run/lab.toml"), "no settings of a lab"),
    "a withheld path that goes up": (
        lambda folder: rewrite(
            folder,
            lambda m: m["withheld"].append(
                {"what": "photo", "episode": "e", "file": "../x", "why": "", "salted": "0" * 64}
            ),
        ),
        "which does not lie in the folder",
    ),
    "a campaign's name that goes up": (says("campaign", "../x"), "is no name of a campaign"),
    "a campaign's name with HTML": (says("campaign", "<script>"), "is no name of a campaign"),
    "an unlisted file": (written("tables/more.csv"), "unlisted file: tables/more.csv"),
    "an unlisted lab.toml": (written("lab.toml"), "unlisted file: lab.toml"),
    "a file that is gone": (lambda folder: (folder / "README.md").unlink(), "missing file: README.md"),
    "a changed file": (written("README.md"), "changed file: README.md"),
    "a link to a file": (replaced("README.md", lambda path: path.symlink_to("/etc/passwd")), "is a link"),
    "a link to a folder": (
        lambda folder: (folder / "tables" / "more").symlink_to("/etc", target_is_directory=True),
        "is a link",
    ),
    "a link in place of the manifest": (
        lambda folder: (
            (folder / "published.json").rename(folder.parent / "m.json"),
            (folder / "published.json").symlink_to(folder.parent / "m.json"),
        ),
        "a manifest is a file of the folder itself",
    ),
    "a second name of a file elsewhere": (
        lambda folder: os.link(folder / "README.md", folder.parent / "elsewhere"),
        "hard links",
    ),
    "a pipe": (replaced("README.md", os.mkfifo), "is no plain file"),
    "folders without end": (lambda folder: (folder / "/".join("abcdefghijk")).mkdir(parents=True), "deeper than 8"),
    "a size of petabytes": (entry("tables/x.csv", 1 << 60), "bytes; 2199023255552 are the most"),
    "a terabyte of holes": (hollow, "holes, which would be read for hours"),
    "a size below nothing": (entry("tables/x.csv", -5), "are the most"),
    "a manifest of other fields": (says("files", [1]), "no manifest of labctl"),
    "a manifest of brackets": (
        lambda folder: (folder / "published.json").write_text("[" * 200_000),
        "no manifest of labctl",
    ),
    "a report of endless draws": (
        lambda folder: rewrite(folder, lambda m: m["report"].update(boot=10**12)),
        "no manifest of labctl: report.boot",
    ),
    "a manifest of another form": (says("schema", "labctl.published/9"), "no manifest of labctl"),
    "a manifest that says a thing twice": (
        lambda folder: (folder / "published.json").write_text(
            (folder / "published.json").read_text().replace("{", '{"kind": "real",', 1)
        ),
        "a key stands in it twice",
    ),
    "no SQLite file": (bytes_of(f"{AT}/journal.db", lambda data: b"x" * 100), "not a SQLite file"),
    "a SQLite file cut short": (bytes_of(f"{AT}/traces.db", lambda data: data[:5000]), "not a sound SQLite file"),
    "SQLite pages that lead to one another": (bytes_of(f"{AT}/traces.db", same_page_often), "do not fit together"),
    "a view that never ends": (endless_view, "it holds a view 'event'"),
    "a column that makes a gigabyte of nothing": (generated, "has not the columns"),
    "a trigger": (
        sql("journal.db", "CREATE TRIGGER t BEFORE INSERT ON event BEGIN SELECT 1; END"),
        "it holds a trigger 't'",
    ),
    "an index with a function": (sql("traces.db", "CREATE INDEX i ON chunk (hex(payload))"), "it holds a index 'i'"),
    "a table of another module": (
        sql("traces.db", "CREATE VIRTUAL TABLE f USING fts5(x)"),
        "it holds a table 'f'",
    ),
    "a video that lies elsewhere": (in_journal("video/", "../../x/"), "its journal names '../../x/"),
    "a photo by its whole path": (in_journal("photos/", "/etc/"), "its journal names '/etc/"),
    "an episode whose name goes up": (
        sql("journal.db", "UPDATE event SET episode = '../../x' WHERE episode IS NOT NULL"),
        "episode '../../x': letters, digits",
    ),
    "a journal of nothing": (sql("journal.db", "UPDATE event SET body = '[]'"), "cannot be read"),
    "a journal that is no JSON": (sql("journal.db", "UPDATE event SET body = '{'"), "its body is not JSON"),
    "a journal of numbers": (sql("journal.db", "UPDATE event SET seq = -seq"), "its journal does not begin"),
    "a journal of nobody": (sql("journal.db", "DELETE FROM event"), "holds 0 campaigns, not one"),
    "a log beside the journal": (with_wal, "a database that no campaign has"),
    "a database of its own": (written("tables/x.db", and_listed=True), "a database that no campaign has"),
}


@pytest.mark.parametrize("weapon", WEAPONS)
def test_a_weapon_is_named_in_one_line(weapon: str, mine: Path) -> None:
    spoil, expected = WEAPONS[weapon]
    spoil(mine)
    with pytest.raises(LabctlError) as refused:
        check_published(mine)
    assert expected in str(refused.value) and "\n" not in str(refused.value)
    assert str(refused.value).isprintable()


FORGED: dict[str, tuple[Callable[[Event], Event], str]] = {
    "a time that is none": (lambda event: replace(event, wall="soon"), "was written at 'soon'"),
    "a time of nowhere": (lambda event: replace(event, wall="2026-01-01T00:00:00"), "labctl writes YYYY-MM-DDTHH"),
    "a schedule of one word": (said_in(Kind.CAMPAIGN_OPENED, schedule="x"), "illegal history"),
    "software that is a list": (said_in(Kind.RUN_STARTED, pins=[1]), "what no labctl writes"),
}


@pytest.mark.parametrize("weapon", FORGED)
def test_a_record_that_was_chained_anew_is_no_bug_of_labctl_whatever_stands_in_it(
    weapon: str, mine: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The chain holds, the manifest lists all of it: only what stands in the entries is what labctl never wrote."""
    change, expected = FORGED[weapon]
    forged(mine, change)
    code = call(["report", str(mine), "--out", str(mine.parent / "r")])
    said = capsys.readouterr().err
    assert code == 65 and expected in said and len(said.splitlines()) == 1, said
    assert not (mine.parent / "r").exists()


def test_the_command_line_says_it_without_a_traceback(mine: Path, capsys: pytest.CaptureFixture[str]) -> None:
    entry("../../.bashrc")(mine)
    assert call(["verify", str(mine)]) == 1  # interface: whoever asks what is wrong; every other verb leaves with 65
    assert call(["report", str(mine), "--out", str(mine.parent / "r")]) == 65
    said = capsys.readouterr()
    assert said.out == "" and len(said.err.splitlines()) == 2
    assert not (mine.parent / "r").exists()


def test_what_was_changed_and_listed_anew_breaks_the_chain(mine: Path) -> None:
    """Whoever makes every digest of the manifest fit still has to make the journal fit."""
    altered(mine, f"{AT}/journal.db", "UPDATE event SET body = replace(body, 'zebra', 'horse') WHERE seq > 3")
    found = {problem.what for problem in check_published(mine).problems}
    assert "edited entry" in found and "changed table" in found


@pytest.mark.parametrize("spoilt", [b"{", b"\xff\xfe", b"[" * 100_000], ids=["no JSON", "no text", "endless brackets"])
def test_a_published_report_that_cannot_be_read_is_not_called_the_same(spoilt: bytes, mine: Path) -> None:
    bytes_of("report/report.json", lambda data: spoilt)(mine)
    page = copied(mine / "report", mine.parent / "again") / "report.html"
    manifest = refuse_unless_it_holds(mine).admitted.manifest
    found = held_against(mine, manifest.files, manifest.versions, page)
    assert found.same, "it is held against itself"
    page.with_name("report.json").write_text("{}")
    found = held_against(mine, manifest.files, manifest.versions, page)
    assert "NOT the published report: report.json: the published one is missing or cannot be read" in found.words


def test_an_entry_that_is_nested_deep_is_named_and_not_a_traceback(mine: Path) -> None:
    body = '{"a": ' + "[" * 800 + "]" * 800 + "}"
    sql("journal.db", f"UPDATE event SET body = '{body}' WHERE kind = 'CampaignFrozen'")(mine)
    assert {"edited entry", "changed table"} <= {problem.what for problem in check_published(mine).problems}


def test_what_is_missing_and_not_listed_as_withheld_is_named(mine: Path) -> None:
    video = next(name for name in manifest_of(mine)["files"] if name.endswith(".mp4") and name.startswith(AT))
    (mine / video).unlink()
    rewrite(mine, lambda m: m["files"].pop(video))
    assert [problem.what for problem in check_published(mine).problems] == ["missing video"]


def test_what_is_listed_as_withheld_and_lies_there_is_named(without: Path, whole: Path, tmp_path: Path) -> None:
    mine = shutil.copytree(without, tmp_path / "mine")
    photo = next(one["file"] for one in manifest_of(mine)["withheld"] if one["what"] == "video")
    (mine / AT / photo).parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(whole / AT / photo, mine / AT / photo)
    listed(mine, f"{AT}/{photo}")
    assert [problem.what for problem in check_published(mine).problems] == ["withheld and there"]


@pytest.mark.parametrize("frozen", ["2099-01-01", "", "2020-01-01T00:00:00.000000+00:00"])
def test_a_day_of_freezing_that_the_journal_does_not_say_is_named(frozen: str, mine: Path) -> None:
    """By it sites and feeds are ordered."""
    says("frozen", frozen)(mine)
    (problem,) = check_published(mine).problems
    assert problem.what == "another campaign" and f"its time of freezing is {frozen}" in problem.detail


def test_what_a_manifest_says_is_no_command_to_a_terminal_and_no_line_of_labctl_s(
    without: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    mine, forged_line = shutil.copytree(without, tmp_path / "mine"), "\x1b[2J\ntrial-run: holds"
    rewrite(mine, lambda m: (m["withheld"][0].update(why=forged_line), m.update(stated={forged_line: {}})))
    assert call(["verify", str(mine)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert all(line.isprintable() for line in lines)
    assert sum(line.startswith("trial-run: holds") for line in lines) == 1


def test_a_thing_withheld_that_was_never_recorded_is_named(mine: Path) -> None:
    left = {"what": "video", "episode": "e-0", "file": "video/e-0/x.mp4", "why": "", "salted": "0" * 64}
    rewrite(mine, lambda m: m["withheld"].append(left))
    assert [problem.what for problem in check_published(mine).problems] == ["withheld, nowhere recorded"]
