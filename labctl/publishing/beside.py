"""What `labctl publish` writes beside record and report, made anew from the two: tables, cards, results, metadata.

May not: write into a published folder, or be asked before its record was verified.
"""

from __future__ import annotations

from collections.abc import Collection, Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from labctl.publishing.cards import write_cards
from labctl.publishing.drawing import RECORDINGS
from labctl.publishing.guard import Admitted
from labctl.publishing.tables import JOURNAL, write_tables
from labctl.store.verifying.verified import in_passing

LIES_IN = ("tables", "cards", "eval_results", "README.md", "croissant.json")


def is_beside(name: str) -> bool:
    """Whether a file of a published folder is made here. The journal's lines are not: `check` compares each."""
    return name.partition("/")[0] in LIES_IN and name != f"tables/{JOURNAL}"


def by_value(name: str) -> bool:
    """Whether such a file is looked at value by value where other versions made it; of the others the bytes count."""
    return name.startswith(("tables/", "cards/", "eval_results/"))


@contextmanager
def made_beside(admitted: Admitted, report: Path) -> Generator[Path, None, None]:
    """A folder with these files of a published folder, as its record and the report in `report` give them. Raises
    StorageError.
    """
    with TemporaryDirectory(prefix="labctl-beside-") as named, in_passing(admitted.record) as campaign:
        folder, record = Path(named), campaign.record()
        links = {"report": report, "campaigns": admitted.folder / "campaigns"}
        for name, to in links.items():
            (folder / name).symlink_to(to.resolve())
        for name in ("tables", *_drawn(admitted.manifest.files)):
            (folder / name).mkdir()
        streams = write_tables(record, campaign.events(), folder / "tables")
        write_cards(folder, admitted.manifest, campaign, record, streams)
        for name in (*links, f"tables/{JOURNAL}"):
            (folder / name).unlink()
        yield folder


def _drawn(files: Collection[str]) -> list[str]:
    """The folder of recordings, where there is one: the data card says so."""
    return [RECORDINGS] if any(name.startswith(f"{RECORDINGS}/") for name in files) else []
