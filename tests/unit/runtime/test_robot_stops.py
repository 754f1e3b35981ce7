"""Whatever stops the robot, in whatever state: it is journalled, bars motion until a named person acknowledged it,
voids what had not started and ends what ran with that reason; an acknowledgement alone moves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.runs.campaigns import HUMAN, make_campaign, policy
from support.runs.run_bench import Bench

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.core.events import Kind
from labctl.core.trial import fold
from labctl.messages.processes import Suspended
from labctl.store.campaign import Campaign


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    folder = make_campaign(tmp_path, [HUMAN, policy("zebra", endpoint="sim://zebra")]).folder
    with Campaign.open(folder, writer=True) as campaign:
        yield Bench(campaign)


# -- where a trial stands


def planned(bench: Bench) -> None:
    bench.begin_session()


def on_the_way_home(bench: Bench) -> None:
    bench.begin_session()
    assert bench.command("stage", role="setter")["ok"]


def home(bench: Bench) -> None:
    bench.begin()


def armed(bench: Bench) -> None:
    bench.begin()
    episode = bench.commit()
    bench.hear(Message("run", "hello", sender="controller"), Message("run", "opened", {"episode": episode}))
    bench.hear(Message("run", "ready", {"episode": episode}, sender="controller"))


def about_to_start(bench: Bench) -> None:
    armed(bench)
    assert bench.command("start")["ok"]


def started(bench: Bench) -> None:
    bench.begin()
    bench.start()


def running(bench: Bench) -> None:
    bench.running()
    bench.wait(SECOND // 10)


def scoring(bench: Bench) -> None:
    running(bench)
    assert bench.command("end")["ok"]
    sealed(bench)


def sealed(bench: Bench) -> None:
    episode = bench.events(Kind.EPISODE_STARTED)[-1].episode
    bench.seal(episode)


STATES = (planned, on_the_way_home, home, armed, about_to_start, started, running, scoring)
UNSTARTED = (armed, about_to_start)
MOVING = (started, running)


# -- what stops the robot


def stop_key(bench: Bench) -> None:
    assert bench.command("stop")["ok"]


def stop_socket(bench: Bench) -> None:
    """The console's stop reached the robot's process, and nothing of it the run process."""
    report(bench, "stopped", number=1, by="console-1")


def protective_stop(bench: Bench) -> None:
    bench.mode, bench.reason = "safety_stop", "joint reflex"
    report(bench, "safety_stop", reason="joint reflex")


def protective_stop_unreported(bench: Bench) -> None:
    """Nothing but the robot's mode shows it."""
    bench.mode, bench.reason = "safety_stop", "joint reflex"


def fault(bench: Bench) -> None:
    bench.mode, bench.reason = "fault", "no state for 1 s"
    report(bench, "fault", reason="no state for 1 s")


def fault_unreported(bench: Bench) -> None:
    bench.mode, bench.reason = "fault", "no state for 1 s"


def lost_unreported(bench: Bench) -> None:
    bench.mode, bench.reason = "lost", "the link is gone"


def process_killed(bench: Bench) -> None:
    bench.hear(Message("run", "exited", {"name": "arm", "reason": "ended by signal 9"}))
    bench.hear(Message("run", "hello", sender="arm"))


def suspended(bench: Bench) -> None:
    """The lid was closed: the clock of leases and budgets stood still meanwhile."""
    bench.hear(Suspended(600 * SECOND).to("run", sender="@host"))


def suspended_at_the_robots_process(bench: Bench) -> None:
    """The robot's process found it first."""
    report(bench, "suspended", number=1, for_ns=600 * SECOND)


def report(bench: Bench, kind: str, **body: object) -> None:
    sent = {"kind": kind, "t_ns": bench.now_ns - 5 * MILLISECOND, "body": body}
    bench.hear(Message("run", "event", sent, sender="arm"))


STOPS: dict[Callable[[Bench], None], tuple[str, str]] = {  # the hold's code, and the reason of an episode's end
    stop_key: ("operator_stop", "safety_stop"),
    stop_socket: ("operator_stop", "safety_stop"),
    protective_stop: ("safety_stop", "safety_stop"),
    protective_stop_unreported: ("safety_stop", "safety_stop"),
    fault: ("cell_faulted", "robot_fault"),
    fault_unreported: ("cell_faulted", "robot_fault"),
    lost_unreported: ("cell_faulted", "robot_fault"),
    process_killed: ("arm_lost", "arm_lost"),
    suspended: ("suspended", "suspended"),
    suspended_at_the_robots_process: ("suspended", "suspended"),
}
VOIDED_AS = {"suspended": "process_lost"}  # of the reasons that every protocol lists; the others: arm_lost


def motion(bench: Bench) -> list[Message]:
    """What lets the robot move."""
    return [m for m in bench.sent if m.kind == "stage" or (m.kind == "lease" and m.body["until_ns"] > 0)]


@pytest.mark.parametrize("stop", STOPS)
@pytest.mark.parametrize("state", STATES)
def test_a_stop_is_journalled_bars_motion_and_is_never_scored_as_the_policys(bench, state, stop):
    state(bench)
    before = len(bench.events())
    bench.sent.clear()
    stop(bench)
    bench.wait(SECOND // 5)

    code, ended = STOPS[stop]
    now = fold(bench.events())
    assert now.faulted if code == "cell_faulted" else code in now.holds
    new = bench.events()[before:]
    voids = [event.body for event in new if event.kind == Kind.EPISODE_VOIDED]
    ends = [event.body for event in new if event.kind == Kind.EPISODE_ENDED]
    assert [(void["reason"], void["after_go"]) for void in voids] == ([(ended, False)] if state in UNSTARTED else [])
    assert [end["reason"] for end in ends] == ([ended] if state in MOVING else [])
    assert bench.state() == ("scoring" if state in (*MOVING, scoring) else "planned")

    for verb in ("stage", "commit", "start"):
        assert not bench.command(verb, role="setter")["ok"]
    bench.wait(5 * SECOND)
    assert not motion(bench), "barred until somebody has acknowledged it"

    bench.mode, bench.reason = "idle", ""
    said = {"cause": "danger", "why": "a look at it"} if code == "operator_stop" else {}
    assert bench.command("acknowledge", code=code, **said)["ok"]
    bench.wait(5 * SECOND)
    assert not motion(bench), "an acknowledgement permits, it does not order"
    assert not fold(bench.events()).holds and not fold(bench.events()).faulted
    if bench.state() == "planned":
        assert bench.command("stage", role="setter")["ok"] and motion(bench)


@pytest.mark.parametrize("stop", STOPS)
def test_an_episode_that_the_robot_ended_is_voided_by_the_protocols_rule_and_a_safety_stop_is_scored(bench, stop):
    running(bench)
    stop(bench)
    bench.wait(SECOND // 5)
    sealed(bench)
    if STOPS[stop][1] == "safety_stop":
        assert bench.state() == "scoring"
        assert bench.events(Kind.OPERATION_RECORDED)[-1].body["result"] == "safety_stop"
    else:
        (void,) = bench.events(Kind.EPISODE_VOIDED)
        reason = VOIDED_AS.get(STOPS[stop][1], "arm_lost")
        assert (void.body["reason"], void.body["after_go"], bench.state()) == (reason, True, "planned")


@pytest.mark.parametrize("state", MOVING)
def test_a_lease_that_lapsed_in_mid_episode_ends_it_with_that_reason(bench, state):
    """Issue 17.1: the journal had `ended: budget, moved 0, gaps 0` for a robot that stood for 120 s."""
    state(bench)
    episode = bench.events(Kind.EPISODE_STARTED)[-1].episode
    report(bench, "lease_lapsed", episode=episode, until_ns=bench.now_ns - 10 * MILLISECOND)
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    assert ended.body["reason"] == "lease_lapsed"
    assert "lease_lapsed" in fold(bench.events()).holds
    sealed(bench)
    (void,) = bench.events(Kind.EPISODE_VOIDED)
    assert (void.body["reason"], void.body["evidence"] > ended.seq) == ("process_lost", True)


def test_a_lease_that_ends_with_the_budget_says_nothing(bench):
    running(bench)
    episode = bench.events(Kind.EPISODE_STARTED)[-1].episode
    budget_ns = round(bench.campaign.opened["budget_s"] * SECOND)
    deadline_ns = bench.events(Kind.GO)[-1].body["go_ns"] + budget_ns
    report(bench, "lease_lapsed", episode=episode, until_ns=deadline_ns)
    report(bench, "lease_lapsed", episode="e-another", until_ns=bench.now_ns)
    assert not bench.events(Kind.EPISODE_ENDED) and not fold(bench.events()).holds


def test_a_suspension_that_both_processes_find_is_journalled_once_with_its_length(bench):
    """Issue 17.19: CLOCK_MONOTONIC stands still in suspend, so lease and budget outlived a closed lid."""
    running(bench)
    suspended(bench)
    bench.sent.clear()
    suspended_at_the_robots_process(bench)
    (hold,) = bench.events(Kind.HOLD_RAISED)
    assert "600 s" in hold.body["text"] and "suspended" in hold.body["text"]
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    assert ended.body["reason"] == "suspended" and ended.who == "run", "no person's word, but a machine's"
    sent = [(m.kind, m.body) for m in bench.sent if m.to == "arm"]
    assert sent[-1] == ("stop_heard", {"number": 1}), "from here on the robot's process takes a lease again"


def test_stamps_go_on_as_they_were_through_a_suspension(bench):
    running(bench)
    before = [event.at_ns for event in bench.events()]
    bench.clock.suspend(600 * SECOND)
    suspended(bench)
    after = [event.at_ns for event in bench.events()]
    assert after == sorted(after) and after[-1] - before[-1] < SECOND


def test_a_stop_past_the_run_process_is_confirmed_only_once_it_is_journalled(bench):
    """Until then the robot's process takes no lease, so that no order that was on its way moves it."""
    on_the_way_home(bench)
    bench.sent.clear()
    stop_socket(bench)
    sent = [(m.kind, m.body) for m in bench.sent if m.to == "arm"]
    assert [kind for kind, _ in sent] == ["stop", "stop", "stop_heard"], "the epochs of before are over first"
    assert sent[-1][1] == {"number": 1} and bench.events(Kind.HOLD_RAISED)


def test_a_stop_after_the_budget_is_over_is_a_hold_and_the_episode_ends_with_its_budget(bench):
    running(bench)
    budget_ns = round(bench.campaign.opened["budget_s"] * SECOND)
    deadline_ns = bench.events(Kind.GO)[-1].body["go_ns"] + budget_ns
    bench.wait(deadline_ns + 50 * MILLISECOND - bench.now_ns)
    report(bench, "safety_stop", reason="joint reflex")
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    assert (ended.body["reason"], ended.body["end_ns"]) == ("budget", deadline_ns)
    assert "safety_stop" in fold(bench.events()).holds


def robot_process_gone(bench: Bench) -> None:
    bench.hear(Message("run", "exited", {"name": "arm", "reason": "ended by signal 9"}))


def controller_gone(bench: Bench) -> None:
    bench.hear(Message("run", "exited", {"name": "controller", "reason": "ended by signal 9"}))


def controller_done(bench: Bench) -> None:
    episode = bench.events(Kind.EPISODE_STARTED)[-1].episode
    bench.hear(Message("run", "done", {"episode": episode}, sender="controller"))


def end_key(bench: Bench) -> None:
    assert bench.command("end")["ok"]


def shut_down(bench: Bench) -> None:
    bench.hear(Message("run", "shutdown", {}))


@pytest.mark.parametrize("stood_ns", [100 * MILLISECOND, 4 * SECOND], ids=["at once", "after a stall"])
@pytest.mark.parametrize("end", [robot_process_gone, controller_gone, controller_done, end_key, shut_down])
def test_an_end_that_comes_after_the_budget_is_that_of_the_budget(
    bench: Bench, end: Callable[[Bench], None], stood_ns: int
) -> None:
    """It was taken as it came: an episode of 12 s in a budget of 8 s, which no report took, and a void of one that had
    its whole budget.
    """
    running(bench)
    deadline_ns = bench.events(Kind.GO)[-1].body["go_ns"] + round(bench.campaign.opened["budget_s"] * SECOND)
    bench.wait(deadline_ns - 50 * MILLISECOND - bench.now_ns)
    bench.clock.sleep_until(deadline_ns + stood_ns)
    end(bench)
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    assert ended.body == {"reason": "budget", "end_ns": deadline_ns}
    sealed(bench)
    assert not bench.events(Kind.EPISODE_VOIDED) and bench.state() == "scoring"


def test_an_item_that_arrives_at_the_very_end_of_the_budget_still_makes_it_all_done(bench: Bench) -> None:
    running(bench)
    deadline_ns = bench.events(Kind.GO)[-1].body["go_ns"] + round(bench.campaign.opened["budget_s"] * SECOND)
    bench.wait(deadline_ns + 5 * MILLISECOND - bench.now_ns)
    report(bench, "success")  # seen 5 ms before it is heard
    (ended,) = bench.events(Kind.EPISODE_ENDED)
    assert ended.body == {"reason": "all_done", "end_ns": deadline_ns}


def test_a_pause_of_the_robots_process_is_a_gap_of_its_setpoints(bench):
    running(bench)
    report(bench, "paused", from_ns=bench.now_ns - SECOND, to_ns=bench.now_ns)
    (gap,) = bench.events(Kind.GAP)
    assert gap.body["stream"] == "arm/action" and "stood still" in gap.body["why"]


def test_each_stop_names_who_made_it(bench):
    """The robot's own report may come before the person's command."""
    running(bench)
    stop_socket(bench)
    stop_key(bench)
    raised = bench.events(Kind.HOLD_RAISED)
    assert [event.who for event in raised][-1] == "ann" and "ann stopped the robot" in raised[-1].body["text"]
    assert len(bench.events(Kind.EPISODE_ENDED)) == 1


def test_an_arm_that_cannot_be_recovered_faults_the_cell_and_the_next_acknowledgement_tries_again(bench):
    bench.mode, bench.reason = "safety_stop", "user stop is pressed"
    bench.begin_session()
    bench.wait(SECOND)
    bench.command("acknowledge", code="safety_stop")
    body = {"kind": "fault", "t_ns": bench.now_ns, "body": {"reason": "user stop is pressed"}}
    bench.hear(Message("run", "event", body, sender="arm"))
    assert fold(bench.events()).faulted == "user stop is pressed"
    assert bench.command("acknowledge", code="cell_faulted")["ok"]
    assert [message.to for message in bench.sent if message.kind == "recover"] == ["arm", "arm"]
