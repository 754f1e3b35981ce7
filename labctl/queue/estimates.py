"""How long what waits will take at the rig, by what trials took in this lab so far (`labctl plan` counts the same way).

May not: tell times by arm or of a block under way, or what is sealed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from labctl.checks.protocol_size import HOUR, Effort, hours, preview
from labctl.config.protocol_schema import parse_protocol
from labctl.core.task import task_of
from labctl.core.trial import FINISHED, Phase
from labctl.errors import LabctlError, StateError
from labctl.queue.entries import CAMPAIGN, PROTOCOL, Entry, Queue
from labctl.queue.forecast import Work
from labctl.queue.opened import opened_from, takes_no_arm
from labctl.reporting.times.lab_times import LabTimes, lab_times
from labctl.store.lab_folder import campaign_folder, read_plan, read_text
from labctl.store.verifying.verified import JOURNAL_ALONE, verified

MANY = 1000  # trials over which the time of one is said
GUESSED = "a guess, as no block was scored in a real cell of this lab yet"
UNKNOWN = "not known"
PROTOCOLS = "protocols"


def works(lab: Path, queue: Queue, ended: Mapping[str, str]) -> list[Work]:
    """Of every entry in the order of its turn. What cannot be read, a submission that can become no arm any more
    (ended: why, by its id) and one that wishes for what was opened already have no hours and say why.
    """
    usual = _measured(lab, ())
    return [
        Work(entry.name, 0, None, f"none for {entry.name}: {ended[entry.name]}", waits=True)
        if entry.name in ended
        else _work(lab, queue, entry, usual)
        for entry in queue.entries
    ]


def _work(lab: Path, queue: Queue, entry: Entry, usual: LabTimes | None) -> Work:
    try:
        if entry.kind == CAMPAIGN:
            trials, trial_s, source = _of_campaign(lab, entry.name, usual)
        elif entry.kind == PROTOCOL:
            trials, trial_s, source = _of_protocol(lab / str(entry.path), usual, alone=False)
        else:
            wished = queue.submission(entry.name).wished
            if (opened := opened_from(lab, wished)) is not None:
                why = f"none for {entry.name}: {takes_no_arm(opened, wished)}"
                return Work(entry.name, 0, None, why, waits=True)
            path = _wished(lab, queue, wished)
            if path is None:
                return Work(entry.name, 0, None, f"{UNKNOWN}: no protocol of that name is in the lab", waits=True)
            trials, trial_s, source = _of_protocol(path, usual, alone=True)
    except LabctlError as error:
        return Work(entry.name, 0, None, f"{UNKNOWN}: {error}", waits=True)
    return Work(entry.name, trials, trial_s, source, waits=bool(entry.paused))


def _of_campaign(lab: Path, name: str, usual: LabTimes | None) -> tuple[int, float, str]:
    folder = campaign_folder(name, lab)
    with verified(folder, JOURNAL_ALONE) as shown:
        state, opened = shown.campaign.state, shown.campaign.opened
    if state.phase != Phase.OPEN:
        return 0, 1.0, f"the campaign is {state.phase}"
    left = [trial for trial in state.trials.values() if trial.state not in FINISHED]
    if not left:
        return 0, 1.0, "every trial is finished"
    budgets = [task_of(opened, trial.condition).budget_s for trial in left]
    times = _measured(lab, (name,)) or usual
    budget_s = sum(budgets) / len(budgets)
    return len(left), _trial_s(opened["arming_s"], budget_s, times), _source(times)


def _of_protocol(path: Path, usual: LabTimes | None, *, alone: bool) -> tuple[int, float, str]:
    """Of all its trials, or (alone) of those that one arm more adds: one a block."""
    plan = read_plan(path)
    seen = preview(plan.protocol, plan.fixture)
    budgets = [task.budget_s for task in plan.protocol.tasks]
    trials = seen.blocks if alone else seen.trials
    return trials, _trial_s(plan.protocol.trial.arming_s, sum(budgets) / len(budgets), usual), _source(usual)


def _trial_s(arming_s: float, budget_s: float, times: LabTimes | None) -> float:
    """Seconds at the rig for one scored trial, breaks and voids included, sessions not."""
    effort = Effort()
    if times is not None:
        run_s = min(times.running_s, budget_s)
        effort = replace(effort, staging_s=times.staging_s, scoring_s=times.scoring_s, run_s=run_s, void_share=0.0)
    of_many = hours(MANY, arming_s, budget_s, effort)
    return HOUR * (of_many.total - of_many.review - of_many.sessions_open_close) / MANY


def _source(times: LabTimes | None) -> str:
    return GUESSED if times is None else times.source


def _measured(lab: Path, named: Sequence[str]) -> LabTimes | None:
    try:
        return lab_times(lab, named)
    except StateError:  # no whole block of it yet
        return None


def _wished(lab: Path, queue: Queue, name: str) -> Path | None:
    """The protocol that a submission wishes for: one that waits, else one of the lab's."""
    waits = next((one.path for one in queue.entries if one.kind == PROTOCOL and one.name == name), None)
    if waits is not None:
        return lab / waits
    return names_in(lab).get(name)


def names_in(lab: Path) -> dict[str, Path]:
    """The protocols of a lab's folder of them, by name; one that cannot be read has none."""
    found: dict[str, Path] = {}
    for path in sorted((lab / PROTOCOLS).glob("*.toml")):
        with suppress(LabctlError):
            found.setdefault(parse_protocol(read_text(path), str(path)).protocol.name, path)
    return found
