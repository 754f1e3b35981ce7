"""What `labctl static` says where no answer of a policy could be held against the person's tool."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
from support.runs.campaigns import cell_toml

from labctl.checks.keyframes import Keyframe
from labctl.checks.offline_evaluation import _ask, _Question
from labctl.checks.offline_frames import Path
from labctl.clock import SECOND
from labctl.config.cell_schema import parse_cell
from labctl.devices import ActionChunk, Observation, Pace
from labctl.errors import StateError
from labctl.exports.recordings import Recording

CELL = parse_cell(cell_toml(cameras=False), "c.toml")
TCP = np.array([0.4, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0])


class OneAction:
    """A policy of a single action, which counts from the capture."""

    def __init__(self, cameras: tuple[str, ...] = ()) -> None:
        self.pace = Pace(cameras=cameras)

    def load(self) -> None: ...

    def warm(self, seen: Observation) -> None: ...

    def reset(self, seed: int) -> None: ...

    def close(self) -> None: ...

    def infer(self, seen: Observation) -> ActionChunk:
        return ActionChunk("tcp_velocity", np.zeros((1, 6)), np.zeros(1), dt_s=0.1, execute=1, starts="capture")


@pytest.mark.parametrize(
    ("cameras", "words"),
    [
        ((), r"policy-a: no keyframe could be compared; of 2 answers none has an action that is due"),
        (("wrist",), "policy-a: no keyframe could be compared; is a camera that it reads missing"),
    ],
)
def test_where_nothing_can_be_compared_it_is_said_whether_nothing_was_asked_or_no_action_is_due(
    cameras: tuple[str, ...], words: str
) -> None:
    t_ns = np.arange(0, 3 * SECOND, SECOND // 10)
    n = len(t_ns)
    way = Path(t_ns, np.zeros((n, 7)), np.zeros((n, 7)), np.tile(TCP, (n, 1)), np.zeros(n))
    chosen = SimpleNamespace(episode="e-1")
    recording = cast(Recording, SimpleNamespace(pictures={}, go_ns=0, end_ns=3 * SECOND, chosen=chosen))
    about = _Question(recording, way, [Keyframe(SECOND, "even"), Keyframe(2 * SECOND, "even")], "", "towels")
    with pytest.raises(StateError, match=words):
        _ask(cast(Any, OneAction(cameras)), "policy-a", [about], CELL, cast(Any, None))
