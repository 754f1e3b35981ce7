"""How large a protocol is and what it costs a person in hours; before anything is drawn.

May not: draw a schedule, name an arm, or say what the size can resolve
(`labctl.analysis.planning.interim_design` does).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from labctl.analysis.monte_carlo import MOST
from labctl.analysis.survival.verdicts import holm
from labctl.config.cell_schema import Fixture
from labctl.config.conditions import Condition, protocol_conditions, sets_of
from labctl.config.interim_analyses import looks_after
from labctl.config.protocol_schema import Protocol
from labctl.core.design import deducible_share, exchanges, williams
from labctl.core.task import reported_by_episodes
from labctl.errors import InputError
from labctl.plain import Json

HOUR = 3600.0
ROBOT_DAY_H = 8.0


@dataclass(frozen=True, slots=True)
class Effort:
    """A person's time and habits, as stated by who plans. Seconds per trial, shares of trials, hours of an evening."""

    staging_s: float = 90.0
    scoring_s: float = 30.0
    review_s: float = 30.0
    run_s: float | None = None  # of an episode; the whole budget unless stated
    void_share: float = 0.05  # of episodes, each staged, armed and run again in full
    break_every_s: float = 3600.0
    break_s: float = 600.0
    session_h: float = 3.0
    session_overhead_s: float = 1200.0  # opening checks and handover


@dataclass(frozen=True, slots=True)
class Hours:
    """Where the hours go. `total` is all of them; `sessions` evenings of `Effort.session_h`, opening included."""

    staging: float
    arming: float
    running: float
    scoring: float
    voids: float
    breaks: float
    sessions_open_close: float
    review: float
    total: float
    sessions: int
    running_is_at_most: bool
    longer_than_evening_h: float | None = None  # an evening that a single trial needs, where one does not fit

    @property
    def at_robot(self) -> float:
        """Without the review, which needs no robot."""
        return self.total - self.review

    @property
    def robot_days(self) -> float:
        """Days of `ROBOT_DAY_H` hours at the robot."""
        return self.at_robot / ROBOT_DAY_H


BASE = "without a base"


@dataclass(frozen=True, slots=True)
class Covered:
    """So many conditions of a task perturb along this axis, have this tag (#), or are of this split or level."""

    task: str
    under: str
    conditions: int


@dataclass(frozen=True, slots=True)
class Contrast:
    """An axis, or several together ("S-LANG+V-SC"), against its base: so many pairs for each arm, the smallest p of one
    arm's drop, and that by Holm over an arm's axes when each reaches its own.
    """

    axis: str
    pairs: int
    smallest_p: float
    smallest_holm_p: float


@dataclass(frozen=True, slots=True)
class Preview:
    """The size of a campaign: what `labctl plan` prints first."""

    name: str
    question: str
    fixture: str
    conditions: tuple[tuple[str, int, int], ...]  # (condition, blocks, trials)
    arms: int
    policies: int
    human: bool
    blocks: int  # with every arm
    sets: int  # of blocks that belong together, the units of a report by episodes; as many as blocks in any other
    by_episodes: bool  # what its report is by; else by operations, of one task that is counted in items
    trials: int
    extra_blocks: int  # of the person alone
    items_staged: int  # the least of any task
    budget_s: float  # the most of any task
    mean_budget_s: float  # of a trial, each condition tried as often
    tau_s: float
    alpha: float
    deducible_share: float
    looks_after: tuple[int, ...]
    switches: tuple[tuple[float, str], ...]  # (seconds after go, instruction)
    coverage: tuple[Covered, ...]  # empty without [[task]]
    contrasts: tuple[Contrast, ...]
    hours: Hours

    def as_json(self) -> dict[str, Json]:
        """The same as plain values, under the key names of this class but for mean_budget_s and by_episodes; switches,
        coverage and contrasts only where there are any, sets only where they hold several blocks.
        """
        shown = asdict(self)
        del shown["switches"], shown["mean_budget_s"]
        del shown["by_episodes"]
        for name in ("coverage", "contrasts", "extra_blocks"):
            if not shown[name]:
                del shown[name]
        if self.sets == self.blocks:
            del shown["sets"]
        if self.switches:
            shown["switches"] = [{"at_s": at_s, "instruction": instruction} for at_s, instruction in self.switches]
        shown["conditions"] = [{"condition": c, "blocks": b, "trials": t} for c, b, t in self.conditions]
        return shown

    def sets_in(self, blocks: int) -> int:
        """How many sets so many of its blocks are in, begun ones left out; one at least."""
        return max(1, blocks * self.sets // self.blocks)


def coverage(conditions: Sequence[Condition]) -> tuple[Covered, ...]:
    """How many conditions of each task there are by axis, tag, split, stress and edit of what is seen; those without a
    base, and the rest.
    """
    found: dict[tuple[str, str], int] = {}
    for one in conditions:
        if one.task is None:
            continue
        under = [*one.axes, *(f"#{tag}" for tag in one.tags), *([f"split {one.split}"] if one.split else [])]
        under += [f"{one.family or 'difficulty'} {one.difficulty}"] if one.difficulty else []
        under += [f"{one.family} {one.stress}"] if one.stress else []
        under += [f"input {edit['edit']}" for edit in one.inputs or ()]
        for name in ("all", *([BASE] if one.base is None else []), *under):
            found[one.task, name] = found.get((one.task, name), 0) + 1
    return tuple(Covered(task, name, n) for (task, name), n in found.items())


def contrasts(conditions: Sequence[Condition], blocks: int) -> tuple[Contrast, ...]:
    """What each perturbed condition is held against, by its axes together, with the smallest p that it can reach, as
    `axis_drops` tests it: of one arm, a pair for each base in each of its sets, swapped or not, two-sided.

    Several conditions on one base with the same axes are one mean. A base that has axes itself is none.
    """
    plain = {one.id for one in conditions if not one.axes}
    held = {("+".join(sorted(one.axes)), one.base): blocks for one in conditions if one.axes and one.base in plain}
    found: dict[str, int] = {}
    for (axis, _), pairs in held.items():
        found[axis] = found.get(axis, 0) + pairs
    smallest = {axis: min(1.0, 2.0 / min(2.0 ** min(pairs, 99), MOST + 1)) for axis, pairs in found.items()}
    adjusted = holm(smallest)
    return tuple(Contrast(axis, pairs, smallest[axis], adjusted[axis]) for axis, pairs in found.items())


def not_held(conditions: Sequence[Condition]) -> list[str]:
    """Perturbed conditions whose drop no report has, since their base is perturbed as well, in words."""
    axes = {one.id: "+".join(one.axes) for one in conditions}
    return [
        f"no drop is measured of condition {one.id!r}: its base {one.base!r} has axes of its own, {axes[one.base]}; "
        "name a base without axes, and list in axes all that differs from it"
        for one in conditions
        if one.base is not None and one.axes and not one.stress and axes[one.base]
    ]


def squares(arms: int, blocks: int) -> list[tuple[tuple[str, ...], tuple[tuple[int, ...], ...]]]:
    """The relabellings of one pair of arms that a schedule of so many blocks could have drawn, as
    `reporting.relabellings` has them of one that was: by squares, the last of which may be begun only. No more squares
    than give a p below any that is drawn.
    """
    rows = williams(arms)
    many = min(blocks, len(rows) * (MOST.bit_length() + 1))
    orders = [[str(arm) for arm in rows[block % len(rows)]] for block in range(many)]
    found = exchanges(orders, ("0", "1"))
    return [(tuple(str(start + k) for k in range(len(ways[0]))), tuple(ways)) for start, ways in found if ways]


def preview(protocol: Protocol, fixture: Fixture, effort: Effort | None = None) -> Preview:
    """The preview of a validated protocol. Raises InputError when protocol and fixture do not fit each other."""
    conditions = protocol_conditions(protocol, fixture)
    per_condition, arms = protocol.design.blocks_per_condition, len(protocol.arm)
    blocks, extra = per_condition * len(conditions), protocol.alone[1] if protocol.alone else 0
    trials = blocks * arms + extra * len(conditions)
    kinds = [arm.kind for arm in protocol.arm]
    tasks = {task.name: task for task in protocol.tasks}
    budgets = [(tasks[c.task] if c.task else protocol.tasks[0]).budget_s for c in conditions]
    mean_s = sum(budgets) / len(budgets)
    looks, grouped = protocol.analysis.looks, reported_by_episodes([task.measure for task in protocol.tasks])
    return Preview(
        name=protocol.protocol.name,
        question=protocol.protocol.question,
        fixture=fixture.fixture.name,
        conditions=tuple((c.id, per_condition + extra, per_condition * arms + extra) for c in conditions),
        arms=arms,
        policies=kinds.count("policy"),
        human="human" in kinds,
        blocks=blocks,
        sets=per_condition * len(sets_of(conditions)) if grouped else blocks,
        by_episodes=grouped,
        trials=trials,
        extra_blocks=extra * len(conditions),
        items_staged=min(task.items_staged for task in protocol.tasks),
        budget_s=max(budgets),
        mean_budget_s=mean_s,
        tau_s=protocol.analysis.tau_s,
        alpha=protocol.analysis.alpha,
        deducible_share=deducible_share(kinds, protocol.alone_share),
        looks_after=looks_after(looks, blocks) if looks else (),
        switches=tuple((switch.at_s, switch.instruction) for switch in protocol.switch),
        coverage=coverage(conditions),
        contrasts=contrasts(conditions, per_condition),
        hours=hours(trials, protocol.trial.arming_s, mean_s, effort or Effort()),
    )


def hours(trials: int, arming_s: float, budget_s: float, effort: Effort) -> Hours:
    """The hours of `trials` scored trials: at the cell (voids, breaks and evenings included) and in review afterwards.

    A void is staged, armed and run again but not scored. A break follows every `break_every_s` of work. The work is
    cut into evenings; each opens and closes once. A trial that is longer than an evening has one of its own. Raises
    InputError where an evening is over before it was opened.
    """
    run_s = budget_s if effort.run_s is None else effort.run_s
    again = effort.void_share / (1.0 - effort.void_share)
    trial_s = effort.staging_s + arming_s + run_s + effort.scoring_s
    at_cell_s = trials * trial_s
    voids_s = trials * again * (effort.staging_s + arming_s + run_s)
    breaks_s = (at_cell_s + voids_s) / effort.break_every_s * effort.break_s
    working_s = effort.session_h * HOUR - effort.session_overhead_s
    if working_s <= 0:
        closing = f"opening and closing take {effort.session_overhead_s / 60:g} min of it"
        raise InputError(f"an evening of {effort.session_h:g} h leaves no time for a trial: {closing}; make it longer")
    longer = working_s < trial_s
    sessions = math.ceil(round((at_cell_s + voids_s + breaks_s) / working_s, 9))
    if longer:
        sessions = math.ceil(trials * (1.0 + again))
    parts = {
        "staging": trials * effort.staging_s,
        "arming": trials * arming_s,
        "running": trials * run_s,
        "scoring": trials * effort.scoring_s,
        "voids": voids_s,
        "breaks": breaks_s,
        "sessions_open_close": sessions * effort.session_overhead_s,
        "review": trials * effort.review_s,
    }
    named = {name: seconds / HOUR for name, seconds in parts.items()}
    return Hours(
        **named,
        total=sum(named.values()),
        sessions=sessions,
        running_is_at_most=effort.run_s is None,
        longer_than_evening_h=(trial_s + effort.session_overhead_s) / HOUR if longer else None,
    )


def trials_in(evenings: float, arming_s: float, budget_s: float, effort: Effort) -> int:
    """How many scored trials so many evenings have time for, voids and breaks counted as `hours` does."""
    one = hours(1000, arming_s, budget_s, effort)
    if one.longer_than_evening_h is not None:
        return math.floor(evenings * (1.0 - effort.void_share))
    each_s = HOUR * (one.total - one.review - one.sessions_open_close) / 1000
    if each_s <= 0.0:
        raise InputError("a trial takes no time at all; give --staging-s, --run-s or --scoring-s")
    working_s = effort.session_h * HOUR - effort.session_overhead_s
    return math.floor(round(evenings * working_s / each_s, 9))
