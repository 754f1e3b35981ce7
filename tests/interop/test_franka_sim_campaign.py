"""A whole campaign of labctl on franka-sim, a robot that nobody here wrote: `make peer-franka-sim`.

Its scene knows no items: two policies turn the first joint to and fro, a prompt operator stages and scores. Every
process is labctl's own, and the record is verified. Its time is this machine's: see `test_franka_sim`.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest
from support.policies.cards import card_toml
from support.robots.emulators import address
from support.runs.campaigns import PROMPT, make_campaign
from support.runs.live_campaign import of_kind, running, wait_for

from labctl.core.events import Kind
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign

pytestmark = [pytest.mark.interop, pytest.mark.limit(600)]

PATIENCE_S, JUST_BEFORE = 200.0, 20
SERVER, RECORD = Path(__file__).with_name("franka_sim_server.py"), "commanded.jsonl"
DRIVER = """driver = "emulated"          # wraps the real driver and adds what a simulated cell's sensors know"""
OPTIONS = """[robot.options]
driver = "franka"
[robot.options.driver_options]"""
TOOL = "[robot.options]\ntool_z_m = 0.0\ntool_rpy_rad = [0.0, 0.0, 0.0]\ntool_kg = 0.0"  # it has no end effector
WAVES = """
import numpy as np


class Wave:
    def __init__(self):
        self._asked = 0

    def reset(self):
        self._asked = 0

    def __call__(self, seen):
        self._asked += 1
        by_rad = BY * (1 if self._asked // 6 % 2 else -1) * np.linspace(0.25, 1.0, 4)
        joints = np.asarray(seen["observation/joint_position"], float).ravel()[:7]
        way = joints + by_rad[:, None] * np.eye(7)[0]
        return {"actions": np.column_stack([way, np.zeros(4)])}
"""


def test_a_campaign_on_a_robot_that_nobody_here_wrote_is_recorded_and_verified(tmp_path: Path) -> None:
    python, host, lab = os.environ.get("FRANKA_SIM"), address(), tmp_path / "lab"
    assert python, "set FRANKA_SIM to the Python of an environment with franka-sim"
    record, log = tmp_path / RECORD, tmp_path / "run.log"
    (lab / "protocols" / "cards").mkdir(parents=True)
    (lab / "protocols" / "cards" / "wave.toml").write_text(card_toml("callable", rate=10.0))
    arms = []
    for name, by_rad in (("wide", 0.03), ("narrow", 0.02)):
        (lab / f"waves_{name}.py").write_text(WAVES.replace("BY", str(by_rad)))
        options = {"card": "cards/wave.toml", "function": f"waves_{name}:Wave"}
        arms.append({"name": name, "kind": "policy", "controller": "policy_callable", "options": options})
    process = subprocess.Popen([python, str(SERVER), host, str(record)])
    try:
        wait_for("franka-sim", record.exists)
        opened = make_campaign(
            lab,
            arms,
            base="emulated_fr3",
            cell={
                **PROMPT,
                DRIVER: 'driver = "franka"',
                OPTIONS: TOOL,
                "[robot.options.driver_options.gripper]": "[robot.options.gripper]",
                "silence_s = 0.9": "silence_s = 5.0",
                "home_speed_rad_s = 0.5": "home_speed_rad_s = 0.15",  # its bodies follow slowly
                "[1.0, 1.0, 1.0, 1.0, 1.2, 1.2, 1.2]": "[0.2, 0.2, 0.2, 0.2, 0.2, 0.2, 0.2]",
                "127.0.0.2": host,
            },
            durable=True,
            live=True,
            budget=6.0,
            arming=12.0,  # beside a load of 30 four seconds voided both episodes as not ready (seen)
        )
        with running(opened.folder, log) as run, contextlib.suppress(subprocess.TimeoutExpired):
            run.wait(timeout=PATIENCE_S)  # of a run that is not over by then its record says why
    finally:
        process.terminate()
        process.wait(10)
    rows = [json.loads(line) for line in record.read_text().splitlines()]
    late, lost = sum(bool(row.get("late")) for row in rows), sum("lost" in row for row in rows)
    missed = [row.get("lost", row.get("id")) for row in rows if "lost" in row or row.get("late")]
    broken = [(row["id"], row["bad"]) for row in rows if row.get("bad")]
    bad = [text for at, text in broken if not any(at - JUST_BEFORE <= one <= at for one in missed)]
    print(f"broken where cycles were lost just before: {len(broken) - len(bad)} of {len(broken)}")
    print(f"franka-sim: {sum('id' in row for row in rows) - late} cycles in time, {late} late, {lost} lost; {bad}")
    assert not bad, bad
    if broken:
        pytest.xfail(f"cycles were lost just before, the machine is too busy: {lost} lost, {late} late, {broken}")
    assert run.returncode == 0, log.read_text()
    assert len(of_kind(opened.folder, Kind.OUTCOME_RECORDED)) == 2, log.read_text()
    assert verify_campaign(opened.folder).problems == []
    store = TraceStore.open(f"sqlite:///{opened.folder / 'traces.db'}", opened.folder.name, readonly=True)
    try:
        for started in of_kind(opened.folder, Kind.EPISODE_STARTED):
            assert started.body["robot"]["firmware"] == "robot server 10"
            went = float(np.ptp(store.read(started.episode or "", "arm/state")[1][:, 0]))
            assert went > 0.005, "the policy moved the robot"
    finally:
        store.close()
