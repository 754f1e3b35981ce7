"""Finding a lab and its campaigns, reading its files, making a new one."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from labctl.cli import call
from labctl.cli.lifecycle import CARDS, CELLS
from labctl.config.policy_card import parse_card
from labctl.errors import InputError, StateError
from labctl.store.lab_folder import campaign_folder, campaigns, find_lab, new_lab, read_cell, read_plan

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    new_lab(tmp_path / "lab")
    return tmp_path / "lab"


def campaign(lab: Path, name: str) -> Path:
    folder = lab / "campaigns" / name
    folder.mkdir(parents=True)
    (folder / "journal.db").touch()
    return folder


def test_the_lab_is_the_one_given_before_the_environment_before_the_nearest_parent(
    lab: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_lab(tmp_path / "second")
    new_lab(tmp_path / "third")
    monkeypatch.setenv("LABCTL_LAB", str(tmp_path / "second"))
    assert find_lab(lab, start=tmp_path / "third") == lab
    assert find_lab(start=tmp_path / "third") == tmp_path / "second"
    monkeypatch.delenv("LABCTL_LAB")
    assert find_lab(start=tmp_path / "third" / "protocols") == tmp_path / "third"


def test_no_lab_is_an_error_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    with pytest.raises(InputError, match="labctl new"):
        find_lab(start=tmp_path)
    monkeypatch.setenv("LABCTL_LAB", str(tmp_path / "nowhere"))
    with pytest.raises(InputError, match=r"LABCTL_LAB is .*labctl new"):
        find_lab(start=tmp_path)


def test_where_a_move_was_broken_off_no_lab_is_made_or_found_and_what_happened_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It "holds no lab.toml; make a lab with: labctl new", beside a lab.toml.arriving; and that made a second one."""
    (tmp_path / "lab.toml.arriving").touch()
    folder = campaign(tmp_path, "first")
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    for look in (lambda: find_lab(tmp_path), lambda: find_lab(start=folder), lambda: campaign_folder(str(folder))):
        with pytest.raises(
            StateError, match=r"broken off \(lab\.toml\.arriving\).* labctl lab move NEW-FOLDER --lab OLD"
        ):
            look()
    with pytest.raises(InputError, match=r"lab\.toml\.arriving is there already"):
        new_lab(tmp_path)


def test_a_current_folder_that_is_gone_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    with pytest.raises(InputError, match="the current folder is gone; go into a lab folder"):
        find_lab()


def test_a_campaign_is_found_by_path_by_name_or_as_the_only_one(lab: Path):
    first = campaign(lab, "first")
    assert campaign_folder(str(first)) == first
    assert campaign_folder("first", lab) == first
    assert campaign_folder(None, lab) == first


def test_an_unknown_or_ambiguous_campaign_lists_what_there_is(lab: Path):
    with pytest.raises(InputError, match="no campaign yet"):
        campaign_folder(None, lab)
    campaign(lab, "first")
    campaign(lab, "second")
    with pytest.raises(InputError, match="first, second"):
        campaign_folder(None, lab)
    with pytest.raises(InputError, match=r"no campaign 'frist'.*; did you mean 'first'\?; campaigns: first, second"):
        campaign_folder("frist", lab)


def test_a_protocol_that_was_not_opened_yet_is_named_with_the_verb_that_opens_it(
    lab: Path, monkeypatch: pytest.MonkeyPatch
):
    (lab / "protocols/third.toml").touch()
    with pytest.raises(InputError, match=rf"yet; its protocol is opened by: labctl open {lab}/protocols/third.toml "):
        campaign_folder("third", lab)
    monkeypatch.chdir(lab)
    with pytest.raises(InputError, match=r": labctl open protocols/third.toml --cell CELL.toml$"):
        campaign_folder("third", lab)


def test_the_name_of_a_joint_campaign_is_said_to_be_one(lab: Path) -> None:
    """Its protocol was said to be opened by `labctl open`, which refuses it."""
    campaign(lab, "first-a")
    (lab / "joint/first").mkdir(parents=True)
    (lab / "joint/first/journal.db").touch()
    with pytest.raises(InputError, match=r"first is a joint campaign: labctl joint status first; .* first-a$"):
        campaign_folder("first", lab)


@pytest.mark.parametrize("named", ["campaigns/open/journal.db", "campaigns"])
def test_a_campaign_that_cannot_be_looked_into_is_said_and_not_passed_over(
    lab: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is asked for by its name is found beside it. Root may look into everything, so a test's refusal."""
    campaign(lab, "open")
    mine = campaign(lab, "mine")

    def refused(real):  # type: ignore[no-untyped-def]
        def asked(path: Path, **how: bool):  # type: ignore[no-untyped-def]
            if path in (lab / named, lab / "campaigns/lost+found/journal.db"):
                raise PermissionError(13, "Permission denied", str(path))
            return real(path, **how)

        return asked

    for asked in ("iterdir", "stat"):
        monkeypatch.setattr(Path, asked, refused(getattr(Path, asked)))
    said = f"{lab / named.removesuffix('/journal.db')}: Permission denied; .* or move the folder out"
    with pytest.raises(InputError, match=said):
        campaigns(lab)
    with pytest.raises(InputError, match=said):
        campaign_folder(None, lab)
    assert campaign_folder("mine", lab) == mine
    named = "no more"
    campaign(lab, "lost+found")
    assert campaigns(lab) == [mine, mine.with_name("open")], "nobody's campaign has such a name"


def test_a_new_lab_is_valid_as_it_stands(lab: Path):
    plan = read_plan(lab / "protocols" / "first.toml")
    cell = read_cell(lab / "cells" / "sim_fr3.toml")
    assert plan.fixture_path.resolve() == lab / "fixtures" / "two_totes.toml"
    assert cell.cell.kind == "sim"
    assert (lab / "campaigns").is_dir()


def test_a_new_lab_overwrites_nothing_and_leaves_nothing_half_made(tmp_path: Path):
    kept = tmp_path / "protocols" / "first.toml"
    kept.parent.mkdir()
    kept.write_text("mine")
    with pytest.raises(InputError, match=r"first\.toml is there already"):
        new_lab(tmp_path)
    assert kept.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["protocols"]


@pytest.mark.parametrize("in_the_way", ["cells", "campaigns", "protocols", ""])
def test_a_file_where_a_new_lab_has_a_folder_is_refused_before_anything_is_written(in_the_way: str, tmp_path: Path):
    """Half a lab was left, "cells: File exists", and the next try was refused for what the first had written."""
    file = tmp_path / "lab" / in_the_way
    file.parent.mkdir(exist_ok=True)
    file.write_text("mine")
    with pytest.raises(InputError, match=r"is no folder, .*; choose another folder, nothing was written"):
        new_lab(tmp_path / "lab")
    assert [path for path in tmp_path.rglob("*") if path.is_file()] == [file]


def test_a_new_lab_that_cannot_be_written_to_its_end_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    opened, full = Path.open, OSError(errno.ENOSPC, "No space left on device")

    def opens(path: Path, *given: Any, **more: Any) -> Any:
        if path.name == "first.toml" and tmp_path in path.parents:
            raise full
        return opened(path, *given, **more)

    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "notes.txt").touch()
    monkeypatch.setattr(Path, "open", opens)
    with pytest.raises(OSError, match="No space"):
        new_lab(tmp_path / "lab")
    assert [path.name for path in (tmp_path / "lab").iterdir()] == ["notes.txt"]
    monkeypatch.undo()
    assert (tmp_path / "lab" / "lab.toml") in new_lab(tmp_path / "lab")


def test_each_cell_of_hw_configs_is_one_that_a_new_lab_has_or_can_have():
    assert {"sim_fr3", *CELLS} == {path.stem for path in (ROOT / "hw_configs").glob("*.toml")}


def test_a_lab_of_a_robot_has_its_cell_and_a_lab_that_is_there_gets_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    lab = tmp_path / "lab"
    assert call(["new", str(lab), "--robot", "fr3_droid_cell"]) == 0
    (lab / "protocols" / "first.toml").write_text("mine")
    monkeypatch.chdir(lab)
    assert call(["new", ".", "--robot", "emulated_ur5e", "--robot", "ur5e_cell"]) == 0
    assert capsys.readouterr().out.endswith("\nnext: labctl doctor cells/emulated_ur5e.toml\n")
    kinds = {path.stem: read_cell(path).cell.kind for path in (lab / "cells").iterdir()}
    assert kinds == {"sim_fr3": "sim", "fr3_droid_cell": "real", "emulated_ur5e": "emulated", "ur5e_cell": "real"}
    assert (lab / "protocols" / "first.toml").read_text() == "mine"


def test_each_packaged_card_is_one_that_a_lab_can_have():
    assert set(CARDS) == {path.stem for path in (ROOT / "protocols" / "cards").glob("*.toml")}


def test_a_lab_gets_a_policy_card_beside_its_protocols(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """Whoever has the wheel alone begins a card by this."""
    new_lab(tmp_path)
    before = set(tmp_path.rglob("*"))
    assert call(["new", str(tmp_path), "--card", "pi05_droid", "--card", "my_function"]) == 0
    said = capsys.readouterr().out
    assert 'next: make protocols/cards/pi05_droid.toml true and name it in an arm: card = "cards/pi05' in said
    assert "labctl plan" not in said, "it is a lab that is there"
    cards = tmp_path / "protocols" / "cards"
    assert set(tmp_path.rglob("*")) - before == {cards, cards / "pi05_droid.toml", cards / "my_function.toml"}
    text = (cards / "pi05_droid.toml").read_text()
    assert (cards / text.splitlines()[0].removeprefix("#:schema ")).resolve() == tmp_path / "schemas" / "card.json"
    assert (tmp_path / "schemas" / "card.json").is_file()
    assert parse_card(text, "pi05_droid.toml").policy.dialect == "openpi"
    assert call(["new", str(tmp_path), "--card", "pi05_droid"]) == 2
    assert "pi05_droid.toml is there already; give it another name first" in capsys.readouterr().err


@pytest.mark.parametrize("there", [True, False], ids=["a lab", "a folder"])
def test_a_cell_that_is_there_is_not_written_over(tmp_path: Path, capsys: pytest.CaptureFixture[str], there: bool):
    if there:
        new_lab(tmp_path)
    cell = tmp_path / "cells" / "ur5e_cell.toml"
    cell.parent.mkdir(exist_ok=True)
    cell.write_text("mine")
    before = sorted(tmp_path.rglob("*"))
    assert call(["new", str(tmp_path), "--robot", "emulated_fr3", "--robot", "ur5e_cell"]) == 2
    assert "ur5e_cell.toml is there already" in capsys.readouterr().err
    assert sorted(tmp_path.rglob("*")) == before and cell.read_text() == "mine"


def test_the_starter_protocol_knows_the_keys_of_the_demo_protocol():
    first = tomllib.loads((ROOT / "labctl" / "templates" / "first.toml").read_text())
    demo = tomllib.loads((ROOT / "protocols" / "demo.toml").read_text())
    assert {table: set(first[table]) for table in first if table != "arm"} == {
        table: set(demo[table]) for table in demo if table != "arm"
    }


def test_a_missing_file_names_its_neighbours(lab: Path):
    with pytest.raises(InputError, match=r"no such file.*first\.toml"):
        read_plan(lab / "protocols" / "frist.toml")


def test_a_missing_fixture_is_named_with_the_line_that_asks_for_it(lab: Path):
    path = lab / "protocols" / "first.toml"
    path.write_text(path.read_text().replace("two_totes.toml", "three_totes.toml"))
    with pytest.raises(InputError, match=r"first\.toml:7: fixture '\.\./fixtures/three_totes\.toml'.*two_totes\.toml"):
        read_plan(path)


def test_a_file_that_is_not_text_is_refused(lab: Path):
    path = lab / "cells" / "sim_fr3.toml"
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match="not UTF-8"):
        read_cell(path)


def test_a_folder_instead_of_a_file_is_refused(lab: Path):
    with pytest.raises(InputError, match="cannot be read"):
        read_cell(lab / "cells")


def test_a_module_beside_lab_toml_is_found_here_and_in_other_processes_after_all_others(
    lab: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setenv("LABCTL_MODULES", "")
    (lab / "policy_of_this_lab.py").write_text("WHERE = __file__")
    (lab / "json.py").write_text("raise RuntimeError('the wrong one')")
    read_plan(lab / "protocols" / "first.toml")
    read_plan(lab / "protocols" / "first.toml")
    assert os.environ["LABCTL_MODULES"] == str(lab) and sys.path.count(str(lab)) == 1
    asked = "import labctl.drivers, json, policy_of_this_lab; print(policy_of_this_lab.WHERE)"
    done = subprocess.run([sys.executable, "-P", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str(lab / "policy_of_this_lab.py")
    campaign(lab, "first")
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(lab)])
    campaign_folder("first", lab)
    assert sys.path[-1] == str(lab)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry != str(lab)])
    read_cell(lab / "cells" / "sim_fr3.toml")  # labctl doctor, teleop: a driver of the lab's own
    assert sys.path[-1] == str(lab)
