"""A campaign's traces as its kept journal has them: the journal is kept first, and an episode may begin meanwhile.

May not: write into a lab, or take anything out of a copy but episodes that the lab's own journal knows by now.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from labctl.core.events import Kind
from labctl.store.database_backend import Reader, delete_rows, open_immutable, sqlite_url, storage_errors
from labctl.store.lab_folder import JOURNAL
from labctl.store.ledger import SEALED_TRACES, TRACES

OF_CAMPAIGN = (TRACES, SEALED_TRACES)
_REVEALED = f"SELECT DISTINCT episode FROM event WHERE kind = '{Kind.ARM_REVEALED}'"
_TRACED = "SELECT episode FROM stream UNION SELECT episode FROM chunk"


def campaign_of(lab: Path, path: Path) -> Path | None:
    """The folder of the campaign whose traces a file is; None for any other file."""
    parts = path.relative_to(lab).parts
    if parts[0] != "campaigns" or "/".join(parts[2:]) not in OF_CAMPAIGN:
        return None
    return lab / parts[0] / parts[1]


def began_since(copy: Path, kept: Path, campaign: Path) -> list[str]:
    """The episodes in a copy of traces that the kept journal does not know and the campaign's own knows by now. What
    neither knows is the lab's, and kept as it lies there. Raises StorageError.
    """
    traced, known = _episodes(copy, _TRACED), _episodes(kept, _REVEALED)
    if traced is None or known is None or traced <= known:
        return []
    return sorted((traced - known).intersection(Reader(sqlite_url(campaign / JOURNAL)).rows(_REVEALED, str)))


def leave_out(copy: Path, episodes: Sequence[str]) -> None:
    """Take episodes out of a copy of traces. Raises StorageError."""
    for table in ("stream", "chunk"):
        delete_rows(copy, f"DELETE FROM {table} WHERE episode = ?", [(one,) for one in episodes])


def _episodes(path: Path, question: str) -> set[str] | None:
    """None of a damaged database: it is kept as it is, and whoever restores it hears so."""
    with storage_errors(str(path)), closing(open_immutable(path)) as raw:
        try:
            return {str(episode) for (episode,) in raw.execute(question)}
        except raw.DatabaseError:
            return None
