"""A report made anew is held against the published one: what is called the same has the same numbers and names."""

from __future__ import annotations

import json
from collections.abc import Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from labctl.publishing.again import Again, held_against
from labctl.publishing.versions import versions

HERE = versions()
NUMPY, CODE = {**HERE, "numpy": "1.0"}, {**HERE, "code": "0", "labctl": "0.0"}
BY = "labctl 0.2, code 5c"
DOCUMENT: dict[str, Any] = {
    "result": {
        "arms": [{"arm": "steady", "rmst": 4.5}, {"arm": "swift", "rmst": 3.0}],
        "pairs": [{"a": "steady", "b": "swift", "p": 0.01, "verdict": "better", "leads": "swift", "paired": True}],
        "warnings": ["fewer than 5 episodes, intervals mean little: all 3 cells"],
    },
    "lab": {
        "notes": ["one camera was away"], "flow": {"swift": 3}, "question": "Is the swift one faster?",
        "provenance": {"a: analysed_by": BY, "b part 2: analysed_by": BY, "a: head": "5:ab"},
    },
    "analysed_by": BY,
}  # fmt: skip


def held(tmp_path: Path, document: object, made_with: Mapping[str, str], **published: bytes | None) -> Again:
    """This document, and these pages (by the name before the dot), published; None: not there."""
    files = {"report.html": b"<p>", "report.md": b"#", "figures.csv": b"1\n"}
    there = {
        **files,
        **{name: published[name.partition(".")[0]] for name in files if name.partition(".")[0] in published},
    }
    there["report.json"] = document if isinstance(document, bytes) else json.dumps(document).encode()
    files["report.json"] = json.dumps(DOCUMENT).encode()
    for folder, those in (("p/report", there), ("made", files)):
        (tmp_path / folder).mkdir(parents=True)
        for name, data in those.items():
            if data is not None:
                (tmp_path / folder / name).write_bytes(data)
    listed = [f"report/{name}" for name, data in there.items() if data is not None]
    return held_against(tmp_path / "p", listed, made_with, tmp_path / "made/report.html")


def changed(change: Any) -> dict[str, Any]:
    document = deepcopy(DOCUMENT)
    change(document)
    return document


def swapped(document: dict[str, Any]) -> None:
    text = json.dumps(document["result"]).replace("swift", "?").replace("steady", "swift").replace("?", "steady")
    document["result"] = json.loads(text)


@pytest.mark.parametrize("name", ["report", "figures"])
def test_by_the_same_versions_a_page_with_other_bytes_is_another_report(name: str, tmp_path: Path) -> None:
    again = held(tmp_path, DOCUMENT, HERE, **{name: b"p = 0.0001, ten times faster"})
    assert again.numbers and all(line.endswith(": other bytes") for line in again.numbers)
    assert again.words.startswith(f"NOT the published report: {name}.") and again.words.endswith(
        "versions are the same"
    )


def test_by_the_same_versions_a_file_that_one_alone_has_is_named(tmp_path: Path) -> None:
    again = held(tmp_path, DOCUMENT, HERE, figures=None)
    assert again.numbers == ("figures.csv: not in the published one",)


def test_by_the_same_versions_the_same_numbers_written_otherwise_are_named(tmp_path: Path) -> None:
    again = held(tmp_path, changed(lambda d: d["result"]["arms"][0].update(rmst=4.5 * (1 + 1e-13))), HERE)
    assert again.numbers == ("report.json: other bytes, the same numbers to 1e-13 of each",)


FORGED: dict[str, Any] = {
    "arms swapped": swapped,
    "another leader": lambda d: d["result"]["pairs"][0].update(leads="steady"),
    "another verdict": lambda d: d["result"]["pairs"][0].update(verdict="different, crossing"),
    "a number that is said to be unknown": lambda d: d["result"]["pairs"][0].update(p=None),
    "a number that is a truth": lambda d: d["lab"]["flow"].update(swift=True),
    "a truth that is a number": lambda d: d["result"]["pairs"][0].update(paired=1),
    "a number beyond every float": lambda d: d["result"]["arms"][0].update(rmst=10**400),
    "another question": lambda d: d["lab"].update(question="Is the swift one slower?"),
    "another number in a sentence": lambda d: d["lab"].update(notes=["2 cameras were away"]),
    "an arm by another name": lambda d: d["lab"].update(flow={"quick": 3}),
    "no result": lambda d: d.pop("result"),
    "another head of a cell": lambda d: d["lab"]["provenance"].update({"a: head": "6:cd"}),
    "a number in the place of what made it": lambda d: d["lab"]["provenance"].update({"a: analysed_by": 0.5}),
    "what made it as the name of an arm": lambda d: d["result"]["pairs"][0].update(leads="x: analysed_by"),
}


@pytest.mark.parametrize("forgery", FORGED)
@pytest.mark.parametrize("made_with", [NUMPY, CODE], ids=["another numpy", "another labctl"])
def test_by_other_versions_another_number_name_or_verdict_is_another_report(
    forgery: str, made_with: Mapping[str, str], tmp_path: Path
) -> None:
    again = held(tmp_path, changed(FORGED[forgery]), made_with)
    assert again.numbers and again.words.startswith("NOT the published report")


def test_a_key_that_stands_twice_is_no_report_to_be_called_the_same(tmp_path: Path) -> None:
    twice = json.dumps(DOCUMENT).replace('"rmst": 3.0', '"rmst": 1.0, "rmst": 3.0').encode()
    assert held(tmp_path, twice, NUMPY).numbers


def test_by_other_versions_words_of_a_sentence_are_no_fault_and_are_shown(tmp_path: Path) -> None:
    again = held(tmp_path, changed(lambda d: d["lab"].update(notes=["one camera \x9bJ failed"])), NUMPY, report=b"<b>")
    assert again.numbers == () and len(again.texts) == 1
    assert "camera \\x9bJ failed" in again.texts[0] and again.texts[0].isprintable()
    assert ", 1 text in other words, other bytes in 3 files; not compared: report.html, report.md; " in again.words


def test_what_another_labctl_did_not_say_is_shown_and_by_the_same_labctl_a_fault(tmp_path: Path) -> None:
    less = changed(lambda d: d["result"].pop("warnings"))
    assert held(tmp_path / "a", less, CODE).texts[0].startswith("result.warnings: published null, here ")
    assert held(tmp_path / "b", less, NUMPY).numbers


@pytest.mark.parametrize("where", [(), ("lab", "provenance", "a: "), ("lab", "provenance", "b part 2: ")])
def test_which_labctl_made_it_is_no_difference_of_reports_of_any_cell(where: tuple[str, ...], tmp_path: Path) -> None:
    def by_another(document: dict[str, Any]) -> None:
        for key in where[:-1]:
            document = document[key]
        document["".join([*where[-1:], "analysed_by"])] = "labctl 0.0, code 0"

    again = held(tmp_path, changed(by_another), CODE)
    assert (again.numbers, again.texts) == ((), ()) and again.words.startswith(
        "the same numbers, other bytes in 1 file"
    )


TABLE = "episode,arm,moved,duration_s,why\ne-1,steady,3,4.5,the belt stood\ne-2,swift,2,3.25,\n"


def beside(tmp_path: Path, table: str | None, made_with: Mapping[str, str], made: str | None = TABLE) -> Again:
    """The same report, beside which this table is published and that one is made anew; None: not there."""
    there = {name: tmp_path / name for name in ("p", "beside", "made", "p/report")}
    for folder in there.values():
        folder.mkdir(parents=True, exist_ok=True)
    for folder in ("p/report", "made"):
        (there[folder] / "report.json").write_text(json.dumps(DOCUMENT))
    for folder, text in (("p", table), ("beside", made)):
        if text is not None:
            (there[folder] / "tables").mkdir()
            (there[folder] / "tables/t.csv").write_text(text)
    files = [
        "report/report.json",
        "campaigns/x/journal.db",
        "tables/journal.jsonl",
        *(["tables/t.csv"] if table else []),
    ]
    return held_against(there["p"], files, made_with, there["made"] / "report.html", there["beside"])


def test_a_table_of_the_same_bytes_is_the_published_one(tmp_path: Path) -> None:
    assert beside(tmp_path, TABLE, HERE).same


@pytest.mark.parametrize(
    ("then", "now", "says"),
    [
        ("e-1,steady,3", "e-1,steady,2", "tables/t.csv[0].moved: published 2.0, here 3.0"),
        ("swift", "slow", 'tables/t.csv[1].arm: published "slow", here "swift"'),
        ("e-2,", "e-2,more,", "tables/t.csv: the published one is missing or cannot be read"),
        ("moved,duration_s", "moved,moved", "tables/t.csv: the published one is missing or cannot be read"),
    ],
)
@pytest.mark.parametrize("made_with", [HERE, NUMPY, CODE], ids=["the same", "another numpy", "another labctl"])
def test_a_table_with_another_number_or_name_is_another(
    then: str, now: str, says: str, made_with: Mapping[str, str], tmp_path: Path
) -> None:
    again = beside(tmp_path, TABLE.replace(then, now, 1), made_with)
    assert again.numbers[0] == says and again.files == ("tables/t.csv",)


def test_by_other_versions_a_number_written_otherwise_is_the_same_and_by_the_same_a_fault(tmp_path: Path) -> None:
    otherwise = TABLE.replace("4.5", "4.50000000001")
    there = beside(tmp_path / "a", otherwise, NUMPY)
    assert (there.numbers, there.texts, there.unread) == ((), (), ()) and 0 < there.furthest < 1e-9
    assert beside(tmp_path / "b", otherwise, HERE).numbers[0].startswith("tables/t.csv: other bytes, the same numbers")


def test_by_other_versions_a_table_that_the_record_does_not_give_is_a_fault_and_one_not_written_then_none(
    tmp_path: Path,
) -> None:
    assert beside(tmp_path / "a", TABLE, CODE, made=None).numbers == ("tables/t.csv: in the published one alone",)
    then = beside(tmp_path / "b", None, CODE)
    assert (then.numbers, then.texts) == ((), ("tables/t.csv: not in the published one",))
    assert beside(tmp_path / "c", None, HERE).numbers == ("tables/t.csv: not in the published one",)


def test_a_column_of_which_another_labctl_said_nothing_yet_is_shown_once_and_by_the_same_labctl_a_fault(
    tmp_path: Path,
) -> None:
    """Who judged stood in no table of a campaign: each row would be another."""
    silent = TABLE.replace("the belt stood", "")
    there = beside(tmp_path / "a", silent, CODE)
    assert (there.numbers, there.texts) == ((), ('tables/t.csv: why: published nothing, here "the belt stood"',))
    assert beside(tmp_path / "b", silent, NUMPY).numbers
    assert beside(tmp_path / "c", TABLE, CODE, made=silent).numbers, "nor may it say what the record does not"
    both = beside(tmp_path / "d", silent.replace("4.5", "4.6"), CODE, made=silent)
    assert both.numbers == ("tables/t.csv[0].duration_s: published 4.6, here 4.5",) and both.texts == ()
