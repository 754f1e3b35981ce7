"""The success-rate half of `labctl power`: one rate, two rates, two rates in pairs.

May not: compute anything; `labctl.analysis.planning.power` does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from labctl.cli.options import print_json, print_table

SCHEMA = "labctl.power/1"


def rates(given: Mapping[str, Any]) -> None:
    """Print the answer for --half-width, --rates or --discordant. Raises QuestionError and InputError."""
    from labctl.analysis.planning import power

    alpha, sizes = given["alpha"], numbers(given["sizes"], "--n")
    if given["protocol"] is not None:
        from labctl.store.lab_folder import read_plan

        protocol = read_plan(given["protocol"]).protocol
        design = protocol.design
        sizes = sizes or [design.blocks_per_condition * len(design.objects) * len(design.layouts)]
        alpha = alpha or protocol.analysis.alpha
    alpha = alpha or 0.05
    if given["half_width"] is not None:
        found = _one_rate(power, given, sizes)
    elif given["rates"] is not None:
        found = _unpaired(power, given, sizes, alpha)
    else:
        found = _paired(power, given, sizes, alpha)
    if given["as_json"]:
        print_json({"schema": SCHEMA, **found["json"]})
        return
    for line in found["lines"]:
        click.echo(line)
    if found["rows"]:
        print_table(*found["rows"])


def numbers(text: str | None, option: str, largest: int = 1_000_000) -> list[int]:
    """The sorted whole numbers of a list such as 10,20. Raises InputError."""
    from labctl.errors import InputError

    if text is None:
        return []
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() and 1 <= int(part) <= largest for part in parts):
        raise InputError(f"{option} is {text!r}; allowed are whole numbers from 1 on, such as 10,20,40")
    return sorted({int(part) for part in parts})


def _one_rate(power: Any, given: Mapping[str, Any], sizes: list[int]) -> dict[str, Any]:
    half, rate = given["half_width"], given["rate"]
    n = power.wilson_trials(half, rate)
    widest = power.wilson_trials(half, 0.5)
    rows = [(str(size), f"+-{100 * power.wilson_half_width(size, rate):.1f}") for size in sizes]
    said = f"A success rate of {rate:.0%} to +-{100 * half:g} points (95 %, Wilson) takes {n} independent trials"
    return {
        "json": {
            "question": "one rate",
            "half_width": half,
            "rate": rate,
            "trials": n,
            "trials_at_half": widest,
            "by_trials": [{"trials": s, "half_width": power.wilson_half_width(s, rate)} for s in sizes],
        },
        "lines": [f"{said}; {widest} if the rate may be anything."],
        "rows": (("trials", "half-width, points"), rows) if rows else None,
    }


def _unpaired(power: Any, given: Mapping[str, Any], sizes: list[int], alpha: float) -> dict[str, Any]:
    from labctl.errors import InputError

    try:
        a, b = (float(part) for part in given["rates"].split(","))
    except ValueError:
        raise InputError(f"--rates is {given['rates']!r}; allowed are two rates such as 0.85,0.70") from None
    if not (0 <= a <= 1 and 0 <= b <= 1 and a != b):
        raise InputError(f"--rates is {given['rates']!r}; allowed are two different rates from 0 to 1")
    target = given["target"]
    largest, about = power.LARGEST_LISTED, power.normal_trials(a, b, target, alpha)
    found = [{"trials": n, "power": power.boschloo_power(n, n, a, b, alpha)} for n in sizes]
    needed = None
    if about <= largest:
        needed = power.smallest_trials(lambda n: power.boschloo_power(n, n, a, b, alpha), target, about, largest)
    trials = f"{needed} trials per arm." if needed else f"about {about} trials per arm (by the normal approximation)."
    said = f"{a:.0%} against {b:.0%}, unpaired, Boschloo's exact test, alpha {alpha:g}: {target:.0%} power"
    return {
        "json": {
            "question": "two rates, unpaired",
            "rates": [a, b],
            "alpha": alpha,
            "target": target,
            "trials_per_arm": needed,
            "trials_normal": about,
            "by_trials": found,
        },
        "lines": [f"{said} needs {trials}"],
        "rows": (("trials per arm", "power"), [(str(r["trials"]), f"{r['power']:.3f}") for r in found])
        if found
        else None,
    }


def _paired(power: Any, given: Mapping[str, Any], sizes: list[int], alpha: float) -> dict[str, Any]:
    share, difference, target = given["discordant"], given["difference"], given["target"]
    connor = power.connor_pairs(share, difference, target, alpha)
    needed = power.smallest_trials(
        lambda n: power.mcnemar_power(n, share, difference, alpha), target, connor, 10 * connor + 100
    )
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
    asked = f"{100 * difference:g} points with {share:.0%} of pairs discordant"
    said = f"{asked}, McNemar, alpha {alpha:g}: {target:.0%} power"
    heads = ("pairs", "power (mid-p)", "power (exact)", f"points found with {target:.0%} power")
    return {
        "json": {
            "question": "two rates, paired",
            "discordant": share,
            "difference": difference,
            "alpha": alpha,
            "target": target,
            "pairs": needed,
            "pairs_connor": connor,
            "by_pairs": found,
        },
        "lines": [f"{said} needs {needed} pairs by listing every outcome ({connor} by Connor's formula)."],
        "rows": (heads, rows) if rows else None,
    }
