"""`labctl doctor CELL --protocol P` before a campaign: which policies answer, how fast, what would make them void."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.policies.cards import CAMERA, card_toml
from support.policies.policy_servers import FakeServer, closed_port
from support.runs.campaigns import ROOT, arms_toml, cell_toml

from labctl.checks.computer import Check
from labctl.checks.policy_check import check_protocol, judged
from labctl.cli import call
from labctl.clock import SECOND, MonotonicClock
from labctl.config.policy_card import parse_card
from labctl.nodes.asking import nobody_there

PROTOCOL = """
[protocol]
name = "p"
question = "a test"
fixture = "two_totes.toml"
[trial]
items_staged = 1
budget_s_per_item = 10.0
arming_s = 30.0
instruction = "Move."
[design]
objects = ["towels"]
layouts = ["layout-1"]
blocks_per_condition = 1
[analysis]
tau_s = 10.0
"""
CLOCK = MonotonicClock()
POLICY = """
import os

def act(seen):
    assert seen["observation/joint_position"].shape == (7,)
    return [[0.0] * 8] * 4

def die(seen):
    os._exit(9)
"""


def lab(folder: Path, arms: dict[str, tuple[str, dict[str, str], str]]) -> tuple[Path, Path]:
    """A protocol and a cell; arms: name -> (dialect, options, card)."""
    (folder / "cards").mkdir()
    (folder / "two_totes.toml").write_bytes((ROOT / "fixtures/two_totes.toml").read_bytes())
    (folder / "c.toml").write_text(cell_toml(cameras=True))
    made = [{"name": "simulated", "kind": "policy", "controller": "sim_policy", "options": {"skill": "swift"}}]
    for name, (dialect, options, card) in arms.items():
        (folder / f"cards/{name}.toml").write_text(card)
        given = {"card": f"cards/{name}.toml", **options}
        made.append({"name": name, "kind": "policy", "controller": f"policy_{dialect}", "options": given})
    (folder / "p.toml").write_text(PROTOCOL + arms_toml(made))
    return folder / "p.toml", folder / "c.toml"


def test_each_policy_is_asked_and_told_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "doctors_lab.py").write_text(POLICY)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    monkeypatch.syspath_prepend(tmp_path)
    eyes = CAMERA.format(key="observation/wrist", camera="wrist")
    with FakeServer() as well, FakeServer(fault="wrong_shape") as wrong:
        arms = {
            "well": ("openpi", {"endpoint": well.uri}, card_toml(inputs=eyes, deadline=30.0, give_up=60.0)),
            "wrong": ("openpi", {"endpoint": wrong.uri}, card_toml()),
            "absent": ("openpi", {"endpoint": f"ws://127.0.0.1:{closed_port()}"}, card_toml(ready=0.5)),
            "ours": ("callable", {"function": "doctors_lab:act"}, card_toml("callable")),
            "crash": ("callable", {"function": "doctors_lab:die"}, card_toml("callable")),
        }
        checks = {check.name: check for check in check_protocol(*lab(tmp_path, arms))}
    assert {name: check.level for name, check in checks.items()} == {
        "policy well": "ok",
        "policy wrong": "fail",
        "policy absent": "fail",
        "policy ours": "ok",
        "policy crash": "fail",
    }
    assert re.search(r"then an answer in \d+\.\d+ s", checks["policy well"].text)
    assert "(8, 32)" in checks["policy wrong"].text
    assert "the connection was refused" in checks["policy absent"].text
    assert checks["policy crash"].text == "its process ended (exit code 9)"
    assert well.heard[0]["observation/wrist"].shape == (48, 64, 3), "grey pictures, sized as the card says"


CARD = parse_card(card_toml(deadline=0.5), "card.toml")


@pytest.mark.parametrize(
    ("said", "level", "says"),
    [
        ({"load_s": 1.0, "warm_s": 2.0, "answer_s": 0.1}, "ok", "in 3.0 s (first answers 2.0 s), then an answer in 0"),
        ({"load_s": 5.0, "warm_s": 2.0, "answer_s": 0.1}, "fail", "arming_s is 6, so each of its trials would be void"),
        ({"load_s": 1.0, "warm_s": 1.0, "answer_s": 0.6}, "warn", "its deadline_s is 0.5"),
        ({"problem": "no policy server"}, "fail", "no policy server"),
    ],
)  # fmt: skip
def test_times_are_held_against_the_protocols_arming_and_the_cards_deadline(said: dict, level: str, says: str) -> None:
    check = judged("a", said, CARD, 6.0)
    assert isinstance(check, Check) and check.level == level and says in check.text
    assert bool(check.remedy) == (level != "ok")


def test_the_verb_fails_with_what_the_cell_could_not_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    eyes = CAMERA.format(key="observation/ceiling", camera="ceiling")
    protocol, cell = lab(tmp_path, {"a": ("openpi", {"endpoint": "ws://127.0.0.1:1"}, card_toml(inputs=eyes))})
    assert call(["doctor", str(cell), "--protocol", str(protocol)]) == 1
    assert "FAIL  policies: " in (said := capsys.readouterr().out) and "reads camera 'ceiling'" in said
    assert call(["doctor", "--protocol", str(protocol)]) == 2
    assert "needs a cell file" in capsys.readouterr().err


def test_a_connection_that_is_refused_is_said_at_once(tmp_path: Path) -> None:
    """The card's ready_s (180 in the shipped one) is for a server that starts; one that somebody keeps up is up."""
    uri = f"ws://127.0.0.1:{closed_port()}"
    began = CLOCK.now_ns()
    (check,) = check_protocol(*lab(tmp_path, {"absent": ("openpi", {"endpoint": uri}, card_toml(ready=180.0))}))
    assert check.level == "fail" and f"nothing listens at {uri}: the connection was refused" in check.text
    assert CLOCK.now_ns() - began < 90 * SECOND, "it did not wait for ready_s"
    assert nobody_there("ws://127.0.0.1") is None and nobody_there("") is None
