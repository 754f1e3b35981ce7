"""Gets the arm ready for the trial at hand: it goes where episodes begin, and a simulated cell sets its scene.

May not: move the arm without the setter's word (a trial in staging), while a hold stands, or when this process stops:
the way home runs under a lease like all motion.
"""

from __future__ import annotations

from labctl.bus import Step
from labctl.core.events import Kind
from labctl.core.trial import State, Trial, standing
from labctl.messages.motion import Lease, Stage
from labctl.runtime.campaign_writer import Desk
from labctl.runtime.episode_sequencer import LEASE_RENEWALS, Conductor

LAPSED = "way_home"  # the hold's code


class Staging:
    """State: the trial asked for, the one that is staged, the lease of the way home."""

    def __init__(self, desk: Desk, conductor: Conductor) -> None:
        self._desk = desk
        self._conductor = conductor
        self._conditions = {entry["id"]: entry for entry in desk.opened["conditions"]}
        self._asked: str | None = None
        self._epoch = 0
        self.next_lease_ns = 0
        self.done: str | None = None

    @property
    def under_way(self) -> bool:
        return self._asked is not None

    def ask(self, trial: Trial, now_ns: int, step: Step) -> None:
        """The scene is the same for every arm of a block, at every attempt: a pair starts from one scene. A real one is
        set by the setter while the arm goes home.
        """
        self.done, self._asked = None, trial.id
        self._epoch = self._conductor.new_epoch()
        self.next_lease_ns = now_ns + self._conductor.lease_ns // LEASE_RENEWALS
        condition = {**self._conditions[trial.condition], "items": self._desk.opened["items_staged"]}
        seed = self._desk.ledger.seed(f"scene:{trial.block}:0")  # of every attempt what was the first's
        until_ns = now_ns + self._conductor.lease_ns
        step.out.append(Stage(trial.id, condition, seed, self._epoch, None, until_ns).to("arm"))

    def hear(self, trial: str) -> None:
        """The arm says that it is ready for this trial."""
        if trial == self._asked:
            self.done, self._asked = trial, None

    def lapsed(self, trial: str) -> None:
        """The arm says that it stopped on its way, because this process was not heard. It may have stood for long, and
        people come near what stands still: it goes on when somebody has looked.
        """
        if trial != self._asked:
            return
        self.forget()
        text = "the arm stopped on its way home: the run process was not heard in time; look at the cell"
        self._desk.log(Kind.HOLD_RAISED, {"code": LAPSED, "text": text})

    def forget(self) -> None:
        """Whatever was staged no longer holds: the scene has changed, the trial was released, the arm stopped."""
        self.done = self._asked = None

    def advance(self, trial: Trial | None, now_ns: int, step: Step) -> None:
        """Ask for what is still to be asked; renew the lease while the arm is on its way; let go otherwise."""
        if trial is None or trial.state != State.STAGING:
            if self._asked is not None:
                step.out.append(Lease(self._epoch, None, 0).to("@lease"))
                self.forget()
            return
        if trial.id not in (self.done, self._asked):
            if not standing(self._desk.state, trial) and self._desk.state.faulted is None:
                self.ask(trial, now_ns, step)
        elif self._asked is not None and now_ns >= self.next_lease_ns:
            self.next_lease_ns = now_ns + self._conductor.lease_ns // LEASE_RENEWALS
            step.out.append(Lease(self._epoch, None, now_ns + self._conductor.lease_ns).to("@lease"))
