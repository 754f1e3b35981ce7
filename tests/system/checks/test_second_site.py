"""A second site from an empty folder to its verdict, by the command line alone: kit, reference, objects, result."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from labctl.cli import call
from labctl.people.qualifications import Kind, qualifications

pytestmark = pytest.mark.thorough

BLOCKS = 4  # of each of two objects
FEW = 1
MEASURED = "id,length_m,width_m,height_m,mass_kg\nS1,0.251,0.0455,0.0151,0.0315\nT1,0.30,0.30,0.01,0.05\n"
TOWEL = """
[[object]]
id = "T1"
name = "towels"
length_m = 0.300
width_m = 0.300
height_m = 0.010
mass_kg = 0.050
picture = "T1.jpg"
"""


class Said(NamedTuple):
    """What a command printed on both streams, and its exit code."""

    code: int
    out: str
    err: str


def typed(*words: object) -> Said:
    with redirect_stdout(io.StringIO()) as out, redirect_stderr(io.StringIO()) as err:
        code = call([str(word) for word in words])
    return Said(code, out.getvalue(), err.getvalue())


def done(*words: object) -> str:
    said = typed(*words)
    assert said.code == 0, said
    return said.out


def edited(path: Path, *changes: tuple[str, str]) -> None:
    """As a person edits a file that labctl wrote."""
    text = path.read_text("utf-8")
    for before, after in changes:
        text, found = re.subn(before, after, text, flags=re.S)
        assert found, f"{path.name} does not say {before!r}"
    path.write_text(text, "utf-8")


@dataclass(frozen=True)
class Site:
    """A lab made by `labctl new`, with a protocol of the person alone and a cell without cameras."""

    lab: Path

    @classmethod
    def made(cls, lab: Path) -> Site:
        done("new", lab)
        cameras = (r"\[\[camera\]\].*(?=\[video\])", ""), (r"durable = true ", "durable = false ")
        edited(lab / "cells/sim_fr3.toml", *cameras)
        return cls(lab)

    def reference(self, name: str, blocks: int, cell: str = "sim_fr3") -> Path:
        """Have the simulated person measured, and the table of it written."""
        path = self.lab / f"protocols/{name}.toml"
        path.write_bytes((self.lab / "protocols/first.toml").read_bytes())
        edited(
            path,
            (r'name = "first"', f'name = "{name}"'),
            (r"blocks_per_condition = 6", f"blocks_per_condition = {blocks}"),
            (r"items_staged = 4", "items_staged = 1"),
            (r"tau_s = 120.0", "tau_s = 30.0"),
            (r'\nreference = "human"[^\n]*', ""),
            (r'\[\[arm\]\]\nname = "policy-a".*', ""),
        )
        at, table = ("--lab", self.lab), self.lab / f"{name}.csv"
        done("open", path, "--cell", self.lab / f"cells/{cell}.toml", "--who", "ann", *at)
        done("run", name, "--headless", "--simulated-time", "--who", "ann", *at)
        for verb in (("close", name), ("freeze", name, "--unreviewed"), ("unblind", name)):
            done(*verb, "--who", "ann", *at)
        done("export", name, "--to", "table", "--out", table, *at)
        return table

    def held(self, kit: Path, first: Path, own: Path, *more: object, cell: str = "sim_fr3") -> Said:
        """Against the first site's kit."""
        given = ("--cell", self.lab / f"cells/{cell}.toml", "--objects", self.lab / "measured/objects.csv")
        return typed(
            "qualify", "site", kit, *given, "--first", first, "--own", own, "--who", "ann", "--lab", self.lab, *more
        )


@dataclass(frozen=True)
class Kit:
    """What the first site sends: the kit, and the table of its own reference."""

    file: Path
    table: Path
    site: Site


@pytest.fixture(scope="module")
def drawn() -> Iterator[None]:
    """The same schedules in every run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "urandom", lambda n: (hashlib.sha256(b"second site").digest() * (1 + n // 32))[:n])
        yield


@pytest.fixture(scope="module")
def sent(drawn: None, tmp_path_factory: pytest.TempPathFactory) -> Kit:
    """From a second site's mail: a kit of two objects whose band is a ratio of 1.5 within 30 s."""
    folder = tmp_path_factory.mktemp("sites")
    north, file = Site.made(folder / "north"), folder / "kit.toml"
    table = north.reference("reference", BLOCKS)
    done("qualify", "new", file)
    edited(file, (r'name = "wooden spoon" ', 'name = "wooden spoons"'), (r"tau_s = 240.0", "tau_s = 30.0"))
    edited(file, (r"\n\[tolerance\]", f"{TOWEL}\n[tolerance]"))
    south = Site.made(folder / "south")
    (south.lab / "measured").mkdir()
    (south.lab / "measured/objects.csv").write_text(MEASURED, "utf-8")
    for name in ("S1.jpg", "T1.jpg"):
        (south.lab / "measured" / name).write_bytes(b"a picture")
    return Kit(file, table, south)


def of_json(said: Said) -> dict[str, Any]:
    found = json.loads(said.out)
    assert found["schema"] == "labctl.qualify/1"
    return found


def of_person(found: dict[str, Any]) -> dict[str, Any]:
    return next(check for check in found["checks"] if check["name"].startswith("human reference"))


def test_a_site_whose_rig_is_like_the_firsts_passes_in_words_as_json_and_in_the_journal(sent: Kit) -> None:
    own = sent.site.reference("own", BLOCKS)
    said = sent.site.held(sent.file, sent.table, own)
    assert said.code == 0, said
    assert said.out.splitlines()[-1] == "the site passes" and "FAIL" not in said.out
    assert "ok    object T1 (towels): size and mass as the kit has them, with a picture" in said.out
    found = of_json(sent.site.held(sent.file, sent.table, own, "--json"))
    assert found["passed"] and {check["level"] for check in found["checks"]} == {"ok"}
    assert "over towels, wooden spoons" in of_person(found)["text"]
    last = qualifications(sent.site.lab)[-1]
    assert last.kind == Kind.SITE and last.body["failed"] == [] and last.who == "ann"
    assert {name.partition(":")[0] for name in last.body["files"]} == {"cell", "objects", "first", "own"}
    for role, table in (("first", sent.table), ("own", own)):
        digest = hashlib.sha256(table.read_bytes()).hexdigest()
        assert last.body["files"][f"{role}: {table.name}"] == digest, "what it was judged by, though named alike"
    assert last.body["kit_sha256"] == hashlib.sha256(sent.file.read_bytes()).hexdigest()
    assert "sim_fr3.toml by kit two-totes-1 passes" in done("qualify", "list", "--lab", sent.site.lab)


def test_a_site_whose_robot_is_slower_and_whose_object_is_another_does_not_pass_and_is_told_why(sent: Kit) -> None:
    slow, measured = sent.site.lab / "cells/slow.toml", sent.site.lab / "measured/objects.csv"
    slow.write_bytes((sent.site.lab / "cells/sim_fr3.toml").read_bytes())
    edited(
        slow, (r'name = "sim-fr3"', 'name = "slow"'), (r"velocity_rad_s = \[[^]]*\]", f"velocity_rad_s = {[0.12] * 7}")
    )
    own = sent.site.reference("slow", BLOCKS, cell="slow")
    measured.write_text(MEASURED.replace("0.0315", "0.040"), "utf-8")
    try:
        said = sent.site.held(sent.file, sent.table, own, cell="slow")
        found = of_json(sent.site.held(sent.file, sent.table, own, "--json", cell="slow"))
    finally:
        measured.write_text(MEASURED, "utf-8")
    assert said.code == 1 and said.out.splitlines()[-1] == "the site does not pass: see FAIL above"
    assert "mass_kg 0.04, not 0.031 +- 5%" in said.out
    assert not found["passed"] and of_person(found)["level"] == "fail"
    ratio = re.search(r"over the first's ([\d.]+) \[", of_person(found)["text"])
    assert ratio is not None and float(ratio[1]) > 1.5, "a person on a slow robot takes longer"
    failed = qualifications(sent.site.lab)[-1].body["failed"]
    assert failed == ["object S1 (wooden spoon)".replace("spoon", "spoons"), of_person(found)["name"]]
    assert "slow.toml by kit two-totes-1 does not pass: object S1" in done("qualify", "list", "--lab", sent.site.lab)


def test_a_site_with_too_few_blocks_is_not_shown_to_be_within_the_band_however_near_it_lies(sent: Kit) -> None:
    own = sent.site.reference("few", FEW)
    found = of_json(said := sent.site.held(sent.file, sent.table, own, "--json"))
    assert said.code == 1 and not found["passed"]
    assert [check["name"] for check in found["checks"] if check["level"] == "fail"] == [of_person(found)["name"]]
    assert "blocks" in of_person(found)["remedy"], "what to do about it"


def test_a_reference_that_never_ran_and_a_table_of_something_else_are_refused_in_a_line_and_nothing_is_kept(
    sent: Kit, tmp_path: Path
) -> None:
    before = len(qualifications(sent.site.lab))
    (tmp_path / "none.csv").write_text("episode,arm\n", "utf-8")
    for own in (tmp_path / "none.csv", tmp_path / "missing.csv", sent.file):
        said = sent.site.held(sent.file, sent.table, own)
        assert said.code == 2 and own.name in said.err and "Traceback" not in said.err, said
    assert len(qualifications(sent.site.lab)) == before
