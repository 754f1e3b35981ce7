"""What is said of a run that ends in the same moment as it is to be stopped, was killed, or cannot be reached."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from support.machine.processes import end_with_parent

from labctl.cli import run as module
from labctl.cli.console import _leave
from labctl.cli.run import ended
from labctl.clock import began
from labctl.errors import StateError
from labctl.runtime.attach import Attachment

OLD = Path(__file__).resolve().parents[2] / "campaigns" / "at_88dea84" / "lab" / "campaigns" / "old"

# A process that has the campaign, or does not, and ends by a signal as a run does; it says which one it was.
STANDS_IN = """
import signal, sys
from contextlib import nullcontext
from pathlib import Path
from labctl.store.locks import campaign_lock
names = [signal.SIGTERM, signal.SIGUSR1]
signal.pthread_sigmask(signal.SIG_BLOCK, names)
folder = Path(sys.argv[1])
with campaign_lock(folder, f"run {folder.name}") if sys.argv[2] == "has" else nullcontext():
    print("ready", flush=True)
    got = signal.sigwait(names)
print(signal.Signals(got).name, flush=True)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Path(shutil.copytree(OLD, tmp_path / "lab" / "campaigns" / "old"))


@pytest.fixture
def stand_in(folder: Path, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[str]]:
    words = [sys.executable, "-c", STANDS_IN, str(folder), getattr(request, "param", "has")]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, preexec_fn=end_with_parent)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def cut(folder: Path, child: subprocess.Popen[str]) -> None:
    """What such a run said of itself, before somebody removed the folder of its sockets."""
    told = {"pid": child.pid, "began": began(child.pid), "sockets": str(folder / "removed")}
    (folder / "run.json").write_text(json.dumps(told))


@pytest.mark.parametrize(("now", "number"), [(False, "SIGUSR1"), (True, "SIGTERM")])
def test_a_run_whose_sockets_were_removed_is_ended_by_a_signal(
    now: bool, number: str, folder: Path, stand_in: subprocess.Popen[str]
) -> None:
    """`labctl stop` said that no run was going, and `labctl run` that labctl stop would end it."""
    cut(folder, stand_in)
    lines = list(ended(folder, "zed", now=now))
    assert "the folder of the sockets of old's run is gone" in lines[0] and str(stand_in.pid) in lines[0]
    assert ("and ends at once" in lines[0]) == now and "has ended" in lines[-1]
    assert stand_in.stdout is not None and stand_in.stdout.read() == f"{number}\n"


@pytest.mark.parametrize("stand_in", ["has not"], indirect=True)
def test_no_signal_goes_to_a_process_that_does_not_have_the_campaign(
    folder: Path, stand_in: subprocess.Popen[str]
) -> None:
    cut(folder, stand_in)
    with pytest.raises(StateError, match=f"process {stand_in.pid}.*cannot be told whether"):
        list(ended(folder, "zed", now=True))
    assert stand_in.poll() is None


def test_a_console_is_told_that_such_a_run_goes_on_and_how_it_ends(
    folder: Path, stand_in: subprocess.Popen[str]
) -> None:
    cut(folder, stand_in)
    with pytest.raises(StateError, match=rf"goes on \(process {stand_in.pid}\).*end it with: labctl stop old"):
        Attachment(folder)


def test_of_a_run_that_says_nothing_of_itself_it_is_said_that_there_is_one(
    folder: Path, stand_in: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may only begin, and is waited for; then nobody reads that no run is going while one has the campaign."""
    monkeypatch.setattr(module, "UNKNOWN_S", 0)
    with pytest.raises(StateError, match=rf"a run has old \(process {stand_in.pid}\)"):
        list(ended(folder, "zed", now=False))
    assert stand_in.poll() is None


@pytest.mark.parametrize("now", [False, True])
def test_a_run_that_ended_before_it_was_asked_to_has_ended(now: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    monkeypatch.setattr("labctl.runtime.attach.run_of", lambda folder: {"pid": gone.pid})
    assert [line.partition(":")[0] for line in ended(OLD, "zed", now=now)] == ["the run of old has ended"]


def test_whoever_leaves_the_console_of_a_killed_run_reads_how_it_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    class Killed:
        def wait(self, timeout: float) -> int:
            return -signal.SIGKILL

    _leave(cast("subprocess.Popen[bytes]", Killed()), "first", "labctl run first --hand-terminal /dev/pts/3")
    said = capsys.readouterr().out
    assert "was killed (SIGKILL)" in said and "it goes on with: labctl run first --hand-terminal /dev/pts/3" in said


@pytest.mark.parametrize(("code", "said"), [(None, "the run goes on; look"), (0, "the run is over")])
def test_whoever_answers_late_whether_the_run_is_to_end_reads_what_has_become_of_it(
    code: int | None, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It was ended from another shell while the question stood there."""

    class Left:
        def wait(self, timeout: float) -> int:
            raise subprocess.TimeoutExpired("run", timeout)

        def poll(self) -> int | None:
            return code

    monkeypatch.setattr("click.confirm", lambda text: False)
    _leave(cast("subprocess.Popen[bytes]", Left()), "first", "labctl run first --hand-terminal /dev/pts/3")
    assert said in capsys.readouterr().out
