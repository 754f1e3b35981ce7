"""`labctl power`: how many trials a question needs, by formula, by listing every outcome, or by simulated campaigns.

May not: compute anything; `labctl.analysis` does, loaded by name. What a simulation assumes is printed beside it.
"""

from __future__ import annotations

from typing import Any

import click

from labctl.cli.options import CONTEXT, PATH, example, json_option

SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)
EPILOG = example(
    "labctl power --half-width 0.05 --rate 0.7                  # trials for a success rate to +-5 points",
    "labctl power --rates 0.85,0.70 --n 20,40,80                # two arms, unpaired",
    "labctl power --discordant 0.3 --difference 0.15 --n 40,80  # two arms, in pairs",
    "labctl power --protocol protocols/first.toml --rmst human=10.5,a=77,b=99",
    "labctl power --rmst 77,99 --tau 240 --items 8 --budget-s 240 --objects 4 --json",
    "labctl power --protocol protocols/first.toml --pilot operations.csv",
)
MODES = ("--half-width", "--rates", "--discordant", "--rmst", "--pilot")


@click.command(epilog=EPILOG, context_settings=CONTEXT)
@click.option("--half-width", type=SHARE, default=None, help="Rate: trials for a 95 % Wilson interval of +- this.")
@click.option("--rate", type=SHARE, default=0.5, show_default=True, help="Rate: the success rate expected.")
@click.option("--rates", default=None, metavar="A,B", help="Unpaired: the two success rates.")
@click.option("--discordant", type=SHARE, default=None, help="Paired: share of pairs that disagree.")
@click.option("--difference", type=SHARE, default=None, help="Paired: difference of the two success rates.")
@click.option("--rmst", default=None, metavar="S,S,…", help="Times: an RMST for each arm, or NAME=S.")
@click.option("--pilot", type=PATH, default=None, metavar="TABLE", help="Times: arms from a table.")
@click.option("--protocol", type=PATH, default=None, metavar="FILE", help="Sizes from a protocol.")
@click.option("--n", "sizes", default=None, metavar="N,N,…", help="Trials per arm; for times per arm and object.")
@click.option("--target", type=SHARE, default=0.8, show_default=True, help="The power wanted.")
@click.option(
    "--alpha", type=SHARE, default=None, help="Level before Holm's correction [default: the protocol's, or 0.05]."
)
@click.option("--tau", type=click.FloatRange(0, min_open=True), default=None, help="Times: horizon in s.")
@click.option("--items", type=click.IntRange(1, 100), default=None, help="Times: items staged per episode.")
@click.option("--budget-s", type=click.FloatRange(0, min_open=True), default=None, help="Times: budget of an episode.")
@click.option("--objects", type=click.IntRange(1, 50), default=None, help="Times: how many objects. [default: 1]")
@click.option(
    "--reference", default=None, metavar="ARM", help="Times: the arm HRT refers to [default: human, if named]."
)
@click.option("--lost", default=None, metavar="SHARE,…", help="Times: share of items lost, one or one per arm.")
@click.option(
    "--frailty",
    type=click.FloatRange(0, 2),
    default=0.55,
    show_default=True,
    help="Times: sd of log pace between episodes.",
)
@click.option(
    "--shape", type=click.FloatRange(0.2, 20), default=1.0, show_default=True, help="Times: gamma shape of item times."
)
@click.option(
    "--scene", type=click.FloatRange(0, 2), default=0.0, show_default=True, help="Times: sd of log pace between blocks."
)
@click.option(
    "--runs", type=click.IntRange(20, 100_000), default=200, show_default=True, help="Times: campaigns per size."
)
@click.option(
    "--perm", type=click.IntRange(19, 100_000), default=299, show_default=True, help="Times: label swaps per test."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same numbers.")
@json_option
def power(**given: Any) -> None:
    """How many trials a question needs, and what a planned number can tell apart.

    Give one of --half-width, --rates, --discordant with --difference, --rmst or --pilot. Success rates are answered
    exactly, by listing every outcome. Times are answered by drawing campaigns from a stated law of item times and
    testing each as `labctl analyze` would; what is assumed and the Monte-Carlo error are printed.
    """
    from labctl.errors import InputError

    chosen = [name for name in MODES if given[name[2:].replace("-", "_")] is not None]
    if len(chosen) != 1:
        found = " and ".join(chosen) or "none of them"
        raise InputError(f"power answers one of {', '.join(MODES)} at a time; found {found}")
    if (given["difference"] is None) != (given["discordant"] is None):
        raise InputError("--difference and --discordant go together")
    if chosen[0] in ("--rmst", "--pilot"):
        from labctl.cli.power_times import times

        times(given)
    else:
        from labctl.cli.power_rates import rates

        rates(given)
