"""`labctl plan`: check a protocol, say what its size can resolve, when it may be looked at, and the hours.

May not: draw a schedule, name an arm beside a trial, or compute a statistic (`labctl.analysis` does, by name).
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

import click

from labctl.cli.options import CONTEXT, example, file_argument, json_option, print_json, print_table

if TYPE_CHECKING:
    from labctl.checks.protocol_size import Hours, Preview
    from labctl.config.protocol_schema import TrialRules

SECONDS = click.FloatRange(min=0)
SHARE = click.FloatRange(0, 0.9)
EPILOG = example(
    "labctl plan protocols/first.toml",
    "labctl plan protocols/first.toml --staging-s 120 --run-s 95 --void-share 0.1 --json",
)
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


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@file_argument("protocol", "PROTOCOL.toml")
@click.option("--staging-s", default=90.0, show_default=True, type=SECONDS, help="Seconds to stage a scene.")
@click.option("--scoring-s", default=30.0, show_default=True, type=SECONDS, help="Seconds to score an episode.")
@click.option("--review-s", default=30.0, show_default=True, type=SECONDS, help="Seconds to review one afterwards.")
@click.option("--run-s", default=None, type=SECONDS, help="Seconds an episode takes [default: its whole budget].")
@click.option("--void-share", default=0.05, show_default=True, type=SHARE, help="Share of episodes that end void.")
@click.option(
    "--break-every-min", default=60.0, show_default=True, type=click.FloatRange(1), help="Minutes between breaks."
)
@click.option("--break-min", default=10.0, show_default=True, type=SECONDS, help="Minutes of a break.")
@click.option(
    "--session-h", default=3.0, show_default=True, type=click.FloatRange(0.1, 24), help="Hours of an evening."
)
@click.option(
    "--session-overhead-min", default=20.0, show_default=True, type=SECONDS, help="Minutes to open and close one."
)
@json_option
def plan(
    protocol: Path,
    staging_s: float,
    scoring_s: float,
    review_s: float,
    run_s: float | None,
    void_share: float,
    break_every_min: float,
    break_min: float,
    session_h: float,
    session_overhead_min: float,
    as_json: bool,
) -> None:
    """Check a protocol and its fixture; preview the schedule without arms, what its size can resolve, and the hours.

    Nothing is drawn: the schedule of a campaign exists from `labctl open` on, and stays sealed.
    """
    from labctl.analysis.planning import interim_design
    from labctl.checks.protocol_size import Effort, preview
    from labctl.errors import InputError
    from labctl.store.lab_folder import read_plan
    from labctl.store.scene_references import given_pictures

    found = read_plan(protocol)
    given_pictures(found)
    if run_s is not None and run_s > found.protocol.trial.budget_s:
        budget = found.protocol.trial.budget_s
        raise InputError(f"--run-s is {run_s:g}, beyond the episode budget of {budget:g} s; an episode ends there")
    effort = Effort(
        staging_s,
        scoring_s,
        review_s,
        run_s,
        void_share,
        60 * break_every_min,
        60 * break_min,
        session_h,
        60 * session_overhead_min,
    )
    seen = preview(found.protocol, found.fixture, effort)
    resolved = interim_design.resolution(
        seen.blocks,
        seen.items_staged,
        policies=seen.policies,
        human=seen.human,
        alpha=seen.alpha,
        looks_after=seen.looks_after,
    )
    resolved["warnings"] = [*resolved["warnings"], *_open_ends(found.protocol.trial)]
    if as_json:
        print_json({"schema": "labctl.plan/2", **seen.as_json(), "resolution": resolved})
    else:
        _print(seen, resolved, protocol)


def _open_ends(rules: TrialRules) -> list[str]:
    """Where a protocol that forbids early ends leaves one."""
    from labctl.config.values import StopCause

    spared = [cause.replace("_", " ") for cause in get_args(StopCause) if cause not in rules.stops_count]
    if rules.early_end != "forbidden" or not spared:
        return []
    said = " or ".join(spared)
    return [
        f'early_end is "forbidden", and a stop by hand called {said} ends an episode early all the same, as the '
        "operator's wish; stops_count with every cause closes that"
    ]


def _print(seen: Preview, resolved: dict[str, Any], path: Path) -> None:
    click.echo(f"{seen.name}: {seen.question}")
    rows = [(condition, str(blocks), str(trials)) for condition, blocks, trials in seen.conditions]
    print_table(("condition", "blocks", "trials"), [*rows, ("all", str(seen.blocks), str(seen.trials))])
    click.echo("Which arm stands where is drawn and sealed at opening.")
    facts = {
        "Each block": f"{seen.arms} trials, every arm once, in an order balanced for position and carry-over",
        "Each episode": f"at most {seen.budget_s:g} s; tau {seen.tau_s:g} s",
        "Deducible": f"{seen.deducible_share:.0%} of trials can be deduced by who sees the person and counts; "
        "a report never calls those blind",
        **_switches(seen),
        **_resolution(seen, resolved),
    }
    _print_facts(facts)
    if resolved["looks"]:
        _print_looks(resolved["looks"], seen.alpha)
    _print_hours(seen.hours)
    for warning in resolved["warnings"]:
        click.echo(f"warning: {warning}")
    click.echo(f"next: labctl power --protocol {path} --rmst SECONDS,SECONDS   (power for times, by simulation)")
    click.echo(f"      labctl open {path} --cell CELL.toml")


def _print_facts(facts: dict[str, str]) -> None:
    for name, text in facts.items():
        click.echo(f"{name + ':' if name else '':<14}{text}")


def _switches(seen: Preview) -> dict[str, str]:
    """What every episode is told in its middle; nothing for most protocols."""
    told = [f"at {at_s:g} s: {instruction}" for at_s, instruction in seen.switches]
    return {"Switched": "; ".join(told)} if told else {}


def _resolution(seen: Preview, resolved: dict[str, Any]) -> dict[str, str]:
    least, holm = resolved["smallest_p"], resolved["smallest_holm_p"]
    effects = resolved["resolvable"]
    pairs = f"{resolved['family_pairs']} pair{'s' * (resolved['family_pairs'] > 1)}"
    return {
        "Smallest p": f"{least:.2g} for one pair of arms, {holm:.2g} by Holm over {pairs}; alpha {seen.alpha:g}",
        "Success rate": f"95 % interval about +-{resolved['half_width_success']:.0%} per arm, {seen.blocks} trials",
        "Items moved": f"about +-{resolved['half_width_items']:.0%} per arm "
        f"(design effect {resolved['design_effect']:g}: items of an episode depend on each other)",
        "Resolvable": f"with {effects['power']:.0%} power at Holm's strictest step, level {effects['alpha']:.2g}:",
        " success": _differences(effects["success"]),
        " time": f"RMSTs that differ by a factor of {effects['rmst_ratio']:.2f} or more "
        f"(log RMST varies by {effects['spread']:g} from episode to episode)",
    }


def _differences(rows: list[dict[str, Any]]) -> str:
    found = [
        f"{100 * r['difference']:.0f} points if {r['discordant']:.0%} of pairs disagree"
        for r in rows
        if r["difference"]
    ]
    none = [f"{r['discordant']:.0%}" for r in rows if not r["difference"]]
    return "; ".join([*found, *([f"no difference if only {' or '.join(none)} disagree"] if none else [])])


def _print_looks(looks: list[dict[str, Any]], alpha: float) -> None:
    click.echo(f"Looks, alpha {alpha:g} spent as O'Brien and Fleming's boundaries would; no other look is planned:")
    rows = [
        (
            str(look["number"]),
            str(look["blocks"]),
            f"{look['z']:.3f}",
            f"{look['level']:.3g}",
            f"{look['spent']:.3g}",
            "yes" if look["can_stop"] else "no",
        )
        for look in looks
    ]
    heads = ("look", "blocks", "boundary |z|", "stop at p (Holm) <=", "alpha spent", "can stop")
    print_table(heads, rows)


def _print_hours(hours: Hours) -> None:
    click.echo(f"Hours:        {'at most ' if hours.running_is_at_most else ''}{hours.total:.1f} in all:")
    rows = [(name, f"{getattr(hours, part):.1f}") for part, name in PARTS.items()]
    print_table(("part", "hours"), [*rows, (f"all, {hours.sessions} evenings", f"{hours.total:.1f}")])
