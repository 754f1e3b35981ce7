"""kill -9 of whatever writes to the queue, at each of its steps on the disk: what was acknowledged is there, once, the
record holds, and the same acts go on from there.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from support.machine.warm import Warm, warmed
from support.runs.campaigns import make_campaign
from support.submissions.outside import outside

from labctl.errors import StateError
from labctl.queue import book
from labctl.queue.acts import take_in
from labctl.queue.entries import Step

MOST_STEPS = 80


@pytest.fixture
def warm() -> Iterator[Warm]:
    with warmed("support.submissions.killed_queue") as made:
        yield made


def killed_at(warm: Warm, lab: Path, step: int, requests: list[Path]) -> list[str]:
    """What a process acknowledged that ended itself at this step."""
    told = lab.parent / "told.txt"
    code = warm.start([str(lab), str(step), *map(str, requests)], told).wait()
    assert code in (0, -9), told.read_text()
    return told.read_text().split("\n")[:-1]


@pytest.mark.parametrize("steps", [(9,), pytest.param(range(1, MOST_STEPS), marks=[pytest.mark.thorough])])
def test_what_was_acknowledged_is_there_once_and_the_record_holds(
    warm: Warm, tmp_path: Path, steps: Sequence[int]
) -> None:
    theirs = outside(tmp_path)
    make_campaign(theirs.lab)
    requests = [theirs.request() for _ in range(2)]
    plain = theirs.lab
    for step in steps:
        theirs.lab = lab = tmp_path / f"killed-{step}" / "lab"
        shutil.copytree(plain, lab)
        told = killed_at(warm, lab, step, requests)
        assert book.verify(lab)[2] == [], f"killed at step {step}"
        found = book.read(lab).queue
        acknowledged = [line for line in told if line.startswith("s-")]
        assert list(found.submissions)[: len(acknowledged)] == acknowledged
        assert len(found.submissions) - len(acknowledged) in (0, 1), "the one under way may be there, unacknowledged"
        for line in told:
            if line.startswith("withdrawn"):
                assert found.submission(line.split()[1]).step == Step.WITHDRAWN
        if "added" in told:
            assert [entry.name for entry in found.entries] == ["trial-run"]
        for path in requests:  # again, as whoever saw the kill does
            try:
                take_in(lab, path, theirs.clock, "p01")
            except StateError as error:
                assert "taken in before" in str(error)
        assert len(book.read(lab).queue.submissions) == 2
        assert book.verify(lab)[2] == []
        if "whole" in told:
            assert step > 20
            return
    assert len(steps) < MOST_STEPS - 1, "it never came to its end"
