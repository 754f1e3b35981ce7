"""Messages of the sensors' nodes: whether one gives values, and beyond which of the cell's limits it is.

May not: carry a measured value: how far a limit was exceeded may be private.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from labctl.messages.typed import Typed


@dataclass(frozen=True, slots=True)
class SensorState(Typed, kind="sensor", sender="sensor:*", to="run"):
    """On every change. lost: why it gives no values, "" while it does; beyond: which of its [[sensor.interlock]] it is
    beyond, counted from 0; t_ns: of the sample, or of the loss, that made the change.
    """

    name: str
    lost: str
    beyond: Sequence[int] = ()
    t_ns: int = 0
