"""Looks whether a protocol's scene and cards fit the cell; asks each policy for an answer, in a process of its own, and
says how long it took. Nothing moves.

May not: open a campaign, be part of a trial, or trust a policy not to crash the process it runs in.

How an observation is invented for that: `labctl.nodes.asking`.
"""

from __future__ import annotations

import math
from pathlib import Path

from labctl.checks.computer import Check
from labctl.checks.contradictions import of_cards, of_scene
from labctl.checks.doctor import check_scene, contradicting, secrets_of_plan
from labctl.config.cell_schema import Setup
from labctl.config.policy_card import Card
from labctl.errors import LabctlError
from labctl.nodes.asking import ArmAnswer, ArmQuestion, ask
from labctl.store.driver_options import check_cell_options
from labctl.store.frozen_cards import check_policies, with_cards
from labctl.store.lab_folder import read_cell, read_plan


def check_protocol(protocol: Path, cell: Path) -> list[Check]:
    """What in scene, cards and cell does not go together; then one check for each arm with a policy card: it answers,
    in time for the protocol's arming and its own deadline. What is wrong with the cell file alone, `check_cell` says.
    """
    try:
        found = read_cell(cell)
        check_cell_options(found)
    except LabctlError:
        return [Check("policies", "fail", f"not asked: {cell} is not right by itself", "correct the cell file first")]
    try:
        plan = read_plan(protocol)
        check_policies(plan, found)
    except LabctlError as error:
        return [Check("policies", "fail", str(error), "correct this first")]
    setup = Setup(cell=found, fixture=plan.fixture)
    arms = with_cards(plan.protocol, plan.cards)
    cards = {name: card for name, arm in arms.items() if (card := Card.among(arm.options)) is not None}
    checks = []
    for name, card in cards.items():
        answers = ask(ArmQuestion.of(setup, arms[name].controller, arms[name].options))
        checks.append(judged(name, answers, card, plan.protocol.trial.arming_s))
    apart = contradicting([*of_scene(found, plan.fixture), *of_cards(found, cards)])
    apart += [*check_scene(found, plan.fixture), *secrets_of_plan(plan)]
    return apart + checks if checks else [*apart, Check("policies", "ok", "no arm of this protocol has a policy card")]


def judged(arm: str, answers: ArmAnswer, card: Card | None, arming_s: float) -> Check:
    """What the answers of one policy, or that it was loaded, mean for a campaign."""
    name = f"policy {arm}"
    if "problem" in answers:
        return Check(name, "fail", answers["problem"], "correct the card, the endpoint or the server")
    ready_s = answers.get("load_s", 0.0) + answers.get("warm_s", 0.0)
    times = f"ready in {ready_s:.1f} s"
    if "answer_s" in answers:
        times += f" (first answers {answers.get('warm_s', 0.0):.1f} s), then an answer in {answers['answer_s']:.3f} s"
    if ready_s > arming_s:
        longer = f"{times}; arming_s is {arming_s:g}, so each of its trials would be void as not_ready"
        return Check(name, "fail", longer, f"raise the protocol's arming_s above {ready_s:.0f}, for every arm alike")
    deadline_s = card.timing.deadline_s if card is not None else math.inf
    if answers.get("answer_s", 0.0) > deadline_s:
        return Check(name, "warn", f"{times}; its deadline_s is {deadline_s:g}", "late answers are not used: raise it")
    return Check(name, "ok", times)
