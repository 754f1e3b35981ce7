"""The relabellings that a campaign's schedule could have drawn, as the value that the analysis takes.

May not: swap a label or look at an outcome; the design says what was possible, and this hands it on.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from labctl.core.design import exchanges
from labctl.messages.body_parts import SlotWithArm

Exchange = tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]


def relabellings(schedule: Sequence[SlotWithArm]) -> dict[tuple[str, str], list[Exchange]]:
    """For every pair of arms, in alphabetical order, the sets of blocks that were drawn together and how its labels
    could else have stood in them. schedule: all slots with their arms, as unblinding has them.

    Extra blocks of the person alone are of no square, and left out. Empty where the other slots are not those of whole
    blocks that hold every arm once, or not of this design's squares: an older campaign's labels are swapped freely.
    """
    blocks: dict[int, dict[int, str]] = {}
    for slot in schedule:
        if "block" not in slot or "position" not in slot:
            return {}
        blocks.setdefault(int(slot["block"]), {})[int(slot["position"])] = str(slot["arm"])
    whole = [block for block in sorted(blocks) if len(blocks[block]) > 1]
    orders = [[blocks[block][place] for place in sorted(blocks[block])] for block in whole]
    arms = sorted(set(itertools.chain.from_iterable(orders)))
    if len(arms) < 2 or any(sorted(order) != arms for order in orders):
        return {}
    found: dict[tuple[str, str], list[Exchange]] = {}
    for a, b in itertools.combinations(arms, 2):
        for start, ways in exchanges(orders, (a, b)):
            if ways is None:
                return {}
            drawn = tuple(str(whole[start + k]) for k in range(len(ways[0])))
            found.setdefault((a, b), []).append((drawn, tuple(ways)))
    return found
