"""Rerun's own viewers open what labctl writes: a window without a screen, and a page in Chromium; neither complains.

The window needs a software Vulkan (Debian's mesa-vulkan-drivers) and ffmpeg, the page Debian's chromium.
"""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from support.runs.campaigns import events_of, make_campaign, policy, unblind
from support.runs.live_campaign import CLOCK, wait_for
from support.screens.browser import DRAWS_3D, browsing

from labctl.cli import call
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.runtime.campaign_run import run_campaign
from labctl.ui.rerun import viewer_process

pytestmark = pytest.mark.interop
DRAWN_NS = 120 * SECOND
# What a machine without a graphics card or a network makes the viewer say.
EXPECTED = ("Software rasterizer", "Failed to load examples")


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One episode, and two side by side."""
    lab = tmp_path_factory.mktemp("lab")
    arms = [policy("policy-a", skill="swift"), policy("policy-b", skill="steady")]
    folder = make_campaign(lab, arms, cameras=True, budget=20.0, arming=2.0).folder
    run_campaign(folder, lambda line: None, manual=True)
    unblind(folder)
    episodes = [event.episode for event in events_of(folder) if event.kind == Kind.GO]
    assert call(["show", *episodes, "--lab", str(lab), "--save", str(lab / "two.rrd")]) == 0
    assert call(["show", episodes[0], "--lab", str(lab), "--save", str(lab / "one.rrd")]) == 0
    return lab


def colours(png: bytes) -> int:
    """How many colours a picture has: a page that is still loading has few."""
    return len(np.unique(np.asarray(Image.open(io.BytesIO(png)).convert("RGB")).reshape(-1, 3), axis=0))


@pytest.mark.parametrize("name", ["one", "two"])
def test_the_window_draws_an_episode_without_complaint(recording: Path, name: str, tmp_path: Path) -> None:
    """Every view is drawn without a report, at a moment in the middle of the episode, and no error is logged."""
    from rerun.experimental import ViewerClient

    port = viewer_process.free_port()
    extra = ("--headless", "--window-size", "1400x900")
    with viewer_process.window([], tmp_path, port=port, extra=extra):
        client = wait_for("the viewer", lambda: connected(ViewerClient, viewer_process.data_url(port)))
        assert isinstance(client, ViewerClient)
        client.open(str(recording / f"{name}.rrd"))
        wait_for("its views", lambda: len(client.get_state().views) > 8)
        client.set_time("since_go", duration=5.0, play_state="paused")
        wait_for("a picture", lambda: colours(client.take_screenshot(max_size=1400)) > 3000)
        complaints = [entry for entry in client.get_logs() if entry.level.upper() in ("WARN", "ERROR")]
        assert [entry for entry in complaints if not entry.message.startswith(EXPECTED)] == []
        state = client.get_state()
        assert [(view.name, view.reports) for view in state.views if view.reports] == []
        (shown,) = state.recordings
        assert shown.current_timeline == "since_go" and shown.current_time == 5 * SECOND
        (tmp_path / "window.png").write_bytes(client.take_screenshot())


def connected(kind: type, url: str) -> object:
    """A client of a viewer that answers, None before it does."""
    try:
        client = kind.connect(url)
        client.get_state()
    except (ConnectionError, RuntimeError):
        return None
    return client


@pytest.fixture
def address(recording: Path) -> Iterator[str]:
    words = [Path(sys.executable).with_name("labctl"), "show", str(recording / "one.rrd"), "--web"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().split()[1]
        finally:
            process.terminate()


def test_a_browser_draws_an_episode_and_asks_nobody_else(address: str, tmp_path: Path) -> None:
    """The page loads from loopback alone: no font, no example, no question for a newer version, no usage report."""
    with browsing(1400, 900, DRAWS_3D) as page:
        page.open(address)
        until = CLOCK.now_ns() + DRAWN_NS
        while CLOCK.now_ns() < until:
            page.rest(2)
            page.shot(tmp_path / "page.png")
            if colours((tmp_path / "page.png").read_bytes()) > 3000:
                break
        assert colours((tmp_path / "page.png").read_bytes()) > 3000, "it was not drawn in two minutes"
        refused = [error for error in page.errors if "violates the following Content Security Policy" in error]
        hosts = {url.split("/")[2].split(":")[0] for url in page.requests if url.startswith("http")}
        asked = [error.partition(" violates the following")[0] for error in refused]  # what follows quotes the rule
        assert {host for host in hosts if not any(f"//{host}" in one for one in asked)} == {"127.0.0.1"}
        assert any("//tel.rerun.io" in one for one in asked), "it did try to report its usage; the rule is needed"
