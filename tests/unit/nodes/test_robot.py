"""The robot moves under a lease, along targets of its epoch that have not expired, and not otherwise."""

import numpy as np
import pytest
from support.robots.robot_bench import LEASE, STALE, TICK, Bench

from labctl.bus import Message
from labctl.clock import MILLISECOND, SECOND
from labctl.devices import DeviceEvent
from labctl.messages.motion import Lease, StopHeard, Target
from labctl.messages.processes import Suspended
from labctl.nodes.robot import RobotNode
from labctl.realtime import tick_ns


@pytest.fixture
def bench():
    return Bench()


def _events(bench: Bench, kind: str) -> list[dict]:
    """The bodies of one kind of what the node reported."""
    return [m.body["body"] for m in bench.said if m.kind == "event" and m.body["kind"] == kind]


def test_targets_without_a_lease_move_nothing(bench):
    bench.send(bench.target())
    assert not bench.moved_within(SECOND)


def test_a_lease_without_targets_moves_nothing(bench):
    bench.send(bench.lease())
    assert not bench.moved_within(LEASE)


def test_an_arm_follows_targets_under_a_lease_to_their_end(bench):
    bench.send(bench.lease(), bench.target())
    assert bench.moved_within(150 * MILLISECOND)
    assert bench.robot.q.tolist() == [1.0, 0.5]
    assert bench.robot.gripper[0] == 0.04
    assert (np.diff(bench.robot.followed) == 10 * MILLISECOND).all()


@pytest.mark.parametrize("epoch", [0, 2])
def test_targets_of_another_epoch_are_dropped(bench, epoch):
    bench.send(bench.lease(1), bench.target(epoch))
    assert not bench.moved_within(LEASE)


def test_expired_targets_are_dropped(bench):
    bench.send(bench.lease(), bench.target(expires_ns=bench.now_ns - 1))
    assert not bench.moved_within(LEASE)


def test_a_lapsed_lease_stops_the_arm_within_a_tick(bench):
    bench.send(bench.lease(ns=50 * MILLISECOND), bench.target(ns=SECOND))
    lapses_ns = bench.now_ns + 50 * MILLISECOND
    bench.run(SECOND)
    assert bench.robot.stops == 1
    assert max(bench.robot.followed) <= lapses_ns
    bench.send(bench.lease())
    assert not bench.moved_within(100 * MILLISECOND), "the old targets are gone; a late renewal moves nothing"


def test_a_lease_of_an_older_epoch_is_ignored(bench):
    bench.send(bench.lease(2, ns=50 * MILLISECOND), bench.lease(1, ns=SECOND), bench.target(2, ns=SECOND))
    bench.run(SECOND)
    assert bench.robot.stops == 1 and max(bench.robot.followed) <= SECOND + 50 * MILLISECOND


def test_a_new_epoch_forgets_the_targets_of_the_last(bench):
    bench.send(bench.lease(1), bench.target(1, ns=SECOND))
    bench.run(50 * MILLISECOND)
    bench.send(bench.lease(2))
    assert not bench.moved_within(LEASE - TICK)


def test_stale_targets_bring_the_arm_to_rest_at_the_last_one_and_fresh_ones_go_on(bench):
    bench.send(bench.lease(ns=5 * SECOND), bench.target(ns=100 * MILLISECOND))
    bench.run(100 * MILLISECOND + STALE + 2 * TICK)
    assert not bench.moved_within(SECOND)
    assert (bench.robot.stops, bench.robot.q[0]) == (0, 1.0)
    notes = [message.body["body"] for message in bench.said if message.kind == "event"]
    assert notes == [{"text": "targets went stale"}]
    bench.send(bench.target(to=0.2))
    assert bench.moved_within(200 * MILLISECOND) and bench.robot.q[0] == 0.2


def test_a_stop_halts_and_no_renewal_of_its_lease_undoes_it(bench):
    """A console's stop does not pass through run, which goes on renewing; a renewal may overtake a stop."""
    bench.send(bench.lease(), bench.target(ns=SECOND))
    bench.run(50 * MILLISECOND)
    bench.send(Message("arm", "stop", {}))
    assert bench.robot.stops == 1
    bench.send(bench.lease(), bench.target())
    assert not bench.moved_within(LEASE)
    assert _events(bench, "stopped") == [{"number": 1, "by": ""}]
    bench.send(bench.lease(2), bench.target(2))
    assert not bench.moved_within(LEASE), "nothing moves it before the stop is known to be journalled"
    bench.send(Message("arm", "stop_heard", {"number": 1}), bench.lease(3), bench.target(3))
    assert bench.moved_within(100 * MILLISECOND), "the next epoch may move it again"


def test_a_second_stop_is_heard_of_by_itself(bench):
    bench.send(Message("arm", "stop", {}), Message("arm", "stop", {}), Message("arm", "stop_heard", {"number": 1}))
    bench.send(bench.lease(2), bench.target(2))
    assert not bench.moved_within(LEASE)


def test_a_stop_by_run_is_not_reported_to_run(bench):
    bench.send(bench.lease(), bench.target(ns=SECOND), Message("arm", "stop", {"epoch": 1}, sender="run"))
    bench.run(SECOND)
    assert bench.robot.stops == 1 and not [m for m in bench.said if m.kind == "event"]


def test_a_lease_that_lapses_in_an_episode_is_reported_and_no_renewal_of_it_moves_the_robot(bench):
    """Issue 17.1: the run process stood still for longer than its lease, went on, and the robot stood to the budget."""
    bench.send(bench.lease(), bench.target(ns=SECOND))
    until_ns = bench.now_ns + LEASE
    bench.run(LEASE + 2 * TICK)
    assert _events(bench, "lease_lapsed") == [{"episode": "e", "until_ns": until_ns}]
    bench.send(bench.lease(), bench.target())
    assert not bench.moved_within(LEASE)


def test_no_lease_of_before_a_suspension_moves_the_robot_nor_one_that_was_under_way(bench):
    """Issue 17.19: to the clock of leases no time had passed; people come near a robot that stands in a dark room."""
    bench.send(bench.lease(), bench.target(ns=SECOND))
    bench.run(50 * MILLISECOND)
    bench.send(Suspended(600 * SECOND).to("arm", sender="@host"), bench.lease(), bench.target(), bench.lease(epoch=9))
    assert bench.robot.stops == 1 and not bench.moved_within(LEASE)
    assert _events(bench, "suspended") == [{"number": 1, "for_ns": 600 * SECOND}]
    bench.send(StopHeard(1).to("arm"), bench.lease(), bench.target())
    assert not bench.moved_within(LEASE), "its epoch is over"
    bench.send(bench.lease(epoch=10), bench.target(epoch=10))
    assert bench.moved_within(LEASE), "run has journalled it, and grants anew"


def test_a_lease_that_lapses_while_the_robot_waits_for_a_target_is_reported_too(bench):
    """Targets that came meanwhile were dropped: the time is not the policy's."""
    bench.send(bench.lease())
    bench.run(LEASE + 2 * TICK)
    assert len(_events(bench, "lease_lapsed")) == 1


def test_how_late_renewals_came_is_recorded_with_the_episode_and_shown_to_no_blind_role(bench):
    bench.send(Message("arm", "open", {"episode": "e"}), bench.lease())
    for waited in (100, 250):
        bench.run(waited * MILLISECOND)
        bench.send(bench.lease())
    bench.send(Message("arm", "close", {"episode": "e"}))
    (chunk,) = [m for m in bench.said if m.kind == "chunk" and m.body["stream"] == "arm/lease"]
    np.testing.assert_allclose(chunk.arrays["values"], [[0.1, 0.2], [0.25, 0.05]])
    (declared,) = [message.body["specs"] for message in bench.said if message.kind == "declare"]
    assert next(spec for spec in declared if spec["name"] == "arm/lease")["arm_dependent"]


def test_a_lease_that_is_taken_back_and_one_of_a_staged_robot_lapse_without_a_word(bench):
    bench.send(bench.lease(), bench.target(ns=SECOND), Lease(1, "e", 0).to("@lease"))
    bench.run(SECOND)
    bench.send(Lease(2, None, bench.now_ns + LEASE).to("@lease"))
    bench.run(SECOND)
    assert not [m for m in bench.said if m.kind == "event"]


def test_a_stop_is_carried_out_whatever_else_is_wrong_with_its_message(bench):
    bench.send(bench.lease(), bench.target(ns=SECOND))
    bench.run(50 * MILLISECOND)
    step = bench.node.step(bench.now_ns, [Message("arm", "stop", {"epoch": "now"})])
    assert bench.robot.stops == 1 and "epoch" in step.refused[0]
    assert [m.body["kind"] for m in step.out if m.kind == "event"] == ["stopped"]
    bench.send(bench.lease(), bench.target())
    assert not bench.moved_within(LEASE)


def test_an_order_to_stage_takes_effect_under_its_own_lease(bench):
    """Not under what may be left of the lease before it."""
    bench.send(bench.lease(1))
    stage = {"trial": "t", "condition": {}, "seed": 7, "epoch": 2, "episode": None, "until_ns": bench.now_ns - 1}
    bench.send(Message("arm", "stage", stage))
    assert bench.robot.stagings == []


def test_an_arm_that_was_told_to_end_moves_no_more(bench):
    bench.send(bench.lease(), bench.target(ns=SECOND))
    bench.run(50 * MILLISECOND)
    bench.send(Message("arm", "shutdown"), bench.lease(2), bench.target(2))
    assert bench.robot.stops == 1 and bench.robot.closed and bench.node.finished
    assert not bench.moved_within(LEASE)


def test_requested_limited_and_sent_are_recorded_for_every_setpoint(bench):
    bench.send(Message("arm", "open", {"episode": "e"}), bench.lease(), bench.target())
    bench.run(100 * MILLISECOND)
    bench.send(Message("arm", "close", {"episode": "e"}))
    chunks = [message for message in bench.said if message.kind == "chunk" and message.body["stream"] == "arm/action"]
    rows = np.concatenate([chunk.arrays["values"] for chunk in chunks])
    times = np.concatenate([chunk.arrays["t_ns"] for chunk in chunks])
    assert times.tolist() == bench.robot.followed
    (declared,) = [message.body["specs"] for message in bench.said if message.kind == "declare"]
    columns = next(spec["columns"] for spec in declared if spec["name"] == "arm/action")
    at = {name: rows[:, index] for index, name in enumerate(columns)}
    assert at["requested.j2"][-1] == 1.0 and at["limited.j2"][-1] == 0.5
    np.testing.assert_array_equal(at["sent.j1"], np.round(at["limited.j1"], 3))
    assert at["sent.gripper"][-1] == 0.04


def test_a_safety_stop_is_told_at_its_own_time_and_drops_the_targets(bench):
    bench.send(bench.lease(ns=SECOND), bench.target(ns=SECOND))
    bench.run(50 * MILLISECOND)
    bench.robot.mode, bench.robot.reason = "safety_stop", "reflex"
    bench.robot.happened = [DeviceEvent("safety_stop", bench.now_ns + 3, {"reason": "reflex"})]
    bench.run(TICK)
    events = [message.body for message in bench.said if message.kind == "event"]
    assert events == [{"kind": "safety_stop", "t_ns": bench.now_ns - TICK + 3, "body": {"reason": "reflex"}}]
    assert not bench.moved_within(500 * MILLISECOND)
    seen = [message.body["mode"] for message in bench.said if message.kind == "obs"]
    assert seen[-1] == "safety_stop"


def test_recovery_is_asked_for_until_the_robot_stands(bench):
    bench.robot.mode, bench.robot.refusals = "safety_stop", 3
    bench.send(Message("arm", "recover"))
    bench.run(10 * TICK)
    assert bench.robot.mode == "idle"
    assert not [message for message in bench.said if message.kind == "event"]


@pytest.mark.parametrize(("stop", "then"), [({}, "safety_stop"), ({"epoch": 1}, "idle")], ids=["a person's", "run's"])
def test_a_persons_stop_ends_a_recovery_that_is_under_way(bench, stop, then):
    """Powering on, releasing brakes and activating fingers went on after it, for up to 30 s."""
    bench.robot.mode, bench.robot.refusals = "safety_stop", 5
    bench.send(Message("arm", "recover"))
    bench.run(2 * TICK)
    bench.send(Message("arm", "stop", stop, sender="console"))
    bench.run(20 * TICK)
    assert bench.robot.mode == then


def test_a_robot_that_never_recovers_is_a_fault(bench):
    bench.robot.mode, bench.robot.refusals = "safety_stop", 10**6
    bench.send(Message("arm", "recover"))
    bench.run(31 * SECOND)
    events = [message.body for message in bench.said if message.kind == "event"]
    assert [(event["kind"], event["body"]) for event in events] == [("fault", {"reason": "still moving"})]


def test_in_real_time_a_stop_is_never_more_than_20_ms_away():
    assert tick_ns(10.0, real_time=True) == 20 * MILLISECOND
    assert tick_ns(10.0, real_time=False) == 100 * MILLISECOND


@pytest.mark.parametrize("ends", [True, False])
def test_in_real_time_the_robot_is_seen_when_a_path_ends_and_the_next_question_needs_no_further_visit(bench, ends):
    bench.node = RobotNode(bench.robot, tick_ns=TICK, stale_ns=STALE, connected=True, ends=ends)
    end_ns = bench.now_ns + 25 * MILLISECOND
    bench.send(bench.lease(), bench.target(ns=25 * MILLISECOND))
    visits = [bench.now_ns]
    while bench.now_ns < end_ns:
        bench.now_ns = bench.node.step(bench.now_ns, []).due_ns
        visits.append(bench.now_ns)
    after_ms = [round((end_ns - at) / MILLISECOND) for at in visits]
    assert after_ms[-2:] == ([5, 0] if ends else [5, -5])
    seen = [m.body["t_ns"] for m in bench.node.step(bench.now_ns, []).out if m.kind == "obs"]
    assert seen == [bench.now_ns]


def test_staging_runs_under_a_lease_and_is_said_when_it_is_done(bench):
    bench.robot.at_home = False
    body = {"trial": "t1", "condition": {}, "seed": 7, "epoch": 1, "episode": None}
    bench.send(Message("arm", "stage", {**body, "until_ns": bench.now_ns + SECOND}))
    bench.run(500 * MILLISECOND)
    assert bench.robot.stagings == [7] and not [m for m in bench.said if m.kind == "staged"]
    bench.send(bench.target(1))
    assert not bench.moved_within(50 * MILLISECOND), "targets wait until the robot is home"
    bench.robot.at_home = True
    bench.run(TICK)
    assert [m.body for m in bench.said if m.kind == "staged"] == [{"trial": "t1"}]
    assert bench.robot.stops == 0


def test_the_way_home_stops_when_the_run_process_no_longer_renews_its_lease(bench):
    bench.robot.at_home = False
    body = {"trial": "t1", "condition": {}, "seed": 7, "epoch": 1, "episode": None}
    bench.send(Message("arm", "stage", {**body, "until_ns": bench.now_ns + LEASE}))
    bench.run(LEASE + 2 * TICK)
    assert bench.robot.stops == 1
    assert [m.body for m in bench.said if m.kind == "unstaged"] == [{"trial": "t1"}], "or the run would wait for ever"
    bench.robot.at_home = True
    bench.run(SECOND)
    assert not [m for m in bench.said if m.kind == "staged"]


def test_staging_waits_for_a_recovery(bench):
    bench.robot.mode, bench.robot.refusals = "safety_stop", 3
    body = {"trial": "t1", "condition": {}, "seed": 7, "epoch": 1, "episode": None, "until_ns": bench.now_ns + SECOND}
    bench.send(Message("arm", "recover"), Message("arm", "stage", body))
    assert bench.robot.stagings == []
    bench.run(10 * TICK)
    assert bench.robot.mode == "idle" and bench.robot.stagings == [7]


def test_after_a_pause_of_the_process_the_time_that_passed_is_not_caught_up(bench):
    bench.send(bench.lease(ns=5 * SECOND), bench.target(ns=4 * SECOND))
    bench.run(100 * MILLISECOND)
    before = len(bench.robot.followed)
    bench.now_ns += SECOND
    bench.send()
    assert len(bench.robot.followed) - before <= 2
    (paused,) = _events(bench, "paused")
    assert paused["to_ns"] == bench.now_ns and paused["to_ns"] - paused["from_ns"] >= SECOND


def test_joint_speeds_are_integrated_from_where_the_path_leads(bench):
    bench.send(bench.lease(ns=5 * SECOND), bench.target(to=0.4, ns=100 * MILLISECOND))
    bench.run(100 * MILLISECOND)
    t_ns = bench.now_ns + np.array([100, 200], np.int64) * MILLISECOND
    arrays = {"t_ns": t_ns, "values": np.array([[1.0, 0.0], [1.0, -1.0]]), "gripper": np.zeros(2)}
    bench.send(Target(1, "e", "joint_velocity", 100 * MILLISECOND, int(t_ns[-1])).to("arm", arrays))
    bench.run(210 * MILLISECOND)
    np.testing.assert_allclose(bench.robot.q, [0.6, 0.3], atol=2e-3)


@pytest.mark.parametrize("space", ["joint_velocity", "tcp_velocity"])
@pytest.mark.parametrize("under_way_ms", [0, 30, 70, 90])
def test_speeds_that_change_in_mid_action_neither_pull_the_arm_on_nor_back(bench, space, under_way_ms):
    """An answer that counts from its capture: its first action is under way when it comes, and its rest is executed."""
    asked: list[float] = []
    follow = bench.robot.follow

    def spied(wanted):
        asked.extend(wanted.q[:, 0].tolist())
        return follow(wanted)

    def speeds(of, begin_ns):
        t_ns = begin_ns + 100 * MILLISECOND * np.arange(1, 6)
        values = np.zeros((5, 2 if space == "joint_velocity" else 6))
        values[:, 0] = of
        arrays = {"t_ns": t_ns, "values": values, "gripper": np.zeros(5)}
        return Target(1, "e", space, 100 * MILLISECOND, int(t_ns[-1])).to("arm", arrays)

    bench.robot.follow = spied
    bench.send(bench.lease(ns=5 * SECOND), speeds(0.5, bench.now_ns))
    bench.run(330 * MILLISECOND)
    assert asked[9] == pytest.approx(0.05), "the first action from rest"
    bench.send(speeds(0.5, bench.now_ns - under_way_ms * MILLISECOND))
    bench.run(200 * MILLISECOND)
    assert np.diff(asked[10:]) == pytest.approx(0.005), "no seam between two answers that agree"
    before = len(asked)
    bench.send(speeds(0.2, bench.now_ns - under_way_ms * MILLISECOND))
    bench.run(200 * MILLISECOND)
    rates = np.diff(asked[before - 1 :]) / 0.01
    assert rates.min() > 0.17 and rates.max() < 0.5, "between the speeds of the two answers"
    before = len(asked)
    bench.send(speeds(0.0, bench.now_ns - under_way_ms * MILLISECOND))
    bench.run(200 * MILLISECOND)
    assert asked[before - 1 :] == pytest.approx([asked[before - 1]] * 21), "and rest is rest"


def test_a_message_that_does_not_fit_is_refused_and_the_arm_goes_on(bench):
    bench.send(bench.lease(), bench.target())
    step = bench.node.step(bench.now_ns, [Message("@lease", "lease", {"epoch": "two"}, sender="run")])
    assert step.refused == ["message lease: epoch is 'two', not int; refused, from run"]
    assert bench.moved_within(50 * MILLISECOND)


@pytest.mark.parametrize("takes", [True, False])
def test_a_policys_step_is_a_step_for_an_arm_that_takes_steps_and_a_path_for_any_other(takes):
    bench = Bench(takes_steps=takes)
    asked: list[float] = []
    follow = bench.robot.follow

    def spied(wanted):
        asked.extend(wanted.q[:, 0].tolist())
        return follow(wanted)

    bench.robot.follow = spied
    bench.send(bench.lease())
    for to in (0.2, 0.3):
        t_ns = np.array([bench.now_ns + 60 * MILLISECOND])
        arrays = {"t_ns": t_ns, "values": np.array([[to, 0.0]]), "gripper": np.array([0.02])}
        step = Target(1, "e", "joint_position", 60 * MILLISECOND, int(t_ns[0]), stepped=True)
        bench.send(step.to("arm", arrays))
        bench.run(60 * MILLISECOND)
    assert len(asked) == 12
    if takes:
        assert asked == [0.2] * 6 + [0.3] * 6
    else:
        assert asked == sorted(asked) and asked[5] == pytest.approx(0.2) and asked[-1] == pytest.approx(0.3)
        assert len(set(asked)) > 8, "on its way in between"
