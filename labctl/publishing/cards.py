"""What people and programs read first of a publication: data card, Croissant, evaluation results, policy cards.

May not: state a number that the report does not have.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import count as numbers
from pathlib import Path

from labctl.core.record import Record
from labctl.plain import Json, count
from labctl.publishing.croissant import croissant
from labctl.publishing.drawing import RECORDINGS
from labctl.publishing.eval_results import results_of
from labctl.publishing.manifest import Common, Manifest
from labctl.store.atomic_files import replace_file
from labctl.store.campaign import Campaign
from labctl.store.verifying.verified import arms_of

_MARKS = re.compile(r"([\\`*_\[\]|#<>])")


def write_cards(folder: Path, manifest: Manifest, campaign: Campaign, record: Record, streams: Sequence[str]) -> None:
    """Fill a folder in which record, tables and report are. Raises StorageError."""
    report = json.loads((folder / "report" / "report.json").read_text("utf-8"))
    result, arms = report["result"], arms_of(campaign)
    for name in ("cards", "eval_results"):
        (folder / name).mkdir()
    trained: list[str] = []
    files = _files(arms)
    for name, arm in arms.items():
        card = arm.options.get("card")
        if isinstance(card, dict):
            _write(folder / "cards" / f"{files[name]}.json", card)
        trained.append(_trained(name, arm.kind, card if isinstance(card, dict) else None))
        entries = results_of(result["arms"], result.get("tau"), name, manifest)
        if entries and arm.kind != "human":
            _write(folder / "eval_results" / f"{files[name]}.yaml", entries)
    text = _data_card(manifest, record, streams, trained, drawn=(folder / RECORDINGS).is_dir())
    replace_file(folder / "README.md", text.encode(), durable=False)
    _write(folder / "croissant.json", croissant(manifest, text, folder))


def _files(arms: Iterable[str]) -> dict[str, str]:
    """Each arm's name as that of a file, with -2 and so on behind it where two would have the same."""
    found: dict[str, str] = {}
    for name in arms:
        stem = re.sub(r"[^A-Za-z0-9._-]", "-", name).lstrip(".-") or "arm"
        named = (stem if number == 1 else f"{stem}-{number}" for number in numbers(1))
        found[name] = next(one for one in named if one not in found.values())
    return found


def _write(path: Path, content: Json) -> None:
    """JSON, which YAML 1.2 reads too."""
    replace_file(path, json.dumps(content, indent=1, ensure_ascii=False).encode() + b"\n", durable=False)


def _trained(arm: str, kind: str, card: Mapping[str, Json] | None) -> str:
    """A line on what demonstrations an arm was trained with."""
    if kind == "human":
        return f"* {plain(arm)}: a person, by teleoperation; nothing was trained"
    training = (card or {}).get("training")
    listed = training if isinstance(training, Mapping) else {}
    parts = [f"{key}: {', '.join(map(str, named))}" for key, named in sorted(listed.items()) if isinstance(named, list)]
    parts = [part for part in parts if not part.endswith(": ")]
    said = plain("; ".join(parts)) if parts else "its card names no demonstrations" if card else "it has no policy card"
    return f"* {plain(arm)}: {said}"


def plain(text: str) -> str:
    """A text that anybody typed, as one line of Markdown that is nothing but text."""
    return _MARKS.sub(r"\\\1", " ".join(text.split())).replace("\\<", "&lt;").replace("\\>", "&gt;")


def licence_lines(manifest: Common) -> list[str]:
    """The end of a card."""
    licence, by = manifest.licence, f"; by {plain(manifest.creator)}" if manifest.creator else ""
    return ["## Licence", "", f"{licence.id if licence.url else 'see'} {licence.url or 'LICENSE.txt'}{by}", ""]


def _data_card(
    manifest: Manifest, record: Record, streams: Sequence[str], trained: Sequence[str], *, drawn: bool
) -> str:
    opened, scored = record.state.opened, len(record.scored)
    licence = manifest.licence
    front = {"license": licence.id.lower() if licence.url else "other", "tags": ["robotics", "labctl"]}
    by_why: dict[str, int] = {}
    for entry in manifest.withheld:
        key = f"{entry.what}: {entry.why}"
        by_why[key] = by_why.get(key, 0) + 1
    withheld = [f"* {plain(key)} ({number})" for key, number in sorted(by_why.items())] or ["* nothing"]
    conditions = ", ".join(plain(str(one["id"])) for one in opened["conditions"])
    lines = [
        "---",
        json.dumps(front),
        "---",
        "",
        f"# {plain(manifest.title)}",
        "",
        f"Campaign `{manifest.campaign}` ({manifest.kind}), recorded, blinded and reported with labctl. "
        f"{count(scored, 'scored episode')} of {count(len(opened['schedule']), 'planned trial')}; "
        f"{opened['arms_count']} arms at these conditions: {conditions}.",
        "",
        "## Check it",
        "",
        "```console",
        "$ pip install 'labctl[lab]'",
        "$ labctl verify .               # every digest, the hash chain, the opened seal",
        "$ labctl report . --out again   # the report made anew, held against the one in report/",
        "```",
        "",
        f"* head of the journal: `{manifest.head}`",
        f"* commitment published at opening: `{manifest.commitment}`",
        "",
        "Whoever could write this folder could have made all of it anew: compare the head, the commitment or the "
        "digest of published.json with what was printed elsewhere.",
        "",
        "## What is in it",
        "",
        "* `report/`: the report as a page, as JSON and Markdown, with every figure",
        "* `tables/`: operations (`operations.csv`"
        + "".join(f", by the labels of the {name} `operations-{name}.csv`" for name in streams)
        + "), episodes, the journal as lines of JSON",
        f"* `campaigns/{manifest.campaign}/`: the record: journal, traces, video, photos, opened seal, protocol, "
        "cell, fixture with its pictures, timestamps",
        "* `cards/`, `eval_results/`, `croissant.json`: policy cards, results for model cards, metadata",
        *(["* `recordings/`: each episode for Rerun's viewer, as `rerun FILE.rrd` opens it"] if drawn else []),
        "* `published.json`: size and digest of every file, what is withheld, versions",
        "",
        "## What is withheld",
        "",
        *withheld,
        "",
        "Each is listed in published.json with sha256 over 32 bytes kept by the lab and its content. The journal is "
        "whole: nothing in it was changed or left out.",
        "",
        "## Demonstrations",
        "",
        *trained,
        "",
        "## How it was recorded",
        "",
        "Trials ran in random order within blocks, the arm hidden from whoever staged and scored. Outcomes are a "
        "person's; when items were moved is said by the streams of labels above. Times are of one monotonic clock. "
        "People are opaque ids. Kind of the robot: " + manifest.kind + ".",
        "",
        *licence_lines(manifest),
    ]
    return "\n".join(lines)
