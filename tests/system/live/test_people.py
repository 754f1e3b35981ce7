"""A person at a device as an arm of a live campaign: real processes, the real gamepad driver, a joystick in SDL."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from support.robots.virtual_hand import CLUTCH, Fingers
from support.runs.campaigns import ROOT, make_campaign, policy
from support.runs.live_campaign import end_of, of_kind, running, wait_for

from labctl.core.events import Kind
from labctl.core.trial import State, fold
from labctl.errors import InputError
from labctl.runtime.attach import Attachment
from labctl.store.campaign import Campaign
from labctl.store.verifying.verify import verify_campaign

PERSON = {"name": "a-person", "kind": "human", "controller": "teleop", "options": {}}
TELEOP = """
[teleop]
device = "support.robots.virtual_hand:build"
[teleop.options]
socket = "{socket}"

[storage]"""


@pytest.fixture
def hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Fingers]:
    """Fingers for a device that the controller's process finds, once it is the person's turn."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    with closing(Fingers(tmp_path / "hand.sock")) as made:
        yield made


def pace_of(console: Attachment) -> Callable[[], float | None]:
    """The fastest joint of the arm as it is published now, rad/s; None while nothing new has come."""

    def look() -> float | None:
        seen = [message for message in console.poll() if message.kind == "obs"]
        return float(np.abs(seen[-1].arrays["dq"]).max()) if seen else None

    return look


@pytest.mark.real_time
@pytest.mark.thorough
def test_a_device_pulled_out_in_motion_costs_its_episode_and_no_other(tmp_path: Path, hand: Fingers) -> None:
    """The arm stands, the journal says why the episode ended, the next trial is run."""
    folder = make_campaign(
        tmp_path,
        [PERSON, policy("policy-a", skill="swift")],
        live=True,
        budget=60.0,
        process_lost="score",
        crash="ended",
        entropy=hashlib.sha256(b"the person first").digest(),
        cell={"\n[storage]": TELEOP.format(socket=hand.path)},
    ).folder
    with running(folder, tmp_path / "run.log") as run:
        # whoever asks at the start whether the hand answers is not the one who drives with it
        wait_for("go", lambda: hand.press(CLUTCH) and of_kind(folder, Kind.GO))
        with closing(Attachment(folder, read_only=True)) as console:
            pace = pace_of(console)
            hand.push(a1=-1.0)
            wait_for("motion", lambda: (pace() or 0.0) > 0.1)
            hand.unplug()
            wait_for("the end", lambda: of_kind(folder, Kind.EPISODE_ENDED))
            wait_for("rest", lambda: (seen := pace()) is not None and seen < 0.01)
        assert end_of(run) == 0, (tmp_path / "run.log").read_text()
    first, second = of_kind(folder, Kind.EPISODE_ENDED)
    assert first.body["reason"] == "controller_lost" and second.body["reason"] in ("budget", "all_done")
    go, _ = of_kind(folder, Kind.GO)
    assert first.body["end_ns"] - go.body["go_ns"] < 60e9, "the cable, not the budget, ended it"
    with Campaign.open(folder, writer=True) as campaign:
        opened = campaign.ledger.open_all()
        state = fold(campaign.events())
    told = {(entry["episode"], entry["field"]): entry["value"] for entry in opened["openings"]}
    assert told[first.episode, "arm"] == "a-person"
    assert told[first.episode, "failure:1"] == "support.robots.virtual_hand:build is gone: it was unplugged"
    assert {trial.state for trial in state.trials.values()} == {State.SCORED}
    assert verify_campaign(folder).problems == []
    printed = (tmp_path / "run.log").read_text()
    assert "unplugged" not in printed and "a-person" not in printed, "what would name the arm is kept with the seal"


def test_a_person_without_a_device_is_refused_when_the_campaign_is_opened(tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        make_campaign(tmp_path, [PERSON, policy("policy-a", skill="swift")])
    path = tmp_path / "protocols/p.toml"
    line = path.read_text().splitlines().index("[arm.options]") + 1
    assert str(caught.value).startswith(f"{path}:{line}: the cell has no [teleop] table; add one with device = one of ")
    assert list((tmp_path / "campaigns").iterdir()) == []
