"""Asks each policy of a protocol for an answer, in a process of its own, and says how long it took. Nothing moves.

May not: open a campaign, be part of a trial, or trust a policy not to crash the process it runs in.

The observation is invented: joints at zero, grey pictures of the cell's sizes. An answer to it shows that server, card
and cell fit each other and how long starting takes; it says nothing about the policy.
"""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from labctl.checks.doctor import Check
from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Observation, Picture, load
from labctl.errors import LabctlError
from labctl.nodes.playing import chunk_problem
from labctl.store.frozen_cards import check_policies, with_cards
from labctl.store.lab_folder import read_cell, read_plan

CHILD = "from labctl.checks.policy_check import ask_main; ask_main()"
ANSWERS = 3
SPARE_S = 20.0  # beyond what the card allows, for the process itself


def check_protocol(protocol: Path, cell: Path) -> list[Check]:
    """One check for each arm with a policy card: it answers, in time for the protocol's arming and its own deadline."""
    try:
        plan, found = read_plan(protocol), read_cell(cell)
        check_policies(plan, found)
    except LabctlError as error:
        return [Check("policies", "fail", str(error), "correct this first")]
    given = {"cell": found.model_dump(mode="json"), "fixture": plan.fixture.model_dump(mode="json")}
    checks = []
    for arm in with_cards(plan.protocol, plan.cards).values():
        card = arm.options.get("card")
        if isinstance(card, Mapping):
            said = ask({**given, "driver": arm.controller, "options": arm.options, "joints": joints(found)})
            checks.append(judged(arm.name, said, card, plan.protocol.trial.arming_s))
    return checks or [Check("policies", "ok", "no arm of this protocol has a policy card")]


def joints(cell: Any) -> int:
    """How many joints the cell's arm has."""
    return len(cell.robot.limits.velocity_rad_s)


def judged(arm: str, said: Mapping[str, Any], card: Mapping[str, Any], arming_s: float) -> Check:
    """What the answers of one policy mean for a campaign."""
    name = f"policy {arm}"
    if "problem" in said:
        return Check(name, "fail", said["problem"], "correct the card, the endpoint or the server")
    ready_s = said["load_s"] + said["warm_s"]
    times = (
        f"ready in {ready_s:.1f} s (first answers {said['warm_s']:.1f} s), then an answer in {said['answer_s']:.3f} s"
    )
    if ready_s > arming_s:
        longer = f"{times}; arming_s is {arming_s:g}, so each of its trials would be void as not_ready"
        return Check(name, "fail", longer, f"raise the protocol's arming_s above {ready_s:.0f}, for every arm alike")
    deadline_s = card["timing"]["deadline_s"]
    if said["answer_s"] > deadline_s:
        return Check(name, "warn", f"{times}; its deadline_s is {deadline_s:g}", "late answers are not used: raise it")
    return Check(name, "ok", times)


def ask(spec: Mapping[str, Any]) -> dict[str, Any]:
    """load_s, warm_s and answer_s of a policy, or its `problem`, from a process of its own.

    spec: driver, options (with the card as a table), cell, fixture, joints.
    """
    card = spec["options"]["card"]
    patience_s = 2 * card["server"]["ready_s"] + ANSWERS * card["timing"]["give_up_s"] + SPARE_S
    words = [sys.executable, "-P", "-c", CHILD]
    try:
        done = subprocess.run(words, input=json.dumps(spec), capture_output=True, text=True, timeout=patience_s)
    except subprocess.TimeoutExpired:
        return {"problem": f"no answer within {patience_s:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("{")]
    if lines:
        return json.loads(lines[-1])
    how = signal.Signals(-done.returncode).name if done.returncode < 0 else f"exit code {done.returncode}"
    return {"problem": f"its process ended ({how})"}


def ask_main() -> None:
    """Entry of the asking process: its spec on standard input, one JSON line on standard output."""
    spec = json.load(sys.stdin)
    try:
        answer = _answers(spec)
    except LabctlError as error:
        answer = {"problem": str(error)}
    except Exception as error:  # a bug in a policy must not look like one that is well
        answer = {"problem": f"{type(error).__name__}: {error}"}
    sys.stdout.write("\n" + json.dumps(answer) + "\n")
    sys.stdout.flush()
    os._exit(0)  # a thread of a policy that hangs would hold the interpreter's end


def _answers(spec: Mapping[str, Any]) -> dict[str, Any]:
    clock = MonotonicClock()
    policy = load(spec["driver"], spec["options"], cell=spec["cell"], fixture=spec["fixture"])
    try:
        began_ns = clock.now_ns()
        policy.load()
        policy.reset(0)
        loaded_ns = clock.now_ns()
        seen = invented(spec["cell"], spec["joints"])
        policy.warm(seen)
        policy.reset(0)
        warmed_ns = clock.now_ns()
        took = []
        for _ in range(ANSWERS):
            asked_ns = clock.now_ns()
            problem = chunk_problem(policy.infer(seen), spec["joints"])
            if problem is not None:
                return {"problem": problem}
            took.append((clock.now_ns() - asked_ns) / SECOND)
    finally:
        policy.close()
    times = {"load_s": (loaded_ns - began_ns) / SECOND, "warm_s": (warmed_ns - loaded_ns) / SECOND}
    return {**times, "answer_s": statistics.median(took)}


def invented(cell: Mapping[str, Any], dof: int) -> Observation:
    """An observation of an arm at zero in front of grey walls."""
    arrays = {
        "q": np.zeros(dof),
        "dq": np.zeros(dof),
        "gripper": np.array([0.04]),
        "tcp": np.array([0.4, 0.0, 0.4, 1.0, 0.0, 0.0, 0.0]),
    }
    grey = {c["name"]: np.full((c["height"], c["width"], 3), 128, np.uint8) for c in cell.get("camera", [])}
    return Observation(0, arrays, "Hold still.", {name: (Picture(image, 0),) for name, image in grey.items()})
