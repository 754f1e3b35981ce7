"""The two tables that are analysed, of operations and of episodes, from a file or a data frame.

May not: estimate anything; `labctl.analysis` does, and checks every row.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from labctl.analysis.survival.curves import KAPLAN_MEIER
from labctl.analysis.survival.verdicts import ALPHA
from labctl.analysis.table import Row, Value
from labctl.api import frames
from labctl.api.frames import Foreign
from labctl.api.notebook import Shown, page
from labctl.errors import TableError
from labctl.plain import count

if TYPE_CHECKING:
    from labctl.analysis.episodes_table.table import EpisodesTable as CheckedEpisodes
    from labctl.analysis.table import Table as CheckedOperations
    from labctl.api.episodes_result import EpisodesAnalysis
    from labctl.api.operations_result import Analysis
    from labctl.api.planning import Power

SHOWN = 20
"""Rows of a table that a notebook shows."""
Rows = Sequence[Mapping[str, Value]]


@dataclass(frozen=True, repr=False)
class _Rows:
    """Rows that were checked; `source` says where they are from."""

    source: str
    rows: Rows = field(compare=False)

    def __len__(self) -> int:
        return len(self.rows)

    def to_frame(self, library: str | None = None) -> Foreign:
        """The rows as they were read: a data frame of pandas, polars or pyarrow."""
        return frames.frame_of(self.rows, library)

    def _repr_html_(self) -> str:
        names = list(dict.fromkeys(name for row in self.rows for name in row))
        rows = [["" if row.get(name) is None else str(row[name]) for name in names] for row in self.rows[:SHOWN]]
        left = len(self.rows) - len(rows)
        return page(repr(self), Shown(names, rows), notes=[f"and {count(left, 'row')} more"] if left else ())


@dataclass(frozen=True, repr=False)
class OperationsTable(_Rows):
    """One row an operation, the timed unit of PhAIL; void episodes are left out of what is counted here."""

    _checked: CheckedOperations = field(compare=False)

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms, sorted."""
        return self._checked.arms()

    @property
    def objects(self) -> tuple[str, ...]:
        """Names of the objects, sorted."""
        return tuple(sorted({episode.object for episode in self._checked.episodes}))

    @property
    def episodes(self) -> int:
        """How many episodes count."""
        return sum(not episode.void for episode in self._checked.episodes)

    def analyze(
        self,
        *,
        reference: str | None = None,
        tau: float | None = None,
        boot: int | None = None,
        perm: int | None = None,
        seed: int = 0,
        alpha: float = ALPHA,
        family: Sequence[str] | None = None,
        margin: float | None = None,
        non_inferior_to: str | None = None,
        estimator: str = KAPLAN_MEIER,
        say: Callable[[str], None] = lambda line: None,
    ) -> Analysis:
        """What `labctl analyze` computes of an operations table, the same numbers for the same seed.

        reference: the arm that the others are compared with; HRT needs one. tau: horizon of the restricted mean in s,
        by default the shortest budget. boot, perm: replicates of the bootstrap and label swaps, 9,999 each by default
        (fewer beyond 20,000 operations). margin: the RMST ratio, above 1, that was registered as near enough. say: is
        told how far it is. Raises TableError for a question that this table cannot answer.
        """
        from labctl.analysis.family import STATISTICS
        from labctl.analysis.monte_carlo import replicates_for
        from labctl.analysis.operations_table import analyze
        from labctl.analysis.survival.result import Margin
        from labctl.api.operations_result import Analysis
        from labctl.software import analysed_by

        size = replicates_for(len(self._checked.kind))
        result = analyze.analyze(
            self._checked,
            reference=reference,
            tau=tau,
            boot=boot or size,
            perm=perm or size,
            seed=seed,
            alpha=alpha,
            family=tuple(family or STATISTICS),
            margin=None if margin is None else Margin(rmst_ratio=margin, non_inferior_to=non_inferior_to),
            estimator=estimator,
            say=say,
        )
        return Analysis.of({**result, "analysed_by": analysed_by()})

    def power(
        self,
        sizes: Sequence[int],
        *,
        reference: str | None = None,
        tau: float | None = None,
        alpha: float = ALPHA,
        target: float = 0.8,
        runs: int = 200,
        perm: int = 299,
        seed: int = 0,
        say: Callable[[str, int, int], None] = lambda what, done, of: None,
    ) -> Power:
        """What `labctl power --pilot` answers, with this table as the pilot: power at each of `sizes`, episodes per arm
        and object. say: is told (what, done, of). Raises QuestionError or TableError for what makes no sense.
        """
        from labctl.analysis.planning import answers, pilot
        from labctl.api.planning import Power
        from labctl.software import analysed_by

        seconds = tau or pilot.shortest_budget(self._checked)
        found = pilot.pilot_of(self._checked, seconds, None, None)
        request = answers.Request(seconds, tuple(sizes), alpha, target, reference, runs, perm, seed)
        return Power.of({**answers.answer(found.arms, request, say, found), "analysed_by": analysed_by()})

    def __repr__(self) -> str:
        of = ((len(self), "operation"), (self.episodes, "episode"), (len(self.objects), "object"))
        counts = ", ".join(count(n, noun) for n, noun in of)
        return f"OperationsTable({self.source}: {counts}; arms {', '.join(self.arms)})"


@dataclass(frozen=True, repr=False)
class EpisodesTable(_Rows):
    """One row an episode of any task, with its success or score."""

    _checked: CheckedEpisodes = field(compare=False)

    @property
    def arms(self) -> tuple[str, ...]:
        """Names of the arms, sorted."""
        return tuple(sorted({str(row["arm"]) for row in self.rows}))

    @property
    def blocks(self) -> int:
        """How many blocks there are."""
        return len({str(row["block"]) for row in self.rows})

    def analyze(
        self,
        *,
        reference: str | None = None,
        tau: float | None = None,
        boot: int | None = None,
        perm: int | None = None,
        seed: int = 0,
        alpha: float = ALPHA,
    ) -> EpisodesAnalysis:
        """What `labctl analyze` computes of an episodes table, the same numbers for the same seed. As
        `OperationsTable.analyze`.
        """
        from labctl.analysis.episodes_table import analyze
        from labctl.analysis.episodes_table.cohort import Plan
        from labctl.analysis.monte_carlo import replicates_for
        from labctl.api.episodes_result import EpisodesAnalysis
        from labctl.software import analysed_by

        size = replicates_for(0)
        plan = Plan(reference, tau, boot or size, perm or size, seed, alpha)
        return EpisodesAnalysis.of({**analyze.analyze(self._checked, plan), "analysed_by": analysed_by()})

    def __repr__(self) -> str:
        counts = f"{count(len(self), 'episode')}, {count(self.blocks, 'block')}"
        return f"EpisodesTable({self.source}: {counts}; arms {', '.join(self.arms)})"


def load(path: str | os.PathLike[str], *, extra: bool = False) -> OperationsTable | EpisodesTable:
    """The table in a CSV or Parquet file, told apart by its columns. extra: admit columns that are not known.

    Raises TableError naming the file, the line, what was found, what is allowed and what to do.
    """
    from labctl.analysis.reading import read_any

    found = read_any(Path(path))
    return _checked(found.source, found.where, found.names, list(found.lines), extra=extra)


def from_frame(frame: Foreign, *, extra: bool = False, source: str = "frame") -> OperationsTable | EpisodesTable:
    """The table in a data frame: pandas, polars, Arrow, a mapping of columns or a list of rows; told apart by its
    columns. An error names rows from 1 on, as lines of `source`.
    """
    rows = frames.rows_of(frame)
    if not rows:
        raise TableError(source, "no rows; a table needs at least one operation or episode")
    names = list(dict.fromkeys(name for row in rows for name in row))
    return _checked(source, source, names, list(enumerate(rows, 1)), extra=extra)


def _checked(
    source: str, where: str, names: Sequence[str], lines: Iterable[tuple[int, Row]], *, extra: bool
) -> OperationsTable | EpisodesTable:
    from labctl.analysis import table
    from labctl.analysis.episodes_table import columns
    from labctl.analysis.episodes_table import table as of_episodes

    listed = list(lines)
    rows = [row for _, row in listed]
    if columns.is_episodes(names, where):
        columns.check_columns(names, where, extra=extra)
        return EpisodesTable(source, rows, of_episodes.table_from_lines(iter(listed), source))
    table.check_columns(names, where, extra=extra)
    return OperationsTable(source, rows, table.table_from_lines(iter(listed), source))
