"""Linked campaigns: which earlier campaign a new one leans on, the anchor arms that are run in both, and in what the
two ask or count otherwise.

An earlier campaign must be unblinded: its seal alone could say which arms it had, and a seal is not read to answer
questions. The new campaign's anchors are arms of its own, so its journal holds them only as a sealed value.

May not: open a campaign or write into the earlier one, or read a seal before its campaign is unblinded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from labctl.config.cell_schema import Cell
from labctl.config.protocol_schema import Arm, Protocol, parse_protocol
from labctl.config.reasons import MACHINE_VOID_REASONS
from labctl.config.values import StopCause
from labctl.core.event_bodies import CampaignOpened, CampaignUnblinded, body_of
from labctl.core.events import Event, digest
from labctl.core.record import estimand_of
from labctl.core.record_fold import record_of
from labctl.core.trial import TO_UNBLINDED, CampaignState, Phase, State, fold
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.messages.body_parts import Link, SealedLink
from labctl.store.chain_heads import chain_and_head_problems
from labctl.store.journal import events_of
from labctl.store.lab_folder import Plan, campaign_folder
from labctl.store.ledger import Ledger, sealed_values
from labctl.store.opened_body import opened_body, text_digest


@dataclass(frozen=True, slots=True)
class Linked:
    """An earlier campaign, the head of its chain when it was linked, and the anchors; `changed` are those among them
    whose controller, options or policy card are not what they were. notes: what is to be said of it at opening.
    """

    campaign: str
    head: str
    anchors: tuple[str, ...]
    changed: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class _Earlier:
    """What an unblinded campaign says of itself. `treatments`: arm with a scored episode -> (kind, digest)."""

    name: str
    events: Sequence[Event]
    state: CampaignState
    treatments: Mapping[str, tuple[str, str]]


def links_of(
    plan: Plan, cell: Cell, lab: Path, extends: Path | None = None, anchors: Sequence[str] = ()
) -> list[Linked]:
    """Every campaign a protocol is linked to: `extends` (a folder) and those of its [[link]] tables, checked.

    Anchors of `extends` are those given, else those its [[link]] names, else every arm that is the same treatment in
    both. Raises InputError for an unknown campaign, a head that its chain does not have or an anchor it does not have,
    StateError for one that is not unblinded or can never be compared, BrokenRecord when its chain does not hold.
    """
    declared = {link.campaign: index for index, link in enumerate(plan.protocol.link)}
    found: list[Linked] = []
    if extends is not None:
        earlier = _read(extends)
        index = declared.pop(earlier.name, None)
        if index is not None:
            _check_head(plan, index, earlier)
        if not anchors and index is not None:
            anchors = plan.protocol.link[index].anchors
        found.append(_link(plan, cell, earlier, anchors))
    for name, index in declared.items():
        try:
            earlier = _read(campaign_folder(name, lab))
        except InputError as error:
            raise plan.protocol.refusal(("link", index, "campaign"), str(error), str(plan.path)) from None
        _check_head(plan, index, earlier)
        found.append(_link(plan, cell, earlier, plan.protocol.link[index].anchors))
    return found


def sealed_links(links: Sequence[Linked], ledger: Ledger) -> list[Link]:
    """What CampaignOpened says of each link; the anchors' names go into the seal, which proves them when opened."""
    return [
        {
            "campaign": link.campaign,
            "head": link.head,
            "anchors": len(link.anchors),
            "sealed": ledger.seal_value(
                "", f"link:{link.campaign}", {"anchors": list(link.anchors), "changed": list(link.changed)}
            ),
        }
        for link in links
    ]


def opened_links(opened: CampaignOpened, unblinded: CampaignUnblinded) -> list[Linked]:
    """The links of an unblinded campaign, from the bodies of its CampaignOpened and CampaignUnblinded."""
    found: list[Linked] = []
    for link in opened.get("links") or []:
        sealed = sealed_values(unblinded, f"link:{link['campaign']}", SealedLink).get(link.get("sealed", ""), {})
        anchors, changed = tuple(sealed.get("anchors", ())), tuple(sealed.get("changed", ()))
        found.append(Linked(link["campaign"], link["head"], anchors, changed))
    return found


def link_note(link: Linked, name: str) -> str:
    """A report's line on a link of campaign `name`."""
    text = f"linked to {link.campaign} at head {link.head[:16]}… through {', '.join(link.anchors)}"
    same = f"; counted as the same on its opener's word: {', '.join(link.changed)}" if link.changed else ""
    return f"{text}{same}; its arms are held against the earlier ones by: labctl report {link.campaign} {name}"


def _read(folder: Path) -> _Earlier:
    """An earlier campaign, its chain checked. Raises StateError before unblinding, BrokenRecord."""
    events = events_of(folder)
    problems = chain_and_head_problems(folder, events)
    if problems:
        raise BrokenRecord(f"{folder.name}: {problems[0]}; nothing is linked to it; see: labctl verify {folder.name}")
    state = fold(events)
    name = str(state.opened["campaign"])
    if state.phase != Phase.UNBLINDED:
        raise StateError(
            f"campaign {name} is {state.phase}, and its arms stay sealed until it is unblinded: "
            f"{TO_UNBLINDED[state.phase]} {name} first, then extend it"
        )
    arms = record_of(events, state).arms
    ledger = Ledger.open(folder)
    text, cards = ledger.protocol_text(), ledger.cards()
    if text_digest(text) != state.opened["protocol"]["sha256"]:
        raise BrokenRecord(f"{name}: its protocol is not the one that was frozen; see: labctl verify {folder.name}")
    if cards and digest(dict(cards)) != state.opened["protocol"].get("cards_sha256"):
        raise BrokenRecord(f"{name}: a policy card is not the frozen one; see: labctl verify {folder.name}")
    scored = {arms[trial.id] for trial in state.trials.values() if trial.state == State.SCORED}
    of = treatments(parse_protocol(text, "protocol.toml"), cards)
    return _Earlier(name, events, state, {arm: stated for arm, stated in of.items() if arm in scored})


def treatments(protocol: Protocol, cards: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    """Of every arm its kind, and a digest of its controller and options in which a card counts by its text."""
    return {arm.name: (arm.kind, _treatment(arm, cards)) for arm in protocol.arm}


def _treatment(arm: Arm, cards: Mapping[str, str]) -> str:
    options = dict(arm.options)
    if isinstance(card := options.get("card"), str):
        options["card"] = text_digest(cards.get(card, ""))
    return digest({"kind": arm.kind, "controller": arm.controller, "options": options})


def not_the_same(
    link: Linked, later: str, before: Mapping[str, tuple[str, str]], now: Mapping[str, tuple[str, str]]
) -> dict[str, str]:
    """Anchors that a link calls the same, and that are not by the two records: arm -> that in words. before, now: the
    `treatments` of the earlier campaign and of `later`, both unblinded. What the link says was changed is on its
    opener's word; a record that was forged says what it likes of another.
    """
    apart = [arm for arm in link.anchors if arm not in link.changed and before.get(arm) != now.get(arm)]
    why = "its kind, controller, options or card differ, although its link does not say so"
    return {arm: f"anchor {arm} of {later} is not the {arm} of {link.campaign}: {why}" for arm in apart}


def _check_head(plan: Plan, index: int, earlier: _Earlier) -> None:
    wanted = plan.protocol.link[index].head
    if all(event.hash != wanted for event in earlier.events):
        text = f"head {wanted[:16]}… is no entry of {earlier.name}; its head is {earlier.state.head}"
        text += "; check that it is the campaign that was meant"
        raise plan.protocol.refusal(("link", index, "head"), text, str(plan.path))


def _link(plan: Plan, cell: Cell, earlier: _Earlier, named: Sequence[str]) -> Linked:
    notes = _comparable(plan, cell, earlier)
    ours = treatments(plan.protocol, plan.cards)
    anchors = list(dict.fromkeys(named)) or [arm for arm in ours if earlier.treatments.get(arm) == ours[arm]]
    if not anchors:
        both = [arm for arm in ours if arm in earlier.treatments]
        why = f"{', '.join(both)} differ in kind, controller, options or card" if both else "no arm is in both"
        raise StateError(
            f"{plan.path}: no anchor: {why}; add an arm of {earlier.name} as it was "
            f"({', '.join(sorted(earlier.treatments))}), or name one that counts as the same with --anchor ARM"
        )
    for arm in anchors:
        if arm not in ours:
            raise InputError(f"anchor {arm!r} is no arm of {plan.path}; its arms are: {', '.join(ours)}")
        if arm not in earlier.treatments:
            scored = ", ".join(sorted(earlier.treatments)) or "none"
            raise InputError(f"anchor {arm!r} was not scored in {earlier.name}; arms scored there are: {scored}")
        if earlier.treatments[arm][0] != ours[arm][0]:
            text = f"anchor {arm!r} is a {ours[arm][0]} here and a {earlier.treatments[arm][0]} in {earlier.name}"
            raise InputError(f"{text}; an anchor is the same arm in both, name another")
    changed = tuple(arm for arm in anchors if earlier.treatments[arm] != ours[arm])
    return Linked(earlier.name, earlier.state.head, tuple(anchors), changed, notes)


def _comparable(plan: Plan, cell: Cell, earlier: _Earlier) -> tuple[str, ...]:
    """Refuse now what a linked report would refuse after the evenings are spent, and what would make its ratios one of
    tasks; lines on what such a report or a leaderboard will say.
    """
    opened = earlier.state.opened
    if plan.protocol.task or "tasks" in opened:
        raise StateError(
            "campaigns are compared through anchors by time per item, which not every task of [[task]] tables has; "
            "open this one by itself, and compare two by their episodes tables (labctl export --to episodes)"
        )
    planned = opened_body(plan.path.name, plan, cell, "", "", ())
    if opened["kind"] != (kind := planned["kind"]):
        found = f"{earlier.name} is {opened['kind']} and cell {cell.cell.name} is {kind}"
        raise StateError(f"{found}; episodes of different kinds are never compared, take a {opened['kind']} cell")
    if opened["budget_s"] != (budget_s := planned["budget_s"]):
        found = f"an episode of {earlier.name} has {opened['budget_s']:g} s, one of {plan.path} {budget_s:g} s"
        raise StateError(
            f"{found}; unequal budgets are never compared, plan the same items_staged and budget_s_per_item"
        )
    if asked := _differing(opened, planned, _asked):
        raise StateError(f"{plan.path} is another task than {earlier.name}: {asked}; plan the same in both")
    met = {condition["object"] for condition in opened["conditions"]}
    if not met & {condition["object"] for condition in planned["conditions"]}:
        found = f"no object of {plan.path} is one of {earlier.name}"
        raise StateError(f"{found}; plan at least one of: {', '.join(sorted(met))}")
    notes = unlike(opened, planned)
    if opened["tau_s"] != planned["tau_s"]:
        found = f"tau_s is {opened['tau_s']} in {earlier.name}, {planned['tau_s']} in {plan.path.name}"
        notes.append(f"{found}: a report of both takes the latter, and no leaderboard will hold both")
    return tuple(notes)


def unlike(one: CampaignOpened, two: CampaignOpened) -> list[str]:
    """What anchors do not take out of a comparison of two linked campaigns, a line each on their tasks and on the rules
    by which their episodes end and count; none where both are alike. one, two: bodies of their CampaignOpened.
    """
    lines = {
        "they are not of one task, which anchors do not take out": _differing(one, two, _asked),
        "they end, void or count episodes by other rules, which anchors do not take out": _differing(one, two, _ruled),
    }
    return [f"{line}: {found}" for line, found in lines.items() if found]


def _differing(one: CampaignOpened, two: CampaignOpened, of: Callable[[CampaignOpened], Mapping[str, str]]) -> str:
    """Keys of a protocol whose values differ, as text; "" where none do."""
    there, here = of(one), of(two)
    return "; ".join(
        f"{key}: {value} in {one['campaign']}, {here[key]} in {two['campaign']}"
        for key, value in there.items()
        if here[key] != value
    )


def _asked(opened: CampaignOpened) -> Mapping[str, str]:
    """What an arm is asked to do; how long it has is held apart, since an analysis refuses unequal budgets itself."""
    switches = [f"{switch['instruction']!r} at {switch['at_s']:g} s" for switch in opened.get("switches", ())]
    return {
        "instruction": repr(opened["instruction"]),
        "items_staged": str(opened["items_staged"]),
        "switch": " and ".join(switches) or "none",
    }


def _ruled(opened: CampaignOpened) -> Mapping[str, str]:
    """By what rules an episode ends, is void and counts: they meet the arms that are helped, crash or are stopped.

    Reasons of the machine for a void are left out: which of them is used, the other rules say.
    """
    causes = opened.get("stops_count", get_args(StopCause))  # before it could be said, each counted
    reasons = set(opened["void_reasons"]) - {*MACHINE_VOID_REASONS}
    return {
        **{f"estimand.{key}": value for key, value in estimand_of(opened).items()},
        "stops_count": ", ".join(sorted(causes)) or "none",
        "process_lost": opened["process_lost"],
        "camera_lost": opened.get("camera_lost", "mark"),
        "early_end": opened.get("early_end", "allowed"),
        "takeover": opened.get("takeover", "forbidden"),
        "void_reasons": ", ".join(sorted(reasons)) or "the machine's alone",
    }


@dataclass(frozen=True, slots=True)
class Pairing:
    """Two campaigns of which the later was opened linked to the earlier; `link` is what its CampaignOpened says."""

    earlier: Path
    later: Path
    link: Link


def pair_up(folders: Sequence[Path]) -> Pairing:
    """Which of two campaigns extends the other. Raises StateError, in one line, when they may not be compared: they are
    of different kinds, share no anchor, or the record of the earlier is not the one that was linked.
    """
    if len(folders) != 2:
        raise InputError(f"{len(folders)} campaigns given; a linked comparison is of two: labctl report FIRST SECOND")
    one, two = (events_of(folder) for folder in folders)
    opened = [body_of(events[0], CampaignOpened) for events in (one, two)]
    names = [body["campaign"] for body in opened]
    if names[0] == names[1]:
        raise InputError(f"campaign {names[0]} is given twice; name the two that are linked")
    kinds = [body["kind"] for body in opened]
    if kinds[0] != kinds[1]:
        found = f"{names[0]} is {kinds[0]} and {names[1]} is {kinds[1]}"
        raise StateError(f"{found}; episodes of different kinds are never compared")
    for later, earlier in ((1, 0), (0, 1)):
        for link in opened[later].get("links") or []:
            if link["campaign"] != names[earlier]:
                continue
            if all(event.hash != link["head"] for event in (one, two)[earlier]):
                found = f"{names[later]} was linked to another {names[earlier]}: head {link['head'][:16]}…"
                raise BrokenRecord(f"{found} is not in its chain; give the campaign that was extended")
            return Pairing(folders[earlier], folders[later], link)
    raise StateError(
        f"campaigns {names[0]} and {names[1]} share no anchor: neither was opened linked to the other; anchors are "
        f"fixed before the first trial, by labctl extend {names[0]} PROTOCOL.toml --cell CELL.toml"
    )
