"""What a run does before anything else: reads the journal, concludes what a crash left open, seals what was recorded.
Moves nothing.

May not: arm, stage or restart anything; the conclusions are events and lines for the operator.
"""

from __future__ import annotations

from functools import partial

from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.core.recovery import reconcile
from labctl.core.rollout import recording_body, recording_gaps, steady_rates
from labctl.core.trial import State, Trial
from labctl.plain import count
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.recording_seal import looking_over
from labctl.store.footage import file_gaps
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
        sealed = [
            seal_what_is_there(writer, traces, trial) for trial in writer.state.trials.values() if _unsealed(trial)
        ]
        sentences += sealed
        if not pending and not sealed:
            return sentences


def _unsealed(trial: Trial) -> bool:
    return trial.state == State.SCORING and not trial.sealed_recording


def seal_what_is_there(writer: CampaignWriter, traces: TraceStore, trial: Trial) -> str:
    """Seal the recording of an ended episode from what reached the disk; what is missing becomes gaps."""
    assert trial.episode is not None and trial.end_ns is not None
    episode = trial.episode
    streams = traces.seal(episode)
    cell = writer.campaign.cell
    traces.sync()
    found = looking_over(writer, trial.condition, episode, [camera.name for camera in cell.camera])()
    marked = record_of(writer.campaign.events(), writer.state).episodes[episode].gaps
    gaps = [*traces.gaps(episode), *recording_gaps(streams, steady_rates(cell), trial.end_ns, marked=marked)]
    gaps += file_gaps(found.footage, {})
    gaps += [
        {
            "stream": name,
            "from_ns": entry.get("t1_ns"),
            "to_ns": None,
            "lost": None,
            "why": "process lost: at most the open second",
        }
        for name, entry in sorted(streams.items())
        if entry["n"]
    ]
    for gap in gaps:
        writer.log(Kind.GAP, gap, trial=trial.id, episode=episode)
    private = [spec.name for spec in traces.streams(episode) if spec.arm_dependent]
    seal = partial(writer.ledger.seal_value, episode, "streams")
    total = len(marked) + len(gaps)
    given = {"clocks": found.clocks, "detected": found.detected}
    body = recording_body(streams, private, found.footage.videos, total, seal, **given)
    writer.log(Kind.RECORDING_SEALED, body, trial=trial.id, episode=episode)
    samples = sum(entry["n"] for entry in streams.values())
    text = f"{count(samples, 'sample')}, {count(len(found.footage.videos), 'video')}, {count(len(gaps), 'gap')} noted"
    return f"{trial.place}: sealed what was recorded of {episode}: {text}"
