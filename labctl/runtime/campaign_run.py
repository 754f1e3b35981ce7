"""Runs a campaign: in one loop under a manual clock, or as separate processes in real time. The same nodes either way.

May not: decide about trials (`runner` does), or start while another run holds the campaign or the cell.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

from labctl.alerts.courier import SIMULATED, Alerts, wanted
from labctl.bus import Message, Node
from labctl.clock import SECOND, Anchor, Clock, ManualClock, MonotonicClock, began
from labctl.config.cell_schema import Setup
from labctl.core.events import Kind
from labctl.core.liveness import Liveness
from labctl.core.published_state import PublishedState
from labctl.core.trial import Phase, next_trial
from labctl.errors import BrokenRecord, InputError, MissingExtra, StateError, StorageError
from labctl.logs import begin
from labctl.plain import Json
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.episode_sequencer import EpisodeSequencer
from labctl.runtime.hosting.cell_nodes import (
    NodeSpec,
    build_node,
    camera_names,
    lacks_terminal,
    node_names,
    with_terminal,
)
from labctl.runtime.hosting.ending import on_signals
from labctl.runtime.hosting.lease_keeper import terms_of
from labctl.runtime.hosting.simulated_host import LoopHost
from labctl.runtime.hosting.socket_folder import socket_folder
from labctl.runtime.lab_modules import edited_lines, pins_of_episodes
from labctl.runtime.readiness import Readiness
from labctl.runtime.runner import RunNode, none_left
from labctl.runtime.seal import OwnSeal, joint_seal
from labctl.runtime.startup_recovery import recover, seal_what_is_left, unsealed
from labctl.store.atomic_files import replace_file
from labctl.store.campaign import Campaign
from labctl.store.frozen_cards import PERSON
from labctl.store.journal import refuse_no_campaign
from labctl.store.lab_folder import lab_with
from labctl.store.locks import CONTACT, Lock, campaign_lock, cell_lock
from labctl.store.scene_references import HOLDS_NOTHING, WHERE_MEASURED, rules, scores_available
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import refuse_unless_as_opened

Say = Callable[[str], None]
Watch = Callable[[PublishedState, bool], None]
WHO = "labctl-run"
LOCKS = "locks"
LOGS = "logs"
_log = logging.getLogger("run")
ORPHAN_NS = 10 * SECOND


def run_campaign(
    folder: Path,
    say: Say,
    *,
    manual: bool | None = None,
    attended: bool = False,
    watch: Watch = lambda state, live: None,
    wrap: Callable[[Node], Node] | None = None,
    unready: bool = False,
    hand_terminal: str | None = None,
) -> bool:
    """Run the trials that are left; people attach and detach with consoles. False when somebody ended it before.

    manual: True for simulated time in one process (simulated cells only), False for real time, None for what the cell
    says.
    unready: the arms are not asked whether they answer before anything moves, which every report says.
    hand_terminal: the terminal whose keyboard drives, for a cell that is driven by one and does not name it.
    attended: people stage and score at a console, whoever the cell names for runs without them.
    watch: gets every state that is published, and whether it is of real time; it may not wait.
    wrap: puts a fault around a node (manual clock only; tests).

    Raises StateError when the campaign is not open, another run holds it or the cell needs a person, BrokenRecord when
    what was sealed at opening is not what is there.
    """
    clock, verb = MonotonicClock(), f"run {folder.name}"
    with ExitStack() as stack:
        stack.enter_context(campaign_lock(folder, verb=verb, clock=clock))
        _wait_for_orphans(folder, clock)
        campaign = stack.enter_context(Campaign.open(folder, writer=True))
        attended = attended or campaign.cell.cell.operator == "console"
        over = nothing_left(campaign, attended=attended)
        if over:
            for line in (*_seal_the_rest(campaign, clock.anchor), over):
                say(line)
            return True
        refuse_unless_as_opened(campaign.folder, campaign.events())
        stack.enter_context(cell_lock(folder, campaign.cell.cell.name, verb=verb, clock=clock))
        simulated = campaign.cell.cell.clock == "manual" if manual is None else manual
        if simulated and campaign.cell.cell.kind != "sim":
            raise StateError(
                f"cell {campaign.cell.cell.name} is {campaign.cell.cell.kind}; simulated time is for cells of kind sim"
            )
        if simulated and attended:
            raise StateError(
                "a person cannot keep up with simulated time; run in real time, or open a campaign with a cell "
                'that has operator = "sim_operator"'
            )
        _check_terminal(campaign, hand_terminal)
        _check_scores(campaign, say)
        for line in edited_lines(campaign):
            say(line)
        if simulated:
            return _run_manual(campaign, say, watch, wrap, unready=unready)
        given = {"attended": attended, "unready": unready, "hand_terminal": hand_terminal}
        return _run_live(campaign, say, watch, clock, **given)


def seal_what_runs_left(folder: Path, verb: str, *, anchor: Anchor | None = None) -> list[str]:
    """Seal the recordings that runs left unsealed, before a verb after which none can be: a line of each. A preference
    that a killed run had not asked for is asked for.

    Nothing keeps that verb from its work: recordings that cannot be read are said, and left to `verify`. Raises
    StateError when a run holds the campaign.
    """
    refuse_no_campaign(folder)
    clock = MonotonicClock()
    with campaign_lock(folder, verb=verb, clock=clock), Campaign.open(folder, writer=True) as campaign:
        return _seal_the_rest(campaign, clock.anchor if anchor is None else lambda: anchor)


def _seal_the_rest(campaign: Campaign, anchor: Callable[[], Anchor]) -> list[str]:
    if campaign.state.phase not in (Phase.OPEN, Phase.CLOSED):
        return []
    if "preference" in campaign.opened:
        CampaignWriter(campaign, anchor, _log.info, WHO).ask_preferences()
    if not unsealed(campaign.record()):
        return []
    sealed: list[str] = []
    try:
        _wait_for_orphans(campaign.folder, MonotonicClock())
        writer = CampaignWriter(campaign, anchor, _log.info, WHO)
        with closing(_traces(campaign)) as traces:
            sealed.extend(seal_what_is_left(writer, traces))
    except (StorageError, BrokenRecord, MissingExtra, ModuleNotFoundError) as error:  # an install that reads no videos
        sealed.append(f"what was recorded of episodes that are over cannot be sealed: {error}")
    return sealed


def _traces(campaign: Campaign) -> TraceStore:
    return TraceStore.open(campaign.traces_url, campaign.opened["campaign"], durable=campaign.opened["durable"])


def nothing_left(campaign: Campaign, *, attended: bool) -> str:
    """What to say of a campaign without a trial to run or, with people, a session to close; "" while it has one.

    Raises StateError when it is not open.
    """
    name, state = campaign.folder.name, campaign.state
    if state.phase != "open":
        raise StateError(f"campaign {name} is {state.phase}; only an open one has trials to run")
    if next_trial(state) is not None or (attended and state.session is not None):
        return ""
    return none_left(name, state)


def _check_scores(campaign: Campaign, say: Say) -> None:
    """Scores need scikit-image: a protocol that asks for them does not begin without, any other says so.

    Raises MissingExtra.
    """
    if scores_available() or not campaign.cell.camera:
        return
    least = rules(campaign.opened)["min_score"]
    if least not in (*HOLDS_NOTHING, WHERE_MEASURED):
        wanted = f'"{least}"' if isinstance(least, str) else f"{least:g}"
        raise MissingExtra("scene", f"[scene] min_score = {wanted} of the protocol")
    say("scenes get no match score: that needs pip install 'labctl[scene]'")


def _check_terminal(campaign: Campaign, named: str | None) -> None:
    """A keyboard that drives needs a terminal besides the console's, with another number every evening. Raises
    InputError that says how one is named.
    """
    cell = campaign.cell
    keyboard = cell.teleop is not None and cell.teleop.device == "keyboard"
    if named is not None and not keyboard:
        raise InputError(f"--hand-terminal is for a cell that is driven by a keyboard; {cell.cell.name} is not")
    by_hand = any(arm.controller == PERSON for arm in campaign.arms.values())
    if named is None and lacks_terminal(cell) and (by_hand or campaign.opened.get("takeover") == "allowed"):
        name = campaign.folder.name
        raise InputError(
            "a person drives with the keyboard of a second terminal, since this one has the console: open one, type "
            f"`tty; sleep infinity` in it, and start with what it prints: labctl run {name} --hand-terminal /dev/pts/N"
        )


def _wait_for_orphans(folder: Path, clock: Clock) -> None:
    """Processes of a killed run end by themselves within seconds; their locks say when. Their last samples are then on
    disk.
    """
    for path in sorted((folder / LOCKS).glob("*.lock")):
        with Lock(path, "run", what=f"{path.stem} of an earlier run", clock=clock, patience_ns=ORPHAN_NS):
            pass  # taken and given back: nobody holds it any more


def _prepare(
    campaign: Campaign,
    clock: Clock,
    say: Say,
    watch: Watch,
    on_head: Callable[[], None] = lambda: None,
    *,
    live: bool,
    attended: bool,
    unready: bool,
    hand_terminal: str | None = None,
) -> RunNode:
    """The run node of a recovered campaign."""
    pins = pins_of_episodes(lab_with(campaign.folder), say, live=live)
    writer = CampaignWriter(campaign, clock.anchor, say, WHO, on_head)
    with closing(_traces(campaign)) as traces:
        concluded = recover(writer, traces)
    started = writer.log(Kind.RUN_STARTED, {"pins": pins(), "recovered": concluded})
    for line in concluded:
        say(f"recovered: {line}")
    liveness = Liveness(node_names(campaign.cell))
    setup = Setup(cell=with_terminal(campaign.cell, hand_terminal), fixture=campaign.fixture)
    readiness = Readiness(writer, campaign.arms, setup, here=not live, wanted=not unready)
    if unready:
        writer.log(Kind.DEVIATION, {"text": "this run began without asking whether every arm answers (--unready)"})
    sequencer = EpisodeSequencer(writer, liveness, campaign.arms, pins, round(campaign.cell.lease.duration_s * SECOND))
    own = "joint" not in campaign.opened
    seal = OwnSeal(writer, sequencer) if own else joint_seal(writer, sequencer, live=live)
    return RunNode(
        writer,
        sequencer,
        liveness,
        run_id=started.seq,
        free_gb=lambda: free_gb(campaign.folder),
        readiness=readiness,
        seal=seal,
        attended=attended,
        watch=lambda state: watch(state, live),
    )


def _spec(campaign: Campaign, hand_terminal: str | None = None, *, locks: Path | None = None) -> NodeSpec:
    """What a node is built from. locks: where cameras wait for their turn, in real time; None in simulated time."""
    return NodeSpec(
        cell=with_terminal(campaign.cell, hand_terminal),
        fixture=campaign.fixture,
        folder=campaign.folder,
        campaign=campaign.opened["campaign"],
        traces_url=campaign.traces_url,
        durable=campaign.opened["durable"],
        real_time=locks is not None,
        locks=locks,
    )


def _run_manual(
    campaign: Campaign, say: Say, watch: Watch, wrap: Callable[[Node], Node] | None, *, unready: bool
) -> bool:
    events = campaign.journal.events()
    clock = ManualClock(max(event.at_ns for event in events) + SECOND)
    if wanted(campaign.folder):
        say(SIMULATED)
    run = _prepare(campaign, clock, say, watch, live=False, attended=False, unready=unready)
    spec = _spec(campaign)

    def make(name: str) -> Node:
        node = build_node(name, spec)
        return wrap(node) if wrap else node

    host = LoopHost(clock, make)
    host.add(run)
    host.add(build_node("operator", spec))
    asked: list[Message] = []
    put_back = on_signals(asked.append)
    try:
        with _contact(campaign, {"simulated": True}):
            host.run(lambda: run.finished or bool(asked))
            while asked and not run.finished:
                host.post(asked.pop(0))
                host.run(lambda: run.finished or bool(asked))
        host.end_all()
        return run.leave()
    finally:
        put_back()


def _run_live(
    campaign: Campaign,
    say: Say,
    watch: Watch,
    clock: Clock,
    *,
    attended: bool,
    unready: bool,
    hand_terminal: str | None,
) -> bool:
    from labctl.runtime.hosting.store_copy import StoreCopy
    from labctl.runtime.hosting.supervisor import Stamper, Supervisor, log_of
    from labctl.runtime.hosting.transport import ProcessHost

    logs = campaign.folder / LOGS

    def tell(line: str) -> None:
        _log.info("%s", line)
        say(line)

    def see(state: PublishedState, live: bool) -> None:
        watch(state, live)
        alerts.hear(state)

    def tell_of(what: Callable[[], str]) -> None:
        if left := what():
            tell(left)

    with ExitStack() as stack:  # what is begun is ended in the opposite order, whatever fails
        stack.callback(begin(log_of(logs, "run")).end)
        copied = StoreCopy(campaign.folder)
        stack.callback(tell_of, copied.close)
        stamper = Stamper(campaign.folder)
        stack.callback(tell_of, stamper.close)
        alerts = Alerts(campaign.folder)
        stack.callback(alerts.close)
        given = {"attended": attended, "unready": unready}
        run = _prepare(campaign, clock, tell, see, stamper.ask, live=True, hand_terminal=hand_terminal, **given)
        locks = campaign.folder / LOCKS
        locks.mkdir(exist_ok=True)
        spec = _spec(campaign, hand_terminal, locks=locks)
        sockets = stack.enter_context(socket_folder())
        supervisor = Supervisor(spec, sockets, logs, {"controller": campaign.ledger.private_file("controller.log")})
        stack.callback(supervisor.end_all)
        nodes: list[Node] = [run] if attended else [run, build_node("operator", spec)]
        lease = terms_of(campaign.cell.lease)
        host = ProcessHost(nodes, sockets, clock, cameras=tuple(camera_names(spec.cell)), lease=lease)
        host.heed_signals()
        with _contact(campaign, {"sockets": str(sockets)}):
            if attended:
                tell(f"waiting for a console: labctl console {campaign.folder.name}")
            host.run(supervisor)
            return run.leave()


@contextmanager
def _contact(campaign: Campaign, where: Mapping[str, Json]) -> Iterator[None]:
    """While the run goes on, a file says which process it is and how to reach it."""
    contact = campaign.folder / CONTACT
    try:
        replace_file(contact, json.dumps({"pid": os.getpid(), "began": began(os.getpid()), **where}).encode())
        yield
    finally:
        contact.unlink(missing_ok=True)


def free_gb(folder: Path) -> float | None:
    """Free disk space where a campaign is, in 10^9 bytes; None where it cannot be read."""
    try:
        return shutil.disk_usage(folder).free / 1e9
    except OSError:
        return None
