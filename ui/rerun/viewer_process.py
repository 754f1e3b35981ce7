"""Runs Rerun's own viewer as a child process: a window, or a page on loopback; its usage reports are switched off.

May not: import rerun, listen beyond loopback, leave a viewer behind, or touch the user's own viewer settings.

What is started is the viewer itself, never the `rerun` command of the package: that one is a wrapper whose end leaves
the viewer running.
"""

from __future__ import annotations

import ctypes
import importlib.util
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import which

from labctl.clock import SECOND, Clock, MonotonicClock
from labctl.errors import InputError, LabctlError, MissingExtra, StateError
from labctl.ui.rerun.viewer_data import data_handed_on
from labctl.ui.rerun.viewer_page import LOOPBACK, handed_on

READY_NS = 20 * SECOND
STOP_S = 3.0
LOOK_S = 1.0  # so often whoever waits for a viewer looks whether it was asked to end
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_ENDS_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2)


def binary() -> Path:
    """The viewer's executable. Raises MissingExtra without rerun-sdk."""
    found = importlib.util.find_spec("rerun_cli")
    path = Path(found.origin).with_name("rerun") if found and found.origin else Path("rerun")
    if not path.is_file():
        raise MissingExtra("rerun", "looking at an episode")
    return path


def environment(folder: Path) -> dict[str, str]:
    """This environment, with the viewer's settings in a folder of its own and no way to the internet.

    In the settings its usage reports are disabled: by a file, since the viewer's own command for it reports that it was
    used. It also asks for its newest version: that goes to a port of loopback where nobody answers.
    """
    settings = folder / "rerun" / "analytics.json"
    settings.parent.mkdir(parents=True, exist_ok=True)
    settings_of = {"analytics_enabled": False, "analytics_id": "", "metadata": {}}
    places = {"config_file_path": str(settings), "data_dir_path": str(settings.parent / "analytics")}
    settings.write_text(json.dumps({**settings_of, **places}))
    names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    nowhere = dict.fromkeys((*names, *map(str.lower, names)), f"http://{LOOPBACK}:9")
    here = dict.fromkeys(("NO_PROXY", "no_proxy"), f"{LOOPBACK},localhost")
    return {**os.environ, "XDG_CONFIG_HOME": str(folder), **nowhere, **here}


def need_display() -> None:
    """Raises StateError where no window can open."""
    if sys.platform == "linux" and not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        raise StateError(
            "there is no display here; look at it in a browser with --web, or take it along with --save FILE.rrd"
        )


def decodes_video() -> bool:
    """Whether the window can show H.264: it needs ffmpeg on the path, a browser does not."""
    return which("ffmpeg") is not None


def free_port() -> int:
    """A port on loopback that nobody listens on now."""
    with socket.socket() as made:
        made.bind((LOOPBACK, 0))
        return made.getsockname()[1]


def need_port(port: int) -> None:
    """Raises InputError when somebody listens on a port, or it may not be used."""
    with socket.socket() as made:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            made.bind((LOOPBACK, port))
        except (OSError, OverflowError) as error:
            raise InputError(f"port {port} cannot be used: {error}; choose another with --port") from error


def web_ports(port: int | None) -> tuple[int, int]:
    """Ports of the page and of its data: the one given and the next, or two free ones. Raises InputError."""
    ports = (port, port + 1) if port is not None else (free_port(), free_port())
    for one in ports:
        need_port(one)
    return ports


def page(web: int, data: int) -> str:
    """The address to open in a browser."""
    return f"http://{LOOPBACK}:{web}/?url=rerun%2Bhttp%3A%2F%2F{LOOPBACK}%3A{data}%2Fproxy"


def data_url(port: int) -> str:
    """Where a recording stream connects to."""
    return f"rerun+http://{LOOPBACK}:{port}/proxy"


@contextmanager
def web(
    files: Sequence[Path], ports: tuple[int, int], folder: Path, *, inner: int | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Serve the web viewer and these recordings on loopback; it ends with the block, or with this process. inner: the
    port where the viewer itself takes a recording stream (any free one); a browser is answered at ports alone.

    Raises LabctlError when it does not begin to answer.
    """
    data = free_port() if inner is None else inner
    with (
        _served(files, data, folder) as (viewer, page_port),
        handed_on(page_port, *ports),
        data_handed_on(data, ports[1]),
    ):
        yield viewer


@contextmanager
def program(folder: Path) -> Iterator[int]:
    """The port of loopback at which the viewer hands out its own files while the block runs, without a recording.

    Raises LabctlError when it does not begin to answer.
    """
    with _served((), free_port(), folder) as (_, page_port):
        yield page_port


@contextmanager
def _served(files: Sequence[Path], data: int, folder: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """The viewer with these recordings behind a port, and the port of loopback at which its own page is."""
    inner = free_port()
    words = ["--serve-web", "--bind", LOOPBACK, "--port", str(data), "--web-viewer-port", str(inner)]
    with _running([*words, *map(str, files)], folder) as viewer:
        _await_ports(viewer, (data, inner), folder)
        yield viewer, inner


@contextmanager
def window(
    files: Sequence[Path], folder: Path, *, port: int | None = None, extra: Sequence[str] = ()
) -> Iterator[subprocess.Popen[bytes]]:
    """Open the viewer's window with these recordings, listening for more on `port` (any free one) of loopback."""
    port = free_port() if port is None else port
    words = ["--bind", LOOPBACK, "--port", str(port), "--hide-welcome-screen", *extra]
    with _running([*words, *map(str, files)], folder) as viewer:
        yield viewer


@contextmanager
def _running(words: Sequence[str], folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The viewer as a child in a session of its own, so that a Ctrl-C reaches it by way of this process alone."""
    made = environment(folder)
    with (folder / "viewer.log").open("wb") as log:
        child = subprocess.Popen(
            [binary(), *words],
            env=made,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            preexec_fn=_end_with_parent,
        )
    try:
        yield child
    finally:
        end(child)


def _end_with_parent() -> None:
    """In the child: a killed labctl takes its viewer along (Linux)."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_ENDS_WITH_PARENT, signal.SIGTERM)


def end(child: subprocess.Popen[bytes]) -> None:
    """End a viewer: asked first, then killed. Idempotent."""
    for how in (child.terminate, child.kill):
        if child.poll() is None:
            how()
            with suppress(subprocess.TimeoutExpired):
                child.wait(STOP_S)


def _await_ports(viewer: subprocess.Popen[bytes], ports: Sequence[int], folder: Path) -> None:
    clock: Clock = MonotonicClock()
    until = clock.now_ns() + READY_NS
    for port in ports:
        while not _answers(port):
            if viewer.poll() is not None or clock.now_ns() > until:
                raise LabctlError(f"the web viewer did not start: {last_line(log_of(folder))}")
            clock.sleep_until(clock.now_ns() + SECOND // 20)


def _answers(port: int) -> bool:
    with socket.socket() as made:
        made.settimeout(1.0)
        return made.connect_ex((LOOPBACK, port)) == 0


def log_of(folder: Path) -> str:
    """What the viewer has written so far."""
    path = folder / "viewer.log"
    return path.read_text("utf-8", "replace") if path.exists() else ""


def last_line(text: str) -> str:
    """The last line that says something, without colours; "it said nothing" for none."""
    lines = [line for line in (_COLOURS.sub("", line).strip() for line in text.splitlines()) if line]
    errors = [line for line in lines if "rror" in line or "panicked" in line]
    return (errors or lines or ["it said nothing"])[-1]


def outcome(viewer: subprocess.Popen[bytes], folder: Path, asked: Callable[[], bool] = lambda: False) -> None:
    """Wait until a viewer's window is closed. asked: whether this process is to end, for a signal whose exception was
    lost. Raises KeyboardInterrupt then, LabctlError when the viewer failed.
    """
    while viewer.poll() is None:
        if asked():
            raise KeyboardInterrupt
        with suppress(subprocess.TimeoutExpired):
            viewer.wait(LOOK_S)
    if viewer.returncode:
        raise LabctlError(f"the viewer ended by itself: {last_line(log_of(folder))}; try --web, or --save FILE.rrd")
