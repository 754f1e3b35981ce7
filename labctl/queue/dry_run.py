"""The dry run of a submitted policy: it is asked about recorded observations, and nothing moves.

May not: connect to anything but the policy, trust its process or its answers, or say which policy it was.

It runs in a process of its own that is ended when its time is over; there names and addresses are looked up by the rule
for submissions alone (`endpoints.only_allowed`).
"""

from __future__ import annotations

import ipaddress
import json
import os
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TypedDict
from urllib.parse import urlsplit

import numpy as np
from pydantic import BaseModel, JsonValue

from labctl.checks.offline_frames import executed, reached
from labctl.clock import SECOND, MonotonicClock
from labctl.config.cell_schema import Cell, Setup
from labctl.config.policy_card import Card
from labctl.devices import ActionChunk, Controller, Observation, Robot, find_driver, load
from labctl.errors import DeviceError, InputError, LabctlError, one_line
from labctl.nodes.playing import chunk_problem
from labctl.processes import json_answer, leave_with
from labctl.queue import endpoints
from labctl.queue.observed import Seen, Source, Unusable
from labctl.store.lab_folder import MODULES
from labctl.store.verifying.verified import in_passing

LATE_SHARE, BEYOND_SHARE = 0.05, 0.05  # of answers; more fail
ENVIRONMENT = ("PATH", "HOME", "LANG", "PYTHONPATH", "VIRTUAL_ENV")
SHIPPED = "labctl.drivers."
REFUSED = "refused"
STEPS = ("joint_position", "joint_velocity", "joint_step")


class Latency(TypedDict):
    """Of `n` answers, s from question to answer. late: those beyond the card's deadline_s."""

    n: int
    median_s: float
    p95_s: float
    p99_s: float
    max_s: float
    deadline_s: float
    late: int


class Bounds(TypedDict):
    """Of `n` answers, each followed exactly from where the robot stood: how many lead out of the cell's box, or ask for
    more speed than its limits allow; furthest_m: beyond the box; fastest: the largest speed, in its limits.
    """

    n: int
    beyond_box: int
    beyond_speed: int
    furthest_m: float
    fastest: float


class DryRun(TypedDict):
    """What a dry run found. problems: why it failed, a line each, empty for one that passed. Null: it did not come so
    far. campaign, episodes: whose observations they were; space, actions, execute: of the first answer.
    """

    passed: bool
    problems: list[str]
    campaign: str
    episodes: list[str]
    asked: int
    load_s: float | None
    warm_s: float | None
    space: str | None
    actions: int | None
    execute: int | None
    latency: Latency | None
    bounds: Bounds | None


class Question(BaseModel):
    """What the process is given. folder: of a verified campaign; published: somebody else's; networks: as in
    queue-keys.toml.
    """

    folder: str
    driver: str
    endpoint: str
    card: dict[str, JsonValue]
    networks: list[str]
    questions: int
    published: bool = False


def dry_run(
    source: Source,
    card: Card,
    endpoint: str,
    networks: Sequence[endpoints.Network],
    *,
    questions: int,
    within_s: float,
) -> DryRun:
    """Ask a policy about so many recorded observations, in a process that has so long. Raises InputError where nothing
    can be asked with them.
    """
    asked = Question(
        folder=str(source.folder),
        driver=f"policy_{card.policy.dialect}",
        endpoint=endpoint,
        card=card.model_dump(mode="json"),
        networks=[str(one) for one in networks],
        questions=questions,
        published=source.published,
    )
    # No variable of this computer's goes along but where Python and labctl are; a redirect is never followed.
    named = ENVIRONMENT if source.published else (*ENVIRONMENT, MODULES)
    kept = {name: os.environ[name] for name in named if name in os.environ}
    environment = {**kept, "WEBSOCKETS_MAX_REDIRECTS": "1"}
    entry = "labctl.queue.dry_run:dry_run_main"
    answer, ended = json_answer(entry, asked.model_dump_json(), within_s, environment=environment)
    if answer:
        found = json.loads(answer)
        if REFUSED in found:
            raise InputError(found[REFUSED])
        return found
    return _failed(
        source, f"it was not done within {within_s:g} s" if ended is None else f"its process ended ({ended})"
    )


def dry_run_main() -> None:
    """Entry of the process: a Question on standard input, a DryRun on standard output as one line, or under REFUSED why
    there is none.
    """
    asked = Question.model_validate_json(sys.stdin.read())
    with in_passing(Path(asked.folder)) as campaign:
        source = Source(Path(asked.folder), campaign.folder.name, asked.published)
        try:
            seen = Seen(campaign, asked.questions)
            found = _asked(asked, source, seen, Setup(cell=campaign.cell, fixture=campaign.fixture))
        except Unusable as error:
            found = {REFUSED: str(error)}
        except LabctlError as error:
            found = _failed(source, str(error))
        except Exception as error:  # whatever a hostile answer makes of it is a failed dry run
            found = _failed(source, f"{type(error).__name__}: {error}")
    leave_with(json.dumps(found))


def _asked(asked: Question, source: Source, seen: Seen, setup: Setup) -> DryRun:
    card, cell = Card.model_validate_json(json.dumps(asked.card)), setup.cell
    if any(axis.kind == "twist" for axis in cell.robot.axis):
        raise Unusable(
            f"the base of the robot of cell {cell.cell.name!r} drives, and a dry run follows one that stands"
        )
    if cell.second_robot is not None:
        raise Unusable(f"cell {cell.cell.name!r} has two robots, and a dry run follows one: give observations of one")
    networks = [ipaddress.ip_network(one) for one in asked.networks]
    encrypted = urlsplit(asked.endpoint).scheme == endpoints.ENCRYPTED
    endpoints.only_allowed(networks, encrypted=encrypted, endpoint=asked.endpoint)
    options = {"card": asked.card, "endpoint": endpoints.resolved(asked.endpoint)}
    if asked.published and not find_driver(cell.robot.driver).startswith(SHIPPED):
        raise Unusable(f"its cell's robot is {cell.robot.driver!r}, no driver of labctl's own; no other is run")
    # never connected: only its kinematics
    arm: Robot = load(cell.robot.driver, cell.robot.options, cell=cell, fixture=setup.fixture)
    policy: Controller = load(asked.driver, options, cell=cell, fixture=setup.fixture)
    clock = MonotonicClock()
    found = _failed(source, "")
    took: list[float] = []
    beyond: list[Beyond] = []
    try:
        policy.load()
        policy.reset(0)
        found["load_s"] = policy.load_s
        for number, one in enumerate(seen.read(policy.pace)):
            if number == 0:
                policy.warm(one)
                policy.reset(0)
                found["warm_s"] = policy.warm_s
            began_ns = clock.now_ns()
            chunk = policy.infer(one)
            took.append((clock.now_ns() - began_ns) / SECOND)
            if (problem := chunk_problem(chunk, cell.joints, cell.hand)) is not None:
                raise DeviceError(problem)
            beyond.append(beyond_limits(chunk, one, arm, cell))
            if number == 0:
                found.update(space=chunk.space, actions=len(chunk.values), execute=int(chunk.execute))
    except Unusable:
        raise
    except LabctlError as error:
        found["problems"].append(one_line(str(error))[:300])
    finally:
        policy.close()
    if not took and not found["problems"]:
        raise Unusable(
            f"campaign {source.name}: of {asked.questions} observations none has the robot's state and a picture of "
            "every camera that the card reads, no older than its max_age_s; give others, or ask for more: --questions"
        )
    found.update(episodes=seen.episodes, asked=len(took))
    if took:
        found.update(latency=latency(took, card.timing.deadline_s), bounds=bounds(beyond))
        found["problems"] += judged(found)
    found["problems"] = [line for line in found["problems"] if line]
    found["passed"] = not found["problems"]
    return found


class Beyond(TypedDict):
    """One answer: how far its way leads out of the box, m; its largest speed as a multiple of the limit."""

    out_m: float
    speed: float


def beyond_limits(chunk: ActionChunk, seen: Observation, arm: Robot, cell: Cell) -> Beyond:
    """An answer followed exactly and at once from what was seen, against the cell's limits."""
    limits = cell.robot.limits
    q, tcp = np.asarray(seen.arrays["q"]), np.asarray(seen.arrays["tcp"])
    poses, _ = reached(chunk, q, tcp, arm)
    low, high = np.array(limits.box_min_m), np.array(limits.box_max_m)
    out = np.maximum(low - poses[:, :3], poses[:, :3] - high).max(initial=0.0)
    every = np.asarray(chunk.values, float)
    values, speed = every[executed(chunk)], 0.0
    begins = chunk.starts == "capture"  # the first is due at the observation: the way to the next is from there
    if chunk.space in STEPS:
        start = every[0] if begins else q
        of = np.diff(values, axis=0, prepend=start[None, :]) if chunk.space == "joint_position" else values
        per_s = of if chunk.space == "joint_velocity" else of / chunk.dt_s
        speed = float((np.abs(per_s) / np.array(limits.velocity_rad_s)).max(initial=0.0))
    elif limits.tool_speed_m_s is not None:
        start = every[0] if begins and chunk.space == "tcp_pose" else tcp
        way = np.diff(poses[:, :3], axis=0, prepend=start[None, :3])
        speed = float(np.linalg.norm(way, axis=1).max(initial=0.0) / chunk.dt_s / limits.tool_speed_m_s)
    return {"out_m": float(max(out, 0.0)), "speed": speed}


def latency(took: Sequence[float], deadline_s: float) -> Latency:
    """took: s of each answer."""
    median, p95, p99 = (float(one) for one in np.quantile(np.array(took), [0.5, 0.95, 0.99]))
    late = sum(one > deadline_s for one in took)
    return {
        "n": len(took),
        "median_s": median,
        "p95_s": p95,
        "p99_s": p99,
        "max_s": max(took),
        "deadline_s": deadline_s,
        "late": late,
    }


def bounds(found: Sequence[Beyond]) -> Bounds:
    """Of all answers together."""
    return {
        "n": len(found),
        "beyond_box": sum(one["out_m"] > 0 for one in found),
        "beyond_speed": sum(one["speed"] > 1 + 1e-6 for one in found),
        "furthest_m": max(one["out_m"] for one in found),
        "fastest": max(one["speed"] for one in found),
    }


def judged(found: DryRun) -> Iterator[str]:
    """Why what was measured fails."""
    times, limits = found["latency"], found["bounds"]
    if times is not None and times["late"] > LATE_SHARE * times["n"]:
        yield (
            f"{times['late']} of {times['n']} answers came after deadline_s = {times['deadline_s']:g} "
            f"(95 % within {times['p95_s']:.3f} s); at most {LATE_SHARE:.0%} may"
        )
    if limits is None:
        return
    most = BEYOND_SHARE * limits["n"]
    if limits["beyond_box"] > most:
        text = f"{limits['beyond_box']} of {limits['n']} answers lead out of the cell's box, by up to"
        yield f"{text} {limits['furthest_m']:.3f} m; at most {BEYOND_SHARE:.0%} may"
    if limits["beyond_speed"] > most:
        text = f"{limits['beyond_speed']} of {limits['n']} answers ask for more speed than the cell's limits, up to"
        yield f"{text} {limits['fastest']:.1f} times; at most {BEYOND_SHARE:.0%} may"


def _failed(source: Source, problem: str) -> DryRun:
    return {
        "passed": False,
        "problems": [one_line(problem)[:300]] if problem else [],
        "campaign": source.name,
        "episodes": [],
        "asked": 0,
        "load_s": None,
        "warm_s": None,
        "space": None,
        "actions": None,
        "execute": None,
        "latency": None,
        "bounds": None,
    }
