"""A camera with its clock, as the conformance suite looks at it.

May not: know a driver, or wait for a picture for longer than a minute.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from labctl.clock import MILLISECOND, SECOND, MonotonicClock
from labctl.config.cell_schema import Cell
from labctl.devices import Camera, Frame, Kind, load
from labctl.errors import DeviceError
from labctl.plain import Json
from labctl.testing.given import CELL, FIXTURE

CLOCK = MonotonicClock()
STEP_NS = 5 * MILLISECOND
PATIENCE_NS = 60 * SECOND


class CameraRig:
    """A camera of 320x240 pictures with its clock: the host's if it is `live`, else one that goes on at each look.

    `kind` is what the camera has to say of itself. `lose` makes it lost, `mend` undoes what `lose` did; None where it
    cannot be lost.
    """

    width, height = 320, 240

    def __init__(
        self,
        driver: str,
        options: Mapping[str, Json],
        *,
        rate_hz: float,
        live: bool,
        kind: Kind,
        cell: Cell = CELL,
    ) -> None:
        size = {"width": self.width, "height": self.height, "rate_hz": rate_hz}
        self.camera: Camera = load(driver, {**options, **size}, cell=cell, fixture=FIXTURE)
        self.rate_hz, self.live, self.kind = rate_hz, live, kind
        self.lose: Callable[[], object] | None = None
        self.mend: Callable[[], object] = lambda: None
        self._now_ns = SECOND

    def now(self) -> int:
        """The time; a turned clock goes on with each look."""
        self._now_ns += STEP_NS
        return CLOCK.now_ns() if self.live else self._now_ns

    def connect(self) -> None:
        self.camera.connect(self.now())

    def grab(self) -> Frame | None:
        """One look. It returns soon, whatever the camera does."""
        began_ns = CLOCK.now_ns()
        try:
            return self.camera.grab(self.now())
        finally:
            assert CLOCK.now_ns() - began_ns < SECOND

    def frames(self, count: int) -> list[Frame]:
        found: list[Frame] = []
        over_ns = CLOCK.now_ns() + PATIENCE_NS
        while len(found) < count:
            assert CLOCK.now_ns() < over_ns, f"only {len(found)} frames came"
            frame = self.grab()
            found += [frame] if frame is not None else []
        return found

    def until_lost(self) -> DeviceError:
        over_ns = CLOCK.now_ns() + PATIENCE_NS
        while CLOCK.now_ns() < over_ns:
            try:
                self.grab()
            except DeviceError as error:
                return error
        raise AssertionError("it was not lost")
