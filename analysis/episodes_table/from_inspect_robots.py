"""Logs of Inspect Robots (its EvalLog, version 1) as an episodes table: one log a policy, a trial an episode.

May not: read a trial that ended in an error as a failure: it has no score, so it is left out and counted.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from labctl.analysis.numerals import counted
from labctl.analysis.results import Plain
from labctl.analysis.table import Value
from labctl.errors import TableError

VERSION = 1
SUCCESS = ("operator", "success_at_end", "reached_goal_state")
"""Its own scorers that say yes or no, the person's first."""
STEPS = "episode_length"


@dataclass(frozen=True)
class _Trial:
    """A trial: where it stands in which log, its scores by scorer (none after an error), and the rest of its row."""

    at: str
    where: str
    scores: Document
    row: Row


def from_inspect_robots(paths: Sequence[Path], arms: Sequence[str] = (), scorer: str | None = None) -> Imported:
    """The trials of some logs; `arms` names each one's policy, by default as the log does; `scorer` the scorer to take,
    by default the first of `SUCCESS` that every trial has, else the only one that they share. 0 and 1 are successes;
    other values scores.

    The first trials that the policies made of a scene are a block, the second ones another; one that ended in an error
    keeps its place. Raises `TableError`.
    """
    logs = [(_log(path), str(path)) for path in paths]
    found = [word(mapped(log.get("eval"), "eval", where).get("policy")) for log, where in logs]
    names = arm_names(arms, found, [where for _, where in logs])
    trials = [(trial, arm) for (log, where), arm in zip(logs, names, strict=True) for trial in _trials(log, where)]
    scored = [trial for trial, _ in trials if trial.scores]
    taken = _scorer(scored, scorer) if scored else ""
    values = [_value(trial.scores[taken], f"{trial.at}.{taken}", trial.where) for trial in scored]
    measure = "success" if all(value in (0, 1) for value in values) else "score"
    rows: list[Row] = []
    lines: list[str] = []
    made: Counter[tuple[str, Value]] = Counter()
    for trial, arm in trials:
        scene = trial.row["block"]
        made[arm, scene] += 1
        if trial.scores:
            row = {**trial.row, "arm": arm, "block": f"{scene} #{made[arm, scene]}"}
            rows.append({**row, measure: values[len(rows)]})
            lines.append(f"{trial.where}: {trial.at}")
    errors = len(trials) - len(scored)
    notes = ["the n-th trials of one scene are taken as a block: that holds if they began from one set-up"]
    notes += [f"{counted(errors, 'trial')} left out, ended in an error and without a score"] * bool(errors)
    return Imported(str(paths[0]), rows, lines, tuple(notes))


def _log(path: Path) -> Document:
    log = mapped(read_json(path), "the document", str(path))
    if log.get("version") != VERSION or "samples" not in log:
        text = f"version is {log.get('version')!r}" if "samples" in log else "it has no samples"
        raise TableError(
            str(path), f"is no log that is known: {text}; expected a log of Inspect Robots, version {VERSION}"
        )
    return log


def _trials(log: Document, where: str) -> Iterator[_Trial]:
    """The trials of a log; those that ended in an error have no scores."""
    task = word(mapped(log["eval"], "eval", where).get("task"))
    for s, sample in enumerate(listed(log["samples"], "samples", where)):
        at = f"samples[{s}]"
        scene = mapped(sample, at, where)
        ends = listed(scene.get("termination_reasons") or [], f"{at}.termination_reasons", where)
        for e, epoch in enumerate(listed(scene.get("epochs"), f"{at}.epochs", where)):
            place = f"{at}.epochs[{e}]"
            scores = mapped(epoch, place, where)
            row: Row = {
                "block": " ".join(word(part) for part in (task, scene.get("scene_id"), scene.get("instruction"))),
                "task": task,
                "instruction": word(scene.get("instruction")),
                "steps": _steps(scores.get(STEPS), f"{place}.{STEPS}", where),
                "end_reason": word(ends[e]) if e < len(ends) else "",
            }
            yield _Trial(place, where, scores, row)


def _steps(value: Plain, at: str, where: str) -> str:
    """A whole number of steps, "" for none."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, bool) or not isinstance(value, int | float) or not (0 <= value < math.inf) or value % 1:
        raise TableError(where, f"{at} is {shortened(value)}; expected a whole number of steps, 0 or more")
    return word(value)


def _scorer(trials: Sequence[_Trial], named: str | None) -> str:
    """The one scorer by which every trial is judged: arms judged by different ones are not compared. Raises
    `TableError`.
    """
    if named is not None:
        lacks = next((trial for trial in trials if named not in trial.scores), None)
        if lacks is not None:
            raise TableError(lacks.where, f"{lacks.at} has no scorer {named!r}; it has {', '.join(lacks.scores)}")
        return named
    first = trials[0]
    common = [name for name in first.scores if name != STEPS and all(name in trial.scores for trial in trials)]
    found = next((name for name in SUCCESS if name in common), None) or (common[0] if len(common) == 1 else None)
    if found is not None:
        return found
    other = next((trial for trial in trials if not common and {*trial.scores} != {*first.scores}), first)
    text = f"{other.at} has the scorers {', '.join(other.scores)}"
    if other is not first:
        text += f" and {first.at} of {first.where} {', '.join(first.scores)}: all trials are judged by one"
    raise TableError(other.where, f"{text}; name the one to take with --scorer")


def _value(value: Plain, at: str, where: str) -> float:
    if isinstance(value, bool) or (isinstance(value, int | float) and 0 <= value <= 1):
        return int(value) if value in (0, 1) else value
    raise TableError(where, f"{at} is {shortened(value)}; expected a number from 0 to 1; name another with --scorer")
