"""Driver "ros2_camera": pictures that a node of ROS 2 publishes, stamped with this computer's clock on receipt.

May not: take another size than the cell asks for, or trust the publisher's clock: it is kept beside as the device's.
Unverified on hardware, and against ROS 2 itself: see docs/ros2.md.
"""

from __future__ import annotations

import contextlib
import io
import queue

import numpy as np

from labctl.clock import MILLISECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Fixture
from labctl.devices import Frame
from labctl.drivers.common.cameras import UNKNOWN, LiveCamera, silent_s
from labctl.drivers.ros2.messages import CompressedImage, Image
from labctl.drivers.ros2.network import FOUND_S, Network, publisher_of, within
from labctl.drivers.ros2.options import Ros2CameraOptions
from labctl.drivers.ros2.publishers import OnePublisher
from labctl.errors import DeviceLost, DeviceRefused
from labctl.plain import CameraAbout

WAIT_S = 0.2
QUEUE = 12
ROWS = {"rgb8": 1, "bgr8": -1}  # how the channels stand


class Topic:
    """See `cameras.Source`."""

    def __init__(self, options: Ros2CameraOptions) -> None:
        self._options = options
        self.size, self.rate_hz = (options.width, options.height), options.rate_hz
        self.shown = f"{options.topic} in ROS 2 domain {options.domain}"
        self._clock = MonotonicClock()
        self._network: Network | None = None
        self._came: queue.Queue[tuple[int, int, CompressedImage | Image]] = queue.Queue(QUEUE)
        self._number, self._format = 0, ""
        self._speaks = OnePublisher()

    def open(self) -> None:
        """Raises DeviceLost when nobody publishes there."""
        given = self._options
        self._network = network = Network(given.domain, given.host, given.peers)
        kind: type[CompressedImage] | type[Image] = CompressedImage if given.compressed else Image
        heard = network.subscribe(given.topic, kind, self._heard)
        if not within(FOUND_S, heard.writers):
            raise DeviceLost(f"{network.shown}: nobody publishes {kind.__name__} on {given.topic}")

    def _heard(self, message: CompressedImage | Image) -> None:
        now = self._clock.now_ns()
        if not self._speaks.takes(publisher_of(message), now):
            return
        self._number += 1
        with contextlib.suppress(queue.Empty):  # all of them may be read meanwhile
            if self._came.full():
                self._came.get_nowait()  # the oldest: a gap in the numbers says so
        self._came.put((now, self._number, message))

    def read(self) -> Frame | None:
        """The next picture. Raises DeviceRefused for one that is not what the cell asks for, or of two cameras."""
        if self._speaks.several(self._clock.now_ns()):
            raise DeviceRefused(
                f"two nodes publish pictures on {self._options.topic}: `ros2 topic info -v` names them; end one"
            )
        try:
            host_ns, number, message = self._came.get(timeout=WAIT_S)
        except queue.Empty:
            return None
        image = _decoded(message) if isinstance(message, CompressedImage) else _raw(message)
        self._format = message.format if isinstance(message, CompressedImage) else message.encoding
        if image.shape[1::-1] != self.size:
            wide, high = image.shape[1::-1]
            raise DeviceRefused(
                f"it gives pictures of {wide} x {high}, the cell asks for {self.size[0]} x {self.size[1]}; change "
                "width and height of this [[camera]], or the node's"
            )
        stamp_ms = message.header.stamp.ns / MILLISECOND
        return Frame(image, host_ns, stamp_ms, number, domain="ros", counted=False)

    def about(self) -> CameraAbout:
        """See `labctl.devices.Camera`."""
        return {**UNKNOWN, "source": self.shown, "software": "ROS 2 over Cyclone DDS", "format": self._format}

    def close(self) -> None:
        network, self._network = self._network, None
        if network is not None:
            network.close()


def _raw(message: Image) -> np.ndarray:
    """RGB (height, width, 3). Raises DeviceRefused for an encoding that is no colour picture of 8 bits, or other bytes
    than its size takes.
    """
    if message.encoding not in ROWS:
        known = " and ".join(ROWS)
        raise DeviceRefused(f"its encoding is {message.encoding!r}; labctl reads {known}, and CompressedImage")
    if message.step < 3 * message.width or len(message.data) != message.height * message.step:
        raise DeviceRefused(
            f"a picture of {message.width} x {message.height} in rows of {message.step} bytes came with "
            f"{len(message.data)} bytes: the node that publishes it is not sound"
        )
    rows = np.frombuffer(bytes(message.data), np.uint8).reshape(message.height, message.step)
    image = rows[:, : 3 * message.width].reshape(message.height, message.width, 3)
    return np.ascontiguousarray(image[:, :, :: ROWS[message.encoding]])


def _decoded(message: CompressedImage) -> np.ndarray:
    """RGB (height, width, 3) of a JPEG or PNG. Raises DeviceRefused for what is neither."""
    from PIL import Image as Pictures
    from PIL import UnidentifiedImageError

    try:
        with Pictures.open(io.BytesIO(bytes(message.data))) as picture:
            return np.asarray(picture.convert("RGB"))
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError, Pictures.DecompressionBombError) as error:
        raise DeviceRefused(f"a picture of format {message.format!r} cannot be read ({error})") from error


def build(options: Ros2CameraOptions, *, cell: Cell, fixture: Fixture) -> LiveCamera:
    """A camera behind ROS 2."""
    return LiveCamera(Topic(options), open_s=FOUND_S + silent_s(options.rate_hz), frozen_s=options.frozen_s)
