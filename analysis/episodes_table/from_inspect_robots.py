"""Logs of Inspect Robots (its EvalLog, version 1) as an episodes table: one log a policy, a trial an episode.

May not: read a trial that ended in an error as a failure: it has no score, so it is left out and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from labctl.analysis.episodes_table.importing import Document, Imported, Row, arm_names, listed, mapped, read_json, word
from labctl.analysis.numerals import counted
from labctl.analysis.results import Plain
from labctl.analysis.table import Value
from labctl.errors import TableError

VERSION = 1
SUCCESS = ("operator", "success_at_end", "reached_goal_state")
"""Its own scorers that say yes or no, the person's first."""
STEPS = "episode_length"


def from_inspect_robots(paths: Sequence[Path], arms: Sequence[str] = (), scorer: str | None = None) -> Imported:
    """The trials of some logs; `arms` names each one's policy, by default as the log does; `scorer` the scorer to take,
    by default the first of `SUCCESS` that the log has, else its only one. 0 and 1 are successes; other values scores.

    The first trials that the policies made of a scene are a block, the second ones another. Raises `TableError`.
    """
    logs = [(_log(path), str(path)) for path in paths]
    found = [word(mapped(log.get("eval"), "eval", where).get("policy")) for log, where in logs]
    names = arm_names(arms, found, [where for _, where in logs])
    rows: list[Row] = []
    made: Counter[tuple[str, Value]] = Counter()
    errors = 0
    for (log, where), arm in zip(logs, names, strict=True):
        trials, lost = _trials(log, scorer, where)
        errors += lost
        for row in trials:
            made[arm, row["block"]] += 1
            rows.append({**row, "arm": arm, "block": f"{row['block']} #{made[arm, row['block']]}"})
    values = [row.pop("value") for row in rows]
    binary = all(value in (0, 1) for value in values)
    for row, value in zip(rows, values, strict=True):
        row["success" if binary else "score"] = value
    notes = ["the n-th trials of one scene are taken as a block: that holds if they began from one set-up"]
    notes += [f"{counted(errors, 'trial')} left out, ended in an error and without a score"] * bool(errors)
    return Imported(str(paths[0]), rows, list(range(1, len(rows) + 1)), tuple(notes))


def _log(path: Path) -> Document:
    log = mapped(read_json(path), "the document", str(path))
    if log.get("version") != VERSION or "samples" not in log:
        text = f"version is {log.get('version')!r}" if "samples" in log else "it has no samples"
        raise TableError(
            str(path), f"is no log that is known: {text}; expected a log of Inspect Robots, version {VERSION}"
        )
    return log


def _trials(log: Document, scorer: str | None, where: str) -> tuple[list[Row], int]:
    """The rows of a log, with their score as "value", and how many trials have none."""
    rows: list[Row] = []
    errors = 0
    task = word(mapped(log["eval"], "eval", where).get("task"))
    for s, sample in enumerate(listed(log["samples"], "samples", where)):
        at = f"samples[{s}]"
        scene = mapped(sample, at, where)
        ends = listed(scene.get("termination_reasons") or [], f"{at}.termination_reasons", where)
        for e, epoch in enumerate(listed(scene.get("epochs"), f"{at}.epochs", where)):
            scores = mapped(epoch, f"{at}.epochs[{e}]", where)
            if not scores:
                errors += 1
                continue
            name = _scorer(scores, scorer, f"{at}.epochs[{e}]", where)
            rows.append(
                {
                    "block": " ".join(word(part) for part in (task, scene.get("scene_id"), scene.get("instruction"))),
                    "value": _value(scores[name], f"{at}.epochs[{e}].{name}", where),
                    "task": task,
                    "instruction": word(scene.get("instruction")),
                    "steps": word(scores.get(STEPS)),
                    "end_reason": word(ends[e]) if e < len(ends) else "",
                }
            )
    return rows, errors


def _scorer(scores: Document, scorer: str | None, at: str, where: str) -> str:
    known = [name for name in scores if name != STEPS]
    if scorer is not None:
        if scorer not in scores:
            raise TableError(where, f"{at} has no scorer {scorer!r}; it has {', '.join(scores)}")
        return scorer
    found = next((name for name in SUCCESS if name in scores), None) or (known[0] if len(known) == 1 else None)
    if found is None:
        raise TableError(where, f"{at} has the scorers {', '.join(scores)}; name the one to take with --scorer")
    return found


def _value(value: Plain, at: str, where: str) -> float:
    if isinstance(value, bool) or (isinstance(value, int | float) and 0 <= value <= 1):
        return int(value) if value in (0, 1) else value
    raise TableError(where, f"{at} is {value!r}; expected a number from 0 to 1; name another with --scorer")
