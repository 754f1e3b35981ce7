"""What a block cost, stretch by stretch: reset, staging, arming, running, scoring and holds in the order in which they
were.

May not: tell one trial's times while arms are sealed (`hours` has a finished block's sums, which tell no arm), or name
an arm at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from labctl.clock import SECOND, wall_ns
from labctl.core.record import Record, Spent
from labctl.reporting.times.hours import standing

_NONE_S, _PAUSE_S = 0.001, 1.0  # between two stretches: less is none, more is told


@dataclass(frozen=True, slots=True)
class Stretch:
    """Part of a trial. doing: one of `hours.DOING`; hold: the code of the hold that kept it, "" of none; position: of
    the trial in its block, from 1; wall: when it began, ISO 8601, UTC; boot, mono_ns: the same by the monotonic clock.
    """

    doing: str
    hold: str
    trial: str
    position: int
    wall: str
    boot: str
    mono_ns: int
    seconds: float


@dataclass(frozen=True, slots=True)
class BlockLine:
    """The stretches of a block, from 1, in the order in which they were. pauses_s: before which stretch nothing of this
    block was done, and for how long by the wall clock, s: between runs, or while another block's trial was on.
    """

    block: int
    stretches: Sequence[Stretch]
    pauses_s: dict[int, float]

    @property
    def seconds(self) -> float:
        """Of all stretches."""
        return sum(one.seconds for one in self.stretches)


def timeline(record: Record) -> list[BlockLine]:
    """The blocks of an unblinded campaign, in the order of their first stretch; [] while arms are sealed."""
    if record.unblinding is None:
        return []
    blocks: dict[int, list[Stretch]] = {}
    for one in record.spent:
        if one.trial is not None and one.seconds:
            trial = record.state.trials[one.trial]
            blocks.setdefault(trial.block + 1, []).append(_stretch(one, trial.position + 1, record))
    return [BlockLine(block, *_joined(found)) for block, found in blocks.items()]


def _stretch(one: Spent, position: int, record: Record) -> Stretch:
    codes = standing(one, record)
    held = codes[0] if codes and one.doing in ("reset", "staging") else ""
    began = one.began
    doing = "hold" if held else one.doing
    return Stretch(doing, held, str(one.trial), position, began.wall, began.boot, began.mono_ns, one.seconds)


def _joined(found: Sequence[Stretch]) -> tuple[list[Stretch], dict[int, float]]:
    """Stretches that follow one another in the same way as one, and the pauses between others."""
    made: list[Stretch] = []
    pauses: dict[int, float] = {}
    for one in found:
        if made:
            before = made[-1]
            gap_s = _gap_s(before, one)
            alike = (before.doing, before.hold, before.trial) == (one.doing, one.hold, one.trial)
            if alike and abs(gap_s) < _NONE_S:
                made[-1] = replace(before, seconds=before.seconds + one.seconds)
                continue
            if gap_s > _PAUSE_S:
                pauses[len(made)] = gap_s
        made.append(one)
    return made, pauses


def _gap_s(before: Stretch, after: Stretch) -> float:
    if before.boot == after.boot:
        return (after.mono_ns - before.mono_ns) / SECOND - before.seconds
    return (wall_ns(after.wall) - wall_ns(before.wall)) / SECOND - before.seconds


def trials_of(line: BlockLine) -> Iterator[tuple[str, int, list[Stretch]]]:
    """Each trial of a block with its position and its stretches, in the order of its first."""
    found: dict[str, list[Stretch]] = {}
    for one in line.stretches:
        found.setdefault(one.trial, []).append(one)
    for trial, stretches in found.items():
        yield trial, stretches[0].position, stretches
