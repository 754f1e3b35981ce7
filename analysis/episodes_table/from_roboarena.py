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
LEAST_PERCENT = 10.0  # a file whose highest score is between 1 and this is neither shares nor percent
Source = Mapping[str, str]


@dataclass(frozen=True)
class _File:
    path: Path
    rows: list[tuple[int, Source]]


def from_roboarena(folder: Path) -> Imported:
    """The blocks of a dump, each a valid session, in order of `session_creation_timestamp`, or as they stand.

    The file of episodes is the one with a column `policy_name`. Scores above 1 are read as
    percent, if every score is 0, or 1 and above. Raises `TableError` for a folder without the two, or without a column.
    """
    sessions, episodes = _two_files(folder)
    by_id = _by_id(sessions)
    found: dict[str, list[tuple[int, Source]]] = {}
    strangers = 0
    for line, row in episodes.rows:
        session = by_id.get(row["session_id"].strip())
        if session is None:
            strangers += 1
        else:
            found.setdefault(session["session_uuid"].strip(), []).append((line, row))
    percent = _in_percent(episodes)
    left: Counter[str] = Counter()
    people: dict[str, str] = {}
    rows: list[Row] = []
    lines: list[int] = []
    for _, session in _in_order(sessions.rows):
        own = found.get(session["session_uuid"].strip(), [])
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
    taken = {row["block"]: row["preferred"] for row in rows}
    mute = sum(not preferred for preferred in taken.values())
    if mute and mute < len(taken):
        what = "no preference that can be read: A, B or TIE, about two policies that ran"
        notes.append(f"{counted(mute, 'session')} with {what}")
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
        twice = next((name for name in header if name and header.count(name) > 1), None)
        if twice:
            raise TableError(f"{path}:1", f"column {twice!r} appears {header.count(twice)} times; keep one")
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


def _by_id(sessions: _File) -> dict[str, Source]:
    """Each session by its id and by its uuid. Raises `TableError` where two share one."""
    found: dict[str, tuple[int, Source]] = {}
    for line, row in sessions.rows:
        for column in ("session_uuid", "id"):
            key = row.get(column, "").strip()
            if not key and column == "session_uuid":
                raise TableError(f"{sessions.path}:{line}", "session_uuid is empty; every session has one")
            if key and found.setdefault(key, (line, row))[1] is not row:
                text = f"{column} {key!r} stands in line {found[key][0]} too; every session has its own"
                raise TableError(f"{sessions.path}:{line}", text)
    return {key: row for key, (_, row) in found.items()}


def _in_order(rows: list[tuple[int, Source]]) -> list[tuple[int, Source]]:
    when = "session_creation_timestamp"
    return sorted(rows, key=lambda entry: entry[1][when]) if all(row.get(when) for _, row in rows) else rows


def _in_percent(episodes: _File) -> bool:
    """Whether partial_success goes to 100 in this file. Raises `TableError` where it could be both."""
    found = [(line, _number(row["partial_success"])) for line, row in episodes.rows]
    scores = [(line, score) for line, score in found if math.isfinite(score)]
    line, most = max(scores, key=lambda entry: entry[1], default=(0, 0.0))
    if most <= 1:
        return False
    if most < LEAST_PERCENT:
        text = f"partial_success is {most:g}, the most of the file: neither a share nor percent"
        raise TableError(f"{episodes.path}:{line}", f"{text}; write all of them from 0 to 1")
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


def _policy(row: Source) -> str:
    return " ".join(row["policy_name"].split())


def _said(session: Source, key: str) -> str | None:
    """What stands after a word at the beginning of a line of a session's notes; None where no line begins so."""
    lines = (line.strip() for line in session["evaluation_notes"].splitlines())
    return next((line[len(key) :].strip() for line in lines if line.upper().startswith(key)), None)


def _left_out(session: Source, own: Sequence[tuple[int, Source]]) -> str | None:
    said = _said(session, VALID)
    if said is None:
        return f"their evaluation_notes do not say {VALID}"
    if said.lstrip(":= ").upper() in ("NO", "FALSE", "0", "INVALID"):
        return f"their evaluation_notes say {VALID} {said.lstrip(':= ')}"
    names = [_policy(row) for _, row in own]
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
    position = {_policy(row): i + 1 for i, (_, row) in enumerate(ran)}
    compared, preferred = _preference(session, position)
    return [
        (
            line,
            {
                "block": session["session_uuid"].strip(),
                "arm": _policy(row),
                "success": text(row.get("binary_success")),
                "score": _score(row["partial_success"], percent),
                "position": position[_policy(row)],
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
    two = [" ".join(session[name].split()) for name in ("policyA_name", "policyB_name")]
    answer = (_said(session, PREFERENCE) or "").upper()
    if answer not in ("A", "B", "TIE") or not all(name in position for name in two) or two[0] == two[1]:
        return "", ""
    preferred = "tie" if answer == "TIE" else two["AB".index(answer)]
    return "|".join(sorted(two, key=lambda name: position[name])), preferred
