"""What the operator's screen may be drawn from: one value, made here from the campaign writer and the episode.

May not: hold the ledger, the campaign, its folder or its protocol, an arm's name (but the candidates in alphabetical
order where the protocol asks for a guess), a policy's options, or an outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from labctl.clock import SECOND
from labctl.core.event_bodies import OperationRecorded
from labctl.core.interlock import Hold
from labctl.core.published_state import Confirmed, Hand, Handover, Measured, Proposal, Rules, Scene
from labctl.core.record import as_operations
from labctl.core.rollout import Rollout, proposal, typed
from labctl.core.task import ITEMS, SCORE, STAGES
from labctl.core.trial import CampaignState, State, Trial, next_trial
from labctl.people.second_person import SecondPerson
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.store.scene_references import rules as scene_rules


@dataclass(frozen=True, slots=True)
class EpisodeView:
    """The episode in flight of the trial whose turn it is. Times are monotonic ns. `switched`: number of a switch of
    the instruction -> when the controller took it.
    """

    start_due_ns: int
    go_ns: int | None
    deadline_ns: int | None
    end_ns: int | None
    switched: Mapping[int, int]
    hand: Hand | None


@dataclass(frozen=True, slots=True)
class BlindView:
    """See the module. `state` is folded from the journal, its outcomes taken out; `turn` is the trial whose turn it is.

    `counted`, `proposal` and `evidence` (seq of an event) are of the trial's current episode; `scored_ns` is when the
    last trials were scored since the host was started.
    """

    cell: str
    state: CampaignState
    turn: Trial | None
    episode: EpisodeView | None
    operator_ready: bool
    withheld: str
    touching: bool
    unsaid: Sequence[int]
    live: Sequence[Hold]
    scene: Scene
    overrides: bool
    checks: Sequence[str]
    rules: Rules
    totes: tuple[str, ...]
    handover: Handover | None
    recovered: Sequence[str]
    counted: int
    reached: int
    proposal: Proposal | None
    measured: Measured | None
    evidence: int | None
    with_code: Sequence[str]
    confirmed: Sequence[Confirmed]
    scored_ns: Sequence[int]


def blind_view(
    writer: CampaignWriter,
    rollout: Rollout | None,
    live: Sequence[Hold],
    scene: Scene,
    second: SecondPerson | None = None,
) -> BlindView:
    """The view of a campaign that is being run. live: the holds that stand; scene: as `SceneWatch.shown`; second: who
    may confirm a void.
    """
    state = _without_outcomes(writer.state)
    turn = next_trial(state)
    needed = second if turn and turn.needs_second else None
    people = [person.id for person in state.session.people] if state.session else []
    return BlindView(
        cell=writer.campaign.cell.cell.name,
        state=state,
        turn=turn,
        episode=_episode(turn, rollout),
        operator_ready=bool(rollout and rollout.operator_ready),
        withheld=rollout.withheld if rollout else "",
        touching=bool(typed(turn, rollout)),
        unsaid=_unsaid(turn, rollout),
        live=tuple(live),
        scene=scene,
        overrides=scene_rules(writer.opened)["override"] == "allowed",
        checks=tuple(writer.campaign.protocol.session.checks),
        rules=_rules(writer, turn),
        totes=tuple(tote.name for tote in writer.campaign.fixture.tote),
        handover=writer.handover,
        recovered=tuple(writer.recovered),
        counted=writer.counted.get(turn.episode or "", 0) if turn else 0,
        reached=len(writer.reached.get(turn.episode or "", ())) if turn else 0,
        proposal=_proposal(writer, turn),
        measured=_measured(writer, turn),
        evidence=_evidence(turn),
        with_code=needed.with_code(people) if needed else (),
        confirmed=needed.shown((turn.episode if turn else None) or "") if needed else (),
        scored_ns=tuple(writer.scored_ns[-20:]),
    )


def _without_outcomes(state: CampaignState) -> CampaignState:
    trials = {name: replace(t, outcome=None) if t.outcome else t for name, t in state.trials.items()}
    return replace(state, trials=trials)


def _episode(turn: Trial | None, rollout: Rollout | None) -> EpisodeView | None:
    """Whoever is in the room sees the person who drives: that person's device may be shown until the episode ends."""
    if turn is None or rollout is None or turn.episode != rollout.episode:
        return None
    return EpisodeView(
        start_due_ns=rollout.start_due_ns,
        go_ns=rollout.go_ns,
        deadline_ns=rollout.deadline_ns,
        end_ns=rollout.end_ns,
        switched=dict(rollout.switched),
        hand=rollout.hand if rollout.reason is None else None,
    )


def _unsaid(turn: Trial | None, rollout: Rollout | None) -> list[int]:
    if turn is None or turn.state != State.SCORING:
        return []
    return sorted({*typed(turn, rollout), *turn.unsaid})


def _rules(writer: CampaignWriter, turn: Trial | None) -> Rules:
    rules = writer.campaign.protocol.trial
    task = writer.tasks[turn.condition] if turn else next(iter(writer.tasks.values()))
    return {
        "items": task.items,
        "budget_s": task.budget_s,
        "measure": task.measure,
        "steps": list(task.stages),
        "rubric": list(task.rubric),
        "arming_s": rules.arming_s,
        "early_end": rules.early_end,
        "void_reasons": list(rules.void_reasons),
        "tags": [*rules.failure_tags, *task.failure_tags],
        "stages": list(rules.stages),
        "candidates": sorted(arm.name for arm in writer.campaign.protocol.arm) if rules.ask_guess else [],
    }


def _evidence(turn: Trial | None) -> int | None:
    """The seq of the machine's event that may stand behind a void after go."""
    return turn.backing[-1] if turn and turn.backing else None


def _proposal(writer: CampaignWriter, turn: Trial | None) -> Proposal | None:
    """For scoring: from the journal, since the episode may be an earlier run's."""
    if turn is None or turn.state != State.SCORING or writer.tasks[turn.condition].measure != ITEMS:
        return None
    items = writer.tasks[turn.condition].items
    return proposal(_operations(writer, turn)[:items], items)


def _operations(writer: CampaignWriter, turn: Trial) -> Sequence[OperationRecorded]:
    """What devices reported of the episode or, in a campaign whose devices report nothing, the detector found."""
    episode = turn.episode or ""
    by_devices = any(op["result"] != "safety_stop" for recorded in writer.operations.values() for op in recorded)
    if not by_devices and turn.go_ns and turn.end_ns:
        return as_operations(writer.detected.get(episode, []), turn.go_ns, turn.end_ns)
    return writer.operations.get(episode, [])


def _measured(writer: CampaignWriter, turn: Trial | None) -> Measured | None:
    """Of a task that is not counted in items: the stages as a person saw them, else as items arrived one by one; for a
    success all of them, and for a score their share.
    """
    if turn is None or turn.state != State.SCORING or (task := writer.tasks[turn.condition]).measure == ITEMS:
        return None
    arrived = [op["t_ns"] for op in _operations(writer, turn) if op["result"] == "success"][: task.items]
    if task.measure == SCORE:
        return {"reached_s": None, "score": len(arrived) / task.items if arrived else None}
    seen = writer.reached.get(turn.episode or "") or (
        arrived[: len(task.stages)] if task.measure == STAGES else arrived[task.items - 1 :]
    )
    return {"reached_s": [round((t_ns - (turn.go_ns or t_ns)) / SECOND, 6) for t_ns in seen], "score": None}
