"""Whether everything that was recorded of a campaign is bound by its journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

from labctl.core.events import Event, Kind
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign


def assert_all_sealed(folder: Path, events: Sequence[Event]) -> None:
    """Each episode with a recording on the disk has one RecordingSealed, voided ones too, and verify agrees."""
    with closing(TraceStore.open(f"sqlite:///{folder / 'traces.db'}", folder.name, readonly=True)) as store:
        recorded = {*store.episodes(), *(path.name for path in folder.glob("video/*") if any(path.iterdir()))}
    sealed = Counter(event.episode for event in events if event.kind == Kind.RECORDING_SEALED)
    assert sealed == Counter(recorded) and len(recorded) >= 2
    found = verify_campaign(folder)
    assert found.problems == [] and not [note for note in found.notes if "not sealed" in note]
