"""What `labctl queue` says that comes next is a command as it is typed."""

from __future__ import annotations

import pytest

from labctl.cli.queueing.queue import queue
from labctl.cli.queueing.submissions import NEXT
from labctl.queue.entries import OVER, Step


def test_each_step_that_wants_something_of_somebody_has_a_next_command() -> None:
    assert NEXT.keys() == {str(step) for step in Step if step not in OVER and step != Step.APPROVED}


@pytest.mark.parametrize("step", NEXT)
def test_it_names_all_that_the_command_needs(step: str) -> None:
    """It named the submission alone; typed so, "Missing argument 'CAMPAIGN|DIR'" came back."""
    word, *more = NEXT[step].format("s-4fa2c1").split()
    queue.commands[word].make_context(word, more)
