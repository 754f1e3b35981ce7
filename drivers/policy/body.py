"""What the numbers of a policy are of: the robot of a cell, or each of two, in the order in which its card has them.

May not: ask a policy, or guess which of two robots a number is of.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from labctl.config.cell_schema import Cell
from labctl.config.policy_card import Card
from labctl.devices import ActionChunk, Observation
from labctl.drivers.common.sides import Sides
from labctl.drivers.policy.actions import answer_rows, to_chunk, width_of
from labctl.drivers.policy.inputs import Question, read, state
from labctl.errors import InputError


@dataclass(frozen=True, slots=True)
class Body:
    """cards: of each robot of the cell the card with its [tool] as seen from that robot's; dofs: how many joints each
    has; order: which robot's numbers come when in an action; sides: of two robots.
    """

    cards: tuple[Card, ...]
    dofs: tuple[int, ...]
    order: tuple[int, ...] = (0,)
    sides: Sides | None = None

    def question(self, seen: Observation) -> Question:
        """What the policy reads. Raises DeviceRefused when a source is not there."""
        if self.sides is None:
            return read(self.cards[0], seen)
        parts = {name: self.sides.arrays(seen.arrays, i) for i, name in enumerate(self.sides.names)}
        cards = dict(zip(self.sides.names, self.cards, strict=True))

        def of_robot(name: str, card: Card, arrays: Mapping[str, np.ndarray]) -> np.ndarray:
            robot, _, what = name.partition(".")
            return state(what, cards[robot], parts[robot])

        return read(self.cards[0], seen, of_robot)

    def chunk(self, answer: Question, arrays: Mapping[str, np.ndarray]) -> ActionChunk:
        """What an answer stands for. Raises DeviceRefused that says what there was."""
        action = self.cards[0].action
        rows = answer_rows(answer, action, *self.dofs)
        if self.sides is None or action.space == "axes":
            return to_chunk(rows, self.cards[0], arrays)
        widths = [width_of(action, self.dofs[number]) + 1 for number in self.order]
        parts = np.split(rows, np.cumsum(widths)[:-1], axis=1)
        of = dict(zip(self.order, parts, strict=True))
        chunks = [to_chunk(of[i], self.cards[i], self.sides.arrays(arrays, i)) for i in range(len(self.cards))]
        return self.sides.together(chunks)


def body_of(cards: tuple[Card, ...], cell: Cell) -> Body:
    """The robots of a cell as a card leads them; cards: that card as each robot has it. Raises InputError for a card
    that does not say which robot its numbers are of, or says it where there is one.
    """
    card, names = cards[0], cell.names
    dofs = tuple(side.joints for side in cell.sides)
    states = [name for entry in card.input for name in entry.state or ()]
    robots = card.action.robots
    if len(names) == 1:
        for name in states:
            if "." in name:
                raise InputError(f"the card reads {name}, and this cell has one robot; say {name.partition('.')[2]}")
        if robots:
            raise InputError(
                f"the card's action leads {' and '.join(robots)}, and this cell has one robot; drop robots"
            )
        return Body(cards, dofs)
    both = " and ".join(names)
    for name in states:
        if name.partition(".")[0] not in names or "." not in name:
            text = f"the card reads {name} of which robot? this cell has {both}"
            raise InputError(f"{text}: say {names[0]}.{name.rpartition('.')[2]}")
    if card.action.space == "axes":
        return Body(cards, dofs, sides=Sides(cell))
    if sorted(robots) != sorted(names):
        listed = ", ".join(f'"{name}"' for name in names)
        text = f"the card's action leads {' and '.join(robots) or 'one robot'}; this cell has {both}"
        raise InputError(f"{text}: say robots = [{listed}] in [action], in the order of its numbers")
    turned = card.action.stepped and "joint" not in card.action.space  # about a point that one answer has for both
    if turned and cards[0].tool.shift_m != cards[1].tool.shift_m:
        raise InputError("the card's steps turn about a point that is not the same at both tools; mount them alike")
    return Body(cards, dofs, tuple(names.index(name) for name in robots), Sides(cell))
