"""How fast each arm's controller started and answered, as recorded; only after unblinding, since it tells arms apart.

May not: be asked before unblinding, or leave out a question because its answer was late or never came.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NotRequired, TypedDict

import numpy as np

from labctl.analysis.report.lab_facts import Answered, AnswerTimes, Spread
from labctl.clock import SECOND
from labctl.reporting.times.recorded import POLICY, read_stream
from labctl.store.read_once import Samples

NEEDED = ("capture_ns", "request_ns", "reply_ns", "first_ns", "executed", "late", "image_ns", "server_us")
LATER = ("call_us", "gpu_memory_mb")  # recordings from before they were kept have none: -1


class StartUp(TypedDict):
    """A controller became ready, as its episode's seal keeps it; told: the resources that its server reported (see
    `devices.Telling`); software: what its policy runs on, name and version.
    """

    load_s: float
    warm_s: float
    told: NotRequired[Mapping[str, float]]
    software: NotRequired[Mapping[str, str]]


def answer_times(
    found: Mapping[str, np.ndarray | None],
    episodes: Mapping[str, str],
    arms: Sequence[str],
    start_ups: Mapping[str, StartUp] | None = None,
) -> list[AnswerTimes]:
    """One entry per arm that was asked anything. episodes: episode -> arm, of every episode that was revealed; found:
    the `questions_of` each; start_ups: by episode, of controllers that became ready.

    questions; late: answers that came after their deadline; unanswered; answers_per_s: while it was being asked.
    answer_s: from question to answer, of all answers; command_s: from the capture of the robot's state to the first
    action of an answer that was used; picture_s: the same from the oldest picture; server_s: the policy's own time, by
    the server's account; rest_s: what is left of answer_s beyond the server's whole call (wire, codec, pictures);
    load_s, warm_s: before the clock. Each {p50, p95} in seconds, or None when there are none. told: the greatest of
    what the server said of itself (see `devices.Telling`), without what it did not say.
    """
    rows: dict[str, list[np.ndarray]] = {}
    for episode, arm in episodes.items():
        questions = found.get(episode)
        if questions is not None and len(questions):
            rows.setdefault(arm, []).append(questions)
    made: list[AnswerTimes] = []
    for arm in arms:
        if arm in rows:
            begun = [start_up for episode, start_up in (start_ups or {}).items() if episodes.get(episode) == arm]
            load_s = _spread(np.array([start_up["load_s"] for start_up in begun]) * SECOND)
            warm_s = _spread(np.array([start_up["warm_s"] for start_up in begun]) * SECOND)
            resources = _greatest([start_up.get("told") or {} for start_up in begun], rows[arm])
            made.append({**_summary(arm, rows[arm]), "load_s": load_s, "warm_s": warm_s, "told": resources})
    return made


def questions_of(store: Samples, episode: str) -> np.ndarray | None:
    """The questions of an episode as rows of NEEDED and LATER; None when they are not recorded or cannot be read."""
    spec = next((spec for spec in store.streams(episode) if spec.name == POLICY), None)
    read = read_stream(store, episode, POLICY)
    if spec is None or read is None or any(name not in spec.columns for name in NEEDED):
        return None
    values = read[1]
    there = [name for name in LATER if name in spec.columns]
    found = values[:, [spec.columns.index(name) for name in (*NEEDED, *there)]]
    return found if there else np.hstack([found, np.full((len(found), len(LATER)), -1, found.dtype)])


def _greatest(reported: Sequence[Mapping[str, float]], episodes: Sequence[np.ndarray]) -> dict[str, float]:
    """The greatest value of each resource that was reported before go and, of GPU memory, with the answers too."""
    names = sorted({name for resources in reported for name in resources})
    found = {name: max(float(resources[name]) for resources in reported if name in resources) for name in names}
    held = max((float(rows[:, -1].max()) for rows in episodes), default=-1.0)
    return {**found, "gpu_memory_mb": max(held, found.get("gpu_memory_mb", 0.0))} if held >= 0 else found


def _summary(arm: str, episodes: Sequence[np.ndarray]) -> Answered:
    every = np.concatenate(episodes)
    capture, request, reply, first, executed, late, image, server, call, _ = every.T
    answered, used = reply >= 0, executed > 0
    asked_s = sum(float(rows[-1, 1] - rows[0, 1]) / SECOND for rows in episodes)
    between = sum(len(rows) - 1 for rows in episodes)
    return {
        "arm": arm,
        "episodes": len(episodes),
        "questions": len(every),
        "late": int((late[answered] > 0).sum()),
        "unanswered": int((~answered).sum()),
        "answers_per_s": between / asked_s if asked_s else None,
        "answer_s": _spread((reply - request)[answered]),
        "command_s": _spread((first - capture)[used]),
        "picture_s": _spread((first - image)[used & (image >= 0)]),
        "server_s": _spread(1000 * server[server >= 0]),
        "rest_s": _spread((reply - request - 1000 * call)[answered & (call >= 0)]),
    }


def _spread(ns: np.ndarray) -> Spread | None:
    if not len(ns):
        return None
    p50, p95 = np.percentile(ns.astype(float) / SECOND, [50, 95])
    return {"p50": round(float(p50), 6), "p95": round(float(p95), 6)}
