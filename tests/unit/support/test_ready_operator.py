"""An operator of live tests starts no trial before what drives the robot is ready, and waits for nothing else."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.runs.ready_operator import PATIENCE_NS, ReadyOperator

from labctl.clock import ManualClock

ARMED: Any = {
    "session": "s-1",
    "people": [{"id": "sim-operator"}],
    "holds": [],
    "compare": None,
    "trial": "t-1",
    "trial_state": "armed",
    "episode": "e-2",
    "allowed": ["start"],
    "operator_ready": False,
    "proposal": None,
    "measured": None,
    "exhausted": False,
}


@pytest.fixture
def openings(tmp_path: Path) -> Iterator[Path]:
    """What a run has written behind the seal; its journal is open in this process."""
    (tmp_path / "seal").mkdir()
    made = tmp_path / "seal" / "openings.jsonl"
    made.write_text(json.dumps({"episode": "e-1", "field": "start_up"}) + "\n" + '{"episode": "e-2", "field": "arm"}\n')
    with (tmp_path / "journal.db").open("wb"):
        yield made


def verb(order: Any) -> str | None:
    return None if order is None else order["verb"]


def test_it_starts_a_trial_once_its_own_episode_is_ready(openings: Path) -> None:
    operator = ReadyOperator()
    assert operator.decide(ARMED) is None
    with openings.open("a") as more:
        more.write('{"episode": "e-2", "field": "start_up"}\n')
    assert verb(operator.decide(ARMED)) == "start"


def test_what_is_never_ready_is_started_all_the_same_and_so_is_void(openings: Path) -> None:
    clock = ManualClock(0)
    operator = ReadyOperator(clock)
    assert operator.decide(ARMED) is None
    clock.sleep_until(PATIENCE_NS + 1)
    assert verb(operator.decide(ARMED)) == "start"


def test_no_other_order_waits() -> None:
    assert verb(ReadyOperator().decide({**ARMED, "allowed": ["commit"]})) == "commit"
