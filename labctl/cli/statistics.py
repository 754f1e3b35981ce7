"""`labctl analyze` and `labctl rates`: the statistics alone, from a flat table. Need no lab and no database.

May not: compute anything; the statistics are `labctl.analysis`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    FAMILY,
    alpha_option,
    computed_here,
    estimator_option,
    example,
    factors_of,
    family_option,
    file_argument,
    json_option,
    listed,
    margin_of,
    margin_options,
    print_analysis,
    print_table,
    progress,
    random_option,
    refuse_of_operations,
    seed_option,
)

if TYPE_CHECKING:
    from labctl.analysis.episodes_table.cohort import Plan
    from labctl.analysis.episodes_table.result import EpisodesResult
    from labctl.analysis.episodes_table.table import EpisodesTable
    from labctl.analysis.survival.result import AnalysisResult

REPLICATES = "default: 9999; beyond 20,000 operations fewer, 499 at least"
ANALYZE = example(
    "labctl analyze operations.csv --reference human",
    "labctl analyze operations.csv --margin 1.25",
    "labctl analyze operations.csv --estimator wang_chang",
    "labctl analyze episodes.csv                    # success, scores, stages, preferences of any task",
    "labctl analyze operations.csv --reference human --tau 240 --boot 9999 --perm 9999 --seed 0 --json",
)
RATES = example(
    "labctl rates counts.csv --by axis,arm",
    "labctl rates counts.csv --by category,arm      # the seven categories of perturbation, from the axis codes",
    "labctl rates counts.csv --by arm --json",
)


@click.command(epilog=ANALYZE)
@file_argument("table", "TABLE.csv")
@click.option("--reference", metavar="ARM", help="The arm the others are compared with; HRT needs one.")
@click.option("--tau", type=float, metavar="S", help="Horizon of the restricted mean [default: the budget].")
@click.option("--boot", type=click.IntRange(min=1), help=f"Bootstrap replicates [{REPLICATES}].")
@click.option("--perm", type=click.IntRange(min=1), help=f"Label swaps tried [{REPLICATES}].")
@seed_option
@alpha_option
@family_option
@estimator_option
@margin_options
@random_option
@click.option("--extra", is_flag=True, help="Admit columns that are not known.")
@json_option
def analyze(
    table: Path,
    reference: str | None,
    tau: float | None,
    boot: int | None,
    perm: int | None,
    seed: int,
    alpha: float,
    family: str,
    estimator: str | None,
    margin: float | None,
    non_inferior_to: str | None,
    random: str,
    extra: bool,
    as_json: bool,
) -> None:
    """The statistics of a table (CSV or Parquet; - is CSV on standard input), which its columns tell apart.

    \b
    operations table   one row an operation, the timed unit of PhAIL: docs/statistics.md
    episodes table     one row an episode of any task, with success, score or stages: docs/episodes.md
    every column of both, with its unit and what it may hold: docs/columns.md

    --family, --estimator, --margin, --non-inferior-to and --random are for an operations table.
    """
    from labctl.analysis.episodes_table import reading
    from labctl.analysis.episodes_table.cohort import Plan
    from labctl.analysis.episodes_table.table import EpisodesTable
    from labctl.analysis.monte_carlo import replicates_for
    from labctl.analysis.operations_table import analyze as module

    within, factors = margin_of(margin, non_inferior_to), factors_of(random)
    read = reading.read_either(table, extra=extra)
    if isinstance(read, EpisodesTable):
        refuse_of_operations(asked=family != FAMILY or bool(estimator or within or factors))
        size = replicates_for(0)
        analyze_episodes(read, Plan(reference, tau, boot or size, perm or size, seed, alpha), as_json)
        return
    size = replicates_for(len(read.kind))
    with progress("pairs of arms", quiet=True) as say:
        result = module.analyze(
            read,
            reference=reference,
            tau=tau,
            boot=boot or size,
            perm=perm or size,
            seed=seed,
            alpha=alpha,
            family=listed(family),
            margin=within,
            estimator=estimator or "kaplan_meier",
            say=say,
        )
    if factors:
        from labctl.analysis.episodes.random_factors import anew

        result["anew"] = anew(read, result, factors)
    if as_json:
        print_analysis({**result, **computed_here()})
    else:
        _print_analysis(result)


def analyze_episodes(read: EpisodesTable, plan: Plan, as_json: bool = False) -> None:
    """Print what the statistics say of a table of episodes, or their JSON."""
    from labctl.analysis.episodes_table import analyze as module

    result = module.analyze(read, plan)
    if as_json:
        print_analysis({**result, **computed_here()})
    else:
        _print_episodes(result)


def _print_episodes(result: EpisodesResult) -> None:
    from labctl.analysis.episodes_table import words

    preference = words.preference(result)
    tables = (words.arms(result), words.stages(result), words.pairs(result), preference and preference[0])
    for shown in (*tables, *words.rows(result)):
        if shown is not None:
            print_table(shown.headings, shown.rows)
    sentences = preference[1] if preference else []
    for sentence in (*words.sentences(result), *sentences, *words.factors(result), *words.tasks(result)):
        click.echo(sentence)
    for warning in result["warnings"]:
        click.echo(f"warning: {warning}")


def _print_analysis(result: AnalysisResult) -> None:
    from labctl.analysis import numerals
    from labctl.analysis.report import anew_words
    from labctl.analysis.report.margin_words import claims
    from labctl.analysis.report.wording import MADE_OF_EPISODES, time_ratio, verdict_words

    rows = [
        (
            arm["arm"],
            numerals.count(arm["episodes"]),
            numerals.estimate(arm["moved"], arm["moved_ci"], scale=100),
            numerals.estimate(arm["rmst"], arm["rmst_ci"]),
            numerals.estimate(arm["hrt"], arm["hrt_ci"], scale=100),
            numerals.percent(arm["hrt_floor"]),
        )
        for arm in result["arms"]
    ]
    print_table(("arm", "episodes", "moved %", f"RMST s (tau {result['tau']:g})", "HRT %", "HRT floor %"), rows)
    if result["estimator"] != "kaplan_meier":
        click.echo(f"RMST: {MADE_OF_EPISODES}")
    for arm in result["arms"]:
        if arm["helped"]:
            text = f"{arm['arm']}: a person helped in {arm['helped']} of {arm['episodes']} episodes (interventions)"
            click.echo(f"{text}; they count as they went")
    pairs = [
        (
            f"{pair['a']} vs {pair['b']}",
            verdict_words(pair),
            time_ratio(pair, adjusted=True),
            numerals.p_value(pair["p_holm"], pair["p_holm_error"]),
        )
        for pair in result["pairs"]
    ]
    if pairs:
        level = numerals.confidence(result["alpha"])
        print_table(("pair", "verdict", f"time per item, ratio [{level} %, all pairs]", "p (Holm)"), pairs)
        if any("±" in p for *_, p in pairs):
            click.echo("± behind a p: its Monte-Carlo error, of random label swaps; another seed gives another p.")
    for claim in (*claims(result, protocol=False), *anew_words.claims(result)):
        click.echo(claim.text)
    for warning in result["warnings"]:
        click.echo(f"warning: {warning}")


@click.command(epilog=RATES)
@file_argument("counts", "COUNTS.csv")
@click.option(
    "--by", default="", metavar="COLUMNS", help="Comma-separated columns to pool by [default: one row for all]."
)
@json_option
def rates(counts: Path, by: str, as_json: bool) -> None:
    """Exact intervals for k-of-n tables (columns `successes`, `trials` and any others), pooled by any columns.

    With a column `axis` of perturbation codes (V-SC, S-PROP+V-OBJ, in-distribution), `category` may be pooled by too.
    """
    from labctl.analysis import numerals
    from labctl.analysis.binary import pooling as module

    columns = listed(by)
    found = module.rates(counts, columns)
    if as_json:
        print_analysis(found)
        return
    rows = [
        (
            *(str(row[name]) for name in columns),
            f"{row['successes']}/{row['trials']}",
            numerals.percent(row["rate"]),
            numerals.interval(row["ci_wilson"], scale=100),
            numerals.interval(row["ci_exact"], scale=100),
        )
        for row in found
    ]
    print_table((*columns, "k/n", "rate %", "Wilson 95 %", "exact 95 %"), rows)
