"""The stream `policy`: one row for each question put to a controller, and what became of it.

May not: be shown to anyone before unblinding; its rates and delays differ between arms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from labctl.clock import SECOND
from labctl.devices import ActionChunk, Batch
from labctl.nodes.playing import Play
from labctl.streams import StreamSpec

# capture: when the robot's state was read (docs/policies.md); image: of the oldest picture used; first: when the first
# action began; server: the policy's own time; call: the server's for all of the question; gpu_memory: what the server
# holds. -1: there was none. executed is 0 for an answer that was not used, late is 1 for one that was not there by the
# deadline.
POLICY = StreamSpec(
    "policy",
    (
        *("capture_ns", "request_ns", "reply_ns", "actions", "executed", "dt_ns"),
        *("image_ns", "first_ns", "server_us", "late", "call_us", "gpu_memory_mb"),
    ),
    "ns, count, us, MB",
    1.0,
    dtype="<i8",
    arm_dependent=True,
)


@dataclass(frozen=True, slots=True)
class Question:
    """What was asked, and when: the times of the state, of the oldest picture (-1: none), and of the asking; and with
    which instruction.
    """

    capture_ns: int
    image_ns: int
    request_ns: int
    instruction: str


def question_row(
    question: Question,
    now_ns: int,
    *,
    reply_ns: int = -1,
    chunk: ActionChunk | None = None,
    play: Play | None = None,
    late: bool = False,
) -> Batch:
    """The row of a question whose end is known now; `chunk` is its answer, `play` what of it is sent from now on."""
    actions, executed, dt_ns, server_us, call_us, gpu_mb = 0, 0, 0, -1, -1, -1
    if chunk is not None:
        actions, executed = len(chunk.values), 0 if play is None else len(play.t_ns)
        dt_ns = round(chunk.dt_s * SECOND)
        server_us, call_us = _whole(chunk.server_s, 1e6), _whole(chunk.call_s, 1e6)
        gpu_mb = _whole(chunk.gpu_memory_mb, 1.0)
    first_ns = -1 if play is None else now_ns
    row = (question.capture_ns, question.request_ns, reply_ns, actions, executed, dt_ns)
    rest = (question.image_ns, first_ns, server_us, int(late), call_us, gpu_mb)
    return Batch(POLICY.name, np.array([now_ns], np.int64), np.array([[*row, *rest]], np.int64))


def _whole(measured: float, scale: float) -> int:
    """A number that the policy's side measured, in whole units; -1 for none."""
    return -1 if math.isnan(measured) else round(measured * scale)
