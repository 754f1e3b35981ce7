"""Before anything moves every arm is asked whether it answers, unnamed; like voids in a row are a hold, no lost arm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.policies.cards import card
from support.runs.campaigns import HUMAN, events_of, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.cli import call
from labctl.clock import SECOND
from labctl.config.cell_schema import Setup
from labctl.core.events import Kind
from labctl.core.trial import State, Trial, fold
from labctl.errors import Held
from labctl.nodes.asking import ANSWERS, CONNECT_S, SPARE_S, ArmQuestion, at_most_s
from labctl.runtime.campaign_run import run_campaign
from labctl.runtime.hosting.simulated_host import finish_work
from labctl.store.campaign import Campaign

DYING = {**policy("okapi", words="no okapi here"), "controller": "support.policies.dying_policy:build"}


def campaign(lab: Path, *arms: dict, **given) -> Path:
    return make_campaign(lab, [HUMAN, policy("zebra", skill="swift"), *arms], **given).folder


def asked(bench: Bench) -> None:
    """Carry out the call that asks the arms."""
    (work,) = [work for work in bench.work if work.kind == "asked"]
    bench.work.clear()
    bench.hear(finish_work(work)[0])


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    with Campaign.open(campaign(tmp_path, DYING), writer=True) as opened:
        made = Bench(opened, ask_arms=True)
        made.begin_session()
        yield made


def test_nothing_moves_before_all_were_asked(tmp_path: Path) -> None:
    with Campaign.open(campaign(tmp_path), writer=True) as opened:
        bench = Bench(opened, ask_arms=True)
        bench.begin_session()
        refused = bench.command("stage", role="setter")
        assert not refused["ok"] and "all 2 arms are asked, one after another, whether they answer" in refused["error"]
        asked(bench)
        (event,) = bench.events(Kind.ARMS_ASKED)
        assert event.body == {"asked": 2, "answer": 2} and "2 of 2 arms answer" in bench.lines
        bench.stage()
    notes = (opened.folder / "seal/readiness.log").read_text()
    assert '"zebra"' in notes and (opened.folder / "seal/readiness.log").stat().st_mode & 0o077 == 0


def test_whoever_waits_for_them_sees_one_clock_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A server that hangs keeps everybody waiting for minutes: of how many nothing was said."""
    monkeypatch.setattr("labctl.runtime.readiness.at_most_s", lambda question: 100.5)
    with Campaign.open(campaign(tmp_path, DYING), writer=True) as opened:
        bench = Bench(opened, ask_arms=True, here=False)
        bench.begin_session()

        def told() -> tuple[str, str]:
            (hold,) = [hold for hold in bench.shown()["holds"] if hold["code"] == "arms_asked"]
            return hold["text"], hold["clears"]

        before = told()
        bench.wait(65 * SECOND)
        later = told()
        bench.wait(300 * SECOND)
        late = told()
    assert before[0] == later[0] == late[0], "a line for each second would be printed"
    assert before[0].endswith("whether they answer, within 5:01") and before[1].endswith(
        "0:00 so far, 5:01 left at most"
    )
    assert later[1].endswith("1:05 so far, 3:56 left at most")
    assert late[1].endswith("6:05 so far, 0:00 left at most")
    assert not any(name in str([before, later, late]) for name in ("human", "zebra", "okapi"))


def test_how_long_an_arm_is_asked_at_most_is_known_before(tmp_path: Path) -> None:
    given = card(ready=60.0, give_up=4.0)
    with Campaign.open(campaign(tmp_path)) as opened:
        setup = Setup(cell=opened.cell, fixture=opened.fixture)
        dying = ArmQuestion.of(setup, "support.policies.dying_policy:build", {})
        carded = ArmQuestion.of(setup, "support.policies.dying_policy:build", {"card": given})
        here, unknown = ArmQuestion.of(setup, "sim_policy", {}), ArmQuestion.of(setup, "no_such_driver", {})
        assert at_most_s(dying) == SPARE_S
        assert at_most_s(carded) == CONNECT_S + SPARE_S + 2 * 60.0 + ANSWERS * 4.0
        assert at_most_s(here) == at_most_s(unknown) == 0.0


def test_an_arm_that_does_not_answer_is_a_hold_that_names_none(bench: Bench) -> None:
    asked(bench)
    (hold,) = [hold for hold in bench.shown()["holds"] if hold["needs_person"]]
    assert hold["code"] == "unacknowledged:arms_unready" and hold["text"].startswith("2 of 3 arms answer")
    assert not bench.command("stage", role="setter")["ok"]
    public = str([message.body for message in bench.sent]) + str(bench.lines) + str(bench.events())
    assert "okapi" not in public and "zebra" not in public and "dying" not in public


def test_acknowledging_it_asks_all_of_them_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    asked(bench)
    assert bench.command("acknowledge", code="arms_unready")["ok"]
    asked(bench)
    assert "arms_unready" in fold(bench.events()).holds, "it is still not there"
    monkeypatch.setattr("labctl.runtime.readiness.ask", lambda spec, here: {"load_s": 0.0})
    assert bench.command("acknowledge", code="arms_unready")["ok"]
    asked(bench)
    assert [event.body["answer"] for event in bench.events(Kind.ARMS_ASKED)] == [2, 2, 3]
    bench.stage()


def test_what_could_not_be_asked_did_not_answer(bench: Bench) -> None:
    bench.hear(Message("run", "asked", {"error": "broken", "tag": ""}, sender="@host"))
    assert [event.body for event in bench.events(Kind.ARMS_ASKED)] == [{"asked": 3, "answer": 0}]


def first(bench: Bench) -> Trial:
    return next(iter(fold(bench.events()).trials.values()))


def void_unready(bench: Bench) -> None:
    """Stage, commit and start an episode whose controller is not ready in time."""
    bench.stage()
    episode = bench.commit()
    bench.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
    assert bench.command("start")["ok"]
    bench.wait(4 * SECOND)


@pytest.mark.parametrize("max_voids", [1, 2, 5])
def test_two_like_voids_in_a_row_are_a_hold_and_cost_the_trial_nothing(tmp_path: Path, max_voids: int) -> None:
    with Campaign.open(campaign(tmp_path, max_voids=max_voids), writer=True) as opened:
        bench = Bench(opened)
        bench.begin_session()
        for _ in range(min(2, max_voids)):
            assert not fold(bench.events()).holds
            void_unready(bench)
        (text,) = fold(bench.events()).holds.values()
        assert "void" in text and "was not ready when its arming time was over" in text
        assert "controller.log" not in text and "labctl doctor CELL.toml --protocol" in text, "here none is kept"
        assert not bench.command("stage", role="setter")["ok"]
        assert bench.command("acknowledge", code="voids_alike")["ok"]
        assert not first(bench).exhausted and first(bench).voids == min(2, max_voids)
        void_unready(bench)
        assert first(bench).state == State.PLANNED


def test_where_controllers_have_a_log_the_hold_names_it(tmp_path: Path) -> None:
    with Campaign.open(campaign(tmp_path), writer=True) as opened:
        bench = Bench(opened, here=False)
        bench.begin_session()
        void_unready(bench)
        void_unready(bench)
        (text,) = fold(bench.events()).holds.values()
        assert "(whoever may know the arms looks into seal/controller.log of the campaign)" in text


def test_voids_for_different_reasons_or_with_a_score_between_are_not_alike() -> None:
    from labctl.core.events import Event
    from labctl.core.trial import _alike

    def void(reason: str) -> Event:
        return Event(1, Kind.EPISODE_VOIDED, 0, "", "", "run", body={"reason": reason})

    assert _alike(("arm_lost", 1), void("arm_lost"), None) == ("arm_lost", 2)
    assert _alike(("arm_lost", 1), void("camera_lost"), None) == ("camera_lost", 1)
    assert _alike(("arm_lost", 1), void("run_left"), None) == ("arm_lost", 1), "a person left: neither here nor there"
    assert _alike(("arm_lost", 1), Event(1, Kind.OUTCOME_RECORDED, 0, "", "", "run"), None) == ("", 0)


def test_a_run_without_a_person_ends_at_the_start_when_an_arm_does_not_answer(tmp_path: Path) -> None:
    folder, said = campaign(tmp_path, DYING), []
    with pytest.raises(Held, match=r"held: 2 of 3 arms answer.*labctl run trial-run"):
        run_campaign(folder, said.append, manual=True)
    events = events_of(folder)
    assert not [event for event in events if event.kind == Kind.TRIAL_STAGING], "nothing moved"
    assert events[-1].body["reason"] == "held" and "okapi" not in str(said)


def test_a_run_without_a_person_ends_at_like_voids_and_the_next_begins_anew(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    dies = policy("okapi", skill="swift", crash_at="infer")
    folder = campaign(tmp_path, dies, max_voids=3)
    for times in (1, 2):
        assert call(["run", str(folder), "--headless", "--simulated-time"]) == 75, "unlike 1, 2 and 130"
        said = capsys.readouterr().err
        assert "held: the last 2 episodes are void for the same reason, controller_lost" in said
        events = events_of(folder)
        voids = [event for event in events if event.kind == Kind.EPISODE_VOIDED]
        assert len(voids) == 2 * times and len({event.trial for event in voids}) == 1
        assert not [event for event in events if event.kind == Kind.TRIAL_SKIPPED], "no arm is lost"


def test_a_run_that_does_not_ask_says_so_in_every_report(tmp_path: Path) -> None:
    folder = campaign(tmp_path)
    assert run_campaign(folder, lambda line: None, manual=True, unready=True)
    events = events_of(folder)
    assert not [event for event in events if event.kind == Kind.ARMS_ASKED]
    assert [event.body["text"] for event in events if event.kind == Kind.DEVIATION] == [
        "this run began without asking whether every arm answers (--unready)"
    ]


@pytest.mark.parametrize(
    ("code", "dies"), [("arm_lost", {"name": "arm", "reason": "no such object"}), ("safety_stop", None)]
)
def test_a_run_without_a_person_ends_at_a_robot_that_is_acknowledged_in_vain(
    tmp_path: Path, code: str, dies: dict[str, str] | None
) -> None:
    """It staged, lost the robot and was acknowledged for as long as there was disk."""
    with Campaign.open(campaign(tmp_path), writer=True) as opened:
        bench = Bench(opened, attended=False)
        bench.begin_session()
        report = Message("run", "event", {"kind": code, "t_ns": bench.now_ns, "body": {"reason": "a reflex"}})
        for _ in range(2):
            bench.hear(report if dies is None else Message("run", "exited", dies))
            bench.hear(Message("run", "hello", sender="arm"))
            assert bench.command("acknowledge", code=code, contact=False)["ok"] and not bench.node.finished
        bench.hear(report if dies is None else Message("run", "exited", dies))
        assert bench.node.finished
        with pytest.raises(Held, match=r"acknowledged 2 times, and back with no episode in between.*labctl run"):
            bench.node.leave()
