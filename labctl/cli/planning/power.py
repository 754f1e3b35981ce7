"""`labctl power`: how many trials a question needs, by formula, by listing every outcome, or by simulated campaigns.

May not: compute anything; `labctl.analysis` does. What a simulation assumes is printed beside it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import click

from labctl.cli.options import (
    PATH,
    FiniteRange,
    computed_here,
    example,
    json_option,
    lab_option,
    numbers,
    print_json,
    print_table,
    times_of_option,
)
from labctl.cli.planning.pace import Given, needed_pace, pace_of
from labctl.cli.planning.printed import EVENINGS, fitting
from labctl.errors import InputError
from labctl.plain import LONGEST_S, Json, count
from labctl.store.lab_folder import read_plan

SCHEMA = "labctl.power/1"
SHARE = FiniteRange(0, 1, min_open=True, max_open=True)
LASTING = FiniteRange(0, LONGEST_S, min_open=True)
EPILOG = example(
    "labctl power --half-width 0.05 --rate 0.7                  # trials for a success rate to +-5 points",
    "labctl power --rates 0.85,0.70 --n 20,40,80                # two arms, unpaired",
    "labctl power --discordant 0.3 --difference 0.15 --n 40,80  # two arms, in pairs",
    "labctl power --protocol protocols/first.toml --rmst human=10.5,policy-a=77,policy-b=99",
    "labctl power --rmst 77,99 --tau 240 --items 8 --budget-s 240 --objects 4 --json",
    "labctl power --protocol protocols/first.toml --pilot operations.csv",
    "labctl power --discordant 0.3 --difference 0.15 --evenings 3 --times-of first  # what three evenings can see",
)


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: as JSON, in one sentence, and as a table (headings, rows) where sizes were given."""

    json: Mapping[str, Json]
    line: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    needed: int | None  # trials of each arm that the answer's N takes


@dataclass(frozen=True, slots=True)
class Level:
    """What a pair's p is held to: alpha, or Holm's strictest step of it where a protocol has several pairs."""

    alpha: float
    pairs: int

    @property
    def of_a_pair(self) -> float:
        return self.alpha / self.pairs

    @property
    def words(self) -> str:
        held = f", by Holm over {self.pairs} pairs {self.of_a_pair:.2g}" if self.pairs > 1 else ""
        return f"alpha {self.alpha:g}{held}"

    @property
    def json(self) -> dict[str, float]:
        return {"alpha": self.alpha, **({"level": self.of_a_pair} if self.pairs > 1 else {})}


MODES = ("--half-width", "--rates", "--discordant", "--rmst", "--pilot")


@click.command(epilog=EPILOG)
@click.option("--half-width", type=SHARE, help="Rate: trials for a 95 % Wilson interval of +- this.")
@click.option("--rate", type=SHARE, default=0.5, show_default=True, help="Rate: the success rate expected.")
@click.option("--rates", metavar="A,B", help="Unpaired: the two success rates.")
@click.option("--discordant", type=SHARE, help="Paired: share of pairs that disagree.")
@click.option("--difference", type=SHARE, help="Paired: difference of the two success rates.")
@click.option("--rmst", metavar="S,S,…", help="Times: an RMST for each arm, or NAME=S.")
@click.option("--pilot", type=PATH, metavar="TABLE", help="Times: arms from a table; assurance too.")
@click.option("--protocol", type=PATH, metavar="FILE", help="Sizes from a protocol.")
@click.option("--n", "sizes", metavar="N,N,…", help="Trials per arm; for times per arm and object.")
@click.option("--target", type=SHARE, default=0.8, show_default=True, help="The power wanted.")
@click.option("--alpha", type=SHARE, help="Level before Holm's correction [default: the protocol's, or 0.05].")
@click.option("--tau", type=LASTING, help="Times: horizon in s.")
@click.option("--items", type=click.IntRange(1, 100), help="Times: items staged per episode.")
@click.option("--budget-s", type=LASTING, help="Times: budget of an episode.")
@click.option("--objects", type=click.IntRange(1, 50), help="Times: how many objects. [default: 1]")
@click.option(
    "--reference",
    metavar="ARM",
    help="Times: the arm HRT refers to [default: the protocol's; without --protocol human].",
)
@click.option("--lost", metavar="SHARE,…", help="Times: share of items lost, one or one per arm.")
@click.option(
    "--frailty",
    type=FiniteRange(0, 2),
    default=0.55,
    show_default=True,
    help="Times: sd of log pace between episodes.",
)
@click.option(
    "--shape", type=FiniteRange(0.2, 20), default=1.0, show_default=True, help="Times: gamma shape of item times."
)
@click.option(
    "--scene", type=FiniteRange(0, 2), default=0.0, show_default=True, help="Times: sd of log pace between blocks."
)
@click.option(
    "--runs", type=click.IntRange(20, 100_000), default=200, show_default=True, help="Times: campaigns per size."
)
@click.option(
    "--perm", type=click.IntRange(19, 100_000), default=299, show_default=True, help="Times: label swaps per test."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Same seed, same numbers.")
@click.option(
    "--evenings",
    type=EVENINGS,
    help="N: what so many evenings have time for.",
)
@click.option("--session-h", type=FiniteRange(0.4, 24), default=3.0, show_default=True, help="Hours of an evening.")
@click.option(
    "--trial-s",
    type=FiniteRange(0.1, LONGEST_S),
    help="Seconds of a whole trial, reset to score [default: as measured, else staging and budget].",
)
@times_of_option
@lab_option
@json_option
def power(**given: Unpack[Given]) -> None:
    """How many trials a question needs, and what a planned number can tell apart.

    Give one of --half-width, --rates, --discordant with --difference, --rmst or --pilot. Success rates are answered
    exactly, by listing every outcome. Times are answered by drawing campaigns from a stated law of item times and
    testing each as `labctl analyze` would; what is assumed and the Monte-Carlo error are printed.

    Each N is said in hours, evenings and robot days too, by this lab's own measured times where it has any.
    """
    values = (given["half_width"], given["rates"], given["discordant"], given["rmst"], given["pilot"])
    chosen = [name for name, value in zip(MODES, values, strict=True) if value is not None]
    if len(chosen) != 1:
        found = " and ".join(chosen) or "none of them"
        raise InputError(f"power answers one of {', '.join(MODES)} at a time; found {found}")
    if (given["difference"] is None) != (given["discordant"] is None):
        raise InputError("--difference and --discordant go together")
    if given["sizes"] is not None and given["evenings"] is not None:
        raise InputError("--n and --evenings both say how many trials there are; give one")
    if chosen[0] in ("--rmst", "--pilot"):
        from labctl.cli.planning.power_times import times

        times(given)
    else:
        _rates(given)


def _rates(given: Given) -> None:
    """Print the answer for --half-width, --rates or --discordant. Raises QuestionError and InputError."""
    from labctl.analysis.planning.interim_design import families
    from labctl.checks.protocol_size import preview

    alpha, sizes = given["alpha"], numbers(given["sizes"], "--n")
    seen, pairs, of_all = None, 1, (1 if given["half_width"] is not None else 2, 1)
    if given["protocol"] is not None:
        planned = read_plan(given["protocol"])
        seen = preview(planned.protocol, planned.fixture)
        alpha, of_all = alpha or seen.alpha, (seen.trials, seen.blocks)  # whoever meets one arm more meets all of them
        if given["half_width"] is None:
            if seen.arms == 1:
                raise InputError(f"{seen.name} has one arm and compares nothing; ask with --half-width, or of another")
            pairs = max(families(seen.arms, reference=planned.protocol.analysis.reference is not None))
    level, pace = Level(alpha or 0.05, pairs), pace_of(given)
    blocks = None if seen is None or sizes else seen.blocks
    if given["evenings"] is not None:
        trials = needed_pace(pace).trials_in(given["evenings"])
        blocks = fitting(trials, given["evenings"], of_all[0] / of_all[1], "two of each arm", 1_000_000)
    if blocks is not None:
        sizes = [blocks if seen is None else seen.sets_in(blocks)]
    if given["half_width"] is not None:
        found = _one_rate(given["half_width"], given["rate"], sizes)
    elif given["rates"] is not None:
        found = _unpaired(given["rates"], given["target"], sizes, level)
    else:
        assert given["discordant"] is not None and given["difference"] is not None
        found = _paired(given["discordant"], given["difference"], given["target"], sizes, level)
    needed = None if found.needed is None else found.needed * of_all[0] // of_all[1]
    cost = {} if pace is None else {"cost": {"times": pace.source, **pace.cost(needed)}}
    sets = {"blocks": blocks, "sets": sizes[0]} if blocks is not None and sizes[0] < blocks else None
    if given["as_json"]:
        print_json({"schema": SCHEMA, **found.json, **({"in_sets": sets} if sets else {}), **cost, **computed_here()})
        return
    click.echo(found.line)
    if pace is not None and needed is not None:
        arms = f" of all {seen.arms} arms" if seen is not None and seen.arms > 1 else ""
        click.echo(f"That is {count(needed, 'trial')}{arms}: {pace.words(needed)}.")
    if found.rows:
        rows, heads = found.rows, found.heads
        if pace is not None:
            of_one = {sets["sets"]: sets["blocks"]} if sets else {}
            of_rows = [of_one.get(size, size) for size in (int(row[0]) for row in rows)]
            costs = [pace.words(size * of_all[0] // of_all[1]) for size in of_rows]
            rows, heads = [(*row, cost) for row, cost in zip(rows, costs, strict=True)], (*heads, "at the robot")
        print_table(heads, rows)
    if sets:
        click.echo(
            f"{count(sets['blocks'], 'block')} of the protocol are in {count(sets['sets'], 'set')} of a base and what "
            "perturbs it; a report's tests and intervals count a set as one, and so does this table. What is needed is "
            "said of blocks that are each by themselves."
        )
    if pace is not None:
        click.echo(f"Times: {pace.source}.")


def _one_rate(half: float, rate: float, sizes: list[int]) -> Answer:
    from labctl.analysis.planning import power

    n = power.wilson_trials(half, rate)
    widest = power.wilson_trials(half, 0.5)
    rows = [(str(size), f"+-{100 * power.wilson_half_width(size, rate):.1f}") for size in sizes]
    line = (
        f"A success rate of {rate:.0%} to +-{100 * half:g} points (95 %, Wilson) takes {count(n, 'independent trial')}"
    )
    return Answer(
        json={
            "question": "one rate",
            "half_width": half,
            "rate": rate,
            "trials": n,
            "trials_at_half": widest,
            "by_trials": [{"trials": s, "half_width": power.wilson_half_width(s, rate)} for s in sizes],
        },
        line=f"{line}; {widest} if the rate may be anything.",
        heads=("trials", "half-width, points"),
        rows=rows,
        needed=n,
    )


def _unpaired(rates: str, target: float, sizes: list[int], level: Level) -> Answer:
    from labctl.analysis.planning import power

    alpha = level.of_a_pair
    try:
        a, b = (float(part) for part in rates.split(","))
    except ValueError:
        raise InputError(f"--rates is {rates!r}; allowed are two rates such as 0.85,0.70") from None
    if not (0 <= a <= 1 and 0 <= b <= 1 and a != b):
        raise InputError(f"--rates is {rates!r}; allowed are two different rates from 0 to 1")
    largest, about = power.LARGEST_LISTED, power.normal_trials(a, b, target, alpha)
    found = [{"trials": n, "power": power.boschloo_power(n, n, a, b, alpha)} for n in sizes]
    needed = None
    if about <= largest:
        needed = power.smallest_trials(lambda n: power.boschloo_power(n, n, a, b, alpha), target, about, largest)
    trials = (
        f"{count(needed, 'trial')} per arm."
        if needed
        else f"about {count(about, 'trial')} per arm (by the normal approximation)."
    )
    line = f"{a:.0%} against {b:.0%}, unpaired, Boschloo's exact test, {level.words}: {target:.0%} power"
    return Answer(
        json={
            "question": "two rates, unpaired",
            "rates": [a, b],
            **level.json,
            "target": target,
            "trials_per_arm": needed,
            "trials_normal": about,
            "by_trials": found,
        },
        line=f"{line} needs {trials}",
        heads=("trials per arm", "power"),
        rows=[(str(r["trials"]), f"{r['power']:.3f}") for r in found],
        needed=needed or about,
    )


def _paired(share: float, difference: float, target: float, sizes: list[int], level: Level) -> Answer:
    from labctl.analysis.planning import power

    alpha = level.of_a_pair
    connor = power.connor_pairs(share, difference, target, alpha)
    most = min(10 * connor + 100, power.LARGEST_PAIRS)
    needed = power.smallest_trials(lambda n: power.mcnemar_power(n, share, difference, alpha), target, connor, most)
    pairs = f"more than {most} pairs" if needed is None else count(needed, "pair")
    found = [
        {
            "pairs": n,
            "power": power.mcnemar_power(n, share, difference, alpha),
            "power_exact": power.mcnemar_power(n, share, difference, alpha, exact=True),
            "resolvable": power.paired_resolvable(n, share, target, alpha),
        }
        for n in sizes
    ]
    rows = [
        (
            str(r["pairs"]),
            f"{r['power']:.3f}",
            f"{r['power_exact']:.3f}",
            "none" if r["resolvable"] is None else f"{100 * r['resolvable']:.1f}",
        )
        for r in found
    ]
    what = f"{100 * difference:g} points with {share:.0%} of pairs discordant"
    line = f"{what}, McNemar, {level.words}: {target:.0%} power"
    heads = ("pairs", "power (mid-p)", "power (exact)", f"points found with {target:.0%} power")
    return Answer(
        json={
            "question": "two rates, paired",
            "discordant": share,
            "difference": difference,
            **level.json,
            "target": target,
            "pairs": needed,
            "pairs_connor": connor,
            "by_pairs": found,
        },
        line=f"{line} needs {pairs} by listing every outcome ({connor} by Connor's formula).",
        heads=heads,
        rows=rows,
        needed=needed,
    )
