"""[[condition.inputs]]: what may be said, and what each mistake is told, at its line, before anything is drawn."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import arms_toml
from support.runs.task_campaign import ARMS, open_tasks, tasks_text

from labctl.config.conditions import protocol_conditions
from labctl.config.protocol_schema import parse_protocol
from labctl.errors import InputError
from tests.unit.config.test_tasks import FIXTURE

STRESS = 'family = "light"\nstress = "v1"\n'


def with_inputs(tables: str, **changes: str) -> dict[str, str]:
    return {STRESS: STRESS + tables, **changes}


def table(**keys: object) -> str:
    lines = [f"{key} = {value!r}".replace("'", '"') for key, value in keys.items()]
    return "\n".join(["[[condition.inputs]]", *lines, ""])


GOOD = table(edit="blur", sigma_px=3.0, cameras=["wrist"]) + table(edit="latency", delay_s=0.2)

WRONG = {
    "an unknown edit": (table(edit="blurr", sigma_px=1.0), "edit =", "blurr.*recolour.*latency"),
    "an edit without its number": (table(edit="blur"), "edit =", "'blur' has no sigma_px; say how much"),
    "another's number": (
        table(edit="blur", sigma_px=1.0, share=0.1), "share =", "share is not of 'blur'; that one has sigma_px",
    ),
    "a share of all": (table(edit="drop", share=1.0), "share =", "share of 'drop' is 1; allowed: more than 0 and less"),
    "no blur": (table(edit="blur", sigma_px=0.0), "sigma_px =", "is 0; allowed: more than 0 and less than 100"),
    "no light": (table(edit="brightness", add=0.0), "add =", "more than -1 and less than 1, and not 0"),
    "a long latency": (table(edit="latency", delay_s=30), "delay_s =", "is 30; allowed: more than 0 and less than 2"),
    "not a number": (
        table(edit="blur") + "sigma_px = nan\n", "sigma_px =", "is nan; it must be a finite number",
    ),
    "a latency of one camera": (
        table(edit="latency", delay_s=0.1, cameras=["wrist"]), "cameras =", "is of all that a policy sees",
    ),
    "the same twice": (
        table(edit="blur", sigma_px=1.0) + table(edit="blur", sigma_px=2.0, cameras=["wrist"]), "edit =", "twice",
    ),
}  # fmt: skip


def told(text: str) -> str:
    with pytest.raises(InputError) as caught:
        parse_protocol(text + arms_toml(ARMS), "p.toml")
    assert "\n" not in str(caught.value)
    return str(caught.value)


@pytest.mark.parametrize(("tables", "at", "says"), WRONG.values(), ids=WRONG)
def test_each_mistake_is_told_in_one_line_with_the_line_where_it_stands(tables: str, at: str, says: str) -> None:
    import re

    text = tasks_text(with_inputs(tables))
    message = told(text)
    assert re.search(says, message), message
    number = int(message.split("p.toml:")[1].split(":")[0])
    lines = text.splitlines()
    assert at in lines[number - 1], lines[number - 1]


def test_a_stress_of_inputs_is_crossed_with_nothing() -> None:
    both = tasks_text({**with_inputs(GOOD), 'name = "over-dim"\n': 'name = "over-dim"\nlayout = "layout-2"\n'})
    assert "changes its layout against 'over-base' as well" in told(both)
    base = 'name = "over-base"\ntask = "over"\nobject = "towels"\n'
    of_base = tasks_text({base: base + "[[condition.inputs]]\nedit = 'drop'\nshare = 0.1\n"}).replace(
        'share = 0.1\ntags = ["bin"]\n', "share = 0.1\n"
    )
    assert "'over-base' of 'over-dim' has inputs of its own" in told(of_base)


def test_a_condition_has_its_edits_as_the_journal_is_given_them_and_a_template_hands_them_on() -> None:
    found = parse_protocol(tasks_text(with_inputs(GOOD)) + arms_toml(ARMS), "p.toml")
    edits = {one.id: one.inputs for one in protocol_conditions(found, FIXTURE)}
    assert edits["over-base"] is None
    assert edits["over-dim"] == (
        {"edit": "blur", "cameras": ["wrist"], "amount": 3.0},
        {"edit": "latency", "cameras": [], "amount": 0.2},
    )
    template = (
        '[[template]]\nname = "late {object}"\ntask = "over"\nbase = "over-base"\naxes = ["V-AUG"]\n'
        '[[template.inputs]]\nedit = "latency"\ndelay_s = 0.1\n'
    )
    found = parse_protocol(tasks_text() + template + arms_toml(ARMS), "p.toml")
    made = [one.inputs for one in protocol_conditions(found, FIXTURE) if one.id.startswith("late")]
    assert made == [({"edit": "latency", "cameras": [], "amount": 0.1},)] * 2


@pytest.mark.parametrize(
    ("tables", "cameras", "says"),
    [
        (table(edit="blur", sigma_px=1.0, cameras=["wrst"]), True, "unknown camera 'wrst'; did you mean 'wrist'"),
        (table(edit="drop", share=0.1), False, "'drop' is of pictures, and cell 'test-cell' has no camera"),
    ],
)
def test_a_campaign_is_not_opened_with_edits_of_pictures_that_its_cell_does_not_have(
    tables: str, cameras: bool, says: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=says) as caught:
        open_tasks(tmp_path, protocol=with_inputs(tables), cameras=cameras)
    assert "p.toml:" in str(caught.value)
    assert not list((tmp_path / "campaigns").iterdir())


def test_a_latency_needs_no_camera(tmp_path: Path) -> None:
    assert open_tasks(tmp_path, protocol=with_inputs(table(edit="latency", delay_s=0.2))).folder.is_dir()
