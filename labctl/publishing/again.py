"""`labctl report DIR` of a published folder: its report made anew from its record, and held against the one in it.

May not: call reports the same that differ in a number, or differences of versions a fault.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.errors import ReportError
from labctl.plain import Json, count
from labctl.publishing.check import reading_a_strangers, refuse_unless_it_holds
from labctl.publishing.publish import made_report
from labctl.publishing.versions import differences, versions
from labctl.store.linking import pair_up

CLOSE = 1e-9  # relative: what another version of a library may make of a sum
NUMBER = re.compile(r"\d+(?:\.\d+)?")
WORDS = ("analysed_by",)  # keys of a report's JSON whose text says what made it


@dataclass(frozen=True, slots=True)
class Again:
    """A report made anew. same: byte for byte; files: those that differ, or that one of the two has not; numbers:
    where the numbers differ; texts: where only words do, or one of the two says nothing, which by the same versions is
    a difference of numbers too; furthest: the largest relative difference of those that count as the same; versions:
    which are other ones here.
    """

    page: Path
    same: bool
    files: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    furthest: float
    versions: tuple[str, ...]

    @property
    def words(self) -> str:
        """What came out, in a line."""
        if self.same:
            return "byte for byte the published report"
        why = f"; other versions here: {'; '.join(self.versions)}" if self.versions else "; the versions are the same"
        for first in self.numbers[:1]:
            more = f" (and {len(self.numbers) - 1} more)" if len(self.numbers) > 1 else ""
            return f"NOT the published report: {first}{more}{why}"
        furthest = f" (to {self.furthest:.1g} of each)" if self.furthest else ""
        furthest += f", {count(len(self.texts), 'text')} in other words" if self.texts else ""
        return f"the same numbers{furthest}, other bytes in {count(len(self.files), 'file')}{why}"


def report_again(folder: Path, out: Path, say: Callable[[str], None] = lambda line: None) -> Again:
    """Verify a published folder, write its report into `out` and hold it against the one in the folder.

    Raises BrokenRecord for a folder that does not hold, ReportError for an `out` that lies in it.
    """
    if out.resolve().is_relative_to(folder.resolve()):
        raise ReportError(f"--out {out} lies in the published folder, which nobody changes; give another")
    checked = refuse_unless_it_holds(folder)
    manifest = checked.admitted.manifest
    with reading_a_strangers(folder):
        page = made_report(checked.admitted.record, manifest, out, folder / "report", say)
    return held_against(folder, manifest.files, manifest.versions, page)


def report_linked_published(folders: Sequence[Path], out: Path, say: Callable[[str], None] = lambda line: None) -> Path:
    """Verify two published folders of linked campaigns and write the report of the later into `out`, with its arms held
    against the earlier's through anchors; the numbers of draws, seed and zone are those of the later's manifest. The
    same folders give the same bytes, by the same versions.

    Raises BrokenRecord for a folder that does not hold, ReportError for an `out` in one, and as `linking.pair_up`.
    """
    for folder in folders:
        if out.resolve().is_relative_to(folder.resolve()):
            raise ReportError(f"--out {out} lies in a published folder, which nobody changes; give another")
    checked = [refuse_unless_it_holds(folder) for folder in folders]
    by_record = {one.admitted.record: one.admitted.manifest for one in checked}
    if len(by_record) != len(folders):
        raise ReportError("one folder is given twice; name the two of linked campaigns")
    with reading_a_strangers(folders[0]):
        pairing = pair_up(list(by_record))
    later, earlier = by_record[pairing.later], by_record[pairing.earlier]
    with reading_a_strangers(pairing.later):
        return made_report(pairing.later, later, out, out, say, pairing=pairing, earlier=earlier)


def held_against(folder: Path, files: Collection[str], made_with: Mapping[str, str], page: Path) -> Again:
    """The report at `page` against the one in a published folder, whose manifest lists these files and versions."""
    there = page.parent
    listed = {name.removeprefix("report/") for name in files if name.startswith("report/")}
    made = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
    published = folder / "report"
    differ = sorted(
        name
        for name in listed | made
        if name not in listed or name not in made or (there / name).read_bytes() != (published / name).read_bytes()
    )
    lines, texts, furthest = list[str](), list[str](), 0.0
    if "report.json" in differ:
        old, new = (_read(place / "report.json") for place in (published, there))
        if old is None:
            lines.append("report.json: the published one is missing or cannot be read")
        for where, one, two in _apart(old, new, "") if old is not None else ():
            if isinstance(one, float | int) and isinstance(two, float | int) and math.isclose(one, two, rel_tol=CLOSE):
                furthest = max(furthest, abs(one - two) / max(abs(one), abs(two)))
            elif where.rpartition(".")[2] not in WORDS:
                into = texts if _in_words(one, two) else lines
                into.append(f"{where}: published {_short(one)}, here {_short(two)}")
    changed = differences(made_with, versions())
    if not changed:
        lines, texts = lines + texts, []
    return Again(page, not differ, tuple(differ), tuple(lines), tuple(texts), furthest, tuple(changed))


def _in_words(one: Json, two: Json) -> bool:
    """Whether two values differ in words alone: texts with the same numbers in them, or something that one has not."""
    if isinstance(one, str) and isinstance(two, str):
        return sorted(NUMBER.findall(one)) == sorted(NUMBER.findall(two))
    return one is None or two is None


def _read(path: Path) -> Json:
    """A document; None for one that is missing or that nobody can read."""
    try:
        return json.loads(path.read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return None


def _apart(one: Json, two: Json, where: str) -> Iterator[tuple[str, Json, Json]]:
    """Every place in which two documents differ."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for key in sorted({*one, *two}):
            yield from _apart(one.get(key), two.get(key), f"{where}.{key}".lstrip("."))
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, pair in enumerate(zip(one, two, strict=True)):
            yield from _apart(*pair, f"{where}[{number}]")
    elif one != two or isinstance(one, bool) != isinstance(two, bool):
        yield where, one, two


def _short(value: Json) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}…"
