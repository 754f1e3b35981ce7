"""RoboArena's dump as an episodes table: a CSV of sessions and one of episodes, as its server's database holds them.

May not: write a person's name; evaluators are numbered. A session that its evaluator did not call valid is left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from labctl.analysis.episodes_table.importing import Imported, Row
from labctl.analysis.episodes_table.values import text
from labctl.analysis.numerals import counted
from labctl.analysis.reading import read_csv
from labctl.errors import TableError

SESSIONS = ("session_uuid", "policyA_name", "policyB_name", "evaluation_notes")
EPISODES = ("session_id", "policy_name", "partial_success")
USED = "evaluation_location, evaluator_name, session_creation_timestamp; binary_success, command, duration, feedback"
VALID, PREFERENCE = "VALID_SESSION", "PREFERENCE="
Source = Mapping[str, str]


@dataclass(frozen=True)
class _File:
    path: Path
    rows: list[tuple[int, Source]]


def from_roboarena(folder: Path) -> Imported:
    """The blocks of a dump, each a valid session, in order of `session_creation_timestamp`, or as they stand.

    Which file is which is told by the columns (`policy_name` is in the one of episodes). Scores above 1 are read as
    percent, if every score is 0, or 1 and above. Raises `TableError` for a folder without the two, or without a column.
    """
    sessions, episodes = _two_files(folder)
    by_id = {key: row for _, row in sessions.rows for key in (row.get("id", ""), row["session_uuid"]) if key}
    found: dict[str, list[tuple[int, Source]]] = {}
    strangers = 0
    for line, row in episodes.rows:
        session = by_id.get(row["session_id"].strip())
        if session is None:
            strangers += 1
        else:
            found.setdefault(session["session_uuid"], []).append((line, row))
    percent = _in_percent(episodes)
    left: Counter[str] = Counter()
    people: dict[str, str] = {}
    rows: list[Row] = []
    lines: list[int] = []
    for _, session in _in_order(sessions.rows):
        own = found.get(session["session_uuid"], [])
        why = _left_out(session, own)
        if why:
            left[why] += 1
            continue
        evaluator = session.get("evaluator_name", "").strip()
        person = people.setdefault(evaluator, f"e{len(people) + 1:02d}") if evaluator else ""
        for line, row in _of_session(session, own, person, percent):
            lines.append(line)
            rows.append(row)
    notes = [f"{counted(n, 'session')} left out: {why}" for why, n in left.items()]
    if strangers:
        why = f"their session_id is in no row of {sessions.path.name}"
        notes.append(f"{counted(strangers, 'episode')} left out: {why}")
    notes += ["partial_success was read as percent"] * percent
    if people:
        how = "numbered in order of their first session; no name is written"
        notes.append(f"{counted(len(people), 'evaluator')}, {how}")
    return Imported(str(episodes.path), rows, lines, tuple(notes))


def _two_files(folder: Path) -> tuple[_File, _File]:
    if not folder.is_dir():
        raise TableError(str(folder), "is no folder; give the one with the dump's two CSV files")
    files: dict[bool, _File] = {}
    for path in sorted(folder.glob("*.csv")):
        header, rows = read_csv(path)
        of_episodes = "policy_name" in header
        if not of_episodes and "session_uuid" not in header:
            continue
        if of_episodes in files:
            kind = "episodes" if of_episodes else "sessions"
            two = f"{files[of_episodes].path.name} and {path.name} are both of {kind}"
            raise TableError(str(folder), f"{two}; leave one of each in the folder")
        needed = EPISODES if of_episodes else SESSIONS
        missing = [name for name in needed if name not in header]
        if missing:
            text = f"missing column {', '.join(missing)}; needed are {', '.join(needed)}, and used if there: {USED}"
            raise TableError(f"{path}:1", text)
        files[of_episodes] = _File(path, list(rows))
    for of_episodes, name, needed in ((False, "sessions", SESSIONS), (True, "episodes", EPISODES)):
        if of_episodes not in files:
            raise TableError(str(folder), f"holds no CSV file of {name}, one with the columns {', '.join(needed)}")
    return files[False], files[True]


def _in_order(rows: list[tuple[int, Source]]) -> list[tuple[int, Source]]:
    when = "session_creation_timestamp"
    return sorted(rows, key=lambda entry: entry[1][when]) if all(row.get(when) for _, row in rows) else rows


def _in_percent(episodes: _File) -> bool:
    """Whether partial_success goes to 100 in this file. Raises `TableError` where it could be both."""
    scores = [(line, _number(row["partial_success"])) for line, row in episodes.rows]
    if not any(score > 1 for _, score in scores):
        return False
    for line, score in scores:
        if 0 < score < 1:
            text = f"partial_success is {score:g}, in a file whose others go beyond 1; write all of them from 0 to 1"
            raise TableError(f"{episodes.path}:{line}", text)
    return True


def _number(value: str) -> float:
    try:
        return float(value or "nan")
    except ValueError:
        return math.nan


def _left_out(session: Source, own: Sequence[tuple[int, Source]]) -> str | None:
    if not any(line.strip().upper().startswith(VALID) for line in session["evaluation_notes"].splitlines()):
        return f"their evaluation_notes do not say {VALID}"
    names = [row["policy_name"].strip() for _, row in own]
    if len(set(names)) < 2:
        return "fewer than two policies have an episode"
    return "a policy has two episodes" if len(set(names)) < len(names) else None


def _of_session(
    session: Source, own: Sequence[tuple[int, Source]], person: str, percent: bool
) -> list[tuple[int, Row]]:
    """The rows of a session as they ran: by the letter in `feedback`, else by timestamp, else as they stand."""
    letters = [row.get("feedback", "").split(";")[0].strip().upper() for _, row in own]
    if len({*letters}) == len(own) and all(len(letter) == 1 and letter.isalpha() for letter in letters):
        ran = [entry for _, entry in sorted(zip(letters, own, strict=True), key=lambda pair: pair[0])]
    else:
        ran = sorted(own, key=lambda entry: entry[1].get("timestamp", ""))
    position = {row["policy_name"].strip(): i + 1 for i, (_, row) in enumerate(ran)}
    compared, preferred = _preference(session, position)
    return [
        (
            line,
            {
                "block": session["session_uuid"],
                "arm": row["policy_name"].strip(),
                "success": text(row.get("binary_success")),
                "score": _score(row["partial_success"], percent),
                "position": position[row["policy_name"].strip()],
                "site": session.get("evaluation_location", "").strip(),
                "evaluator": person,
                "instruction": " ".join(row.get("command", "").split()),
                "steps": text(row.get("duration")),
                "compared": compared,
                "preferred": preferred,
            },
        )
        for line, row in ran
    ]


def _score(value: str, percent: bool) -> str:
    number = _number(value)
    return f"{number / 100:.10g}" if percent and not math.isnan(number) else value.strip()


def _preference(session: Source, position: Mapping[str, int]) -> tuple[str, str]:
    """`compared` and `preferred` of a session; empty without a preference, or where one of the two did not run."""
    two = [session["policyA_name"].strip(), session["policyB_name"].strip()]
    answers = [line.strip()[len(PREFERENCE) :].strip().upper() for line in session["evaluation_notes"].splitlines()
            if line.strip().upper().startswith(PREFERENCE)]  # fmt: skip
    if (
        not answers
        or answers[0] not in ("A", "B", "TIE")
        or not all(name in position for name in two)
        or two[0] == two[1]
    ):
        return "", ""
    preferred = "tie" if answers[0] == "TIE" else two["AB".index(answers[0])]
    return "|".join(sorted(two, key=lambda name: position[name])), preferred
