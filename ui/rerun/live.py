"""A running campaign in Rerun: what its processes publish anyway, drawn as it comes, masked while blinded.

May not: send a message, read a store, show more than a blind role may see, or wait for anything: what comes too fast
is left out.

The timeline is "utc": the wall-clock time of each observation, picture and change of state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import rerun as rr

from labctl.axes import GRIPPER, OPENING, Axis, told_in
from labctl.bus import Message
from labctl.clock import Anchor, wall_ns
from labctl.ui.rerun.blueprint import live_blueprint
from labctl.ui.rerun.palette import JOINTS
from labctl.ui.rerun.parts import FINGERS, UTC, description_of, item_boxes, log_cell, log_robot

JPEG = 80
STATES = ("joint1", "joint2", "joint3", "joint4", "joint5", "joint6", "joint7")
QUIET = ("idle", "moving")  # not drawn: when a robot pauses tells how long its policy thinks
ROWS = {"x": 0, "yaw": 3, "visible": 4, "in_target": 5, "lost": 6, "held": 7}  # of an observed item


@dataclass(frozen=True, slots=True)
class LiveCell:
    """What a campaign's files say of its cell: name, robot model, totes as in `EpisodeView`, names of the cameras, the
    axes of the robot's hand. drives: its base does, so that where the robot stands is not drawn.
    """

    campaign: str
    robot: str
    totes: Mapping[str, tuple[Any, Any, bool]]
    cameras: Sequence[str]
    hand: Sequence[Axis] = OPENING
    drives: bool = False


class LiveView:
    """Draws messages into a viewer at a rerun+http address of loopback, or into any recording that is handed in."""

    def __init__(self, cell: LiveCell, anchor: Anchor, url: str | None = None, recording: Any = None) -> None:
        """anchor: the host's clock beside the wall clock, now."""
        self._wall_from = wall_ns(anchor.wall) - anchor.mono_ns
        identity = f"live {cell.campaign}"
        self._to = recording or rr.RecordingStream("labctl", recording_id=identity, send_properties=False)
        self._to.set_log_time_enabled(False)
        self._opens = bool(cell.hand) and all(axis.kind == "opening" for axis in cell.hand)
        blueprint = live_blueprint(cell.cameras, opens=self._opens, axes=len(cell.hand))
        if url is not None:
            self._to.connect_grpc(url, default_blueprint=blueprint)
        self._to.send_recording_name(f"{cell.campaign}, live")
        self._to.send_blueprint(blueprint)
        self._logged: dict[str, str] = {}
        self._totes = cell.totes
        log_cell(self._to, cell.totes)
        self._named: list[str] = []
        self._joints = self._load("" if cell.drives else cell.robot)
        self._to.log("world/items", rr.Boxes3D.from_fields(fill_mode=rr.components.FillMode.Solid), static=True)
        self._to.log("world/tcp", rr.Points3D.from_fields(colors=[(255, 110, 60)], radii=[0.009]), static=True)
        lines = [axis.name if self._opens or axis.unit == "1" else f"{axis.name}, {axis.unit}" for axis in cell.hand]
        lines = ["measured"] if lines == [GRIPPER] else lines
        colours = [(110, 220, 130), *JOINTS][: len(lines)]
        self._to.log("gripper", rr.SeriesLines(names=lines, colors=colours), static=True)

    def _load(self, robot: str) -> list[Any]:
        description = description_of(robot, FINGERS)
        found = log_robot(self._to, description) if description else []
        turning = [joint for joint in found if joint.joint_type == "revolute"]
        self._name([joint.name.removesuffix("_joint").split("fr3_")[-1] for joint in turning] or list(STATES))
        return found

    def _name(self, names: list[str]) -> None:
        """The legend of the arm's curves."""
        self._named = names
        colours = [JOINTS[i % len(JOINTS)] for i in range(len(names))]
        self._to.log("joints/q", rr.SeriesLines(names=names, colors=colours, widths=[1.5] * len(names)), static=True)

    def draw(self, messages: Iterable[Message], now_ns: int) -> None:
        """Draw what has arrived. Anything that is not understood is left out."""
        for message in messages:
            if message.kind == "obs":
                self._observation(message)
            elif message.kind == "preview":
                self._picture(message)
            elif message.kind == "state":
                self._state(message.body, now_ns)

    def close(self) -> None:
        """Send what is left, for at most a second, and let go."""
        self._to.flush(timeout_sec=1.0)
        self._to.disconnect()

    def _at(self, t_ns: int) -> None:
        self._to.set_time(UTC, timestamp=np.datetime64(int(t_ns) + self._wall_from, "ns"))

    def _observation(self, message: Message) -> None:
        seen, body = message.arrays, message.body
        self._at(body["t_ns"])
        self._timeline("2_arm", "" if body["mode"] in QUIET else f"{body['mode']} {body.get('reason') or ''}".strip())
        self._aim(seen)
        q = np.asarray(seen["q"], dtype=float)
        if body.get("axes"):
            told = [told_in(unit) for _, unit in body["axes"][: len(q)]]
            own = [axis for axis, kept in zip(body["axes"], told, strict=False) if kept]
            names = [name if unit == "rad" else f"{name}, {unit}" for name, unit in own]
            short = self._joints and len(names) == len(self._named)  # those of the one robot that is drawn
            if not short and names != self._named:
                self._name(names)
            q = q[told]
        self._to.log("joints/q", rr.Scalars(q))
        hand = np.asarray(seen["gripper"], dtype=float)
        self._to.log("gripper", rr.Scalars(1000 * hand if self._opens else hand))
        turning = iter(q.tolist())
        for joint in self._joints:
            value = float(hand[0]) / 2 if self._opens and joint.name in FINGERS else None
            value = next(turning, None) if joint.joint_type == "revolute" else value
            if value is not None:
                self._to.log(f"world/joints/{joint.name}", joint.compute_transform(value, clamp=False))
        self._to.log("world/tcp", rr.Points3D([np.asarray(seen["tcp"][:3], dtype=float)]))
        items = np.asarray(seen.get("items", np.empty((0, 8))), dtype=float)
        if items.size:
            flags = items[:, [ROWS["held"], ROWS["in_target"], ROWS["lost"]]]
            size = seen["object"][:3] if "object" in seen else None
            boxes = item_boxes(items[:, :3], items[:, ROWS["yaw"]], flags, size)
            self._to.log("world/items", rr.Boxes3D(**boxes))

    def _aim(self, seen: Mapping[str, np.ndarray]) -> None:
        """Colour the tote where items go, once it is known or another one."""
        if "target_tote" not in seen:
            return
        middle = np.asarray(seen["target_tote"][:3], dtype=float)
        target = next((name for name, (centre, *_) in self._totes.items() if np.allclose(centre, middle)), "")
        if self._logged.get("target") != target:
            self._logged["target"] = target
            log_cell(self._to, {name: (*where[:2], name == target) for name, where in self._totes.items()})

    def _picture(self, message: Message) -> None:
        self._at(message.body["t_ns"])
        image = rr.Image(np.ascontiguousarray(message.arrays["image"]))
        self._to.log(f"cameras/{message.body['camera']}", image.compress(jpeg_quality=JPEG))

    def _state(self, body: Mapping[str, Any], now_ns: int) -> None:
        """The state of the run, as a page and, where it changed, as timelines and lines."""
        self._at(now_ns)
        holds = [hold["code"] for hold in body.get("holds", ())]
        self._timeline("1_trial", str(body.get("trial_state") or ""))
        self._timeline("3_holds", ", ".join(holds))
        done, total = body.get("progress") or (0, 0)
        rows = [
            ("state", body.get("trial_state")),
            ("condition", body.get("condition")),
            ("trial", body.get("trial")),
            ("block", None if body.get("block") is None else body["block"] + 1),
            ("finished", f"{done} of {total} trials"),
            ("holds", "; ".join(hold["text"] for hold in body.get("holds", ())) or "none"),
        ]
        lines = [f"| {name} | {value} |" for name, value in rows if value is not None]
        page = "\n".join(["| | |", "|---|---|", *lines])
        if self._logged.get("page") != page:
            self._logged["page"] = page
            self._to.log("about", rr.TextDocument(page, media_type="text/markdown"))

    def _timeline(self, name: str, state: str) -> None:
        if self._logged.get(name) == state:
            return
        self._logged[name] = state
        self._to.log(f"lanes/{name}", rr.StateChange(state=state))
        if state:
            level = "WARN" if name == "3_holds" else "INFO"
            self._to.log("events", rr.TextLog(f"{name[2:]}: {state}", level=level))
