"""What `labctl queue` says that comes next is a command as it is typed."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from support.runs.campaigns import ROOT
from support.submissions.outside import outside

from labctl.cli import call
from labctl.cli.queueing.queue import queue
from labctl.cli.queueing.submissions import ENDED, NEXT
from labctl.errors import StateError
from labctl.queue.entries import OVER, Did, Step, Submission, may

WORDS = {"dry-run": Did.DRY_RUN, "approve": Did.APPROVED, "arm": Did.ARM_WRITTEN, "withdraw": Did.WITHDRAWN}


def test_each_step_that_wants_something_of_somebody_has_a_next_command() -> None:
    assert NEXT.keys() == {str(step) for step in Step if step not in OVER and step != Step.APPROVED}


@pytest.mark.parametrize("step", Step)
@pytest.mark.parametrize("wish", [*WORDS.values(), Did.REFUSED])
def test_what_is_named_instead_may_be_done_and_is_a_whole_command(step: Step, wish: Did) -> None:
    """Approved twice, a submission was said to need a dry run, which it may not have any more; the dry run's second
    argument was not named; whoever wanted to write an arm was told no command.
    """
    submission = Submission("s-4fa2c1", "first", "2026-12-01T00:00:00+00:00", step, entered="second")
    try:
        may(submission, wish)
    except StateError as error:
        commands = re.findall(r"labctl queue (.*)$", str(error))
        assert len(commands) == (step not in OVER or step == Step.ENTERED), error
        for word, *more in map(str.split, commands):
            queue.commands[word].make_context(word, more)
            may(submission, WORDS[word])


def test_a_request_that_expired_is_said_to_be_over_and_nothing_has_no_time_where_there_is_no_shift(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its next command was the dry run, which is then refused."""
    theirs = outside(tmp_path)
    id = theirs.taken_in()
    (theirs.lab / "fixtures").mkdir()
    shutil.copy(ROOT / "fixtures/two_totes.toml", theirs.lab / "fixtures")
    assert call(["queue", "add", str(theirs.lab / "protocols/p.toml"), "--lab", str(theirs.lab)]) == 0
    assert call(["queue", "--lab", str(theirs.lab)]) == 0
    said = capsys.readouterr().out
    assert re.search(f"submission {id} .*; expired .*; next: labctl queue {ENDED.format(id)}$", said, re.MULTILINE)
    assert "no time for" not in said and "no shift to come" in said


@pytest.mark.parametrize("step", NEXT)
def test_it_names_all_that_the_command_needs(step: str) -> None:
    """It named the submission alone; typed so, "Missing argument 'CAMPAIGN|DIR'" came back."""
    word, *more = NEXT[step].format("s-4fa2c1").split()
    queue.commands[word].make_context(word, more)
