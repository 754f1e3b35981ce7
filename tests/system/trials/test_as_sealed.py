"""What runs is what was sealed: a start looks at the seal before anything moves, and refuses what is not as opened."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy

from labctl.cli import call
from labctl.core.events import Kind

ARMS = [HUMAN, policy("policy-a", skill="swift")]


def swap_two_arms(folder: Path) -> None:
    path = folder / "seal" / "schedule.json"
    sealed = json.loads(path.read_text())
    first, second = sealed["slots"][:2]
    first["arm"], second["arm"] = second["arm"], first["arm"]
    path.write_text(json.dumps(sealed))


def edit(name: str, old: str, new: str) -> Callable[[Path], None]:
    def change(folder: Path) -> None:
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


EDITS = {
    "sealed schedule": swap_two_arms,
    "protocol.toml": edit("seal/protocol.toml", 'skill = "swift"', 'skill = "clumsy"'),
    "cell.toml": edit("cell.toml", "min_free_gb", "# as usual\nmin_free_gb"),
    "fixture.toml": edit("fixture.toml", "layout-1", "layout-9"),
}


@pytest.mark.parametrize("what", EDITS)
@pytest.mark.parametrize("begun", [False, True], ids=["the first start", "a later start"])
def test_a_start_with_an_edited_seal_is_refused_in_one_line_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], what: str, begun: bool
) -> None:
    folder = make_campaign(tmp_path, ARMS, items=1, budget=2.0, arming=1.0).folder
    run = ["run", str(folder), "--headless", "--simulated-time"]
    if begun:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("labctl.runtime.hosting.simulated_host.LoopHost.run", lambda *_, **__: None)
            assert call(run) == 0, "a start that ends before anything happens"
    before = events_of(folder)
    EDITS[what](folder)
    capsys.readouterr()
    assert call(run) == 65
    told = capsys.readouterr().err.strip()
    assert told.startswith("error: ") and "\n" not in told and what in told and "labctl verify" in told
    assert events_of(folder) == before and Kind.GO not in [event.kind for event in before]


def test_a_seal_as_it_was_opened_runs(tmp_path: Path) -> None:
    folder = make_campaign(tmp_path, ARMS, items=1, budget=2.0, arming=1.0).folder
    assert call(["run", str(folder), "--headless", "--simulated-time"]) == 0
    assert len([event for event in events_of(folder) if event.kind == Kind.OUTCOME_RECORDED]) == 2
