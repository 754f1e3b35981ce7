"""What `labctl plan` and `labctl power` say of conditions with bases is what a report of the clearest table has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.json_documents import judged
from support.runs.campaigns import ROOT

from labctl import cli
from labctl.analysis.blocks.axes import axis_drops
from labctl.analysis.episodes_table.cohort import Plan, cohort_of
from labctl.analysis.episodes_table.further import perturbed_rows
from labctl.analysis.episodes_table.pairs import pair_rows
from labctl.analysis.episodes_table.table import EpisodesTable, table_from_rows
from labctl.checks.protocol_size import Effort, hours, trials_in
from labctl.config.conditions import protocol_conditions
from labctl.config.protocol_schema import parse_protocol
from labctl.store.lab_folder import read_plan


def lab_with(folder: Path, changes: dict[str, str], blocks: int) -> Path:
    """The protocol of `labctl demo --tasks` without its box, so that all conditions have one base; with changes."""
    for name in ("protocols", "fixtures"):
        (folder / name).mkdir()
    (folder / "lab.toml").touch()
    text = (ROOT / "fixtures/task_table.toml").read_text("utf-8")
    (folder / "fixtures/task_table.toml").write_text(text, "utf-8")
    text = (ROOT / "protocols/demo_tasks.toml").read_text("utf-8")
    box = text.index('[[task]]\nname = "put it away"'), text.index("[[condition]]")
    text = text[: box[0]] + text[box[1] :].replace('[[condition]]\nname = "box"\ntask = "put it away"\n', "")
    for old, new in {"blocks_per_condition = 8": f"blocks_per_condition = {blocks}", **changes}.items():
        assert old in text, f"the protocol does not say {old!r}"
        text = text.replace(old, new)
    (folder / "protocols/p.toml").write_text(text, "utf-8")
    return folder / "protocols/p.toml"


def clearest(path: Path, arms: dict[str, tuple[int, int]]) -> EpisodesTable:
    """A table of a campaign of this protocol. arms: success of each with and without a base."""
    plan = read_plan(path)
    rows = [
        {
            "block": f"{one.id} {turn}",
            "arm": arm,
            "success": successes[one.base is None],
            "condition": one.id,
            "base": one.base or "",
            "axis": "+".join(one.axes),
            "set": f"{one.set} {turn}",
        }
        for turn in range(plan.protocol.design.blocks_per_condition)
        for one in protocol_conditions(plan.protocol, plan.fixture)
        for arm, successes in arms.items()
    ]
    return table_from_rows(rows)


def asked(*words: str, capsys: pytest.CaptureFixture[str]) -> dict:
    assert cli.call([*words, "--json"]) == 0
    return judged(capsys.readouterr().out)


@pytest.mark.parametrize(("blocks", "warned"), [(5, True), (7, False)])
def test_the_smallest_p_of_two_arms_is_by_sets_as_in_the_report(
    blocks: int, warned: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """25 blocks in 5 sets, in each of which one arm succeeds at everything and the other at nothing: 2 / 2^5."""
    path = lab_with(tmp_path, {}, blocks)
    found = asked("plan", str(path), capsys=capsys)
    table = clearest(path, {"policy-a": (1, 1), "policy-b": (0, 0)})
    (row,) = pair_rows(cohort_of(table), Plan(boot=99))
    resolved = found["resolution"]
    assert (found["blocks"], found["sets"], resolved["blocks"], resolved["sets"]) == (
        5 * blocks,
        blocks,
        5 * blocks,
        blocks,
    )
    assert row["p_holm"] == pytest.approx(resolved["smallest_holm_p"]) == 2.0 ** (1 - blocks)
    assert any(f"{blocks} sets cannot reach" in line for line in resolved["warnings"]) is warned
    assert cli.call(["plan", str(path)]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert f"{5 * blocks} blocks in {blocks} sets" in out and f"{5 * blocks} trials in {blocks} sets" in out


ITEMS_ONLY = {'measure = "success"': 'measure = "items"'}


def test_one_task_in_items_is_reported_by_blocks_and_so_is_its_plan(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """*Seen:* 24 blocks of a base and two that perturb it were "8 sets, smallest p 0.0078"; their report had .0005."""
    path = lab_with(tmp_path, ITEMS_ONLY, 5)
    found = asked("plan", str(path), capsys=capsys)
    assert "sets" not in found and "sets" not in found["resolution"]
    assert found["resolution"]["blocks"] == 25 and found["resolution"]["smallest_p"] == 2 / 2**13
    assert cli.call(["plan", str(path)]) == 0
    out = capsys.readouterr().out
    assert "Sets:" not in out and "a report by items tests no axis against its base" in out
    words = ["power", "--discordant", "0.5", "--difference", "0.4", "--protocol", str(path)]
    assert [row["pairs"] for row in asked(*words, capsys=capsys)["by_pairs"]] == [25]


def test_a_look_at_such_a_task_can_stop_where_its_blocks_let_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """*Seen:* "look 1 cannot stop: after 20 blocks there is no p below 0.0078", of four sets' blocks."""
    looks = "tau_s = 30.0\n[analysis.looks]\nfractions = [0.5, 0.75, 1.0]"
    found = asked("plan", str(lab_with(tmp_path, {**ITEMS_ONLY, "tau_s = 30.0": looks}, 8)), capsys=capsys)
    assert [look["blocks"] for look in found["resolution"]["looks"]] == [20, 30, 40]
    assert [look["smallest_holm_p"] for look in found["resolution"]["looks"]] == [1 / 10_000] * 3
    assert not any(line.startswith("look") for line in found["resolution"]["warnings"])


def test_power_of_such_a_protocol_counts_its_sets_and_the_hours_of_all_its_trials(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lab_with(tmp_path, {}, 5)
    words = ["power", "--discordant", "0.5", "--difference", "0.4", "--protocol", str(path), "--trial-s", "3600"]
    found = asked(*words, capsys=capsys)
    assert [row["pairs"] for row in found["by_pairs"]] == [5] and found["in_sets"] == {"blocks": 25, "sets": 5}
    assert cli.call(words) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "25 blocks of the protocol are in 5 sets" in out and "65.7 h" in out  # 2 x 25 h of trials, and breaks
    assert "in_sets" not in asked(*words, "--n", "25", capsys=capsys)


def test_evenings_are_filled_with_blocks_and_judged_by_their_sets(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = asked("plan", str(lab_with(tmp_path, {}, 5)), "--evenings", "1", capsys=capsys)["resolution"]
    assert found["sets"] == found["blocks"] // 5 and found["smallest_p"] == pytest.approx(2.0 ** (1 - found["sets"]))


def test_evenings_and_the_hours_of_a_cell_are_by_the_mean_budget_as_the_hours_of_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One condition of six has a budget of 60 s, the others 30 s: a mean of 35 s, by which all take their hours."""
    text = (ROOT / "protocols/demo_tasks.toml").read_text("utf-8").replace("../fixtures", str(ROOT / "fixtures"))
    (tmp_path / "p.toml").write_text(text, "utf-8")
    found = asked("plan", str(tmp_path / "p.toml"), "--evenings", "2", capsys=capsys)
    assert found["resolution"]["blocks"] == trials_in(2, 6.0, 35.0, Effort()) // 2
    (tmp_path / "p.toml").write_text(text + '\n[cells]\nnames = ["north", "south"]\n', "utf-8")
    found = asked("plan", str(tmp_path / "p.toml"), capsys=capsys)
    assert found["cells"]["each"]["hours"] == pytest.approx(hours(48, 6.0, 35.0, Effort()).at_robot)


def test_a_protocol_whose_blocks_are_each_by_themselves_says_nothing_of_sets(
    capsys: pytest.CaptureFixture[str],
) -> None:
    found = asked("plan", str(ROOT / "protocols/demo.toml"), capsys=capsys)
    assert "sets" not in found and "sets" not in found["resolution"]
    assert cli.call(["plan", str(ROOT / "protocols/demo.toml")]) == 0
    assert "Sets:" not in capsys.readouterr().out


CLUTTER = 'base = "as trained"\nlayout = "five things"\naxes = ["V-SC"]'
DESIGNS = {
    "as it is": ({}, 5, {"S-LANG": 5, "V-SC": 5, "VB-POSE": 5, "VSB-NOBJ": 5}),
    "two on one base are one mean": ({'["VB-POSE"]': '["V-SC"]'}, 3, {"S-LANG": 3, "V-SC": 3, "VSB-NOBJ": 3}),
    "several at once": (
        {'["V-SC"]': '["V-SC", "S-LANG"]'},
        5,
        {"S-LANG": 5, "S-LANG+V-SC": 5, "VB-POSE": 5, "VSB-NOBJ": 5},
    ),
    "on two bases": (
        {
            CLUTTER: 'instruction = "Anew."',
            'axes = ["VB-POSE"]': 'axes = ["S-LANG"]',
            'base = "as trained"\nlayout': 'base = "more things"\nlayout',
        },
        3,
        {"S-LANG": 6, "VSB-NOBJ": 3},
    ),
    "base of a base": (
        {CLUTTER: CLUTTER.replace("as trained", "other words")},
        5,
        {"S-LANG": 5, "VB-POSE": 5, "VSB-NOBJ": 5},
    ),
    "more swaps than are listed": ({}, 15, {"S-LANG": 15, "V-SC": 15, "VB-POSE": 15, "VSB-NOBJ": 15}),
}


@pytest.mark.parametrize(("changes", "blocks", "pairs"), DESIGNS.values(), ids=DESIGNS.keys())
def test_the_axes_of_a_plan_are_those_of_the_report_with_their_pairs_and_smallest_p(
    changes: dict[str, str], blocks: int, pairs: dict[str, int], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Every set has the base succeed and what perturbs it fail, so that each axis reaches its smallest p."""
    path = lab_with(tmp_path, changes, blocks)
    found = asked("plan", str(path), capsys=capsys)
    rows = perturbed_rows(cohort_of(clearest(path, {"policy-a": (0, 1)})))
    reported = {one.axis: (one.pairs, one.smallest_p, one.p_holm) for one in axis_drops(rows)}
    planned = {one["axis"]: (one["pairs"], one["smallest_p"], one["smallest_holm_p"]) for one in found["contrasts"]}
    assert {axis: one[0] for axis, one in planned.items()} == pairs
    assert reported.keys() == planned.keys()
    for axis, numbers in reported.items():
        assert numbers == pytest.approx(planned[axis], rel=0.01), axis


def test_a_condition_whose_base_is_perturbed_too_is_warned_of(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changes = {CLUTTER: CLUTTER.replace("as trained", "other words")}
    warned = asked("plan", str(lab_with(tmp_path, changes, 8)), capsys=capsys)["resolution"]["warnings"]
    (line,) = [line for line in warned if line.startswith("no drop")]
    assert "'more things': its base 'other words' has axes of its own, S-LANG" in line


def test_a_level_of_confidence_is_no_alpha_for_a_plan_and_a_sealed_protocol_that_has_one_is_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = lab_with(tmp_path, {}, 5)
    text = re.sub(r"(?m)^(alpha = .*\n)?tau_s", "alpha = 0.95\ntau_s", path.read_text("utf-8"), count=1)
    path.write_text(text, "utf-8")
    assert cli.call(["plan", str(path)]) == 2
    said = capsys.readouterr().err
    assert "alpha is the share of false alarms, and 0.95 is none; for intervals of 95 % write 0.05" in said
    assert f"{path.name}:{text[: text.index('alpha =')].count(chr(10)) + 1}: " in said
    assert parse_protocol(text, "protocol.toml").analysis.alpha == 0.95


def test_looks_are_not_planned_for_tasks_that_none_can_be_taken_at(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`labctl look` refused each of them, and the report held its p to the level of the last one."""
    path = lab_with(tmp_path, {}, 8)
    text = path.read_text("utf-8") + '\n[analysis.looks]\nfractions = [0.25, 0.5, 1.0]\npairs = [["a", "b"]]\n'
    names = [arm.name for arm in parse_protocol(path.read_text("utf-8"), "x").arm]
    text = text.replace('["a", "b"]', str(names[:2]).replace("'", '"'))
    path.write_text(text, "utf-8")
    assert cli.call(["plan", str(path)]) == 2
    said = capsys.readouterr().err
    assert "a look at several tasks, or at one not in items, is not there yet" in said and "out" in said
    assert parse_protocol(text, "protocol.toml").analysis.looks is not None, "one that is sealed is read"


def test_what_one_arm_will_be_known_to_is_of_its_sets(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Said beside an interval of 5 sets were 25 trials, whose interval is half as wide."""
    path = lab_with(tmp_path, {}, 5)
    text = path.read_text("utf-8")
    text = text[: text.index("[[arm]]")] + '[[arm]]\nname = "human"\nkind = "human"\ncontroller = "sim_person"\n'
    path.write_text(text, "utf-8")
    found = asked("plan", str(path), capsys=capsys)
    assert (found["resolution"]["blocks"], found["resolution"]["sets"]) == (25, 5)
    assert cli.call(["plan", str(path)]) == 0
    assert "25 trials in 5 sets" in " ".join(capsys.readouterr().out.split())
