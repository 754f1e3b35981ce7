"""Policies behind real sockets in a real campaign: what a server does wrong costs its own trial and no other."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner
from support.policies.cards import CAMERA, card_toml
from support.policies.cards import policy_arm as arm
from support.policies.policy_servers import FakeServer, closed_port, hold
from support.runs.campaigns import NEVER_HELD, events_of, make_campaign
from support.runs.live_campaign import end_of, of_kind, running

from labctl.cli import group
from labctl.core.events import Event, Kind
from labctl.core.trial import State, fold
from labctl.errors import InputError
from labctl.store.campaign import Campaign
from labctl.store.traces import TraceStore
from labctl.store.verifying.verify import verify_campaign

TESTS = Path(__file__).resolve().parents[2]
# A server as a lab would start it, on a port of its own choosing.
SERVE = (
    "import sys, threading; sys.path.insert(0, sys.argv[1]); from support.policies.policy_servers import FakeServer; "
    "FakeServer(port=int(sys.argv[2])).__enter__(); threading.Event().wait()"
)


@contextmanager
def opened(folder: Path) -> Iterator[dict[str, Any]]:
    """What the seal of a campaign holds, as after unblinding."""
    with Campaign.open(folder, writer=True) as campaign:
        yield campaign.ledger.open_all()


def trials_of(folder: Path) -> dict[str, str]:
    """Arm -> its only trial."""
    with opened(folder) as found:
        return {slot["arm"]: slot["trial"] for slot in found["schedule"]}


def failures(folder: Path) -> dict[str, list[str]]:
    """Episode -> why its controller failed, from the seal."""
    with opened(folder) as found:
        told: dict[str, list[str]] = {}
        for opening in found["openings"]:
            if opening["field"].startswith("failure:"):
                told.setdefault(opening["episode"], []).append(opening["value"])
        return told


def endings(events: list[Event], trial: str) -> list[tuple[str, str]]:
    """(what, reason) of a trial's endings, voids and skips, in order."""
    kinds = (Kind.EPISODE_ENDED, Kind.EPISODE_VOIDED, Kind.TRIAL_SKIPPED)
    return [(str(e.kind), e.body["reason"]) for e in events if e.trial == trial and e.kind in kinds]


# name -> (fault after the two answers while warming, card, what the seal says of it)
FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "blocked": ("block", {"deadline": 0.4, "late": "end"}, 'deadline of 0.4 s, and the card says late = "end"'),
    "given-up": ("block", {"deadline": 0.3, "give_up": 0.6}, "no answer within 0.6 s; given up"),
    "lying": ("nan", {}, "values that are not finite"),
    "failing": ("traceback", {}, "the policy server failed: KeyError: 'observation/exterior_image_0_left'"),
}


# What the server of "well" says of itself: numbers that stand nowhere else.
PARAMETERS, GPU_MB = 2_718_281_828, 3_141_592_653.0


PROMPT = '[[input]]\nkey = "prompt"\nprompt = true'
SWITCH = '[[switch]]\nname = "small"\nat_s = 1.0\ninstruction = "Move the small items."\n'


class Telling:
    """Answers with the memory that its server holds, and notes what each question asked for."""

    def __init__(self) -> None:
        self.prompts: list[str] = []

    def __call__(self, observation: dict[str, Any]) -> dict[str, Any]:
        self.prompts.append(observation["prompt"])
        return {**hold(observation), "resources": {"gpu_memory_mb": GPU_MB}}


@pytest.mark.real_time
@pytest.mark.thorough
def test_each_server_that_fails_costs_its_own_trial_and_the_campaign_goes_on(tmp_path: Path) -> None:
    """A policy that answers, four that fail on the clock, one that is not there and one that labctl starts itself. In
    their middle the instruction is switched.
    """
    telling = Telling()
    with ExitStack() as stack:
        about = {"resources": {"parameters": PARAMETERS}}
        well = stack.enter_context(FakeServer(policy=telling, needs=about))
        arms = [arm(tmp_path, "well", well.uri, inputs=PROMPT)]
        for name, (fault, card, _) in FAULTS.items():
            server = stack.enter_context(FakeServer(fault=fault, after=2))
            arms.append(arm(tmp_path, name, server.uri, **card))
        # Waited for until long after the operator's patience is over: which of the two is first is a race otherwise.
        arms.append(arm(tmp_path, "absent", f"ws://127.0.0.1:{closed_port()}", ready=600.0))
        port = closed_port()
        start = [sys.executable, "-c", SERVE, str(TESTS), str(port)]
        arms.append(arm(tmp_path, "ours", f"ws://127.0.0.1:{port}", server=f"start = {start!r}\nstop_s = 1.0"))
        given = {"live": True, "budget": 2.0, "max_voids": 1, "link": SWITCH, "cell": NEVER_HELD}
        folder = make_campaign(tmp_path, arms, **given).folder
        with running(folder, tmp_path / "run.log") as run:
            assert end_of(run) == 0, (tmp_path / "run.log").read_text()
    events, trials, told = events_of(folder), trials_of(folder), failures(folder)
    state = fold(events)
    assert {name for name, trial in trials.items() if state.trials[trial].state == State.SCORED} == {"well", "ours"}
    for name, (_, _, says) in FAULTS.items():
        ended = ("EpisodeEnded", "controller_lost")
        assert endings(events, trials[name]) == [
            ended,
            ("EpisodeVoided", "controller_lost"),
            ("TrialSkipped", "max_voids"),
        ]
        (episode,) = state.trials[trials[name]].episodes
        assert says in told[episode][0], name
    assert endings(events, trials["absent"]) == [("EpisodeVoided", "not_ready"), ("TrialSkipped", "max_voids")]
    assert endings(events, trials["well"]) == endings(events, trials["ours"]) == [("EpisodeEnded", "budget")]
    assert verify_campaign(folder).problems == []
    quick_to_end(folder, state.trials[trials["blocked"]].episodes[0], within_s=2.0)
    asked_and_answered(folder, state.trials[trials["well"]].episodes[0])
    what_servers_told_stays_sealed(tmp_path, folder, state.trials[trials["well"]].episodes[0])
    told_and_asked(folder, state.trials[trials["well"]].episodes[0], telling.prompts)
    lost = {state.trials[trials[name]].episodes[0] for name in ("failing", "lying")}
    assert not lost & {event.episode for event in of_kind(folder, Kind.INSTRUCTION_SWITCHED)}, (
        "nobody was there to tell"
    )


def told_and_asked(folder: Path, episode: str, prompts: list[str]) -> None:
    """The server hears the instruction of go, while warming too, and from the first question after the switch on the
    other one alone.
    """
    (event,) = [event for event in of_kind(folder, Kind.INSTRUCTION_SWITCHED) if event.episode == episode]
    after = sum(row["request_ns"] >= event.body["t_ns"] for row in questions(folder, episode))
    old = prompts.index("Move the small items.")
    assert after >= 2 and old >= 4
    assert set(prompts[:old]) == {"Move the items."} and set(prompts[old:]) == {"Move the small items."}
    assert len(prompts) - old - after in (0, 1), "the last one may have been open at the end"


def what_servers_told_stays_sealed(lab: Path, folder: Path, well: str) -> None:
    """A memory or a model's size is a name: it stands in the seal and in a stream that no blind role is given."""
    with opened(folder) as found:
        told = {o["episode"]: o["value"].get("told") for o in found["openings"] if o["field"] == "start_up"}
    assert told.pop(well) == {"parameters": PARAMETERS, "gpu_memory_mb": GPU_MB}
    assert told and set(told.values()) == {None}, "the other servers said nothing"
    out = lab / "export"
    seen = {}
    for words in (("status", "--json"), ("episodes", "--json"), ("verify", "--json"), ("export", "--to", "table")):
        given = ("--out", str(out / "table.csv")) if words[0] == "export" else ()
        shown = CliRunner().invoke(group, [words[0], folder.name, *words[1:], *given, "--lab", str(lab)])
        seen[" ".join(words)] = shown.output
    paths = [path for path in (*folder.rglob("*"), *out.rglob("*"), lab / "run.log") if path.is_file()]
    seen |= {str(path): path.read_text("latin-1") for path in paths if "seal" not in path.parts}
    assert len(seen) > 8 and str(PARAMETERS) in (folder / "seal/openings.jsonl").read_text()
    names = (str(PARAMETERS), str(int(GPU_MB)), "parameters", "infer_ms")
    assert [(where, name) for where, text in seen.items() for name in names if name in text] == []


def quick_to_end(folder: Path, episode: str, *, within_s: float) -> None:
    """A server that blocks for good ends its episode at the deadline, not at the budget."""
    go = next(e for e in of_kind(folder, Kind.GO) if e.episode == episode)
    end = next(e for e in of_kind(folder, Kind.EPISODE_ENDED) if e.episode == episode)
    assert end.body["end_ns"] - go.body["go_ns"] < within_s * 1e9


def asked_and_answered(folder: Path, episode: str) -> None:
    """Every question of an episode is a row with its times in their order, and the arm moves in between."""
    rows = questions(folder, episode)
    assert len(rows) >= 4
    for row in rows:
        assert row["capture_ns"] <= row["request_ns"] < row["reply_ns"] <= row["first_ns"]
        assert (row["actions"], row["executed"], row["late"], row["server_us"]) == (8, 4, 0, 12500)
        assert (row["call_us"], row["gpu_memory_mb"]) == (12500, GPU_MB)
    waits = [b["request_ns"] - a["first_ns"] for a, b in pairwise(rows)]
    assert min(waits) >= 4 * 50_000_000, "four actions of 50 ms are followed before the next question"


def questions(folder: Path, episode: str) -> list[dict[str, int]]:
    """The rows of an episode's policy stream."""
    with Campaign.open(folder) as campaign:
        store = TraceStore.open(campaign.traces_url, campaign.opened["campaign"], readonly=True)
    spec = next(spec for spec in store.streams(episode) if spec.name == "policy")
    _, values = store.read(episode, "policy")
    store.close()
    assert spec.arm_dependent
    return [dict(zip(spec.columns, row, strict=True)) for row in values.tolist()]


EYES = "".join(
    CAMERA.format(key=f"observation/{camera}", camera=camera) for camera in ("over_shoulder", "wrist")
).replace('resize = "pad"', 'resize = "pad"\nsteps = [-4, 0]')


@pytest.mark.real_time
@pytest.mark.thorough
def test_a_policy_sees_what_the_cameras_see_at_full_size_and_when(tmp_path: Path) -> None:
    """Real camera processes: two pictures of each, four actions apart, none older than the card allows."""
    with FakeServer() as server:
        arms = [arm(tmp_path, name, server.uri, inputs=EYES) for name in ("one", "two")]
        given = {"cameras": True, "live": True, "budget": 3.0}
        folder = make_campaign(tmp_path, arms, **given, cell=NEVER_HELD).folder  # the first asking has no pictures
        with running(folder, tmp_path / "run.log") as run:
            assert end_of(run) == 0, (tmp_path / "run.log").read_text()
    assert verify_campaign(folder).problems == []
    assert [event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)] == ["budget", "budget"]
    for question in server.heard:
        for camera in ("over_shoulder", "wrist"):
            pictures = question[f"observation/{camera}"]
            assert pictures.shape == (2, 48, 64, 3) and pictures.dtype == np.uint8
            assert pictures.std() > 5, "a picture of the scene, not of nothing"
    for event in of_kind(folder, Kind.GO):
        rows = questions(folder, event.episode)
        assert len(rows) >= 4
        ages_s = [(row["request_ns"] - row["image_ns"]) / 1e9 for row in rows]
        assert min(ages_s) >= 0 and max(ages_s) <= 0.3, "the card's max_age_s"
        assert len({row["image_ns"] for row in rows}) == len(rows), "every question has a picture of its own"


@pytest.mark.real_time
def test_a_server_that_labctl_starts_is_gone_after_its_trial(tmp_path: Path) -> None:
    port = closed_port()
    start = [sys.executable, "-c", SERVE, str(TESTS), str(port)]
    ours = arm(tmp_path, "ours", f"ws://127.0.0.1:{port}", server=f"start = {start!r}\nstop_s = 1.0")
    folder = make_campaign(tmp_path, [ours, {**ours, "name": "again"}], live=True, budget=1.0).folder
    with running(folder, tmp_path / "run.log") as run:
        assert end_of(run) == 0, (tmp_path / "run.log").read_text()
    reasons = [event.body["reason"] for event in of_kind(folder, Kind.EPISODE_ENDED)]
    # A computer that stood still for longer than the lease has such an episode run again: no server's doing.
    assert [reason for reason in reasons if reason != "lease_lapsed"] == ["budget", "budget"]
    socket.create_server(("127.0.0.1", port)).close()  # raises if anybody still listens there


# A policy in the controller's own process, whose library holds the interpreter while it is loaded.
HOLDING = """
import ctypes
from support.policies.policy_servers import hold

ctypes.PyDLL(None).usleep(4_000_000)
act = hold
"""


@pytest.mark.thorough
@pytest.mark.real_time
def test_a_policy_that_holds_its_process_while_it_loads_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was not heard for 1.5 s and killed, "no heartbeat", in each of its trials."""
    (tmp_path / "holding_lab.py").write_text(HOLDING)
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}:{TESTS}")
    one = arm(tmp_path, "one", "", "callable")
    one["options"] = {"card": "cards/one.toml", "function": "holding_lab:act"}
    folder = make_campaign(tmp_path, [one, {**one, "name": "two"}], live=True, budget=1.0, cell=NEVER_HELD).folder
    with running(folder, tmp_path / "run.log") as run:
        assert end_of(run) == 0, (tmp_path / "run.log").read_text()
    ended = of_kind(folder, Kind.EPISODE_ENDED)
    assert [event.body["reason"] for event in ended] == ["budget", "budget"], failures(folder)
    assert not of_kind(folder, Kind.EPISODE_VOIDED)


def test_what_a_cell_could_not_run_is_refused_when_the_campaign_is_opened(tmp_path: Path) -> None:
    wrong = arm(tmp_path, "wrong", "http://127.0.0.1:80")
    with pytest.raises(InputError) as caught:
        make_campaign(tmp_path, [wrong, {**wrong, "name": "other"}])
    path = tmp_path / "protocols/p.toml"
    line = next(n for n, text in enumerate(path.read_text().splitlines(), 1) if text.startswith("endpoint"))
    assert str(caught.value).startswith(f"{path}:{line}: policy_openpi: endpoint is 'http://127.0.0.1:80'")
    assert list((tmp_path / "campaigns").iterdir()) == []


def test_a_card_is_frozen_with_its_campaign_and_a_changed_one_is_found(tmp_path: Path) -> None:
    one = arm(tmp_path, "one", "ws://127.0.0.1:1")
    folder = make_campaign(tmp_path, [one, {**one, "name": "two"}]).folder
    (tmp_path / "protocols/cards/one.toml").write_text(card_toml(rate=99.0))
    with Campaign.open(folder, writer=True) as campaign:
        assert campaign.arms["one"].options["card"]["timing"]["rate_hz"] == 20.0, "the frozen card counts"
    assert "rate_hz" not in "".join(
        path.read_text("latin-1") for path in folder.rglob("*") if path.is_file() and "seal" not in path.parts
    ).replace(folder.joinpath("cell.toml").read_text(), "")
    assert verify_campaign(folder).problems == []
    sealed = folder / "seal" / "cards.json"
    sealed.write_text(sealed.read_text().replace("20.0", "25.0"))
    (problem,) = verify_campaign(folder).problems
    assert problem.what == "changed frozen file" and problem.where == "policy cards"
