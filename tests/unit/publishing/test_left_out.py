"""With chosen episodes: what belongs to one that was not chosen stays in the lab, what belongs to none goes."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

from labctl.core.events import Event, Kind
from labctl.core.record import Record
from labctl.publishing.leaving_out import NOT_CHOSEN, Choice, left_out


def told(seq: int, kind: Kind, trial: str | None = None, episode: str | None = None, **body: Any) -> Event:
    return Event(seq, kind, seq, "boot", "2026-01-01T00:00:00Z", "ann", trial, episode, body)


def test_a_picture_that_was_given_at_opening_goes_with_whatever_is_chosen(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    for name in ("given", "one", "other"):
        (tmp_path / f"photos/{name}.png").write_bytes(name.encode())
    photo = {name: {"file": f"photos/{name}.png", "sha256": ""} for name in ("given", "one", "other")}
    events = [
        told(1, Kind.CAMPAIGN_OPENED, references={"towels": {"shoulder": photo["given"]}}),
        told(2, Kind.SCENE_COMMITTED, "t-1", photo={"shoulder": photo["one"]}),
        told(3, Kind.ARM_REVEALED, "t-1", "e-one"),
        told(4, Kind.SCENE_COMMITTED, "t-2", photo={"shoulder": photo["other"]}),
        told(5, Kind.ARM_REVEALED, "t-2", "e-other"),
    ]
    record = cast(Record, SimpleNamespace(episodes={"e-one": None, "e-other": None}))

    out = left_out(tmp_path, events, record, Choice(episodes=frozenset({"e-one"})))

    assert [(thing.episode, thing.file, thing.why) for thing in out] == [("e-other", "photos/other.png", NOT_CHOSEN)]
