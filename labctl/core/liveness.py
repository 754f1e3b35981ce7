"""Which processes are there: heartbeats, the robot's last state, what was lost. Feeds the interlocks' snapshot.

May not: decide what a missing process means, or forget a loss that a person has not acknowledged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from labctl.clock import MILLISECOND, SECOND
from labctl.core.interlock import NO_PICTURE_YET, NO_VALUE_YET
from labctl.messages.motion import Obs
from labctl.messages.pictures import CameraState
from labctl.messages.processes import Beats
from labctl.messages.sensing import SensorState

BEAT_LIMIT_NS = 1500 * MILLISECOND
# A policy in the controller's own process may hold its interpreter while it loads: a library of some GB from a disk.
LOADING_NS = 60 * SECOND
CLIP_NS = SECOND
LOOP_STOOD_NS = SECOND  # between two turns of the run's loop: it, not its nodes, was away
START_NS = 20 * SECOND  # from the start of a process to what its device gives first: libraries, and connecting


@dataclass
class Liveness:
    """Ages are against the time handed in. `required` nodes must be there for a trial; a controller comes and goes."""

    required: Sequence[str]
    beats: dict[str, int] = field(default_factory=dict[str, int])
    asked: dict[str, int] = field(default_factory=dict[str, int])
    began: dict[str, int] = field(default_factory=dict[str, int])  # when a process was started last
    deaths: dict[str, int] = field(default_factory=dict[str, int])
    ended: dict[str, str] = field(default_factory=dict[str, str])  # why a process ended last, of those that did
    loaded: bool = False  # the controller has said that it is ready
    obs_ns: int | None = None
    mode: str = "idle"
    mode_reason: str = ""
    clipped: str = ""
    clipped_ns: int = 0
    turned_ns: int = 0  # when the run's loop turned last
    blind: dict[str, str] = field(default_factory=dict[str, str])  # camera node -> why it gives no pictures, or ""
    sensed: dict[str, SensorState] = field(default_factory=dict[str, SensorState])  # what each sensor's node said last

    def greeted(self, name: str, now_ns: int) -> None:
        """A process's hello: only this brings a node back, no late beat of a dying one does."""
        self.beats[name] = now_ns

    def beaten(self, sent: Beats, now_ns: int) -> None:
        for name in sent.names:
            self._beat(name, now_ns)

    def observed(self, sent: Obs, now_ns: int) -> None:
        """The robot's state came, which is a beat of its node too."""
        self.obs_ns, self.mode, self.mode_reason = now_ns, sent.mode, sent.reason
        if sent.clipped:
            self.clipped, self.clipped_ns = sent.clipped, now_ns
        self._beat("arm", now_ns)

    def readied(self) -> None:
        """The controller says that what drives the robot is loaded and warm."""
        self.loaded = True

    def sees(self, sent: CameraState) -> None:
        """A camera says whether it gives pictures."""
        self.blind[sent.name] = sent.lost

    def measures(self, sent: SensorState) -> None:
        """A sensor says whether it gives values, and beyond which limits they are."""
        self.sensed[sent.name] = sent

    def _beat(self, name: str, now_ns: int) -> None:
        if name in self.beats:
            self.beats[name] = now_ns

    def turned(self, now_ns: int) -> int:
        """The run's loop turns: for how long it had not. Through a time in which it stood still nobody was heard, and
        nobody is silent for it.
        """
        stood_ns = now_ns - self.turned_ns if self.turned_ns else 0
        if stood_ns > LOOP_STOOD_NS:
            self.beats = {name: heard + stood_ns for name, heard in self.beats.items()}
        self.turned_ns = now_ns
        return stood_ns

    def ask(self, name: str, now_ns: int) -> None:
        """A process is being started."""
        self.asked[name] = self.began[name] = now_ns

    def starting(self, now_ns: int) -> frozenset[str]:
        """Nodes whose process was started so recently that no message of theirs is due. One that was there before and
        died is not among them: what is wrong with it is to be seen.
        """
        return frozenset(name for name in self.began if self._begins(name, now_ns) and not self.deaths.get(name))

    def gone(self, name: str) -> None:
        """A process has ended."""
        self.beats.pop(name, None)
        self.asked.pop(name, None)
        self.blind.pop(name, None)
        self.sensed.pop(name, None)
        if name == "arm":
            self.obs_ns = None
        if name == "controller":
            self.loaded = False

    def alive(self, name: str) -> bool:
        return name in self.beats

    def unseeing(self, camera: str) -> str:
        """Why a camera node that is there gives no pictures, "" when it does."""
        return self.blind.get(camera, NO_PICTURE_YET) if camera in self.beats else ""

    def unmeasured(self, sensor: str) -> str:
        """Why a sensor node that is there gives no values, "" when it does."""
        if sensor not in self.beats:
            return ""
        return self.sensed[sensor].lost if sensor in self.sensed else NO_VALUE_YET

    def beyond(self, sensor: str) -> Sequence[int]:
        """The limits that a sensor is beyond, as their places in its list."""
        return self.sensed[sensor].beyond if sensor in self.sensed else ()

    def silent(self, now_ns: int) -> list[str]:
        """Nodes that were there and have not been heard for too long: hung or dying. One whose device has not given
        anything yet connects to it, which its node may wait for, and has the time that a start has. A controller that
        is not ready drives nothing, and its trial waits no longer than `arming_s`.
        """
        late = (name for name, heard in self.beats.items() if now_ns - heard > self._limit_ns(name))
        return sorted(name for name in late if self._gives(name) or not self._begins(name, now_ns))

    def _limit_ns(self, name: str) -> int:
        return LOADING_NS if name == "controller" and not self.loaded else BEAT_LIMIT_NS

    def _begins(self, name: str, now_ns: int) -> bool:
        """Whether a node's process was started not long ago."""
        return (at_ns := self.began.get(name)) is not None and now_ns - at_ns < START_NS

    def _gives(self, name: str) -> bool:
        """Whether something has come from the device that a node is there for; true of those without one."""
        if name == "arm":
            return self.obs_ns is not None
        kind = name.partition(":")[0]
        return not (self.unseeing(name) if kind == "camera" else self.unmeasured(name) if kind == "sensor" else "")

    def missing(self) -> list[str]:
        """Required nodes that are neither there nor asked to start."""
        return [name for name in self.required if name not in self.beats and name not in self.asked]

    def age(self, name: str, now_ns: int) -> int | None:
        """Time since a node was last heard, None when it is not there."""
        heard = self.beats.get(name)
        return None if heard is None else now_ns - heard

    def clip(self, now_ns: int) -> str:
        """The limit that shaped the robot's motion within the last second, "" when none did."""
        return self.clipped if now_ns - self.clipped_ns <= CLIP_NS else ""

    def obs_age(self, now_ns: int) -> int | None:
        """Time since the robot's last observation, None when there is none."""
        return None if self.obs_ns is None else now_ns - self.obs_ns
