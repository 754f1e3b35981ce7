"""The tables that only a campaign can fill: flow per arm, voids as no success, episodes, provenance.

May not: read a campaign; it is given one plain dict, any key of which may be missing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from labctl.analysis.numerals import MISSING, count, number
from labctl.analysis.report.lab_facts import OTHER_LAB, EpisodeEntry, Lab, MovedOfStaged, Spread
from labctl.analysis.report.tables import ARM, Column, Table, arm_order, items, moved_of_staged
from labctl.analysis.results import Plain
from labctl.analysis.survival.result import AnalysisResult


def words(key: str) -> str:
    """A key of the lab's vocabulary as a person writes it: `camera_lost` is "camera lost"."""
    return key.replace("_", " ")


def flow_table(arms: Sequence[str], lab: Lab) -> Table | None:
    """What became of the trials of every arm, in the order of `arms`; None where the lab has no record of it."""
    flow = lab.get("flow")
    by_arm = flow.get("by_arm") if flow else None
    if not by_arm:
        return None
    keys = list(dict.fromkeys(key for counts in by_arm.values() for key in counts))
    order = {arm: i for i, arm in enumerate(arms)}
    listed = sorted(by_arm, key=lambda arm: (order.get(arm, len(order)), arm))
    rows = tuple((arm, *(count(by_arm[arm].get(key)) for key in keys)) for arm in listed)
    return Table((ARM, *(Column(words(key).capitalize()) for key in keys)), rows)


def void_table(result: AnalysisResult, lab: Lab) -> Table | None:
    """The main number again, with every void after go counted as an episode without success."""
    repeated = {row["arm"]: row for row in lab.get("void_as_failure") or []}
    if not repeated:
        return None
    rows = tuple((arm, moved_of_staged(*items(result, arm)), _repeated(repeated.get(arm))) for arm in arm_order(result))
    columns = (ARM, Column("As scored"), Column("After-go voids as no success"))
    return Table(columns, rows, "Items moved / items staged.")


def _repeated(row: MovedOfStaged | None) -> str:
    return moved_of_staged(row.get("moved"), row.get("staged")) if row else MISSING


def cell_column(cells: Iterable[str | None]) -> tuple[Column, ...]:
    """The column of the robot's cell where entries name theirs: those of a joint campaign."""
    return (Column("Cell", "text"),) if any(cells) else ()


def cell_in(cell: str | None) -> tuple[str, ...]:
    """What stands in that column."""
    return (cell,) if cell else ()


def answer_table(lab: Lab) -> Table | None:
    """How fast each arm was answered; None when no questions were recorded."""
    rows = []
    for entry in lab.get("answer_times") or []:
        spreads = [spread_of(entry.get(key), 1000, 0) for key in ("answer_s", "server_s", "command_s", "picture_s")]
        spreads += [spread_of(entry.get(key), 1, 1) for key in ("load_s", "warm_s")]
        counts = (count(entry.get("questions")), count(entry.get("late")), count(entry.get("unanswered")))
        rows.append(
            (str(entry["arm"]), *cell_in(entry.get("cell")), *counts, number(entry.get("answers_per_s")), *spreads)
        )
    if not rows:
        return None
    of = cell_column(entry.get("cell") for entry in lab.get("answer_times") or [])
    columns = (
        ARM, *of, Column("Questions"), Column("Late"), Column("Unanswered"), Column("Answers per s"),
        Column("Answer ms"), Column("By its server ms"), Column("State to command ms"), Column("Picture to command ms"),
        Column("Loading s"), Column("Warming s"),
    )  # fmt: skip
    note = (
        "Median / 95th percentile. Loading and warming are before the clock and never count. Late answers came after "
        "the card's deadline and were not used; the arm stood meanwhile, and that time counts. State and picture to "
        "command: from when they were taken to when the first action of the answer began."
    )
    return Table(columns, tuple(rows), note)


def spread_of(found: Spread | None, scale: float, digits: int, missing: str = MISSING) -> str:
    """`12 / 40`, median and 95th percentile, each times `scale`."""
    return " / ".join(number(scale * found[key], digits) for key in ("p50", "p95")) if found else missing


def episode_table(lab: Lab) -> Table | None:
    """Every scored episode with the command that opens it; the HTML adds links to its videos."""
    episodes = lab.get("episodes") or []
    if not episodes:
        return None
    measured = any("score" in e for e in episodes)
    several = any("cell" in e for e in episodes)
    columns = (
        Column("Episode", "code"), *((Column("Cell", "text"),) if several else ()), ARM,
        Column("Condition" if measured else "Object", "text"), Column("Block", "text"),
        Column("Score, or moved / staged" if measured else "Moved / staged"),
        Column("Outcome", "text"), Column("Ended by", "text"), Column("Seconds"), Column("Open", "code"),
    )  # fmt: skip
    rows = tuple(
        (
            str(e["episode"]),
            *((str(e.get("cell") or MISSING),) if several else ()),
            str(e["arm"]),
            str(e.get("object") or MISSING),
            str(e["block"] + 1 if isinstance(e.get("block"), int) else e.get("block") or MISSING),
            number(e.get("score"), 2) if "score" in e else f"{count(e.get('moved'))} / {count(e.get('staged'))}",
            words(str(e.get("outcome") or MISSING)),
            _ended(e),
            number(e.get("duration_s")),
            str(e.get("rrd_command") or f"labctl show {e['episode']}"),
        )
        for e in episodes
    )
    apart = any(str(row[-1]).endswith(OTHER_LAB) for row in rows)
    return Table(columns, rows, "DIR is the lab folder of the episode’s cell." if apart else "")


def _ended(episode: EpisodeEntry) -> str:
    """Why it ended, as it counts, and whether that was a stop by hand."""
    found, cause = str(episode.get("end_reason") or MISSING), episode.get("stopped_by_hand")
    reason = "all moved or lost" if found == "all_done" else words(found)
    return f"{reason} (stop by hand: {words(str(cause))})" if cause else reason


def provenance_table(lab: Lab | None, analysis: str, made_by: str = "") -> Table:
    """Hashes, versions and seeds that tie every number to its source. analysis: schema and seed of the numbers;
    made_by: the version that computed them, which a campaign's facts name themselves.
    """
    facts: dict[str, str | float | None] = {"analysed by": made_by or None}
    for key in ("campaign", "phase", "kind", "cell", "robot", "opened_wall", "closed_wall", "commitment", "head"):
        if lab and lab.get(key) is not None:
            named = {"opened_wall": "opened", "closed_wall": "closed", "head": "chain head"}.get(key, key)
            facts[named] = lab.get(key)
    if lab and (times := lab.get("times")):
        facts |= {"opened": times["opened"], "closed": times["closed"] or None, "times are those of": times["zone"]}
    for key, value in ((lab.get("provenance") if lab else None) or {}).items():
        listed = isinstance(value, Mapping)
        facts[words(key)] = ", ".join(f"{name} {version}" for name, version in value.items()) if listed else value
    if lab and (labels := lab.get("labels")):
        facts["labels"] = f"{labels['stream']}: {labels['text']}"
    facts["analysis"] = analysis
    rows = tuple((str(key), str(value)) for key, value in facts.items() if value is not None)
    return Table((Column("What", "text"), Column("Value", "code")), rows)


def analysis_line(schema: str, seed: int, tau: float | None) -> str:
    """What made the numbers. tau: in s, None where nothing is timed."""
    return f"{schema}, seed {seed}" + ("" if tau is None else f", tau {number(tau, 0)} s")


def session_lines(lab: Lab) -> list[str]:
    """One line per session: who was there and what was handed over."""
    return [
        "; ".join(f"{words(key)}: {_plain(value)}" for key, value in session.items() if value not in (None, [], {}))
        for session in lab.get("sessions") or []
    ]


def _plain(value: Plain) -> str:
    if isinstance(value, Mapping):
        return ", ".join(f"{words(str(key))} {_plain(v)}" for key, v in value.items())
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_plain, value))
    return str(value)
