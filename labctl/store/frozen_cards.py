"""Arms with their policy cards: frozen with the protocol, and tried against the cell before anything is drawn.

May not: connect to a policy, print what a card says, or hand a card to anything but the controller and the seal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from labctl.config.cell_schema import Cell, Fixture
from labctl.config.conditions import protocol_conditions
from labctl.config.inputs import check_cameras
from labctl.config.policy_card import Card, Training, parse_card
from labctl.config.protocol_schema import Arm, Protocol
from labctl.devices import load
from labctl.errors import InputError
from labctl.store.lab_folder import Plan

PERSON = "teleop"  # the controller of an arm that a person drives


def with_cards(protocol: Protocol, cards: Mapping[str, str]) -> dict[str, Arm]:
    """The arms of a protocol by name; where one names a card, its options hold the card itself as a table.

    cards: texts by the name the protocol gives them. Raises InputError for a card that does not parse.
    """
    made: dict[str, Arm] = {}
    for arm in protocol.arm:
        name = arm.options.get("card")
        if isinstance(name, str) and name in cards:
            card = parse_card(cards[name], name, frozen=True).model_dump(mode="json")
            arm = arm.model_copy(update={"options": {**arm.options, "card": card}})
        made[arm.name] = arm
    return made


def cameras_wanted(arms: Iterable[Arm]) -> set[str]:
    """Cameras whose full pictures some arm's policy reads: the same for every trial, so that it reveals no arm."""
    cards = [Card.among(arm.options) for arm in arms]
    return {camera for card in cards if card is not None for camera in card.cameras}


def trained_with(protocol: Protocol, fixture: Fixture, arms: Mapping[str, Arm]) -> list[tuple[str, str]]:
    """Each (condition, arm) of which the arm's card says that it is training data: for every kind that its [training]
    lists, the condition has one of those. arms: as `with_cards` makes them.
    """
    found: list[tuple[str, str]] = []
    for name, arm in arms.items():
        card = Card.among(arm.options)
        if card is None or card.training == Training():
            continue
        for one in protocol_conditions(protocol, fixture):
            instruction = one.instruction or protocol.tasks[0].instruction
            kinds = ((one.object, card.training.objects), (one.layout, card.training.layouts))
            if all(has in listed for has, listed in (*kinds, (instruction, card.training.instructions)) if listed):
                found.append((one.id, name))
    return found


def trained_line(condition: str, arm: str) -> str:
    """What is said of one of `trained_with`."""
    return f"condition {condition} is training data of {arm}, by its policy card"


def check_policies(plan: Plan, cell: Cell) -> None:
    """Refuse, at the protocol's line, a policy that this cell could not run: an unknown camera, one whose pictures are
    too old when they come, a wrong number of joints, an endpoint that is none, a callable that is not there; a person
    whose device this cell does not name; and an edit of pictures that it does not have. Nothing is connected. Raises
    InputError.
    """
    edited = ((at, row.inputs) for at, row in plan.protocol.placed_conditions)
    check_cameras(plan.protocol, edited, cell, str(plan.path))
    for index, arm in enumerate(with_cards(plan.protocol, plan.cards).values()):
        if Card.among(arm.options) is None and arm.controller != PERSON:
            continue
        try:
            load(arm.controller, arm.options, cell=cell, fixture=plan.fixture).close()
            _check_ages(Card.among(arm.options), cell)
        except InputError as error:
            at = ("arm", index, "controller") if error.where else ("arm", index, "options")
            raise plan.protocol.refusal(at, str(error), str(plan.path)) from None


def _check_ages(card: Card | None, cell: Cell) -> None:
    """Not the driver's, which loads for each trial: of a campaign that was opened already an arm is asked all the same.
    Raises InputError.
    """
    if card is None:
        return
    for camera in cell.camera:
        if camera.name in card.cameras and camera.latency_s >= card.image.max_age_s:
            ages = f"latency_s = {camera.latency_s:g} and the card's image.max_age_s = {card.image.max_age_s:g}"
            text = f"camera {camera.name}: {ages}: no picture is ever fresh enough for a question"
            raise InputError(f"{text}; give max_age_s a period of the camera above latency_s, or use a quicker camera")
