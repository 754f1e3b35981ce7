"""Asks a controller whether it can do its part: loads it; where a policy card says what an answer is, has it answer.

May not: be part of a trial, move anything, or trust a controller not to crash the process it runs in.

The observation is invented: joints at zero, grey pictures of the cell's sizes. An answer to it shows that server, card
and cell fit each other and how long starting takes; it says nothing about the policy.
"""

from __future__ import annotations

import json
import os
import socket
import statistics
import sys
import threading
from collections.abc import Mapping
from typing import Self, TypedDict
from urllib.parse import urlsplit

import numpy as np
from pydantic import JsonValue

from labctl.clock import SECOND, Clock, MonotonicClock
from labctl.config.cell_schema import Cell, Setup
from labctl.config.policy_card import Card
from labctl.devices import ByHand, Controller, Observation, Picture, find_driver, load
from labctl.errors import LabctlError
from labctl.nodes.playing import chunk_problem
from labctl.plain import Hand
from labctl.processes import json_answer, leave_with
from labctl.store.driver_options import SIMULATED

ANSWERS = 3
CONNECT_S = 3.0
SPARE_S = 20.0  # beyond what the card allows, for the process itself
HAND_NS = SECOND // 2
WATCH_NS = SECOND // 2
USELESS = ("is gone", "another number of joints")  # words of what a device waits for in vain


class ArmAnswer(TypedDict, total=False):
    """What came of asking: how long loading, the first answers and one answer took, s; or why it could not."""

    load_s: float
    warm_s: float
    answer_s: float
    problem: str


class ArmQuestion(Setup):
    """A controller in its cell. options: as the driver has them, a card as a table; only_load: its driver is loaded and
    nothing asked; parent: the process that waits for the answer.
    """

    driver: str
    options: dict[str, JsonValue]
    only_load: bool = False
    parent: int | None = None

    @classmethod
    def of(cls, setup: Setup, driver: str, options: Mapping[str, JsonValue], *, only_load: bool = False) -> Self:
        """The controller of a driver and its options."""
        return cls(cell=setup.cell, fixture=setup.fixture, driver=driver, options=dict(options), only_load=only_load)

    @property
    def card(self) -> Card | None:
        """The policy's card, where its options hold one."""
        return Card.among(self.options)


def ask(asked: ArmQuestion, *, here: bool = False) -> ArmAnswer:
    """What came of asking a controller; only one with a card is asked for an answer. What was only loaded has no times.

    In a process of its own; in this one where the controller is one of labctl's simulations, or `here` says so: of a
    run in simulated time, which has but one.
    """
    try:
        simulated = find_driver(asked.driver).startswith(SIMULATED)
    except LabctlError as error:
        return {"problem": str(error)}
    return _guarded(asked) if here or simulated else _in_a_process(asked)


def at_most_s(asked: ArmQuestion) -> float:
    """For how long `ask` waits for an answer at most; 0 where it asks in its own process, which nothing bounds."""
    try:
        if find_driver(asked.driver).startswith(SIMULATED):
            return 0.0
    except LabctlError:
        return 0.0
    return _patience_s(asked) + (CONNECT_S if _elsewhere(asked) else 0.0)


def _patience_s(asked: ArmQuestion) -> float:
    card = asked.card
    return SPARE_S if card is None else SPARE_S + 2 * card.server.ready_s + ANSWERS * card.timing.give_up_s


def _elsewhere(asked: ArmQuestion) -> bool:
    """Whether somebody else keeps the server up that is to be asked."""
    return asked.card is not None and not asked.only_load and not asked.card.server.start


def _in_a_process(asked: ArmQuestion) -> ArmAnswer:
    if _elsewhere(asked) and (refused := nobody_there(str(asked.options.get("endpoint", "")))):
        return {"problem": refused}
    patience_s = _patience_s(asked)
    given = asked.model_copy(update={"parent": os.getpid()}).model_dump_json()
    answer, ended = json_answer("labctl.nodes.asking:ask_main", given, patience_s)
    if answer:
        return json.loads(answer)
    return {"problem": f"no answer within {patience_s:.0f} s" if ended is None else f"its process ended ({ended})"}


def nobody_there(endpoint: str) -> str | None:
    """Why nothing can answer at an address, when it says so at once; None when something may. A server that somebody
    else keeps up is up before it is asked, so nobody waits for one that refuses.
    """
    place = urlsplit(endpoint)
    try:
        if place.hostname and place.port:
            socket.create_connection((place.hostname, place.port), timeout=CONNECT_S).close()
    except ConnectionRefusedError:
        return f"nothing listens at {endpoint}: the connection was refused; start the policy's server first"
    except socket.gaierror as error:
        return f"{endpoint}: there is no host {place.hostname!r} ({error.strerror})"
    except (OSError, ValueError):  # it may be slow, or its driver says better what is wrong
        pass
    return None


def ask_main() -> None:
    """Entry of the asking process: its spec on standard input, one JSON line on standard output."""
    leave_with(json.dumps(_guarded(ArmQuestion.model_validate_json(sys.stdin.read()))))


def _guarded(asked: ArmQuestion) -> ArmAnswer:
    try:
        return answers(asked)
    except Exception as error:  # a bug in a policy must not look like one that is well
        return {"problem": str(error) if isinstance(error, LabctlError) else f"{type(error).__name__}: {error}"}


def answers(asked: ArmQuestion) -> ArmAnswer:
    """The same in this process. Raises what the controller raises."""
    clock, cell = MonotonicClock(), asked.cell
    controller: Controller = load(asked.driver, asked.options, cell=cell, fixture=asked.fixture)
    if asked.parent is not None:
        _end_with(asked.parent, controller)
    try:
        if asked.only_load:
            return {}
        began_ns = clock.now_ns()
        controller.load()
        controller.reset(0)
        answered: ArmAnswer = {"load_s": (clock.now_ns() - began_ns) / SECOND}
        if isinstance(controller, ByHand):
            answered.update(_by_hand(controller, cell.joints, clock))
        elif asked.card is not None:
            answered.update(_by_card(controller, invented(cell), cell, clock))
        return answered
    finally:
        controller.close()


def _by_card(policy: Controller, seen: Observation, cell: Cell, clock: Clock) -> ArmAnswer:
    began_ns = clock.now_ns()
    policy.warm(seen)
    policy.reset(0)
    warmed_ns = clock.now_ns()
    took = []
    for _ in range(ANSWERS):
        asked_ns = clock.now_ns()
        problem = chunk_problem(policy.infer(seen), cell.joints, cell.hand, len(cell.robots))
        if problem is not None:
            return {"problem": problem}
        took.append((clock.now_ns() - asked_ns) / SECOND)
    return {"warm_s": (warmed_ns - began_ns) / SECOND, "answer_s": statistics.median(took)}


def _by_hand(person: ByHand, joints: int, clock: Clock) -> ArmAnswer:
    """A person's device is to be there; whether a hand is on it is seen at go."""
    clock.sleep_until(clock.now_ns() + HAND_NS)
    hand = person.hand(np.zeros(joints))
    return {"problem": why} if (why := useless(hand)) else {}


def useless(hand: Hand) -> str:
    """Why nobody can drive with a device as it is: it is gone, or a leader of another robot; "" where somebody may."""
    return hand["waits"] if any(words in hand["waits"] for words in USELESS) else ""


def _end_with(parent: int, controller: Controller) -> None:
    """When whoever asked is gone, so is this process, and a server that it started."""

    def watch() -> None:
        clock = MonotonicClock()
        while os.getppid() == parent:
            clock.sleep_until(clock.now_ns() + WATCH_NS)
        controller.close()
        os._exit(1)

    threading.Thread(target=watch, name="watch", daemon=True).start()


def invented(cell: Cell) -> Observation:
    """An observation of a robot at zero, or of two, in front of grey walls."""
    tool = np.array([0.4, 0.0, 0.4, 1.0, 0.0, 0.0, 0.0])
    arrays = {
        "q": np.zeros(cell.joints),
        "dq": np.zeros(cell.joints),
        "gripper": np.full(cell.hand, 0.04),
        "tcp": tool,
        **{f"{name}.tcp": tool for name in cell.names[1:]},
    }
    grey = {camera.name: np.full((camera.height, camera.width, 3), 128, np.uint8) for camera in cell.camera}
    return Observation(0, arrays, "Hold still.", {name: (Picture(image, 0),) for name, image in grey.items()})
