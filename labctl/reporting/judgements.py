"""What people recorded beside an outcome, by arm: guesses of the arm, failure tags; and whether witnesses agree.

May not: correct a label, or be asked before unblinding: every part but the last is by arm.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from labctl.analysis.report.lab_facts import Judgements, Witness
from labctl.core.record import Episode, Record
from labctl.errors import StateError

WITNESSES = ("the operator's tally", "the detector", "the review")


def judgements(record: Record, arms: Sequence[str]) -> Judgements:
    """Those of the scored episodes, for a report; each empty where nothing was recorded.

    guesses: Bang's index by arm, of each person's last word on an episode; tags: by arm, in how many of its episodes
    an assessor ticked each; witnesses: each one's count of items moved against the assessor's outcome. Raises
    StateError before unblinding.
    """
    from labctl.analysis.episodes.agreement import bang_index, cohens_kappa

    if record.unblinding is None:
        raise StateError("the campaign is not unblinded; nothing may be said by arm")
    of = record.arms
    guessed = [(of[trial.id], said) for trial, episode in record.scored for said in _guesses(episode)]
    known = [(arm, said) for arm, said in guessed if said is None or said in arms]
    index = bang_index(known, arms) if len(arms) > 1 else {}
    scored = Counter(of[trial.id] for trial, _ in record.scored)
    ticked: dict[str, Counter[str]] = {arm: Counter() for arm in arms}
    for trial, _ in record.scored:
        ticked[of[trial.id]].update(set(trial.outcome.tags) if trial.outcome else ())
    names = sorted({tag for tags in ticked.values() for tag in tags})
    agreements: list[Witness] = []
    for name in WITNESSES:
        both = [
            (seen, trial.outcome.moved)
            for trial, episode in record.scored
            if trial.outcome and (seen := _seen(episode, name)) is not None
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
    }


def _guesses(episode: Episode) -> list[str | None]:
    """The last word of everybody who said which arm it was, or that they could not tell."""
    return list(dict(episode.guesses).values())


def _seen(episode: Episode, witness: str) -> int | None:
    """How many items that witness says were moved; None where it says nothing."""
    if witness == WITNESSES[0]:
        return episode.counted
    labels = episode.detected if witness == WITNESSES[1] else episode.reviewed
    return None if labels is None else sum(operation["result"] == "success" for operation in labels)
