"""The page of episodes: each video at one speed from its go, masked while blinded, compared by anchors alone."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy, unblinded_copy
from support.runs.recordings import Recordings, copied

import labctl.pages.episodes
from labctl.cli import call
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign

SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}
OPEN = ("zebra-policy", "nothing moved", "success", "Moved", "Outcome", "Seconds", "Arm")


def run_two(lab: Path) -> Path:
    """Two filmed trials of an item each, scored."""
    folder = make_campaign(lab, [HUMAN, policy("zebra-policy", skill="swift")], cameras=True, budget=12.0, cell=SMALL)
    run_campaign(folder.folder, lambda line: None, manual=True)
    return folder.folder


@pytest.fixture
def blinded(recordings: Recordings) -> Path:
    return recordings.of(run_two)


@pytest.fixture
def unblinded(recordings: Recordings, blinded: Path) -> Path:
    return recordings.of(unblinded_copy, blinded=str(blinded))


def text_of(page: Path) -> str:
    """What is written on a page, without its style and script."""
    return re.sub(r"(?s)<style>.*?</style>|<script>.*?</script>", "", page.read_text("utf-8"))


def test_a_blinded_campaign_is_masked_and_so_is_an_unblinded_one_when_asked(
    blinded: Path, unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one/p.html", tmp_path / "two/p.html"
    assert call(["episodes", str(blinded), "--page", str(one)]) == 0
    assert call(["episodes", str(unblinded), "--page", str(two), "--masked"]) == 0
    assert [word for word in OPEN if word in text_of(one)] == []
    assert "masked, as a blind role may see it" in text_of(one)
    names = sorted(path.name for path in one.with_suffix(".videos").iterdir())
    assert len(names) == 4 and names == sorted(path.name for path in two.with_suffix(".videos").iterdir())
    assert one.read_bytes() == two.read_bytes(), "after unblinding it shows no more, when that is asked for"
    assert not any(b"zebra" in path.read_bytes() for path in (tmp_path / "one").rglob("*") if path.is_file())


def test_an_unblinded_page_names_arms_and_has_every_video_from_its_go_at_one_speed(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "night #3 %20.html"
    assert call(["episodes", str(unblinded), "--page", str(page)]) == 0
    text = text_of(page)
    assert all(word in text for word in ("zebra-policy", "human", "Outcome", "Seconds"))
    assert "Every video at 1× real time, from go" in text
    films = re.findall(r"<video[^>]*>", text)
    assert len(films) == 4 and all("noplaybackrate" in film for film in films), "no speed of its own"
    with Campaign.open(unblinded) as campaign:
        record = campaign.record()
    for film in films:
        source, go_s = re.findall(r'data-src="([^"]+)" data-go="([^"]+)"', film)[0]
        source = unquote(source)  # what a browser makes of the address
        episode, camera = source.removeprefix("night #3 %20.videos/").removesuffix(".mp4").rsplit("-", 1)
        entry = record.episodes[episode].videos[camera]
        assert (page.parent / source).read_bytes() == (unblinded / entry["file"]).read_bytes(), "as recorded"
        assert float(go_s) == pytest.approx(3.875, abs=0.3), "armed for 4 s, at four pictures a second"
    assert "http:" not in text and "https:" not in text and "default-src 'none'" in text


def test_what_does_not_hold_is_refused_or_said_on_the_page(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = copied(unblinded.parents[1], tmp_path / "lab")
    folder, page = lab / "campaigns" / unblinded.name, tmp_path / "p.html"
    video = next(folder.rglob("wrist.mp4"))
    video.write_bytes(video.read_bytes()[:-1] + b"x")
    assert call(["episodes", str(folder), "--page", str(page)]) == 65
    assert "changed video" in capsys.readouterr().err and not page.exists()
    assert call(["episodes", str(folder), "--page", str(page), "--unverified"]) == 0
    assert "this record does not hold: " in text_of(page) and "is not the one that was sealed" in text_of(page)
    assert text_of(page).count("<video") == 3


def test_many_videos_are_shown_where_they_lie(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labctl.pages.episodes, "COPIED_BYTES", 1000)
    page = tmp_path / "below" / "p.html"
    unblinded = copied(unblinded.parents[1], tmp_path / "cell #2?") / "campaigns" / unblinded.name
    assert call(["episodes", str(unblinded), "--page", str(page)]) == 0
    assert not page.with_suffix(".videos").exists() and "are shown from the lab" in text_of(page)
    sources = re.findall(r'data-src="([^"]+)"', text_of(page))
    assert len(sources) == 4 and all((page.parent / unquote(source)).resolve().is_file() for source in sources)
    assert all("#" not in source and "?" not in source for source in sources)


@pytest.mark.thorough
def test_a_report_has_the_page_and_the_first_cameras_videos_beside_it(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "report"
    for _ in range(2):  # the second replaces the first
        assert call(["report", str(unblinded), "--out", str(out), "--boot", "20", "--perm", "20"]) == 0
    assert 'href="episodes.html"' in (out / "report.html").read_text("utf-8")
    sources = re.findall(r'data-src="([^"]+)"', text_of(out / "episodes.html"))
    assert len(sources) == 2 and all(source.endswith("-over_shoulder.mp4") for source in sources)
    assert all((out / source).is_file() for source in sources)


def test_campaigns_without_an_anchor_stand_side_by_side_and_are_not_compared(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lab = copied(unblinded.parents[1], tmp_path / "lab")
    other = make_campaign(lab, [HUMAN, policy("okapi-policy")], name="other").folder
    page = tmp_path / "p.html"
    assert call(["episodes", str(lab / "campaigns" / unblinded.name), str(other), "--page", str(page)]) == 0
    text = text_of(page)
    assert f"{unblinded.name} and other are not compared" in text and "share no anchor" in text
    assert "zebra-policy" in text and "okapi-policy" not in text, "the other one is blinded"


def test_bad_input_is_one_line(blinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, line in (
        (["--page", str(tmp_path / "p.txt")], "a page ends in .html"),
        (["--page", str(tmp_path / "p.html"), "--clocks"], "leave --clocks out"),
        ([str(blinded), "--page", str(tmp_path / "p.html")], "a campaign is given twice"),
        ([str(blinded)], "go with --page F.html"),
        (["--masked"], "go with --page F.html"),
    ):
        assert call(["episodes", str(blinded), *words]) == 2
        assert line in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
