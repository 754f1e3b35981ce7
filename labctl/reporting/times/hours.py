"""Where a campaign's hours went: reset, staging, arming, running, scoring and holds by reason, per operator and block.

May not: tell anything by trial or by arm, or of a block under way while arms are sealed: a trial's time is its arm's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from labctl.analysis.report.lab_facts import AtConsole, Hours, Line
from labctl.core.record import Episode, Record, Spent
from labctl.core.trial import AFTER_BLOCK, AFTER_TRIAL, FINISHED, State

SCHEMA = "labctl.hours/1"
DOING: tuple[str, ...] = ("reset", "staging", "arming", "running", "scoring", "hold")
WORDS = {
    "reset": "from a score or void until somebody orders the next trial",
    "staging": "from the order until the scene is committed",
    "arming": "from the commit until go",
    "running": "from go until the end",
    "scoring": "from the end until it was scored or void",
    "hold": "reset and staging while a hold stood",
}
OF_A_TRIAL = {
    "keys": "pressed at consoles for a scored trial, from the score before until its own; of how many trials, "
    "where one run did not see all of them from there on",
    "operator": "time in which a scored trial waited for a person: to be ordered, for its scene, for its score; "
    "of as many",
    "robot": "time from go to the end of a scored trial; of all",
}
NOBODY, AFTER, UNDER_WAY = "nobody entered", "after the last trial", "blocks under way"


def hours(record: Record) -> Hours:
    """As `labctl status --hours --json` prints them. Each second of a run is in `total` once; a person's line has
    those of the sessions in which they were an operator, so that two people's overlap.
    """
    block_of = _blocks(record)
    blocks: dict[str, list[Spent]] = {}
    people: dict[str, list[Spent]] = {}
    for one in record.spent:
        blocks.setdefault(block_of(one), []).append(one)
        for person in one.operators or (NOBODY,):
            people.setdefault(person, []).append(one)
    in_order = sorted(blocks, key=place_of_block)
    return {
        "schema": SCHEMA,
        "campaign": record.state.opened.get("campaign"),
        "total": _line("all", record.spent, record),
        "blocks": [_line(name, blocks[name], record) for name in in_order],
        "operators": [_line(person, spent, record) for person, spent in people.items()],
        "what": {**WORDS, **OF_A_TRIAL},
    }


def place_of_block(name: str) -> tuple[bool, str]:
    """Sorts the names of blocks: by number, and what is no block's after them."""
    return not name.isdigit(), name.zfill(9)


def added(of: str, lines: Sequence[Line]) -> Line:
    """The line of several records' time put together: every number of theirs added up."""
    by = dict.fromkeys(DOING, 0.0)
    holds: dict[str, float] = {}
    console: AtConsole = {"trials": 0, "keys": 0, "waited_s": 0.0, "robot_s": 0.0}
    for line in lines:
        by = {doing: seconds + line["by"][doing] for doing, seconds in by.items()}
        for code, seconds in line["holds"].items():
            holds[code] = holds.get(code, 0.0) + seconds
        own = line["console"]
        console = {
            "trials": console["trials"] + own["trials"],
            "keys": console["keys"] + own["keys"],
            "waited_s": console["waited_s"] + own["waited_s"],
            "robot_s": console["robot_s"] + own["robot_s"],
        }
    return {
        "of": of,
        "trials": sum(line["trials"] for line in lines),
        "total_s": sum(line["total_s"] for line in lines),
        "by": by,
        "holds": dict(sorted(holds.items())),
        "console": console,
        "ran_s": sum(line["ran_s"] for line in lines),
    }


COLUMNS = ("total", "per trial", *OF_A_TRIAL, *DOING)


def clock(seconds: float) -> str:
    """Hours, minutes and seconds as far as they matter: 1 h 05 min, 12 min 05 s, 41 s."""
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600} h {whole % 3600 // 60:02d} min"
    return f"{whole // 60} min {whole % 60:02d} s" if whole >= 60 else f"{whole} s"


def cells(line: Line) -> list[str]:
    """A row under of, trials and COLUMNS, the same on every surface."""
    each = clock(line["total_s"] / line["trials"]) if line["trials"] else "-"
    shares = [f"{clock(line['by'][doing])}{_share(line['by'][doing], line['total_s'])}" for doing in DOING]
    return [line["of"], str(line["trials"]), clock(line["total_s"]), each, *_of_a_trial(line), *shares]


def _of_a_trial(line: Line) -> list[str]:
    """Keys, operator and robot of a mean trial."""
    found, trials, known = line["console"], line["trials"], line["console"]["trials"]
    of = f" of {known}" if known != trials else ""
    people = [f"{found['keys'] / known:.1f}{of}", f"{clock(found['waited_s'] / known)}{of}"] if known else ["-", "-"]
    return [*people, clock(line["ran_s"] / trials) if trials else "-"]


def _share(part: float, whole: float) -> str:
    return f" ({100 * part / whole:.0f} %)" if part and whole else ""


def hold_lines(line: Line) -> list[str]:
    """Each reason of a hold with the time it took, the longest first."""
    longest = sorted(line["holds"].items(), key=lambda one: -one[1])
    return [f"hold {code}: {clock(seconds)}" for code, seconds in longest]


def _blocks(record: Record) -> Callable[[Spent], str]:
    """Names the line of a stretch: its block from 1 on; blocks under way are one while arms are sealed."""
    trials = record.state.trials
    going = {trial.block for trial in trials.values() if trial.state not in FINISHED}
    hidden = frozenset() if record.unblinding else going

    def name(one: Spent) -> str:
        if one.trial is None:
            return AFTER if not going else UNDER_WAY
        block = trials[one.trial].block
        return UNDER_WAY if block in hidden else str(block + 1)

    return name


def _line(of: str, spent: Iterable[Spent], record: Record) -> Line:
    found = dict.fromkeys(DOING, 0.0)
    holds: dict[str, float] = {}
    of_trials: dict[str, None] = {}  # in order: sums of floats depend on it
    for one in spent:
        codes = standing(one, record)
        doing = "hold" if codes and one.doing in ("reset", "staging") else one.doing
        found[doing] += one.seconds
        if doing == "hold":
            holds[codes[0]] = holds.get(codes[0], 0.0) + one.seconds
        if one.trial and one.doing == "running":
            of_trials[one.trial] = None
    scored = [trial for trial in of_trials if record.state.trials[trial].state == State.SCORED]
    return {
        "of": of,
        "trials": len(scored),
        "total_s": sum(found.values()),
        "by": found,
        "holds": dict(sorted(holds.items())),
        "console": _console(ran := [_episode(trial, record) for trial in scored]),
        "ran_s": sum(episode.duration_s or 0.0 for episode in ran),
    }


def _episode(trial: str, record: Record) -> Episode:
    """Of a scored trial the one that was scored."""
    return record.episodes[str(record.state.trials[trial].episode)]


def _console(scored: Iterable[Episode]) -> AtConsole:
    found: AtConsole = {"trials": 0, "keys": 0, "waited_s": 0.0, "robot_s": 0.0}
    for episode in scored:
        if episode.hands is not None:
            found["trials"] += 1
            found["keys"] += episode.hands["keys"]
            found["waited_s"] += episode.hands["waited_s"]
            found["robot_s"] += episode.duration_s or 0.0
    return found


def standing(one: Spent, record: Record) -> list[str]:
    """The holds that kept this trial, by reason; one asked for after a trial or block waits until that is over."""
    waiting: Sequence[str] = ()
    if one.trial is not None:
        waiting = (f"{AFTER_TRIAL}{one.trial}", f"{AFTER_BLOCK}{record.state.trials[one.trial].block}")
    return [code.partition(":")[0] for code in one.held if code not in waiting]
