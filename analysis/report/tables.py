"""The tables of a report as text cells, so that HTML and Markdown print the very same numbers.

May not: estimate anything, draw, or claim. The only arithmetic is sums and equal-weight means of what the result holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from labctl.analysis.numerals import MISSING, count, estimate, interval, number, percent
from labctl.analysis.report.lab_facts import Lab, Reviewed
from labctl.analysis.report.wording import MADE_OF_EPISODES, total
from labctl.analysis.survival.curves import WANG_CHANG
from labctl.analysis.survival.result import AnalysisResult, ArmResult
from labctl.analysis.table import WRONG_END, Row, is_yes

Kind = Literal["text", "num", "arm", "code"]


@dataclass(frozen=True)
class Column:
    """A heading and how its cells are set: text left, numbers right, arms with their line key, code in monospace."""

    label: str
    kind: Kind = "num"


@dataclass(frozen=True)
class Table:
    """Rows of cells under columns, and a note printed below."""

    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


ARM = Column("Arm", "arm")
_TIMES = ("rmst", "rmst_se", "rmst_first_operation", "rmst_wang_chang", "rmst_aalen_johansen")


def arm_order(result: AnalysisResult) -> list[str]:
    """The reference first, then the arms as the result lists them."""
    return [arm["arm"] for arm in arms_of(result)]


def arms_of(result: AnalysisResult) -> list[ArmResult]:
    """The result's arms in report order."""
    return sorted(result.get("arms") or [], key=lambda arm: arm["arm"] != result.get("reference"))


def objects_of(result: AnalysisResult) -> list[str]:
    """Objects in the order of the result's cells."""
    return list(dict.fromkeys(cell["object"] for cell in result.get("cells") or []))


def items(result: AnalysisResult, arm: str) -> tuple[int | None, int | None]:
    """Items (moved, staged) of an arm over its cells; None where a cell has none."""
    cells = [cell for cell in result.get("cells") or [] if cell["arm"] == arm]
    return total([cell.get("items_moved") for cell in cells]), total([cell.get("items_staged") for cell in cells])


def per_robot_hour(result: AnalysisResult, arm: str) -> float | None:
    """Items per robot-hour of an arm: the equal-weight mean of its cells' `uph`; None where a cell has none."""
    values = [cell.get("uph") for cell in result.get("cells") or [] if cell["arm"] == arm]
    whole = total(values)
    return None if whole is None else whole / len(values)


CRASHED = "crashed"


def failures(rows: Sequence[Row], lab: Lab | None) -> dict[str, dict[str, int]]:
    """arm -> bucket -> n, buckets "lost", "safety stop", "timed out", "crashed" (what drove the arm) and
    "other"; the lab's counts, else the rows'."""
    found: dict[str, dict[str, int]] = {}
    if lab and (causes_of := lab.get("failures")):
        for arm, causes in causes_of.items():
            for cause, n in causes.items():
                bucket = _bucket(str(cause))
                found.setdefault(arm, {})[bucket] = found.get(arm, {}).get(bucket, 0) + int(n)
        return found
    for row in rows:
        tally = found.setdefault(str(row["arm"]), {})
        kind, cause = row["kind"], str(row.get("cause") or "")
        if kind == "success" or is_yes(row.get("void")):
            continue
        if kind == "ghost":
            bucket = own if (own := _bucket(cause)) in ("safety stop", CRASHED) else "lost"
        elif cause == WRONG_END:
            continue
        else:
            own = _bucket(cause) if cause else "timed out"
            bucket = own if own in ("timed out", CRASHED) else "other"
        tally[bucket] = tally.get(bucket, 0) + 1
    return found


def _bucket(cause: str) -> str:
    word = cause.lower().replace("_", " ")
    if "safety" in word:
        return "safety stop"
    if word in ("timed out", "timeout", "budget", "censored"):
        return "timed out"
    if word == "controller lost":
        return CRASHED
    if word in ("arm lost", "camera lost", "process lost", "recorder lost"):  # no item was
        return "other"
    return "lost" if "lost" in word or "drop" in word or word == "ghost" else "other"


def moved_of_staged(moved: int | None, staged: int | None) -> str:
    """`41 / 48  85.4 %`."""
    if moved is None or not staged:
        return MISSING
    return f"{count(moved)} / {count(staged)} ({percent(moved / staged)} %)"


def main_table(result: AnalysisResult, rows: Sequence[Row], lab: Lab | None) -> Table:
    """One row per arm: the numbers a lab lead asks for first."""
    reference, causes = result.get("reference"), failures(rows, lab)
    buckets = ["lost", "safety stop", "timed out"]
    buckets += [bucket for bucket in (CRASHED, "other") if any(n.get(bucket) for n in causes.values())]
    spent = any(arm.get("seconds_per_item") is not None for arm in result.get("arms") or [])
    full = any(arm.get("succeeded") is not None for arm in result.get("arms") or [])
    columns = [ARM, Column("Items moved / staged"), Column("Items per robot-hour")]
    columns += [Column("Robot s per item moved")] if spent else []
    columns += [Column("RMST s [95 %]")]
    columns += [Column("HRT % [95 %]")] if reference else []
    columns += [Column(bucket.capitalize()) for bucket in buckets]
    columns.append(Column("Episodes, all moved / scored" if full else "Episodes"))
    out = []
    for arm in arms_of(result):
        name = arm["arm"]
        staged = items(result, name)
        moved = moved_of_staged(*staged) if staged[0] is not None and staged[1] else _share(arm)
        line = [name, f"{moved}{_standardised(arm)}"]
        line.append(number(per_robot_hour(result, name)))
        line += [number(arm.get("seconds_per_item"))] if spent else []
        line.append(estimate(arm.get("rmst"), arm.get("rmst_ci")))
        if reference:
            line.append(_hrt(arm, reference))
        line += [count(causes[name].get(b, 0)) if name in causes else MISSING for b in buckets]
        whole = f"{count(arm.get('succeeded'))} / " if full else ""
        out.append((*line, f"{whole}{count(arm.get('episodes'))}"))
    return Table(tuple(columns), tuple(out), _main_note(result))


def _standardised(arm: ArmResult) -> str:
    """The share of items moved with equal weights for objects, where pooling them says another."""
    pooled, macro = arm.get("moved"), arm.get("moved_macro")
    if pooled is None or macro is None or abs(pooled - macro) < 0.005:
        return ""
    return f"; {percent(macro)} % with objects weighted equally"


def _share(arm: ArmResult) -> str:
    return MISSING if arm.get("moved") is None else f"{percent(arm['moved'])} %"


def measure(arm: ArmResult | None, key: str, scale: float) -> str:
    """A number of an arm with the interval beside it, times `scale`; an en dash where there is no such arm."""
    return MISSING if arm is None else estimate(arm.get(key), arm.get(f"{key}_ci"), scale=scale)


def _hrt(arm: ArmResult, reference: str | None) -> str:
    return "100 (reference)" if arm["arm"] == reference else estimate(arm.get("hrt"), arm.get("hrt_ci"), scale=100)


def _main_note(result: AnalysisResult) -> str:
    tau, reference, n = number(result.get("tau"), 0), result.get("reference"), len(objects_of(result))
    arms = [arm for arm in arms_of(result) if arm.get("episodes")]
    where = " in their cells" if result.get("by_cell") else ""
    over, apart = f"mean over {n} objects{where}, equal weights" if n > 1 else "one object", ""
    if len({frozenset(c["object"] for c in result.get("cells") or [] if c["arm"] == a["arm"]) for a in arms}) > 1:
        over = "mean over the objects that the arm met, equal weights"
        apart = "Arms met other objects, so rows of this table do not compare them; pairs are on what both met. "
    text = f"RMST: mean time per item, capped at tau = {tau} s ({over}); smaller is quicker. {apart}"
    if result.get("estimator") == WANG_CHANG:
        text += f"{MADE_OF_EPISODES} "
    if reference:
        floor = next((a["hrt_floor"] for a in arms_of(result) if a.get("hrt_floor") is not None), None)
        text += f"HRT: RMST of {reference} divided by RMST of the arm, so 100 is {reference}. "
        if floor is not None:
            text += f"Floor: a robot that never moves would score {percent(floor)} %. "
    else:
        text += "No reference arm, so no HRT. "
    return (
        f"{text}Items per robot-hour: moved items per hour from go to the end of the episode, mean over objects. Robot "
        "s per item moved: all seconds from go to end over all items moved, time without success included. In both an "
        "episode ended for futility or by an interlock counts to its budget. All moved: episodes in which every item "
        "staged was. Brackets: 95 % intervals."
    )


def hrt_table(result: AnalysisResult, reviewed: Reviewed | None = None) -> Table:
    """HRT with both intervals, its floor and the area under the P-P curve. reviewed: `arms`, the same of the reviewed
    episodes alone, where some were and some were not.
    """
    alone = {arm["arm"]: arm for arm in reviewed["arms"]} if reviewed else {}
    columns = (
        ARM, Column("HRT %"), Column("95 % recommended"), Column("95 % percentile"), Column("Floor %"),
        Column("P-P area [95 %]"), Column("RMST s [95 %]"), Column("Items moved % [95 %]"),
        *([Column("HRT %, reviewed episodes alone"), Column("Reviewed")] if reviewed else []),
    )  # fmt: skip
    rows = tuple(
        (
            arm["arm"],
            percent(arm.get("hrt")),
            interval(arm.get("hrt_ci"), scale=100),
            interval(arm.get("hrt_ci_percentile"), scale=100),
            percent(arm.get("hrt_floor")),
            estimate(arm.get("auc"), arm.get("auc_ci"), digits=3),
            estimate(arm.get("rmst"), arm.get("rmst_ci")),
            estimate(arm.get("moved"), arm.get("moved_ci"), scale=100),
            *(_of_reviewed(arm, alone.get(arm["arm"]), result.get("reference")) if reviewed else []),
        )
        for arm in arms_of(result)
    )
    note = (
        "Recommended: studentised bootstrap on log HRT with an episode-clustered standard error. Percentile: the "
        "paper's bootstrap, which under-covers at small N. P-P area: the chance that an item takes the arm less time "
        "than the reference; 0 without an interval: no item of these did, which is no certainty."
    )
    if reviewed:
        note += " Reviewed: episodes whose operations an assessor went through, of all scored ones."
    return Table(columns, rows, note)


def _of_reviewed(arm: ArmResult, alone: ArmResult | None, reference: str | None) -> list[str]:
    if alone is None:
        return [MISSING, f"0 / {count(arm['episodes'])}"]
    return [_hrt(alone, reference), f"{count(alone['episodes'])} / {count(arm['episodes'])}"]


def rmst_table(result: AnalysisResult) -> Table:
    """RMST with its interval, arms down and objects across."""
    cells = {(c["arm"], c["object"]): c for c in result.get("cells") or []}
    objects = objects_of(result)
    rows = tuple(
        (arm, *(estimate(cells.get((arm, o), {}).get("rmst"), cells.get((arm, o), {}).get("rmst_ci")) for o in objects))
        for arm in arm_order(result)
    )
    return Table((ARM, *(Column(o) for o in objects)), rows, "RMST in seconds, with 95 % intervals.")


def cell_table(result: AnalysisResult) -> Table:
    """Everything per arm and object, with the estimates that repair known weaknesses of the headline one."""
    labels = (
        *("Episodes", "Moved / staged", "Censored", "Lost or stopped", "Ended early", "RMST s", "se"),
        *("first item s", "Wang–Chang s", "Aalen–Johansen s", "Median s"),
        *("F(30 s) %", "F(60 s) %", "F(budget) %", "Items / h"),
    )
    rows = []
    order = {arm: i for i, arm in enumerate(arm_order(result))}
    for c in sorted(result.get("cells") or [], key=lambda c: order.get(c["arm"], len(order))):
        tally = [count(c.get(k)) for k in ("censored", "ghosts", "ended_early")]
        moved = f"{count(c.get('items_moved', c.get('successes')))} / {count(c.get('items_staged'))}"
        rate = c.get("rate") or {}
        done = (percent(value) for value in (rate.get("30"), rate.get("60"), c.get("completion")))
        tail = (number(c.get("median")), *done, number(c.get("uph")))
        times = [number(c.get(key)) for key in _TIMES]
        rows.append((c["arm"], c["object"], count(c.get("episodes")), moved, *tally, *times, *tail))
    note = (
        "Medians that fewer than half of the operations reach are printed as not reached, never over successes only. "
        "F: Kaplan–Meier share of operations done within 30 s, 60 s, the budget; a timeout is slow, not failed, so "
        "F(budget) can be 100 % where few of the items staged were moved. Censored: operations that were open when the "
        "episode ended, by its budget or otherwise."
    )
    return without_empty(Table((ARM, Column("Object", "text"), *map(Column, labels)), tuple(rows), note), MISSING)


def without_empty(table: Table, absent: str) -> Table:
    """The table less the columns in which every cell is `absent`; the note names them as not computed."""
    kept = [i for i in range(len(table.columns)) if not table.rows or any(row[i] != absent for row in table.rows)]
    gone = [column.label for i, column in enumerate(table.columns) if i not in kept]
    note = f"{table.note} Not computed: {', '.join(gone)}." if gone else table.note
    rows = tuple(tuple(row[i] for i in kept) for row in table.rows)
    return Table(tuple(table.columns[i] for i in kept), rows, note)
