"""What is worth an alert: holds that stand, stops and faults at once, ends of blocks and nights; never an arm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy

from labctl.alerts import courier
from labctl.alerts.watch import MOST_HOLDS, Alert, Brief, HoldSeen, Watch, brief_of
from labctl.core.published_state import PublishedState
from labctl.runtime.campaign_run import run_campaign


def brief(*holds: str, block: int = 0, done: int = 0, session: str | None = "s-1") -> Brief:
    standing: list[HoldSeen] = [
        {"code": code, "text": f"why {code}", "personal": code.startswith("unack")} for code in holds
    ]
    return {
        "holds": standing,
        "campaign": "first",
        "cell": "fr3",
        "session": session,
        "block": block,
        "blocks": 3,
        "progress": [done, 12],
    }


def told(alerts: list[Alert]) -> list[tuple[str, str]]:
    return [(alert.kind, alert.text) for alert in alerts]


@pytest.fixture
def watch() -> Watch:
    found = Watch(30.0)
    assert found.hear(brief(), 0.0) == []
    return found


def test_a_hold_is_told_once_when_it_stood_long_enough(watch: Watch):
    assert watch.hear(brief("disk_low"), 1.0) == [] and watch.next_due_s == 31.0
    assert watch.ripe(30.9) == []
    assert told(watch.ripe(31.0)) == [("hold", "why disk_low")]
    assert watch.hear(brief("disk_low"), 500.0) == [] and watch.ripe(1000.0) == []
    watch.hear(brief(), 1001.0)
    watch.hear(brief("disk_low"), 1002.0)
    assert told(watch.ripe(1032.0)) == [("hold", "why disk_low")], "it came again"


def test_a_hold_that_passes_is_no_news(watch: Watch):
    watch.hear(brief("camera_stale:wrist"), 1.0)
    watch.hear(brief(), 20.0)
    assert watch.ripe(100.0) == [] and watch.next_due_s is None


@pytest.mark.parametrize(
    ("code", "kind"), [("unacknowledged:operator_stop", "stop"), ("unacknowledged:robot_fault", "fault")]
)
def test_what_a_named_person_has_to_clear_is_told_at_once(watch: Watch, code: str, kind: str):
    assert told(watch.hear(brief(code), 1.0)) == [(kind, f"why {code}")]


@pytest.mark.parametrize("letter", ["a", "ß", "漢", "🤖", "\udce9"])
def test_what_is_told_of_a_state_fits_into_a_line_of_a_pipe_in_whatever_letters(
    letter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A longer line is never sent, and with it no hold of that state."""
    holds = [{"code": f"c{n}", "text": letter * 1000, "needs_person": False} for n in range(20)]
    state: Any = {**brief(), "holds": holds}
    alerts = courier.Alerts(tmp_path)
    written: list[bytes] = []
    monkeypatch.setattr(alerts, "_process", object())
    monkeypatch.setattr(alerts, "_write", written.append)
    alerts.hear(state)
    assert len(written[0]) < courier.LINE
    assert len(json.loads(written[0])["holds"]) == MOST_HOLDS


def test_what_belongs_to_every_trial_is_never_told(watch: Watch):
    watch.hear(brief("photographing", "no_session"), 1.0)
    assert watch.next_due_s is None


def test_the_end_of_a_block_and_of_a_night_are_told_with_how_far_it_is(watch: Watch):
    assert told(watch.hear(brief(block=1, done=4), 5.0)) == [("block", "block 1 of 3 is done: 4 of 12 trials finished")]
    assert told(watch.hear(brief(block=1, done=4, session=None), 6.0)) == [
        ("night", "the session ended: 4 of 12 trials finished")
    ]
    assert watch.over(end_seen=True) == [], "told already"


def test_a_run_that_ends_says_so_and_one_that_vanished_is_a_fault(watch: Watch):
    assert told(watch.over(end_seen=True)) == [("night", "the run ended: 0 of 12 trials finished")]
    assert told(watch.over(end_seen=False)) == [("fault", "the run process is gone; labctl run concludes what it left")]
    assert Watch(30.0).over(end_seen=False) == [], "nothing was ever heard"


def alerts_of(lab: Path, skills: tuple[str, str]) -> tuple[list[Alert], str]:
    """The alerts of a campaign in simulated time, and everything that was watched, as text."""
    lab.mkdir()
    arms = [HUMAN, policy("zebra-one", skill=skills[0]), policy("zebra-two", skill=skills[1])]
    folder = make_campaign(lab, arms, items=1, budget=10.0, blocks=2, entropy=b"a" * 32).folder
    watch, found, seen = Watch(0.0), [], []

    def see(state: PublishedState, live: bool) -> None:
        seen.append(brief_of(state))
        found.extend(watch.hear(seen[-1], 0.0))

    run_campaign(folder, lambda line: None, manual=True, watch=see)
    return [*found, *watch.over(end_seen=True)], str(seen)


def test_alerts_name_no_arm_and_are_the_same_when_arms_are_exchanged(tmp_path: Path):
    alerts, seen = alerts_of(tmp_path / "one", ("swift", "clumsy"))
    assert {"block", "night"} <= {alert.kind for alert in alerts}
    assert "zebra" not in seen and "zebra" not in str(alerts) and "sim_policy" not in seen
    other, _ = alerts_of(tmp_path / "two", ("clumsy", "swift"))
    ends = [[a for a in found if a.kind in ("block", "night")] for found in (alerts, other)]
    assert ends[0] == ends[1]
