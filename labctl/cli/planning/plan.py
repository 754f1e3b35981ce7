"""`labctl plan`: check a protocol, say what its size can resolve, when it may be looked at, and the hours.

May not: draw a schedule, name an arm beside a trial, or compute a statistic (`labctl.analysis` does, by name).
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, get_args

import click

from labctl.cli.options import (
    FiniteRange,
    computed_here,
    example,
    file_argument,
    json_option,
    lab_option,
    print_json,
    print_table,
    times_of_option,
)
from labctl.cli.planning.cells import planned_cells, print_cells
from labctl.cli.planning.printed import EVENINGS, fitting, print_facts, print_hours
from labctl.cli.planning.resolved import print_looks, resolution_facts, sets_fact
from labctl.errors import InputError
from labctl.plain import LONGEST_S, count
from labctl.store.lab_folder import read_plan

if TYPE_CHECKING:
    from labctl.analysis.planning.axis_design import Needed
    from labctl.analysis.planning.interim_design import Effects, RegisteredMargin, Resolution
    from labctl.checks.protocol_size import Effort, Preview
    from labctl.config.margin import Margin
    from labctl.config.protocol_schema import TrialRules
    from labctl.reporting.times.lab_times import Disk

SECONDS = FiniteRange(0, LONGEST_S)
MINUTES = FiniteRange(1, LONGEST_S)
SHARE = FiniteRange(0, 0.9)
EPILOG = example(
    "labctl plan protocols/first.toml",
    "labctl plan protocols/second.toml --evenings 3              # what three evenings can tell apart",
    "labctl plan protocols/second.toml --times-of first          # hours by what trials took in first",
    "labctl plan protocols/first.toml --staging-s 120 --run-s 95 --void-share 0.1 --json",
)


@click.command(epilog=EPILOG)
@file_argument("protocol", "PROTOCOL.toml")
@click.option(
    "--evenings",
    type=EVENINGS,
    help="What so many evenings can tell apart.",
)
@click.option("--staging-s", type=SECONDS, help="Seconds to reset and stage a scene [default: as measured, or 90].")
@click.option("--scoring-s", type=SECONDS, help="Seconds to score an episode [default: as measured, or 30].")
@click.option("--review-s", default=30.0, show_default=True, type=SECONDS, help="Seconds to review one afterwards.")
@click.option("--run-s", type=SECONDS, help="Seconds an episode takes [default: as measured, or its budget].")
@click.option("--void-share", type=SHARE, help="Share of episodes that end void [default: as measured, or 0.05].")
@click.option("--break-every-min", default=60.0, show_default=True, type=MINUTES, help="Minutes between breaks.")
@click.option("--break-min", default=10.0, show_default=True, type=SECONDS, help="Minutes of a break.")
@click.option("--session-h", default=3.0, show_default=True, type=FiniteRange(0.1, 24), help="Hours of an evening.")
@click.option(
    "--session-overhead-min", default=20.0, show_default=True, type=SECONDS, help="Minutes to open and close one."
)
@times_of_option
@lab_option
@json_option
def plan(
    protocol: Path,
    evenings: float | None,
    staging_s: float | None,
    scoring_s: float | None,
    review_s: float,
    run_s: float | None,
    void_share: float | None,
    break_every_min: float,
    break_min: float,
    session_h: float,
    session_overhead_min: float,
    times_of: tuple[str, ...],
    lab: Path | None,
    as_json: bool,
) -> None:
    """Check a protocol and its fixture; preview the schedule without arms, what its size can resolve, and the hours.

    Hours are by the times of this lab's own campaigns in a real cell, or of those that --times-of names, and say so;
    else by what the options state. What N an effect takes: `labctl power --protocol PROTOCOL.toml`.

    Nothing is drawn: the schedule of a campaign exists from `labctl open` on, and stays sealed.
    """
    from labctl.analysis.planning import interim_design
    from labctl.analysis.planning.axis_design import needed
    from labctl.checks.protocol_size import Effort, not_held, preview, squares, trials_in
    from labctl.cli.planning import one_arm
    from labctl.config.conditions import protocol_conditions
    from labctl.store.driver_options import check_controllers
    from labctl.store.frozen_cards import trained_line, trained_with, with_cards
    from labctl.store.rubric_pictures import anchor_pictures
    from labctl.store.scene_references import given_pictures

    found = read_plan(protocol)
    check_controllers(found.protocol)
    given_pictures(found)
    anchor_pictures(found)
    budget = max(task.budget_s for task in found.protocol.tasks)
    if run_s is not None and run_s > budget:
        raise InputError(f"--run-s is {run_s:g}, beyond the episode budget of {budget:g} s; an episode ends there")
    habits = Effort(
        review_s=review_s,
        break_every_s=60 * break_every_min,
        break_s=60 * break_min,
        session_h=session_h,
        session_overhead_s=60 * session_overhead_min,
    )
    stated = {"staging_s": staging_s, "scoring_s": scoring_s, "run_s": run_s, "void_share": void_share}
    effort, source, trial_bytes = effort_of(habits, stated, times_of, lab, budget)
    seen = preview(found.protocol, found.fixture, effort)
    then = one_arm.historical(found, lab)
    if seen.arms == 1:
        if evenings is not None:
            raise InputError("--evenings asks what can be told apart; this protocol has one arm and compares nothing")
        one_arm.tell(found, seen, source, protocol, then, as_json=as_json)
        return
    blocks = seen.blocks
    if evenings is not None:
        trials = trials_in(evenings, found.protocol.trial.arming_s, seen.mean_budget_s, effort)
        blocks = fitting(trials, evenings, seen.trials / seen.blocks, "two blocks", 10_000)
    units, of = seen.sets_in(blocks), "set" if seen.sets < seen.blocks else "block"
    resolved = interim_design.resolution(
        units,
        seen.items_staged,
        arms=seen.arms,
        reference=found.protocol.analysis.reference is not None,
        alpha=seen.alpha,
        looks_after=seen.looks_after if evenings is None else (),
        of=of,
        drawn=None if seen.by_episodes else partial(squares, seen.arms),
    )
    planned = found.protocol.analysis.margin
    margin = None if planned is None else _margin(planned, units, resolved["resolvable"])
    if margin is not None:
        resolved["margin"] = margin
    trained = trained_with(found.protocol, found.fixture, with_cards(found.protocol, found.cards))
    resolved["warnings"] = [
        *resolved["warnings"],
        *not_held(protocol_conditions(found.protocol, found.fixture)),
        *_by_items(seen),
        *_open_ends(found.protocol.trial),
        *_too_near(margin, count(units, of)),
        *(trained_line(*one) for one in trained),
        *_few_evenings(found.protocol.analysis.random_factors, evenings or seen.hours.sessions),
    ]
    from labctl.reporting.times.lab_times import disk_of

    disk = None if trial_bytes is None else disk_of(seen.trials, trial_bytes, protocol)
    arming, over = found.protocol.trial.arming_s, found.protocol.cells
    cells = planned_cells(over, seen, effort, arming, resolved["resolvable"], units) if over else None
    if as_json:
        flagged = {"trained": [{"condition": condition, "arm": arm} for condition, arm in trained]} if trained else {}
        answer = {
            **flagged,
            **({"disk": disk} if disk else {}),
            **({"cells": cells} if cells else {}),
            "times": source,
            "evenings": evenings,
            "resolution": {**resolved, "blocks": blocks, **({"sets": units} if of == "set" else {})},
        }
        drops = {"drops": needed(len(seen.contrasts), seen.alpha)} if seen.contrasts else {}
        print_json({"schema": "labctl.plan/2", **seen.as_json(), **drops, **answer, **computed_here()})
    else:
        shown = (lambda: print_cells(cells, seen, effort, arming)) if cells else None
        _print(seen, resolved, protocol, source, (evenings, blocks), then, disk, shown)


def _by_items(seen: Preview) -> list[str]:
    """Where conditions are perturbed and the report of the campaign itself will not say by how much."""
    if seen.by_episodes or not seen.contrasts:
        return []
    return [
        "a report by items tests no axis against its base: labctl export CAMPAIGN --to episodes, and labctl analyze of "
        "that table, do"
    ]


def _open_ends(rules: TrialRules) -> list[str]:
    """Where a protocol that forbids early ends leaves one."""
    from labctl.config.values import StopCause

    spared = [cause.replace("_", " ") for cause in get_args(StopCause) if cause not in rules.stops_count]
    if rules.early_end != "forbidden" or not spared:
        return []
    text = " or ".join(spared)
    return [
        f'early_end is "forbidden", and a stop by hand called {text} ends an episode early all the same, as the '
        "operator's wish; stops_count with every cause closes that"
    ]


def _margin(margin: Margin, units: int, effects: Effects) -> RegisteredMargin:
    from labctl.analysis.planning.power import ratio_margin

    both = margin.non_inferior_to is None
    shown = ratio_margin(units, effects["spread"], effects["power"], effects["alpha"], both_sides=both)
    return {
        "rmst_ratio": margin.rmst_ratio,
        "non_inferior_to": margin.non_inferior_to,
        "shown_rmst_ratio": shown,
        "power": effects["power"],
    }


def _too_near(margin: RegisteredMargin | None, size: str) -> list[str]:
    if margin is None or margin["rmst_ratio"] >= margin["shown_rmst_ratio"]:
        return []
    return [
        f"with {size} arms that are alike are shown to be so within a ratio of "
        f"{margin['shown_rmst_ratio']:.2f} with {margin['power']:.0%} power, and the margin is "
        f"{margin['rmst_ratio']:g}; plan more blocks_per_condition"
    ]


def _few_evenings(factors: Sequence[str], evenings: float) -> list[str]:
    """Where an interval over further evenings is registered and the evenings would be too few for one."""
    if "session" not in factors:
        return []
    from labctl.analysis.episodes.random_factors import FEWEST

    if evenings >= FEWEST:
        return []
    return [
        f"random_factors has session, and an interval over further evenings takes {FEWEST}; the trials fit in "
        f"{evenings:g}: spread them, with every arm at every object on each"
    ]


def effort_of(
    habits: Effort, stated: dict[str, float | None], times_of: Sequence[str], lab: Path | None, budget_s: float | None
) -> tuple[Effort, str, float | None]:
    """A trial's times: as stated, else as measured in the lab, else as `Effort` has them; where they are from; and the
    bytes that a trial came to, where any was measured.
    """
    from labctl.reporting.times.lab_times import lab_times

    measured = lab_times(lab, times_of)
    found, source = {}, "stated, or a guess where nothing was; --times-of CAMPAIGN takes what was measured"
    if measured is not None:
        run_s = measured.running_s if budget_s is None else min(measured.running_s, budget_s)
        found = {"staging_s": measured.staging_s, "scoring_s": measured.scoring_s, "run_s": run_s, "void_share": 0.0}
        source = measured.source
    given = {name: value for name, value in stated.items() if value is not None}
    if measured is not None and given:
        source += f"; but as stated: {', '.join(given)}"
    return replace(habits, **{**found, **given}), source, None if measured is None else measured.trial_bytes


def _print(
    seen: Preview,
    resolved: Resolution,
    path: Path,
    source: str,
    sized: tuple[float | None, int],
    then: dict[str, str],
    disk: Disk | None,
    of_cells: Callable[[], None] | None,
) -> None:
    evenings, blocks = sized
    click.echo(f"{seen.name}: {seen.question}")
    rows = [(condition, str(blocks), str(trials)) for condition, blocks, trials in seen.conditions]
    print_table(("condition", "blocks", "trials"), [*rows, ("all", str(seen.blocks), str(seen.trials))])
    _print_coverage(seen)
    click.echo("Which arm stands where is drawn and sealed at opening.")
    if evenings is not None:
        trials = f"{count(blocks, 'block')}, {blocks * seen.trials // seen.blocks} trials"
        click.echo(
            f"In {count(evenings, 'evening')} there is time for {trials}; what follows is of those, hours of the "
            "protocol:"
        )
    facts = {
        "Each block": f"{seen.arms} trials, every arm once, in an order balanced for position and carry-over",
        **sets_fact(seen, blocks),
        **({"Alone": f"{seen.extra_blocks} of the trials are extra blocks of the person"} if seen.extra_blocks else {}),
        "Each episode": f"at most {seen.budget_s:g} s; tau {seen.tau_s:g} s",
        "Deducible": f"{seen.deducible_share:.0%} of trials can be deduced by who sees the person and counts; "
        "a report never calls those blind",
        **then,
        **_switches(seen),
        **resolution_facts(seen, resolved, blocks),
        **_registered(resolved.get("margin")),
    }
    print_facts(facts)
    if resolved["looks"]:
        print_looks(resolved["looks"], seen.alpha)
    print_hours(seen, source, disk)
    if of_cells is not None:
        of_cells()
    for warning in resolved["warnings"]:
        click.echo(f"warning: {warning}")
    if not seen.coverage:  # times per item are of the short form
        click.echo(
            f"next: labctl power --protocol {shlex.quote(str(path))} --rmst {','.join(['SECONDS'] * seen.arms)}   "
            "(what N an effect takes)"
        )
    first = "next:" if seen.coverage else "     "
    opened = f"labctl open {shlex.quote(str(path))} --cell CELL.toml"
    if of_cells is not None:
        opened = f"labctl joint open {shlex.quote(str(path))} --address tcp://HOST:PORT"
    click.echo(f"{first} {opened}")


def _print_coverage(seen: Preview) -> None:
    """What the conditions of each task cover, and what each contrast can reach; nothing without [[task]]."""
    from labctl.analysis.planning.axis_design import needed

    if not seen.coverage:
        return
    tasks = list(dict.fromkeys(one.task for one in seen.coverage))
    under = sorted({one.under for one in seen.coverage} - {"all"}, key=lambda name: (name.startswith("#"), name))
    counts = {(one.task, one.under): one.conditions for one in seen.coverage}
    click.echo("Conditions, of each task and all told; one may count in several rows:")
    print_table(("", *tasks), [(name, *(str(counts.get((t, name), "-")) for t in tasks)) for name in [*under, "all"]])
    if seen.contrasts:
        click.echo("Against its base, an arm's drop by axis; p as sets are swapped, by Holm over these:")
        rows = [(c.axis, str(c.pairs), f"{c.smallest_p:.2g}", f"{c.smallest_holm_p:.2g}") for c in seen.contrasts]
        print_table(("axis", "pairs of blocks", "smallest p", "by Holm"), rows)
        click.echo(_drops(needed(len(seen.contrasts), seen.alpha)))


def _drops(found: list[Needed]) -> str:
    """How many pairs of blocks a drop of success takes."""
    takes = [f"to {one['perturbed']:.0%} {one['sets'] or 'more than 1000'}" for one in found]
    first = found[0]
    return (
        f"A drop of success from {first['base']:.0%} is found with {first['power']:.0%} power, by Holm over these, "
        f"in so many pairs of blocks: {', '.join(takes)}"
    )


def _switches(seen: Preview) -> dict[str, str]:
    """The switches of the instruction in every episode; nothing for most protocols."""
    lines = [f"at {at_s:g} s: {instruction}" for at_s, instruction in seen.switches]
    return {"Switched": "; ".join(lines)} if lines else {}


def _registered(margin: RegisteredMargin | None) -> dict[str, str]:
    """What a report will ask of the margin; nothing for a protocol without one."""
    if margin is None:
        return {}
    to = margin["non_inferior_to"]
    what = "every pair equivalent" if to is None else f"every other arm non-inferior to {to}"
    return {"Margin": f"RMST ratio {margin['rmst_ratio']:g}: is {what}?"}
