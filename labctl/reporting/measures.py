"""What a report measures beside the outcomes: how people touched the episodes of each arm, and its traces' timing.

May not: be asked before unblinding (every part is by arm), or count an episode that was not scored.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from labctl.analysis.episode_facts import Adaptability, EpisodeStress, Stress
from labctl.clock import SECOND
from labctl.core.record import Episode, Record
from labctl.core.rollout import ACTION
from labctl.core.trial import Trial
from labctl.errors import StateError
from labctl.messages.body_parts import SwitchEntry
from labctl.reporting.times.recorded import POLICY, read_stream
from labctl.store.campaign import Campaign
from labctl.store.read_once import Samples
from labctl.streams import placed_units, robot_states

if TYPE_CHECKING:  # whoever asks when items were moved does not wait for the statistics
    from labctl.analysis.episodes.adaptability import Watched
    from labctl.analysis.episodes.stress import Traces
    from labctl.analysis.table import Row

QUESTION = ("capture_ns", "request_ns", "first_ns", "executed")


def success_times(rows: Sequence[Row]) -> dict[str, list[float]]:
    """{episode: [seconds from go to each success]}, from rows of the operations table."""
    found: dict[str, list[float]] = {}
    for row in rows:
        if row["kind"] == "success":
            times = found.setdefault(str(row["episode"]), [])
            times.append((times[-1] if times else 0.0) + float(row["time_s"] or 0.0))
    return found


@dataclass(frozen=True, slots=True)
class Stressed:
    """What is kept of an episode's traces: its measures, and its traces without the targets."""

    measured: EpisodeStress
    traces: Traces


def stressed(store: Samples, record: Record, trial: Trial, episode: Episode) -> Stressed | None:
    """Of a scored episode; None where `traces_of` has none. Raises StateError before unblinding."""
    from labctl.analysis.episodes import stress

    traces = traces_of(store, record, trial, episode)
    if traces is None:
        return None
    nothing = stress.Traces(*(getattr(traces, name) for name in ("episode", "arm", "object", "go_ns", "end_ns")))
    return Stressed(stress.episode_stress(traces), replace(nothing, request_ns=traces.request_ns.copy()))


def stress_of(
    campaign: Campaign,
    found: Sequence[Stressed],
    record: Record,
    arms: Sequence[str],
    rows: Sequence[Row],
    human: Collection[str],
) -> Stress:
    """Stress measures by arm and by episode; adaptability where the protocol switches something. found: of the scored
    episodes, in schedule order; human: the arms that people drive.
    """
    from labctl.analysis.episodes import stress

    episodes = [one.measured for one in found]
    made: Stress = {
        "rate_hz": stress.RATE_HZ,
        "arms": stress.arm_stress(episodes, arms),
        "episodes": episodes,
        "taken_over": sorted(name for name, episode in record.episodes.items() if episode.taken_over),
    }
    switches = campaign.opened.get("switches")
    if switches:
        from labctl.analysis.episodes import adaptability as adapt

        names = [switch["name"] for switch in switches]
        after = [
            adapt.after_switches(one, names)
            for one in watched([one.traces for one in found], record, rows, human, switches)
        ]
        entries = [one for episode in after for one in episode]
        switched: Adaptability = {
            "switches": [{**one} for one in switches],
            "arms": adapt.by_arm(entries, arms, names),
            "episodes": entries,
        }
        made["adaptability"] = switched
    return made


def watched(
    episodes: Sequence[Traces],
    record: Record,
    rows: Sequence[Row],
    people: Collection[str],
    switches: Sequence[SwitchEntry],
) -> list[Watched]:
    """Episodes of `traces_of` with when items were moved, by rows of the operations table, when their controllers took
    each switch and whether an assessor said that it was ignored. people: arms that no policy drives.
    """
    from labctl.analysis.episodes.adaptability import Watched

    moved = success_times(rows)
    tags = {switch["name"]: switch["ignored"] for switch in switches if "ignored" in switch}
    ticked = {episode.id: trial.outcome.tags if trial.outcome else () for trial, episode in record.scored}
    cut = {row["episode"] for row in rows if row["kind"] == "censored"}
    return [
        Watched(
            episode=one.episode,
            arm=one.arm,
            object=one.object,
            go_ns=one.go_ns,
            end_ns=one.end_ns,
            moved_ns=[  # rows are rounded to 1 us
                min(one.go_ns + round(at_s * SECOND), one.end_ns) for at_s in moved.get(one.episode, ())
            ],
            taken_ns={switch["name"]: switch["t_ns"] for switch in record.episodes[one.episode].switches},
            request_ns=one.request_ns[:0] if one.arm in people else one.request_ns,
            spent=one.episode not in cut,
            ignored={name: tag in ticked.get(one.episode, ()) for name, tag in tags.items()},
        )
        for one in episodes
    ]


def traces_of(store: Samples, record: Record, trial: Trial, episode: Episode) -> Traces | None:
    """Questions and sent targets of a scored episode; None of one that never got to go, or that a person took over.

    Targets are those of joints, in rad. Streams that are not there, or hold a damaged chunk, are left empty. Raises
    StateError before unblinding: timing tells arms apart.
    """
    from labctl.analysis.episodes.stress import Traces

    if record.unblinding is None:
        raise StateError(f"the campaign is {record.state.phase}; stress measures tell arms apart, unblind it first")
    if episode.go_ns is None or episode.end_ns is None or episode.taken_over:
        return None
    arm = record.arms[trial.id]
    one = Traces(episode.id, arm, trial.condition.split("/")[0], episode.go_ns, episode.end_ns)
    specs = {spec.name: spec.columns for spec in store.streams(episode.id)}
    asked = read_stream(store, episode.id, POLICY)
    if asked is not None and all(name in specs[POLICY] for name in QUESTION):
        capture, request, first, executed = (asked[1][:, specs[POLICY].index(name)] for name in QUESTION)
        first = np.where(executed > 0, first, -1)
        one = replace(one, capture_ns=capture, request_ns=request, first_ns=first)
    actions = read_stream(store, episode.id, ACTION)
    if actions is not None:
        states = [spec for spec in store.streams(episode.id) if spec.name in robot_states(specs)]
        sent = {f"sent.{name}" for spec in states for name, unit in placed_units(spec).items() if unit == "rad"}
        joints = [i for i, name in enumerate(specs[ACTION]) if name in sent]
        if joints:  # metres of a rail and radians of joints have no norm together
            one = replace(one, sent_ns=actions[0], sent=actions[1][:, joints])
    return one
