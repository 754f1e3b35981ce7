"""Every promise names a test that is there or says why there is none; `make claims` shows which.

May not: pass where a claim has lost its test: each way to lose one is put into a copy, and must be named.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import claims
import pytest
from claims import DECISIONS, README, ROOT, SECTION, Survey, read_tests

FILE, TEST = "tests/unit/test_thing.py", "test_it_holds"
DECISION = f"{DECISIONS}/0001-a-thing.md"


@pytest.fixture(scope="module")
def survey() -> Survey:
    return Survey(ROOT)


def test_every_claim_has_its_test(survey: Survey):
    assert survey.problems == []
    assert len(survey.claims) > 100 and {claim.source for claim in survey.claims} > {README}


# -- what is lost is named, in a copy of this checkout


@pytest.fixture
def copy(survey: Survey, tmp_path: Path) -> Path:
    """The pages, and the test files that they name."""
    shutil.copytree(ROOT / DECISIONS, tmp_path / DECISIONS)
    shutil.copy(ROOT / README, tmp_path / README)
    for file in {test.partition("::")[0] for claim in survey.claims for test in claim.tests}:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / file, tmp_path / file)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_in_this_checkout_a_test_that_is_renamed_is_missed_by_each_claim_that_names_it(copy: Path, survey: Survey):
    claim = next(claim for claim in survey.claims if claim.source != README and claim.tests)
    file, _, name = claim.tests[0].partition("::")
    change(copy / file, f"def {name}(", f"def {name}_too(")
    found = Survey(copy).problems
    assert f"{claim.source}: {claim.text}: there is no {name} in {file}" in found
    assert len(found) == sum(claim.tests[0] in other.tests for other in survey.claims)


def test_in_this_checkout_a_claim_that_is_added_without_a_test_is_named(copy: Path, survey: Survey):
    last = [claim for claim in survey.claims if claim.source == README][-1]
    change(copy / README, f"| {last.text} |", f"| The moon is round |  |\n| {last.text} |")
    source = sorted((copy / DECISIONS).glob("[0-9]*.md"))[-1]
    source.write_text(source.read_text(encoding="utf-8") + "* And the earth too\n", encoding="utf-8")
    assert Survey(copy).problems == [
        "README.md: The moon is round: no test holds it",
        f"{DECISIONS}/{source.name}: And the earth too: no test holds it",
    ]


def test_in_this_checkout_every_page_that_loses_its_section_is_named(copy: Path):
    pages = sorted((copy / DECISIONS).glob("[0-9]*.md"))
    for path in pages:
        change(path, SECTION, "## Held by nobody")
    assert Survey(copy).problems == [f'{DECISIONS}/{path.name}: there is no section "{SECTION}"' for path in pages]


# -- each other way to lose one, in a checkout of one claim each


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A checkout in which everything holds: one promise, one decision with one claim, one test."""
    for folder in (DECISIONS, Path(FILE).parent):
        (tmp_path / folder).mkdir(parents=True)
    table = f"{claims.TABLE}\n\n| promise | tried by |\n|---|---|\n| It holds | `{FILE}` |\n\n## More\n| a | b |\n"
    (tmp_path / README).write_text(table, encoding="utf-8")
    (tmp_path / DECISION).write_text(f"# A thing\n\n{SECTION}\n* It holds: `{FILE}::{TEST}`\n", encoding="utf-8")
    (tmp_path / FILE).write_text(f"import pytest\n\ndef {TEST}():\n    assert True\n", encoding="utf-8")
    assert Survey(tmp_path).problems == [] and len(Survey(tmp_path).claims) == 2
    return tmp_path


def held(rest: str) -> Callable[[Path], None]:
    """What stands behind the decision's claim, replaced."""
    return lambda root: change(root / DECISION, f": `{FILE}::{TEST}`", rest)


def marked(*decorators: str) -> Callable[[Path], None]:
    return lambda root: change(root / FILE, "def ", "".join(f"@{one}\n" for one in decorators) + "def ")


LOST: dict[str, tuple[Callable[[Path], None], str]] = {
    "no table": (lambda root: change(root / README, claims.TABLE, "## Other"), "there is no table below"),
    "a row of one cell": (lambda root: change(root / README, " | `", " `"), "this row has 1 cells, not 2"),
    "a file that is gone": (lambda root: (root / FILE).unlink(), f"there is no test file {FILE}"),
    "a file without tests": (lambda root: change(root / FILE, "def test", "def best"), f"there is no test in {FILE}"),
    "no test file": (held(": `tests/claims.py`"), "there is no test file tests/claims.py"),
    "no path": (held(f": `{FILE}::{TEST}`, `test_thing.py`"), "there is no test file test_thing.py"),
    "another bullet": (lambda root: change(root / DECISION, "* It", "- It"), f'line of "{SECTION}" is no claim'),
    "an empty section": (lambda root: change(root / DECISION, "* It holds", "## It holds"), "holds no claim"),
    "no reason": (held(": not tested:"), "It holds: not tested, and no reason is given"),
    "by hand, not said": (marked("pytest.mark.interop"), 'only tests that are run by hand hold it; say "by hand:"'),
    "only root": (marked("pytest.mark.privileged"), 'only tests that are run by hand hold it; say "by hand:"'),
    "by hand, not true": (held(f": by hand: `{FILE}::{TEST}`"), 'it says "by hand:", and `make test` runs a test'),
    "skipped": (marked('pytest.mark.skip(reason="later")'), f"{FILE}::{TEST} is skipped, or expected to fail"),
}


@pytest.mark.parametrize("how", LOST)
def test_a_claim_that_is_lost_is_one_line_that_names_its_page(small: Path, how: str):
    lose, said = LOST[how]
    lose(small)
    found = Survey(small).problems
    assert any(said in line for line in found), found
    assert all(line.startswith((f"{README}: ", f"{DECISION}: ")) and "\n" not in line for line in found)


@pytest.mark.parametrize(
    ("rest", "tests", "run_by"),
    [
        (":\n  `tests/unit/test_thing.py::test_it_holds`", 1, ["make test"]),
        (": not tested: it is a taste, `make test` has none", 0, []),
    ],
)
def test_what_may_be_written_is_read(small: Path, rest: str, tests: int, run_by: list[str]):
    held(rest)(small)
    survey = Survey(small)
    claim = survey.claims[-1]
    assert survey.problems == [] and (claim.text, len(claim.tests)) == ("It holds", tests)
    assert survey.commands(claim) == run_by and bool(claim.why) == (not tests)


def test_a_claim_that_is_tried_by_hand_and_says_so_is_none_that_is_lost(small: Path):
    held(f": by hand: `{FILE}::{TEST}`")(small)
    (small / README).write_text((small / README).read_text().replace(f"`{FILE}`", f"by hand: `{FILE}`"))
    marked("pytest.mark.hardware")(small)
    survey = Survey(small)
    assert survey.problems == [] and survey.commands(survey.claims[-1]) == ["pytest -m hardware"]


# -- what runs a test

THOROUGH = "pytest.mark.thorough"
CASES = f'"n", [pytest.param(1, marks={THOROUGH}), pytest.param(2, marks=[{THOROUGH}, pytest.mark.real_time])]'


@pytest.mark.parametrize(
    ("head", "decorator", "run_by"),
    [
        ("", "", "make test"),
        ("", "@pytest.mark.real_time", "make test"),
        ("", f"@{THOROUGH}", "make test-all"),
        (f"pytestmark = {THOROUGH}", "", "make test-all"),
        (f"pytestmark = [pytest.mark.real_time, {THOROUGH}]", "", "make test-all"),
        (f"LONG = {THOROUGH}", "@LONG", "make test-all"),
        (f"pytestmark = {THOROUGH}", "@pytest.mark.interop", "pytest -m interop"),
        ("", "@pytest.mark.privileged", "make test-root"),
        ("pytestmark = [pytest.mark.benchmark, pytest.mark.limit(9)]", "", "pytest -m benchmark"),
        ("", f'@pytest.mark.parametrize("n", [1, pytest.param(2, marks={THOROUGH})])', "make test"),
        ("", f"@pytest.mark.parametrize({CASES})", "make test-all"),
        (f"LONG = pytest.param(2, marks={THOROUGH})", '@pytest.mark.parametrize("n", [1, LONG])', "make test"),
        (f"CASES = [pytest.param(2, marks={THOROUGH})]", '@pytest.mark.parametrize("n", CASES)', "make test-all"),
    ],
)
def test_the_command_of_a_test_is_read_from_its_markers(head: str, decorator: str, run_by: str):
    found = read_tests(f"import pytest\n{head}\n{decorator}\ndef test_one(n):\n    pass\n\ndef helper():\n    pass\n")
    assert {name: claims.command(markers) for name, markers in found.items()} == {"test_one": run_by}


def test_a_state_machine_is_a_test_by_the_name_of_its_case():
    found = read_tests("class Machine:\n    pass\n\nTestMachine = Machine.TestCase\n")
    assert list(found) == ["TestMachine"]


def test_it_prints_the_table_and_then_what_is_wrong(
    small: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setattr(claims, "ROOT", small)
    assert claims.main() == 0
    assert f"| It holds | 0001 | `{FILE}::{TEST}` | `make test` |" in capsys.readouterr().out
    (small / FILE).unlink()
    assert claims.main() == 1
    assert capsys.readouterr().err.count("\n") == 2


def test_a_class_that_takes_the_shipped_suite_has_its_tests_with_the_markers_of_the_class():
    source = (
        "import pytest\n"
        "from labctl.testing.robot import FollowingConformance, RobotConformance\n"
        "pytestmark = pytest.mark.real_time\n"
        "class TestOurs(RobotConformance): pass\n"
        "@pytest.mark.thorough\n"
        "class TestFollowing(Rigged, FollowingConformance): pass\n"
        "class Helper(FollowingConformance): pass\n"
    )
    found = read_tests(source)
    assert found["test_events_are_told_once"] == {"real_time"}
    assert found["test_a_pose_written_is_the_pose_read"] == {"real_time", "thorough"}
    assert "test_a_stop_on_the_way_home_is_a_stop" not in found
