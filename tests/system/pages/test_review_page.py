"""The review as a page over a recorded campaign: films on the time since go, of a record that holds, and no arm."""

from __future__ import annotations

import io
import json
import sys
import urllib.error
import urllib.request
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

import av
import numpy as np
import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.recordings import Recordings, copied

from labctl.cli import call
from labctl.core.record import Record
from labctl.errors import BrokenRecord, InputError
from labctl.pages.recorded_videos import RecordedVideos
from labctl.runtime import review_writer
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign
from labctl.store.video import frame_times

SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}


def run_filmed(lab: Path) -> Path:
    """Two filmed trials of an item each, scored, and an assessor."""
    arms = [HUMAN, policy("zebra-policy", skill="swift")]
    folder = make_campaign(lab, arms, cameras=True, budget=12.0, cell=SMALL).folder
    run_campaign(folder, lambda line: None, manual=True)
    review_writer.register(folder, "bea")
    return folder


@pytest.fixture
def filmed(recordings: Recordings, tmp_path: Path) -> Path:
    """A copy that may be written to."""
    folder = recordings.of(run_filmed)
    return copied(folder.parents[1], tmp_path / "lab") / "campaigns" / folder.name


def record_of(folder: Path) -> Record:
    with Campaign.open(folder) as campaign:
        return campaign.record()


def test_films_play_on_the_time_since_go_with_every_recorded_picture(filmed: Path) -> None:
    record = record_of(filmed)
    _, episode = record.scored[0]
    videos = RecordedVideos(filmed)
    reels = videos.reels(episode.id)
    assert [reel.camera for reel in reels] == ["over_shoulder", "wrist"], "in the cell's order"
    for reel in reels:
        path = filmed / episode.videos[reel.camera]["file"]
        assert len(reel.frames_s) == episode.videos[reel.camera]["frames"]
        assert reel.frames_s[0] < 0 < reel.frames_s[-1], "it was filmed before go"
        assert np.allclose(reel.zero_s + frame_times(path) / 1e6, reel.frames_s, atol=2e-6)
        with av.open(io.BytesIO(videos.video(episode.id, reel.camera))) as container:
            assert sum(1 for _ in container.decode(video=0)) == len(reel.frames_s)
    camera, found = videos.strip(episode.id, 1, [-1.0, 0.0, 900.0], 48)
    assert camera == "wrist" and [picture.shape for _, picture in found] == [(36, 48, 3)] * 3
    assert [at for at, _ in found] == [
        max(t for t in reels[1].frames_s if t <= wanted + 1e-6) for wanted in (-1.0, 0.0, 900.0)
    ]


def test_a_film_that_was_changed_is_not_shown_and_the_page_says_why(filmed: Path) -> None:
    _, episode = record_of(filmed).scored[0]
    videos = RecordedVideos(filmed)
    assert videos.reels(episode.id), "verified once"
    path = filmed / episode.videos["wrist"]["file"]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(BrokenRecord, match="is not the one that was sealed"):
        videos.video(episode.id, "wrist")
    with pytest.raises(BrokenRecord, match="changed video"):
        RecordedVideos(filmed).reels(episode.id)


@pytest.mark.parametrize("camera", ["depth", "../wrist", "wrist.json", ""])
def test_nothing_but_the_cameras_of_an_episode_is_handed_out(filmed: Path, camera: str) -> None:
    _, episode = record_of(filmed).scored[0]
    with pytest.raises(InputError, match="no video of a camera"):
        RecordedVideos(filmed).video(episode.id, camera)
    with pytest.raises(InputError, match="no episode"):
        RecordedVideos(filmed).video("e-unknown", "wrist")


def test_review_page_is_served_until_it_is_ended_and_what_was_confirmed_stays(
    filmed: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The verb itself: a person reads the address, a browser reviews one episode, Ctrl-C."""
    told: dict[str, Any] = {}

    class Person:
        def readline(self) -> str:
            address = capsys.readouterr().out.split()[1]
            opener = urllib.request.build_opener(
                urllib.request.HTTPCookieProcessor(CookieJar()), urllib.request.ProxyHandler({})
            )
            home = opener.open(address).geturl()
            said = [home, opener.open(home).read().decode()]

            def get(path: str) -> Any:
                said.append(opener.open(home + path).read().decode("latin-1"))
                return json.loads(said[-1])

            queue = get("queue")
            episode = get(f"episode/{queue['episodes'][0]['trial']}")
            films = [opener.open(f"{home}video/{episode['episode']}/{r['camera']}").read() for r in episode["reels"]]
            body = {key: episode[key] for key in ("trial", "operations", "seen")}
            origin = home.rpartition("/")[0].rpartition("/")[0]
            headers = {"Content-Type": "application/json", "Origin": origin}
            opener.open(urllib.request.Request(f"{home}review", json.dumps(body).encode(), headers)).read()
            told.update(left=get("queue")["left"], of=len(queue["episodes"]), films=films, said=said)
            with pytest.raises(urllib.error.HTTPError, match="403"):
                urllib.request.build_opener(urllib.request.ProxyHandler({})).open(address)
            raise KeyboardInterrupt

    monkeypatch.setattr(sys, "stdin", Person())
    assert call(["review", str(filmed), "--who", "bea", "--page"]) == 0
    assert "the page is closed" in capsys.readouterr().out
    assert (told["left"], told["of"]) == (0, 2), "nothing was in dispute"
    assert all(film[4:8] == b"ftyp" for film in told["films"])
    everything = "".join(told["said"]) + "".join(film.decode("latin-1") for film in told["films"])
    assert "zebra" not in everything and "swift" not in everything and "sim_policy" not in everything
    assert sum(episode.reviewed is not None for _, episode in record_of(filmed).scored) == 1


def test_the_page_is_refused_where_the_console_refuses(filmed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["review", str(filmed), "--who", "eve", "--page"]) == 1
    assert "--register" in capsys.readouterr().err
    assert call(["review", str(filmed), "--who", "bea", "--port", "4000"]) == 2
    assert "add --page" in capsys.readouterr().err
