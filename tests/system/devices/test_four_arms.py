"""An evening at an emulated FR3: two openpi policies, one GR00T policy and a person at a gamepad, blind to the end.

Real clients over real protocols: franky to an emulated controller, websockets and ZeroMQ to policy servers, SDL to a
pad that exists in software. Policies and person see what the console sees, and really move items.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from support.policies.cards import CAMERA, policy_arm
from support.policies.gr00t_servers import TASK, FakeGr00t
from support.policies.policy_servers import FakeServer
from support.robots.emulators import Emulator
from support.robots.item_movers import Eyes, Person, picking
from support.robots.virtual_hand import Fingers
from support.runs.campaigns import ROOT, events_of, make_campaign
from support.runs.live_campaign import end_of, running

from labctl.cli import call
from labctl.core.trial import State, fold
from labctl.drivers.sim.picker import Skill

DEFT_ONE, LATE_ONE, STILL_ONE, PERSON = "zebra", "quagga", "okapi", "wildebeest"
LATE_S = 0.35
BUDGET_S, LINEAR_M_S, ANGULAR_RAD_S = 20.0, 0.35, 1.2
DEFT = Skill(
    speed_m_s=0.45, aim_m=0.001, bias_m=0.0, pause_p=0.0, pause_s=0.0, react_s=0.2, outside_p=0.0, low_p=0.0,
    fast_p=0.0, frailty=0.0, latency_s=0.0, chunk=12, execute=8,
)  # fmt: skip
TELEOP = """
[teleop]
device = "support.robots.virtual_hand:build"
linear_m_s = {linear}
angular_rad_s = {angular}
ramp_s = 0.1
[teleop.options]
socket = "{socket}"

[storage]"""


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    made = Emulator("fr3", "ahead=true")
    yield made
    made.end()


def printed(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    """What a command prints; it must end as it should."""
    found = call(list(words))
    told = capsys.readouterr()
    assert found == code, f"{words}: {told.err}"
    return told.out + told.err


def files_of(folder: Path) -> dict[str, str]:
    """Every file of a campaign that a blind role can read, as text."""
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    return {
        name: path.read_bytes().decode("latin-1")
        for path in paths
        if not (name := str(path.relative_to(folder))).startswith("seal")
    }


@pytest.mark.interop  # takes two minutes
def test_an_evening_of_three_policies_and_a_person(
    emulator: Emulator, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "tests"))
    campaign = tmp_path / "campaigns" / "evening"
    with ExitStack() as stack:
        hand = stack.enter_context(closing(Fingers(tmp_path / "hand.sock")))
        eyes = Eyes(campaign, Person(hand, linear_m_s=LINEAR_M_S, angular_rad_s=ANGULAR_RAD_S))
        deft = stack.enter_context(FakeServer(policy=picking(eyes, DEFT)))
        late = stack.enter_context(FakeServer(policy=picking(eyes, DEFT, after_s=LATE_S)))
        still = stack.enter_context(FakeGr00t())
        card = {"rate": 1 / DEFT.dt_s, "execute": DEFT.execute, "deadline": 1.1737}
        language = f'[[input]]\nkey = "language.{TASK["n1.6"]}"\nprompt = true\n'
        eye = CAMERA.format(key="observation/wrist", camera="wrist")
        arms = [
            policy_arm(tmp_path, DEFT_ONE, deft.uri, inputs=eye, **card),
            policy_arm(tmp_path, LATE_ONE, late.uri, **card),
            policy_arm(tmp_path, STILL_ONE, still.uri, "gr00t", inputs=language, **card),
            {"name": PERSON, "kind": "human", "controller": "teleop", "options": {}},
        ]
        teleop = TELEOP.format(linear=LINEAR_M_S, angular=ANGULAR_RAD_S, socket=hand.path)
        cell = {"127.0.0.2": emulator.host, "\n[storage]": teleop}
        opened = make_campaign(
            tmp_path, arms, name="evening", base="emulated_fr3", cell=cell, cameras=True, durable=True, live=True,
            protocol={"[analysis]\n": f'[analysis]\nreference = "{PERSON}"\n'},
            items=1, budget=BUDGET_S, max_voids=2,
        )  # fmt: skip
        assert opened.folder == campaign
        stack.enter_context(eyes)
        with running(campaign, tmp_path / "run.log") as run:
            assert end_of(run) == 0, (tmp_path / "run.log").read_text()
    telling = [DEFT_ONE, LATE_ONE, STILL_ONE, PERSON, "policy_openpi", "policy_gr00t", "1.1737"]
    telling += [f":{server.port}" for server in (deft, late, still)]
    state = fold(events_of(campaign))
    assert [trial.state for trial in state.trials.values()] == [State.SCORED] * 4, (tmp_path / "run.log").read_text()

    blind_surfaces_say_nothing(tmp_path, campaign, telling, capsys)
    the_report_says_how_they_compare(tmp_path, capsys)


def blind_surfaces_say_nothing(
    lab: Path, campaign: Path, telling: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Before unblinding nothing that is printed, written or exported tells an arm, where it is, or how fast it is."""
    seen = {}
    for words in (
        ("status",), ("status", "--json"), ("episodes",), ("episodes", "--json"), ("verify",), ("verify", "--json"),
        ("export", "--to", "table", "--out", str(lab / "table.csv")),
    ):  # fmt: skip
        seen[" ".join(words)] = printed(capsys, words[0], "evening", *words[1:], "--lab", str(lab))
    seen["report"] = printed(capsys, "report", "evening", "--out", str(lab / "r"), "--lab", str(lab), code=1)
    for name in ("run.log", "table.csv"):
        seen[name] = (lab / name).read_text("utf-8")
    times = ("answer_s", "answer times", "load_s", "warm_s", "server_us", "call_us", "infer_ms", "rest_s", "gpu_memory")
    assert [(where, word) for where, text in seen.items() for word in times if word in text.lower()] == []
    told = {**seen, **{f"campaign/{name}": text for name, text in files_of(campaign).items()}}
    assert len(told) > 20
    assert [(where, word) for where, text in told.items() for word in telling if word in text] == []


def the_report_says_how_they_compare(lab: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """After unblinding: who moved what, HRT of each policy against the person, how fast each answered; all verified."""
    for verb in (["close"], ["freeze", "--unreviewed"], ["unblind"]):
        printed(capsys, *verb, "evening", "--lab", str(lab))
    printed(capsys, "report", "evening", "--out", str(lab / "report"), "--lab", str(lab))
    assert "evening: " in printed(capsys, "verify", "evening", "--lab", str(lab))
    page = (lab / "report" / "report.html").read_text("utf-8")
    told = json.loads((lab / "report" / "report.json").read_text("utf-8"))
    assert told["result"]["reference"] == PERSON
    arms = {entry["arm"]: entry for entry in told["result"]["arms"]}
    print({name: (entry["moved"], entry["rmst"], entry["hrt"]) for name, entry in arms.items()})
    assert {name: entry["moved"] for name, entry in arms.items()} == {DEFT_ONE: 1, LATE_ONE: 1, STILL_ONE: 0, PERSON: 1}
    assert arms[STILL_ONE]["hrt"] == arms[STILL_ONE]["hrt_floor"] == pytest.approx(arms[PERSON]["rmst"] / BUDGET_S)
    for name in (DEFT_ONE, LATE_ONE):
        assert arms[name]["hrt"] == pytest.approx(arms[PERSON]["rmst"] / arms[name]["rmst"])
    answers = {entry["arm"]: entry for entry in told["lab"]["answer_times"]}
    assert set(answers) == set(arms)
    assert answers[LATE_ONE]["answer_s"]["p50"] > LATE_S > answers[DEFT_ONE]["answer_s"]["p50"]
    assert answers[DEFT_ONE]["picture_s"] is not None and answers[LATE_ONE]["picture_s"] is None
    assert "Answer times" in page and all(name in page for name in arms)
