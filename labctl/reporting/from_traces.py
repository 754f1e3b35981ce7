"""What a report says of a campaign from its traces: how fast each arm was answered, how its motion lease was renewed,
what it got of the motion that it asked for, what the robot's controller said, and what sensors measured.

May not: be asked before unblinding, or read a recording that is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING

from labctl.analysis.report.lab_facts import AnswerTimes, Lab, SensorColumn
from labctl.config.protocol_schema import Protocol
from labctl.core.record import Record
from labctl.reporting.historical import printed
from labctl.reporting.policy_software import policy_software, start_ups
from labctl.reporting.times.answer_times import answer_times
from labctl.reporting.times.lease_times import lease_lines
from labctl.reporting.times.motion_lines import device_lines, motion_lines
from labctl.reporting.times.sensor_times import sensor_columns
from labctl.store.campaign import Campaign
from labctl.store.opened_body import format_facts
from labctl.store.read_once import Samples

if TYPE_CHECKING:
    from labctl.analysis.table import Row

SOFTWARE, LEASE = "software of policies", "motion lease"
MOTION, CONTROLLER = "motion achieved over commanded", "robot's controller"


def add_measured(
    lab: Lab,
    samples: Samples,
    campaign: Campaign,
    protocol: Protocol,
    record: Record,
    lost: Collection[str],
    rows: Sequence[Row],
    *,
    boot: int,
    seed: int,
) -> Callable[[], None]:
    """Make room in `lab` for what is read from traces, and put what a file of earlier results says there. What is given
    back fills that room, and takes as long as clips do. boot, seed: of the report's intervals.
    """
    provenance = lab.setdefault("provenance", {})
    lab["answer_times"], lab["sensors"] = [], []
    provenance.update(dict.fromkeys((SOFTWARE, LEASE, MOTION, CONTROLLER)))
    provenance.update(format_facts(record.state.opened))
    then = printed(campaign.folder, record.state.opened, protocol.analysis, rows, boot=boot, seed=seed)
    if then is not None:
        lab["historical"] = then
        provenance["historical reference"] = f"{then['source']}; sha256 {then['sha256']}"

    def fill() -> None:
        lab["answer_times"], lab["sensors"], measured = _timing(samples, protocol, record, lost)
        provenance.update(measured)

    return fill


def _timing(
    samples: Samples, protocol: Protocol, record: Record, lost: Collection[str]
) -> tuple[list[AnswerTimes], list[SensorColumn], dict[str, dict[str, str] | None]]:
    """How fast each arm started and was answered, and by what they are about: how its motion lease was renewed, what it
    got of the motion that it asked for, what the robot's controller said, what sensors measured; over every episode,
    scored or not, whose recording is there.
    """
    arms = [arm.name for arm in protocol.arm]
    of = record.arms
    went = {episode: of[t.id] for t in record.state.trials.values() for episode in t.episodes if episode not in lost}
    people = {arm.name for arm in protocol.arm if arm.kind == "human"}
    answers = answer_times(samples, went, arms, start_ups(record))
    for entry in answers:
        entry["by_hand"] = entry["arm"] in people
    lines = {SOFTWARE: policy_software(record, arms), LEASE: lease_lines(samples, went, arms)}
    lines[MOTION] = motion_lines(samples, went, arms)
    lines[CONTROLLER] = device_lines(samples, list(went))
    return (
        answers,
        sensor_columns(samples, went, record.episodes),
        {about: found or None for about, found in lines.items()},
    )
