"""[analysis.looks]: when a campaign may be looked at before its end, fixed in the protocol or not at all.

May not: compute a level (`labctl.analysis.planning.spending` does), or allow a look that the protocol does not name.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field, Strict

from labctl.config.cell_schema import refuse_unknown
from labctl.config.toml_text import Document, Location, Table
from labctl.config.values import Lax, Text

Fraction = Annotated[float, Field(ge=0.1, le=1)]
Two = Annotated[tuple[Text, ...], Lax, Field(min_length=2, max_length=2)]


class Looks(Table):
    """[analysis.looks]: 3 to 5 shares of the blocks after which p-values are looked at, the last being 1.

    Alpha is spent by a function of O'Brien–Fleming type, and by nothing else. A look says stop once every one of
    `pairs` is told apart, without any every pair of arms; `labels` is the stream that says when items were moved, as
    `labctl report --labels` has it.
    """

    fractions: Annotated[tuple[Fraction, ...], Strict(False), Field(min_length=3, max_length=5)]
    spending: Literal["obrien_fleming"] = "obrien_fleming"
    pairs: Annotated[tuple[Two, ...], Lax] = ()
    labels: Literal["best", "operator", "detector", "reviewed", "device"] | None = None


def looks_after(looks: Looks, blocks: int) -> tuple[int, ...]:
    """The numbers of complete blocks at which a campaign of `blocks` blocks is looked at: the next whole block."""
    return tuple(math.ceil(round(fraction * blocks, 9)) for fraction in looks.fractions)


def check_looks(document: Document, at: Location, looks: Looks, blocks: int, arms: Sequence[str]) -> None:
    """Raises InputError at the line of `at` unless the looks rise to 1 and fall on different blocks, or for pairs that
    are not of two of the `arms`, each pair once.
    """
    table = at[:-1]
    refuse_unknown(document, (*table, "pairs"), "arm", [arm for pair in looks.pairs for arm in pair], "arms", arms)
    alike = [pair for pair in looks.pairs if len(set(pair)) < 2 or sum(set(pair) == set(p) for p in looks.pairs) > 1]
    if alike:
        named = " and ".join(alike[0])
        raise document.refusal((*table, "pairs"), f"the pair {named}; a pair is of two arms, and named once")
    listed = ", ".join(f"{fraction:g}" for fraction in looks.fractions)
    if any(a >= b for a, b in zip(looks.fractions, looks.fractions[1:], strict=False)):
        raise document.refusal(at, f"fractions are {listed}; they must rise, as in [0.5, 0.75, 1.0]")
    if looks.fractions[-1] != 1:
        raise document.refusal(at, f"fractions end with {looks.fractions[-1]:g}; the last look is at 1, all blocks")
    after = looks_after(looks, blocks)
    if len(set(after)) < len(after):
        counts = ", ".join(map(str, after))
        message = f"fractions {listed} of {blocks} blocks are looks after {counts} blocks, two of them the same"
        raise document.refusal(at, f"{message}; plan fewer looks or more blocks")
