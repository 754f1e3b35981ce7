"""What people recorded beside an outcome, by arm: guesses of the arm, failure tags; and whether witnesses agree, and a
second assessor or a model with the first.

May not: correct a label, or be asked by arm before unblinding: what a second assessor or a model says is not by arm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from labctl.analysis.report.judged_facts import Judgements, ModelWitness, SecondAssessor, Witness
from labctl.core.outcome import outcome_from
from labctl.core.record import Episode, Record
from labctl.core.reviewed import SCORES_APART, apart, since_review, value_of
from labctl.core.task import ITEMS, SCORE, task_of, tasks_of
from labctl.core.trial import JUDGED, Trial
from labctl.errors import StateError

WITNESSES = ("the operator's tally", "the detector", "the review")


def judgements(records: Sequence[Record], arms: Sequence[str]) -> Judgements:
    """Those of the scored episodes, for a report; each empty where nothing was recorded. records: the campaign's own,
    or those of a joint campaign's parts, whose judgements are then one list.

    guesses: Bang's index by arm, of each person's last word on an episode; tags: by arm, in how many of its episodes
    an assessor ticked each; witnesses: each one's count of items moved against the assessor's outcome, of tasks
    that are counted in items. Raises StateError before unblinding.
    """
    from labctl.analysis.episodes.agreement import bang_index, cohens_kappa

    if any(record.unblinding is None for record in records):
        raise StateError("the campaign is not unblinded; nothing may be said by arm")
    every = [(record.arms[trial.id], trial, episode) for record in records for trial, episode in record.scored]
    last = [(arm, dict(episode.guesses).values()) for arm, _, episode in every]
    guessed = [(arm, guess) for arm, guesses in last for guess in guesses]
    known = [(arm, guess) for arm, guess in guessed if guess is None or guess in arms]
    index = bang_index(known, arms) if len(arms) > 1 else {}
    scored = Counter(arm for arm, _, _ in every)
    ticked: dict[str, Counter[str]] = {arm: Counter() for arm in arms}
    for arm, trial, _ in every:
        ticked[arm].update(set(trial.outcome.tags) if trial.outcome else ())
    names = sorted({tag for tags in ticked.values() for tag in tags})
    agreements: list[Witness] = []
    for name in WITNESSES:
        both = [
            (seen, trial.outcome.moved)
            for _, trial, episode in every
            if trial.outcome and not trial.outcome.measured and (seen := _seen(episode, name)) is not None
        ]
        if both:
            found = cohens_kappa([seen for seen, _ in both], [moved for _, moved in both])
            agreements.append(
                {
                    "witness": name,
                    "n": found.n,
                    "same": found.same,
                    "kappa": found.kappa,
                    "interval": None if found.interval is None else [*found.interval],
                    "weighted": found.weighted,
                }
            )
    return {
        "guesses": [
            {
                "arm": entry.arm,
                "said": entry.said,
                "unknown": entry.unknown,
                "right": entry.right,
                "index": entry.index,
                "interval": None if entry.interval is None else [*entry.interval],
            }
            for entry in index.values()
        ],
        "tags": [
            {"arm": arm, "episodes": scored[arm], "by_tag": {tag: ticked[arm][tag] for tag in names}} for arm in arms
        ]
        if names
        else [],
        "witnesses": agreements,
        "second": second_assessor(records),
        "models": models(records),
    }


def second_assessor(records: Sequence[Record]) -> list[SecondAssessor]:
    """Whether the first who judged an episode from its video alone agrees with the outcome that stood then, by task.
    records: as of `judgements`.
    """
    judged = [
        (trial, episode, outcome_from(episode.judged_against), episode.judged[0][1])
        for record in records
        for trial, episode in record.scored
        if episode.judged and episode.judged_against is not None
    ]
    if not judged:
        return []
    opened = records[0].state.opened
    tasks = {task.name: task for task in tasks_of(opened).values()}
    found: list[SecondAssessor] = []
    for name, task in tasks.items():
        of = None if task.measure == ITEMS else task
        here = [one for one in judged if task_of(opened, one[0].condition).name == name]
        if not here:
            continue
        values = [(value_of(of, first), value_of(of, second)) for _, _, first, second in here]
        differ = [(trial, episode) for trial, episode, first, second in here if apart(of, first, second)]
        agreement, interval = _agreement(task.measure, values)
        over = sum(_gone_over(trial, episode) for trial, episode in differ)
        found.append(
            {
                "task": name,
                "measure": task.measure,
                "n": len(here),
                "same": 1 - len(differ) / len(here),
                "statistic": "icc" if task.measure == SCORE else "weighted_kappa",
                "agreement": agreement,
                "interval": interval,
                "disagreements": len(differ),
                "adjudicated": over,
            }
        )
    return found


def _gone_over(trial: Trial, episode: Episode) -> bool:
    """Whether an assessor reviewed an episode after the first had judged it from its video alone."""
    reviewed = episode.reviewed is not None or episode.confirmed_by is not None
    return reviewed and since_review(trial).count(JUDGED) < len(episode.judged)


def models(records: Sequence[Record]) -> list[ModelWitness]:
    """Whether a model's last word on each episode agrees with the outcome that stood when it was asked, by task.
    records: as of `judgements`.
    """
    scored = [one for record in records for one in record.scored]
    if not any(episode.witnessed for _, episode in scored):
        return []
    opened = records[0].state.opened
    heard: dict[tuple[str, str], list[tuple[float, float] | None]] = {}
    tasks = {task.name: task for task in tasks_of(opened).values()}
    for trial, episode in scored:
        task = task_of(opened, trial.condition)
        of = None if task.measure == ITEMS else task
        for said, stood in {said["model"]: (said, stood) for said, stood in episode.witnessed}.values():
            value = said["value"]
            both = None if value is None or not stood else (value_of(of, outcome_from(stood)), float(value))
            heard.setdefault((said["model"], task.name), []).append(both)
    found: list[ModelWitness] = []
    for (model, name), every in heard.items():
        known = [both for both in every if both is not None]
        agreement, interval = _agreement(tasks[name].measure, known) if known else (None, None)
        close = 1e-9 if tasks[name].measure != SCORE else SCORES_APART - 1e-9
        found.append(
            {
                "model": model,
                "task": name,
                "measure": tasks[name].measure,
                "n": len(every),
                "unknown": len(every) - len(known),
                "same": sum(abs(one - other) <= close for one, other in known) / len(known) if known else None,
                "statistic": "icc" if tasks[name].measure == SCORE else "weighted_kappa",
                "agreement": agreement,
                "interval": interval,
            }
        )
    return found


def _agreement(measure: str, values: Sequence[tuple[float, float]]) -> tuple[float | None, list[float] | None]:
    from labctl.analysis.blocks.agreement import icc, weighted_kappa

    if measure == SCORE:
        found = icc(np.array(values)) if len(values) > 1 else None
        value, ci = (found.icc, found.ci) if found else (None, None)
    else:
        kappa = weighted_kappa([one for one, _ in values], [other for _, other in values])
        value, ci = kappa.kappa, kappa.ci
    return value, None if ci is None else [*ci]


def _seen(episode: Episode, witness: str) -> int | None:
    """How many items that witness says were moved; None where it says nothing."""
    if witness == WITNESSES[0]:
        return episode.counted
    labels = episode.detected if witness == WITNESSES[1] else episode.reviewed
    return None if labels is None else sum(operation["result"] == "success" for operation in labels)
