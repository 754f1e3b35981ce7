"""Consoles attach to a run and leave it as they like: the run goes on, nothing of it is theirs."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.live_campaign import CLOCK, running, wait_for
from support.screens.live_screen import PEOPLE, Screen

from labctl.core.events import Kind
from labctl.errors import StateError
from labctl.runtime.attach import Attachment

pytestmark = pytest.mark.real_time


@pytest.fixture
def screen(folder: Path) -> Iterator[Callable[..., Screen]]:
    """Screens on the run; closed at the end, some of them twice."""
    made: list[Screen] = []

    def another(**given: Any) -> Screen:
        made.append(Screen(folder, **given))
        return made[-1]

    yield another
    for one in made:
        one.link.close()


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    cell = {'operator = "sim_operator"': 'operator = "console"'}
    arms = [HUMAN, policy("policy-a", skill="swift")]
    opened = make_campaign(tmp_path, arms, cell=cell, live=True, items=40, budget=20.0, cameras=True)
    with running(opened.folder, tmp_path / "run.log"):
        wait_for("the run", lambda: (opened.folder / "run.json").is_file())
        yield opened.folder


def test_a_trial_is_run_from_consoles_that_come_and_go(folder: Path, screen: Callable[..., Screen]) -> None:
    first, watcher = screen(), screen(read_only=True)
    first.until("the run", session=None)
    assert first.order("session", people=PEOPLE, checks={})["ok"]
    first.until("a cell that is ready", trial_state="planned", holds=[])
    assert first.order("stage", role="setter")["ok"]
    first.until("the arm at home", staged=True)
    stale = first.state["version"]
    assert first.order("commit")["ok"]
    first.link.close()

    second = screen()  # another one goes on where the first left off
    second.until("an armed trial", trial_state="armed")
    assert second.start()["ok"]
    wait_for("go", lambda: second.look()["times"]["go_ns"])
    assert second.order("count")["ok"]
    refused = second.link.command("end", who="ann", role="operator", version=stale)
    wait_for("the refusal", lambda: second.look() and second.replies.get(refused))
    assert "look again" in second.replies[refused]["error"]

    pressed_ns = CLOCK.now_ns()
    assert second.link.stop_robot()
    assert second.order("stop")["ok"]
    second.until("the end", trial_state="scoring")
    print(f"stop to scoring: {(CLOCK.now_ns() - pressed_ns) / 1e6:.0f} ms")
    assert events_of(folder)[-1].kind != Kind.RUN_STOPPED
    ended = next(event for event in events_of(folder) if event.kind == Kind.EPISODE_ENDED)
    assert ended.body["reason"] == "safety_stop"
    watcher.until("the same state at the other screen", trial_state="scoring")
    assert watcher.kinds >= {"state", "obs", "preview"}
    with pytest.raises(StateError, match="read-only"):
        watcher.link.command("end", who="ann", role="operator")


@pytest.mark.thorough
def test_without_a_run_there_is_nothing_to_attach_to_and_a_link_goes_on_with_the_next_run(
    folder: Path, screen: Callable[..., Screen], tmp_path: Path
) -> None:
    first = screen()
    first.until("the run", session=None)
    os.kill(first.link.pid, signal.SIGTERM)
    wait_for("the end of the run", lambda: not (folder / "run.json").exists())
    with pytest.raises(StateError, match="no run of"):
        Attachment(folder)
    assert not first.link.renew()
    wait_for("the end of its process", lambda: not first.link.alive())
    first.state.clear()
    with running(folder, tmp_path / "next.log"):
        wait_for("the next run", lambda: (folder / "run.json").is_file())
        assert first.link.renew() and not first.link.renew(), "once for each run"
        first.until("the next run", session=None)
        assert first.order("session", people=PEOPLE, checks={})["ok"]
