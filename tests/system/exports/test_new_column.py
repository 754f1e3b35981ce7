"""A robot declares a column, and a stream, that could tell policies apart, and a column of which nobody says whether it
could: no blind surface has any of them, with no line of labctl changed (support.robots.telling_robot).
"""

from __future__ import annotations

from pathlib import Path

import pytest
from support.robots.telling_robot import PLAIN, STREAM, TELLING, UNSAID, TellingRobot
from support.runs.blind_surfaces import review_pages
from support.runs.campaigns import HUMAN, make_campaign, policy, unblinded_copy
from support.runs.recordings import Recordings
from support.screens.all_text import hits
from support.screens.console_bench import WIDE, Desk, at_console, evening
from support.screens.rerun_files import decoded

from labctl.bus import Message
from labctl.cli import call
from labctl.clock import SECOND, ManualClock
from labctl.core.published_state import PublishedState
from labctl.drivers.common.robot_tables import FR3
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign
from labctl.viewing.episode import look_at

# Formats give a stream's name another spelling (a file's, an entity's), so the word in it is looked for as well.
NAMES = [TELLING, UNSAID, STREAM, "grip_force", "suction", "thoughts"]
SHOWN = ["motor_temperature"]
SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}
DATASET = ("--action", "measured", "--max-error-ms", "1000")  # before unblinding there are no others


def run_telling(lab: Path) -> Path:
    """A campaign of two episodes with such a robot; its folder."""
    cell = {**SMALL, 'driver = "sim_fr3"': 'driver = "support.robots.telling_robot:build"'}
    arms = [policy("first", skill="swift"), HUMAN]
    folder = make_campaign(lab, arms, cell=cell, cameras=True, items=1, budget=4.0, arming=1.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


@pytest.fixture(scope="module")
def blinded(recordings: Recordings) -> Path:
    return recordings.of(run_telling)


@pytest.fixture(scope="module")
def unblinded(recordings: Recordings, blinded: Path) -> Path:
    return recordings.of(unblinded_copy, blinded=str(blinded))


# By format: what else it is asked for, whether it has columns beside those of its own, and which names are in it when
# arms may be known.
FORMS = {
    "parquet": ((), True, {"grip_force", "suction", "thoughts"}),
    "mcap": ((), True, {"grip_force", "suction", "thoughts"}),
    "rosbag2": ((), True, {"grip_force", "suction", "thoughts"}),
    "npz": ((), True, {TELLING, UNSAID}),
    "rrd": ((), False, set[str]()),
    "lerobot-v3": (DATASET, False, set[str]()),
}


@pytest.mark.parametrize("form", FORMS)
def test_no_export_has_it_before_unblinding_and_every_one_after(
    blinded: Path, unblinded: Path, tmp_path: Path, form: str
) -> None:
    more, any_columns, told = FORMS[form]
    for folder, out in ((blinded, tmp_path / "blind"), (unblinded, tmp_path / "open")):
        assert call(["export", str(folder), "--to", form, "--out", str(out), *more]) == 0
    assert hits(tmp_path / "blind", NAMES) == []
    assert {word for _, word in hits(tmp_path / "blind", SHOWN)} == ({"motor_temperature"} if any_columns else set())
    assert {word for _, word in hits(tmp_path / "open", NAMES)} >= told


def test_no_masked_view_has_it(blinded: Path, unblinded: Path) -> None:
    """`labctl show` and the rrd export draw what `look_at` gathers, and nothing else."""
    for folder in (blinded, unblinded):
        with Campaign.open(folder) as campaign:
            episodes = [episode for trial in campaign.state.trials.values() for episode in trial.episodes]
        for episode in episodes:
            view = look_at(folder, episode, masked=True)
            seen, columns = view.streams, view.streams["arm/state"].columns
            assert STREAM not in seen and "arm/action" not in seen and "policy" not in seen
            assert PLAIN in columns and "q.fr3_joint1" in columns
            assert TELLING not in columns and UNSAID not in columns
            assert seen["arm/state"].values.shape == (len(seen["arm/state"].t_ns), len(columns))
            assert not [name for name in columns if name.startswith(("dq.", "tau."))]
            assert not [word for word in NAMES if word in repr((view.timelines, view.events, view.facts, view.title))]
    whole = look_at(unblinded, episodes[0]).streams
    assert {TELLING, UNSAID} < {*whole["arm/state"].columns} and STREAM in whole, "a control: they are there to be seen"


def test_no_page_has_it(blinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The page of episodes with its films, the review, the hours, and what `episodes`, `status` and `verify` say."""
    name, lab = blinded.name, ["--lab", str(blinded.parents[1])]
    assert call(["episodes", name, "--page", str(tmp_path / "pages" / "episodes.html"), *lab]) == 0
    assert call(["status", name, "--hours", "--page", str(tmp_path / "pages" / "hours.html"), *lab]) == 0
    for words in (["episodes", name, "--json"], ["status", name, "--json"], ["verify", name, "--json"]):
        assert call([*words, *lab]) == 0
    said = capsys.readouterr().out + repr(review_pages(blinded))
    assert [word for word in NAMES if word in said] == []
    assert hits(tmp_path / "pages", NAMES) == [] and hits(tmp_path / "pages", ["<title>"])


def told_by(robot: TellingRobot) -> Message:
    """What its process publishes of it."""
    arrays = robot.observe()
    assert {TELLING, UNSAID} < {*arrays}, "a control: it is on the wire"
    return Message("@obs", "obs", {"t_ns": SECOND, "mode": "idle", "reason": "", "clipped": ""}, arrays, sender="arm")


@pytest.fixture
def robot(blinded: Path) -> TellingRobot:
    with Campaign.open(blinded) as campaign:
        return TellingRobot(FR3, campaign.cell, campaign.fixture)


def test_no_live_view_has_it(robot: TellingRobot, tmp_path: Path) -> None:
    rerun = pytest.importorskip("rerun")
    from labctl.ui.rerun.live import LiveCell, LiveView

    recording = rerun.RecordingStream("labctl", recording_id="live", send_properties=False)
    recording.save(tmp_path / "live.rrd")
    view = LiveView(LiveCell("first", "fr3", {}, []), ManualClock(0).anchor(), recording=recording)
    view.draw([told_by(robot)], SECOND)
    view.close()
    said = repr(decoded(tmp_path / "live.rrd"))
    assert "joints/q" in said and [word for word in NAMES if word in said] == []


def test_no_console_has_it_nor_the_state_that_it_is_drawn_from(robot: TellingRobot, tmp_path: Path) -> None:
    """Through a trial of such a robot, whose recording is sealed: every screen and every state."""
    seen: list[str] = []

    async def play(desk: Desk) -> None:
        desk.hear(told_by(robot))
        await desk.press("enter", "enter")
        await desk.press("enter")
        await desk.home()
        await desk.press("enter")
        episode = await desk.ready()
        await desk.press("enter")
        await desk.wait(4.0)
        await desk.go(episode)
        desk.hear(told_by(robot))
        await desk.press("space")
        entry = {"n": 1, "chunks": 1, "root": "00" * 32}
        streams = {"arm/state": entry, STREAM: entry}
        lost = {"stream": STREAM, "seq": 0, "from_ns": None, "to_ns": None, "lost": None, "why": "chunk never arrived"}
        closed = {"episode": episode, "streams": streams, "private": [STREAM], "gaps": [lost]}
        desk.hear(Message("run", "closed", closed))
        await desk.sealed(episode)
        seen.extend(text for text, _ in (await desk.everywhere()).values())

    with evening(tmp_path) as bench:
        at_console(bench, play, size=WIDE)
        states: list[PublishedState] = [message.body for message in bench.sent if message.kind == "state"]
    assert len(seen) > 5 and any(state["trial_state"] == "scoring" for state in states)
    assert [word for word in NAMES if word in "\n".join([*seen, repr(states)])] == []
