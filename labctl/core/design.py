"""The schedule: which arm is tried at which condition, when, drawn from 32 secret bytes and nothing else.

May not: read entropy, a clock or a file; keep the secret; or know what an arm is beyond its name.
"""

from __future__ import annotations

import hashlib
import hmac
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from labctl.messages.body_parts import Slot as PublicSlot

T = TypeVar("T")
_ID_LETTERS = "23456789abcdefghjkmnpqrstuvwxyz"  # no 0 1 i l o: ids are read aloud and typed


@dataclass(frozen=True, slots=True)
class Slot:
    """One randomised trial. `index`, `block` and `position` (within the block) count from 0; `trial` is its opaque
    id.
    """

    index: int
    trial: str
    block: int
    position: int
    condition: str
    arm: str


@dataclass(frozen=True, slots=True)
class Schedule:
    """All slots in the order they are run."""

    slots: tuple[Slot, ...]

    def public(self) -> list[PublicSlot]:
        """The schedule as anyone may see it: index, trial, block, position and condition, without the arm."""
        return [
            {
                "index": one.index,
                "trial": one.trial,
                "block": one.block,
                "position": one.position,
                "condition": one.condition,
            }
            for one in self.slots
        ]


def drbg(secret: bytes, label: str, n: int = 32) -> bytes:
    """n reproducible bytes for a label: HMAC-SHA256(secret, label || counter) with an 8-byte big-endian counter from
    0.

    The construction is the counter-mode KDF of NIST SP 800-108 with HMAC as its pseudo-random function. The counter
    has a fixed width at the end, so two labels never share a block; a longer request starts with the bytes of a
    shorter one.
    """
    blocks = (
        hmac.new(secret, label.encode() + counter.to_bytes(8, "big"), hashlib.sha256).digest()
        for counter in range((n + 31) // 32)
    )
    return b"".join(blocks)[:n]


def draw(
    conditions: Sequence[str] | Sequence[Sequence[str]],
    arms: Sequence[str],
    blocks_per_condition: int,
    secret: bytes,
    alone: tuple[str, int] | None = None,
) -> Schedule:
    """The schedule: every block holds every arm once at one condition, every condition gets `blocks_per_condition`
    blocks.

    Conditions are shuffled anew within each replicate; those that are given as a set (a condition and what perturbs it)
    stand side by side, in an order that is drawn each time. Blocks take the rows of Williams squares one after the
    other (E. J. Williams, Aust. J. Sci. Res. A 2 (1949) 149): in each complete square every arm stands equally often at
    every position and follows every other arm equally often. For every square the arms' labels are permuted and the
    rows shuffled afresh, since a visible person would otherwise fix the rest of it. One arm by itself has blocks of one
    trial. The same arguments give the same schedule.

    alone: an arm that has so many blocks of its own at each condition besides (`_lone`), drawn apart from the others,
    which stand in the order that they would have without.

    Raises ValueError for no arm, a repeated name, no condition, no block, or a secret of other than 32 bytes.
    """
    sets = checked_sets(conditions, arms, blocks_per_condition, secret)
    words = words_of(secret, "schedule")
    rows = arm_orders(arms, words)
    ids = trial_ids(secret)
    lone = [] if alone is None else _lone(sets, blocks_per_condition, alone[1], secret)
    blocks: list[tuple[str, Sequence[str]]] = []
    for turn in range(blocks_per_condition):
        turned = [shuffled(together, words) for together in shuffled(sets, words)]
        for place in range(len(sets) + 1):
            blocks += [(name, [alone[0]]) for name in lone[turn][place]] if alone else []
            blocks += [(name, next(rows)) for name in (turned[place] if place < len(sets) else ())]
    slots: list[Slot] = []
    for block, (condition, order) in enumerate(blocks):
        for position, arm in enumerate(order):
            slots.append(Slot(len(slots), next(ids), block, position, condition, arm))
    return Schedule(tuple(slots))


def checked_sets(
    conditions: Sequence[str] | Sequence[Sequence[str]], arms: Sequence[str], blocks_per_condition: int, secret: bytes
) -> list[list[str]]:
    """The conditions as sets, for a schedule that can be drawn. Raises ValueError as `draw`."""
    sets = [[entry] if isinstance(entry, str) else list(entry) for entry in conditions]
    names = [name for entry in sets for name in entry]
    if not arms or len(set(arms)) != len(arms) or not all(sets) or not names or len(set(names)) != len(names):
        raise ValueError("a schedule needs distinct arms and at least one condition, each named once")
    if blocks_per_condition < 1 or len(secret) != 32:
        raise ValueError("a schedule needs at least one block per condition and a secret of 32 bytes")
    return sets


def _lone(sets: Sequence[Sequence[str]], turns: int, blocks: int, secret: bytes) -> list[list[list[str]]]:
    """For each turn through the conditions, before each set and after the last: at which conditions an arm has a block
    by itself there. Those of a condition are spread evenly over the turns, those of a turn anywhere between its sets.
    """
    words, names = words_of(secret, "alone"), [name for entry in sets for name in entry]
    found: list[list[list[str]]] = [[[] for _ in range(len(sets) + 1)] for _ in range(turns)]
    for number in range(blocks):
        for name in shuffled(names, words):
            found[(2 * number + 1) * turns // (2 * blocks)][below(len(sets) + 1, words)].append(name)
    return found


def williams(k: int) -> list[list[int]]:
    """Rows of a Williams design for k treatments: k rows when k is even, 2k (the square and its mirror) when k is odd.

    Over all rows each treatment stands equally often at each position and follows each other treatment equally often.
    """
    zigzag = [step // 2 if step % 2 == 0 else k - 1 - step // 2 for step in range(k)]
    square = [[(entry + shift) % k for entry in zigzag] for shift in range(k)]
    return square if k % 2 == 0 else square + [row[::-1] for row in square]


def compared_positions(arms: int, blocks: int, secret: bytes) -> list[tuple[int, int]]:
    """Which two positions of each block, from 0 on, are compared by preference, the earlier one first.

    Drawn apart from the labels: the same pair throughout each square of the schedule, all pairs in turn. The columns of
    a square are permutations of the arms, so in each complete one every arm runs as often as the first of a pair as it
    does as the second; and no position says anything of an arm that the schedule does not say.
    """
    if arms < 2:
        raise ValueError("a pair is of two arms")
    words, rows = words_of(secret, "preference"), len(williams(arms))
    found: list[tuple[int, int]] = []
    while len(found) < blocks:
        for pair in shuffled(list(itertools.combinations(range(arms), 2)), words):
            found += [pair] * rows
    return found[:blocks]


def deducible_share(kinds: Sequence[str], alone: float = 0.0) -> float:
    """Share of slots whose arm a watcher can name, given the arms' kinds, when only a person at the controls can be
    seen. alone: blocks of the person by itself for each block with every arm; whoever reads the schedule knows those.

    The person's own slots are seen. With one other arm the rest follows by elimination, so all slots are known. With
    two or more others none of theirs can be named, however much of the design is known: every square carries a fresh
    uniform permutation of labels, so exchanging two unseen arms throughout a square turns each schedule into another
    one, equally likely and with the same slots for the person. Without a person nothing is seen and nothing follows.

    This says nothing of arms that betray themselves by how they move: who recognises one arm in a square can deduce
    more.
    """
    people = sum(kind == "human" for kind in kinds)
    if people and len(kinds) - people == 1:
        return 1.0
    return (people + alone) / (len(kinds) + alone)


ENUMERATED_ARMS = 4
"""Arms above which a square's ways are not searched for: of 5 and 6 there are two, throughout it or not at all."""


def exchanges(orders: Sequence[Sequence[str]], pair: tuple[str, str]) -> list[tuple[int, list[tuple[int, ...]] | None]]:
    """How the labels of two arms could have been drawn otherwise, every other arm where it is.

    `orders` are the arms of every block, in the order of the blocks. For each square that the design drew: the number
    of its first block, and every way in which the two arms could have stood in its blocks, a 1 for each block in which
    they would have exchanged places, the way they stood first; None where these blocks are of no square of the design.
    All ways of a square are equally likely, since its labels and rows are shuffled evenly, and squares are drawn
    independently of each other.
    """
    a, b = pair
    rows = [tuple(order) for order in orders]
    design = [tuple(row) for row in williams(len(rows[0]))]
    turned = [tuple(b if arm == a else a if arm == b else arm for arm in row) for row in rows]
    found: list[tuple[int, list[tuple[int, ...]] | None]] = []
    for start in range(0, len(rows), len(design)):
        both = list(zip(rows[start : start + len(design)], turned[start : start + len(design)], strict=True))
        ways = itertools.product((0, 1), repeat=len(both))
        if len(rows[0]) > ENUMERATED_ARMS:
            ways = iter([(0,) * len(both), (1,) * len(both)])
        listed = [way for way in ways if _of_one_square([two[k] for two, k in zip(both, way, strict=True)], design)]
        found.append((start, listed if listed and not any(listed[0]) else None))
    return found


def _of_one_square(rows: Sequence[tuple[str, ...]], design: Sequence[tuple[int, ...]]) -> bool:
    """Whether distinct rows stand in one square of the design under some labels."""
    if len(set(rows)) < len(rows):
        return False
    for entry in design:
        label = dict(zip(entry, rows[0], strict=True))
        if {tuple(label[place] for place in row) for row in design}.issuperset(rows):
            return True
    return False


def arm_orders(arms: Sequence[str], words: Iterator[int]) -> Iterator[list[str]]:
    """Endless orders of the arms, those of one Williams square after the other: labels permuted and rows shuffled for
    each.
    """
    while True:
        labels = shuffled(arms, words)
        for row in shuffled(williams(len(arms)), words):
            yield [labels[entry] for entry in row]


def trial_ids(secret: bytes) -> Iterator[str]:
    """Endless opaque ids, no two alike."""
    words = words_of(secret, "trial-ids")
    used: set[str] = set()
    while True:
        found = "t-" + "".join(_ID_LETTERS[below(len(_ID_LETTERS), words)] for _ in range(6))
        if found not in used:
            used.add(found)
            yield found


def words_of(secret: bytes, label: str) -> Iterator[int]:
    """Endless unsigned 64-bit integers for a label."""
    number = 0
    while True:
        page = drbg(secret, f"{label}:{number}", 32)
        yield from (int.from_bytes(page[start : start + 8], "big") for start in range(0, 32, 8))
        number += 1


def below(n: int, words: Iterator[int]) -> int:
    """A uniform integer in [0, n): words beyond the last whole multiple of n are rejected, so no value is favoured."""
    limit = 2**64 - 2**64 % n
    return next(word for word in words if word < limit) % n


def shuffled(items: Sequence[T], words: Iterator[int]) -> list[T]:
    """A uniform permutation (Fisher-Yates)."""
    result = list(items)
    for last in range(len(result) - 1, 0, -1):
        other = below(last + 1, words)
        result[last], result[other] = result[other], result[last]
    return result
