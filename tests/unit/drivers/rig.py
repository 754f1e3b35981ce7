"""A closed loop of robot and controller without nodes: ticks of 100 ms, chunks joined by straight joint lines."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from labctl.devices import Batch, Controller, DeviceEvent, Observation, Setpoints

TICK_NS = 100_000_000


@dataclass
class Run:
    """What one simulated episode left behind; `ticks` holds the observation at the end of every tick."""

    events: list[DeviceEvent] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)
    ticks: list[dict[str, np.ndarray]] = field(default_factory=list)
    wanted: list[Setpoints] = field(default_factory=list)
    limited: list[Setpoints] = field(default_factory=list)
    sent: list[Setpoints] = field(default_factory=list)
    asked: list[tuple[int, dict[str, np.ndarray]]] = field(default_factory=list)
    infers: int = 0
    end_s: float = 0.0
    reason: str = "budget"

    def of(self, kind: str) -> list[DeviceEvent]:
        return [event for event in self.events if event.kind == kind]


def episode(
    robot: Any,
    controller: Controller,
    *,
    seed: int = 0,
    items: int = 4,
    budget_s: float = 120.0,
    thing: str = "batteries",
    keep: bool = False,
    condition: dict[str, Any] | None = None,
    told: str = "",
) -> Run:
    """Stage, then drive until everything is moved or lost, a safety stop, the controller's word, or the budget."""
    run = Run()
    robot.stage(condition or {"object": thing, "layout": "layout-1", "items": items}, seed, 0)
    controller.load()
    controller.reset(seed + 1)
    period = round(1e9 / robot.control_hz)
    knots_t, knots_q, knots_g = [0.0], [robot.observe()["q"]], [0.08]
    ask_ns, last_q = 0, robot.observe()["q"]
    offsets = np.arange(period, TICK_NS + 1, period)
    done = 0
    seen = robot.observe()
    for start in range(0, round(budget_s * 1e9), TICK_NS):
        if start >= ask_ns:
            chunk = controller.infer(Observation(start, seen, told))
            run.infers += 1
            run.asked.append((start, seen))
            q = robot.to_joints(chunk.values[: chunk.execute], seen["q"])
            begin = start + chunk.delay_s * 1e9
            step = chunk.dt_s * 1e9
            knots_t = [begin, *(begin + step * (1 + np.arange(len(q))))]
            knots_q = np.vstack([last_q, q])
            knots_g = np.array([knots_g[-1], *chunk.gripper[: chunk.execute]])
            last_q = q[-1]
            ask_ns = knots_t[-1]
            if chunk.done:
                run.reason = "controller_done"
                break
        t_ns = start + offsets
        at = np.clip(np.searchsorted(knots_t, t_ns), 1, len(knots_t) - 1)
        left, right = np.array(knots_t)[at - 1], np.array(knots_t)[at]
        share = np.clip((t_ns - left) / (right - left), 0, 1)[:, None]
        wanted = knots_q[at - 1] + share * (knots_q[at] - knots_q[at - 1])
        setpoints = Setpoints(t_ns, wanted, np.asarray(knots_g)[at])
        actions = robot.follow(setpoints)
        limited, sent = (Setpoints(t_ns, rows[:, :-1], rows[:, -1]) for rows in (actions.limited, actions.sent))
        seen = robot.observe()
        events = robot.events()
        run.events += events
        done += sum(event.kind in ("success", "lost") for event in events)
        run.end_s = (start + TICK_NS) / 1e9
        if keep:
            run.ticks.append(seen)
            run.wanted.append(setpoints)
            run.limited.append(limited)
            run.sent.append(sent)
        if start % 1_000_000_000 == 900_000_000:
            batches = robot.drain(start + TICK_NS)
            if keep:
                run.batches += batches
        if any(event.kind == "safety_stop" for event in events):
            run.reason = "safety_stop"
            break
        if done == items:
            run.reason = "all_done"
            break
    robot.stop()
    return run
