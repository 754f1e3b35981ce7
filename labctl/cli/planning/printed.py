"""Facts and hours of a plan, as its verbs print them.

May not: work out either (`labctl.checks.protocol_size` does).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from labctl.cli.options import FiniteRange, print_table
from labctl.errors import InputError
from labctl.plain import count

if TYPE_CHECKING:
    from labctl.checks.protocol_size import Hours, Preview
    from labctl.reporting.times.lab_times import Disk

PARTS = {
    "staging": "staging",
    "arming": "arming",
    "running": "running",
    "scoring": "scoring",
    "voids": "voids, run again",
    "breaks": "breaks",
    "sessions_open_close": "opening and closing evenings",
    "review": "review afterwards",
}


EVENINGS = FiniteRange(0, 100_000, min_open=True)


def fitting(trials: int, evenings: float, each: float, two: str, most: int) -> int:
    """How many times `each` trials (a mean, where not all are alike) go into the `trials` that evenings have time for.
    Raises InputError for less than twice, which `two` names, and for more than `most` times.
    """
    times = math.floor(round(trials / each, 9))
    if times > most:
        raise InputError(
            f"{count(evenings, 'evening')} have time for {times} of each arm; at most {most} are planned: "
            "give fewer evenings, or the time that a trial really takes"
        )
    if times < 2:
        said = f"time for {count(trials, 'trial')} in {count(evenings, 'evening')}"
        raise InputError(f"{said}, and {two} are {math.ceil(2 * each)}")
    return times


def print_facts(facts: dict[str, str]) -> None:
    """A line for each, by its name."""
    for name, text in facts.items():
        click.echo(f"{name + ':' if name else '':<14}{text}")


def print_hours(seen: Preview, source: str, disk: Disk | None = None) -> None:
    """Where the hours go, where the times are from, and what the disk has to hold."""
    hours = seen.hours
    click.echo(f"Hours:        {'at most ' if hours.running_is_at_most else ''}{hours.total:.1f} in all:")
    if hours.longer_than_evening_h is not None:
        budget = (
            "" if not hours.running_is_at_most else f" (its budget is {seen.budget_s:g} s; --run-s if it takes less)"
        )
        click.echo(
            f"warning: a trial does not fit in an evening{budget}: each is an evening of its own of "
            f"{hours.longer_than_evening_h:.1f} h, {count(hours.sessions, 'evening')} in all"
        )
    rows = [(name, f"{getattr(hours, part):.1f}") for part, name in PARTS.items()]
    print_table(("part", "hours"), [*rows, (f"all, {count(hours.sessions, 'evening')}", f"{hours.total:.1f}")])
    click.echo(f"At the robot: {cost_words(hours)}")
    click.echo(f"Times:        {source}")
    if disk is not None:
        from labctl.exports.destination import size

        click.echo(
            f"Disk:         about {size(disk['needed'])} for all trials, as these came to; {size(disk['free'])} free"
        )
        if disk["needed"] > disk["free"]:
            click.echo("warning: the trials will not fit on this disk; free some, or put the lab on a larger one")


def cost_words(hours: Hours) -> str:
    """What hours at the robot come to, the same in every verb."""
    from labctl.checks.protocol_size import ROBOT_DAY_H

    most = "at most " if hours.running_is_at_most else ""
    days = f"{hours.robot_days:.1f} robot days of {ROBOT_DAY_H:g} h"
    return f"{most}{hours.at_robot:.1f} h, {count(hours.sessions, 'evening')}, {days}"
