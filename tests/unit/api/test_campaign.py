"""A campaign is read as exports see it: verified, masked until it is unblinded, and never written to."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl import api
from labctl.bus import Message
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.store.campaign import Campaign
from labctl.store.sealing import Findings

ARMS = ("policy-a", "human")


def digests(folder: Path) -> dict[str, str]:
    """Of every file, but for what SQLite keeps beside a database while it is read."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.endswith(("-shm", "-wal"))]
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def test_a_sealed_campaign_shows_no_arm_and_nothing_that_tells_one(sealed: Path) -> None:
    campaign = api.campaign(sealed)
    assert campaign.blind
    said = [repr(campaign), campaign._repr_html_(), *map(repr, campaign.episodes), campaign.to_frame().to_csv()]
    said += [str(dict(row)) for row in campaign.rows]
    assert [arm for arm in ARMS if any(arm in text for text in said)] == []
    assert [episode.arm for episode in campaign.episodes] == [None, None]
    assert all("policy" not in episode.streams for episode in campaign.episodes)
    for refused in (campaign.operations, campaign.episodes_table):
        with pytest.raises(StateError, match="campaign old is open and its arms are sealed"):
            refused()


def test_an_unblinded_one_gives_both_tables(unblinded: Path) -> None:
    campaign = api.campaign(unblinded)
    assert campaign.operations().arms == ("human", "policy-a")
    assert campaign.operations().to_frame().to_csv(index=False, lineterminator="\n", float_format="%g")
    table = campaign.episodes_table()
    assert (len(table), table.arms) == (2, ("human", "policy-a"))
    assert campaign.operations().analyze(reference="human", boot=99, perm=99).arm("policy-a").hrt is not None


def test_traces_and_pictures_are_on_the_clock_of_the_episode(sealed: Path) -> None:
    episode = api.campaign(sealed).episodes[0]
    trace = episode.trace("arm/state")
    assert trace.values.shape == (len(trace), len(trace.columns)) == (2015, 15)
    assert np.all(np.diff(trace.t_ns) > 0)
    assert list(trace.to_frame().columns) == ["t_s", *trace.columns]
    pictures = list(episode.frames("wrist"))
    assert pictures[0].image.dtype == np.uint8
    assert pictures[0].image.shape[2] == 3
    times = [picture.t_s for picture in pictures]
    assert times == sorted(times)
    assert times[0] < 0 < episode.seconds < times[-1] + 1


@pytest.mark.parametrize(
    ("ask", "says"),
    [
        (lambda c: c.episode("e-0"), "old has no scored episode 'e-0'; it has: e-5c32db9dea, e-9e53f243f1"),
        (lambda c: c.episodes[0].trace("policy"), "shows no stream 'policy'; there are: arm/state"),
        (lambda c: next(c.episodes[0].frames("left")), "has no camera 'left'; there are: over_shoulder, wrist"),
    ],
)
def test_what_is_not_there_is_said_in_a_line(sealed: Path, ask, says: str) -> None:
    with pytest.raises(InputError, match=says):
        ask(api.campaign(sealed))


def test_an_episode_that_was_stopped_before_go_lasted_no_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a journal from before such an episode was void."""
    monkeypatch.setattr("labctl.runtime.episode_sequencer.voided_by_rule", lambda ended, opened, *, went: False)
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")], items=2, blocks=2).folder
    with Campaign.open(folder, writer=True) as written:
        bench = Bench(written)
        bench.begin_session()
        bench.stage()
        episode = bench.start()
        assert bench.command("stop")["ok"]
        assert bench.command("acknowledge", code="operator_stop", cause="mistaken_key", why="a sleeve")["ok"]
        bench.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
        bench.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))
        assert bench.command("score", items_staged=2, moved=0, lost=0, remaining=2)["ok"]
    campaign = api.campaign(folder)
    assert [(one.id, one.seconds, one.outcome) for one in campaign.episodes] == [(episode, 0.0, "failure")]
    assert [row["end_s"] for row in campaign.rows] == [0.0]
    assert "0.0" in campaign._repr_html_()


def test_reading_changes_no_file(sealed: Path) -> None:
    before = digests(sealed)
    campaign = api.campaign(sealed)
    for episode in campaign.episodes:
        episode.trace("arm/state")
        list(episode.frames("wrist"))
    assert digests(sealed) == before


def test_a_changed_video_is_refused_when_it_is_asked_for(sealed: Path) -> None:
    campaign = api.campaign(sealed)
    film = sealed / "video" / campaign.episodes[0].id / "wrist.mp4"
    film.write_bytes(film.read_bytes()[:-1] + b"x")
    with pytest.raises(BrokenRecord, match="wrist"):
        next(campaign.episodes[0].frames("wrist"))


def test_a_folder_that_is_no_campaign_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("LABCTL_LAB", raising=False)
    with pytest.raises(InputError, match=r"no lab\.toml"):
        api.campaign("nothing")
