"""One action chunk on its way to the robot: when each action is due, and what is sent for it.

May not: read a clock, ask for the next chunk, or go on past the actions that were to be executed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from labctl import rotations
from labctl.bus import Message
from labctl.clock import SECOND
from labctl.devices import ActionChunk
from labctl.messages.motion import Target
from labctl.nodes.targets import POSE

POSES = ("tcp_pose", "tcp_step")
SHORT = 1e-6  # of a quaternion: no rotation can be read from it
MOST = 1e6  # of any number of an answer: metres, radians and seconds of nothing that is meant, and none overflows later
STEPS = {"joint_step": "joint_position", "tcp_step": "tcp_pose"}  # added to what is measured when a step begins


class Play:
    """The executed part of a chunk, from an answer that came at `now_ns` to an observation captured at `capture_ns`.

    t_ns (n,): when each action is to be reached; n is 0 when all of them were past before they came. The first of them
    begins when the answer comes. Targets carry `epoch` and `episode`.
    """

    def __init__(self, chunk: ActionChunk, capture_ns: int, now_ns: int, epoch: int, episode: str) -> None:
        self._address = (epoch, episode)
        self._dt_ns = round(chunk.dt_s * SECOND)
        due = now_ns + self._dt_ns * np.arange(1, len(chunk.values) + 1, dtype=np.int64)
        if chunk.starts == "capture":
            due = capture_ns + self._dt_ns * np.arange(len(chunk.values), dtype=np.int64)
        past = int(np.searchsorted(due, now_ns, side="right"))
        chosen = slice(past, past + chunk.execute)
        values = _turned_by_units(chunk.values[chosen]) if chunk.space in POSES else chunk.values[chosen]
        self.t_ns, self._values, self._gripper = due[chosen], values, chunk.gripper[chosen]
        self._space, self._stepped = STEPS.get(chunk.space, chunk.space), chunk.space in STEPS
        self._about = np.array(chunk.about_m)
        self._next = 0
        self.done = chunk.done

    @property
    def ends_ns(self) -> int:
        """When the last action is to be reached."""
        return int(self.t_ns[-1])

    def hand(self, now_ns: int) -> np.ndarray:
        """What the hand's axes are asked for now, (h,): that of the action which is on its way, or was the last."""
        place = int(np.searchsorted(self.t_ns, now_ns))
        return np.atleast_1d(self._gripper[min(place, len(self._gripper) - 1)])

    @property
    def due_ns(self) -> int | None:
        """When something is to be sent next: the beginning of a step; None when all is on its way."""
        return int(self.t_ns[self._next]) - self._dt_ns if self._next < len(self.t_ns) else None

    def targets(self, now_ns: int, measured: Mapping[str, np.ndarray]) -> list[Message]:
        """What is due: the whole chunk at once, or the step that begins now, from what is measured now.

        A step that was to be over by now is left out: two at once would be twice as fast.
        """
        if self._next >= len(self.t_ns):
            return []
        if not self._stepped:
            self._next = len(self.t_ns)
            return [self._target(slice(None), self._values)]
        while self._next < len(self.t_ns) and self.t_ns[self._next] <= now_ns:
            self._next += 1
        due = self.due_ns
        if due is None or now_ns < due:
            return []
        one = slice(self._next, self._next + 1)
        self._next += 1
        return [self._target(one, self._stepped_to(self._values[one][0], measured)[None, :])]

    def _target(self, part: slice, values: np.ndarray) -> Message:
        t_ns = self.t_ns[part]
        target = Target(*self._address, self._space, self._dt_ns, int(t_ns[-1]), self._stepped)
        return target.to("arm", {"t_ns": t_ns, "values": values, "gripper": self._gripper[part]})

    def _stepped_to(self, step: np.ndarray, measured: Mapping[str, np.ndarray]) -> np.ndarray:
        if self._space == "joint_position":
            return np.asarray(measured["q"]) + step
        tools = np.reshape(tools_of(measured), (-1, POSE)), np.reshape(step, (-1, POSE))
        return np.concatenate([stepped(tcp, one, self._about) for tcp, one in zip(*tools, strict=True)])


def _turned_by_units(values: np.ndarray) -> np.ndarray:
    """Poses (n, 7 k) of k tools with quaternions of length one: a mean of some, or a network's numbers, mean the same
    rotation, and not every driver's solver would take them for it.
    """
    poses = np.array(values, float).reshape(-1, POSE)
    poses[:, 3:] = rotations.unit(poses[:, 3:])
    return poses.reshape(np.shape(values))


def tools_of(measured: Mapping[str, np.ndarray]) -> np.ndarray:
    """The tool poses (7 k,) of an observation: of the robot, and of a second one behind it."""
    others = [measured[name] for name in measured if name.endswith(".tcp")]
    return np.concatenate([measured["tcp"], *others])


def stepped(tcp: np.ndarray, step: np.ndarray, about: np.ndarray) -> np.ndarray:
    """A tool pose (7,) after a "tcp_step" (7,) that moves and turns the point `about` (3,) m of the tool's frame."""
    turned = rotations.unit(rotations.product(step[3:], tcp[3:]))
    at = tcp[:3] + step[:3]
    if about.any():
        at = at + rotations.turned(tcp[3:], about) - rotations.turned(turned, about)
    return np.concatenate([at, turned])


def chunk_problem(chunk: ActionChunk, dof: int, hand: int = 1, tools: int = 1) -> str | None:
    """Why a robot of `dof` axes of its arm and `hand` of its hand cannot execute an answer, or None: wrong shapes,
    nothing to execute, not finite or beyond all sense, no rotation. tools: how many it leads, of two robots two.
    """
    values, gripper = np.asarray(chunk.values), np.asarray(chunk.gripper)
    of_hand = (len(values),) if hand == 1 else (len(values), hand)
    if values.ndim != 2 or not len(values) or gripper.shape != of_hand:
        return f"action chunk of shape {values.shape} with {gripper.shape} gripper values"
    if chunk.execute < 1 or not 0 < chunk.dt_s <= MOST:
        return f"action chunk with execute={chunk.execute} and dt_s={chunk.dt_s}"
    widths = {"tcp_pose": POSE * tools, "joint_position": dof, "tcp_velocity": 6 * tools, "joint_velocity": dof}
    widths |= {"joint_step": dof, "tcp_step": POSE * tools}
    if chunk.space not in widths:
        return f"action chunk in the space {chunk.space!r}; known spaces: {', '.join(widths)}"
    if values.shape[1] != widths[chunk.space]:
        return f"{chunk.space} actions need {widths[chunk.space]} values, got {values.shape[1]}"
    if not (np.isfinite(values).all() and np.isfinite(gripper).all()):
        return "action chunk with values that are not finite"
    if (most := max(np.abs(part).max(initial=0.0) for part in (values, gripper))) > MOST:
        return f"{chunk.space} actions of up to {most:.3g}, more than the {MOST:g} that any may be"
    if chunk.space in POSES and np.linalg.norm(values.reshape(-1, POSE)[:, 3:], axis=1).min() < SHORT:
        return f"{chunk.space} actions with a quaternion of no length, which is no rotation"
    return None
