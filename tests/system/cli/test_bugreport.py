"""A report of a bug has what its reader needs, and nothing that tells arms, people or where anything is."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import judged
from support.policies.cards import card_toml
from support.runs.campaigns import HUMAN, make_campaign, policy, unblind

from labctl.cli import call
from labctl.runtime.campaign_run import run_campaign

ARMS = [
    {**HUMAN, "name": "okapi"},
    policy("zebra", skill="swift"),
    policy("quagga", skill="steady"),
]
CARD = "http://192.0.2.77:8000/zebra-v3"
LOG = (
    "2026-11-25T13:05:35.123Z INFO    run: p07 opens an evening; Quagga is waited for at {card}\n"
    "2026-11-25T13:05:36.123Z ERROR   arm: 10.1.2.3 does not answer; mail ann@lab.example; p09 looked\n"
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    written = {'question = "a test"': 'question = "is Zebra better"\nauthors = ["Ann Example"]'}
    made = make_campaign(tmp_path, ARMS, items=1, budget=3.0, arming=1.0, protocol=written)
    (tmp_path / "lab.toml").write_text('people = ["p07", "p09"]\n')
    run_campaign(made.folder, lambda line: None, manual=True)
    (made.folder / "logs").mkdir(exist_ok=True)
    (made.folder / "logs" / "run.log").write_text(LOG.format(card=CARD))
    (made.folder / "seal" / "controller.log").write_text("zebra: no answer\n")
    return made.folder


def texts(archive: Path) -> dict[str, str]:
    with zipfile.ZipFile(archive) as opened:
        return {name: opened.read(name).decode() for name in opened.namelist()}


@pytest.mark.parametrize("unblinded", [False, True])
def test_no_byte_of_it_tells_an_arm_a_person_or_an_address(
    folder: Path, tmp_path: Path, unblinded: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    if unblinded:
        unblind(folder)
    out = tmp_path / "bug.zip"
    assert call(["bugreport", str(folder), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    held = texts(out)
    everything = "\n".join([*held, *held.values(), said, out.read_bytes().decode("latin-1")]).lower()
    for word in ("okapi", "zebra", "quagga", "sim_person", "swift", "p07", "p09", "tester", "192.0.2.77", "10.1.2.3",
                 "ann@lab", "ann example", CARD):  # fmt: skip
        assert word.lower() not in everything, word
    assert set(held) == {
        "versions.json", "doctor.json", "protocol.json", "cell.json", "journal.json", "logs/run.log"
    }  # fmt: skip
    assert "left out: the seal" in said and "replaced by <arm>: " in said and "replaced by <person>: " in said
    assert out.stat().st_mode & 0o077 == 0


def test_the_module_of_a_controller_of_somebody_elses_tells_its_arm(tmp_path: Path) -> None:
    """A log that lies outside the seal may say that a module is not there."""
    own = {**policy("plain"), "controller": "support.policies.keeping_policy:build"}
    cards = tmp_path / "protocols" / "cards"
    cards.mkdir(parents=True)
    (cards / "c.toml").write_text(card_toml("callable"))
    options = {"card": "cards/c.toml", "function": "support.policies.dying_policy:act"}
    called = {"name": "other", "kind": "policy", "controller": "policy_callable", "options": options}
    folder = make_campaign(tmp_path, [HUMAN, own, called]).folder
    (folder / "logs").mkdir()
    (folder / "logs" / "run.log").write_text(
        "no module support.policies.keeping_policy\nno module 'support.policies.dying_policy'\n"
    )
    out = tmp_path / "bug.zip"
    assert call(["bugreport", str(folder), "--out", str(out)]) == 0
    assert texts(out)["logs/run.log"] == "no module <arm>\nno module '<arm>'\n"


def test_it_says_what_happened_when_with_which_software(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "bug.zip"
    assert call(["bugreport", str(folder), "--out", str(out)]) == 0
    held = texts(out)
    journal = json.loads(held["journal.json"])
    assert [journal[0][:2], journal[-1][1]] == [[1, "CampaignOpened"], "RunStopped"]
    assert all(len(entry) == 3 and len(entry[2]) == 16 for entry in journal)
    versions: Any = json.loads(held["versions.json"])
    assert versions["now"]["labctl"] and versions["runs"][0]["python"]
    assert json.loads(held["cell.json"])["robot"]["driver"] == "sim_fr3"
    assert "arm" not in json.loads(held["protocol.json"])
    assert "ERROR   arm: <address> does not answer; mail <address>; <person> looked" in held["logs/run.log"].replace(
        "<arm>:", "arm:"
    )


def test_it_is_a_document_and_writes_over_nothing(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(["bugreport", str(folder), "--json"]) == 0
    made = judged(capsys.readouterr().out)
    assert made["archive"] == f"bugreport-{folder.name}.zip" and len(made["left_out"]) >= 5
    assert call(["bugreport", str(folder)]) == 2
    assert "is there already" in capsys.readouterr().err
    assert call(["bugreport", str(folder), "--out", "x.tar"]) == 2
    assert "ends in .zip" in capsys.readouterr().err
