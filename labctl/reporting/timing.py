"""How arms were answered, and what the motion lease, the motion, the robot's controller and sensors gave, from samples.

May not: read an episode whose samples are not there, or judge any of it.
"""

from __future__ import annotations

from collections.abc import Collection

from labctl.analysis.report.lab_facts import AnswerTimes, SensorColumn
from labctl.config.protocol_schema import Protocol
from labctl.core.record import Record
from labctl.reporting.motion_lines import device_lines, motion_lines
from labctl.reporting.policy_software import policy_software, start_ups
from labctl.reporting.times.answer_times import answer_times
from labctl.reporting.times.lease_times import lease_lines
from labctl.reporting.times.sensor_times import sensor_columns
from labctl.store.campaign import Campaign
from labctl.store.verifying.verified import samples_of


def timing(
    campaign: Campaign, protocol: Protocol, record: Record, lost: Collection[str]
) -> tuple[list[AnswerTimes], list[SensorColumn], dict[str, dict[str, str] | None]]:
    """How fast each arm started and was answered, and by what they are about: how its motion lease was renewed, what it
    got of the motion that it asked for, what the robot's controller said, what sensors measured; over every episode,
    scored or not, whose recording is there.
    """
    arms = [arm.name for arm in protocol.arm]
    of = record.arms
    went = {episode: of[t.id] for t in record.state.trials.values() for episode in t.episodes if episode not in lost}
    store = samples_of(campaign)
    people = {arm.name for arm in protocol.arm if arm.kind == "human"}
    try:
        answers = answer_times(store, went, arms, start_ups(record))
        for entry in answers:
            entry["by_hand"] = entry["arm"] in people
        lines = {"software of policies": policy_software(record, arms), "motion lease": lease_lines(store, went, arms)}
        lines["motion achieved over commanded"] = motion_lines(store, went, arms)
        lines["robot's controller"] = device_lines(store, list(went))
        sensors = sensor_columns(store, went, record.episodes)
        return answers, sensors, {about: found or None for about, found in lines.items()}
    finally:
        store.close()
