"""The doctor connects to each real camera in a process of its own and counts its pictures: what is not there is told
before an evening, and not as a hold in it.
"""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.cameras.mjpeg import MjpegServer
from support.robots.cells import cell_named

from labctl.checks import doctor, probing
from labctl.checks.doctor import check_cameras, check_drivers
from labctl.clock import SECOND, ManualClock
from labctl.config.cell_schema import CameraTable, Setup
from labctl.devices import Frame
from labctl.errors import DeviceLost
from labctl.testing.given import FIXTURE

AGAIN = "labctl doctor cells/any.toml"


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine takes long to begin a process."""
    monkeypatch.setattr(probing, "PATIENCE_S", 240.0)


def table(name: str, driver: str, **options: Any) -> CameraTable:
    return CameraTable(name=name, driver=driver, width=320, height=240, rate_hz=30.0, options=options)


def of(*cameras: CameraTable) -> Setup:
    cell = cell_named("emulated_fr3")
    return Setup(cell=cell.model_copy(update={"camera": cameras}), fixture=FIXTURE)


@pytest.mark.real_time
def test_a_camera_that_gives_pictures_is_fine_and_one_that_is_not_there_fails() -> None:
    """`labctl doctor CELL` said "a cell could run here" with each camera unplugged, and no trial could begin."""
    pytest.importorskip("cv2")
    with MjpegServer() as server:
        there = table("there", "opencv_camera", source=server.url)
        gone = table("gone", "opencv_camera", source="/dev/video99")
        found = {check.name: check for check in check_cameras(of(there, gone), AGAIN)}
    assert found["camera there"].level != "fail", "a busy machine may lose some of its pictures"
    assert "pictures in a second, 30 asked for" in found["camera there"].text
    assert found["camera gone"].level == "fail" and found["camera gone"].remedy == f"then: {AGAIN}"
    assert "/dev/video99: there is no such device; found: " in found["camera gone"].text
    assert "\n" not in found["camera gone"].text


def test_a_simulated_camera_is_not_asked_and_a_driver_that_does_not_load_fails_by_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(doctor, "probe_camera", lambda *_: pytest.fail("it is not asked"))
    assert check_cameras(of(*cell_named("emulated_fr3").camera, table("odd", "no_such_driver")), AGAIN) == []


def test_the_cameras_of_a_simulated_cell_are_not_asked(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setattr(doctor, "check_cameras", lambda *_: pytest.fail("it is not asked"))
    assert all(check.level == "ok" for check in check_drivers(cell_named("sim_fr3"), tmp_path, AGAIN))


class Filmed:
    """A camera by a manual clock: pictures at its own rate, of its own size; or gone after so many."""

    def __init__(self, clock: ManualClock, rate_hz: float, *, height: int = 240, gone_after: int = 999) -> None:
        self._clock, self._period_ns, self._height, self._gone_after = (
            clock,
            round(SECOND / rate_hz),
            height,
            gone_after,
        )
        self._number, self._due_ns, self.closed = 0, 0, False

    def connect(self, now_ns: int) -> None:
        self._due_ns = now_ns

    def grab(self, now_ns: int) -> Frame | None:
        if now_ns < self._due_ns:
            return None
        if self._number == self._gone_after:
            raise DeviceLost("wrist: no picture for 1.0 s")
        self._due_ns += self._period_ns
        self._number += 1
        return Frame(np.zeros((self._height, 320, 3), np.uint8), now_ns, 0.0, self._number)

    def close(self) -> None:
        self.closed = True


def filmed(monkeypatch: pytest.MonkeyPatch, clock: ManualClock, camera: Filmed, rate_hz: float = 30.0) -> probing.Felt:
    own = table("wrist", "any").model_copy(update={"rate_hz": rate_hz})
    setup: Any = SimpleNamespace(cell=SimpleNamespace(camera=[own]), fixture=None)
    monkeypatch.setattr(probing, "MonotonicClock", lambda: clock)
    monkeypatch.setattr(probing, "load", lambda *_, **__: camera)
    try:
        return probing.film(setup)
    finally:
        assert camera.closed


@pytest.mark.parametrize(("given", "asked"), [(30.0, 30.0), (15.0, 30.0), (0.5, 0.5)])
def test_the_rate_of_a_camera_is_of_what_it_gave(monkeypatch: pytest.MonkeyPatch, given: float, asked: float) -> None:
    clock = ManualClock(SECOND)
    rate_hz = filmed(monkeypatch, clock, Filmed(clock, given), asked).get("pictures", 0.0)
    assert given - 1e-6 <= rate_hz <= given * 4 / 3 + 0.05 and clock.now_ns() <= SECOND + 1.1 * SECOND * max(
        1, 3 / asked
    )


def test_a_rate_far_below_the_cells_is_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    for pictures, level in ((30.0, "ok"), (24.5, "ok"), (15.0, "warn")):
        monkeypatch.setattr(doctor, "probe_camera", lambda *_, pictures=pictures: {"pictures": pictures})
        monkeypatch.setattr(doctor, "load_camera", lambda *_: SimpleNamespace(kind="real"))
        (check,) = check_cameras(of(table("wrist", "opencv_camera")), AGAIN)
        assert check.level == level and bool(check.remedy) == (level == "warn")


def test_pictures_of_another_size_and_none_at_all_are_a_problem(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock(SECOND)
    found = filmed(monkeypatch, clock, Filmed(clock, 30.0, height=480))
    assert found.get("problem") == "its pictures are 320 x 480, the cell asks for 320 x 240"
    silent = Filmed(clock, 30.0)
    silent.connect = lambda now_ns: setattr(silent, "_due_ns", 10**15)  # type: ignore[method-assign]
    assert filmed(monkeypatch, clock, silent).get("problem") == "it gives no pictures"
    with pytest.raises(DeviceLost, match="no picture for"):
        filmed(monkeypatch, clock, Filmed(clock, 30.0, gone_after=5))
