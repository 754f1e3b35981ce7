"""What is refused where a plan is read that is not sealed yet: a campaign that was sealed with it is read on."""

from __future__ import annotations

from pathlib import Path

import pytest

from labctl.config.cell_schema import parse_fixture
from labctl.config.protocol_schema import parse_protocol
from labctl.errors import InputError
from labctl.store.lab_folder import Plan, new_lab, read_plan

ROOT = Path(__file__).resolve().parents[3]
TWO = (ROOT / "fixtures/two_totes.toml").read_text("utf-8")
RIGHT = "centre_m = [0.48, -0.24, 0.00]"


def protocol_with(old: str, new: str, *, name: str = "demo.toml", more: str = "") -> str:
    text = (ROOT / "protocols" / name).read_text("utf-8")
    assert old in text
    lines = ['fixture = "../fixtures/new.toml"' if one.startswith("fixture =") else one for one in text.splitlines()]
    return "\n".join(lines).replace(old, new, 1) + f"\n{more}"


def read(tmp_path: Path, protocol: str, fixture: str) -> Plan:
    new_lab(tmp_path / "lab")
    for folder, text in (("protocols", protocol), ("fixtures", fixture)):
        (tmp_path / "lab" / folder / "new.toml").write_text(text, "utf-8")
    return read_plan(tmp_path / "lab" / "protocols" / "new.toml")


def refusal(tmp_path: Path, protocol: str, fixture: str) -> str:
    """What is said of a new plan. Both are read by themselves, as a sealed campaign reads them."""
    assert parse_protocol(protocol, "p.toml") and parse_fixture(fixture, "f.toml")
    with pytest.raises(InputError) as told:
        read(tmp_path, protocol, fixture)
    return str(told.value)


@pytest.mark.parametrize("name", ["pi0|droid", "tie"])
def test_an_arm_that_no_table_of_preferences_can_name_is_refused(tmp_path: Path, name: str) -> None:
    """The report was refused after unblinding, when nobody could rename it."""
    given = protocol_with('name = "policy-a"', f'name = "{name}"', more="[preference]\n")
    told = refusal(tmp_path, given, TWO)
    line = given[: given.index(f'"{name}"')].count("\n") + 1
    assert f"new.toml:{line}: name is {name!r}; with [preference]" in told and told.endswith("give it another name")


def test_without_preferences_such_an_arm_is_one_like_others(tmp_path: Path) -> None:
    plan = read(tmp_path, protocol_with('name = "policy-a"', 'name = "pi0|droid"'), TWO)
    assert "pi0|droid" in [arm.name for arm in plan.protocol.arm]


def test_a_tag_that_a_table_would_split_is_refused(tmp_path: Path) -> None:
    given = protocol_with("[[condition]]", '[[condition]]\ntags = ["small; soft"]', name="demo_tasks.toml")
    fixture = (ROOT / "fixtures/task_table.toml").read_text("utf-8")
    assert "tag 'small; soft' has a ';', which stands between tags" in refusal(tmp_path, given, fixture)


@pytest.mark.parametrize(
    ("name", "old", "new", "says"),
    [
        (
            "demo.toml",
            'name = "demo-bin-to-bin"',
            f'name = "{"d" * 101}"',
            "name has 101 characters, and files are named after it",
        ),
        ("demo.toml", "arming_s = 6.0", "arming_s = 1e308", "arming is 1e+308 s, and at most 1e+06 s are planned"),
        ("demo.toml", "budget_s_per_item = 30.0", "budget_s_per_item = 3e5", "the budget of an episode is 1.2e+06 s"),
        ("demo_tasks.toml", "budget_s = 60.0", "budget_s = 2e6", "the budget of an episode is 2e+06 s"),
        (
            "demo.toml",
            "blocks_per_condition = 3",
            "blocks_per_condition = 6251",
            "4 conditions x 25004 trials are",
        ),
        ("demo_tasks.toml", "blocks_per_condition = 8", "blocks_per_condition = 1_000_000_000", "are 1.2e+10, and at"),
    ],
)
def test_what_is_longer_than_anybody_plans_is_refused_at_its_line(
    tmp_path: Path, name: str, old: str, new: str, says: str
) -> None:
    """Hours were a traceback, or 612 million; a schedule of 10^9 blocks was drawn until the memory was full."""
    given = protocol_with(old, new, name=name)
    fixture = "task_table.toml" if name == "demo_tasks.toml" else "two_totes.toml"
    told = refusal(tmp_path, given, (ROOT / "fixtures" / fixture).read_text("utf-8"))
    assert f"new.toml:{given[: given.index(new)].count(chr(10)) + 1}: " in told and says in told


def test_a_budget_beyond_any_number_is_one_line_whoever_reads_it() -> None:
    with pytest.raises(InputError, match="budget_s_per_item is 1e\\+308, and an episode's budget would be endless"):
        parse_protocol(protocol_with("budget_s_per_item = 30.0", "budget_s_per_item = 1e308"), "p.toml")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        (RIGHT, "centre_m = [0.48, 0.24, 0.00]", "tote 'right' is at x = 0.31 to 0.65 m and y = 0.09 to 0.39 m, and"),
        (RIGHT, "centre_m = [0.48, 0.05, 0.00]", "nothing tells them apart; correct centre_m or size_m of one"),
        ("item_size_m = [0.20, 0.035, 0.015]", "item_size_m = [200.0, 35.0, 15.0]", "is 200 m long, and no tote more"),
        ("grasp_width_m = 0.030", "grasp_width_m = 30.0", "is 30 m, wider than the item, 0.2 m long; give it in m"),
        ('name = "scissors"', 'name = "scissors"\ntags = ["a;b"]', "tag 'a;b' has a ';'"),
    ],
)
def test_a_fixture_that_cannot_be_is_refused_at_its_line(tmp_path: Path, old: str, new: str, says: str) -> None:
    """Nothing was proposed as moved in totes at one place; holds of any width counted beside 30 m."""
    assert old in TWO
    fixture = TWO.replace(old, new, 1)
    told = refusal(tmp_path, protocol_with("[design]", "[design]"), fixture)
    before = fixture[: fixture.rindex(new.splitlines()[-1])]
    assert f"new.toml:{before.count(chr(10)) + 1}: " in told or old == RIGHT
    assert says in told


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (RIGHT, "centre_m = [0.48, -0.06, 0.00]"),  # side by side
        (f"{RIGHT}\nsize_m = [0.34, 0.30, 0.12]", f"{RIGHT}\nsize_m = [2.0, 2.0, 0.12]"),  # on a table
        ("item_size_m = [0.20, 0.035, 0.015]", "item_size_m = [0.9, 0.035, 0.015]"),  # it sticks out
    ],
)
def test_totes_side_by_side_or_one_on_the_other_and_long_things_are_planned(tmp_path: Path, old: str, new: str) -> None:
    assert old in TWO
    assert read(tmp_path, protocol_with("[design]", "[design]"), TWO.replace(old, new, 1)).fixture.tote
