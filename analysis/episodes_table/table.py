"""The episodes table as arrays: one row an episode, checked against every rule of the interface.

Computes no statistics, opens no file (`reading.py` does) and never repairs a row: a wrong one is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from labctl.analysis.binary.pooling import category
from labctl.analysis.episodes_table.columns import MEASURES, NUMBERS, OF_BLOCK, STAGE_TIME, TEXTS, check_columns
from labctl.analysis.episodes_table.values import is_printable, is_void, number, text
from labctl.analysis.survival.curves import Floats, Ints
from labctl.analysis.table import LATE_S, LATE_SHARE, Row
from labctl.errors import TableError

TIE = "tie"
SPLITS = ("train", "test", "")
Line = int | str
"""Where a row is: the line of its source, or of a row from one of several files what says which, "FILE: PLACE"."""
Lines = Iterable[tuple[Line, Row]]


@dataclass(frozen=True)
class EpisodesTable:
    """Columns of the episodes that count, in file order; void ones are left out and counted in `voids` by arm.

    `block[i]` indexes `blocks`, which are in order of first appearance, `arm[i]` indexes `arms`, sorted. `number` holds
    success, score, time_s and every other number by column, NaN where a row has none; `stage_s` [rows, stages] when
    each stage was reached, in s since go, NaN where it was not or nobody knows; `words` every text column, "" if empty.
    """

    where: str
    blocks: tuple[str, ...]
    arms: tuple[str, ...]
    block: Ints
    arm: Ints
    number: Mapping[str, Floats]
    stage_s: Floats
    words: Mapping[str, tuple[str, ...]]
    lines: tuple[Line, ...]
    voids: Mapping[str, int]

    def has(self, column: str) -> bool:
        """Whether any row has something in this column."""
        if column in self.number:
            return bool(np.isfinite(self.number[column]).any())
        return any(self.words[column])

    def grid(self, column: str) -> Floats:
        """A number by block and arm [blocks, arms], NaN where an arm has no row in a block, or the row no number."""
        out = np.full((len(self.blocks), len(self.arms)), np.nan)
        out[self.block, self.arm] = self.number[column]
        return out

    def of_block(self, column: str) -> list[str]:
        """A text that all rows of a block share [blocks]; of other columns, that of the block's first row."""
        out = [""] * len(self.blocks)
        for at, word in zip(self.block[::-1].tolist(), self.words[column][::-1], strict=True):
            out[at] = word
        return out


def table_from_rows(rows: Iterable[Row], *, source: str = "table", extra: bool = False) -> EpisodesTable:
    """Check rows (text or numbers, None or "" for empty) and lay them out; the first counts as line 1.

    Raises `TableError` naming `source:line`, the value found, what is allowed and what to do.
    """
    listed = list(rows)
    if not listed:
        raise TableError(source, "no rows; an episodes table needs at least one episode")
    check_columns(list(listed[0]), f"{source}:1", extra=extra)
    return table_from_lines(enumerate(listed, 1), source)


def table_from_lines(lines: Lines, source: str) -> EpisodesTable:
    """The table of (line, row) pairs whose columns were already checked."""
    kept: list[tuple[Line, Row]] = []
    voided: dict[tuple[str, str], int] = {}
    for line, row in lines:
        where = place(source, line)
        key = (_named(row, "block", where), _named(row, "arm", where))
        if is_void(row):
            voided[key] = voided.get(key, 0) + 1
        else:
            kept.append((line, row))
    if not kept:
        remedy = "give one row for each episode" if not voided else "give those that are not void as well"
        raise TableError(source, f"no episode that counts below the header; {remedy}")
    places = [place(source, line) for line, _ in kept]
    rows = [row for _, row in kept]
    block = [text(row["block"]) for row in rows]
    arm = [text(row["arm"]) for row in rows]
    blocks, arms = tuple(dict.fromkeys(block)), tuple(sorted(set(arm)))
    columns = {c: np.array([number(r, c, w) for r, w in zip(rows, places, strict=True)]) for c in (*MEASURES, *NUMBERS)}
    words = {c: tuple(text(row.get(c)) for row in rows) for c in TEXTS}
    table = EpisodesTable(
        source, blocks, arms,
        _places(block, blocks), _places(arm, arms), columns, _stage_times(rows, places), words,
        tuple(line for line, _ in kept), _by_arm(voided),
    )  # fmt: skip
    _check_blocks(table, set(voided))
    _check_rows(table)
    _check_bases(table)
    return table


def place(source: str, line: Line) -> str:
    """A row's place as an error names it."""
    return f"{source}:{line}" if isinstance(line, int) else line


def _in(line: Line) -> str:
    return f"in line {line}" if isinstance(line, int) else f"in {line}"


def _places(names: Sequence[str], of: Sequence[str]) -> Ints:
    place = {name: i for i, name in enumerate(of)}
    return np.array([place[name] for name in names], dtype=np.int64)


def _by_arm(voided: Mapping[tuple[str, str], int]) -> dict[str, int]:
    return {arm: sum(n for (_, a), n in voided.items() if a == arm) for arm in sorted({a for _, a in voided})}


def _named(row: Row, column: str, where: str) -> str:
    found = text(row.get(column))
    if not found:
        raise TableError(where, f"{column} is empty; every row names its {column}")
    if not is_printable(found):
        raise TableError(where, f"{column} is {found!r}, with a line break or another control character; take it out")
    return found


def _stage_times(rows: Sequence[Row], places: Sequence[str]) -> Floats:
    count = max((int(found[1]) for name in rows[0] if (found := STAGE_TIME.match(name))), default=0)
    out = np.full((len(rows), count), np.nan)
    for i, (row, where) in enumerate(zip(rows, places, strict=True)):
        out[i] = [number(row, f"stage_{k}_s", where) for k in range(1, count + 1)]
        reached = out[i][np.isfinite(out[i])]
        if len(reached) and (np.diff(reached) < 0).any():
            raise TableError(where, f"stages are reached at {_listed(reached)} s; a stage comes after those before it")
    return out


def _check_blocks(table: EpisodesTable, voided: set[tuple[str, str]]) -> None:
    """One row an arm, one place an arm, and what a block shares."""
    first: dict[int, int] = {}
    here: dict[tuple[int, int], Line] = {}
    taken: dict[tuple[int, int], Line] = {}
    for i, (at, arm, line) in enumerate(zip(table.block.tolist(), table.arm.tolist(), table.lines, strict=True)):
        where, name = place(table.where, line), table.blocks[at]
        if (at, arm) in here:
            found = f"block {name!r} has arm {table.arms[arm]!r} here and {_in(here[at, arm])}"
            raise TableError(where, f"{found}; at most one row an arm in a block: rename the block, or mark one void")
        here[at, arm] = line
        position = table.number["position"][i]
        if np.isfinite(position):
            if (at, int(position)) in taken:
                found = f"block {name!r} has position {position:g} here and {_in(taken[at, int(position)])}"
                raise TableError(where, f"{found}; each episode of a block has a place of its own, 1 the first")
            taken[at, int(position)] = line
        known = first.setdefault(at, i)
        for column in OF_BLOCK:
            a, b = table.words[column][known], table.words[column][i]
            if a != b:
                found = f"block {name!r} has {column} {b!r} here and {a!r} {_in(table.lines[known])}"
                raise TableError(where, f"{found}; a block has one {column}: correct one or rename the block")
    for at, i in first.items():
        _check_preference(table, at, i, voided)


def _check_preference(table: EpisodesTable, at: int, i: int, voided: set[tuple[str, str]]) -> None:
    """That a preference is of two episodes of its block that count, in the order they ran."""
    where, name = place(table.where, table.lines[i]), table.blocks[at]
    compared, preferred = table.words["compared"][i], table.words["preferred"][i]
    if not compared:
        if preferred:
            raise TableError(
                where, f"preferred is {preferred!r} without compared; name both arms there as first|second"
            )
        return
    two = [arm.strip() for arm in compared.split("|")]
    if len(two) != 2 or two[0] == two[1]:
        raise TableError(where, f"compared is {compared!r}; allowed are two arms, the one that ran first before a |")
    if TIE in two:
        raise TableError(where, f"compared is {compared!r}, and {TIE!r} stands for no preference; rename that arm")
    position = {table.arms[table.arm[j]]: table.number["position"][j] for j in np.flatnonzero(table.block == at)}
    for arm in two:
        if arm not in position:
            why = "its episode is void" if (name, arm) in voided else f"the arms of block {name!r} are others"
            raise TableError(where, f"compared names {arm!r}, but {why}; a preference is about two episodes that count")
    if position[two[0]] > position[two[1]]:
        found = f"compared is {compared!r}, but {two[1]!r} ran before {two[0]!r} by position"
        raise TableError(where, f"{found}; name the one that ran first before the |")
    if preferred and preferred not in (*two, TIE):
        raise TableError(where, f"preferred is {preferred!r}; allowed is {two[0]}, {two[1]}, {TIE} or empty")


def _check_rows(table: EpisodesTable) -> None:
    """That every row says how it went, within its budget, and that stages and times agree."""
    number = table.number
    stages = table.stage_s.shape[1]
    last = np.max(np.where(np.isfinite(table.stage_s), np.arange(1, stages + 1), 0), axis=1) if stages else None
    for i, line in enumerate(table.lines):
        where = place(table.where, line)
        success, score, time, budget = (number[c][i] for c in ("success", "score", "time_s", "budget_s"))
        if math.isnan(success) and math.isnan(score):
            raise TableError(where, "success and score are both empty; say how the episode went, or mark it void")
        if math.isfinite(time) and math.isnan(success):
            raise TableError(
                where, "time_s is given and success empty; write 1 if it was done then, 0 if it ended then"
            )
        if math.isfinite(budget) and time > budget * (1 + LATE_SHARE) + LATE_S:
            raise TableError(where, f"time_s is {time:g}, beyond its budget_s of {budget:g}; correct one of them")
        stage = number["stage"][i]
        if last is not None and math.isfinite(stage) and last[i] > stage:
            raise TableError(where, f"stage is {stage:g}, but stage_{last[i]}_s says when a later one was reached")
        split = table.words["split"][i]
        if split not in SPLITS:
            raise TableError(where, f"split is {split!r}; allowed are {', '.join(SPLITS[:-1])}, or empty")
        category(table.words["axis"][i], where)
        if number["moved"][i] > number["staged"][i]:
            raise TableError(where, f"moved is {number['moved'][i]:g} of {number['staged'][i]:g} staged; correct one")


def _check_bases(table: EpisodesTable) -> None:
    """That each base is a condition of the table and no condition perturbs itself by way of others."""
    base = {c: b for c, b in zip(table.words["condition"], table.words["base"], strict=True) if b}
    known = {*table.words["condition"]} - {""}
    for i, (condition, under) in enumerate(zip(table.words["condition"], table.words["base"], strict=True)):
        where = place(table.where, table.lines[i])
        if under and under not in known:
            listed = ", ".join(sorted(known)) or "none: the column condition is empty"
            raise TableError(where, f"base {under!r} is no condition of this table; its conditions are {listed}")
        walked, at = [condition], under
        while at:
            if at in walked:
                circle = " > ".join([*walked, at])
                raise TableError(where, f"base goes in a circle: {circle}; a base is not perturbed by what perturbs it")
            walked.append(at)
            at = base.get(at, "")


def _listed(values: Floats) -> str:
    return ", ".join(f"{v:g}" for v in values)
