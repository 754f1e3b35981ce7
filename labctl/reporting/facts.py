"""What only a campaign can tell a report: flow, deviations, blinding, provenance, episodes. From the journal.

May not: estimate anything, or be asked before unblinding (every part is by arm).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from labctl.analysis.early_ends import ENDED_EARLY
from labctl.analysis.report.lab_facts import Counts, Disputed, EpisodeEntry, Lab, MovedOfStaged
from labctl.core.event_bodies import CampaignOpened
from labctl.core.events import EndReason
from labctl.core.record import Episode, Record
from labctl.core.recorded.skew import campaign_clock
from labctl.core.reviewed import queue
from labctl.core.session import Session
from labctl.core.task import ITEMS, reported_by_episodes, task_of
from labctl.core.trial import State, Trial, tally
from labctl.errors import StateError
from labctl.messages.body_parts import Clock, Pins
from labctl.plain import count
from labctl.reporting.hand_stops import UNSAID, stop_facts, stop_lines
from labctl.reporting.operations_table import UNTIMED, WRONG_END
from labctl.reporting.robot_used import changes_of_robot, robot_facts
from labctl.reporting.software_used import changes, software_facts
from labctl.reporting.times.hours import hours
from labctl.times import in_line, local, zone_words

if TYPE_CHECKING:
    from labctl.analysis.table import Row

EARLY = frozenset(map(EndReason, ENDED_EARLY))
BLIND_STATEMENT = "Who staged, operated and scored was not told which arm a trial had before unblinding."
ALONE = "A person was the only arm, a reference that was collected: there was nothing to be blind to."


def kinds(record: Record) -> list[str]:
    """The kinds of cell the episodes were stamped with (real, sim, ...)."""
    return sorted({str(one.start["kind"]) for one in record.episodes.values() if one.start})


def kind_of(record: Record) -> str:
    """The kind of cell that its episodes ran in, of a campaign without one the kind it was opened with."""
    return ", ".join(kinds(record)) or record.state.opened["kind"]


def refuse_mixed(record: Record, name: str) -> None:
    """Raises StateError when episodes of one report were stamped with different kinds of cell."""
    found = kinds(record)
    if len(found) > 1:
        raise StateError(
            f"{name} holds episodes of kinds {', '.join(found)}, which a report never mixes; export each kind"
        )


def by_episodes(opened: CampaignOpened) -> bool:
    """Whether a campaign's report is by episodes, as its first entry has its tasks."""
    return reported_by_episodes([one["measure"] for one in opened.get("tasks", ())])


def refuse_tasks(record: Record, name: str) -> None:
    """Raises StateError for a look at a campaign whose report is by episodes."""
    if by_episodes(record.state.opened):
        names = ", ".join(f"{task['name']} ({task['measure']})" for task in record.state.opened.get("tasks", ()))
        raise StateError(
            f"{name} has the tasks {names}; a look at several tasks, or at one not in items, is not there yet: "
            f"close it, then unblind it and take its report"
        )


def facts(record: Record, arms: Sequence[str], *, alpha: float, robot: str, rows: Sequence[Row]) -> Lab:
    """The `lab` of `labctl.analysis.report.page.build_report`. `arms` are in the order of the protocol; rows: of
    the operations table that the report stands on.

    Raises StateError before unblinding.
    """
    if record.unblinding is None:
        raise StateError("the campaign is not unblinded; nothing may be said by arm")
    state, opened = record.state, record.state.opened
    unreviewed = _never_reviewed(record)
    open_reasons = [] if record.reviewed or unreviewed else ["operation events were not reviewed by an assessor"]
    open_reasons += [] if record.frozen else ["the campaign is not frozen"]
    return {
        "campaign": opened["campaign"],
        "question": opened["protocol"]["question"],
        "phase": str(state.phase),
        "alpha": alpha,
        "provisional": bool(open_reasons or unreviewed),
        "provisional_why": open_reasons,
        "unreviewed": unreviewed,
        "kind": kind_of(record),
        "cell": opened["cell"]["name"],
        "robot": robot,
        "commitment": opened["commitment"],
        "head": state.head,
        "opened_wall": record.opened_wall,
        "closed_wall": record.closed_wall,
        "times": {
            "zone": zone_words(),
            "opened": local(record.opened_wall),
            "closed": local(record.closed_wall),
        },
        "sessions": [_session(session) for session in record.sessions.values()],
        "flow": {**_flow(state.trials.values(), record), "by_arm": _flow_by_arm(record, arms)},
        "abandoned": _abandoned(record),
        "deviations": [
            *_closed_before(record),
            *unreviewed,
            *_partly_reviewed(record),
            *_durability(record),
            *changes(record),
            *changes_of_robot(record),
            *map(in_line, record.deviations),
            *_gaps(record),
            *_wrong_ends(record),
            *stop_lines(record),
        ],
        "blinding": {
            "deducible_share": opened["deducible_share"],
            "shared_uid": opened["shared_uid"],
            "early_unblinding": (record.unblinding.get("reason") or "none given") if state.unblinded_early else None,
            "statement": ALONE if opened.get("arms_count") == 1 else BLIND_STATEMENT,
        },
        "episodes": [_episode(record, trial, episode) for trial, episode in record.scored],
        "provenance": {
            **_provenance(opened, record.pins),
            **software_facts(record),
            **robot_facts(record),
            "clocks": _clocks(record),
        },
        "hours": hours(record),
        "void_as_failure": voids_as_failures([record], arms, rows),
        "disputed": _disputed(record, arms, rows),
        "stops": stop_facts(record, arms),
    }


def _closed_before(record: Record) -> list[str]:
    """That the campaign was given up, or closed before every trial was run, by whom and why."""
    given_up = _abandoned(record)
    not_run = sum(trial.state == State.NOT_RUN for trial in record.state.trials.values())
    if given_up or not not_run or record.closing is None:
        return given_up
    of = f"{not_run} of {len(record.state.trials)} trials not run"
    return [f"{local(record.closed_wall)}: closed by {record.closed_by} with {of}: {record.closing['reason']}"]


def _abandoned(record: Record) -> list[str]:
    """A line where the campaign was given up."""
    if record.closing is None or not record.closing.get("abandoned"):
        return []
    name, trials = record.state.opened["campaign"], tally(record.state)
    return [f"{name} was abandoned by {record.closed_by}, {trials}: {record.closing['reason']}"]


def _never_reviewed(record: Record) -> list[str]:
    """A line where the campaign was frozen without a review, so that none can come any more."""
    if record.reviewed or not record.frozen:
        return []
    items = queue(record)
    left = sum(item.reviewed is None for item in items)
    seen = f"an assessor went through {len(items) - left} of {len(items)} episodes"
    seen += ", and did not finish the review" if items and not left else ""
    name = record.state.opened["campaign"]
    return [f"{local(record.frozen_wall)}: {name} was frozen by {record.frozen_by} without a review: {seen}"]


def _partly_reviewed(record: Record) -> list[str]:
    """A line where a review was finished though nobody had looked at every episode."""
    items = queue(record) if record.reviewed else []
    seen = sum(item.reviewed is not None for item in items)
    if seen == len(items):
        return []
    of = f"{seen} of {count(len(items), 'episode')}"
    return [f"the review was finished after {of}: the others were in no dispute, and stand as reported"]


def _session(session: Session) -> dict[str, str | list[str]]:
    people = [f"{person.id} ({', '.join(person.roles)})" for person in session.people]
    found: dict[str, str | list[str]] = {"session": session.id, "people": people}
    return found if session.handover is None else {**found, "handover": session.handover}


def _flow(trials: Iterable[Trial], record: Record) -> Counts:
    chosen = {trial.id: trial for trial in trials}
    voids = [one.void for one in record.episodes.values() if one.void and one.trial in chosen]
    after_go = sum(void.after_go for void in voids)
    return {
        "planned": len(chosen),
        "run": sum(len(trial.episodes) for trial in chosen.values()),
        "scored": sum(trial.state == State.SCORED for trial in chosen.values()),
        "not_run": sum(trial.state != State.SCORED for trial in chosen.values()),
        "voids": dict(sorted(Counter(void.reason for void in voids).items())),
        "voids_before_go": len(voids) - after_go,
        "voids_after_go": after_go,
        "ended_early": sum(trial.id in chosen and _ended_early(record, trial, one) for trial, one in record.scored),
    }


def _flow_by_arm(record: Record, arms: Sequence[str]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    of = record.arms
    for arm in arms:
        flow = _flow([trial for trial in record.state.trials.values() if of[trial.id] == arm], record)
        found[arm] = {
            "planned": flow["planned"],
            "run": flow["run"],
            "scored": flow["scored"],
            "not_run": flow["not_run"],
            "ended_early": flow["ended_early"],
            "voids": sum(flow["voids"].values()),
        }
    return found


def voids_left_out(record: Record, counts: Sequence[Row], measures: Collection[str] | None = None) -> Counter[str]:
    """By arm how many episodes were voided after go and are not in the rows of the report: those that are count as no
    success already, as the protocol has it. measures: only of tasks that are counted by one of these.
    """
    there, opened, trials = {row["episode"] for row in counts}, record.state.opened, record.state.trials
    voids = [e for e in record.episodes.values() if e.void and e.void.after_go and e.id not in there]
    return Counter(
        record.arms[episode.trial]
        for episode in voids
        if measures is None or task_of(opened, trials[episode.trial].condition).measure in measures
    )


def voids_as_failures(records: Sequence[Record], arms: Sequence[str], counts: Sequence[Row]) -> list[MovedOfStaged]:
    """Items moved of staged, by the rows of the report, with every void after go counted as an episode in which nothing
    moved; empty if none, if they count so anyway, or for a report by episodes, which has a table of its own. records:
    that the report is of, several of a joint campaign, one of whose protocol all have.
    """
    opened, after_go = records[0].state.opened, Counter[str]()
    for record in records:
        after_go.update(voids_left_out(record, counts))
    if not after_go or by_episodes(opened):
        return []
    found: list[MovedOfStaged] = []
    for arm in arms:
        own = [row for row in counts if row["arm"] == arm]
        staged = sum({row["episode"]: int(row["items_staged"] or 0) for row in own}.values())
        staged += after_go[arm] * opened["items_staged"]
        found.append({"arm": arm, "moved": sum(row["kind"] == "success" for row in own), "staged": staged})
    return found


def _disputed(record: Record, arms: Sequence[str], counts: Sequence[Row]) -> Disputed:
    """Of how many scored episodes the witnesses disagree with the assessor and nobody has reviewed them, by arm, of
    how many the detector could not tell all that it saw, and how many items no witness saw being moved.
    """
    items = queue(record)
    open_ = [(record.arms[item.trial.id], item) for item in items if item.reviewed is None]
    by_arm = Counter(arm for arm, item in open_ if item.disagreements)
    untold = Counter(arm for arm, item in open_ if item.untold)
    return {
        "episodes": by_arm.total(),
        "scored": len(items),
        "by_arm": {arm: by_arm[arm] for arm in arms},
        "untold": {arm: untold[arm] for arm in arms},
        "untimed": sum(row["cause"] == UNTIMED for row in counts),
    }


def _ended_early(record: Record, trial: Trial, episode: Episode) -> bool:
    """Whether somebody ended it, or might have, while work remained: as the cells count it."""
    outcome = trial.outcome
    return outcome is not None and outcome.remaining > 0 and record.ended(trial, episode) in EARLY


def _episode(record: Record, trial: Trial, episode: Episode) -> EpisodeEntry:
    outcome, opened = trial.outcome, record.state.opened
    assert outcome is not None, f"trial {trial.id} is scored without an outcome"
    found: EpisodeEntry = {
        "episode": episode.id,
        "arm": record.arms[trial.id],
        "object": trial.condition if "tasks" in opened else trial.condition.split("/")[0],
        "block": trial.block,
        "outcome": outcome.extent,
        "moved": outcome.moved,
        "staged": outcome.items_staged,
        "end_reason": WRONG_END if outcome.wrong_end else str(record.ended(trial, episode)),
        "stopped_by_hand": None if episode.stop is None else episode.stop.cause or UNSAID,
        "duration_s": episode.duration_s,
        "video": [str(video["file"]) for video in episode.videos.values()],
        "rrd_command": f"labctl show {episode.id}",
    }
    if "tasks" in opened and (task := task_of(opened, trial.condition)).measure != ITEMS:
        found["score"] = task.points(len(outcome.reached_s or ())) if outcome.score is None else outcome.score
    return found


def _gaps(record: Record) -> list[str]:
    lines = list[str]()
    for episode in record.episodes.values():
        lost = dict[str, int]()
        for gap in episode.gaps:
            if gap["lost"]:
                lost[gap["stream"]] = lost.get(gap["stream"], 0) + gap["lost"]
        of = "".join(f"; {number} lost of {stream}" for stream, number in sorted(lost.items()))
        if episode.gaps:
            lines.append(f"episode {episode.id}: {count(len(episode.gaps), 'gap')} in the recording{of}")
    return lines


def _wrong_ends(record: Record) -> list[str]:
    """Where a device ended an episode as all done and a person found items remaining."""
    lines = []
    for trial, episode in record.scored:
        if trial.outcome is not None and trial.outcome.wrong_end:
            left = f"{trial.outcome.remaining} of {trial.outcome.items_staged} items remaining"
            seen = "reviewed" if episode.reviewed is not None else "not reviewed"
            text = f"a device ended it as all done; {episode.scored_by} counted {left}, censored there, {seen}"
            lines.append(f"episode {episode.id}: {text}")
    return lines


def _clocks(record: Record) -> dict[str, str] | None:
    """How each device's clock ran over the campaign; None where no device has one."""
    fits: dict[str, list[Clock]] = {}
    for episode in record.episodes.values():
        for stream, fit in episode.clocks.items():
            fits.setdefault(stream, []).append(fit)
    return {f"{stream}:": campaign_clock(found) for stream, found in sorted(fits.items())} or None


def _durability(record: Record) -> list[str]:
    loose = sum(not one.start["durable"] for one in record.episodes.values() if one.start)
    return [f"journalled without waiting for the disk (simulation only): {count(loose, 'episode')}"] if loose else []


def _provenance(opened: CampaignOpened, pins: Pins | None) -> dict[str, str | Mapping[str, str] | None]:
    files = {"protocol": opened["protocol"], "cell": opened["cell"], "fixture": opened["fixture"]}
    hashes = {f"{name}_sha256": file["sha256"] for name, file in files.items()}
    versions = {"labctl": pins["labctl"], "python": pins["python"], **pins["packages"]} if pins else {}
    git = pins["git"] if pins else None
    commit = f"{git['commit']}{' with local changes' if git['dirty'] else ''}" if git else None
    return {**hashes, "versions": versions, "git": commit}
