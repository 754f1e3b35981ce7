"""Claims about [[task]] and [[condition]]: what is accepted, what each mistake is told, and in which line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.policies.cards import policy_arm
from support.runs.campaigns import ROOT, arms_toml
from support.runs.task_campaign import ARMS, tasks_text

from labctl.checks.protocol_size import preview
from labctl.cli import call
from labctl.config.cell_schema import parse_fixture
from labctl.config.conditions import protocol_conditions, sets_of
from labctl.config.protocol_schema import parse_protocol
from labctl.errors import InputError

FIXTURE = parse_fixture((ROOT / "fixtures/two_totes.toml").read_text("utf-8"), "f.toml")
BASE = '[[condition]]\nname = "over-base"\n'
SCORED = "[[task.rubric]]\nscore = 1\n"

WRONG = {
    "an unknown base": ({'base = "over-base"\ninst': 'base = "over-bse"\ninst'}, "base =", "did you mean 'over-base'"),
    "a circle of bases": (
        {BASE: BASE + 'base = "over-lang"\n'},
        "base =",
        "in a circle: over-base -> over-lang -> over-base",
    ),
    "a base in another task": (
        {'name = "stages"\n': 'name = "stages"\nbase = "items"\n'},
        'base = "items"',
        "a drop is measured within one task",
    ),
    "an unknown axis": ({'"S-LANG"': '"S-LNG"'}, "axes =", "'S-LNG'; did you mean 'S-LANG'.*V-AUG, V-SC.*VSB-NOBJ"),
    "an unknown task": ({'task = "many"': 'task = "mny"'}, 'task = "mny"', "did you mean 'many'"),
    "a train object in a test pool": (
        {"[pools.test]": '[pools.train]\nobjects = ["towels"]\n[pools.test]\nobjects = ["towels"]'},
        'objects = ["towels"]',
        "'towels' is in pools.train.objects too",
    ),
    "a train condition with a test wording": (
        {'split = "test"': 'split = "train"'},
        "split =",
        "is a train one and uses 'The cloth belongs into the other tote.' of pools.test",
    ),
    "a test condition with nothing new": (
        {'"The cloth belongs into the other tote."]': '"Another."]'},
        "split =",
        "uses nothing of",
    ),
    "two conditions of one name": ({'name = "over-dim"': 'name = "over-lang"'}, "name =", "'over-lang' appears twice"),
    "two tasks of one name": ({'name = "neatly"': 'name = "over"'}, "name =", "'over' appears twice in 'task'"),
    "a stage without points": ({"points = 3.0\n": ""}, "[[task.stages]]", "needs the key 'points'"),
    "stages of another measure": (
        {'measure = "stages"': 'measure = "items"'},
        "[[task.stages]]",
        "stages are of measure",
    ),
    "no rubric": ({'measure = "stages"': 'measure = "score"'}, "[[task.stages]]", 'stages are of measure = "stages"'),
    "a rubric that ends early": ({SCORED: "[[task.rubric]]\nscore = 0.9\n"}, "[[task.rubric]]", "anchors 0, 0.5, 0.9"),
    "a stress with an axis": (
        {'stress = "v1"': 'stress = "v1"\naxes = ["V-LIGHT"]'},
        "stress =",
        "stress crossed: condition 'over-dim' changes its axes against 'over-base'",
    ),
    "a stress with another object": (
        {'object = "towels"\nbase = "over-base"\nfamily': 'object = "scissors"\nbase = "over-base"\nfamily'},
        "stress =",
        "stress crossed: .* its object",
    ),
    "a stress on a stress": (
        {
            'difficulty = "hard"': 'family = "pace"\nstress = "v2"',
            'axes = ["VSB-NOBJ"]\n': "",
            '"scissors"\nbase = "over-base"': '"towels"\nbase = "over-dim"',
        },
        "stress =",
        "stress crossed: the base 'over-dim' of 'over-noun' is under stress itself",
    ),
    "a stress on nothing": ({'base = "over-base"\nfamily': "family"}, "stress =", "a stress and no base"),
    "an object that the task has not": (
        {'"scissors"\nbase': '"batteries"\nbase'},
        "object =",
        "unknown object 'batteries'",
    ),
    "no object of two": (
        {'object = "towels"\ntags': "tags"},
        "[[condition]]",
        "needs an object; task 'over' has towels",
    ),
    "the short form beside": (
        {"arming_s = 4.0": "arming_s = 4.0\nitems_staged = 2"},
        "items_staged =",
        "of the short form",
    ),
    "stages for all": ({"arming_s = 4.0": 'arming_s = 4.0\nstages = ["up"]'}, "stages =", "of the short form"),
    "tau beyond a budget": ({"tau_s = 16.0": "tau_s = 17.0"}, "tau_s =", "beyond the episode budget of 16 s"),
    "a switch": (
        {"[pools.test]": '[[switch]]\nname = "x"\nat_s = 2.0\ninstruction = "Stop."\n[pools.test]'},
        "[[switch]]",
        "each condition has its own, and nothing says which of them it would change: take it out",
    ),
}


def parsed(changes=None):
    return parse_protocol(tasks_text(changes) + arms_toml(ARMS), "p.toml")


@pytest.mark.parametrize(("changes", "at", "says"), WRONG.values(), ids=WRONG.keys())
def test_each_mistake_is_told_in_one_line_with_the_line_where_it_stands(changes, at, says):
    with pytest.raises(InputError, match=says) as told:
        parsed(changes)
    file, line = told.value.where.split(":")
    assert file == "p.toml" and "\n" not in str(told.value)
    assert tasks_text(changes).splitlines()[int(line) - 1].startswith(at)


def test_conditions_have_their_tasks_wording_and_what_belongs_together_is_one_set():
    found = {one.id: one for one in protocol_conditions(parsed(), FIXTURE)}
    assert found["over-lang"].instruction == "The cloth belongs into the other tote."
    assert (
        found["over-base"].instruction == "Put the towel into the empty tote." and found["over-lang"].set == "over-base"
    )
    assert sets_of(tuple(found.values())) == [
        ["over-base", "over-lang", "over-noun", "over-dim"],
        ["stages"],
        ["score"],
        ["items"],
    ]


def test_plan_counts_what_is_covered_and_the_smallest_p_that_a_contrast_can_reach():
    """Three pairs of blocks swapped or not: 8 ways, two-sided 2/8; by Holm over two axes twice that. A level of stress
    has no such p.
    """
    seen = preview(parsed({"blocks_per_condition = 1": "blocks_per_condition = 3"}), FIXTURE)
    covered = {(one.task, one.under): one.conditions for one in seen.coverage}
    assert covered["over", "all"] == 4 and covered["over", "S-LANG"] == 1 and covered["over", "light v1"] == 1
    assert {(one.axis, one.pairs, one.smallest_p, one.smallest_holm_p) for one in seen.contrasts} == {
        (name, 3, 0.25, 0.5) for name in ("S-LANG", "VSB-NOBJ")
    }
    assert seen.blocks == 21 and seen.hours.running == pytest.approx(42 * (4 * 16 + 3 * 30) / 7 / 3600)


def test_the_short_form_still_needs_what_it_needed():
    text = (ROOT / "protocols/demo.toml").read_text("utf-8")
    for key in ("items_staged = 4", 'instruction = "Move the items', 'layouts = ["layout-1"]'):
        with pytest.raises(InputError, match=f"needs the key '{key.split()[0]}'; add it"):
            parse_protocol(text.replace(key, "# " + key), "p.toml")
    with pytest.raises(InputError, match=r"\[condition\] needs \[\[task\]\] tables"):
        parse_protocol(text + '\n[[condition]]\nname = "a"\ntask = "b"\n', "p.toml")


TEMPLATES = """[[template]]
name = "many {object}"
task = "over"
[[template]]
name = "many {object} in {layout}"
task = "over"
layouts = ["layout-2"]
base = "many {object}"
axes = ["VB-POSE"]
"""


def test_a_template_is_a_condition_for_each_object_and_layout_with_the_base_of_its_own() -> None:
    found = {one.id: one for one in protocol_conditions(parsed({"[pools.test]": f"{TEMPLATES}[pools.test]"}), FIXTURE)}
    made = {name: (one.object, one.layout, one.base, one.set) for name, one in found.items() if name.startswith("many")}
    assert made == {
        "many towels": ("towels", "layout-1", None, "many towels"),
        "many scissors": ("scissors", "layout-1", None, "many scissors"),
        "many towels in layout-2": ("towels", "layout-2", "many towels", "many towels"),
        "many scissors in layout-2": ("scissors", "layout-2", "many scissors", "many scissors"),
    }
    assert found["many towels in layout-2"].axes[-1] == "VB-POSE"
    assert parsed({"[pools.test]": f"{TEMPLATES}[pools.test]"}).conditions_count == len(found) == 11


@pytest.mark.parametrize(
    ("changed", "at", "says"),
    [
        (('base = "many', 'base = "mny'), "base =", "unknown base 'mny towels'; did you mean 'many towels'"),
        (('name = "many {object}"', 'name = "many"'), "name =", "'many' appears twice"),
        (('name = "many {object}"', 'name = "many {objct}"'), "name =", "'many {objct}' has a brace that is filled by"),
        (('name = "many {object}"', 'name = "many/{object}"'), "name =", "'many/towels' is no condition's name"),
        (('task = "over"', 'task = "ovr"'), "task =", "did you mean 'over'"),
        (('task = "over"', 'task = "over"\nobjects = ["batteries"]'), "objects =", "unknown object 'batteries'"),
        (('["layout-2"]', '["layout-9"]'), "layouts =", "unknown layout 'layout-9'"),
    ],
)
def test_a_mistake_in_a_template_is_told_in_one_line_with_the_line_where_it_stands(changed, at, says):
    changes = {"[pools.test]": f"{TEMPLATES.replace(*changed, 1)}[pools.test]"}
    with pytest.raises(InputError, match=says) as told:
        protocol_conditions(parsed(changes), FIXTURE)
    file, line = told.value.where.split(":")
    assert file == "p.toml" and "\n" not in str(told.value)
    assert tasks_text(changes).splitlines()[int(line) - 1].startswith(at)


@pytest.mark.parametrize(
    ("training", "flagged"),
    [
        ('objects = ["scissors"]', ["over-noun"]),
        ('instructions = ["The cloth belongs into the other tote."]', ["over-lang"]),
        ('objects = ["scissors"]\ninstructions = ["Put the towel into the empty tote."]', ["over-noun"]),
        ('objects = ["batteries"]\nlayouts = ["layout-1"]', []),
        ("", []),
    ],
)
def test_a_condition_that_a_policy_card_declares_as_training_data_is_flagged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], training: str, flagged: list[str]
) -> None:
    """Of each kind that the card lists the condition has one."""
    (tmp_path / "fixtures").mkdir()
    (tmp_path / "fixtures/two_totes.toml").write_text((ROOT / "fixtures/two_totes.toml").read_text("utf-8"), "utf-8")
    own = policy_arm(tmp_path, "zebra", "ws://127.0.0.1:1", server=f"[training]\n{training}" if training else "")
    path = tmp_path / "protocols/p.toml"
    path.write_text(tasks_text() + arms_toml([own, ARMS[1]]), "utf-8")
    assert call(["plan", str(path)]) == 0
    assert "power --protocol" not in capsys.readouterr().out, "nothing is recommended that is refused"
    assert call(["plan", str(path), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told.get("trained", []) == [{"condition": name, "arm": "zebra"} for name in flagged]
    lines = [f"condition {name} is training data of zebra, by its policy card" for name in flagged]
    assert [line for line in told["resolution"]["warnings"] if "training data" in line] == lines
