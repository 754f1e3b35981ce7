"""`labctl report DIR` of a published folder: its report, and what lies beside it, made anew from its record and held
against what is in it.

May not: call reports the same that differ in a number, or differences of versions a fault.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from labctl.errors import ReportError, one_line
from labctl.plain import count
from labctl.publishing.beside import by_value, is_beside, made_beside
from labctl.publishing.check import reading_a_strangers, refuse_unless_it_holds
from labctl.publishing.documents import DOCUMENT, apart_in
from labctl.publishing.publish import made_report
from labctl.publishing.versions import differences, versions
from labctl.store.linking import pair_up


@dataclass(frozen=True, slots=True)
class Again:
    """A report made anew. same: byte for byte; files: those that differ, or that one of the two has not; numbers: what
    makes it another report: a number, a name or a verdict that differs, by the same versions any byte; texts: by other
    versions, where a sentence has other words, or one of the two says nothing; furthest: the largest relative
    difference of numbers that count as the same; versions: which are other ones here; unread: those of the files that
    were not looked at by value, of other versions.
    """

    page: Path
    same: bool
    files: tuple[str, ...]
    numbers: tuple[str, ...]
    texts: tuple[str, ...]
    furthest: float
    versions: tuple[str, ...]
    unread: tuple[str, ...] = ()

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
        more = f" and {len(self.unread) - 3} more" if len(self.unread) > 3 else ""
        not_compared = f"; not compared: {', '.join(self.unread[:3])}{more}" if self.unread else ""
        return f"the same numbers{furthest}, other bytes in {count(len(self.files), 'file')}{not_compared}{why}"


def report_again(folder: Path, out: Path, say: Callable[[str], None] = lambda line: None) -> Again:
    """Verify a published folder, write its report into `out` and hold it against the one in the folder, and what is to
    lie beside it (`beside.LIES_IN`) against what does.

    Raises BrokenRecord for a folder that does not hold, ReportError for an `out` that lies in it.
    """
    if out.resolve().is_relative_to(folder.resolve()):
        raise ReportError(f"--out {out} lies in the published folder, which nobody changes; give another")
    checked = refuse_unless_it_holds(folder)
    manifest = checked.admitted.manifest
    with reading_a_strangers(folder):
        page = made_report(checked.admitted.record, manifest, out, folder / "report", say)
        with made_beside(checked.admitted, page.parent) as beside:
            return held_against(folder, manifest.files, manifest.versions, page, beside)


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


def held_against(
    folder: Path, files: Collection[str], made_with: Mapping[str, str], page: Path, beside: Path | None = None
) -> Again:
    """The report at `page` against the one in a published folder, whose manifest lists these files and versions, and
    what was made anew into `beside` against what lies there.
    """
    changed = [one_line(line) for line in differences(made_with, versions())]
    listed = {name.removeprefix("report/") for name in files if name.startswith("report/")}
    found = _Looked(made_with, same_versions=not changed)
    found.at(folder / "report", listed, page.parent, lambda name: name == DOCUMENT)
    if beside is not None:
        found.at(folder, {name for name in files if is_beside(name)}, beside, by_value)
    numbers, texts = (*found.values, *found.bytes), tuple(found.texts)
    unread = tuple(found.unread)
    return Again(page, not found.differ, tuple(found.differ), numbers, texts, found.furthest, tuple(changed), unread)


@dataclass(slots=True)
class _Looked:
    """What was found of files made anew. differ: their names; values, bytes: what makes them others; the rest as of
    `Again`.
    """

    made_with: Mapping[str, str]
    same_versions: bool
    differ: list[str] = field(default_factory=list[str])
    values: list[str] = field(default_factory=list[str])
    bytes: list[str] = field(default_factory=list[str])
    texts: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])
    furthest: float = 0.0

    def at(self, published: Path, listed: Collection[str], there: Path, has_values: Callable[[str], bool]) -> None:
        """Hold the files listed of a published folder against those that lie `there`. has_values: whether a file of
        other bytes is looked at value by value.
        """
        made = {path.relative_to(there).as_posix() for path in there.rglob("*") if path.is_file()}
        for name in sorted({*listed, *made}):
            both = name in listed and name in made
            if both and (there / name).read_bytes() == (published / name).read_bytes():
                continue
            self.differ.append(name)
            alone = "not in the published one" if name not in listed else "in the published one alone"
            if has_values(name) and (both or name == DOCUMENT):
                self._values(name, published, there)
            elif self.same_versions or (has_values(name) and name not in made):
                self.bytes.append(f"{name}: {'other bytes' if both else alone}")
            elif has_values(name):
                self.texts.append(f"{name}: {alone}")
            else:
                self.unread.append(name)

    def _values(self, name: str, published: Path, there: Path) -> None:
        lines, texts, furthest = apart_in(name, published, there, self.made_with)
        if self.same_versions:
            lines, texts = lines + texts, []
            if not lines:
                said = f"the same numbers to {furthest:.1g} of each" if furthest else "the same values"
                self.bytes.append(f"{name}: other bytes, {said}")
        self.values += lines
        self.texts += texts
        self.furthest = max(self.furthest, furthest)
