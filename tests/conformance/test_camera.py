"""What every camera does, whichever it is: the contract of labctl.devices.Camera.

Simulated ones and recordings go by a clock that the test turns; live ones by the host's. The RealSense ones are
librealsense's own: a pipeline fed by a software_device, and a recording by its recorder. The OpenCV ones are FFmpeg's:
a stream from loopback and a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.cameras.mjpeg import MjpegServer
from support.cameras.recorded_videos import write_video
from support.cameras.software_realsense import SoftRealSense

from labctl.testing.camera import CameraConformance, CameraRig, LosableCameraConformance

pytestmark = pytest.mark.real_time


def sim(view: str) -> Iterator[CameraRig]:
    yield CameraRig("sim_camera", {"view": view}, rate_hz=10.0, live=False, kind="sim")


def opencv_url(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[CameraRig]:
    with MjpegServer(320, 240, 30.0) as server:
        rig = CameraRig("opencv_camera", {"source": server.url}, rate_hz=30.0, live=True, kind="real")
        rig.lose, rig.mend = (lambda: setattr(server, "fault", "close")), (lambda: setattr(server, "fault", ""))
        yield rig


def opencv_file(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[CameraRig]:
    path = write_video(folder / "film.mp4", [i * 100_000 // 3 for i in range(60)])
    rig = CameraRig("opencv_camera", {"source": str(path)}, rate_hz=30.0, live=False, kind="replay")
    rig.lose = lambda: None  # its end comes by itself
    yield rig


def realsense_live(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[CameraRig]:
    with SoftRealSense() as soft:
        patch.setattr("labctl.drivers.realsense.camera.connected_devices", lambda: [soft.device])
        rig = CameraRig("realsense", {}, rate_hz=30.0, live=True, kind="real")
        rig.lose, rig.mend = (lambda: setattr(soft, "fault", "silent")), (lambda: setattr(soft, "fault", ""))
        yield rig


def realsense_replay(folder: Path, patch: pytest.MonkeyPatch) -> Iterator[CameraRig]:
    path = SoftRealSense().record(folder / "golden.db3", range(1, 61))
    rig = CameraRig("realsense", {"file": str(path)}, rate_hz=30.0, live=False, kind="replay")
    rig.lose = lambda: None
    yield rig


RIGS: dict[str, Callable[[Path, pytest.MonkeyPatch], Iterator[CameraRig]]] = {
    "sim-over_shoulder": lambda folder, patch: sim("over_shoulder"),
    "sim-wrist": lambda folder, patch: sim("wrist"),
    "opencv-url": opencv_url,
    "opencv-file": opencv_file,
    "realsense-live": realsense_live,
    "realsense-replay": realsense_replay,
}
LOSABLE = [name for name in RIGS if not name.startswith("sim")]


class OurCameras:
    """Each of the cameras that a parameter names."""

    @pytest.fixture(params=list(RIGS))
    def rig(
        self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> Iterator[CameraRig]:
        making = RIGS[request.param](tmp_path, monkeypatch)
        made = next(making)
        try:
            yield made
        finally:
            made.camera.close()
            list(making)


class TestEveryCamera(OurCameras, CameraConformance):
    pass


@pytest.mark.parametrize("rig", LOSABLE, indirect=True)
class TestCamerasThatAreLost(OurCameras, LosableCameraConformance):
    pass
