"""What counts as what: the rows of an operations table as a declared estimand has them, and the other ways to count.

May not: estimate (`repeated` analyses each way), or know a campaign: it changes rows and says which episodes changed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, TypeAlias, TypeVar

from labctl.analysis.early_ends import CARRIED, EARLY, INTERLOCK, OBSERVED, WITH_THE_RUN

if TYPE_CHECKING:  # whoever reads a campaign does not wait for numpy
    from labctl.analysis.table import Row, Value

Made: TypeAlias = "dict[str, Value]"
Given = TypeVar("Given", bound="Row")
CRASH = "controller_lost"
AS_RECORDED = "as_recorded"  # of a bare table, which no protocol declared: what its rows say, no choice among others


@dataclass(frozen=True)
class Estimand:
    """Values as `[estimand]` of a protocol has them: CHOICES."""

    help: str
    voids: str
    early_ends: str
    crash: str


CHOICES: Mapping[str, Sequence[str]] = {
    "help": ("as_it_went", "no_success"),
    "voids": ("left_out", "no_success"),
    "early_ends": ("by_reason", "carried", "observed"),
    "crash": ("failure", "ended", "void"),
}


@dataclass(frozen=True)
class Alternative:
    """One other way to count: of what, as what, its rows, and how many episodes of each arm it changes."""

    key: str
    value: str
    rows: list[Row]
    episodes: dict[str, int]


def counted(rows: Sequence[Given], how: Estimand) -> list[Given | Made]:
    """The rows as `how` counts them, those that it does not change as they are given. rows: of the interface, void
    episodes among them where any is known.

    An episode without success is one censored row of its whole budget, or of its length where the budget is unknown.
    """
    return [row for own in _episodes(rows).values() for row in _counted(own, how)]


def without_success(rows: Sequence[Given], names: Collection[str]) -> list[Given | Made]:
    """The rows with each of these episodes as one in which nothing moved in all its budget."""
    return [row for name, own in _episodes(rows).items() for row in (_no_success(own) if name in names else own)]


def alternatives(rows: Sequence[Row], how: Estimand) -> list[Alternative]:
    """Every other way to count that changes an episode, one thing at a time. rows: as `counted` takes them."""
    found, primary = [], _episodes(counted(rows, how))
    for key, values in CHOICES.items():
        for value in values:
            if value == getattr(how, key):
                continue  # the way it is counted
            other = counted(rows, replace(how, **{key: value}))
            own = _episodes(other)
            changed = [name for name, before in primary.items() if _differ(before, own[name])]
            if changed:
                arms = Counter(str(own[name][0]["arm"]) for name in changed)
                found.append(Alternative(key, value, other, dict(sorted(arms.items()))))
    return found


def affected(rows: Sequence[Row]) -> dict[str, dict[str, set[str]]]:
    """The episodes that each choice is about: key -> arm -> names. rows: as `counted` takes them."""
    found: dict[str, dict[str, set[str]]] = {field.name: {} for field in fields(Estimand)}
    for name, own in _episodes(rows).items():
        first, cause = own[0], str(own[-1].get("cause") or "")
        void, tail = _void(first), own[-1]["kind"] != "success"
        met = {
            "help": not void and _touches(first) > 0,
            "voids": void and cause != CRASH,
            "early_ends": not void and tail and cause in EARLY,
            "crash": tail and cause == CRASH,
        }
        for key in (key for key, here in met.items() if here):
            found[key].setdefault(str(first["arm"]), set()).add(name)
    return found


def ended_with_run(rows: Sequence[Row]) -> dict[str, int]:
    """How many episodes of each arm the end of the run left open, in order of names. rows: as `counted` gives them."""
    last = [own[-1] for own in _episodes(rows).values() if not _void(own[0])]
    cut = (row for row in last if row["kind"] == "censored" and row.get("cause") == WITH_THE_RUN)
    return dict(sorted(Counter(str(row["arm"]) for row in cut).items()))


def _counted(own: Sequence[Given], how: Estimand) -> Sequence[Given | Made]:
    last = own[-1]
    cause, kind = str(last.get("cause") or ""), str(last["kind"])
    crashed = cause == CRASH and kind != "success"
    if _void(own[0]):
        counts = how.crash == "failure" if crashed else how.voids == "no_success"
        return _no_success(own) if counts else own
    if how.help == "no_success" and _touches(own[0]) > 0:
        return _no_success(own)
    if crashed and how.crash == "void":
        return [{**row, "void": 1} for row in own]
    changed: Made = {}
    if crashed and how.crash in ("failure", "ended") and last.get("time_s") not in (None, ""):
        changed["kind"] = "ghost" if how.crash == "failure" else "censored"
    if kind == "censored" and cause == "operator" and how.early_ends == "carried":
        changed["cause"] = "futility"
    if kind == "censored" and cause in CARRIED and how.early_ends == "observed":
        changed["cause"] = OBSERVED if cause == INTERLOCK else "operator"
    return [*own[:-1], {**last, **changed}] if changed else own


def _no_success(own: Sequence[Row]) -> list[Made]:
    first = dict(own[0])
    budget = next((v for v in (first.get("budget_s"), first.get("end_s")) if v not in (None, "")), None)
    length = budget if budget is not None else max(_number(row["time_s"]) for row in own)
    changed: Made = {"kind": "censored", "time_s": length, "cause": "no_success", "void": 0}
    changed |= {"op_index": 0} if first.get("op_index") not in (None, "") else {}
    changed |= {"end_s": length} if first.get("end_s") not in (None, "") else {}
    return [{**first, **changed}]


def _differ(one: Sequence[Row], two: Sequence[Row]) -> bool:
    """Whether an episode counts another way; what both leave out is the same."""
    if _void(one[0]) and _void(two[0]):
        return False
    return len(one) != len(two) or any(a is not b and dict(a) != dict(b) for a, b in zip(one, two, strict=True))


def _episodes(rows: Sequence[Given]) -> dict[str, list[Given]]:
    found: dict[str, list[Given]] = {}
    for row in rows:
        found.setdefault(str(row["episode"]), []).append(row)
    return {name: _in_order(own) for name, own in found.items()}


def _in_order(own: list[Given]) -> list[Given]:
    if any(row.get("op_index") in (None, "") for row in own):
        return own
    return sorted(own, key=lambda row: _number(row["op_index"]))


def _void(row: Row) -> bool:
    said = row.get("void")  # as `table.is_yes`, which brings numpy
    return said == said and str(said or "").strip().lower() not in ("", "0", "0.0", "false", "no")


def _touches(row: Row) -> float:
    return _number(row.get("interventions"))


def _number(value: Value) -> float:
    return 0.0 if value is None or value == "" else float(value)
