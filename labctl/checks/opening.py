"""What `labctl open` looks at before a plan is sealed for good: could this cell run these arms?

May not: draw anything, move anything, or ask for what is elsewhere (a robot, a device, a policy server) with
`--offline`.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

from labctl.checks.computer import Check, check_free_disk
from labctl.checks.doctor import check_drivers, check_scene, check_teleop, loaded_drivers, video_table
from labctl.checks.encoding_cost import try_encoder
from labctl.checks.policy_check import judged
from labctl.config.cell_schema import Cell, Setup
from labctl.config.policy_card import Card
from labctl.errors import InputError, LabctlError
from labctl.nodes.asking import ArmQuestion, ask
from labctl.store.frozen_cards import PERSON, with_cards
from labctl.store.lab_folder import Plan

ALWAYS_ASKED = "policy_callable"  # needs nothing but this machine


def refuse_what_cannot_run(plan: Plan, cell: Cell, cell_path: Path, lab: Path, *, offline: bool) -> int:
    """How many arms answer: all of them. offline: robot, devices and policy servers are not asked, their
    drivers and modules are loaded all the same.

    Raises InputError with the first thing that `labctl doctor CELL --protocol PROTOCOL` would fail, and how many there
    are.
    """
    protocol = plan.protocol
    by_hand = protocol.trial.takeover == "allowed" or any(arm.controller == PERSON for arm in protocol.arm)
    doctor = shlex.join(["labctl", "doctor", str(cell_path), "--protocol", str(plan.path)])
    of_cell = [*_of_cell(cell, lab, doctor, by_hand=by_hand, offline=offline)]
    if not offline:
        of_cell += check_scene(cell, plan.fixture)
    found = [(check, str(cell_path)) for check in of_cell if check.level == "fail"]
    found += _of_arms(plan, cell, offline=offline)
    if found:
        (check, where), more = found[0], len(found) - 1
        text = f"{check.name}: {check.text}" + (f"; {check.remedy}" if check.remedy else "")
        others = f" ({more} more: {doctor})" if more else ""
        away = "" if offline else "; with --offline no device and no server is asked"
        raise InputError(f"not opened, it could not run: {text}{others}{away}", where=where)
    return len(protocol.arm)


def _of_cell(cell: Cell, lab: Path, again: str, *, by_hand: bool, offline: bool) -> Iterator[Check]:
    yield check_free_disk(lab, cell.storage.min_free_gb)
    yield from loaded_drivers(cell, lab) if offline else check_drivers(cell, lab, again)
    if by_hand and not offline:
        yield from check_teleop(cell, again)
    for camera in cell.camera:
        try:
            try_encoder(cell.video_of(camera), camera.width, camera.height, camera.rate_hz)
        except LabctlError as error:
            yield Check(f"video {camera.name}", "fail", str(error), f"correct {video_table(camera)} in the cell file")


def _of_arms(plan: Plan, cell: Cell, *, offline: bool) -> Iterator[tuple[Check, str]]:
    """What fails, with its place in the protocol."""
    setup = Setup(cell=cell, fixture=plan.fixture)
    for index, arm in enumerate(with_cards(plan.protocol, plan.cards).values()):
        if arm.controller == PERSON and not offline:
            continue  # the device was asked with the cell
        only_load = offline and arm.controller != ALWAYS_ASKED
        answers = ask(ArmQuestion.of(setup, arm.controller, arm.options, only_load=only_load))
        check = judged(arm.name, answers, Card.among(arm.options), plan.protocol.trial.arming_s)
        if check.level == "fail":
            where = plan.protocol.refusal(("arm", index, "controller"), "", str(plan.path)).where
            yield check, str(where)
