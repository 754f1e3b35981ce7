"""Does a second site pass its kit: objects as measured, its person within the registered band, assessors who label
common videos as the reference does.

May not: write anything, move a robot, or loosen a kit.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from labctl.checks.computer import Check
from labctl.errors import InputError
from labctl.plain import count
from labctl.store.atomic_files import file_errors

if TYPE_CHECKING:
    from labctl.analysis.survival.result import Margin
    from labctl.analysis.table import Row as TableRow
    from labctl.checks.site.kit import AnchorObject, SiteKit

MEASURED = ("length_m", "width_m", "height_m", "mass_kg")
OF_OBJECTS = ("id", *MEASURED)
OF_LABELS = ("episode", "label")


Row = tuple[int, Mapping[str, str]]  # its line in the file, and its columns


class Judged(TypedDict):
    """An assessor's labels against the reference's. kappa: with quadratic weights where labels are numbers; interval:
    95 %; least: what its lower end has to reach; disagreements: episodes that were labelled otherwise.
    """

    episodes: int
    same: int
    kappa: float | None
    weighted: bool
    interval: list[float] | None
    least: float
    least_episodes: int
    passed: bool
    why: str
    disagreements: list[str]


def read_columns(path: Path, columns: Sequence[str]) -> Sequence[Row]:
    """A CSV with these columns and at least one row. Raises InputError with file and line."""
    with file_errors(str(path)):
        try:
            text = path.read_text(encoding="utf-8-sig")
        except UnicodeDecodeError:
            raise InputError(f"{path} is no UTF-8 text; save it as CSV in UTF-8") from None
    reader = csv.DictReader(io.StringIO(text, newline=""))
    try:
        read = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise InputError(f"{path}:{reader.line_num + 1}: no CSV: {error}; check its quotes") from None
    lacking = [name for name in columns if name not in (reader.fieldnames or ())]
    if lacking:
        raise InputError(f"{path}:1: column {lacking[0]} is missing; it needs {', '.join(columns)}")
    rows = [(line, {name: (row.get(name) or "").strip() for name in columns}) for line, row in read]
    if not rows:
        raise InputError(f"{path}: no rows below the header")
    return rows


def check_objects(kit: SiteKit, measured: Path) -> list[Check]:
    """Each anchor object against the site's own measurements, a CSV whose pictures lie beside it.

    Raises InputError for what is no measurement, an object that the kit does not have, or one twice.
    """
    known = [one.id for one in kit.object]
    own: dict[str, Row] = {}
    for line, row in read_columns(measured, OF_OBJECTS):
        if row["id"] not in known:
            raise InputError(f"{measured}:{line}: no object {row['id']!r} in the kit; it has {', '.join(known)}")
        if row["id"] in own:
            raise InputError(f"{measured}:{line}: object {row['id']} stands in line {own[row['id']][0]} too")
        own[row["id"]] = line, row
    return [_object(kit, one, measured, own.get(one.id)) for one in kit.object]


def _object(kit: SiteKit, one: AnchorObject, measured: Path, own: Row | None) -> Check:
    name = f"object {one.id} ({one.name})"
    if own is None:
        return Check(name, "fail", "not measured", f"add its row to {measured.name}")
    line, row = own
    off: list[str] = []
    for column in MEASURED:
        should, value = float(getattr(one, column)), _number(row[column], f"{measured}:{line}", column)
        allowed = kit.tolerance.mass if column == "mass_kg" else kit.tolerance.size
        if abs(value - should) > allowed * should:
            off.append(f"{column} {value:g}, not {should:g} +- {allowed:.0%}")
    if off:
        return Check(name, "fail", "; ".join(off), "take one of the same maker and article, and measure again")
    if not (measured.parent / one.picture).is_file():
        return Check(name, "fail", f"no picture {one.picture} beside {measured.name}", "photograph it beside a ruler")
    return Check(name, "ok", "size and mass as the kit has them, with a picture", "")


def _number(text: str, where: str, column: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e6:
        raise InputError(f"{where}: {column} is {text!r}; allowed is a number above 0")
    return value


def check_reference(kit: SiteKit, first: Path, own: Path) -> Check:
    """Whether the site's person is shown to lie within the band of the first site's: two one-sided tests of the ratio
    of RMSTs, mean over the objects that both met. first, own: operations tables. Raises TableError, InputError.
    """
    from labctl.analysis.operations_table.analyze import analyze
    from labctl.analysis.reading import read_csv
    from labctl.analysis.table import table_from_rows

    arm, ratio = kit.reference.arm, kit.reference.rmst_ratio
    rows: list[TableRow] = []
    for site, path in (("first", first), ("own", own)):
        mine = [row for _, row in read_csv(path)[1] if str(row.get("arm") or "") == arm]
        if not mine:
            raise InputError(f"{path} has no row of arm {arm!r}, the kit's reference")
        rows += [
            {**{k: v for k, v in row.items() if k != "cell"}, "arm": site, "episode": f"{site}/{row['episode']}",
             "block": f"{site}/{row['block']}" if row.get("block") not in (None, "") else ""}
            for row in mine
        ]  # fmt: skip
    margin: Margin = {"rmst_ratio": ratio, "non_inferior_to": None}
    columns = list(dict.fromkeys(key for row in rows for key in row))
    filled = [{key: row.get(key) for key in columns} for row in rows]
    table = table_from_rows(filled, source=f"{first.name} and {own.name}")
    found = analyze(table, tau=kit.reference.tau_s, boot=1999, perm=99, margin=margin)
    pair = found["pairs"][0]
    name = f"human reference, within a ratio of {ratio:g}"
    if not pair["objects"] or (shown := pair.get("margin")) is None:
        return Check(name, "fail", "the two sites have no object in common", "run the reference on the anchor objects")
    value, ends = pair["log_rmst_ratio"], shown["ci"]
    if value is None or ends is None:
        return Check(name, "fail", "its times do not vary, or too few ended", "run more blocks of the reference")
    low, high = (math.exp(-end) for end in reversed(ends))
    text = f"RMST of this site over the first's {math.exp(-value):.2f} [{low:.2f}, {high:.2f}], {shown['level']:.0%}"
    if shown["shown"]:
        return Check(name, "ok", f"{text}, over {', '.join(pair['objects'])}", "")
    return Check(name, "fail", text, "it is not shown to lie within: practise, check the rig, or run more blocks")


def judge_assessor(kit: SiteKit, reference: Path, labels: Path) -> Judged:
    """An assessor's labels of the common videos against the reference labels: CSVs of episode and label.

    Every episode of the reference has to be labelled. Raises InputError for one that is not, twice, or strange.
    """
    from labctl.analysis.blocks.agreement import weighted_kappa
    from labctl.analysis.episodes.agreement import cohens_kappa

    should, said = (_labels(path) for path in (reference, labels))
    if lacking := [name for name in should if name not in said]:
        raise InputError(f"{labels}: episode {lacking[0]} has no label; every common video is labelled")
    if strange := [name for name in said if name not in should]:
        raise InputError(f"{labels}: episode {strange[0]} is none of the reference's")
    names = list(should)
    pairs = [(should[name], said[name]) for name in names]
    numbers = [_both_numbers(a, b) for a, b in pairs]
    weighted = all(one is not None for one in numbers)
    if weighted:
        known = [one for one in numbers if one is not None]
        kappa = weighted_kappa([a for a, _ in known], [b for _, b in known])
        differing = [name for name, (a, b) in zip(names, known, strict=True) if a != b]
        value, interval = kappa.kappa, kappa.ci
    else:
        plain = cohens_kappa([a for a, _ in pairs], [b for _, b in pairs])
        value, interval, differing = plain.kappa, plain.interval, [names[i] for i in plain.disagreements]
    least, fewest = kit.assessors.least_kappa, kit.assessors.least_episodes
    why = ""
    if len(names) < fewest:
        why = f"{count(len(names), 'episode')}, and the kit asks for {fewest}"
    elif value is None:
        why = "the reference's labels do not vary: choose videos of every outcome"
    elif interval is None:
        why = f"kappa is {value:.2f} and has no interval, as nothing varies beside it"
    elif interval[0] < least:
        why = f"the lower end of the interval is {interval[0]:.2f}, below {least:g}"
    return {
        "episodes": len(names),
        "same": len(names) - len(differing),
        "kappa": value,
        "weighted": weighted,
        "interval": None if interval is None else [*interval],
        "least": least,
        "least_episodes": fewest,
        "passed": not why,
        "why": why,
        "disagreements": differing,
    }


def _labels(path: Path) -> dict[str, str]:
    found: dict[str, str] = {}
    for line, row in read_columns(path, OF_LABELS):
        if not row["episode"] or not row["label"]:
            raise InputError(f"{path}:{line}: an episode and its label are needed")
        if row["episode"] in found:
            raise InputError(f"{path}:{line}: episode {row['episode']} stands there twice")
        found[row["episode"]] = row["label"]
    return found


def _both_numbers(first: str, second: str) -> tuple[float, float] | None:
    try:
        both = float(first), float(second)
    except ValueError:
        return None
    return both if all(math.isfinite(one) for one in both) else None
