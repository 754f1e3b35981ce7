"""Gets the robot ready for the trial at hand: it goes where episodes begin, and a simulated cell sets its scene.

May not: move the robot but on the setter's order (one order, one way home), or when this process stops: the way home
runs under a lease like all motion.
"""

from __future__ import annotations

from labctl.bus import Step
from labctl.core.events import Kind
from labctl.core.trial import State, Trial
from labctl.messages.motion import LEASE_RENEWALS, Lease, Stage, Stop
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.episode_sequencer import EpisodeSequencer


class Staging:
    """State: the trial asked for, the one that is staged, the lease of the way home."""

    def __init__(self, writer: CampaignWriter, sequencer: EpisodeSequencer) -> None:
        self._writer = writer
        self._sequencer = sequencer
        self._conditions = {entry["id"]: entry for entry in writer.opened["conditions"]}
        self.asked: str | None = None  # the trial for which the robot is on its way home
        self._epoch = 0
        self.next_lease_ns = 0
        self.done: str | None = None

    def ask(self, trial: Trial, now_ns: int, step: Step) -> None:
        """The scene is the same for every arm of a block, at every attempt: a pair starts from one scene. A real one is
        set by the setter while the robot goes home.
        """
        self.done, self.asked = None, trial.id
        self._epoch = self._sequencer.new_epoch()
        condition = {**self._conditions[trial.condition], "items": self._writer.tasks[trial.condition].items}
        seed = self._writer.ledger.seed(f"scene:{trial.block}:0")  # of every attempt what was the first's
        until_ns = now_ns + self._sequencer.lease_ns
        step.out.append(Stage(trial.id, condition, seed, self._epoch, None, until_ns).to("arm"))
        self._renew(now_ns, step)

    def hear(self, trial: str, now_ns: int, step: Step) -> None:
        """The robot is home for this trial, and needs no lease any more."""
        if trial == self.asked:
            self.done, self.asked = trial, None
            self._writer.hands.waits(now_ns)
            step.out.append(Lease(self._epoch, None, 0).to("@lease"))

    def give_up(self, reason: str, step: Step) -> None:
        """The robot stopped, or its process is gone: the trial that was being staged, or was, is planned again, and
        stays so until somebody orders it.
        """
        trial = self._writer.current()
        if self.asked is not None:
            self._let_go(step)
        self.forget()
        if trial is not None and trial.state == State.STAGING:
            self._writer.log(Kind.TRIAL_RELEASED, {"reason": reason}, trial=trial.id)

    def forget(self) -> None:
        """Whatever was staged no longer holds: the scene has changed, or the trial was released."""
        self.done = self.asked = None

    def _let_go(self, step: Step) -> None:
        step.out.append(Lease(self._epoch, None, 0).to("@lease"))
        step.out.append(Stop(self._epoch).to("arm"))

    def advance(self, trial: Trial | None, now_ns: int, step: Step) -> None:
        """Renew the lease while the robot is on its way; let go of it once that is not wanted any more."""
        if self.asked is None:
            return
        if trial is None or trial.id != self.asked or trial.state != State.STAGING:
            self._let_go(step)
            self.forget()
        elif now_ns >= self.next_lease_ns:
            self._renew(now_ns, step)

    def _renew(self, now_ns: int, step: Step) -> None:
        self.next_lease_ns = now_ns + self._sequencer.lease_ns // LEASE_RENEWALS
        step.out.append(Lease(self._epoch, None, now_ns + self._sequencer.lease_ns).to("@lease"))
