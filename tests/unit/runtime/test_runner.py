"""The run process: stale commands, double clicks, wrong roles, lost processes, and what it says of them."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.core.liveness import BEAT_LIMIT_NS
from labctl.core.rollout import CLOSE_PATIENCE_NS
from labctl.core.trial import State, fold
from labctl.runtime.process_watch import MOST_DEATHS
from labctl.store.campaign import Campaign
from labctl.store.ledger import check_roots
from labctl.store.sealing import Findings


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")]).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


def test_a_command_from_an_older_screen_is_refused_and_nothing_is_written(bench):
    bench.begin()
    before = len(bench.events())
    reply = bench.command("commit", version=1)
    assert (reply["ok"], reply["kind"]) == (False, "StaleCommand")
    assert len(bench.events()) == before
    assert bench.command("commit", version=reply["version"])["ok"]


def test_a_command_given_twice_is_carried_out_once(bench):
    bench.begin()
    assert bench.command("release", id_="same", reason="look again")["ok"]
    before = len(bench.events())
    bench.command("release", id_="same", reason="look again")
    assert len(bench.events()) == before


def test_an_illegal_verb_is_one_line_and_no_event(bench):
    bench.begin()
    before = len(bench.events())
    for verb in ("score", "start", "end", "void"):
        reply = bench.command(verb, reason="operator")
        assert not reply["ok"] and "\n" not in reply["error"]
    assert len(bench.events()) == before


def test_commit_reveals_to_the_controller_alone_once_it_says_hello(bench):
    bench.begin()
    bench.commit()
    assert [m.body["name"] for m in bench.sent if m.kind == "spawn"] == ["controller"]
    assert not [m for m in bench.sent if m.kind == "prepare"]
    bench.hear(Message("run", "hello", sender="controller"))
    assert [m.to for m in bench.sent if m.kind == "prepare"] == ["controller"]
    public = [m for m in bench.sent if m.kind != "prepare"]
    assert "zebra" not in str(public) + str(bench.lines) and "sim_person" not in str(public)


def test_start_is_journalled_before_the_lease_and_lasts_from_commit_what_the_protocol_says(bench):
    bench.begin()
    committed_ns = bench.now_ns
    bench.start()
    (started,) = bench.events(Kind.EPISODE_STARTED)
    assert started.at_ns == committed_ns + 4 * SECOND
    leases = [message for message in bench.sent if message.kind == "lease" and message.body["episode"]]
    assert leases and leases[0].body["until_ns"] == started.at_ns + 300 * MILLISECOND


def test_a_controller_not_ready_at_start_voids_before_go_and_the_trial_is_planned_again(bench):
    bench.begin()
    bench.commit()
    bench.hear(Message("run", "hello", sender="controller"), opened(bench))
    assert bench.command("start")["ok"]
    bench.wait(4 * SECOND)
    (void,) = bench.events(Kind.EPISODE_VOIDED)
    assert (void.body["reason"], void.body["after_go"]) == ("not_ready", False)
    leased = [m for m in bench.sent if m.kind == "lease" and m.body["episode"]]
    assert not bench.events(Kind.EPISODE_STARTED) and not leased
    assert bench.state() == State.PLANNED
    assert len([m for m in bench.sent if m.kind == "stage"]) == 1, "nothing moves until somebody orders it"


def opened(bench: Bench) -> Message:
    """The recorder's word that it has opened the episode at hand."""
    return Message("run", "opened", {"episode": bench.shown()["episode"]}, sender="recorder")


@pytest.mark.parametrize("warm", [True, False])
@pytest.mark.parametrize("early", [True, False])
def test_a_start_before_the_recorder_is_ready_costs_nothing_and_looks_alike_for_every_policy(bench, early, warm):
    """ENTER a moment too early voided the episode. What is shown says nothing of whether the policy is loaded."""
    bench.begin()
    episode = bench.commit()
    bench.hear(Message("run", "hello", sender="controller"))
    if warm:
        bench.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
    if early:
        assert bench.command("start")["ok"]
    bench.wait(4 * SECOND)
    if not early:
        assert bench.command("start")["ok"]
    shown = bench.shown()
    assert (shown["trial_state"], shown["operator_ready"]) == ("armed", False)
    assert shown["withheld"] == "the recorder has not opened this episode yet"
    (withheld,) = bench.events(Kind.START_WITHHELD)
    assert (withheld.episode, withheld.body) == (episode, {"reason": shown["withheld"]}), "the journal has it"
    assert not bench.events(Kind.EPISODE_STARTED) and not bench.events(Kind.EPISODE_VOIDED)
    bench.hear(opened(bench))
    assert not bench.events(Kind.EPISODE_STARTED), "a person starts it again, and it moves then"
    assert bench.command("start")["ok"]
    assert bench.state() == (State.RUNNING if warm else State.PLANNED), "a policy not loaded when it is due is void"


def test_a_persons_device_that_is_not_ready_is_said_and_waited_for(bench):
    bench.begin()
    episode = bench.commit()
    bench.hear(Message("run", "hello", sender="controller"), opened(bench))
    fine = {"device": "gello", "engaged": False, "fresh": True, "ramp": 0.0, "gap_rad": None, "limit_rad": 0.6}
    told = {"episode": episode, "hand": {**fine, "waits": "hold the clutch"}}
    bench.hear(Message("run", "hand", told, sender="controller"))
    assert bench.command("start")["ok"]
    bench.wait(4 * SECOND)
    assert bench.shown()["withheld"] == "by hand (gello): hold the clutch"
    bench.hear(Message("run", "hand", {**told, "hand": {**fine, "waits": ""}}, sender="controller"))
    bench.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
    assert bench.command("start")["ok"] and bench.state() == State.RUNNING


def test_a_person_who_lets_go_before_the_start_is_asked_again(bench):
    bench.begin()
    episode = bench.commit()
    bench.hear(Message("run", "hello", sender="controller"), opened(bench))
    bench.hear(Message("run", "ready", {"episode": episode}, sender="controller"))
    fine = {"device": "gamepad", "engaged": False, "fresh": True, "ramp": 0.0, "gap_rad": None, "limit_rad": 0.6}
    for waits in ("hold the clutch", ""):
        bench.hear(Message("run", "hand", {"episode": episode, "hand": {**fine, "waits": waits}}, sender="controller"))
        assert bench.command("start")["ok"]
        bench.wait(4 * SECOND)
        started, withheld = bool(bench.events(Kind.EPISODE_STARTED)), bench.shown().get("withheld") or ""
        assert (started, withheld) == ((False, f"by hand (gamepad): {waits}") if waits else (True, ""))


def test_an_end_takes_the_lease_back_and_stops_the_arm(bench):
    bench.running()
    bench.sent.clear()
    assert bench.command("end", reason="operator")["ok"]
    assert [m.body["until_ns"] for m in bench.sent if m.kind == "lease"] == [0]
    assert [m.to for m in bench.sent if m.kind == "stop"] == ["arm"]
    bench.wait(SECOND)
    assert [m.body["until_ns"] for m in bench.sent if m.kind == "lease"] == [0], "never renewed after the end"


def test_a_silent_node_is_killed_and_ends_the_episode(bench):
    bench.running()
    bench.wait(BEAT_LIMIT_NS + SECOND // 10, beating=("arm", "recorder"))
    assert ("kill", "controller") in [(m.kind, m.body.get("name")) for m in bench.sent]
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    assert ended.body["reason"] == "controller_lost"


def test_a_run_that_stood_still_itself_takes_nobody_for_silent(bench):
    """After seconds of SIGSTOP it took the controller for lost, before it had read its mail."""
    bench.running()
    bench.clock.sleep_until(bench.now_ns + 2 * SECOND)
    bench.hear()
    assert not [m for m in bench.sent if m.kind == "kill"] and not bench.events(Kind.EPISODE_ENDED)
    bench.wait(BEAT_LIMIT_NS + SECOND // 10, beating=("arm", "recorder"))
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    assert ended.body["reason"] == "controller_lost", "from now on it is"


@pytest.mark.parametrize("lapsed", [True, False])
def test_a_run_that_stood_still_beyond_the_budget_reads_its_mail_before_it_judges(bench, lapsed):
    """The robot had stood since its lease lapsed; the episode ended as "budget", as if the policy had had its time."""
    bench.begin()
    episode = bench.start()
    go_ns = bench.now_ns
    bench.hear(Message("run", "go", {"episode": episode, "go_ns": go_ns}, sender="controller"))
    bench.wait(2 * SECOND)
    until_ns = bench.now_ns + 3 * SECOND // 10
    bench.clock.sleep_until(bench.now_ns + 5 * SECOND)
    bench.hear()
    assert not bench.events(Kind.EPISODE_ENDED)
    if lapsed:
        body = {"episode": episode, "until_ns": until_ns}
        told = {"kind": "lease_lapsed", "t_ns": until_ns, "body": body}
        bench.hear(Message("run", "event", told, sender="arm"))
    bench.wait(SECOND)
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    at_ns = until_ns if lapsed else go_ns + 4 * SECOND
    assert ended.body == {"reason": "lease_lapsed" if lapsed else "budget", "end_ns": at_ns}


def test_a_lost_arm_is_a_hold_until_a_person_clears_it(bench):
    bench.begin()
    bench.hear(Message("run", "exited", {"name": "arm", "reason": "ended by signal 9"}))
    assert [event.body["code"] for event in bench.events(Kind.HOLD_RAISED)] == ["arm_lost"]
    bench.hear(Message("run", "hello", sender="arm"))
    bench.wait(10 * SECOND)
    assert not bench.command("commit")["ok"], "it does not clear itself"
    assert bench.command("acknowledge", code="arm_lost")["ok"]
    (cleared,) = bench.events(Kind.HOLD_CLEARED)
    assert cleared.body["acknowledged_by"] == cleared.who == "ann"


def test_a_process_that_dies_again_and_again_faults_the_cell(bench):
    bench.begin()
    for _ in range(MOST_DEATHS):
        bench.hear(Message("run", "exited", {"name": "recorder", "reason": "ended with exit code 1"}))
        bench.hear(Message("run", "hello", sender="recorder"))
    (fault,) = bench.events(Kind.CELL_FAULTED)
    assert "recorder" in fault.body["reason"]
    assert bench.command("acknowledge", code="cell_faulted")["ok"]
    assert fold(bench.events()).faulted is None


def test_why_a_process_did_not_start_the_last_time_is_on_the_board(bench):
    bench.begin()
    bench.hear(Message("run", "exited", {"name": "arm", "reason": "ended by signal 9"}))
    bench.wait(SECOND)
    bench.hear(Message("run", "exited", {"name": "arm", "reason": "no emulator answers; start one"}))
    texts = {hold["code"]: hold["text"] for hold in bench.shown()["holds"]}
    assert "(ended by signal 9)" in texts["unacknowledged:arm_lost"], "what was lost first"
    assert texts["arm_stale"] == "the robot is not there: no emulator answers; start one"


def test_what_a_dying_controller_says_is_kept_in_the_seal_alone(bench):
    bench.begin()
    episode = bench.commit()
    bench.hear(Message("run", "hello", sender="controller"))
    bench.hear(Message("run", "exited", {"name": "controller", "reason": "no answer from sim://zebra"}))
    assert [event.body["reason"] for event in bench.events(Kind.EPISODE_VOIDED)] == ["controller_lost"]
    assert "zebra" not in str(bench.lines) + str([event.body for event in bench.events()])
    openings = bench.campaign.ledger.open_all()["openings"]
    assert {"no answer from sim://zebra"} == {o["value"] for o in openings if o["field"].startswith("failure")}
    assert episode in {opening["episode"] for opening in openings}


def test_a_shutdown_ends_and_seals_what_runs(bench):
    bench.running()
    bench.hear(Message("run", "shutdown"))
    assert [event.body["reason"] for event in bench.events(Kind.EPISODE_ENDED)] == ["shutdown"]
    assert not bench.node.finished, "it waits for the recording"


def test_what_was_found_in_an_episode_that_was_voided_meanwhile_reaches_no_other(bench):
    late = Message("run", "digested", {"tag": "e-voided", "result": Findings()}, sender="@host")
    bench.begin()
    episode = bench.start()
    bench.hear(late)
    bench.hear(Message("run", "go", {"episode": episode, "go_ns": bench.now_ns}, sender="controller"), late)
    assert bench.command("end", reason="operator")["ok"]
    bench.hear(Message("run", "closed", {"episode": episode, "streams": {}, "private": [], "gaps": []}), late)
    assert not bench.events(Kind.RECORDING_SEALED)
    bench.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"), late)
    assert [event.episode for event in bench.events(Kind.RECORDING_SEALED)] == [episode]


def test_what_is_missing_of_streams_that_tell_arms_apart_is_sealed_and_no_entry_says_it(bench):
    """Said by a sensor in the episode, found when it closes, or come after its seal."""
    lost = {"from_ns": 1, "to_ns": 2, "lost": 3}
    plain, tells = {"stream": "sensor/plain", **lost, "why": "a"}, {"stream": "sensor/telling", **lost, "why": "b"}
    chunks = {"from_ns": None, "to_ns": 2, "lost": None, "why": "chunk never arrived", "seq": 0}
    episode = bench.running()
    for gap, private in ((plain, False), (tells, True)):
        sent = {"episode": episode, **gap, "private": private}
        bench.hear(Message("run", "gap", sent, sender="sensor:any"))
    assert [event.body for event in bench.events(Kind.GAP)] == [plain]
    assert bench.command("end", reason="operator")["ok"]
    entry = {"n": 1, "chunks": 1, "root": "0" * 64, "t0_ns": 0, "t1_ns": bench.now_ns}
    streams, gaps = {"policy": entry, "arm/state": entry}, [{"stream": "policy", **chunks}]
    closed = {"episode": episode, "streams": streams, "private": ["policy"], "gaps": gaps}
    bench.hear(Message("run", "closed", closed, sender="recorder"))
    bench.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))
    for stream, private in (("policy", True), ("arm/state", False)):
        late = {"episode": episode, "stream": stream, "seq": 1, "n": 4, "private": private}
        bench.hear(Message("run", "late", late, sender="recorder"))
    (sealed,) = bench.events(Kind.RECORDING_SEALED)
    assert sealed.body["gaps"] == 1
    assert [event.body["stream"] for event in bench.events(Kind.GAP)] == ["sensor/plain", "arm/state"]
    came = {"stream": "policy", "from_ns": None, "to_ns": None, "lost": 4, "why": "came after the seal"}
    assert bench.campaign.ledger.gaps(episode) == [tells, gaps[0], came]
    opened = bench.campaign.ledger.open_all()
    assert check_roots(bench.events(), opened) == [], "they are bound, but for what came after the seal"


@pytest.mark.parametrize("kind", ["late", "gap"])
def test_what_tells_arms_apart_and_comes_after_its_seal_is_bound_by_the_next_entry_that_binds(bench, kind):
    """From then on nobody takes it away or changes it without being found out; nor is one added once it is closed."""
    episode = bench.running()
    assert bench.command("end", reason="operator")["ok"]
    closed = {"episode": episode, "streams": {}, "private": ["policy"], "gaps": []}
    bench.hear(Message("run", "closed", closed, sender="recorder"))
    bench.hear(Message("run", "digested", {"tag": episode, "result": Findings()}, sender="@host"))
    lost = {"from_ns": None, "to_ns": None, "lost": 4, "why": "came late"}
    sent = {"seq": 1, "n": 4} if kind == "late" else lost
    about = {"episode": episode, "stream": "policy", "private": True, **sent}
    bench.hear(Message("run", kind, about, sender="recorder" if kind == "late" else "sensor:any"))
    opened = bench.campaign.ledger.open_all()
    assert opened["openings"][-1]["value"]["lost"] == 4 and check_roots(bench.events(), opened) == []
    ledger = bench.campaign.ledger
    bound = ledger.binding(Kind.CAMPAIGN_CLOSED, {})
    with_close = [*bench.events(), replace(bench.events()[-1], kind=Kind.CAMPAIGN_CLOSED, body=bound)]
    assert check_roots(with_close, opened) == []
    without = {**opened, "openings": opened["openings"][:-1]}
    assert check_roots(with_close, without), "taken away"
    ledger.seal_gap(episode, {"stream": "policy", **lost})
    assert "was added after" in check_roots(with_close, ledger.open_all())[0]


def test_a_run_whose_recorder_never_delivers_waits_without_turning(bench):
    bench.begin()
    bench.start()
    bench.command("end", reason="operator")
    bench.wait(CLOSE_PATIENCE_NS + SECOND)
    assert "the recorder did not deliver" in fold(bench.events()).faulted
    assert bench.node.step(bench.now_ns, []).due_ns - bench.now_ns > 10 * MILLISECOND


def test_a_recorder_that_dies_once_an_episode_is_over_is_not_started_for_ever(bench):
    bench.begin()
    bench.start()
    bench.command("end", reason="operator")
    bench.wait(CLOSE_PATIENCE_NS + SECOND)
    bench.sent.clear()
    for _ in range(3 * MOST_DEATHS):
        bench.hear(Message("run", "exited", {"name": "recorder", "reason": "ended with exit code 1"}))
    assert len([m for m in bench.sent if m.kind == "spawn"]) < MOST_DEATHS


def test_a_recording_is_waited_for_from_when_the_end_was_heard(tmp_path):
    """A device's word that all items are done may come long after they were."""
    with Campaign.open(make_campaign(tmp_path, budget=60.0).folder, writer=True) as campaign:
        bench = Bench(campaign)
        bench.running()
        done_ns = bench.now_ns + SECOND
        bench.wait(CLOSE_PATIENCE_NS + 5 * SECOND)
        bench.hear(Message("run", "event", {"kind": "success", "t_ns": done_ns}, sender="arm"))
        bench.wait(SECOND)
        assert [event.body["end_ns"] for event in bench.events(Kind.EPISODE_ENDED)] == [done_ns]
        assert fold(bench.events()).faulted is None, "the recorder has just been asked"


def _raised(bench) -> list[str]:
    return [event.body["text"] for event in bench.events() if event.kind == Kind.HOLD_RAISED]


def test_an_arm_found_stopped_asks_for_a_person_whose_word_recovers_it(bench):
    bench.mode, bench.reason = "safety_stop", "joint reflex, latched"
    bench.begin_session()
    bench.wait(SECOND)
    assert _raised(bench) == ["the robot stopped itself: joint reflex, latched"]
    assert not bench.command("stage", role="setter")["ok"]
    assert "recover" not in [message.kind for message in bench.sent]
    assert bench.command("acknowledge", code="safety_stop")["ok"]
    assert [message.to for message in bench.sent if message.kind == "recover"] == ["arm"]
    bench.wait(10 * SECOND)
    assert len(_raised(bench)) == 1, "while the arm is recovering nobody is asked again"
    bench.mode = "idle"
    bench.wait(SECOND)
    assert bench.command("stage", role="setter")["ok"]


def test_why_the_arms_process_ended_is_in_the_hold(bench):
    bench.begin()
    bench.hear(Message("run", "failing", {"name": "arm", "reason": "no state for 1 s"}, sender="arm"))
    bench.hear(Message("run", "exited", {"name": "arm", "reason": "ended with exit code 1"}))
    assert _raised(bench) == ["the robot's process ended (no state for 1 s); look at the robot, then acknowledge"]


def test_a_scene_is_committed_only_when_the_arm_is_where_episodes_begin(bench):
    bench.begin_session()
    assert bench.command("stage", role="setter")["ok"]
    refused = bench.command("commit")
    assert not refused["ok"] and "still on its way" in refused["error"]


def test_the_way_home_is_leased_until_the_arm_has_arrived(bench):
    bench.begin_session()
    bench.command("stage", role="setter")
    (stage,) = [message for message in bench.sent if message.kind == "stage"]
    bench.sent.clear()
    bench.wait(SECOND)
    renewals = [message.body for message in bench.sent if message.kind == "lease"]
    assert {body["epoch"] for body in renewals} == {stage.body["epoch"]} and len(renewals) >= 9
    assert renewals[-1]["until_ns"] > bench.now_ns + 150 * MILLISECOND
    bench.hear(Message("run", "staged", {"trial": stage.body["trial"]}, sender="arm"))
    bench.sent.clear()
    bench.wait(SECOND)
    assert not [message for message in bench.sent if message.kind == "lease"]
