"""Takes the sensors' messages for the run: what each reports is kept for the holds, and a limit may end an episode.

May not: see a measured value, or end anything silently: the end says which sensor and which limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from labctl.bus import Step
from labctl.config.cell_schema import Cell
from labctl.core.events import EndReason
from labctl.core.interlock import SensorSeen
from labctl.core.liveness import Liveness
from labctl.core.rollout import stream_of
from labctl.messages.sensing import SensorState
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.episode_sequencer import EpisodeSequencer

# The limit that ends more comes first: a void is not scored, whatever else was exceeded.
ENDS: Mapping[str, EndReason] = {"void": EndReason.SENSOR_LIMIT, "end": EndReason.INTERLOCK}


class SensorWatch:
    """See the module."""

    def __init__(self, writer: CampaignWriter, liveness: Liveness, sequencer: EpisodeSequencer) -> None:
        self._writer, self._liveness, self._sequencer = writer, liveness, sequencer
        self._cell = writer.campaign.cell

    def hear(self, sent: SensorState, now_ns: int, step: Step) -> None:
        """A sensor has stopped giving values, gives them again, or is beyond a limit. Before start the interlocks
        decide about that.
        """
        self._liveness.measures(sent)
        rollout, name = self._sequencer.rollout, sent.name
        if rollout is None or name not in rollout.sensors:
            return
        if not sent.lost:
            rollout.unseen.pop(stream_of(name), None)
        elif stream_of(name) not in rollout.unseen:
            self._sequencer.sensor_gone(name, sent.lost, now_ns, step)
        ended = exceeded(self._cell, name, sent.beyond)
        if ended is not None and rollout.moving:
            reason, cause = ended
            self._sequencer.end(reason, max(sent.t_ns, rollout.go_ns or now_ns), now_ns, step, cause=cause)
            if rollout.reason == reason:  # else its budget had
                self._writer.say(f"{self._writer.state.trials[rollout.trial].place}: ended, {cause}")

    def seen(self, now_ns: int) -> dict[str, SensorSeen]:
        """What each sensor of the cell last said, by its name."""
        liveness = self._liveness
        return {
            sensor.name: SensorSeen(
                liveness.age(sensor.node, now_ns),
                liveness.unmeasured(sensor.node),
                tuple(sensor.interlock[i].text for i in liveness.beyond(sensor.node)),
                sensor.required,
            )
            for sensor in self._cell.sensor
        }


def exceeded(cell: Cell, node: str, beyond: Sequence[int]) -> tuple[EndReason, str] | None:
    """How an episode ends whose sensor is beyond these limits of its list, and why in words; None: it goes on."""
    sensor = next(sensor for sensor in cell.sensor if sensor.node == node)
    for then, reason in ENDS.items():
        texts = [sensor.interlock[i].text for i in beyond if sensor.interlock[i].then == then]
        if texts:
            return reason, f"sensor {sensor.name}: {', '.join(texts)}"
    return None
