"""What the operator's screen is drawn from leads to no arm: everything that can be reached from it is looked at."""

from __future__ import annotations

import ast
import gc
from collections.abc import Callable, Iterator
from dataclasses import field, make_dataclass
from pathlib import Path, PurePath
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

import pytest
from support.policies.cards import policy_arm
from support.runs.campaigns import HUMAN, make_campaign
from support.runs.run_bench import Bench

import labctl.core.run_facts
import labctl.runtime.blind_view
import labctl.runtime.operator_state
from labctl.bus import Message
from labctl.config.protocol_schema import Arm, Protocol
from labctl.core.events import Kind
from labctl.core.rollout import Rollout
from labctl.runtime.blind_view import BlindView
from labctl.runtime.campaign_writer import CampaignWriter
from labctl.runtime.operator_state import campaign_part
from labctl.store.campaign import Campaign
from labctl.store.journal import Journal
from labctl.store.ledger import Ledger
from labctl.store.sealing import Findings

ARMS = ("zebra-policy", "quagga-policy")
TELLING = ("zebra", "quagga", "test-policy", "openpi", "joint_position")  # names, endpoints, words of the policy cards
FORBIDDEN = (Ledger, Journal, Campaign, CampaignWriter, Protocol, Arm, Rollout, PurePath)
CODE = (type, ModuleType, BuiltinFunctionType)  # what leads from a value to the program, not to another value


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    arms = [HUMAN, *(policy_arm(tmp_path, name, f"ws://127.0.0.1:1/{name}") for name in ARMS)]
    folder = make_campaign(tmp_path, arms, items=2).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


@pytest.fixture
def views(monkeypatch: pytest.MonkeyPatch) -> list[BlindView]:
    """Every view that a run draws its published state from."""
    drawn: list[BlindView] = []

    def drawing(view: BlindView) -> object:
        drawn.append(view)
        return campaign_part(view)

    monkeypatch.setattr(labctl.runtime.operator_state, "campaign_part", drawing)
    return drawn


def reachable(root: object) -> Iterator[object]:
    """Every value that can be reached from one: fields, items, keys, what a function closes over or is bound to."""
    seen: dict[int, object] = {}
    waiting = [root]
    while waiting:
        value = waiting.pop()
        if id(value) in seen or isinstance(value, CODE):
            continue
        seen[id(value)] = value
        yield value
        if isinstance(value, FunctionType):
            cells = [cell.cell_contents for cell in value.__closure__ or ()]
            waiting += [*cells, value.__defaults__, value.__kwdefaults__]
        elif isinstance(value, MethodType):
            waiting += [value.__self__, value.__func__]
        else:
            waiting += gc.get_referents(value)


def telling(view: object) -> list[str]:
    """What can be reached from a value and would tell of an arm, each as one line."""
    found = []
    for value in reachable(view):
        if isinstance(value, FORBIDDEN):
            found.append(f"a {type(value).__name__}")
        text = value.decode("latin-1") if isinstance(value, bytes) else value
        if isinstance(text, str):
            found += [f"{word} in {text!r}" for word in (*TELLING, "seal/") if word in text.lower()]
    return found


def test_nothing_that_the_screen_is_drawn_from_leads_to_an_arm(bench: Bench, views: list[BlindView]) -> None:
    """At every step of trials with each arm, to the score."""
    revealed = set()
    bench.begin_session()
    for _ in range(3):
        assert bench.command("stage", role="setter")["ok"]
        trial = [message.body["trial"] for message in bench.sent if message.kind == "stage"][-1]
        bench.hear(Message("run", "staged", {"trial": trial}, sender="arm"))
        episode = bench.start()
        revealed.add(bench.campaign.ledger.reveal(trial))
        bench.go(episode)
        done = {"kind": "success", "t_ns": bench.now_ns, "body": {}, "episode": episode}
        bench.hear(Message("run", "event", done, sender="arm"))
        assert bench.command("end")["ok"]
        bench.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}))
        bench.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))
        assert bench.command("score", items_staged=2, moved=1, lost=0, remaining=1)["ok"]
        bench.hear(Message("run", "exited", {"name": "controller", "reason": "", "asked": True}, sender="@host"))
    assert len(bench.events(Kind.OUTCOME_RECORDED)) == 3 and revealed == {"human", *ARMS}
    assert {view.turn.state for view in views if view.turn} >= {"planned", "staging", "armed", "running", "scoring"}
    assert any(view.shown["proposal"] for view in views) and any(view.shown["times"]["go_ns"] for view in views)
    assert {line for view in views for line in telling(view)} == set()
    assert not any(trial.outcome for view in views for trial in view.state.trials.values()), "nor to a running score"


PLANTED: dict[str, tuple[Callable[[Campaign], object], str]] = {
    "an arm's name, deep": (lambda campaign: {"notes": [(1, {ARMS[0]})]}, "zebra in 'zebra-policy'"),
    "a policy card's text": (lambda campaign: list(campaign.ledger.cards().values()), "test-policy in"),
    "the parsed arms": (lambda campaign: campaign.arms, "a Arm"),
    "the ledger": (lambda campaign: campaign.ledger, "a Ledger"),
    "a function over the ledger": (lambda campaign: lambda: campaign.ledger, "a Campaign"),
    "a method of the campaign": (lambda campaign: campaign.events, "a Journal"),
    "the protocol": (lambda campaign: campaign.protocol, "a Protocol"),
    "the folder": (lambda campaign: campaign.folder, "a PosixPath"),
    "a path into the seal": (lambda campaign: f"{campaign.folder}/seal/schedule.json", "seal/ in"),
}


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_in_a_new_field_of_the_view_is_found(what: str, bench: Bench, views: list[BlindView]) -> None:
    bench.begin_session()
    plant, wanted = PLANTED[what]
    names = list(BlindView.__dataclass_fields__)
    wider = make_dataclass(
        "Wider", [("new", object, field(default=None))], bases=(BlindView,), frozen=True, kw_only=True
    )
    kept = {name: getattr(views[-1], name) for name in names}
    assert telling(wider(**kept)) == []
    assert any(line.startswith(wanted) for line in telling(wider(**kept, new=plant(bench.campaign))))


def test_candidates_are_there_where_the_protocol_asks_for_a_guess_and_in_no_order_of_the_draw(
    tmp_path: Path, views: list[BlindView]
) -> None:
    arms = [policy_arm(tmp_path, name, "ws://127.0.0.1:1/x") for name in ARMS]
    folder = make_campaign(tmp_path, arms, protocol={"arming_s": "ask_guess = true\narming_s"}).folder
    with Campaign.open(folder, writer=True) as campaign:
        Bench(campaign).begin_session()
    assert views[-1].shown["rules"]["candidates"] == sorted(ARMS)
    others = {line for line in telling(views[-1]) if not line.endswith(tuple(f"{name!r}" for name in ARMS))}
    assert others == set()


def test_no_way_leads_from_what_publishes_to_an_arm(bench: Bench) -> None:
    """What the run node hands its state to, before a view and after one: neither the ledger nor its writer is in it."""
    bench.begin_session()
    node = vars(bench.node)
    held = (node["_publication"], node["_setting"], node["_writer"].facts)
    assert [line for one in held for line in telling(one)] == []
    assert telling(node["_writer"]), "a control: the writer leads there"


WITHOUT_ARMS = {
    "labctl.bus",
    "labctl.clock",
    "labctl.config",
    "labctl.core",
    "labctl.errors",
    "labctl.messages",
    "labctl.people.second_person",
    "labctl.plain",
    "labctl.runtime.blind_view",
    "labctl.runtime.operator_state",
    "labctl.core.run_facts",
    "labctl.store.scene_references",
}
DRAWS = (
    labctl.runtime.blind_view,
    labctl.runtime.operator_state,
    labctl.core.run_facts,
)


@pytest.mark.parametrize("module", DRAWS, ids=lambda module: module.__name__)
def test_what_draws_the_screen_imports_neither_the_campaign_nor_its_writer(module: ModuleType) -> None:
    tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
    modules = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    ours = {name for name in modules if name.startswith("labctl.")}
    assert [name for name in ours if not any(within(name, allowed) for allowed in WITHOUT_ARMS)] == []


def within(name: str, package: str) -> bool:
    return name == package or name.startswith(package + ".")
