"""How many episodes a question takes, from a pilot's operations table.

May not: simulate; `labctl.analysis.planning` does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from labctl.analysis.planning.answers import Answer
from labctl.api import frames
from labctl.api.frames import Foreign
from labctl.api.notebook import Shown, page
from labctl.api.values import named, shown
from labctl.errors import InputError
from labctl.plain import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class PowerAt:
    """Power of a measure for a pair of arms at `episodes` per arm and object, and its Monte-Carlo standard error.
    assurance: the mean power over the laws that go with the pilot, None where it is too small to say.
    """

    a: str
    b: str
    measure: str
    episodes: int
    power: float
    error: float
    assurance: float | None


@dataclass(frozen=True, repr=False)
class Power:
    """What campaigns simulated after a pilot would have shown."""

    target: float
    rows: tuple[PowerAt, ...]
    answer: Answer
    """The object that `labctl power --pilot --json` prints, without costs."""

    @classmethod
    def of(cls, answer: Answer) -> Power:
        """An answer as typed rows."""
        rows: list[PowerAt] = []
        for pair in answer["pairs"]:
            assured = {(row["measure"], row["episodes"]): row["power"] for row in pair.get("assurance", [])}
            rows += [
                PowerAt(pair["a"], pair["b"], **row, assurance=assured.get((row["measure"], row["episodes"])))
                for row in pair["power"]
            ]
        return cls(answer["target"], tuple(rows), answer)

    @property
    def analysed_by(self) -> str:
        """The labctl that computed it: version, commit and a digest of its files."""
        return self.answer.get("analysed_by", "")

    def episodes_needed(self, a: str, b: str, measure: str = "log_rmst_ratio") -> int | None:
        """Episodes per arm and object that reach the target; None beyond the sizes that were tried.

        Raises InputError for a pair or measure that was not asked about.
        """
        for pair in self.answer["pairs"]:
            if {pair["a"], pair["b"]} == {a, b} and measure in pair["episodes_for_target"]:
                return pair["episodes_for_target"][measure]["episodes"]
        known = sorted({f"{row.a} and {row.b} by {row.measure}" for row in self.rows})
        raise InputError(f"{a} and {b} by {measure} was not asked; there are: {', '.join(known)}")

    def plot(self, measure: str = "log_rmst_ratio", *, ax: Axes | None = None) -> Axes:
        """Power of a measure by episodes, a line for each pair, and the target; on `ax`, else on axes of its own.

        Raises InputError for a measure that was not asked about.
        """
        from labctl.api.drawing import power_curves

        named(dict.fromkeys(row.measure for row in self.rows), measure, "measure")
        return power_curves([row for row in self.rows if row.measure == measure], self.target, measure, ax)

    def to_frame(self, library: str | None = None) -> Foreign:
        """The rows as a data frame."""
        return frames.frame_of([vars(row) for row in self.rows], library)

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.answer["sizes"]))
        pairs = count(len(self.answer["pairs"]), "pair")
        return f"Power(target {self.target:g}: {pairs} of arms at {sizes} episodes)"

    def _repr_html_(self) -> str:
        rows = [
            (f"{r.a} / {r.b}", r.measure, str(r.episodes), shown(r.power, 2), shown(r.error, 1), shown(r.assurance, 2))
            for r in self.rows
        ]
        names = ("pair", "measure", "episodes", "power", "Monte-Carlo error", "assurance")
        return page(f"target {self.target:g}, {self.answer['runs']} runs each", Shown(names, rows))
