"""How a number is written in a report: one place for decimals, percent signs, intervals and p-values.

May not: decide what a number means, or compute one. Null is an en dash, infinity is "not reached".
"""

from __future__ import annotations

import math
from collections.abc import Sequence

Number = float | str
"""A number, or the \"inf\" by which JSON holds infinity."""
Bounds = Sequence[Number | None] | None
MISSING = "–"
NOT_REACHED = "not reached"
MOST_DIGITS = 6
USUAL_LEVELS = (0.1, 0.05, 0.025, 0.01, 0.005, 0.001)


def number(value: Number | None, digits: int = 1) -> str:
    """`value` with fixed decimals; null (or NaN) is an en dash, infinity (or the string "inf") is "not reached"."""
    if value is None:
        return MISSING
    x = float(value)
    if math.isnan(x):
        return MISSING
    if math.isinf(x):
        return NOT_REACHED
    text = f"{x:.{digits}f}"
    if text.startswith("-") and not text.strip("-0."):
        return text[1:]
    return text.replace("-", "\N{MINUS SIGN}")


def signed(value: float, digits: int = 3) -> str:
    """`value` with its sign, also where it is above 0."""
    text = number(value, digits)
    return text if text[0] == "\N{MINUS SIGN}" or not text.strip("0.") else f"+{text}"


def counted(n: int, noun: str) -> str:
    """1 pair, 2 pairs."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def percent(value: Number | None, digits: int = 1) -> str:
    """A fraction written in percent without the sign: 0.138 is "13.8"."""
    return MISSING if value is None else number(100.0 * float(value), digits)


def confidence(alpha: float) -> str:
    """The level of an interval at 1 - alpha in percent, with the digits that it takes: "95", "97.5", "99.9"; "100" is
    never said of one below.
    """
    level, digits = 100 * (1 - alpha), MOST_DIGITS
    while level < 100 and float(f"{level:.{digits}g}") == 100:
        digits += 1
    return f"{level:.{digits}g}"


def count(value: Number | None) -> str:
    """A whole number, or an en dash."""
    return MISSING if value is None else str(int(value))


def interval(bounds: Bounds, *, digits: int = 1, scale: float = 1.0) -> str:
    """`[low, high]`, each times `scale`; an en dash when there is none."""
    known = [scale * float(b) for b in bounds or () if b is not None]
    return f"[{', '.join(number(b, digits) for b in known)}]" if len(known) == 2 else MISSING


def estimate(value: Number | None, bounds: Bounds, *, digits: int = 1, scale: float = 1.0) -> str:
    """`77.7 [69.2, 87.0]`; the bare value when there is no interval."""
    if value is None:
        return MISSING
    text = number(scale * float(value), digits)
    span = interval(bounds, digits=digits, scale=scale)
    return text if span == MISSING else f"{text} {span}"


def ratio(
    value: float | None, ends: Sequence[float] | None, *, turned: bool = False, against: Sequence[float] = (1.0,)
) -> str:
    """exp of a log ratio and its interval, `0.85 [0.76, 0.96]`; turned: of the second over the first. against: as
    `factor_digits` has it.
    """
    if value is None:
        return MISSING
    sign = -1 if turned else 1
    factors = sorted(math.exp(sign * end) for end in ends or ())
    return estimate(math.exp(sign * value), factors or None, digits=factor_digits(factors, against))


def factor_digits(ends: Sequence[float], against: Sequence[float] = (1.0,)) -> int:
    """The decimals of a ratio whose interval has these ends: so many that none is printed as what it is held against
    (1; the ends of a margin) where it lies beside that.
    """
    digits = 2
    while digits < MOST_DIGITS and any(
        end != limit and f"{end:.{digits}f}" == f"{limit:.{digits}f}" for end in ends for limit in against
    ):
        digits += 1
    return digits


def p_value(p: float | None, error: float | None, least: float = 0.0) -> str:
    """Two decimals from 0.1 on, three below, four below 0.001 (more where it would look like a usual level that it is
    not), then "< 0.0001"; behind it `±` and the Monte-Carlo error
    to one digit, where `error` is not None or 0: random draws then gave the p, and another seed gives another.

    least: what a test could at most say by its resamples, such as 1 / (B + 1) of the paper's b / B; below it stands
    "< " and that. Never "0".
    """
    if p is None:
        return MISSING
    x = float(p)
    if x < least:
        return f"< {p_value(least, None).removeprefix('< ')}"
    if x < 0.0001:
        return "< 0.0001"
    digits = 2 if x >= 0.1 else 3 if x >= 0.001 else 4
    while digits < MOST_DIGITS and any(x != alpha and float(f"{x:.{digits}f}") == alpha for alpha in USUAL_LEVELS):
        digits += 1  # one beyond a level is never printed as one at it
    text = f"{x:.{digits}f}"
    if not error:
        return text
    one_digit = float(f"{error:.0e}")  # .00099 is .001, and not .0010
    return f"{text} ± {one_digit:.{max(2, -math.floor(math.log10(one_digit)))}f}"


def p_equals(p: float | None, error: float | None) -> str:
    """`p = 0.31 ± 0.005`, `p = 0.31` without draws, or `p < 0.0001`, for use in a sentence."""
    text = p_value(p, error)
    return f"p {text}" if text.startswith("<") else f"p = {text}"


def listing(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    if len(names) < 2:
        return "".join(names)
    return f"{', '.join(names[:-1])} and {names[-1]}"
