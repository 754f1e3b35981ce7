"""What is looked at, and what is journalled, when all of an episode's recording has been delivered; what of it the next
trial waits for.

May not: journal anything but gaps, or show an arm-dependent stream: of those only a digest leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from labctl.core.event_bodies import RecordingSealed
from labctl.core.events import Kind
from labctl.core.interlock import Hold
from labctl.core.rollout import Rollout
from labctl.core.task import condition_of
from labctl.messages.body_parts import GapBody
from labctl.messages.pictures import FrameGap
from labctl.messages.recording import Late
from labctl.plain import count
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.sealed_body import recording_body, recording_gaps, steady_rates
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


def sealed_body(writer: CampaignWriter, rollout: Rollout, found: Findings) -> RecordingSealed:
    """The body of RecordingSealed for an episode that has ended and whose recorder has delivered. Each gap that is
    found now is noted.
    """
    assert rollout.end_ns is not None and rollout.closed is not None
    streams, hidden = rollout.closed.streams, rollout.closed.private
    marked = [*rollout.gaps, *writer.ledger.gaps(rollout.episode)]
    rates = steady_rates(writer.campaign.cell)
    for gap in (
        *rollout.closed.gaps,
        *recording_gaps(streams, rates, rollout.end_ns, marked=marked, why=rollout.unseen),
        *file_gaps(found.footage, {video.camera: video.frames for video in rollout.videos.values()}),
    ):
        note_gap(writer, rollout, gap, private=gap["stream"] in hidden)
    seal = partial(writer.ledger.seal_value, rollout.episode, "streams")
    videos, gaps = found.footage.videos, len(rollout.gaps)
    return recording_body(streams, hidden, videos, gaps, seal, clocks=found.clocks, detected=found.detected)


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


def gap_of(sent: FrameGap) -> GapBody:
    """What a camera or a sensor says is missing, as it is journalled."""
    return GapBody(**{key: value for key, value in sent.wire().items() if key not in ("episode", "private")})


def note_gap(writer: CampaignWriter, rollout: Rollout, gap: GapBody, *, private: bool = False) -> None:
    """A gap is journalled as soon as it is known: a crash may not forget it. One of a stream that tells arms apart is
    sealed instead, and no entry says that it is.
    """
    if private:
        writer.ledger.seal_gap(rollout.episode, gap)
        return
    rollout.gaps.append(gap)
    writer.log(Kind.GAP, gap, trial=rollout.trial, episode=rollout.episode)


def note_late(writer: CampaignWriter, sent: Late) -> None:
    """A chunk came after its recording was sealed, and so is not stored."""
    gap = GapBody(stream=sent.stream, from_ns=None, to_ns=None, lost=sent.n, why="came after the seal")
    if sent.private:
        writer.ledger.seal_gap(sent.episode, gap)
        return
    trial = next(t.id for t in writer.state.trials.values() if sent.episode in t.episodes)
    writer.log(Kind.GAP, gap, trial=trial, episode=sent.episode)
