"""What the operator's screen may be drawn from: one value, made here from what the journal says and from the episode.

May not: hold the ledger, the campaign, its folder or its protocol, an arm's name (but the candidates in alphabetical
order where the protocol asks for a guess), a policy's options, or an outcome.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from labctl.clock import SECOND
from labctl.config.cell_schema import Cell, Fixture
from labctl.config.protocol_schema import Protocol
from labctl.core.event_bodies import OperationRecorded
from labctl.core.interlock import Hold
from labctl.core.published_state import CampaignRules, Hand, Measured, Proposal, Rules, Scene, Times, TurnPart
from labctl.core.record import as_operations
from labctl.core.rollout import Rollout, proposal, typed
from labctl.core.run_facts import RunFacts
from labctl.core.task import ITEMS, SCORE, STAGES, proposed, task_of
from labctl.core.trial import CampaignState, State, Trial, next_trial
from labctl.people.second_person import SecondPerson
from labctl.store.scene_references import rules as scene_rules


@dataclass(frozen=True, slots=True)
class BlindView:
    """See the module. `state` is folded from the journal, its outcomes taken out; `turn` is the trial whose turn it is;
    `shown` is published as it is.

    `switched`: number of a switch of the instruction -> when the controller took it; `scored_ns` is when the last
    trials were scored since the host was started.
    """

    cell: str
    state: CampaignState
    turn: Trial | None
    shown: TurnPart
    switched: Mapping[int, int]
    live: Sequence[Hold]
    overrides: bool
    totes: tuple[str, ...]
    recovered: Sequence[str]
    scored_ns: Sequence[int]


@dataclass(frozen=True, slots=True)
class Setting:
    """What a run has of its files for the screen, of every arm the same. rules: candidates among them alone."""

    cell: str
    totes: tuple[str, ...]
    checks: tuple[str, ...]
    rules: CampaignRules


def setting_of(cell: Cell, fixture: Fixture, protocol: Protocol) -> Setting:
    """The setting of a run, made once when it begins."""
    trial = protocol.trial
    rules: CampaignRules = {
        "arming_s": trial.arming_s,
        "early_end": trial.early_end,
        "void_reasons": list(trial.void_reasons),
        "tags": list(trial.failure_tags),
        "stages": list(trial.stages),
        "candidates": sorted(arm.name for arm in protocol.arm) if trial.ask_guess else [],
    }
    return Setting(cell.cell.name, tuple(tote.name for tote in fixture.tote), tuple(protocol.session.checks), rules)


def blind_view(
    setting: Setting,
    folded: CampaignState,
    facts: RunFacts,
    rollout: Rollout | None,
    live: Sequence[Hold],
    scene: Scene,
    second: SecondPerson | None = None,
) -> BlindView:
    """The view of a campaign that is being run. live: the holds that stand; scene: as `SceneWatch.shown`; second: who
    may confirm a void.
    """
    state = _without_outcomes(folded)
    turn = next_trial(state)
    needed = second if turn and turn.needs_second else None
    people = [person.id for person in state.session.people] if state.session else []
    of_turn = rollout if turn and rollout and turn.episode == rollout.episode else None
    shown: TurnPart = {
        "handover": facts.handover,
        "checks": list(setting.checks),
        "rules": _rules(setting, state, turn),
        "times": _times(of_turn),
        "scene": scene,
        "hand": _hand(of_turn),
        "operator_ready": bool(of_turn and of_turn.operator_ready),
        "withheld": of_turn.withheld if of_turn else "",
        "counted": facts.counted.get(turn.episode or "", 0) if turn else 0,
        "reached": len(facts.reached.get(turn.episode or "", ())) if turn else 0,
        "touching": bool(typed(turn)),
        "unsaid": _unsaid(turn),
        "proposal": _proposal(state, facts, turn),
        "measured": _measured(state, facts, turn),
        "evidence": _evidence(turn),
        "needs_second": bool(turn and turn.needs_second),
        "with_code": list(needed.with_code(people)) if needed else [],
        "confirmed": list(needed.shown((turn.episode if turn else None) or "")) if needed else [],
    }
    return BlindView(
        cell=setting.cell,
        state=state,
        turn=turn,
        shown=shown,
        switched=dict(of_turn.switched) if of_turn else {},
        live=tuple(live),
        overrides=scene_rules(state.opened)["override"] == "allowed",
        totes=setting.totes,
        recovered=tuple(facts.recovered),
        scored_ns=tuple(facts.scored_ns[-20:]),
    )


def _without_outcomes(state: CampaignState) -> CampaignState:
    trials = {name: replace(t, outcome=None) if t.outcome else t for name, t in state.trials.items()}
    return replace(state, trials=trials)


def _times(rollout: Rollout | None) -> Times:
    if rollout is None:
        return {"start_due_ns": None, "go_ns": None, "deadline_ns": None, "end_ns": None}
    return {
        "start_due_ns": rollout.start_due_ns,
        "go_ns": rollout.go_ns,
        "deadline_ns": rollout.deadline_ns,
        "end_ns": rollout.end_ns,
    }


def _hand(rollout: Rollout | None) -> Hand | None:
    """Whoever is in the room sees the person who drives: that person's device may be shown until the episode ends."""
    return rollout.hand if rollout is not None and rollout.reason is None else None


def _unsaid(turn: Trial | None) -> list[int]:
    if turn is None or turn.state != State.SCORING:
        return []
    return sorted({*typed(turn), *turn.unsaid})


def _rules(setting: Setting, state: CampaignState, turn: Trial | None) -> Rules:
    """What the protocol fixes, with the task of the trial whose turn it is, else that of the first condition."""
    task = task_of(state.opened, turn.condition if turn else state.opened["conditions"][0]["id"])
    return {
        **setting.rules,
        "items": task.items,
        "budget_s": task.budget_s,
        "measure": task.measure,
        "steps": list(task.stages),
        "rubric": list(task.rubric),
        "tags": [*setting.rules["tags"], *task.failure_tags],
    }


def _evidence(turn: Trial | None) -> int | None:
    """The seq of the machine's event that may stand behind a void after go."""
    return turn.backing[-1] if turn and turn.backing else None


def _proposal(state: CampaignState, facts: RunFacts, turn: Trial | None) -> Proposal | None:
    """For scoring: from the journal, since the episode may be an earlier run's."""
    if turn is None or turn.state != State.SCORING or (task := task_of(state.opened, turn.condition)).measure != ITEMS:
        return None
    return proposal(_operations(facts, turn)[: task.items], task.items)


def _operations(facts: RunFacts, turn: Trial) -> Sequence[OperationRecorded]:
    """What devices reported of the episode or, in a campaign whose devices report nothing, the detector found."""
    episode = turn.episode or ""
    by_devices = any(op["result"] != "safety_stop" for recorded in facts.operations.values() for op in recorded)
    if not by_devices and turn.go_ns and turn.end_ns:
        return as_operations(facts.detected.get(episode, []), turn.go_ns, turn.end_ns)
    return facts.operations.get(episode, [])


def _measured(state: CampaignState, facts: RunFacts, turn: Trial | None) -> Measured | None:
    """Of a task that is not counted in items: the stages as a person saw them, else as the traces tell or, where none
    of them can be sensed, as items arrived one by one; for a success all of them, and for a score their share.
    """
    if turn is None or turn.state != State.SCORING or (task := task_of(state.opened, turn.condition)).measure == ITEMS:
        return None
    arrived = [op["t_ns"] for op in _operations(facts, turn) if op["result"] == "success"][: task.items]
    if task.measure == SCORE:
        return {"reached_s": None, "score": len(arrived) / task.items if arrived else None}
    seen: Sequence[int] = facts.reached.get(turn.episode or "", ())
    if not seen and task.measure == STAGES and any(stage.get("sensed") for stage in task.stages):
        go_ns, end_ns = turn.go_ns or 0, turn.end_ns or 0
        seen = proposed(task.stages, facts.detected.get(turn.episode or "", ()), go_ns, end_ns)
    elif not seen:
        seen = arrived[: len(task.stages)] if task.measure == STAGES else arrived[task.items - 1 :]
    return {"reached_s": [round((t_ns - (turn.go_ns or t_ns)) / SECOND, 6) for t_ns in seen], "score": None}
