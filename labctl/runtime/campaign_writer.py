"""What writes a running campaign: journal, folded state, ledger and the line printed for the operator.

May not: decide anything, or print what a blind role must not see.
"""

from __future__ import annotations

from collections.abc import Callable

from labctl.bus import Body
from labctl.clock import SECOND, Anchor
from labctl.core.events import Event, Kind
from labctl.core.run_facts import RunFacts
from labctl.core.task import tasks_of
from labctl.core.trial import State, Trial, advance, next_trial
from labctl.errors import StorageError
from labctl.plain import Json
from labctl.store.campaign import Campaign
from labctl.store.chain_heads import append_head, head_text
from labctl.store.scene_references import References

# What a run keeps a head after, whoever orders it, and how it is called when that head is printed; "": it is not, or
# with a line of its own.
HEADED = {
    Kind.RUN_STARTED: "",
    Kind.OUTCOME_RECORDED: "",
    Kind.EPISODE_VOIDED: "a void",
    Kind.OUTCOME_CORRECTED: "a correction",
    Kind.OPERATIONS_REVIEWED: "a review",
    Kind.TRIAL_SKIPPED: "a trial that is not run",
    Kind.SESSION_CLOSED: "a session",
    Kind.RUN_STOPPED: "",
}


class Hands:
    """What the trial at hand takes of people at consoles, since the one before was scored or skipped. A trial that this
    run did not see from its beginning has none.
    """

    def __init__(self) -> None:
        self._whole = False
        self._keys: int | None = None
        self._waited_ns = 0
        self._since_ns: int | None = None  # since when it waits for a person

    def pressed(self, keys: int | None) -> None:
        """A console sent a command; None: from what has no keys."""
        if keys is not None:
            self._keys = (self._keys or 0) + keys

    def waits(self, now_ns: int) -> None:
        """From now on nothing goes on before a person does something."""
        self._since_ns = now_ns

    def note(self, kind: str, now_ns: int, *, begun: bool) -> None:
        """An entry of this run. begun: the trial at hand had an episode before."""
        if kind in _BEGINS:
            self._whole, self._keys, self._waited_ns = not begun, None, 0
        if kind in _WAITS or kind in _BEGINS:
            self.waits(now_ns)
        elif kind in _GOES_ON and self._since_ns is not None:
            self._waited_ns, self._since_ns = self._waited_ns + now_ns - self._since_ns, None

    def body(self, now_ns: int) -> dict[str, Json]:
        """What OutcomeRecorded keeps of it."""
        if self._keys is None or not self._whole:
            return {}
        waited_ns = self._waited_ns + (0 if self._since_ns is None else now_ns - self._since_ns)
        return {"hands": {"keys": self._keys, "waited_s": round(waited_ns / SECOND, 3)}}


_BEGINS = frozenset({Kind.RUN_STARTED, Kind.SESSION_OPENED, Kind.OUTCOME_RECORDED, Kind.TRIAL_SKIPPED})
_WAITS = frozenset({Kind.TRIAL_RELEASED, Kind.EPISODE_VOIDED, Kind.RECORDING_SEALED})
_GOES_ON = frozenset({Kind.TRIAL_STAGING, Kind.SCENE_COMMITTED})


class CampaignWriter:
    """Journals events and keeps the campaign's state in step with them. `anchor` reads the clock, `say` prints a
    line, `on_head` hears that a head was kept.
    """

    def __init__(
        self,
        campaign: Campaign,
        anchor: Callable[[], Anchor],
        say: Callable[[str], None],
        who: str,
        on_head: Callable[[], None] = lambda: None,
    ) -> None:
        self.campaign = campaign
        self.ledger = campaign.ledger
        self.state = campaign.state
        self.opened = campaign.opened
        self.facts = RunFacts()
        self.tasks = tasks_of(campaign.opened)
        self.references = References()
        self.hands = Hands()
        for event in campaign.events():
            self._note(event)
        self.anchor = anchor
        self.say = say
        self._who = who
        self._on_head = on_head

    def log(
        self,
        kind: Kind,
        body: Body | None = None,
        *,
        trial: str | None = None,
        episode: str | None = None,
        who: str | None = None,
        command_id: str | None = None,
    ) -> Event:
        """Commit an event and fold it in. Raises StateError before writing when it would be illegal in this state."""
        anchor, body = self.anchor(), self.ledger.binding(kind, body or {})
        trying = Event(
            self.state.last_seq + 1,
            kind,
            anchor.mono_ns,
            anchor.boot,
            anchor.wall,
            who or self._who,
            trial,
            episode,
            body,
        )
        advance(self.state, trying)
        event = self.campaign.journal.append(
            kind, anchor=anchor, who=who or self._who, trial=trial, episode=episode, body=body, command_id=command_id
        )
        self.state = advance(self.state, event)
        self._note(event)
        if kind in (Kind.RUN_STARTED, Kind.OUTCOME_RECORDED):
            self.ask_preferences()
        turn = self.current()
        if kind != Kind.RECORDING_SEALED or (turn and turn.episode == episode):  # else nobody waited for it
            self.hands.note(kind, event.at_ns, begun=bool(turn and turn.episodes))
        if kind in HEADED:
            self._keep_head(HEADED[kind])
        return event

    def ask_preferences(self) -> None:
        """Once both episodes of the pair that was drawn for a block are scored, it is asked which was better. A run
        that was killed in between had not asked.
        """
        if "preference" not in self.opened:
            return
        scored = {trial.id: trial for trial in self.state.trials.values() if trial.state == State.SCORED}
        for pair in self.ledger.compared().values():
            first, second = (scored.get(name) for name in pair)
            if first is not None and second is not None and not second.compared:
                two = {"first": first.episode, "second": second.episode}
                self.log(Kind.PREFERENCE_ASKED, two, trial=second.id, episode=second.episode)

    def _note(self, event: Event) -> None:
        self.references.note(event)
        self.facts.note(event)

    def print_head(self) -> str:
        """The chain's head, for printing."""
        return f"head {head_text(*self.campaign.journal.head())}"

    def _keep_head(self, after: str) -> None:
        """Append the chain's head to the file outside the database. What cannot be appended is said: the entry stands,
        the next head covers it, and no episode ends for it.
        """
        seq, head = self.campaign.journal.head()
        try:
            append_head(self.campaign.folder, seq, head, self.anchor().wall)
        except StorageError as error:
            self.say(f"{self.print_head()} is not kept: {error}")
            return
        if after:
            self.say(f"{self.print_head()}  after {after}")
        self._on_head()

    def current(self) -> Trial | None:
        """The first trial that is neither scored nor not_run."""
        return next_trial(self.state)
