"""`labctl experiment`: the paper's two experiments, on anybody's operations table.

May not: compute anything; the experiments are `labctl.analysis.planning.experiments`. A rate is never printed without
its standard error and the sentence that it is not power.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import click

from labctl.cli.options import (
    FiniteRange,
    computed_here,
    example,
    file_argument,
    json_option,
    listed,
    numbers,
    print_analysis,
    print_table,
    progress,
    seed_option,
)
from labctl.errors import InputError

if TYPE_CHECKING:
    from labctl.analysis.planning.experiments import Experiment, Rejections
    from labctl.analysis.survival.cells import Cell

    Cells = Mapping[tuple[str, str], Cell]

SCHEMA = "labctl.experiment/1"
SIZES = "5,10,15,20,25,30"
LEVELS = ("0.01", "0.05", "0.10")
EPILOG = example(
    "labctl experiment operations.csv                       # detection rate of every pair of arms at 5 to 30 episodes",
    "labctl experiment operations.csv --sizes 10,40 --arms act,openpi --alpha 0.01",
    "labctl experiment operations.csv --null                # where nothing differs: halves of an arm, arms mixed",
)


@click.command(epilog=EPILOG)
@file_argument("table", "TABLE.csv")
@click.option("--null", "nothing_differs", is_flag=True, help="How often tests reject where nothing differs.")
@click.option("--sizes", default=SIZES, show_default=True, metavar="N,N", help="Episodes per arm and object.")
@click.option("--arms", default="", metavar="ARM,ARM", help="These arms only [default: all].")
@click.option("--tau", default=120.0, show_default=True, type=FiniteRange(min=1), help="Horizon in seconds.")
@click.option(
    "--alpha", default="0.05", show_default=True, type=click.Choice(LEVELS), help="Level of the rates printed."
)
@click.option("--outer", type=click.IntRange(min=1), help="Subsamples [default: 300; 500 with --null].")
@click.option("--inner", type=click.IntRange(min=1), help="Resamples for each p [default: 200; 500 with --null].")
@seed_option
@json_option
def experiment(
    table: Path,
    nothing_differs: bool,
    sizes: str,
    arms: str,
    tau: float,
    alpha: str,
    outer: int | None,
    inner: int | None,
    seed: int,
    as_json: bool,
) -> None:
    """The paper's experiments on an operations table: how often two arms are told apart if only N episodes of each had
    been run, by F(30), F(60), RMST and KS; and, with --null, how often where nothing differs.

    Episodes are drawn from the table, each at most once, and beside it with replacement. Neither is power: `labctl
    power` simulates. p is the paper's (pooled resamples, b / B), which `labctl report` does not rest on.
    """
    from labctl.analysis import reading
    from labctl.analysis.planning.experiments import Experiment
    from labctl.analysis.survival.cells import cells_of

    cells = cells_of(reading.read_table(table))
    names = _arms(table, cells, listed(arms))
    wanted = numbers(sizes, "--sizes")
    draws = Experiment(
        outer or (500 if nothing_differs else 300), inner or (500 if nothing_differs else 200), tau, seed
    )
    jobs = _null_jobs(draws, cells, names) if nothing_differs else _detection_jobs(draws, cells, names, wanted)
    found = _all(jobs)
    if as_json:
        results = [{"kind": kind, **result.as_dict()} for kind, result in found]
        print_analysis({"schema": SCHEMA, "seed": seed, "results": results, **computed_here()})
        return
    level = LEVELS.index(alpha)
    if nothing_differs:
        _print_null(found)
    else:
        _print_detection(found, level, alpha)
    first = found[0][1]
    click.echo(
        f"{first.outer} subsamples, {first.inner} resamples each, tau {first.tau_s:g} s, seed {seed}; {first.caveat}"
    )


Job = tuple[str, "Callable[[], Rejections]"]


def _arms(table: Path, cells: Cells, names: Sequence[str]) -> list[str]:

    known = sorted({arm for arm, _ in cells})
    unknown = [arm for arm in names if arm not in known]
    if unknown:
        raise InputError(f"--arms: no arm {unknown[0]!r} in {table}; it has {', '.join(known)}")
    return [arm for arm in known if not names or arm in names]


def _sides(cells: Cells, a: str, b: str) -> tuple[list[Cell], list[Cell]]:
    """The cells of the objects that both met."""
    both = [object_ for arm, object_ in cells if arm == a and (b, object_) in cells]
    return [cells[a, object_] for object_ in both], [cells[b, object_] for object_ in both]


def _pairs(cells: Cells, names: Sequence[str]) -> list[tuple[list[Cell], list[Cell]]]:

    pairs = [_sides(cells, a, b) for a, b in combinations(names, 2)]
    pairs = [pair for pair in pairs if pair[0]]
    if not pairs:
        raise InputError("no two arms met the same object; an experiment needs a pair of arms with an object in common")
    return pairs


def _detection_jobs(draws: Experiment, cells: Cells, names: Sequence[str], sizes: Sequence[int]) -> list[Job]:
    jobs: list[Job] = []
    for a, b in _pairs(cells, names):
        small = min(cell.episodes for cell in (*a, *b))
        for size in sizes:
            if size <= small:
                jobs.append(("once", lambda a=a, b=b, size=size: draws.detection(a, b, size)))
            jobs.append(("repeated", lambda a=a, b=b, size=size: draws.detection(a, b, size, repeated=True)))
    return jobs


def _null_jobs(draws: Experiment, cells: Cells, names: Sequence[str]) -> list[Job]:

    jobs: list[Job] = []
    for arm in names:
        own = [cell for (name, _), cell in cells.items() if name == arm and cell.episodes > 1]
        if own:
            jobs.append(("halves", lambda own=own: draws.itself(own)))
    if len(names) > 1:
        jobs += [("mixed", lambda a=a, b=b: draws.pooled(a, b)) for a, b in _pairs(cells, names)]
    if not jobs:
        raise InputError("no arm has two episodes of an object; there is nothing to halve")
    return jobs


def _all(jobs: Sequence[Job]) -> list[tuple[str, Rejections]]:
    """Every result, with a bar on a terminal."""
    found: list[tuple[str, Rejections]] = []
    with progress("subsamples", quiet=True) as say:
        for kind, work in jobs:
            found.append((kind, work()))
            say(f"{len(found)}/{len(jobs)} {kind}")
    return found


def _print_detection(found: Sequence[tuple[str, Rejections]], level: int, alpha: str) -> None:
    metrics = list(found[0][1].share)
    rows = [
        (
            f"{one.a} vs {one.b}",
            str(one.episodes[0][0]),
            "with replacement" if one.repeated else "once each",
            *(_rate(one, metric, level) for metric in metrics),
        )
        for _, one in found
    ]
    print_table(("pair", "N", "drawn", *(f"{metric} %" for metric in metrics)), rows)
    click.echo(f"% of subsamples with p at most {alpha} ± its standard error; N: episodes per arm and object")


def _print_null(found: Sequence[tuple[str, Rejections]]) -> None:
    rows = []
    for kind, one in found:
        what = f"{one.a}, its halves" if kind == "halves" else f"{one.a} and {one.b}, mixed"
        sizes = sorted({n for pair in one.episodes for n in pair})
        shown = f"{sizes[0]}–{sizes[-1]}" if len(sizes) > 1 else str(sizes[0])
        for metric in one.share:
            rates = [_rate(one, metric, level) for level in range(len(one.alphas))]
            rows.append((what, shown, metric, *rates, f"{one.mean_p[metric]:.3f}"))
    levels = [f"% p ≤ {alpha:.2f}" for alpha in found[0][1].alphas]
    print_table(("nothing differs", "N", "metric", *levels, "mean p"), rows)
    click.echo("% of subsamples ± its standard error: nominally alpha, mean p .5; N: episodes of each side per object")


def _rate(one: Rejections, metric: str, level: int) -> str:
    return f"{100 * one.share[metric][level]:.1f} ± {100 * one.error[metric][level]:.1f}"
