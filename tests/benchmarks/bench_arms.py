"""What a real arm's driver costs and how late it is, against the emulators: printed, not judged.

CPU shares are of one core. Command-to-motion: from a setpoint's own time to the first state in which the arm moves.
Jitter is counted in the controller's own time, which a busy machine does not bend.
"""

from __future__ import annotations

import numpy as np
import pytest
from support.robots.cells import cell_named, changed
from support.robots.emulators import Emulators

from labctl.clock import SECOND, cpu_ns
from labctl.testing.robot import RobotRig

CELLS = {"emulated_fr3": 1000.0, "emulated_ur5e": 500.0, "emulated_ur5": 125.0}


@pytest.mark.benchmark
@pytest.mark.parametrize("name", list(CELLS))
def test_an_arm_process_at_full_rate(name: str) -> None:
    cell = changed(cell_named(name), {"robot": {"state_hz": CELLS[name]}})
    with Emulators() as emulators:
        rig = RobotRig("emulated", emulators.options(name), cell, live=True)
        try:
            rig.connect()
            robot, start = rig.robot, rig.robot.observe()["q"]
            rig.batches.clear()
            cpu, wall = cpu_ns(), rig.now_ns
            rig.wait(3 * SECOND)
            idle = (cpu_ns() - cpu) / (rig.now_ns - wall)
            swing = 0.1 * np.sin(np.linspace(0, 4 * np.pi, round(4 * robot.control_hz)))
            wave = start + swing[:, None] * np.eye(robot.dof)[0]
            began = rig.now_ns
            cpu, wall = cpu_ns(), rig.now_ns
            actions = rig.follow(wave)
            busy = (cpu_ns() - cpu) / (rig.now_ns - wall)
            rig.drain()
            columns = next(spec for spec in robot.streams if spec.name == "arm/state").columns
            state = [batch for batch in rig.batches if batch.stream == "arm/state"]
            t_ns = np.concatenate([batch.t_ns for batch in state])
            values = np.concatenate([batch.values for batch in state])
            device = values[:, columns.index("device_s")]
            gaps = np.round(np.diff(device) * CELLS[name])
            moved = (t_ns > began) & (np.abs(values[:, : robot.dof] - start).max(axis=1) > 1e-4)
            asked = actions.t_ns[np.abs(actions.requested[:, :-1] - start).max(axis=1) > 1e-4][0]
            latency_ms = (t_ns[moved][0] - asked) / 1e6
            read = len(device) / (1 + gaps.sum())
            print(
                f"\n{name} at {CELLS[name]:g} Hz: CPU {idle:.2f} idle, {busy:.2f} moving; states read {read:.2%}; "
                f"setpoints given {actions.delay_s.mean() * 1e3:.1f} ms after their time (worst "
                f"{actions.delay_s.max() * 1e3:.1f}); command to motion {latency_ms:.0f} ms; "
                f"states one period apart {np.mean(gaps == 1):.2%}"
            )
        finally:
            rig.robot.close()
