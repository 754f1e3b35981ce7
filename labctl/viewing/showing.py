"""From episodes to a Rerun recording, a window or a page: what `labctl show` does, apart from its words.

May not: decide what may be seen (`labctl.viewing.episode` does), or leave a file or a process that nobody asked for.
"""

from __future__ import annotations

import os
import signal
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.axes import OPENING, Axis, composed, hand_of, prefixed
from labctl.clock import SECOND, MonotonicClock
from labctl.devices import declared_axes
from labctl.errors import LabctlError
from labctl.plain import Json
from labctl.runtime.attach import Attachment
from labctl.store.verifying.verified import in_passing, refuse_unless_it_holds
from labctl.viewing.episode import EpisodeView, find_episode, look_at, robot_model

if TYPE_CHECKING:
    import subprocess

    from labctl.ui.rerun.live import LiveCell

Say = Callable[[str], None]
LIVE_NS = SECOND // 60  # so often a live view looks for news
LIVE_NICE = 10  # and it lets every process of a run go first


@dataclass(frozen=True, slots=True)
class Made:
    """A recording that was written: what is in it, how large it is and how long it took."""

    path: Path
    streams: int
    videos: int
    masked: bool
    size_mb: float
    took_s: float


def views_of(episodes: Sequence[str], folders: Sequence[Path], *, masked: bool, unverified: bool) -> list[EpisodeView]:
    """The views of episodes, looked for in these campaign folders. Raises InputError for one that is in none,
    BrokenRecord for what does not hold; with `unverified` its title says so instead.
    """
    found: list[EpisodeView] = []
    for name in episodes:
        folder = find_episode(folders, name)
        broken = refuse_unless_it_holds(folder, [name], unverified=unverified)
        found.append(look_at(folder, name, masked=masked, broken=broken))
    return found


def write(views: Sequence[EpisodeView], path: Path) -> Made:
    """Write one episode, or two side by side, as an .rrd. Raises MissingExtra, StorageError."""
    from labctl.ui.rerun import episode as pages

    clock = MonotonicClock()
    began_ns = clock.now_ns()
    if len(views) == 1:
        pages.save_episode(path, views[0])
    else:
        pages.save_side_by_side(path, *views)
    took_s = (clock.now_ns() - began_ns) / SECOND
    return Made(
        path,
        sum(len(view.streams) for view in views),
        sum(len(view.videos) for view in views),
        any(view.masked for view in views),
        path.stat().st_size / 1e6,
        took_s,
    )


@contextmanager
def workshop() -> Iterator[Path]:
    """A folder for what the viewer needs, gone afterwards. SIGTERM inside ends in order, like Ctrl-C."""
    _asked.clear()
    before = signal.signal(signal.SIGTERM, _interrupt)
    try:
        with tempfile.TemporaryDirectory(prefix="labctl-show-") as name:
            yield Path(name)
    finally:
        signal.signal(signal.SIGTERM, before)


_asked = threading.Event()
"""That SIGTERM came: what its handler raises is lost where Python ignores exceptions, as in a finaliser."""


def _interrupt(number: int, frame: object) -> None:
    _asked.set()
    raise KeyboardInterrupt


def show_page(files: Sequence[Path], folder: Path, port: int | None, say: Say) -> None:
    """Serve recordings to a browser on loopback until interrupted. Raises InputError for a taken port, LabctlError."""
    from labctl.ui.rerun import viewer_process as viewer

    ports = viewer.web_ports(port)
    with viewer.web(files, ports, folder) as child:
        say(f"open {viewer.page(*ports)}")
        say("Ctrl-C ends it")
        try:
            viewer.outcome(child, folder, _asked.is_set)
        except KeyboardInterrupt:
            say("ended")


def show_window(files: Sequence[Path], folder: Path) -> None:
    """Open recordings in the viewer's window until it is closed or interrupted. Raises LabctlError when it fails."""
    from labctl.ui.rerun import viewer_process as viewer

    with viewer.window(files, folder) as child:
        try:
            viewer.outcome(child, folder, _asked.is_set)
        except KeyboardInterrupt:
            return


def show_live(campaign_folder: Path, folder: Path, *, web: bool, port: int | None, say: Say) -> None:
    """Draw a running campaign as it publishes itself, until it ends, the viewer is closed, or interrupted.

    It only listens: what it misses is lost to it alone, and it gives way to every process of the run.
    Raises StateError when no run is going, InputError for a taken port, LabctlError when the viewer fails.
    """
    from labctl.ui.rerun import viewer_process as viewer

    ear = Attachment(campaign_folder, read_only=True)
    try:
        os.nice(LIVE_NICE)
        os.environ.setdefault("RUST_LOG", "off")  # the SDK's words on a window that was closed are no news
        ports = viewer.web_ports(port) if web else (0, 0)
        inner = viewer.free_port()
        opened = viewer.web([], ports, folder, inner=inner) if web else viewer.window([], folder, port=inner)
        with opened as child:
            try:
                if web:
                    say(f"open {viewer.page(*ports)}")
                _draw_live(campaign_folder, ear, child, viewer.data_url(inner), say)
                viewer.outcome(child, folder, _asked.is_set)
            except KeyboardInterrupt:
                say("ended")
    finally:
        ear.close()


def _draw_live(campaign_folder: Path, ear: Attachment, child: subprocess.Popen[bytes], url: str, say: Say) -> None:
    """Draw until the run ends or the viewer is closed."""
    from labctl.ui.rerun import live

    clock = MonotonicClock()
    screen = live.LiveView(_live_cell(campaign_folder), clock.anchor(), url)
    say("live, as a blind role may see it; Ctrl-C ends the view, never the run")
    due_ns = clock.now_ns()
    try:
        while child.poll() is None and ear.alive():
            screen.draw(ear.poll(), clock.now_ns())
            due_ns = max(due_ns + LIVE_NS, clock.now_ns())
            clock.sleep_until(due_ns)
    finally:
        screen.close()
    if child.poll() is None:
        say("the run has ended; the view stays until it is closed, or until Ctrl-C")


def _live_cell(folder: Path) -> LiveCell:
    from labctl.ui.rerun.live import LiveCell

    with in_passing(folder) as campaign:
        robot = campaign.cell.robot
        totes = {tote.name: (tote.centre_m, tote.size_m, False) for tote in campaign.fixture.tote}
        cameras = [camera.name for camera in campaign.cell.camera]
        hand = hand_axes(campaign.cell.names, [(one.driver, one.options) for one in campaign.cell.robots])
        drives = any(axis.kind == "twist" for axis in robot.axis)
        model = robot_model(robot.driver, robot.options)
        return LiveCell(campaign.opened["campaign"], model, totes, cameras, hand, drives)


def hand_axes(names: Sequence[str], robots: Sequence[tuple[str, Mapping[str, Json]]]) -> Sequence[Axis]:
    """The axes of a cell's hand, of two robots those of both by their longer names; a driver that is not here has none
    that are known, and is taken for one with an opening. names: of each robot, "" where there is one; robots: the
    driver and the options of each.
    """
    found = list[Sequence[Axis]]()
    for name, (driver, options) in zip(names, robots, strict=True):
        axes: Sequence[Axis] = OPENING
        with suppress(LabctlError):
            axes = declared_axes(driver, options) or OPENING
        found.append(prefixed(name, hand_of(axes)) if name else hand_of(axes))
    return composed(*found)
