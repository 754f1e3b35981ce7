"""A keyboard that drives: practice reads its own terminal, a run says how a second one is named."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.runs.campaigns import cell_toml, make_campaign, policy

from labctl.checks.doctor import check_teleop
from labctl.config.cell_schema import parse_cell
from labctl.errors import InputError
from labctl.runtime.campaign_run import run_campaign
from labctl.runtime.hosting.cell_nodes import goes_on_with, lacks_terminal, with_terminal
from labctl.runtime.practice_run import practise
from labctl.store.campaign import Campaign

KEYBOARD = '[teleop]\ndevice = "keyboard"\n'
BY_HAND = {"name": "human", "kind": "human", "controller": "teleop", "options": {}}


def campaign(lab: Path, *, by_hand: bool) -> Path:
    arms = [BY_HAND if by_hand else policy("other"), policy("policy-a", skill="swift")]
    return make_campaign(lab, arms, cell={"[lease]": f"{KEYBOARD}[lease]"}).folder


def test_a_run_says_how_a_second_terminal_is_named(tmp_path: Path) -> None:
    folder = campaign(tmp_path, by_hand=True)
    with pytest.raises(InputError, match=r"labctl run trial-run --hand-terminal /dev/pts/N"):
        run_campaign(folder, lambda line: None, manual=True)


def test_a_run_in_which_nobody_drives_asks_for_no_terminal(tmp_path: Path) -> None:
    assert run_campaign(campaign(tmp_path, by_hand=False), lambda line: None, manual=True)


def test_how_to_go_on_is_said_with_the_terminal_without_which_it_would_be_refused(tmp_path: Path) -> None:
    for by_hand, said in ((True, "labctl run trial-run --hand-terminal /dev/pts/N"), (False, "labctl run trial-run")):
        with Campaign.open(campaign(tmp_path / str(by_hand), by_hand=by_hand)) as opened:
            assert goes_on_with(opened) == said


def test_a_terminal_is_not_named_for_a_cell_without_a_keyboard(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path).folder
    with pytest.raises(InputError, match="--hand-terminal is for a cell that is driven by a keyboard"):
        run_campaign(folder, lambda line: None, manual=True, hand_terminal="/dev/pts/3")


def test_the_terminal_that_is_named_is_the_keyboards() -> None:
    cell = parse_cell(cell_toml(cameras=False) + KEYBOARD, "c.toml")
    assert lacks_terminal(cell)
    named = with_terminal(cell, "/dev/pts/3").teleop
    assert named is not None and named.options == {"terminal": "/dev/pts/3"}
    assert with_terminal(cell, None) is cell
    (check,) = check_teleop(cell, "labctl doctor c.toml")
    assert check.level == "ok" and "--hand-terminal" in check.remedy


def test_practice_without_any_terminal_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_terminal(stream: int) -> str:
        raise OSError(25, "not a terminal")

    monkeypatch.setattr("os.ttyname", no_terminal)
    cell = tmp_path / "c.toml"
    cell.write_text(cell_toml(cameras=False) + KEYBOARD)
    with pytest.raises(InputError, match="this is no terminal: start it in one"):
        practise(cell, lambda view: None, lab=None)
