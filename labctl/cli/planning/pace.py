"""What `labctl power` was asked, and how long trials take: from options, the lab's own campaigns or a protocol.

May not: print, or answer what was asked.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from labctl.cli.planning.plan import effort_of
from labctl.cli.planning.printed import cost_words
from labctl.errors import InputError
from labctl.store.lab_folder import read_plan

if TYPE_CHECKING:
    from labctl.checks.protocol_size import Effort, Hours
    from labctl.config.protocol_schema import Protocol


class Given(TypedDict):
    """The options of `labctl power`, by the names of their parameters; None where an option was not given."""

    half_width: float | None
    rate: float
    rates: str | None
    discordant: float | None
    difference: float | None
    rmst: str | None
    pilot: Path | None
    protocol: Path | None
    sizes: str | None
    target: float
    alpha: float | None
    tau: float | None
    items: int | None
    budget_s: float | None
    objects: int | None
    reference: str | None
    lost: str | None
    frailty: float
    shape: float
    scene: float
    runs: int
    perm: int
    seed: int
    evenings: float | None
    session_h: float
    trial_s: float | None
    times_of: tuple[str, ...]
    lab: Path | None
    as_json: bool


@dataclass(frozen=True, slots=True)
class Pace:
    """How long trials take, and where that is from."""

    effort: Effort
    arming_s: float
    budget_s: float
    source: str

    def trials_in(self, evenings: float) -> int:
        from labctl.checks.protocol_size import trials_in

        return trials_in(evenings, self.arming_s, self.budget_s, self.effort)

    def hours(self, trials: int) -> Hours:
        from labctl.checks.protocol_size import hours

        return hours(trials, self.arming_s, self.budget_s, self.effort)

    def words(self, trials: int) -> str:
        return cost_words(self.hours(trials))

    def cost(self, trials: int | None) -> dict[str, float | None]:
        """As JSON; trials None where no N was found."""
        if trials is None:
            return {"trials": None}
        found = self.hours(trials)
        at = {"hours": found.at_robot, "evenings": found.sessions, "robot_days": found.robot_days}
        return {"trials": trials, **at, "at_most": found.running_is_at_most}


def pace_of(given: Given) -> Pace | None:
    """The pace that options, the lab's campaigns or the protocol give, in this order; None where none of them does."""
    from labctl.checks.protocol_size import Effort
    from labctl.reporting.times.lab_times import lab_times

    habits = Effort(review_s=0.0, session_h=given["session_h"])
    if given["trial_s"] is not None:
        whole = replace(habits, staging_s=0.0, scoring_s=0.0, run_s=given["trial_s"], void_share=0.0)
        return Pace(whole, 0.0, given["trial_s"], f"a trial of {given['trial_s']:g} s, as stated")
    budget, arming = given["budget_s"], 0.0
    if given["protocol"] is not None:
        protocol = read_plan(given["protocol"]).protocol
        budget, arming = budget or _budget_of(protocol), protocol.trial.arming_s
    if budget is None and lab_times(given["lab"], given["times_of"]) is None:
        return None
    effort, source, _ = effort_of(habits, {}, given["times_of"], given["lab"], budget)
    return Pace(effort, arming, budget or effort.run_s or 0.0, source)


def _budget_of(protocol: Protocol) -> float:
    """Seconds, of the mean trial: each condition is tried as often, with the budget of its task."""
    of_task = {task.name: task.budget_s for task in protocol.tasks}
    budgets = [of_task[condition.task] for condition in protocol.conditions] or [protocol.tasks[0].budget_s]
    return sum(budgets) / len(budgets)


def needed_pace(pace: Pace | None) -> Pace:
    """Raises InputError where nothing says how long a trial takes."""
    if pace is None:
        raise InputError(
            "--evenings needs to know how long a trial takes: --trial-s, --times-of CAMPAIGN or --protocol"
        )
    return pace
