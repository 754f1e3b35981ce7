"""The times half of `labctl power`: simulated campaigns from stated RMSTs or a pilot table.

May not: compute anything; `labctl.analysis.planning.answers` does.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from labctl.cli.options import computed_here, numbers, print_json, print_table, progress
from labctl.cli.planning.pace import Given, needed_pace, pace_of
from labctl.cli.planning.printed import fitting
from labctl.config.toml_text import suggestion
from labctl.errors import InputError
from labctl.plain import count
from labctl.store.lab_folder import read_plan

if TYPE_CHECKING:
    from labctl.analysis.planning.answers import Answer, HrtAt, MeasurePower, Needed, PairPower
    from labctl.analysis.planning.distributions import Arm
    from labctl.analysis.planning.simulation import Resolvable

Number = TypeVar("Number", int, float)

NAMES = {
    "moved": "items moved",
    "log_rmst_ratio": "RMST ratio",
    "uph": "UPH",
    "ks_sup_mean": "KS sup-mean",
    "ks_macro": "KS macro",
    "family": "family min-P",
}
ASSURED = (
    "N =: the power if the arms are just as the pilot's best fit has them. Assured: the mean power over the arms that "
    "the pilot goes with as well, each campaign's fitted to the pilot with its episodes weighed anew."
)
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


@dataclass(frozen=True, slots=True)
class Design:
    """What a protocol gives where no option does; nothing without a protocol."""

    tau: float | None = None
    items: int | None = None
    budget_s: float | None = None
    objects: Sequence[str] = ()
    alpha: float = 0.05
    names: Sequence[str] = ()
    reference: str | None = None
    of_all: tuple[int, int] | None = None  # trials of all arms in so many blocks
    sizes: Sequence[int] = (5, 10, 20, 40)


def times(given: Given) -> None:
    """Print the answer for --rmst or --pilot. Raises QuestionError and InputError."""
    from labctl.analysis.planning import answers
    from labctl.analysis.planning.interim_design import families

    design = _design(given["protocol"])
    pilot = None
    tau, items, budget = (
        given["tau"] or design.tau,
        given["items"] or design.items,
        given["budget_s"] or design.budget_s,
    )
    if given["pilot"] is not None:
        from labctl.analysis import reading
        from labctl.analysis.planning import pilot as pilots

        table = reading.read_table(given["pilot"])
        tau = tau or pilots.shortest_budget(table)
        pilot = pilots.pilot_of(table, tau, items, budget)
        arms = pilot.arms
    else:
        tau, items, budget = _needed("tau", tau), _needed("items", items), _needed("budget-s", budget)
        arms = _stated(given, design, tau, items, budget)
    names = [arm.name for arm in arms]
    pace = pace_of(given)
    objects, (trials_of, blocks_of) = len(next(iter(arms)).distributions), design.of_all or (len(arms), 1)
    sizes = numbers(given["sizes"], "--n", 10_000) or list(design.sizes)
    if given["evenings"] is not None:
        fit, each = needed_pace(pace).trials_in(given["evenings"]), objects * trials_of / blocks_of
        sizes = [fitting(fit, given["evenings"], each, "two episodes of each arm and object", 10_000)]
    trials = {size: size * objects * trials_of // blocks_of for size in sizes}
    usual = "human" if given["protocol"] is None else design.reference
    reference = given["reference"] or (usual if usual in names else None)
    whole = bool(design.names) and set(names) <= set(design.names)
    request = answers.Request(
        tau_s=tau,
        sizes=tuple(sizes),
        alpha=given["alpha"] or design.alpha,
        target=given["target"],
        reference=reference,
        families=families(len(design.names), reference=(reference or usual) is not None) if whole else None,
        runs=given["runs"],
        perm=given["perm"],
        seed=given["seed"],
    )
    with progress("campaigns", quiet=True) as say:
        found = answers.answer(arms, request, _steps(say, quiet=given["as_json"]), pilot)
    costs = [] if pace is None else [{"episodes": size, **pace.cost(trials[size])} for size in sizes]
    if given["as_json"]:
        cost = {} if pace is None else {"cost": {"times": pace.source, "by_size": costs}}
        print_json({**found, **computed_here(), **cost})
        return
    _print(found, pilot=given["pilot"] is not None)
    if pace is not None:
        rows = [(str(size), str(trials[size]), pace.words(trials[size])) for size in sizes]
        print_table(("N", "trials of all arms", "at the robot"), rows)
        click.echo(f"Times: {pace.source}.")


def _steps(say: Callable[[str], None], *, quiet: bool) -> Callable[[str, int, int], None]:
    """A bar on a terminal, elsewhere a line on stderr when a part is done."""

    def step(what: str, done: int, of: int) -> None:
        if sys.stderr.isatty():
            say(f"{done}/{of} {what}")
        elif done == of and not quiet:
            click.echo(f"simulated: {what}, {of} steps", err=True)

    return step


def _design(path: Path | None) -> Design:
    if path is None:
        return Design()

    from labctl.checks.protocol_size import preview

    plan = read_plan(path)
    protocol, seen = plan.protocol, preview(plan.protocol, plan.fixture)
    if seen.arms == 1:
        raise InputError(f"{seen.name} has one arm and compares nothing; ask of another protocol, or of none")
    task = protocol.task_in_items("labctl power")
    each = protocol.design.blocks_per_condition * len(protocol.design.layouts or ())
    return Design(
        tau=protocol.analysis.tau_s,
        items=task.items_staged,
        budget_s=task.budget_s,
        objects=list(task.objects),
        alpha=protocol.analysis.alpha,
        names=[arm.name for arm in protocol.arm],
        reference=protocol.analysis.reference,
        of_all=(seen.trials, seen.blocks),
        sizes=sorted({max(2, each // 2), max(2, each)}),
    )


def _needed(option: str, value: Number | None) -> Number:
    """A number that its option or the protocol gave. Raises InputError."""
    if value is None:
        raise InputError(f"--{option} is needed without --protocol")
    return value


def _stated(given: Given, design: Design, tau: float, items: int, budget: float) -> tuple[Arm, ...]:
    from labctl.analysis.planning import answers, distributions

    named = _named(given["rmst"] or "", design.names)
    lost = _shares(given["lost"], len(named))
    objects = design.objects
    if given["objects"] is not None or not objects:
        objects = [f"object {i + 1}" for i in range(given["objects"] or 1)]
    if tau > budget:
        raise InputError(f"tau is {tau:g} s, beyond the episode budget of {budget:g} s; lower it")
    distribution = distributions.Distribution(
        1.0,
        shape=given["shape"],
        frailty=given["frailty"],
        items=items,
        budget_s=budget,
        scene=given["scene"],
    )
    return answers.arms_from_rmst(named, distribution, tau, lost, objects)


def _named(text: str, known: Sequence[str]) -> dict[str, float]:
    """Arms and their RMSTs: `a=77,b=99`, of a protocol's arms (known) if there are any, or a bare number of each."""
    parts = [part.strip() for part in text.split(",")]
    bare = known if len(known) == len(parts) else () if known else LETTERS
    found: dict[str, float] = {}
    for i, part in enumerate(parts):
        name, equals, value = part.rpartition("=")
        name = name.strip() if equals else (bare[i] if i < len(bare) else "")
        try:
            seconds = float(value)
        except ValueError:
            seconds = -1.0
        if known and 0 < seconds < float("inf") and name not in known:
            arms = f"the protocol's arms are {', '.join(known)}"
            if not equals:
                raise InputError(f"--rmst has {count(len(parts), 'time')}, and {arms}; give each one, or NAME=SECONDS")
            raise InputError(f"--rmst names {name!r}{suggestion(name, known)}; {arms}")
        if not (name and 0 < seconds < float("inf")):
            raise InputError(f"--rmst has {part!r}; allowed are seconds or NAME=SECONDS, such as human=10.5,a=77,b=99")
        if name in found:
            raise InputError(f"--rmst names {name!r} twice; every arm needs its own name")
        found[name] = seconds
    if len(found) < 2:
        raise InputError("--rmst has one arm; give two or more, such as --rmst 77,99")
    return found


def _shares(text: str | None, arms: int) -> list[float]:

    if text is None:
        return []
    try:
        shares = [float(part) for part in text.split(",")]
    except ValueError:
        shares = [-1.0]
    if not all(0 <= share < 1 for share in shares) or len(shares) not in (1, arms):
        raise InputError(f"--lost is {text!r}; allowed is one share of items from 0 to below 1, or one for each arm")
    return shares * arms if len(shares) == 1 else shares


def _print(found: Answer, *, pilot: bool) -> None:
    cell = next(iter(found["arms"][0]["laws"].values()))
    source = "fitted to the pilot" if pilot else "stated"
    click.echo(f"Assumed ({source}); everything below follows from this and is no better than it:")
    click.echo(f"{count(cell['items'], 'item')} an episode, budget {cell['budget_s']:g} s, tau {found['tau_s']:g} s")
    print_table(("arm", "RMST s", "as drawn", "item s", "shape", "frailty", "lost %"), _laws(found))
    objects = len(found["objects"])
    blocks = ", ".join(str(size * objects) for size in found["sizes"])
    click.echo(
        f"Power by N, episodes per arm and object (blocks in all: {blocks}); {found['runs']} campaigns each, "
        "+- is their Monte-Carlo error."
    )
    if pilot:
        click.echo(found.get("no_assurance") or ASSURED)
    for pair in found["pairs"]:
        _print_pair(pair, found["sizes"], found["target"])
    best = found["resolvable"]
    given = f"{found['target']:.0%} power at N = {best['episodes']}, level {best['level']:.2g}"
    click.echo(f"Told apart from {best['arm']} (RMST {best['rmst']:.0f} s) with {given}: an arm whose RMST is at least")
    rows = [
        (NAMES[row["measure"]], "beyond reach" if row["rmst"] is None else f"{row['rmst']:.0f} s, {_ratio(row)}")
        for row in best["by_measure"]
    ]
    print_table(("by", "RMST"), rows)
    if found["hrt"]:
        click.echo(f"HRT % against {found['reference']}, as expected, +- half of its 95 % interval:")
        by = {(row["arm"], row["episodes"]): row for row in found["hrt"]}
        arms = list(dict.fromkeys(row["arm"] for row in found["hrt"]))
        shown = [(arm, *(_hrt(by[arm, size]) for size in found["sizes"])) for arm in arms]
        print_table(("arm", *(f"N = {size}" for size in found["sizes"])), shown)
    if pilot:
        click.echo(
            "What the pilot was run for looks larger in it than it is: plan for arms closer together than it saw."
        )


def _laws(found: Answer) -> list[tuple[str, ...]]:
    rows = []
    for arm in found["arms"]:
        laws = list(arm["laws"].values())
        means = sorted(first["mean_s"] for first in laws)
        item = f"{means[0]:.1f}" if means[0] == means[-1] else f"{means[0]:.1f} to {means[-1]:.1f}"
        first = laws[0]
        shape = f"{first['shape']:.2g}", f"{first['frailty']:.2f}", f"{100 * first['lost']:.1f}"
        rows.append((arm["arm"], f"{arm['rmst_asked']:.1f}", f"{arm['rmst']:.1f}", item, *shape))
    return rows


def _print_pair(pair: PairPower, sizes: list[int], target: float) -> None:
    title = f"{pair['a']} vs {pair['b']}, level {pair['level']:.2g}"
    assured = pair.get("assurance")
    if all(row["power"] == 1.0 for row in [*pair["power"], *(assured or ())]):
        first, error = pair["power"][0]["episodes"], pair["power"][0]["error"]
        click.echo(f"{title}: told apart by every test in every campaign at N = {first}, {_share(1.0, error)}.")
        return
    click.echo(f"{title}:")
    needed, sure = pair["episodes_for_target"], pair.get("assurance_for_target")
    heads = [head for size in sizes for head in (f"N = {size}", *(["assured"] if assured is not None else []))]
    rows = [
        (
            name,
            *(
                _at(rows, size, measure)
                for size in sizes
                for rows in (pair["power"], *([assured] if assured is not None else []))
            ),
            *(_episodes(at[measure], sizes) for at in (needed, *([sure] if sure is not None else []))),
        )
        for measure, name in NAMES.items()
    ]
    last = [f"N for {target:.0%}", *(["assured"] if sure is not None else [])]
    print_table(("test", *heads, *last), rows)


def _at(rows: Sequence[MeasurePower], size: int, measure: str) -> str:
    """A power with its error; a pair that all campaigns told apart was not simulated at larger sizes, and stands as it
    did at its last one.
    """
    row = [row for row in rows if row["measure"] == measure and row["episodes"] <= size][-1]
    return _share(row["power"], row["error"])


def _share(power: float, error: float) -> str:
    return f"{power:.2f}".replace("0.", ".", 1) + f"+-{max(error, 0.01):.2f}".replace("0.", ".", 1)


def _ratio(row: Resolvable) -> str:
    """`x 1.24 [1.18, 1.31]`; a side without an end is beyond the ratios tried."""
    low, high = (f"{end:.2f}" if end is not None else "?" for end in (row["low"], row["high"]))
    return f"x {row['ratio']:.2f} [{low}, {high}]"


def _hrt(row: HrtAt) -> str:
    return f"{100 * row['hrt']:.1f}+-{100 * row['half_width']:.1f}"


def _episodes(needed: Needed, sizes: list[int]) -> str:
    best, low, high = needed["episodes"], needed["low"], needed["high"]
    if best is None:
        return f"above {sizes[-1]}"
    if best <= sizes[0]:
        return f"at most {sizes[0]}"
    ends = (str(math.ceil(round(end, 6))) if end else "" for end in (low, high))
    least, most = ends
    return f"{best} [{least or f'<{sizes[0]}'}, {most or f'>{sizes[-1]}'}]"
