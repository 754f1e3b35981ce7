"""Watches the other processes for the run: which one is silent or has ended, what that costs, which is started again.

May not: decide what a loss means for an episode (`episode_sequencer` does), or start what has died too often.
"""

from __future__ import annotations

from collections.abc import Sequence

from labctl.bus import Step
from labctl.core.events import Kind
from labctl.core.liveness import Liveness
from labctl.core.rollout import Phase
from labctl.messages.processes import Exited, Kill, Spawn
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.episode_sequencer import EpisodeSequencer
from labctl.runtime.staging import Staging

MOST_DEATHS = 3  # in a row, of one process between episodes: then the cell is faulted


class ProcessWatch:
    """`failing`: what a process said last of itself; `over`: the run is ending, and none is started any more."""

    def __init__(
        self, writer: CampaignWriter, liveness: Liveness, sequencer: EpisodeSequencer, staging: Staging
    ) -> None:
        self._writer = writer
        self._liveness = liveness
        self._sequencer = sequencer
        self._staging = staging
        self.failing: dict[str, str] = {}
        self.over = False

    def look(self, now_ns: int, step: Step) -> None:
        """Whoever has been silent for too long is killed and counts as lost."""
        for name in self._liveness.silent(now_ns):
            step.out.append(Kill(name).to("@host"))
            self._lost(name, "no heartbeat", now_ns, step, dying=True)

    def exited(self, sent: Exited, now_ns: int, step: Step) -> None:
        """A process is seen to have ended."""
        self._sequencer.ended(sent.name)
        if not sent.asked:
            self._lost(sent.name, sent.reason, now_ns, step)

    def _lost(self, name: str, why: str, now_ns: int, step: Step, *, dying: bool = False) -> None:
        """A process is gone: say so, end what depended on it, and ask for a person where a robot was involved."""
        why = self.failing.pop(name, why)
        was_there = self._liveness.alive(name) or name in self._liveness.asked
        self._liveness.gone(name)
        rollout = self._sequencer.rollout
        in_use = rollout is not None and (
            name in rollout.producers or (name == "recorder" and rollout.phase not in (Phase.DIGESTING, Phase.SEALED))
        )
        if not was_there and not in_use:
            return
        private = why if name == "controller" else None  # its last words may name the arm
        self._liveness.ended[name] = "" if private else why
        when = "in an episode" if in_use else "between episodes"
        self._writer.say(f"{name} process lost ({when}): {'why is kept with the seal' if private else why}")
        self._liveness.deaths[name] = 0 if in_use else self._liveness.deaths.get(name, 0) + 1
        if name == "arm" and "arm_lost" not in self._writer.state.holds:
            text = f"the robot's process ended ({why}); look at the robot, then acknowledge"
            self._writer.log(Kind.HOLD_RAISED, {"code": "arm_lost", "text": text})
        if name == "arm":
            self._staging.give_up("arm_lost", step)
        self._sequencer.lose(name, now_ns, step, why=why, private=private, dying=dying)
        if name == "recorder" and rollout is not None and self._liveness.deaths[name] < MOST_DEATHS:
            self._ask_for(name, now_ns, step)
        if self._liveness.deaths[name] >= MOST_DEATHS and self._writer.state.faulted is None:
            where = f"logs/{name.replace(':', '-')}.log of the campaign says why"
            self._writer.log(Kind.CELL_FAULTED, {"reason": f"{name} ended {MOST_DEATHS} times in a row; {where}"})

    def start(self, now_ns: int, step: Step, names: Sequence[str]) -> None:
        """Start those of these that are required and not there."""
        if self._writer.state.faulted is None and not self.over:
            for name in self._liveness.missing():
                if name in names:
                    self._ask_for(name, now_ns, step)

    def _ask_for(self, name: str, now_ns: int, step: Step) -> None:
        self._liveness.ask(name, now_ns)
        step.out.append(Spawn(name).to("@host"))
