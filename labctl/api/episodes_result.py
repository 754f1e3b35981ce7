"""What an episodes table says, as typed rows: arms and pairs of arms by success, score and preference.

May not: compute; every number is that of `labctl analyze --json`, of which `EpisodesAnalysis.to_json` has the bytes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from labctl.analysis.episodes_table.result import EpisodesResult
from labctl.analysis.table import Value
from labctl.api import frames
from labctl.api.frames import Foreign
from labctl.api.notebook import Shown, page
from labctl.api.values import STRICT, UNSET, Interval, flat, named, rows_of, shown, with_interval
from labctl.errors import InputError
from labctl.plain import count

if TYPE_CHECKING:
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class Stage:
    """How many of `episodes` of an arm reached a stage, when each did, where that was seen, and by when half of all
    had, s, `inf` if they never did.
    """

    __pydantic_config__ = STRICT

    stage: int
    reached: int
    episodes: int
    ci: Interval | None
    median_s: float | None
    times_s: tuple[float, ...] = field(repr=False)


@dataclass(frozen=True)
class ArmOfEpisodes:
    """One arm: rates and scores as fractions, times in s. `rank_ci` and `letters` hold for all arms at once; judged: of
    how many of its episodes it is known whether they succeeded, of which `successes` and `rate` are.
    """

    __pydantic_config__ = STRICT

    arm: str
    episodes: int
    successes: int | None
    rate: float | None
    rate_ci: Interval | None
    score: float | None
    score_ci: Interval | None
    rank: int | None
    rank_ci: Interval | None
    letters: str
    rmst: float | None
    rmst_ci: Interval | None
    hrt: float | None
    hrt_ci: Interval | None
    stages: tuple[Stage, ...] = field(repr=False)
    curve: dict[str, tuple[float, ...]] | None = field(repr=False)
    judged: int


@dataclass(frozen=True)
class PairOfEpisodes:
    """Two arms in the `blocks` that have both, which are so many independent `units`: sets of blocks, or blocks.
    Differences are of `a` less `b`; win: P(a > b) + P(tie) / 2; adjusted_ci: of the difference in the measure, at the
    level of Holm's step over its family.
    """

    __pydantic_config__ = STRICT

    a: str
    b: str
    blocks: int
    units: int
    verdict: str | None
    score_difference: float | None
    score_ci: Interval | None
    success_difference: float | None
    success_ci: Interval | None
    win: float | None
    win_ci: Interval | None
    adjusted_ci: Interval | None
    p: dict[str, float | None]
    p_error: dict[str, float | None]
    p_holm: float | None
    p_holm_error: float | None
    stop_block: int | None
    sequence: dict[str, tuple[float | None, ...]] | None = field(repr=False)


@dataclass(frozen=True, repr=False)
class EpisodesAnalysis:
    """The analysis of an episodes table. What has no class of its own is in `result`, by the names of the interface:
    blocks, preference, factors, axes, tags, retention, stress.
    """

    seed: int
    alpha: float
    arms: tuple[ArmOfEpisodes, ...]
    pairs: tuple[PairOfEpisodes, ...]
    warnings: tuple[str, ...]
    result: EpisodesResult = field(compare=False)
    """The object that `labctl analyze --json` prints."""

    @classmethod
    def of(cls, result: EpisodesResult) -> EpisodesAnalysis:
        """A result as typed rows."""
        return cls(
            result["seed"],
            result["alpha"],
            rows_of(ArmOfEpisodes, result["arms"]),
            rows_of(PairOfEpisodes, result["pairs"]),
            tuple(result["warnings"]),
            result,
        )

    @property
    def analysed_by(self) -> str:
        """The labctl that computed it: version, commit and a digest of its files."""
        return self.result.get("analysed_by", "")

    def arm(self, name: str) -> ArmOfEpisodes:
        """An arm by its name. Raises InputError that lists those there are."""
        return named({arm.arm: arm for arm in self.arms}, name, "arm")

    def to_frame(self, what: str = "arms", library: str | None = None) -> Foreign:
        """`arms` or `pairs`, and `axes`, `tags`, `retention` or `stress` where the table has them, as a data frame; an
        interval is two columns, `_low` and `_high`.
        """
        if what in ("arms", "pairs"):
            return frames.frame_of([flat(row) for row in (self.arms if what == "arms" else self.pairs)], library)
        if what not in ("axes", "tags", "retention", "stress"):
            raise InputError(f"there is no table {what!r}; there are: arms, pairs, axes, tags, retention, stress")
        rows: list[dict[str, Value]] = []
        for row in self.result[what]:
            low, high = row["ci"] or UNSET
            plain = {name: value for name, value in row.items() if isinstance(value, str | int | float | None)}
            rows.append({**plain, "ci_low": low, "ci_high": high})
        return frames.frame_of(rows, library)

    def plot(self, *, ax: Axes | None = None) -> Axes:
        """Score of every arm with its interval, or where the table has no score its rate of success, in %; on `ax`,
        else on axes of its own.
        """
        from labctl.api.drawing import intervals

        scored = self.result["measure"] == "score"
        values = [(arm.arm, *((arm.score, arm.score_ci) if scored else (arm.rate, arm.rate_ci))) for arm in self.arms]
        return intervals([_percent(*row) for row in values], "score, %" if scored else "success, %", ax)

    def plot_pairs(self, *, ax: Axes | None = None) -> Axes:
        """The difference of every pair in the same measure, in percentage points, with its interval; on `ax`, else on
        axes of its own.
        """
        from labctl.api.drawing import intervals

        scored = self.result["measure"] == "score"
        rows = [
            _percent(
                f"{pair.a} – {pair.b}",
                pair.score_difference if scored else pair.success_difference,
                pair.score_ci if scored else pair.success_ci,
            )
            for pair in self.pairs
        ]
        measure = "score" if scored else "success"
        return intervals(rows, f"difference in {measure}, percentage points", ax, nothing=0.0)

    def to_json(self) -> str:
        """What `labctl analyze --json` prints, byte for byte."""
        from labctl.analysis.operations_table.analyze import dumps

        return dumps(self.result)

    def __repr__(self) -> str:
        arms = ", ".join(
            f"{arm.arm} {shown(arm.score)} of {arm.episodes}"
            if arm.score is not None
            else f"{arm.arm} {shown(arm.rate)} of {arm.judged}"
            for arm in self.arms
        )
        counts = f"{count(len(self.pairs), 'pair')}, {count(len(self.warnings), 'warning')}"
        return f"EpisodesAnalysis({arms}; {counts})"

    def _repr_html_(self) -> str:
        arms = [
            (
                arm.arm,
                str(arm.episodes),
                with_interval(arm.rate, arm.rate_ci),
                with_interval(arm.score, arm.score_ci),
                "–" if arm.rank_ci is None else f"{arm.rank} [{arm.rank_ci.low:g}, {arm.rank_ci.high:g}]",
                arm.letters,
            )
            for arm in self.arms
        ]
        pairs = [
            (
                f"{pair.a} / {pair.b}",
                str(pair.blocks),
                with_interval(pair.score_difference, pair.score_ci),
                with_interval(pair.success_difference, pair.success_ci),
                shown(pair.p_holm, 2),
                pair.verdict or "–",
            )
            for pair in self.pairs
        ]
        return page(
            f"level {1 - self.alpha:.0%}",
            Shown(("arm", "episodes", "success", "score", "rank", "letters"), arms),
            Shown(("pair", "blocks", "score difference", "success difference", "p (Holm)", "verdict"), pairs),
            notes=self.warnings,
        )


def _percent(name: str, value: float | None, interval: Interval | None) -> tuple[str, float | None, Interval | None]:
    return (
        name,
        None if value is None else 100 * value,
        interval and Interval(100 * interval.low, 100 * interval.high),
    )
