"""Processes of a cell: one that is to end before it has begun, and one that cannot be started."""

from __future__ import annotations

import os
import subprocess
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from support.robots.cells import FIXTURE, cell_named

from labctl.clock import SECOND
from labctl.runtime.hosting.cell_nodes import NodeSpec
from labctl.runtime.hosting.supervisor import WORDS_NS, Stamper, Supervisor


class Child:
    """A process that ends when the test says so."""

    pid = 1

    def __init__(self, command: list[str], **given: Any) -> None:
        self.stdin, self.code = BytesIO(), None
        BEGUN.append(self)

    def poll(self) -> int | None:
        return self.code

    def send_signal(self, number: int) -> None: ...


BEGUN: list[Any] = []


@pytest.fixture
def supervisor(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Supervisor:
    BEGUN.clear()
    monkeypatch.setattr(subprocess, "Popen", Child)
    spec = NodeSpec(cell=cell_named("sim_fr3"), fixture=FIXTURE, folder=tmp_path, locks=tmp_path)
    return Supervisor(spec, tmp_path, tmp_path)


def no_process(*command: object, **given: object) -> None:
    raise BlockingIOError(11, "Resource temporarily unavailable")


def test_a_process_that_is_asked_for_while_the_old_one_ends_begins_after_it(supervisor: Supervisor) -> None:
    supervisor.spawn("controller")
    supervisor.kill("controller", 0)
    supervisor.spawn("controller")
    BEGUN[0].code = 0
    assert [message.kind for message in supervisor.poll(0)] == ["exited"] and len(BEGUN) == 2


def test_a_process_that_was_to_follow_and_is_ended_first_never_begins(supervisor: Supervisor) -> None:
    """The next episode's controller would find it there, and never be given its task."""
    supervisor.spawn("controller")
    supervisor.kill("controller", 0)
    supervisor.spawn("controller")
    supervisor.kill("controller", SECOND)
    BEGUN[0].code = 0
    supervisor.poll(2 * SECOND)
    assert len(BEGUN) == 1


def test_the_end_of_a_process_comes_after_the_reason_that_it_sent(supervisor: Supervisor) -> None:
    """The end was seen before the words were read, and a hold said "ended with exit code 1" for its reason."""
    supervisor.spawn("arm")
    BEGUN[0].code = 1
    assert supervisor.poll(SECOND) == supervisor.poll(SECOND + WORDS_NS - 1) == []
    (gone,) = supervisor.poll(SECOND + WORDS_NS)
    assert gone.body == {"name": "arm", "reason": "ended with exit code 1"}
    supervisor.spawn("arm")
    BEGUN[1].code = 1
    assert supervisor.poll(2 * SECOND) == [], "each end by itself"


@pytest.mark.parametrize(("code", "asked"), [(-9, False), (1, True), (0, False)])
def test_an_end_without_a_reason_of_its_own_is_told_at_once(supervisor: Supervisor, code: int, asked: bool) -> None:
    supervisor.spawn("arm")
    if asked:
        supervisor.kill("arm", 0)
    BEGUN[0].code = code
    (gone,) = supervisor.poll(0)
    assert (gone.kind, gone.body.get("asked", False)) == ("exited", asked)


def test_a_process_that_cannot_be_started_is_reported_as_one_that_ended(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "Popen", no_process)
    supervisor.spawn("arm")
    (gone,) = supervisor.poll(0)
    reason = "its process could not be started: [Errno 11] Resource temporarily unavailable"
    assert (gone.to, gone.kind, gone.body) == ("run", "exited", {"name": "arm", "reason": reason})
    assert supervisor.poll(0) == []


def test_a_process_for_whose_words_no_pipe_is_left_is_reported_too(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pipe", no_process)
    supervisor.spawn("arm")
    (gone,) = supervisor.poll(0)
    assert gone.body["reason"].startswith("its process could not be started: ")


def test_a_stamp_that_cannot_be_asked_for_is_said_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subprocess, "Popen", no_process)
    stamper = Stamper(tmp_path)
    stamper._authority, stamper._process = Authority(), Asked()
    stamper.ask()
    assert stamper.close().startswith("the last head has no timestamp")


class Authority:
    timeout_s = 1.0


class Asked:
    """The process of an earlier head, which has ended."""

    def poll(self) -> int:
        return 0

    def wait(self, patience_s: float) -> int:
        return 0
