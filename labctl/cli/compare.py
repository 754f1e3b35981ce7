"""`labctl compare`: two success counts, paired or not, in strata or out of a table: numbers and careful words.

May not: compute anything; the statistics are `labctl.analysis`.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import ALPHA, PATH, computed_here, example, json_option, listed, print_analysis, print_table
from labctl.errors import InputError
from labctl.plain import count

if TYPE_CHECKING:
    from labctl.analysis.binary.compare import ComparedArms
    from labctl.analysis.binary.sentences import Found

EPILOG = example(
    "labctl compare 17/20 14/20",
    "labctl compare 17/20 14/20 --paired 5,2        # 5 pairs: only the first succeeded; 2: only the second",
    "labctl compare 9/10,8/10 7/10,4/10             # two strata (objects), in the same order for both",
    "labctl compare --counts counts.csv --between arm --within axis --json",
)
Count = tuple[int, int]
_COUNT = re.compile(r"^(\d{1,9})/(\d{1,9})$", re.ASCII)
_PAIR = re.compile(r"^\s*(\d{1,9})\s*,\s*(\d{1,9})\s*$", re.ASCII)


@click.command(epilog=EPILOG)
@click.argument("counts", nargs=-1, metavar="[K/N K/N]")
@click.option("--paired", metavar="B,C", help="Pairs in which only the first, only the second succeeded.")
@click.option("--counts", "table", type=PATH, metavar="FILE", help="A counts table instead.")
@click.option("--between", metavar="COLUMN", help="With --counts: compare every pair of its values.")
@click.option("--within", default="", metavar="COLUMNS", help="With --counts: strata, comma-separated columns.")
@click.option("--alpha", default=0.05, show_default=True, type=ALPHA, help="Level; intervals are at 1 - alpha.")
@json_option
def compare(
    counts: tuple[str, ...],
    paired: str | None,
    table: Path | None,
    between: str | None,
    within: str,
    alpha: float,
    as_json: bool,
) -> None:
    """Which of two arms succeeded more often, and whether these counts can tell.

    Two counts are taken as independent trials (Boschloo, Newcombe), with --paired as pairs (McNemar, Tango), as
    comma-separated lists as strata (Cochran-Mantel-Haenszel). With --counts every pair of arms of a table is compared.
    """
    from labctl.analysis.binary import compare as module

    if table is not None:
        if counts or paired is not None or between is None:
            raise InputError("--counts FILE goes with --between COLUMN, and without K/N and --paired")
        rows = module.compare_counts(table, between, listed(within), alpha)
        found = {"schema": module.SCHEMA, "pairs": rows}
        return print_analysis({**found, **computed_here()}) if as_json else _print_rows(rows, alpha)
    if between is not None or within:
        raise InputError("--between and --within need --counts FILE")
    found = _compare(counts, paired, alpha)
    return print_analysis({**found, **computed_here()}) if as_json else _print_one(found)


def _compare(counts: tuple[str, ...], paired: str | None, alpha: float) -> Found:
    from labctl.analysis.binary import compare as module

    if len(counts) != 2:
        raise InputError(f"compare takes two counts and got {len(counts)}; such as: labctl compare 17/20 14/20")
    first, second = (_strata(text) for text in counts)
    if len(first) != len(second):
        raise InputError(f"{counts[0]} has {len(first)} strata and {counts[1]} {len(second)}; give both the same ones")
    if paired is not None and len(first) > 1:
        raise InputError("--paired goes with one K/N each, not with strata")
    if len(first) > 1:
        return module.within_strata(list(zip(first, second, strict=True)), alpha)
    if paired is None:
        return module.independent(first[0], second[0], alpha)
    match = _PAIR.match(paired)
    if match is None:
        raise InputError(f"--paired is {paired!r}; allowed are two counts such as 5,2")
    return module.paired(first[0], second[0], int(match[1]), int(match[2]), alpha)


def _strata(text: str) -> list[Count]:

    found = []
    for part in text.split(","):
        match = _COUNT.match(part.strip())
        if match is None:
            raise InputError(f"{part.strip()!r} is no count; write successes/trials, such as 17/20")
        k, n = int(match[1]), int(match[2])
        if n < 1 or k > n:
            raise InputError(f"{part.strip()} cannot be: successes are at most the trials, and there is at least one")
        found.append((k, n))
    return found


def _print_one(found: Found) -> None:
    from labctl.analysis import numerals
    from labctl.analysis.binary import sentences as words

    rows = [
        (
            name,
            f"{found[name]['successes']}/{found[name]['trials']}",
            numerals.percent(found[name]["rate"]),
            numerals.interval(found[name]["ci_wilson"], scale=100),
            numerals.interval(found[name]["ci_exact"], scale=100),
        )
        for name in ("first", "second")
    ]
    level = numerals.confidence(found["alpha"])
    print_table(("", "k/n", "rate %", f"Wilson {level} %", f"exact {level} %"), rows)
    if "strata" in found:
        strata = [
            (s["stratum"], *(f"{k}/{n}" for k, n in (s["first"], s["second"])), words.points(s["difference"]))
            for s in found["strata"]
        ]
        print_table(("stratum", "first", "second", "points"), strata)
    click.echo(f"Difference, first - second: {words.points(found['difference'])} points {words.span(found)}")
    for sentence in words.sentences(found):
        click.echo(sentence)


def _print_rows(rows: list[ComparedArms], alpha: float) -> None:
    from labctl.analysis import numerals
    from labctl.analysis.binary import sentences as words

    shown = [
        (
            f"{row['a']} - {row['b']}",
            *(f"{row[side]['successes']}/{row[side]['trials']}" for side in ("first", "second")),
            f"{words.points(row['difference'])} {words.span(row)}",
            numerals.p_value(row["p_value"], None),
            numerals.p_value(row["p_holm"], None),
        )
        for row in rows
    ]
    level = numerals.confidence(alpha)
    print_table(("pair", "k/n", "k/n", f"points, {level} %", "p", "p (Holm)"), shown)
    for row in rows:
        if row["p_holm"] <= alpha:
            click.echo(words.sentences(row, row["a"], row["b"])[0])
    for stratum in dict.fromkeys(name for row in rows for name in row["missing"]):
        left = sum(stratum in row["missing"] for row in rows)
        click.echo(f"{stratum}: left out of {count(left, 'pair')} of which not both were tried there")
    unresolved = sum(row["p_holm"] > alpha for row in rows)
    click.echo(f"{unresolved} of {len(rows)} pairs are not resolved at this N (alpha {alpha:g} after Holm).")
    click.echo(words.PREMISE)
