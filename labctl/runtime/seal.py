"""Where a committed trial's arm comes from: this campaign's own seal, or the seal host of the joint campaign that it is
a part of, without which no trial begins.

May not: name an arm, keep a run or an episode waiting, or turn a link that is down into a void: what is committed is
given back, and a hold says why.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from labctl.bus import Message, Step, Work
from labctl.clock import SECOND
from labctl.core.events import Kind
from labctl.core.interlock import Hold
from labctl.core.trial import State, Trial
from labctl.errors import StateError
from labctl.joint.asking import Hello, Revealed, SealLink
from labctl.joint.cell import link_of
from labctl.joint.state import HeadBody, back, check_clock
from labctl.messages.joint import SealAnswer
from labctl.plain import Json
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.episode_sequencer import EpisodeSequencer

ANSWERED = "arm_host"
GIVEN_AWAY = "another cell has this block"
REFUSES = "the seal host refuses"
GREET_NS, GREET_AGAIN_NS = 5 * SECOND, 2 * SECOND  # between questions whether it is there: while it is, while it is not
PATIENCE_NS = 60 * SECOND  # how long a run that nobody attends waits for it


class OwnSeal:
    """The seal of a campaign by itself: it is at hand."""

    def __init__(self, writer: CampaignWriter, sequencer: EpisodeSequencer) -> None:
        self._writer, self._sequencer = writer, sequencer

    def ask(self, trial: Trial, now_ns: int, cameras: Sequence[str], step: Step) -> None:
        """The arm of a trial that was just committed is wanted."""
        self._sequencer.reveal(trial, now_ns, cameras, step)

    def advance(self, trial: Trial | None, now_ns: int, step: Step) -> None:
        """What the clock makes due. trial: the one at hand."""

    def hear(self, message: Message, now_ns: int, step: Step, against: Callable[[], Sequence[Hold]]) -> None:
        """What was asked came back. against: the holds against a reveal now."""

    @property
    def hold(self) -> Hold | None:
        """Against the next trial."""
        return None

    def unattended(self) -> str:
        """Why a run that nobody attends cannot go on, in words; "" while it can."""
        return ""


class JointSeal(OwnSeal):
    """The seal host of a joint campaign, asked beside the run. live: in real time, where it is asked again and again
    whether it is there; in simulated time it is asked at the start and at each commit.
    """

    def __init__(self, writer: CampaignWriter, sequencer: EpisodeSequencer, link: SealLink, *, live: bool) -> None:
        super().__init__(writer, sequencer)
        self._link, self._live = link, live
        self._asking = False
        self._greet_ns = 0
        self._cameras: Sequence[str] = ()
        self._away = ""  # why nothing can be revealed, in words
        self._away_ns = 0  # since when
        self._now_ns = 0
        self._not_mine: frozenset[str] = frozenset()

    def ask(self, trial: Trial, now_ns: int, cameras: Sequence[str], step: Step) -> None:
        seq, own = self._writer.campaign.journal.head()
        skipped = [one.id for one in self._writer.state.trials.values() if one.state == State.NOT_RUN]
        self._cameras, head = cameras, HeadBody(seq=seq, hash=own)
        link = self._link
        step.work.append(Work(lambda: link.reveal(trial.id, head, skipped), ANSWERED, tag=trial.id, alone=True))

    def advance(self, trial: Trial | None, now_ns: int, step: Step) -> None:
        self._now_ns = now_ns
        if not self._asking and now_ns >= self._greet_ns:
            self._asking = True
            step.work.append(Work(self._link.hello, ANSWERED, alone=True))
        if trial is not None and trial.id in self._not_mine and trial.state in (State.PLANNED, State.STAGING):
            if trial.state == State.STAGING:
                self._writer.log(Kind.TRIAL_RELEASED, {"reason": GIVEN_AWAY}, trial=trial.id)
            self._writer.log(Kind.TRIAL_SKIPPED, {"reason": GIVEN_AWAY}, trial=trial.id)
            self._writer.say(f"{trial.place}: not run ({GIVEN_AWAY})")

    def hear(self, message: Message, now_ns: int, step: Step, against: Callable[[], Sequence[Hold]]) -> None:
        error, tag = message.body.get("error"), str(message.body.get("tag") or "")
        if not tag:
            self._asking = False
            self._greet_ns = now_ns + (GREET_AGAIN_NS if error else GREET_NS) if self._live else 1 << 62
        if error:
            self._gone(error, now_ns)
        elif not tag:
            self._greeted(message.body.get("result"), now_ns)
        trial = self._writer.state.trials.get(tag)
        if trial is None or trial.state != State.COMMITTED:
            return  # a greeting, or the trial was given back meanwhile: asked again, it gets the same arm
        live = () if error else [hold for hold in against() if hold.code != _AWAY]
        if error or live:
            why = self._away if error else "; ".join(hold.text for hold in live)
            self._writer.log(Kind.TRIAL_RELEASED, {"reason": why}, trial=trial.id)
            self._writer.say(f"{trial.place}: not begun, and planned again: {why}")
            return
        self._begin(message.body["result"], trial, now_ns, step)

    def _begin(self, found: Revealed, trial: Trial, now_ns: int, step: Step) -> None:
        self._away = ""
        self._writer.ledger.learn(trial.id, found.arm)
        beside = SealAnswer(
            seq=found.head["seq"],
            hash=found.head["hash"],
            offset_s=found.clock["offset_s"],
            bound_s=found.clock["bound_s"],
        )
        self._sequencer.reveal(trial, now_ns, self._cameras, step, beside)

    def _greeted(self, found: Json | Hello, now_ns: int) -> None:
        assert isinstance(found, Hello)
        self._not_mine = frozenset(found.not_yours)
        try:
            check_clock(found.clock, found.limit_s)
        except StateError as error:
            self._gone(str(error), now_ns)
            return
        if found.gone:
            joint = self._writer.campaign.opened.get("joint")
            assert joint is not None, "only a part of a joint campaign asks a seal host"
            how = back(joint["name"], joint["cell"])
            self._gone(f"{REFUSES}: this cell was declared gone; a person orders there: {how}", now_ns)
            return
        if self._away:
            self._writer.say("the seal host answers again")
        self._away = ""

    def _gone(self, why: str, now_ns: int) -> None:
        if not self._away:
            self._away_ns = now_ns
            self._writer.say(f"no new trial begins: {why}")
        self._away = why

    @property
    def hold(self) -> Hold | None:
        if not self._away:
            return None
        clears = "no new trial begins until the seal host reveals its arm; an episode that runs goes on to its end"
        return Hold(_AWAY, self._away, clears)

    def unattended(self) -> str:
        waited = self._now_ns - self._away_ns >= PATIENCE_NS
        return self._away if waited or not self._live or self._away.startswith(REFUSES) else ""


_AWAY = "seal_away"


def joint_seal(writer: CampaignWriter, sequencer: EpisodeSequencer, *, live: bool) -> JointSeal:
    """The seal host that a part's invitation names. Raises InputError for a key that others may read."""
    return JointSeal(writer, sequencer, link_of(writer.campaign.folder, writer.opened), live=live)
