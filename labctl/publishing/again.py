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

from labctl.errors import ReportError, one_line
from labctl.plain import Json, count
from labctl.publishing.check import reading_a_strangers, refuse_unless_it_holds
from labctl.publishing.manifest import plain_json
from labctl.publishing.publish import made_report
from labctl.publishing.versions import differences, versions
from labctl.store.linking import pair_up

CLOSE = 1e-9  # relative: what another version of a library may make of a sum
NUMBER = re.compile(r"\d+(?:\.\d+)?")
MADE_BY = re.compile(
    r"(?:lab\.provenance\.(?:[^.:]+: )?)?analysed_by"
)  # where texts say what made it, or each cell's part
DOCUMENT = "report.json"  # the one file whose differences are looked at value by value
# keys of a report's JSON below which labctl's own sentences stand; every other text is compared letter by letter
SENTENCES = (
    *("warnings", "words", "notes", "deviations", "abandoned", "unreviewed", "provisional_why", "look", "statement"),
    *("text", "what", "stated", "provenance", "why", "rrd_command", "people", "times", "rig", "dates", "source"),
)


@dataclass(frozen=True, slots=True)
class Again:
    """A report made anew. same: byte for byte; files: those that differ, or that one of the two has not; numbers: what
    makes it another report: a number, a name or a verdict that differs, by the same versions any byte; texts: by other
    versions, where a sentence has other words, or one of the two says nothing; furthest: the largest relative
    difference of numbers that count as the same; versions: which are other ones here.
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
        unread = [name for name in self.files if name != DOCUMENT]
        more = f" and {len(unread) - 3} more" if len(unread) > 3 else ""
        not_compared = f"; not compared: {', '.join(unread[:3])}{more}" if unread else ""
        return f"the same numbers{furthest}, other bytes in {count(len(self.files), 'file')}{not_compared}{why}"


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
    changed = [one_line(line) for line in differences(made_with, versions())]
    lines, texts, furthest = _values(published, there, made_with) if DOCUMENT in differ else ([], [], 0.0)
    if not changed:
        lines, texts = lines + texts, []
        by_value = bool(lines)
        said = f"the same numbers to {furthest:.1g} of each" if furthest else "the same values"
        for name in differ:
            if name != DOCUMENT:
                alone = "not in the published one" if name not in listed else "in the published one alone"
                lines.append(f"{name}: {'other bytes' if name in listed and name in made else alone}")
            elif not by_value:
                lines.append(f"{name}: other bytes, {said}")
    return Again(page, not differ, tuple(differ), tuple(lines), tuple(texts), furthest, tuple(changed))


def _values(published: Path, there: Path, made_with: Mapping[str, str]) -> tuple[list[str], list[str], float]:
    """Of two reports' documents: what makes them different ones, where words alone differ, how far numbers do that
    count as the same.
    """
    old, new = (_read(place / DOCUMENT) for place in (published, there))
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return [f"{DOCUMENT}: the published one is missing or cannot be read"], [], 0.0
    names, other_code = set(_names(new)) | {"result"}, made_with.get("code") != versions()["code"]
    lines, texts, furthest = list[str](), list[str](), 0.0
    for one in _apart(old, new, ""):
        apart = _relative(one.published, one.here)
        if apart is not None and apart <= CLOSE:
            furthest = max(furthest, apart)
        elif not _says_what_made_it(one):
            in_words = (other_code and one.key not in names) if one.lacking else _in_words(one)
            into = texts if in_words else lines
            first = _first_apart(one.published, one.here)
            said = f"published {_short(one.published, first)}, here {_short(one.here, first)}"
            into.append(one_line(f"{one.where}: {said}"))
    return lines, texts, furthest


@dataclass(frozen=True, slots=True)
class _Place:
    """Where two documents differ, and under which key. told: below a key of `SENTENCES`; lacking: one has no such
    key.
    """

    where: str
    key: str
    published: Json
    here: Json
    told: bool
    lacking: bool = False


def _relative(one: Json, two: Json) -> float | None:
    """The relative difference of two numbers, None of anything else."""
    if not isinstance(one, float | int) or not isinstance(two, float | int) or bool in (type(one), type(two)):
        return None
    try:
        return abs(one - two) / max(abs(one), abs(two))
    except (OverflowError, ZeroDivisionError):  # a whole number beyond every float; and 0 is -0.0
        return math.inf if one != two else 0.0


def _says_what_made_it(place: _Place) -> bool:
    """Whether what differs is which labctl made a report, as both say it."""
    texts = isinstance(place.published, str) and isinstance(place.here, str)
    return texts and MADE_BY.fullmatch(place.where) is not None


def _in_words(place: _Place) -> bool:
    """Whether what differs is the wording of a sentence with the same numbers in it. A name is none."""
    pair = (place.published, place.here)
    texts = [text for text in pair if isinstance(text, str) and " " in text]
    return place.told and len(texts) == 2 and len({tuple(sorted(NUMBER.findall(text))) for text in texts}) == 1


def _names(document: Json) -> Iterator[str]:
    """Arms and objects that a report's document names."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            if key in ("arm", "object") and isinstance(value, str):
                yield value
            else:
                yield from _names(value)
    elif isinstance(document, list):
        for value in document:
            yield from _names(value)


def _read(path: Path) -> Json:
    """A document; None for one that is missing, that nobody can read, or that two readers can read as two."""
    try:
        return plain_json(path.read_bytes())
    except (OSError, ValueError, RecursionError):
        return None


def _apart(one: Json, two: Json, where: str, key: str = "", told: bool = False) -> Iterator[_Place]:
    """Every place in which two documents differ."""
    if isinstance(one, Mapping) and isinstance(two, Mapping):
        for name in sorted({*one, *two}):
            below, its = f"{where}.{name}".lstrip("."), told or name in SENTENCES
            if name in one and name in two:
                yield from _apart(one[name], two[name], below, name, its)
            else:
                yield _Place(below, name, one.get(name), two.get(name), its, lacking=True)
    elif isinstance(one, list) and isinstance(two, list) and len(one) == len(two):
        for number, pair in enumerate(zip(one, two, strict=True)):
            yield from _apart(*pair, f"{where}[{number}]", key, told)
    elif one != two or isinstance(one, bool) != isinstance(two, bool):
        yield _Place(where, key, one, two, told)


def _first_apart(one: Json, two: Json) -> int:
    """Where two texts begin to differ; 0 of anything else."""
    if not isinstance(one, str) or not isinstance(two, str):
        return 0
    return next((n for n, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), min(len(one), len(two)))


def _short(value: Json, first: int) -> str:
    if isinstance(value, str) and len(value) > 55 and first > 20:
        value = f"…{value[first - 20 :]}"
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) < 60 else f"{text[:57]}…"
