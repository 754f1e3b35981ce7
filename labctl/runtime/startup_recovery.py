"""What a run does before anything else: reads the journal, concludes what a crash left open, seals what was recorded.
Moves nothing.

May not: arm, stage or restart anything; the conclusions are events and lines for the operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from labctl.core.events import Kind
from labctl.core.record import Record
from labctl.core.record_fold import record_of
from labctl.core.recovery import reconcile
from labctl.core.trial import LIVE, Trial
from labctl.messages.body_parts import GapBody
from labctl.plain import count
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.recording_seal import looking_over
from labctl.runtime.sealed_body import recording_body, recording_gaps, steady_rates
from labctl.store.footage import file_gaps, filmed
from labctl.store.traces import TraceStore


def recover(writer: CampaignWriter, traces: TraceStore) -> list[str]:
    """Bring the journal to rest; returns what was concluded, a line each. Doing it twice does nothing more.

    Raises BrokenRecord when the journal contradicts itself, StorageError when it cannot be written.
    """
    sentences: list[str] = []
    while True:
        events = writer.campaign.journal.events()
        episodes = [trial.episode for trial in writer.state.trials.values() if trial.episode]
        last = {episode: last_ns for episode in episodes if (last_ns := traces.last_sample_ns(episode)) is not None}
        pending = reconcile(events, rule=writer.opened["process_lost"], last_sample_ns=last)
        for item in pending:
            writer.log(item.kind, item.body, trial=item.trial, episode=item.episode)
            sentences.append(item.text)
        sealed = list(seal_what_is_left(writer, traces))
        sentences += sealed
        if not pending and not sealed:
            return sentences


def seal_what_is_left(writer: CampaignWriter, traces: TraceStore) -> Iterator[str]:
    """Seal the recording of every episode that is over and whose recording is not: one that a person voided before it
    was sealed, or that never began, too. Nothing may write into them any more. Yields what was sealed, a line each, as
    soon as it is: the next one may fail.
    """
    left = unsealed(record_of(writer.campaign.events(), writer.state))
    recorded = {*traces.episodes(), *filmed(writer.campaign.folder)} if left else set[str]()
    for trial, episode in left:
        if episode in recorded or episode == trial.episode:
            yield seal_what_is_there(writer, traces, trial, episode)


def unsealed(record: Record) -> list[tuple[Trial, str]]:
    """The episodes that are over and whose recording is not sealed, with their trials, in the order they were
    revealed.
    """
    left = [(record.state.trials[one.trial], one.id) for one in record.episodes.values() if one.sealed is None]
    return [(trial, episode) for trial, episode in left if episode != trial.episode or trial.state not in LIVE]


def seal_what_is_there(writer: CampaignWriter, traces: TraceStore, trial: Trial, episode: str) -> str:
    """Seal the recording of an episode that is over from what reached the disk; what is missing becomes gaps. Of one
    that never began nothing is missing but what lacks in the middle.
    """
    streams = traces.seal(episode)
    cell = writer.campaign.cell
    traces.sync()
    found = looking_over(writer, trial.condition, episode, [camera.name for camera in cell.camera])()
    before = record_of(writer.campaign.events(), writer.state).episodes[episode]
    marked, end_ns = (*before.gaps, *writer.ledger.gaps(episode)), before.end_ns
    private = [spec.name for spec in traces.streams(episode) if spec.arm_dependent]
    gaps: list[GapBody] = [*traces.gaps(episode)]
    if end_ns is not None:
        gaps += recording_gaps(streams, steady_rates(cell), end_ns, marked=marked)
    gaps += file_gaps(found.footage, {})
    why = "process lost: at most the open second"
    gaps += [
        GapBody(stream=name, from_ns=entry.get("t1_ns"), to_ns=None, lost=None, why=why)
        for name, entry in sorted(streams.items())
        if entry["n"] and end_ns is not None
    ]
    gaps = [gap for gap in gaps if gap not in marked]  # of a start that was killed in the middle of this
    for gap in [gap for gap in gaps if gap["stream"] in private]:
        writer.ledger.seal_gap(episode, gap)
    gaps = [gap for gap in gaps if gap["stream"] not in private]
    for gap in gaps:
        writer.log(Kind.GAP, gap, trial=trial.id, episode=episode)
    seal = partial(writer.ledger.seal_value, episode, "streams")
    total = len(before.gaps) + len(gaps)
    given = {"clocks": found.clocks, "detected": found.detected}
    body = recording_body(streams, private, found.footage.videos, total, seal, **given)
    writer.log(Kind.RECORDING_SEALED, body, trial=trial.id, episode=episode)
    samples = sum(entry["n"] for name, entry in streams.items() if name not in private)  # the others tell a rate
    text = f"{count(samples, 'sample')}, {count(len(found.footage.videos), 'video')}, {count(len(gaps), 'gap')} noted"
    return f"{trial.place}: sealed what was recorded of {episode}: {text}"
