"""`eval_info.json` of lerobot-eval as an episodes table: one file a policy, its episodes numbered.

May not: call two episodes a pair that had other seeds; where a file has none, the episodes of all are taken by their
number and that is said.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from labctl.analysis.episodes_table.importing import (
    Document,
    Imported,
    Row,
    arm_names,
    listed,
    mapped,
    read_json,
    shortened,
    word,
)
from labctl.analysis.results import Plain
from labctl.errors import TableError

SAME_SEED = "episodes of one number are taken as a block: that holds if all runs had one --seed"


def from_lerobot(paths: Sequence[Path], arms: Sequence[str] = ()) -> Imported:
    """The episodes of some runs; `arms` names each file's policy, by default the folder that the file lies in.

    Reads both forms, `per_task` (one environment or many) and `per_episode`. Raises `TableError`.
    """
    names = arm_names(arms, [path.resolve().parent.name for path in paths], [str(path) for path in paths])
    rows: list[Row] = []
    lines: list[str] = []
    first: dict[tuple[str, str], Path] = {}
    documents = [mapped(read_json(path), "the document", str(path)) for path in paths]
    seeded = all([_seeded(document, str(path)) for document, path in zip(documents, paths, strict=True)])
    for path, arm, document in zip(paths, names, documents, strict=True):
        found = _episodes(document, str(path), seeded)
        for at, row in found:
            block = str(row["block"])
            if (arm, block) in first:
                text = f"{block} of {arm!r} stands {_where(first[arm, block], path)} already"
                raise TableError(f"{path}: {at}", f"{text}; one episode of it: give other runs another --arm")
            first[arm, block] = path
        rows += [{**row, "arm": arm} for _, row in found]
        lines += [f"{path}: {at}" for at, _ in found]
    return Imported(str(paths[0]), rows, lines, () if seeded else (SAME_SEED,))


def _where(path: Path, here: Path) -> str:
    return "in this file" if path == here else f"in {path}"


def _seeded(document: Document, where: str) -> bool:
    """Whether each of its episodes has a seed."""
    if "per_task" in document or "per_episode" not in document:
        return False
    return all(
        isinstance(seed := mapped(e, f"per_episode[{i}]", where).get("seed"), int) and not isinstance(seed, bool)
        for i, e in enumerate(listed(document["per_episode"], "per_episode", where))
    )


def _episodes(document: Document, where: str, seeded: bool) -> list[tuple[str, Row]]:
    """The rows, each with its place in the document. seeded: blocks are by seed, which every episode has."""
    if "per_task" in document:
        tasks = [
            mapped(task, f"per_task[{i}]", where)
            for i, task in enumerate(listed(document["per_task"], "per_task", where))
        ]
        return [row for i, task in enumerate(tasks) for row in _of_task(task, f"per_task[{i}]", where)]
    if "per_episode" not in document:
        held = ", ".join(sorted(document)) or "nothing"
        raise TableError(where, f"has neither per_task nor per_episode but {held}; give lerobot-eval's eval_info.json")
    episodes = [
        mapped(e, f"per_episode[{i}]", where)
        for i, e in enumerate(listed(document["per_episode"], "per_episode", where))
    ]
    rows: list[tuple[str, Row]] = []
    for i, episode in enumerate(episodes):
        at = f"per_episode[{i}]"
        number = word(episode.get("episode_ix"))
        block = f"seed {episode['seed']}" if seeded else f"episode {number or i}"
        rows.append((at, {"block": block, "success": _success(episode.get("success"), f"{at}.success", where)}))
    return rows


def _of_task(task: Document, at: str, where: str) -> list[tuple[str, Row]]:
    name = f"{word(task.get('task_group')) or 'task'}/{word(task.get('task_id')) or 0}"
    metrics = mapped(task.get("metrics"), f"{at}.metrics", where)
    successes = listed(metrics.get("successes"), f"{at}.metrics.successes", where)
    places = [f"{at}.metrics.successes[{i}]" for i in range(len(successes))]
    return [
        (place, {"block": f"{name} episode {i}", "task": name, "success": _success(done, place, where)})
        for i, (place, done) in enumerate(zip(places, successes, strict=True))
    ]


def _success(value: Plain, at: str, where: str) -> int:
    if not isinstance(value, bool | int) or value not in (0, 1):
        raise TableError(where, f"{at} is {shortened(value)}; expected true or false")
    return int(value)
