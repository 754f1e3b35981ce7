"""Who acts goes by one rule: --who, else the environment, else the lab's list; a login name is never asked for."""

from __future__ import annotations

import ast
from pathlib import Path

import click
import pytest

from labctl.cli import group
from labctl.errors import InputError
from labctl.people.acting import NOBODY, acting

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("LABCTL_WHO", raising=False)
    monkeypatch.setenv("USER", "jane.doe")
    monkeypatch.setenv("LOGNAME", "jane.doe")
    (tmp_path / "lab.toml").write_text("")
    (tmp_path / "campaigns" / "first").mkdir(parents=True)
    return tmp_path


def people(lab: Path, *ids: str) -> None:
    (lab / "lab.toml").write_text(f"people = {list(ids)}\n".replace("'", '"'))


def test_what_is_given_comes_first_then_the_environment_then_the_only_one_of_the_list(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    people(lab, "p07")
    campaign = lab / "campaigns" / "first"
    assert acting(None, campaign) == acting(None, lab) == "p07"
    monkeypatch.setenv("LABCTL_WHO", "p09")
    assert acting(None, campaign) == "p09"
    assert acting("p11", campaign) == "p11"


def test_a_lab_that_lists_nobody_writes_the_role_and_no_login(lab: Path) -> None:
    assert acting(None, lab) == NOBODY == "operator"


def test_of_several_somebody_says_which(lab: Path) -> None:
    people(lab, "p07", "p09")
    says = "who is acting? lab.toml lists p07, p09; give --who ID, or set LABCTL_WHO in this shell"
    with pytest.raises(InputError) as refused:
        acting(None, lab)
    assert str(refused.value) == says


@pytest.mark.parametrize("name", ["jane doe", "a,b", "\n"])
def test_what_is_no_id_is_refused(lab: Path, name: str) -> None:
    with pytest.raises(InputError, match="is no id of a person"):
        acting(name, lab)


def test_every_verb_that_takes_it_says_the_same_and_has_no_default_of_its_own() -> None:
    context = click.Context(group)
    listed = {name: group.get_command(context, name) for name in group.list_commands(context)}
    found = [
        (command.make_context(name, [], parent=context, resilient_parsing=True).params["who"], option.help)
        for name, command in listed.items()
        for option in (command.params if command else [])
        if isinstance(option, click.Option) and "--who" in option.opts
    ]
    assert len(found) >= 8
    assert set(found) == {(None, found[0][1])}


@pytest.mark.thorough
def test_nothing_asks_the_computer_for_a_login_name() -> None:
    asks = ("USER", "LOGNAME", "getuser", "getlogin")
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for folder in ("labctl", "drivers", "ui")
        for path in (ROOT / folder).rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if (isinstance(node, ast.Constant) and node.value in asks)
        or (isinstance(node, ast.Attribute) and node.attr in asks)
    ]
    apart = [place for place in found if place.startswith("labctl/checks/bugreport.py:")]  # to take it out of a report
    assert found == apart and len(apart) == 2
