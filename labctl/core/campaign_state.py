"""A campaign's state as values: where it stands, its trials, holds and people, and what can be read off them. Pure.

May not: change, or say what may follow (`trial` folds it from the journal and knows the verbs) but of a preference.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from enum import StrEnum

from labctl.core.event_bodies import CampaignOpened, body_of
from labctl.core.events import GENESIS, Event
from labctl.core.published_state import Compare
from labctl.core.session import People, Role, Session
from labctl.core.trial_table import FINISHED, PREFERRED, State, Trial
from labctl.errors import InputError, StateError
from labctl.messages.judgements import PreferenceStated

AFTER_TRIAL, AFTER_BLOCK = "after_trial:", "after_block:"  # codes of holds a person asked for, to begin later


class Phase(StrEnum):
    """Where a campaign stands."""

    DRAFT = "draft"
    OPEN = "open"
    CLOSED = "closed"
    REVIEWED = "reviewed"
    FROZEN = "frozen"
    UNBLINDED = "unblinded"


# What is left to do in each phase until the arms are known, in words.
TO_UNBLINDED: Mapping[Phase, str] = {
    Phase.OPEN: "close, review, freeze and unblind",
    Phase.CLOSED: "review, freeze and unblind",
    Phase.REVIEWED: "freeze and unblind",
    Phase.FROZEN: "unblind",
}


_NOTHING = Event(0, "", 0, "", "", "")


@dataclass(frozen=True, slots=True)
class CampaignState:
    """What the journal says now. `trials` are in schedule order; `holds` map codes to texts, `raised` each code to the
    seq of the event that raised it last; `opened` is CampaignOpened's body; `people` are all who were ever in a
    session, with their roles.

    `last_seq` and `head` are the seq and hash of the last event; `unblinded_early` tells whether arms were revealed
    before freezing. `alike`: why the last episodes are void, for a reason of the machine's own or for what ended them
    before go, and how many in a row for that one since one was scored, a run was started or a hold for them was
    acknowledged. `order` are the trial ids in schedule order, of which the first `finished` need no more attention.
    `episodes`: every episode that any trial ever had.
    """

    phase: Phase = Phase.DRAFT
    trials: Mapping[str, Trial] = field(default_factory=dict[str, Trial])
    holds: Mapping[str, str] = field(default_factory=dict[str, str])
    raised: Mapping[str, int] = field(default_factory=dict[str, int])
    faulted: str | None = None
    session: Session | None = None
    people: People = field(default_factory=dict[str, frozenset[Role]])
    opened: CampaignOpened = field(default_factory=lambda: body_of(_NOTHING, CampaignOpened))  # empty until then
    unblinded_early: bool = False
    alike: tuple[str, int] = ("", 0)
    order: tuple[str, ...] = ()
    finished: int = 0
    episodes: AbstractSet[str] = frozenset()
    last_seq: int = 0
    head: str = GENESIS


def next_trial(state: CampaignState) -> Trial | None:
    """The first trial in order that is neither scored nor given up; None when there is none left."""
    return state.trials[state.order[state.finished]] if state.finished < len(state.order) else None


def blocks_in_all(state: CampaignState) -> int:
    """How many blocks there are; of a part of a joint campaign, whose blocks keep their numbers, over all cells."""
    joint = state.opened.get("joint")
    return len({trial.block for trial in state.trials.values()}) if joint is None else joint["of"]


def tally(state: CampaignState) -> str:
    """How many trials are scored and not run, and what is neither yet, in words."""
    found = Counter(trial.state for trial in state.trials.values())
    scoring, finished = found[State.SCORING], sum(found[done] for done in FINISHED)
    left = len(state.trials) - finished - scoring
    parts = [f"{found[State.SCORED]} scored", f"{found[State.NOT_RUN]} not run"]
    parts += [f"{scoring} to be scored"] if scoring else []
    return ", ".join([*parts, f"{left} left"] if left else parts)


def standing(state: CampaignState, trial: Trial | None) -> dict[str, str]:
    """The journalled holds that concern this trial now. One asked for "after_trial:ID" or "after_block:N" waits until
    another trial, or another block, has its turn.
    """
    waiting: set[str] = {f"{AFTER_TRIAL}{trial.id}", f"{AFTER_BLOCK}{trial.block}"} if trial else set()
    return {code: text for code, text in state.holds.items() if code not in waiting}


def crashes_count(opened: CampaignOpened) -> bool:
    """Whether an arm's own crash after go counts. opened: CampaignOpened's body; before November 2026 it said nothing,
    and such an episode was voided or scored as its `process_lost` had it.
    """
    return (opened.get("estimand") or {}).get("crash", "void") != "void"


def pairs(state: CampaignState) -> list[tuple[Compare, PreferenceStated | None]]:
    """The pairs of episodes of which it was asked which was better, in their order, and what was said of each."""
    owners = {trial.episode: trial for trial in state.trials.values()}
    return [
        (
            {
                "question": state.opened.get("preference", ""),
                "block": trial.block,
                "first": trial.compared,
                "second": trial.episode or "",
                "trials": [owners[trial.compared].place, trial.place],
                "places": [owners[trial.compared].position + 1, trial.position + 1],
            },
            trial.preference,
        )
        for trial in state.trials.values()
        if trial.compared
    ]


def stated(
    state: CampaignState, first: str, second: str, preferred: str, why: str, seen: str | None = None
) -> tuple[Trial, PreferenceStated]:
    """What an assessor says of two episodes, and the trial that it stands with. Raises InputError for episodes that do
    not count or were not drawn and for an answer that is none, StateError where another word on them stands than was
    `seen`, a `said_of`.
    """
    for episode in (first, second):
        owner = next((trial for trial in state.trials.values() if episode in trial.episodes), None)
        if owner is None:
            raise InputError(f"there is no episode {episode!r} in this campaign; labctl episodes lists them")
        if owner.episode != episode:
            raise InputError(f"episode {episode} of {owner.place} is void; a preference is about two that count")
        if owner.state != State.SCORED:
            raise InputError(f"episode {episode} is not scored yet; a preference comes after the score")
    trial = next(trial for trial in state.trials.values() if trial.episode == second)
    if trial.compared != first:
        pairs_asked = [f"{one.compared} and {one.episode}" for one in state.trials.values() if one.compared]
        raise InputError(f"{first} and {second} are not compared; asked is about {'; '.join(pairs_asked) or 'none'}")
    if seen is not None and seen != said_of(trial.preference):
        now = said_of(trial.preference)
        raise StateError(f"nothing was written: since {first} and {second} were shown, it was said: {now}: look again")
    if preferred not in PREFERRED:
        raise InputError(f"preferred is {preferred!r}; it is one of {', '.join(PREFERRED)}")
    if not why.strip():
        raise InputError("why is empty; say in a sentence what made the difference, or why there is none")
    return trial, {"first": first, "second": second, "preferred": preferred, "why": why.strip()}


def said_of(stated: PreferenceStated | None) -> str:
    """What a screen that shows a pair names when it says which was better, for `stated`; "" where nobody has said."""
    return "" if stated is None else f"{stated['preferred']}: {stated['why']}"
