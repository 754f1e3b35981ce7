"""A lab of any size, made from one demo: its episodes again and again under the names of a larger schedule.

python -P tests/limits/made_lab.py TEMPLATE LAB --episodes 10000 [--items 128] [--videos 0.1]

TEMPLATE is the lab of `labctl demo`. What is made verifies: schedule, seal, chain, chunks and videos are those of a
campaign that ran so long, one evening of the demo after the other, each a boot of its own (so times within an evening
are the demo's). Not as in a real lab: chunks and photos of an episode are those of a demo's episode of the same arm and
object (photos are hard links); of videos every file has a box of its own and so a digest of its own, the pictures are
the demo's; `--items N` has N things lie in a tote, of which an episode moves the share that the demo's did, evenly
over its time: 128 make 10,000 episodes a million operations, where the demo's four things make 32,000.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sqlite3
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from labctl.clock import Anchor
from labctl.core.events import Event, Kind, canonical, event_hash
from labctl.store.campaign import close_campaign, freeze_campaign, open_campaign, unblind_campaign
from labctl.store.chain_heads import append_head
from labctl.store.journal import events_of
from labctl.store.ledger import Ledger, roots_of

EVENING, SESSION = 48, "s-4"  # trials of the demo, and its session
CELLS = 16  # of the demo: four arms by four objects
SEED = hashlib.sha256(b"labctl limits").digest()
DATABASES = ("traces.db", "seal/traces.db")


@dataclass(frozen=True)
class Recorded:
    """One episode of the template: its events, and how many of its sealed values were there at each."""

    trial: str
    episode: str
    events: list[tuple[Event, int]]
    openings: list[dict[str, Any]]


def recorded(folder: Path) -> tuple[list[Event], list[Event], dict[tuple[str, str], list[Recorded]]]:
    """What comes before the first trial and after the last, and the episodes by (arm, object)."""
    events = events_of(folder)
    sealed = Ledger.open(folder).open_all()
    arms = {slot["trial"]: slot["arm"] for slot in sealed["schedule"]}
    objects = {slot["trial"]: slot["condition"] for slot in sealed["schedule"]}
    secret = bytes.fromhex(sealed["secret_hex"])
    at = {root.hex(): n for n, root in enumerate(roots_of(secret, [one["sha256"] for one in sealed["openings"]]))}
    own: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.trial:
            own[event.trial].append(event)
    found: dict[tuple[str, str], list[Recorded]] = defaultdict(list)
    for trial, mine in own.items():
        (episode,) = {event.episode for event in mine if event.episode}
        first = next(n for n, one in enumerate(sealed["openings"]) if one["episode"] == episode)
        openings = [dict(one) for one in sealed["openings"] if one["episode"] == episode]
        counted, bound = [], 0
        for event in mine:
            bound = max(bound, at[event.body["openings_root"]] - first) if "openings_root" in event.body else bound
            counted.append((event, bound))
        found[arms[trial], objects[trial]].append(Recorded(trial, str(episode), counted, openings))
    seqs = [event.seq for event in events if event.trial]
    before = [event for event in events if 1 < event.seq < seqs[0]]
    after = [event for event in events if event.seq > seqs[-1] and not event.kind.startswith("Campaign")]
    return before, after, found


class Writer:
    """Entries of the journal, one chain, many in a transaction."""

    def __init__(self, folder: Path) -> None:
        self._db = sqlite3.connect(folder / "journal.db", isolation_level=None)
        self._db.execute("PRAGMA synchronous=OFF")
        self._db.execute("BEGIN")
        self.campaign, self.seq, self.prev = self._db.execute(
            "SELECT campaign, seq, hash FROM event ORDER BY seq DESC LIMIT 1"
        ).fetchone()

    def append(self, event: Event, body: dict[str, Any], trial: str | None, episode: str | None, evening: int) -> Event:
        wall = (datetime.fromisoformat(event.wall) + timedelta(days=evening)).isoformat(timespec="microseconds")
        named = (event.kind, event.at_ns, f"simulated-{evening}", wall, event.who, trial, episode)
        new = Event(self.seq + 1, *named, body, self.prev, "")
        own = event_hash(new)
        row = (self.campaign, new.seq, *named, canonical(body).decode(), self.prev, own)
        self._db.execute(f"INSERT INTO event VALUES ({','.join('?' * 12)})", row)
        self.seq, self.prev = new.seq, own
        return replace(new, hash=own)

    def close(self) -> None:
        self._db.execute("COMMIT")
        self._db.close()


def operations(event: Event, started: Event, ended: Event, count: int) -> Iterator[tuple[Event, dict[str, Any]]]:
    """`count` successful operations, evenly spread over an episode."""
    begin, end = started.body["go_ns"], ended.body["end_ns"]
    for number in range(count):
        t_ns = begin + (end - begin) * (number + 1) // (count + 1)
        own = Event(0, event.kind, t_ns, event.boot, event.wall, event.who, event.trial, event.episode, {}, "", "")
        yield own, {"cause": None, "op_index": number, "result": "success", "t_ns": t_ns}


def told(one: Recorded, count: int) -> Iterator[tuple[Event, dict[str, Any], int]]:
    """The entries of an episode, with so many things in its tote where another number than the demo's is asked for."""
    kinds = {event.kind: event for event, _ in one.events}
    outcome, done = kinds[Kind.OUTCOME_RECORDED].body["outcome"], False
    moved = count * outcome["moved"] // outcome["items_staged"]
    for event, bound in one.events:
        body = event.body
        if count and event.kind == Kind.OPERATION_RECORDED:
            if not done:
                every = operations(event, kinds[Kind.GO], kinds[Kind.EPISODE_ENDED], moved)
                yield from ((own, more, bound) for own, more in every)
            done = True
            continue
        if count and event.kind == Kind.EPISODE_STARTED:
            body = {**body, "items_staged": count}
        if count and event.kind == Kind.OUTCOME_RECORDED:
            lost = count * outcome["lost"] // outcome["items_staged"]
            counts = {"items_staged": count, "moved": moved, "lost": lost, "remaining": count - moved - lost}
            body = {"outcome": {**outcome, **counts}}
        yield event, body, bound


def own_digest(source: Path, target: Path, name: str) -> str:
    """A copy of a video with a box at its end that players skip; its digest."""
    data = name.encode()
    target.parent.mkdir(parents=True, exist_ok=True)
    whole = source.read_bytes() + (8 + len(data)).to_bytes(4, "big") + b"free" + data
    target.write_bytes(whole)
    return hashlib.sha256(whole).hexdigest()


def videos_of(body: dict[str, Any], source: Path, folder: Path, old: str, new: str) -> dict[str, Any]:
    """The videos of an episode, each with a digest of its own."""
    found = {}
    for camera, video in body["videos"].items():
        file, about = video["file"].replace(old, new), video["about"]["file"].replace(old, new)
        sha256 = own_digest(source / video["file"], folder / file, new)
        (folder / about).write_bytes((source / video["about"]["file"]).read_bytes())
        found[camera] = {**video, "file": file, "sha256": sha256, "about": {**video["about"], "file": about}}
    return found


def made(template: Path, lab: Path, episodes: int, count: int = 0, videos: float = 0.1, name: str = "limits") -> Path:
    """The campaign of so many episodes in `lab`; its folder."""
    (source,) = (template / "campaigns").iterdir()
    before, after, found = recorded(source)
    for part in ("cells", "fixtures", "protocols"):
        (lab / part).mkdir(parents=True, exist_ok=True)
        for path in (template / part).iterdir():
            (lab / part / path.name).write_bytes(path.read_bytes())
    (lab / "campaigns").mkdir(exist_ok=True)
    (lab / "lab.toml").write_bytes((template / "lab.toml").read_bytes())
    text = (lab / "protocols/demo.toml").read_text("utf-8")
    blocks = -(-episodes // CELLS)
    text = text.replace("blocks_per_condition = 3", f"blocks_per_condition = {blocks}")
    if count:
        text = text.replace("items_staged = 4", f"items_staged = {count}")
        text = text.replace("budget_s_per_item = 30.0", f"budget_s_per_item = {120 / count}")
    protocol = lab / "protocols" / f"{name}.toml"
    protocol.write_text(text, "utf-8")
    anchor = Anchor(mono_ns=0, boot="simulated-0", wall="2026-01-01T00:00:00.000000+00:00")
    opened = open_campaign(protocol, lab / "cells/demo.toml", lab, entropy=SEED, anchor=anchor, who="limits", name=name)
    folder = opened.folder
    ledger, writer = Ledger.open(folder, durable=False), Writer(folder)
    copies: list[tuple[str, str]] = []
    every = round(1 / videos) if videos else 0
    slots = ledger.open_all()["schedule"]
    for number, slot in enumerate(slots):
        evening = number // EVENING
        session = ((SESSION, f"s-{evening}"),)
        for event in before if number % EVENING == 0 else ():
            last = writer.append(event, _renamed(session, event.body), None, None, evening)
        same = found[slot["arm"], slot["condition"]]
        one, trial = same[number // CELLS % len(same)], slot["trial"]
        episode = f"e-{hashlib.sha256(trial.encode()).hexdigest()[:10]}"
        copies.append((one.episode, episode))
        renamed = partial(_renamed, ((one.trial, trial), (one.episode, episode)))
        digests: list[tuple[str, str]] = []
        for event, body, bound in told(one, count):
            for opening in one.openings[len(digests) : bound]:
                value = renamed(opening["value"])
                digests.append((opening["sha256"], ledger.seal_value(episode, opening["field"], value)))
            body = renamed(_renamed(digests, body)) if event.kind != Kind.OPERATION_RECORDED else body
            if event.kind == Kind.SCENE_COMMITTED:
                for photo in body["photo"].values():
                    target = folder / photo["file"]
                    target.parent.mkdir(parents=True, exist_ok=True)
                    os.link(source / photo["file"].replace(trial, one.trial), target)
            if event.kind == Kind.RECORDING_SEALED:
                with_video = bool(every) and number % every == 0
                body["videos"] = videos_of(event.body, source, folder, one.episode, episode) if with_video else {}
            last = writer.append(
                event, ledger.binding(event.kind, body), trial, episode if event.episode else None, evening
            )
        for event in after if number % EVENING == EVENING - 1 or number == len(slots) - 1 else ():
            last = writer.append(event, _renamed(session, event.body), None, None, evening)
        append_head(folder, last.seq, last.hash, last.wall)
    writer.close()
    copy_chunks(source, folder, copies)
    end = Anchor(mono_ns=last.at_ns + 10**9, boot=last.boot, wall=last.wall)
    for finish in (close_campaign, partial(freeze_campaign, unreviewed=True), unblind_campaign):
        finish(folder, who="limits", anchor=end)
    return folder


def copy_chunks(source: Path, folder: Path, copies: list[tuple[str, str]]) -> None:
    """The rows of the template's episodes under their new names."""
    for name in DATABASES:
        db = sqlite3.connect(folder / name, isolation_level=None)
        db.execute("PRAGMA synchronous=OFF")
        db.execute("PRAGMA journal_mode=OFF")
        db.execute("ATTACH ? AS other", (str(source / name),))
        db.execute("CREATE TEMP TABLE copy (old TEXT, new TEXT)")
        db.executemany("INSERT INTO copy VALUES (?, ?)", sorted(copies, key=lambda pair: pair[1]))
        db.execute("BEGIN")
        for table, rest in (("stream", "name, spec"), ("chunk", "stream, seq, t0_ns, t1_ns, n, sha256, payload")):
            db.execute(
                f"INSERT INTO {table} SELECT ?, copy.new, {rest} FROM copy CROSS JOIN other.{table} AS o "
                "ON o.campaign = ? AND o.episode = copy.old",
                (folder.name, source.name),
            )
        db.execute("COMMIT")
        db.execute("DETACH other")
        db.execute("PRAGMA journal_mode=WAL")
        db.close()


def _renamed(pairs: Any, value: Any) -> Any:
    text = json.dumps(value)
    for old, new in pairs:
        text = text.replace(old, new)
    return json.loads(text)


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("template", type=Path)
    asked.add_argument("lab", type=Path)
    asked.add_argument("--episodes", type=int, default=100)
    asked.add_argument("--items", type=int, default=0)
    asked.add_argument("--videos", type=float, default=0.1)
    given = asked.parse_args()
    print(made(given.template, given.lab, given.episodes, given.items, given.videos))


if __name__ == "__main__":
    main()
