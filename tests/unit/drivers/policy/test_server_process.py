"""A policy server that labctl starts ends with its episode, whatever ends that, and says why if it does not run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.policies.cards import card
from support.policies.observations import GIVEN
from support.robots.interleaved import after_the_first_write
from support.runs.live_campaign import wait_for

from labctl.clock import SECOND
from labctl.config.policy_card import Server
from labctl.devices import load
from labctl.drivers.policy.server_process import WATCHDOG, ServerProcess
from labctl.errors import DeviceLost

pytestmark = pytest.mark.real_time

# A server of two processes, as `uv run` makes them; it notes that it was asked to end, and both once it can be asked.
SERVER = """
import os, pathlib, signal, subprocess, sys
folder = pathlib.Path(sys.argv[1])
child = subprocess.Popen(["sleep", "600"])
def end(*_):
    (folder / "asked").touch()
    if sys.argv[2] != "stubborn":
        sys.exit(0)
signal.signal(signal.SIGTERM, end)
(folder / "pids").write_text(f"{os.getpid()} {child.pid}")
while True:
    signal.pause()
"""


def server(notes: Path, manner: str = "polite", **given: Any) -> ServerProcess:
    plain = {"start": [sys.executable, "-c", SERVER, str(notes), manner], "folder": str(notes)}
    return ServerProcess(Server(**{**plain, "ready_s": 20.0, "stop_s": 1.0, **given}))


def ended(held: ServerProcess) -> bool:
    """Whether the watchdog of a server that was told to stop ends, and so its server has."""
    watchdog = held._watchdog
    assert watchdog is not None and watchdog.stdout is not None
    watchdog.wait(60)
    watchdog.stdout.close()
    return True


def pids(folder: Path) -> list[int]:
    """The server's two processes, once they are there."""

    def written() -> list[int]:
        path = folder / "pids"
        found = [int(word) for word in path.read_text().split()] if path.exists() else []
        return found if len(found) == 2 else []

    found = wait_for("the server", written)
    assert isinstance(found, list)
    return found


def gone(pid: int) -> bool:
    """No such process, or only what is left of one."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # it may go between opening the file and reading it
        return True


def all_gone(found: list[int]) -> Callable[[], bool]:
    return lambda: all(gone(pid) for pid in found)


@pytest.mark.parametrize("manner", ["polite", "stubborn"])
def test_it_is_asked_to_end_and_then_ended_with_everything_it_started(tmp_path: Path, manner: str):
    held = server(tmp_path, manner)
    held.start()
    found = pids(tmp_path)
    assert held.problem() is None
    assert held._watchdog is not None
    held._watchdog.send_signal(signal.SIGSTOP)
    held.stop()  # it waits for nothing, least of all for stop_s: nothing would come while the watchdog stands still
    held._watchdog.send_signal(signal.SIGCONT)
    assert ended(held)
    assert all_gone(found)() and (tmp_path / "asked").exists()


def test_it_ends_when_whoever_started_it_was_killed_before_it_heard_that_it_runs(tmp_path: Path):
    """On a busy computer a controller was: what holds the server ended as it said so, and left it running."""
    heard, says = os.pipe()
    os.close(heard)
    words = [sys.executable, "-P", "-c", WATCHDOG]
    watchdog = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=says, start_new_session=True)
    os.close(says)
    assert watchdog.stdin is not None
    watchdog.stdin.write((json.dumps(server(tmp_path)._spec) + "\n").encode())
    watchdog.stdin.flush()
    found = pids(tmp_path)
    try:
        watchdog.stdin.close()
        assert watchdog.wait(60) == 0
        assert all_gone(found)()
    finally:
        for pid in (pid for pid in found if not gone(pid)):
            os.kill(pid, signal.SIGKILL)


def test_it_ends_when_whoever_started_it_is_killed(tmp_path: Path):
    program = f"""
import signal
from labctl.clock import SECOND
from labctl.config.policy_card import Server
from labctl.drivers.policy.server_process import WATCHDOG, ServerProcess
held = ServerProcess(Server(**{server(tmp_path)._spec!r}))
held.start()
signal.pause()
"""
    owner = subprocess.Popen([sys.executable, "-P", "-c", program])
    found = pids(tmp_path)
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    wait_for("the end of the server", all_gone(found))


def problem(held: ServerProcess) -> str:
    held.start()
    said = wait_for("a problem", held.problem)
    held.stop()
    assert ended(held)
    return str(said)


def test_a_server_that_ends_by_itself_is_told_at_once(tmp_path: Path):
    said = problem(server(tmp_path, start=[sys.executable, "-c", "import sys; sys.exit(3)"]))
    assert said == "the policy server ended by itself (exit code 3); its words are in the controller's log"


def test_why_it_ended_is_told_though_it_is_said_at_that_moment() -> None:
    """What holds it was seen to have ended, and what it had said since the last look was not read."""

    class Ends:
        """It says why and ends right behind the first look at it."""

        def __init__(self) -> None:
            self.stdout, self._looks, self._said = self, 0, [b'{"problem": "it was killed"}\n']

        def _over(self) -> bool:
            self._looks += 1
            return self._looks > 1

        def poll(self) -> int | None:
            return 1 if self._over() else None

        def read(self) -> bytes:
            return self._said.pop() if self._over() and self._said else b""

    held = ServerProcess(Server(start=["x"]))
    held._watchdog = Ends()  # type: ignore[assignment]
    assert held.problem() == "it was killed"


def test_a_server_that_is_killed_from_outside_is_told_at_once(tmp_path: Path):
    held = server(tmp_path)
    held.start()
    found = pids(tmp_path)
    os.kill(found[0], signal.SIGKILL)
    said = wait_for("a problem", held.problem)
    assert "ended by itself (signal 9)" in str(said)
    held.stop()
    assert ended(held)
    wait_for("the end of its child", all_gone(found))


@pytest.mark.parametrize("folders", ["/usr/bin", "shut:/usr/bin", "nowhere:/usr/bin"])
def test_a_command_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: str):
    """Also where a folder of PATH may not be entered, or is not there."""
    shut = tmp_path / "shut"
    shut.mkdir(mode=0)
    monkeypatch.setenv("PATH", folders.replace("shut", str(shut)))
    said = problem(server(tmp_path, start=["no-such-server"]))
    assert "could not be started: no-such-server is in no folder of PATH that may be entered" in said


def test_a_command_that_cannot_be_run_is_named(tmp_path: Path):
    assert "could not be started: No such file or directory" in problem(server(tmp_path, start=["./no-such-server"]))
    assert "could not be started" in problem(server(tmp_path, folder=str(tmp_path / "nowhere")))


def test_its_environment_has_what_the_card_adds(tmp_path: Path):
    program = "import os, pathlib; pathlib.Path('said').write_text(os.environ['MODEL'] + str('PATH' in os.environ))"
    problem(server(tmp_path, start=[sys.executable, "-c", program], env={"MODEL": "pi"}))
    assert (tmp_path / "said").read_text() == "piTrue"


@pytest.fixture
def locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """GPUs of this test alone."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


def test_two_servers_of_one_gpu_run_one_after_the_other(tmp_path: Path, locks: None):
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first, second = (server(folder, gpu="0") for folder in folders)
    first.start()
    found = pids(folders[0])
    second.start()
    first.stop()
    pids(folders[1])
    assert all_gone(found)(), "the second began when all of the first was gone"
    second.stop()
    assert ended(first) and ended(second)


def test_a_gpu_that_stays_taken_is_a_problem_in_time(tmp_path: Path, locks: None):
    folders = [tmp_path / "first", tmp_path / "second"]
    for folder in folders:
        folder.mkdir()
    first, second = server(folders[0], gpu="0"), server(folders[1], gpu="0", ready_s=0.3)
    first.start()
    pids(folders[0])
    assert "still has GPU 0" in problem(second)
    first.stop()
    assert ended(first)


def test_what_a_server_waits_for_is_told_while_it_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, locks: None):
    """Seen on an H200 that another process had taken: `open` said that nobody answered at the endpoint, no more."""
    tool = fake_nvidia_smi(tmp_path, 1000, monkeypatch)
    held = server(tmp_path, gpu_memory_gb=90.0)
    assert held.waits_for() is None
    held.start()
    wait_for("its reason", lambda: held.waits_for() == "GPU 0 has 1.0 GB free, the card asks for 90")
    assert held.problem() is None
    says(tool, 100_000)
    wait_for("its start", lambda: held.waits_for() is None)
    pids(tmp_path)
    held.stop()
    assert ended(held)


def fake_nvidia_smi(folder: Path, mebibytes: int, monkeypatch: pytest.MonkeyPatch) -> Path:
    tool = folder / "bin" / "nvidia-smi"
    tool.parent.mkdir()
    says(tool, mebibytes)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")
    return tool


def says(tool: Path, mebibytes: int) -> None:
    """In one piece: what is being run may not be written to, and half of it says nothing."""
    draft = tool.with_name("draft")
    draft.write_text(f"#!/bin/sh\necho {mebibytes}\n")
    draft.chmod(0o755)
    draft.replace(tool)


def test_a_server_waits_for_the_memory_its_card_asks_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    tool = fake_nvidia_smi(tmp_path, 1000, monkeypatch)
    held = server(tmp_path, gpu_memory_gb=2.0)
    held.start()
    says(tool, 4000)
    pids(tmp_path)
    held.stop()
    assert ended(held)


def test_memory_that_never_comes_is_a_problem_with_its_numbers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """1000 MiB are 1.05e9 bytes."""
    fake_nvidia_smi(tmp_path, 1000, monkeypatch)
    said = problem(server(tmp_path, gpu_memory_gb=2.0, ready_s=0.3))
    assert said == "GPU 0 has 1.0 GB free, the card asks for 2"


def test_a_server_that_is_let_go_of_as_soon_as_it_is_there_ends_without_an_error(tmp_path: Path) -> None:
    held = server(tmp_path)
    with after_the_first_write(held, "_watchdog", held.stop):
        held.start()
    assert ended(held)


class Silent:
    """Nobody at the endpoint."""

    def connect(self, timeout_s: float) -> Mapping[str, Any]:
        raise DeviceLost("nobody answers")

    def close(self) -> None: ...


def test_a_policy_that_gives_up_says_what_its_server_waited_for_and_so_does_its_log(capsys) -> None:
    class Waits:
        def start(self) -> None: ...

        def stop(self) -> None: ...

        def problem(self) -> None: ...

        def waits_for(self) -> str:
            return "GPU 0 has 1.0 GB free, the card asks for 90"

    policy: Any = load("policy_openpi", {"card": card("openpi"), "endpoint": "ws://127.0.0.1:1"}, **GIVEN)
    policy._link, policy._server = Silent(), Waits()
    policy._clock = SimpleNamespace(now_ns=iter((0, 0, 1000 * SECOND)).__next__)  # asked once, and then it is over
    with pytest.raises(DeviceLost, match=r"no policy server within .* s: GPU 0 has 1\.0 GB free, the card asks for 90"):
        policy.load()
    assert capsys.readouterr().err == "waiting for the policy server: GPU 0 has 1.0 GB free, the card asks for 90\n"
    policy.close()


def test_a_policy_that_is_closed_while_its_server_is_started_leaves_none_behind() -> None:
    """Nothing was there to be ended yet, and then it was."""
    told = list[str]()

    class Starts:
        def start(self) -> None:
            policy.close()
            told.append("started")

        def stop(self) -> None:
            told.append("stopped")

        def problem(self) -> None: ...

        def waits_for(self) -> None: ...

    policy: Any = load("policy_openpi", {"card": card("openpi"), "endpoint": "ws://127.0.0.1:1"}, **GIVEN)
    policy._link, policy._server = Silent(), Starts()
    with pytest.raises(DeviceLost, match="closed"):
        policy.load()
    assert told[-1] == "stopped"
