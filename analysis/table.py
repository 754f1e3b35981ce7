"""The operations table as arrays: one row per timed operation, checked against every rule of the interface.

Computes no statistics, opens no file (`reading.py` does) and never repairs a row: a wrong one is refused.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from labctl.errors import TableError

REQUIRED = ("episode", "arm", "object", "kind", "time_s")
OPTIONAL = (
    *("op_index", "items_staged", "end_s", "budget_s", "block", "session", "trial", "condition", "cause", "stage"),
    *("operator", "tote_side", "camera_side", "axis", "void", "interventions", "alone", "cell"),
)
OF_EPISODE = (
    *("episode", "arm", "object", "items_staged", "end_s", "budget_s", "block", "session", "condition", "operator"),
    *("tote_side", "camera_side", "void", "interventions", "alone", "cell"),
)
"""Columns that every row of an episode repeats."""
STAGED = ("session", "condition", "operator", "tote_side", "camera_side")
"""What the table holds of an episode's staging, "" where it has none."""
SUCCESS, CENSORED, GHOST = 0, 1, 2
KINDS = {"success": SUCCESS, "censored": CENSORED, "ghost": GHOST}
WRONG_END = "wrong_end"
"""Cause of what was open when a device ended an episode as all done by mistake: censored there, and no failure."""
UNKNOWN = -1
"""Stands for an absent integer: a ghost's unknown time, no `end_s`, no `budget_s`, no `items_staged`."""
LONGEST_S = 1e9
NS = 1_000_000_000
Value = str | int | float | None
Row = Mapping[str, Value]
"""A row by its columns: text or numbers, None or "" for empty."""


@dataclass(frozen=True)
class Episode:
    """What is the same in all rows of an episode; times in nanoseconds, `UNKNOWN` where the table has nothing. alone:
    of an extra block of its arm by itself, which enters no comparison within blocks. cell: the robot's cell that it was
    run in, "" in a table of one; `object` in a table of several is that of `in_cell`.
    """

    name: str
    arm: str
    object: str
    block: str
    items_staged: int
    end_ns: int
    budget_ns: int
    void: bool
    line: int
    session: str = ""
    condition: str = ""
    operator: str = ""
    tote_side: str = ""
    camera_side: str = ""
    interventions: int = UNKNOWN
    alone: bool = False
    cell: str = ""


AT = " @ "


def in_cell(thing: str, cell: str) -> str:
    """What an object is called in the analysis of a table of several cells: in each it is another one to compare at,
    since whatever is compared, a person's times among it, is compared on the same rig.
    """
    return f"{thing}{AT}{cell}"


@dataclass(frozen=True)
class Table:
    """Rows as columns, in file order, those of an episode by `op_index` if given; `episode[i]` indexes `episodes`.

    `kind` holds `SUCCESS`, `CENSORED` or `GHOST`; `time_ns` is `UNKNOWN` for a ghost without a time.
    """

    where: str
    episodes: tuple[Episode, ...]
    episode: NDArray[np.int64]
    kind: NDArray[np.int8]
    time_ns: NDArray[np.int64]
    cause: tuple[str, ...]

    def arms(self) -> tuple[str, ...]:
        """Names of the arms, sorted."""
        return tuple(sorted({e.arm for e in self.episodes}))

    def rigs(self) -> tuple[str, ...]:
        """Names of the robots' cells, sorted; none in a table of one."""
        return tuple(sorted({e.cell for e in self.episodes} - {""}))

    def cells(self) -> dict[tuple[str, str], tuple[int, ...]]:
        """Indices of the episodes of every (arm, object), void ones left out; both sorted by name."""
        found: dict[tuple[str, str], list[int]] = {}
        for i, e in enumerate(self.episodes):
            if not e.void:
                found.setdefault((e.arm, e.object), []).append(i)
        return {key: tuple(found[key]) for key in sorted(found)}

    def compared(self) -> Table:
        """Without the episodes of extra blocks of an arm by itself; the same table where there are none."""
        kept = [i for i, e in enumerate(self.episodes) if not e.alone]
        if len(kept) == len(self.episodes):
            return self
        rows = np.isin(self.episode, kept)
        episode = np.searchsorted(kept, self.episode[rows])
        cause = tuple(text for text, keep in zip(self.cause, rows, strict=True) if keep)
        episodes = tuple(self.episodes[i] for i in kept)
        return replace(
            self, episodes=episodes, episode=episode, kind=self.kind[rows], time_ns=self.time_ns[rows], cause=cause
        )

    def rows_by_episode(self) -> list[NDArray[np.int64]]:
        """Row numbers of every episode, in file order."""
        order = np.argsort(self.episode, kind="stable")
        return np.split(order, np.cumsum(np.bincount(self.episode, minlength=len(self.episodes)))[:-1])


def check_required(names: Sequence[str], required: Sequence[str], where: str) -> None:
    """Refuse a header with repeated columns, or without one of the required."""
    repeated = sorted({n for n in names if names.count(n) > 1})
    if repeated:
        raise TableError(where, f"column {repeated[0]!r} appears {names.count(repeated[0])} times; keep one")
    missing = [n for n in required if n not in names]
    if missing:
        raise TableError(where, f"missing column {', '.join(missing)}; required are {', '.join(required)}")


def check_columns(names: Sequence[str], where: str, *, extra: bool = False) -> None:
    """Refuse a header with repeated, missing or (unless `extra`) unknown columns."""
    check_required(names, REQUIRED, where)
    unknown = [n for n in names if n not in REQUIRED and n not in OPTIONAL]
    if unknown and not extra:
        known = ", ".join((*REQUIRED, *OPTIONAL))
        raise TableError(where, f"unknown column {unknown[0]!r}; known are {known} (--extra admits others)")


def table_from_rows(rows: Iterable[Row], *, source: str = "table", first_line: int = 1, extra: bool = False) -> Table:
    """Check rows (text or numbers, None or "" for empty) and lay them out; row i counts as line `first_line + i`.

    Raises `TableError` naming `source:line`, the value found, what is allowed and what to do.
    """
    listed = list(rows)
    if not listed:
        raise TableError(source, "no rows; an operations table needs at least one operation")
    check_columns(list(listed[0]), f"{source}:{first_line}", extra=extra)
    return table_from_lines(((first_line + i, row) for i, row in enumerate(listed)), source)


def table_from_lines(lines: Iterable[tuple[int, Row]], source: str) -> Table:
    """The table of (line number, row) pairs whose columns were already checked."""
    index: dict[str, int] = {}
    episodes: list[Episode] = []
    index_of: list[int] = []
    lines_of: list[int] = []
    episode: list[int] = []
    kind: list[int] = []
    time_ns: list[int] = []
    cause: list[str] = []
    stated_by: tuple[list[Value], str] | None = None
    for line, row in lines:
        where = f"{source}:{line}"
        again = [row.get(column) for column in OF_EPISODE]
        if stated_by is not None and stated_by[0] == again:
            stated = episodes[index[stated_by[1]]]
        else:
            stated = _episode(row, where, line)
            stated_by = again, stated.name
        if stated.name not in index:
            index[stated.name] = len(episodes)
            episodes.append(stated)
        elif stated is not episodes[index[stated.name]]:
            _same(episodes[index[stated.name]], stated, where)
        code = _kind(row, where)
        index_of.append(_whole(row, "op_index", 0, where))
        lines_of.append(line)
        episode.append(index[stated.name])
        kind.append(code)
        time_ns.append(_time(row.get("time_s"), "time_s", where, may_be_empty=code == GHOST))
        cause.append(_text(row.get("cause")))
    if not episodes:
        raise TableError(source, "no rows below the header; an operations table needs at least one operation")
    order = _in_order(episodes, episode, index_of, lines_of, source)
    episodes = _over_cells(episodes, source)
    whole = Table(
        source, tuple(episodes), np.array(episode)[order], np.array(kind, dtype=np.int8)[order],
        np.array(time_ns)[order], tuple(cause[i] for i in order),
    )  # fmt: skip
    _check_episodes(whole, [lines_of[i] for i in order])
    return whole


def _over_cells(episodes: list[Episode], source: str) -> list[Episode]:
    """The episodes of several cells with each object as it is in its cell; as they are where there is one cell.

    Raises `TableError` for an episode without a cell among others, and for a block in two.
    """
    cells = sorted({e.cell for e in episodes})
    if len(cells) < 2:
        return [replace(e, cell="") for e in episodes] if cells != [""] else episodes
    block: dict[str, Episode] = {}
    for e in episodes:
        if not e.cell:
            remedy = f"every episode names its cell ({', '.join(filter(None, cells))}), or none does"
            raise TableError(f"{source}:{e.line}", f"episode {e.name!r} has no cell; {remedy}")
        first = block.setdefault(e.block, e)
        if e.block and first.cell != e.cell:
            found = f"block {e.block!r} is in cell {e.cell!r} here and in {first.cell!r} in line {first.line}"
            raise TableError(
                f"{source}:{e.line}", f"{found}; a block is run in one cell: name blocks of each its own way"
            )
    return [replace(e, object=in_cell(e.object, e.cell)) for e in episodes]


def _in_order(
    episodes: Sequence[Episode], episode: Sequence[int], index: Sequence[int], lines: Sequence[int], source: str
) -> list[int]:
    """Row numbers with those of every episode in the order of `op_index`; the file's order where no row has one."""
    if all(number == UNKNOWN for number in index):
        return list(range(len(episode)))
    first: dict[tuple[int, int], int] = {}
    numbered: dict[int, bool] = {}
    for at, number, line in zip(episode, index, lines, strict=True):
        name = episodes[at].name
        if numbered.setdefault(at, number != UNKNOWN) != (number != UNKNOWN):
            found = f"episode {name!r} has rows with an op_index and rows without"
            raise TableError(f"{source}:{line}", f"{found}; number all of them in the order they happened, or none")
        if number != UNKNOWN and (at, number) in first:
            found = f"episode {name!r} has op_index {number} here and in line {first[at, number]}"
            raise TableError(f"{source}:{line}", f"{found}; each row of an episode has a number of its own")
        first[at, number] = line
    places: dict[int, list[int]] = {}
    for row, at in enumerate(episode):
        places.setdefault(at, []).append(row)
    order = list(range(len(episode)))
    for rows in places.values():
        for place, row in zip(rows, sorted(rows, key=lambda row: index[row]), strict=True):
            order[place] = row
    return order


LATE_S, LATE_SHARE = 1.0, 0.01
"""By how much, in s or as a share of the budget, an episode may outlast its budget: a stop takes a moment."""


def _check_episodes(table: Table, lines: Sequence[int]) -> None:
    """Refuse rows after a censored one and times that no budget holds."""
    tail: dict[int, int] = {}
    walked = [0] * len(table.episodes)
    for at, kind, time, line in zip(table.episode.tolist(), table.kind, table.time_ns.tolist(), lines, strict=True):
        episode, where = table.episodes[at], f"{table.where}:{line}"
        if at in tail:
            found = f"episode {episode.name!r} goes on after its censored row (line {tail[at]})"
            raise TableError(where, f"{found}; at most one censored row is allowed and it is the last")
        if kind == CENSORED:
            tail[at] = line
        reached = max(walked[at] + max(time, 0), episode.end_ns)
        walked[at] += time if kind == SUCCESS else 0
        if episode.budget_ns != UNKNOWN and reached > episode.budget_ns * (1 + LATE_SHARE) + LATE_S * NS:
            found = (
                f"episode {episode.name!r} is {reached / NS:g} s in, beyond its budget_s of {episode.budget_ns / NS:g}"
            )
            hint = "time_s counts from the previous success of the episode, or from go; correct times or budget_s"
            raise TableError(where, f"{found}; {hint}")


def _episode(row: Row, where: str, line: int) -> Episode:
    named = {name: _text(row.get(name)) for name in ("episode", "arm", "object")}
    for name, value in named.items():
        if not value:
            raise TableError(where, f"{name} is empty; every row names its {name}")
    budget = _time(row.get("budget_s"), "budget_s", where, may_be_empty=True)
    if budget == 0:
        raise TableError(where, "budget_s is 0; allowed is a time above 0 s, or empty when unknown")
    return Episode(
        named["episode"],
        named["arm"],
        named["object"],
        _text(row.get("block")),
        _whole(row, "items_staged", 1, where),
        _time(row.get("end_s"), "end_s", where, may_be_empty=True),
        budget,
        is_yes(row.get("void")),
        line,
        *(_text(row.get(name)) for name in STAGED),
        interventions=_whole(row, "interventions", 0, where),
        alone=is_yes(row.get("alone")),
        cell=_text(row.get("cell")),
    )


def is_yes(value: Value) -> bool:
    """Whether a cell says so: anything but empty, not a number, 0, false and no."""
    return value == value and _text(value).lower() not in ("", "0", "0.0", "false", "no")


def _same(first: Episode, stated: Episode, where: str) -> None:
    stated_once = ("arm", "object", "block", "items_staged", "end_ns", "budget_ns", "void", "interventions", "alone")
    for name in (*stated_once, "cell", *STAGED):
        a, b = getattr(first, name), getattr(stated, name)
        if a != b:
            column = {"end_ns": "end_s", "budget_ns": "budget_s"}.get(name, name)
            if column != name:
                a, b = (("empty" if v == UNKNOWN else v / NS) for v in (a, b))
            problem = f"episode {stated.name!r} has {column} {b!r} here and {a!r} in line {first.line}"
            raise TableError(where, f"{problem}; an episode has one {column}: correct one or rename the episode")


def _kind(row: Row, where: str) -> int:
    found = _text(row.get("kind"))
    if found not in KINDS:
        raise TableError(where, f"kind is {found!r}; allowed are {', '.join(KINDS)}")
    return KINDS[found]


def _text(value: Value) -> str:
    return "" if value is None else str(value).strip()


def _time(value: Value, column: str, where: str, *, may_be_empty: bool) -> int:
    """Nanoseconds, exactly rounded: near ties such as 0.1 + 0.2 and 0.3 become one time, as R's timefix does."""
    text = _text(value)
    if not text and may_be_empty:
        return UNKNOWN
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not (math.isfinite(seconds) and 0 <= seconds <= LONGEST_S):
        remedy = "leave it empty if unknown" if may_be_empty else "a lost item is kind ghost with an empty time_s"
        found = "empty" if not text else repr(text)
        raise TableError(where, f"{column} is {found}; allowed is a finite time in seconds, 0 or more; {remedy}")
    return _nanoseconds(seconds)


@functools.lru_cache(4096)
def _nanoseconds(seconds: float) -> int:
    """The nearest whole number of nanoseconds, of two as near the even one: of the number as it is, not of a product
    that was rounded before.
    """
    over, under = seconds.as_integer_ratio()
    whole, rest = divmod(over * NS, under)
    return whole + (2 * rest > under or (2 * rest == under and whole % 2))


def _whole(row: Row, column: str, least: int, where: str) -> int:
    text = _text(row.get(column))
    if not text:
        return UNKNOWN
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not (math.isfinite(number) and number >= least and number == int(number)):
        raise TableError(where, f"{column} is {text!r}; allowed is a whole number, {least} or more, or empty")
    return int(number)
