"""Which cell runs which block of one campaign, and on which day, drawn from the campaign's 32 secret bytes.

May not: read entropy, a clock or a file; move a block that has begun; or change what arm a trial was drawn for: a cell
that drops out changes where blocks are run, never what was sealed.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from labctl.core.design import Schedule, Slot, arm_orders, below, checked_sets, shuffled, trial_ids, words_of


@dataclass(frozen=True, slots=True)
class CellBlock:
    """One block: `number` counts from 0 over all cells, `together` is the same in blocks that stand side by side (a
    condition and what perturbs it), and moves as one.

    drawn_for, drawn_place: the cell that it was drawn for and its place among that cell's blocks, which never change:
    the squares of the design are made of those. `cell` runs it now, as number `place` of its blocks, on the planned
    `day`, both from 0. trials, arms: of each slot in the order that they run; `arms` is sealed.
    """

    number: int
    together: int
    condition: str
    drawn_for: str
    drawn_place: int
    cell: str
    place: int
    day: int
    trials: tuple[str, ...]
    arms: tuple[str, ...]


@dataclass(frozen=True)
class Allocation:
    """Every block of a campaign in several cells, by number."""

    cells: tuple[str, ...]
    blocks: tuple[CellBlock, ...]

    def of(self, cell: str) -> Schedule:
        """The schedule of one cell: slots counted from 0 in the order that they are run there, blocks by their number
        over all cells.
        """
        slots: list[Slot] = []
        own = sorted((block for block in self.blocks if block.cell == cell), key=lambda block: block.place)
        for block in own:
            for position, (trial, arm) in enumerate(zip(block.trials, block.arms, strict=True)):
                slots.append(Slot(len(slots), trial, block.number, position, block.condition, arm))
        return Schedule(tuple(slots))


def allocate(
    conditions: Sequence[str] | Sequence[Sequence[str]],
    arms: Sequence[str],
    blocks_per_condition: int,
    secret: bytes,
    cells: Sequence[str],
    days: int | None = None,
) -> Allocation:
    """Deal every block of a campaign to one cell and one day, and draw the order of its arms.

    conditions, arms, blocks_per_condition: as `design.draw` takes them; a set of conditions goes to a cell and a day
    together. days: evenings planned in each cell [default: as many as a condition has blocks in a cell].

    Blocks are dealt one after the other along the diagonals of the table of cells × days, the sets of conditions in an
    order that is drawn: cells × days differ by at most one set in how many they hold of all, and of any one; so do
    cells, and days where their number and that of the cells have no common divisor, else by two at most. Each cell
    has Williams squares of its own, labels drawn anew for each, so that every whole square in it is balanced for
    position and carry-over, and labels are swapped within a block and therefore within a cell.

    Raises ValueError for what `draw` refuses, fewer than two cells, a cell named twice or no day.
    """
    sets = checked_sets(conditions, arms, blocks_per_condition, secret)
    if len(cells) < 2 or len(set(cells)) != len(cells):
        raise ValueError("an allocation needs two cells or more, each named once")
    if days is not None and days < 1:
        raise ValueError("an allocation needs at least one day")
    evenings = days or -(-blocks_per_condition // len(cells))
    units = _deal(sets, blocks_per_condition, cells, evenings, secret)
    return _numbered(units, arms, cells, evenings, secret)


@dataclass(frozen=True)
class _Unit:
    """Blocks dealt together: the conditions of a set, each once."""

    conditions: tuple[str, ...]
    cell: str
    day: int


def _deal(sets: Sequence[Sequence[str]], blocks: int, cells: Sequence[str], days: int, secret: bytes) -> list[_Unit]:
    """Each set `blocks` times, dealt along the diagonals of cells × days from a cell and a day that are drawn on."""
    words = words_of(secret, "cells")
    over, evenings = shuffled(cells, words), shuffled(range(days), words)
    common = math.gcd(len(over), days)
    cycle = len(over) * days // common
    at = below(len(over) * days, words)
    units: list[_Unit] = []
    for together in shuffled(sets, words):
        for _ in range(blocks):
            turn = at // cycle % common
            units.append(_Unit(tuple(together), over[at % len(over)], evenings[(at + turn) % days]))
            at += 1
    return units


def _numbered(
    units: Sequence[_Unit], arms: Sequence[str], cells: Sequence[str], days: int, secret: bytes
) -> Allocation:
    """The blocks of units in the order that they run: by day, those of each cell shuffled, cells in turn."""
    row: list[tuple[int, int, int, int, str, list[str]]] = []  # day, place in the day, cell, unit, condition, arms
    for c, cell in enumerate(cells):
        words, drawn = words_of(secret, f"cells:order:{cell}"), arm_orders(arms, words_of(secret, f"schedule:{cell}"))
        for day in range(days):
            own = [i for i, unit in enumerate(units) if (unit.cell, unit.day) == (cell, day)]
            turns = [(i, name) for i in shuffled(own, words) for name in shuffled(units[i].conditions, words)]
            row += [(day, place, c, i, name, next(drawn)) for place, (i, name) in enumerate(turns)]
    ids = trial_ids(secret)
    made: list[CellBlock] = []
    places = Counter[str]()
    for number, (day, _, c, i, condition, order) in enumerate(sorted(row, key=lambda one: one[:3])):
        cell, place = cells[c], places[cells[c]]
        places[cell] += 1
        trials = tuple(next(ids) for _ in order)
        made.append(CellBlock(number, i, condition, cell, place, cell, place, day, trials, tuple(order)))
    return Allocation(tuple(cells), tuple(made))


def redistribute(
    allocation: Allocation, present: Collection[str], begun: Collection[int], today: int = 0
) -> Allocation:
    """Who runs what is left, when a cell drops out or comes back; the same call for both, and for one that never does.

    present: the cells that can run. begun: numbers of the blocks with a trial that has been committed: they, and those
    that stand together with them, stay where they are, finished or not, also in a cell that is gone: nothing is run
    twice, and no block is completed on another rig. All others go first to the cell that they were drawn for, if that
    is present; the rest to the cell that has the fewest of its conditions, then the fewest blocks; and then blocks move
    while that makes what each cell holds in all (begun or not) more alike, conditions before totals. Without a present
    cell everything stays. today: planned days before it are made up for on that day of the cell that holds the fewest.

    Trials, arms and drawn places stay as they were sealed. The result depends on the arguments alone, never on an arm.
    Raises ValueError for a cell or a block that there is not.
    """
    if unknown := sorted(set(present) - set(allocation.cells)):
        raise ValueError(f"no cell {unknown[0]!r}; the cells are {', '.join(allocation.cells)}")
    if unknown := sorted(set(begun) - {block.number for block in allocation.blocks}):
        raise ValueError(f"no block {unknown[0]}; there are {len(allocation.blocks)}")
    able = [cell for cell in allocation.cells if cell in present]
    if not able:
        return allocation
    begun_units = {block.together for block in allocation.blocks if block.number in begun}
    held: dict[int, list[CellBlock]] = defaultdict(list)
    for block in allocation.blocks:
        held[block.together].append(block)
    table = _Held(able)
    free: list[int] = []
    for unit, own in held.items():
        if unit in begun_units:
            table.put(_kind(own), len(own), own[0].cell)
        else:
            free.append(unit)
    where: dict[int, str] = {}
    for unit in sorted(free, key=lambda one: held[one][0].drawn_for not in able):
        own = held[unit]
        where[unit] = own[0].drawn_for if own[0].drawn_for in able else table.fewest(_kind(own))
        table.put(_kind(own), len(own), where[unit])
    while (better := _best_move(table, where, held)) is not None:
        unit, to = better
        table.put(_kind(held[unit]), -len(held[unit]), where[unit])
        table.put(_kind(held[unit]), len(held[unit]), to)
        where[unit] = to
    return _placed(allocation, where, held, able, today)


def _kind(blocks: Sequence[CellBlock]) -> tuple[str, ...]:
    """What balances: the conditions of blocks that stand together."""
    return tuple(sorted(block.condition for block in blocks))


@dataclass
class _Held:
    """How many units of each kind, and how many blocks in all, each cell holds."""

    able: Sequence[str]
    units: Counter[tuple[tuple[str, ...], str]] = field(default_factory=Counter[tuple[tuple[str, ...], str]])
    blocks: Counter[str] = field(default_factory=Counter[str])

    def put(self, kind: tuple[str, ...], blocks: int, cell: str) -> None:
        self.units[kind, cell] += 1 if blocks > 0 else -1
        self.blocks[cell] += blocks

    def fewest(self, kind: tuple[str, ...]) -> str:
        """The present cell with the fewest units of a kind, of those the one with the fewest blocks, then the first."""
        return min(self.able, key=lambda cell: (self.units[kind, cell], self.blocks[cell]))

    def gain(self, kind: tuple[str, ...], blocks: int, here: str, to: str) -> tuple[int, int]:
        """By how much a move changes the sums of squares of units by kind and cell, and of blocks by cell, halved."""
        return (
            self.units[kind, to] - self.units[kind, here] + 1,
            blocks * (self.blocks[to] - self.blocks[here] + blocks),
        )


def _best_move(
    table: _Held, where: Mapping[int, str], held: Mapping[int, Sequence[CellBlock]]
) -> tuple[int, str] | None:
    """The unit and the cell whose move makes cells most alike; None where no move does."""
    best: tuple[tuple[int, int], int, str] | None = None
    for unit, here in where.items():
        kind, size = _kind(held[unit]), len(held[unit])
        for to in table.able:
            if to == here:
                continue
            gain = table.gain(kind, size, here, to)
            if gain < (0, 0) and (best is None or gain < best[0]):
                best = gain, unit, to
    return None if best is None else best[1:]


def _placed(
    allocation: Allocation,
    where: Mapping[int, str],
    held: Mapping[int, Sequence[CellBlock]],
    able: Sequence[str],
    today: int,
) -> Allocation:
    """The allocation with the units of `where` in their cells, behind the blocks that stay there, days made up for."""
    last = max((block.day for block in allocation.blocks), default=0)
    found = {b.number: b for b in allocation.blocks if b.together not in where}
    for cell in able:
        own = [unit for unit, at in where.items() if at == cell]
        full = Counter(b.day for u in own for b in held[u] if b.day >= today)
        days: dict[int, int] = {}
        for unit in own:
            day = held[unit][0].day
            if day < today:
                day = min(range(today, max(today, last) + 1), key=lambda one: (full[one], one))
                full[day] += len(held[unit])
            days[unit] = day
        place = 1 + max((b.place for b in found.values() if b.cell == cell), default=-1)
        for unit in sorted(own, key=lambda one: (days[one], held[one][0].number)):
            for block in sorted(held[unit], key=lambda one: one.number):
                found[block.number] = replace(block, cell=cell, place=place, day=days[unit])
                place += 1
    return Allocation(allocation.cells, tuple(found[number] for number in sorted(found)))
