"""Writes an assessor's review, or what was practised, into a campaign: by the run process while one is going, else by
itself.

May not: judge anything (`reviewed`, `practised` and the report do), or learn an arm.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from labctl.bus import Body
from labctl.clock import SECOND, Anchor, MonotonicClock
from labctl.core.campaign_state import pairs, stated
from labctl.core.event_bodies import OperationRecorded
from labctl.core.events import Kind
from labctl.core.reviewed import check_seen, confirmed, looked_at, queue, unsettled
from labctl.core.session import Person, Role, Session, check_person, present
from labctl.core.task import task_of
from labctl.errors import StateError
from labctl.messages.judgements import WitnessStated
from labctl.people.practised import practice_from
from labctl.plain import Json, count
from labctl.runtime.attach import Attachment
from labctl.runtime.recorded_orders import correction, second_outcome
from labctl.store.campaign import Campaign, writing
from labctl.store.verifying.verified import JOURNAL_ALONE, verified

PATIENCE_NS = 5 * SECOND


def review(
    folder: Path,
    trial: str,
    operations: Sequence[OperationRecorded],
    *,
    who: str,
    seen: int,
    note: str = "",
    anchor: Anchor | None = None,
) -> None:
    """Journal that an assessor went over an episode: its operations as they saw them, or that its outcome stands.
    seen: what they saw of it, the item's. Raises as `reviewed.check_seen` and `reviewed.confirmed`.
    """
    args = {"trial": trial, "operations": list(operations), "note": note, "seen": seen}
    if by_the_run(folder, "review", who, args):
        return
    with writing(folder, "review", anchor) as (campaign, now):
        check_assessor(campaign, who)
        about = campaign.state.trials[trial]
        check_seen(about, task_of(campaign.opened, about.condition), seen)
        kind, body = confirmed(about, operations, note)
        campaign.log(kind, body, anchor=now, who=who, trial=trial, episode=about.episode)


def judge(folder: Path, trial: str, outcome: Mapping[str, Json], *, who: str, anchor: Anchor | None = None) -> None:
    """Journal what a second assessor says of an episode. Raises StateError for one who cannot be it, InputError for a
    contradiction.
    """
    if by_the_run(folder, "judge", who, {"trial": trial, **outcome}):
        return
    with writing(folder, "review", anchor) as (campaign, now):
        check_assessor(campaign, who)
        about = campaign.state.trials[trial]
        body = {"outcome": second_outcome(campaign, about, outcome, who).body()}
        campaign.log(Kind.OUTCOME_JUDGED, body, anchor=now, who=who, trial=trial, episode=about.episode)


def hear(folder: Path, trial: str, said: WitnessStated, *, who: str, anchor: Anchor | None = None) -> None:
    """Journal what a model said of an episode when this person had it asked. Raises StateError while somebody runs the
    campaign, for a trial that is not scored and for who is no assessor.
    """
    with writing(folder, "review", anchor) as (campaign, now):
        check_assessor(campaign, who)
        about = campaign.state.trials[trial]
        campaign.log(Kind.WITNESS_STATED, said, anchor=now, who=who, trial=trial, episode=about.episode)


def prefer(
    folder: Path,
    first: str,
    second: str,
    preferred: str,
    *,
    who: str,
    why: str,
    seen: str,
    anchor: Anchor | None = None,
) -> None:
    """Journal which of two episodes an assessor found better. seen: what they saw said of them, as
    `campaign_state.said_of` has it. Raises as `campaign_state.stated`.
    """
    args = {"first": first, "second": second, "preferred": preferred, "why": why, "seen": seen}
    if by_the_run(folder, "prefer", who, args):
        return
    with writing(folder, "review", anchor) as (campaign, now):
        check_assessor(campaign, who)
        trial, preference = stated(campaign.state, first, second, preferred, why, seen)
        campaign.log(Kind.PREFERENCE_STATED, preference, anchor=now, who=who, trial=trial.id, episode=trial.episode)


def correct(
    folder: Path,
    trial: str,
    outcome: Mapping[str, Json],
    *,
    who: str,
    why: str,
    seen: int,
    anchor: Anchor | None = None,
) -> None:
    """Correct the outcome of a scored trial. seen: as of `review`. Raises InputError for a contradiction,
    StateError.
    """
    if by_the_run(folder, "correct", who, {"trial": trial, "why": why, "seen": seen, **outcome}):
        return
    with writing(folder, "review", anchor) as (campaign, now):
        check_assessor(campaign, who)
        about = campaign.state.trials[trial]
        check_seen(about, task_of(campaign.opened, about.condition), seen)
        body = correction(campaign, about, outcome, why)
        campaign.log(Kind.OUTCOME_CORRECTED, body, anchor=now, who=who, trial=trial, episode=about.episode)


def finish(folder: Path, *, who: str, anchor: Anchor | None = None) -> str:
    """No more review of a closed campaign. Raises StateError while an episode in dispute is not reviewed as it
    stands."""
    with writing(folder, "review", anchor) as (campaign, now):
        check_assessor(campaign, who)
        name, phase = folder.name, campaign.state.phase
        if left := len(unsettled(queue(campaign.record()))):
            raise StateError(
                f"in dispute and not reviewed yet: {count(left, 'episode')}: labctl review {name}; "
                f"or freeze without a review: labctl freeze {name} --unreviewed"
            )
        if unsaid := sum(stated is None for _, stated in pairs(campaign.state)):
            raise StateError(
                f"of {count(unsaid, 'pair')} of episodes nobody has said which was better: labctl review {name}; "
                f"or freeze without a review: labctl freeze {name} --unreviewed"
            )
        if phase == "open":
            raise StateError(f"{name} is open; its review is finished once it is closed: labctl close {name}")
        if phase != "closed":
            raise StateError(f"the review of {name} is over: it is {phase}")
        campaign.log(Kind.CAMPAIGN_REVIEWED, {"by": who}, anchor=now, who=who)
        seen = looked_at(campaign.record())
    return f"review finished: {seen}; next: labctl freeze {folder.name}"


def register(folder: Path, who: str, anchor: Anchor | None = None) -> None:
    """Enter this person as assessor: a session of theirs alone, which begins and ends here, after one that was left
    open has ended. Raises StateError while somebody runs the campaign: people are entered at a console then.
    """
    with writing(folder, "review", anchor) as (campaign, now):
        if who in campaign.state.people and Role.ASSESSOR in campaign.state.people[who]:
            return
        left = campaign.state.session
        if left is not None:
            body = {"session": left.id, "handover": "left open; ended when an assessor was entered"}
            campaign.log(Kind.SESSION_CLOSED, body, anchor=now, who=who)
        session = Session(f"s-{campaign.state.last_seq + 1}", (Person(who, (Role.ASSESSOR,)),))
        campaign.log(Kind.SESSION_OPENED, session.body(), anchor=now, who=who)
        campaign.log(Kind.SESSION_CLOSED, {"session": session.id, "handover": ""}, anchor=now, who=who)


def check_may_review(folder: Path, who: str) -> None:
    """Before anything is shown: as `check_assessor`; and BrokenRecord for what nobody may judge by."""
    with verified(folder, JOURNAL_ALONE) as shown:
        check_assessor(shown.campaign, who)


def check_assessor(campaign: Campaign, who: str) -> None:
    """Whether this person is here as assessor. Raises StateError that says how to become one."""
    state = campaign.state
    try:
        check_person(present(state.session, state.people), who, Role.ASSESSOR)
    except StateError as error:
        name = campaign.folder.name
        raise StateError(f"{error}; who reviews enters once: labctl review {name} --who {who} --register") from None


def record_practice(folder: Path, args: Mapping[str, Json], *, who: str, anchor: Anchor | None = None) -> None:
    """Journal one practice episode, args as `practised.practice_from` reads them.

    Raises InputError for what cannot be, StateError for a campaign that is no longer open.
    """
    if by_the_run(folder, "practice", who, args):
        return
    with writing(folder, "practice", anchor) as (campaign, now):
        if campaign.state.phase != "open":
            raise StateError(f"campaign {folder.name} is {campaign.state.phase}; practice comes before its last trial")
        campaign.log(Kind.PRACTICE_RECORDED, practice_from(args, campaign.opened), anchor=now, who=who)


def by_the_run(folder: Path, verb: str, who: str, args: Body) -> bool:
    """Have the running process do it; False when none is going. Raises StateError with its refusal."""
    try:
        link = Attachment(folder)
    except StateError:
        return False
    clock = MonotonicClock()
    try:
        sent = link.command(verb, who=who, role="assessor", args=args)
        until = clock.now_ns() + PATIENCE_NS
        while clock.now_ns() < until:
            for message in link.poll():
                if message.kind == "reply" and message.body["id"] == sent:
                    if not message.body["ok"]:
                        raise StateError(message.body["error"])
                    return True
            clock.sleep_until(clock.now_ns() + SECOND // 50)
    finally:
        link.close()
    raise StateError("the run process did not answer; try again, or end the run first")
