"""`labctl show`: masked while blinded, whole after unblinding, on loopback only, and gone when ended."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import events_of, make_campaign, policy, unblind
from support.runs.live_campaign import end_of, wait_for
from support.screens.rerun_files import decoded, family, listening

import labctl.core.design
import labctl.runtime.campaign_run
from labctl.cli import call
from labctl.core.design import Schedule, draw
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Opened
from labctl.viewing.episode import look_at

LABCTL = Path(sys.executable).with_name("labctl")
SMALL = {"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"}
ARMS = [
    policy("zebra-policy", endpoint="sim://zebra-endpoint:6161", skill="swift"),
    policy("okapi-policy", endpoint="sim://okapi-endpoint:6262", skill="swift"),
]
TELLING = ("zebra", "okapi", "endpoint", "swift", "sim_policy", "policy", "requested", "limited", "/actions", "/dq")


def binary() -> Path:
    return Path(__import__("rerun_cli").__file__).with_name("rerun")


def words_of(rrd: Path) -> str:
    """What a recording prints of itself, without its file name."""
    assert subprocess.run([binary(), "rrd", "verify", rrd], capture_output=True).returncode == 0
    done = subprocess.run([binary(), "rrd", "print", "-vvv", rrd], capture_output=True, text=True, check=True)
    return done.stdout


def went(folder: Path) -> list[str]:
    """The episodes of a campaign that got to go."""
    return [event.episode for event in events_of(folder) if event.kind == Kind.GO]


@pytest.fixture(scope="module")
def unblinded(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    lab = tmp_path_factory.mktemp("lab")
    campaign = make_campaign(lab, ARMS, cameras=True, budget=12.0, arming=1.0, cell=SMALL)
    run_campaign(campaign.folder, lambda line: None, manual=True)
    unblind(campaign.folder)
    return campaign


def lab_of(campaign: Opened) -> str:
    return str(campaign.folder.parents[1])


def test_show_is_masked_until_the_campaign_is_unblinded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Searched in the bytes, in what Rerun prints and in every decoded value; `--masked` shows the same later on."""
    campaign = make_campaign(tmp_path, ARMS, cameras=True, budget=15.0, arming=1.0, cell=SMALL)
    run_campaign(campaign.folder, lambda line: None, manual=True)
    episode = went(campaign.folder)[0]
    masked, whole, again = tmp_path / "masked.rrd", tmp_path / "whole.rrd", tmp_path / "again.rrd"
    assert call(["show", episode, "--lab", str(tmp_path), "--save", str(masked)]) == 0
    said = capsys.readouterr().out
    assert "masked: the campaign is not unblinded" in said and " MB in " in said
    seen = look_at(campaign.folder, episode)
    assert seen.masked and "policy" not in seen.streams and set(seen.videos) == {"over_shoulder", "wrist"}
    assert seen.photos["over_shoulder_staged"].is_file() and "/photos/over_shoulder_staged" in words_of(masked)
    for text in (words_of(masked), repr(decoded(masked)), masked.read_bytes().decode("latin-1")):
        assert [word for word in TELLING if word in text] == []
    assert "/joints/q" in words_of(masked)
    unblind(campaign.folder)
    assert call(["show", episode, "--lab", str(tmp_path), "--save", str(whole)]) == 0
    assert ", masked" not in capsys.readouterr().out
    told = words_of(whole)
    assert "zebra-policy" in told or "okapi-policy" in told
    assert "requested" in told and "policy" in look_at(campaign.folder, episode).streams
    assert call(["show", episode, "--lab", str(tmp_path), "--save", str(again), "--masked"]) == 0
    assert "masked: as asked" in capsys.readouterr().out
    assert repr(decoded(again)) == repr(decoded(masked)), "the same as before unblinding, to the value"


def exchanged(*given: Any) -> Schedule:
    """`draw` with the two arms in each other's place."""
    other = {ARMS[0]["name"]: ARMS[1]["name"], ARMS[1]["name"]: ARMS[0]["name"]}
    return Schedule(tuple(replace(slot, arm=other[slot.arm]) for slot in draw(*given).slots))


@pytest.mark.thorough
def test_exchanging_two_arms_that_behave_alike_changes_nothing_a_masked_view_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(labctl.runtime.campaign_run, "free_gb", lambda folder: 100.0)
    seen: list[list[str]] = []
    for name, drawn in (("first", draw), ("second", exchanged)):
        monkeypatch.setattr(labctl.core.design, "draw", drawn)
        lab = tmp_path / name
        lab.mkdir()
        entropy = hashlib.sha256(b"show").digest()
        campaign = make_campaign(lab, ARMS, cameras=True, budget=12.0, arming=1.0, cell=SMALL, entropy=entropy)
        run_campaign(campaign.folder, lambda line: None, manual=True)
        shown = []
        for episode in went(campaign.folder):
            assert call(["show", episode, "--lab", str(lab), "--save", str(lab / "e.rrd")]) == 0
            shown.append(repr(decoded(lab / "e.rrd")))
        seen.append(shown)
    assert len(seen[0]) == 2 and seen[0] == seen[1]
    assert seen[0][0] != seen[0][1], "two episodes differ, so the comparison can fail"


@pytest.mark.thorough
def test_two_episodes_stand_side_by_side(unblinded: Opened, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = went(unblinded.folder)
    two = tmp_path / "two.rrd"
    assert call(["show", *names, "--lab", lab_of(unblinded), "--save", str(two)]) == 0
    assert "14 streams, 4 videos" in capsys.readouterr().out
    told = words_of(two)
    for side in "ab":
        assert all(f"/{side}/{thing}" in told for thing in ("world/tcp/wrist", "joints/q", "lanes/1_phase"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["e-nothing", "--save", "x.rrd"], "no episode 'e-nothing'"),
        (["e-nothing", "--save", "x.mp4"], "ends in .rrd"),
        (["e-nothing", "--port", "9000"], "add --web"),
        (["a", "b", "c", "--web"], "3 episodes given"),
        (["nothing.rrd", "--web"], "no recording nothing.rrd"),
        (["a.rrd", "e-nothing", "--web"], "a.rrd is a recording already"),
    ],
)
def test_a_mistake_is_one_line(
    unblinded: Opened, words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(["show", *words, "--lab", lab_of(unblinded)]) == 2
    error = capsys.readouterr().err
    assert said in error and error.count("\n") == 1
    assert not Path("x.rrd").exists()


def test_without_a_display_the_remedy_is_named(
    unblinded: Opened, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    assert call(["show", went(unblinded.folder)[0], "--lab", lab_of(unblinded)]) == 1
    error = capsys.readouterr().err
    assert "--web" in error and "--save" in error


@pytest.fixture
def served(unblinded: Opened, tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """`labctl show EPISODE --web` as its own process, and the address it prints."""
    words = [LABCTL, "show", went(unblinded.folder)[0], "--lab", lab_of(unblinded), "--web"]
    made = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=made) as process:
        assert process.stdout is not None
        try:
            lines = iter(process.stdout.readline, "")
            address = next((line.split()[1] for line in lines if line.startswith("open ")), None)
            assert address is not None, process.stderr and process.stderr.read()
            yield process, address
        finally:
            if process.poll() is None:
                process.kill()


def viewer_of(process: subprocess.Popen[str]) -> int:
    """The viewer below a labctl process: the executable itself, no wrapper between them."""
    (viewer,) = [pid for pid in family(process.pid) if pid != process.pid]
    assert Path(f"/proc/{viewer}/exe").resolve() == binary().resolve()
    return viewer


def test_the_page_is_served_on_loopback_only(served: tuple[subprocess.Popen[str], str]) -> None:
    """By labctl and the viewer alike, page and data; and it answers to no other name, as a page of another site might
    ask.
    """
    process, address = served
    here = address.partition("?")[0]
    sockets = {pid: listening(pid) for pid in (process.pid, viewer_of(process))}
    assert [len(found) for found in sockets.values()] == [2, 2]
    assert all(one.startswith("0100007F:") for found in sockets.values() for one in found), "127.0.0.1, byte by byte"
    with urllib.request.urlopen(here, timeout=30) as page:
        assert page.status == 200 and b"<html" in page.read().lower()
        rule = page.headers["Content-Security-Policy"]
    assert "default-src 'self'" in rule and not [
        word for word in rule.split() if "//" in word and "127.0.0.1" not in word
    ]
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(urllib.request.Request(here, headers={"Host": "evil.example"}), timeout=30)


@pytest.mark.thorough
def test_the_viewer_reports_nothing_and_has_no_way_out(served: tuple[subprocess.Popen[str], str]) -> None:
    """By its own word, in the environment it runs in."""
    process, _ = served
    text = Path(f"/proc/{viewer_of(process)}/environ").read_text()
    environment = dict(entry.split("=", 1) for entry in text.split("\0") if "=" in entry)
    said = subprocess.run(
        [binary(), "analytics", "config"], env=environment, capture_output=True, text=True, check=True
    )
    assert json.loads(said.stdout)["analytics_enabled"] is False
    assert environment["HTTPS_PROXY"] == environment["https_proxy"] == "http://127.0.0.1:9"


@pytest.mark.thorough
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda how: how.name)
def test_an_ended_show_leaves_no_viewer(
    served: tuple[subprocess.Popen[str], str], how: signal.Signals, tmp_path: Path
) -> None:
    process, _ = served
    viewer = viewer_of(process)
    process.send_signal(how)
    code = end_of(process)
    wait_for("the viewer's end", lambda: not Path(f"/proc/{viewer}").exists())
    if how != signal.SIGKILL:
        assert code == 0 and process.stderr is not None and process.stderr.read() == ""
        assert list(tmp_path.glob("labctl-show-*")) == []


def test_a_taken_port_is_one_line(unblinded: Opened, capsys: pytest.CaptureFixture[str]) -> None:
    import socket

    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        words = ["show", went(unblinded.folder)[0], "--lab", lab_of(unblinded), "--web", "--port", str(port)]
        assert call(words) == 2
    assert f"port {port} cannot be used" in capsys.readouterr().err
