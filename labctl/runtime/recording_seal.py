"""What is looked at, and what is journalled, when all of an episode's recording has been delivered; what of it the next
trial waits for.

May not: journal anything, or show an arm-dependent stream: of those only a digest leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from labctl.core.event_bodies import RecordingSealed
from labctl.core.interlock import Hold
from labctl.core.rollout import Rollout, recording_body, recording_gaps, steady_rates
from labctl.core.task import condition_of
from labctl.messages.body_parts import GapBody
from labctl.messages.recording import Late
from labctl.plain import count
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.store.footage import file_gaps
from labctl.store.sealing import Findings, layout_of, look_over


def looking_over(
    writer: CampaignWriter, condition: str, episode: str, cameras: Sequence[str]
) -> Callable[[], Findings]:
    """The call that reads an episode's videos and traces. cameras: by their names in the cell."""
    campaign, cell = writer.campaign, writer.campaign.cell
    return partial(
        look_over,
        campaign.folder,
        campaign.traces_url,
        campaign.opened["campaign"],
        episode,
        cameras,
        layout_of(campaign.fixture, condition_of(writer.opened, condition)),
        durable=writer.opened["durable"],
        sensors=cell.sensor,
        second=cell.second_robot,
    )


def looking_at(writer: CampaignWriter, rollout: Rollout) -> Callable[[], Findings]:
    """The same of the episode in flight, with its own cameras."""
    cameras = [name.removeprefix("camera:") for name in rollout.cameras]
    return looking_over(writer, writer.state.trials[rollout.trial].condition, rollout.episode, cameras)


def sealed_body(
    writer: CampaignWriter, rollout: Rollout, found: Findings, mark: Callable[[GapBody], None]
) -> RecordingSealed:
    """The body of RecordingSealed for an episode that has ended and whose recorder has delivered. mark: takes each gap
    that is found now.
    """
    assert rollout.end_ns is not None and rollout.closed is not None
    streams = rollout.closed.streams
    rates = steady_rates(writer.campaign.cell)
    for gap in (
        *rollout.closed.gaps,
        *recording_gaps(streams, rates, rollout.end_ns, marked=rollout.gaps, why=rollout.unseen),
        *file_gaps(found.footage, {video.camera: video.frames for video in rollout.videos.values()}),
    ):
        mark(gap)
    seal = partial(writer.ledger.seal_value, rollout.episode, "streams")
    videos, private, gaps = found.footage.videos, rollout.closed.private, len(rollout.gaps)
    return recording_body(streams, private, videos, gaps, seal, clocks=found.clocks, detected=found.detected)


def being_sealed(rollout: Rollout | None) -> Hold | None:
    """Against the next trial, while the recording of an episode that a person voided is not sealed: the recorder writes
    one at a time.
    """
    if rollout is None or not rollout.void:
        return None
    text = f"the recording of episode {rollout.episode}, which is void, is being sealed"
    return Hold("sealing", text, "nothing is to be done: it is over in a moment", awaited=True)


def say_missing(writer: CampaignWriter, rollout: Rollout) -> None:
    """Of each camera, how many frames its recording lacks."""
    place = writer.state.trials[rollout.trial].place
    for name in rollout.cameras:
        if missing := rollout.missing(name):
            writer.say(f"{place}: {count(missing, 'frame')} of {name} missing; see its gaps")


def late_gap(writer: CampaignWriter, sent: Late) -> tuple[str, GapBody]:
    """The trial, and the gap, of a chunk that came after its recording was sealed, and so is not stored."""
    trial = next(t.id for t in writer.state.trials.values() if sent.episode in t.episodes)
    return trial, GapBody(stream=sent.stream, from_ns=None, to_ns=None, lost=sent.n, why="came after the seal")
