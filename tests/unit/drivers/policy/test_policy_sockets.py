"""A policy behind a websocket, over real sockets: what goes there, what comes back, and every way in which it fails.

Each fault has its own words and ends in its own time, and whoever comes next finds a client that works.
"""

from __future__ import annotations

import ssl
import threading
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from support.policies.cards import CAMERA, card
from support.policies.observations import GIVEN, SEEN, Q
from support.policies.policy_servers import NEEDS, DeafServer, FakeServer, closed_port, hold
from support.robots.cells import changed
from support.robots.interleaved import after_the_first_read

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Observation, load
from labctl.drivers.policy.websocket import PolicySocket
from labctl.errors import DeviceError, DeviceLost, DeviceRefused, InputError

pytestmark = pytest.mark.real_time

CLOCK = MonotonicClock()
WRIST = CAMERA.format(key="observation/wrist_image_left", camera="wrist")
GIVEN_UP = {"deadline": 0.3, "give_up": 0.5}  # of a server that never answers; any other has LONG_S
LONG_S = 60.0  # of nothing here a wait; beyond what a busy machine makes of a fraction of a second
PATIENT = {"ready": LONG_S, "deadline": 0.3, "give_up": LONG_S}


def client(uri: str, dialect: str = "openpi", options: dict[str, Any] | None = None, **given: Any) -> Any:
    made = {"card": card(dialect, **given), "endpoint": uri, **(options or {})}
    return load(f"policy_{dialect}", made, **GIVEN)


class Late:
    """A clock that says, after so many looks, that the time is over in which a server was to be ready."""

    def __init__(self, looks: int) -> None:
        self._looks = looks

    def now_ns(self) -> int:
        self._looks -= 1
        return 0 if self._looks >= 0 else round(2 * LONG_S * SECOND)


def seconds(call: Any) -> tuple[float, str]:
    """How long a call took to fail, and its words."""
    began = CLOCK.now_ns()
    with pytest.raises(DeviceError) as caught:
        call()
    return (CLOCK.now_ns() - began) / SECOND, str(caught.value)


@pytest.mark.parametrize("dialect", ["openpi", "roboarena"])
def test_a_policy_reads_its_card_and_its_answer_is_a_chunk(dialect: str):
    inputs = (
        CAMERA.format(key="observation/wrist_image_left", camera="wrist") + '[[input]]\nkey = "prompt"\nprompt = true'
    )
    with FakeServer(dialect=dialect) as server:
        policy = client(server.uri, dialect, inputs=inputs)
        policy.load()
        policy.reset(3)
        policy.warm(SEEN)
        policy.reset(3)
        chunk = policy.infer(SEEN)
        policy.close()
    assert chunk.space == "joint_position" and np.allclose(chunk.values, Q) and chunk.dt_s == pytest.approx(0.05)
    assert (len(chunk.values), chunk.execute) == ((8, 4) if dialect == "openpi" else (8, 8))
    assert chunk.gripper == pytest.approx(np.full(8, 0.08)) and chunk.server_s == pytest.approx(0.0125)
    assert 0 < chunk.delay_s < LONG_S and policy.warm_s > 0 and policy.load_s > 0
    assert len(server.heard) == 3, "two warm-up questions and one on the clock"
    assert set(server.heard[-1]) - {"session_id"} == {
        "observation/joint_position",
        "observation/wrist_image_left",
        "prompt",
    }
    assert server.heard[-1]["observation/wrist_image_left"].shape == (48, 64, 3)
    assert server.resets == ([f"{3:016x}"] * 2 if dialect == "roboarena" else []), "openpi takes a reset for a question"
    assert [question.get("session_id") for question in server.heard] == (
        [f"{3:016x}"] * 3 if dialect == "roboarena" else [None] * 3
    )


def test_a_bare_array_is_an_answer_of_older_roboarena_servers():
    with FakeServer(dialect="roboarena", policy=lambda seen: hold(seen)["actions"]) as server:
        policy = client(server.uri, "roboarena")
        policy.load()
        assert np.allclose(policy.infer(SEEN).values, Q)
        policy.close()


# fault -> what its reason says; each strikes on the clock, after two answers while warming
ON_THE_CLOCK = {
    "block": "did not answer within 1.0 s",
    "traceback": "the policy server failed: KeyError: 'observation/exterior_image_0_left'",
    "close": "closed the connection (received 1011 (internal error) out of memory",
    "cut": "closed the connection (no close frame received",
    "wrong_shape": "actions (8, 32); joint_position and a gripper need (n, 8)",
    "nan": "not finite",
    "unknown_keys": "no 'actions'; it has: joint_targets",
    "garbage": "cannot be read",
    "huge": "closed the connection (sent 1009 (message too big)",
    "text": "the policy server failed: one moment please",
}


@pytest.mark.parametrize("dialect", ["openpi", "roboarena"])
@pytest.mark.parametrize("fault", ON_THE_CLOCK)
def test_what_goes_wrong_on_the_clock_is_told_in_its_own_words_and_in_time(
    dialect: str, fault: str, capfd: pytest.CaptureFixture[str]
):
    port = closed_port()
    with FakeServer(dialect=dialect, fault=fault, after=2, port=port) as server:
        policy = client(server.uri, dialect, **(PATIENT | (GIVEN_UP if fault == "block" else {})))
        policy.load()
        policy.warm(SEEN)
        took, why = seconds(lambda: policy.infer(SEEN))
        assert ON_THE_CLOCK[fault] in why and "\n" not in why
        assert took < LONG_S
        began = CLOCK.now_ns()
        policy.close()
        assert CLOCK.now_ns() - began < LONG_S * SECOND
        if fault == "traceback":
            assert "Traceback (most recent call last)" in capfd.readouterr().err, "the whole of it is in the log"
    with FakeServer(dialect=dialect, port=port) as server:
        after = client(server.uri, dialect)
        after.load()
        assert np.allclose(after.infer(SEEN).values, Q), "who comes next finds a server that answers"
        after.close()


def test_an_answer_too_many_puts_the_two_sides_out_of_step_and_is_noticed():
    with FakeServer(fault="twice") as server:
        policy = client(server.uri)
        policy.load()

        def until_noticed() -> None:
            for _ in range(20):  # the answer too many may still be on its way when the next question goes out
                policy.infer(SEEN)

        _, why = seconds(until_noticed)
        assert "an answer that nobody asked for" in why
        policy.close()


# fault -> (error, what its reason says); each strikes while connecting
AT_THE_DOOR = {
    "slow_metadata": (DeviceLost, "no policy server within 60 s: the policy server did not answer within 60.0 s"),
    "text_metadata": (DeviceRefused, "text instead of its metadata: loading weights"),
    "no_entry": (DeviceRefused, "lets nobody in (HTTP 401); see api_key_env"),
    "busy": (DeviceLost, "answers with HTTP 503"),
}


@pytest.mark.parametrize("fault", AT_THE_DOOR)
def test_what_goes_wrong_at_the_door_is_told_before_the_clock(fault: str):
    error, words = AT_THE_DOOR[fault]
    with FakeServer(fault=fault) as server:
        policy = client(server.uri, **PATIENT)
        policy._clock = Late(2)  # one attempt, which has all of its time
        if fault == "slow_metadata":
            policy._link._socket._clock = Late(3)  # and looks once whether its answer is there
        with pytest.raises(error) as caught:
            policy.load()
        assert words in str(caught.value)
        policy.close()


def test_a_server_that_sends_elsewhere_is_not_followed():
    """Its card names one server; observations and a key go nowhere else. websockets follows redirects by itself."""
    with FakeServer() as elsewhere, FakeServer(fault="lend", elsewhere=elsewhere.uri) as server:
        policy = client(server.uri, **PATIENT)
        _, why = seconds(policy.load)
        assert "sends elsewhere" in why and "\n" not in why
        assert elsewhere.visits == 0
        policy.close()


@pytest.mark.parametrize(
    "error", [ssl.SSLCertVerificationError("self-signed certificate"), UnicodeError("label too long")]
)
def test_a_certificate_or_a_name_that_is_wrong_is_no_redirect(error: Exception, monkeypatch: pytest.MonkeyPatch):
    """Both are of Python's ValueError too, as what the library raises for a redirect."""

    def refuse(*_: object) -> None:
        raise error

    monkeypatch.setattr("labctl.drivers.policy.websocket._connected", refuse)
    policy = client("wss://policy.example", **PATIENT)
    policy._clock = Late(2)
    _, why = seconds(policy.load)
    assert str(error) in why and "elsewhere" not in why
    policy.close()


def test_a_server_that_is_not_there_is_asked_for_until_it_was_to_be_ready():
    policy = client(f"ws://127.0.0.1:{closed_port()}", ready=0.5)
    took, why = seconds(policy.load)
    assert "no policy server within 0.5 s" in why and 0.5 <= took < LONG_S
    policy.close()
    policy = client(f"ws://127.0.0.1:{closed_port()}", **PATIENT)
    policy._clock = Late(2)
    _, why = seconds(policy.load)
    assert "no policy server within 60 s" in why and "Connection refused" in why
    policy.close()


def test_an_episode_that_is_void_meanwhile_finds_in_the_controllers_log_what_is_waited_for(capsys):
    """The hold after two such voids sends whoever may know the arms to that log; it was empty until issue 18."""
    policy = client(f"ws://127.0.0.1:{closed_port()}", **PATIENT)
    policy._clock = Late(3)
    seconds(policy.load)
    assert capsys.readouterr().err.count("waiting for the policy server: ws://127.0.0.1") == 1, "and is said once"
    policy.close()


def test_a_server_that_comes_up_late_is_found():
    port, late = closed_port(), list[FakeServer]()
    policy = client(f"ws://127.0.0.1:{port}", **PATIENT)
    connect = policy._link.connect

    def tried(timeout_s: float) -> Any:
        """The server comes up once nobody was found there."""
        try:
            return connect(timeout_s)
        except DeviceLost:
            late.extend([] if late else [FakeServer(port=port).__enter__()])
            raise

    policy._link.connect = tried
    policy.load()
    assert late and policy.load_s > 0 and np.allclose(policy.infer(SEEN).values, Q)
    policy.close()
    late[0].__exit__()


def test_loading_ends_when_it_is_closed():
    policy = client(f"ws://127.0.0.1:{closed_port()}", **PATIENT)
    timer = threading.Timer(0.2, policy.close)
    timer.start()
    took, why = seconds(policy.load)
    timer.join()
    assert took < LONG_S and "closed while it waited" in why


def test_a_question_ends_when_it_is_closed():
    with FakeServer(fault="block") as server:
        policy = client(server.uri, **PATIENT)
        policy.load()
        timer = threading.Timer(0.2, policy.close)
        timer.start()
        took, why = seconds(lambda: policy.infer(SEEN))
        timer.join()
        assert took < LONG_S and "closed" in why


def test_a_send_that_nobody_reads_ends_when_it_is_closed():
    """A server whose process was stopped: 50 MB do not fit into the pipe, the send blocks, closing cuts the line."""
    much, closing = Observation(5, SEEN.arrays, "x" * 50_000_000), threading.Event()

    def close() -> None:
        """Once the first of it has come; no more of it goes than fits into the pipe."""
        closing.set()
        policy.close()

    with DeafServer(close) as server:
        policy = client(server.uri, inputs='[[input]]\nkey = "prompt"\nprompt = true', **PATIENT)
        policy.load()
        took, why = seconds(lambda: policy.infer(much))
        assert closing.is_set() and took < LONG_S and "closed the connection" in why


def test_warming_finds_what_would_go_wrong_on_the_clock():
    with FakeServer(fault="wrong_shape") as server:
        policy = client(server.uri)
        policy.load()
        _, why = seconds(lambda: policy.warm(SEEN))
        assert "(8, 32)" in why
        policy.close()


def test_openpis_client_notices_a_roboarena_server_and_the_other_way_round():
    with FakeServer(dialect="roboarena") as server:
        policy = client(server.uri, "openpi")
        _, why = seconds(policy.load)
        assert "use policy_roboarena" in why
        policy.close()
    with FakeServer(dialect="openpi") as server:
        policy = client(server.uri, "roboarena")
        _, why = seconds(policy.load)
        assert "states no action space" in why and "use policy_openpi" in why
        policy.close()


MISFITS = {
    "another space": (
        {"action_space": "joint_velocity"},
        "which is droid_joint_velocity in a card; this one says 'joint_pos",
    ),
    "a space nobody knows": ({"action_space": "torque"}, "which is nothing labctl knows in a card"),
    "an exterior camera": ({"n_external_cameras": 1}, "the server wants 1 exterior camera, the card has 0"),
    "a wrist camera": ({"needs_wrist_camera": True}, "wants a wrist camera"),
    "stereo": ({"needs_stereo_camera": True}, "wants stereo pictures"),
}


@pytest.mark.parametrize(("needs", "says"), MISFITS.values(), ids=MISFITS)
def test_a_roboarena_server_whose_needs_the_card_does_not_meet_is_refused_at_once(needs: dict, says: str):
    with FakeServer(dialect="roboarena", needs=needs) as server:
        policy = client(server.uri, "roboarena")
        took, why = seconds(policy.load)
        assert says in why and took < LONG_S, "it will not fit better later"
        policy.close()


def test_a_roboarena_server_that_wants_another_size_is_refused():
    assert NEEDS["image_resolution"] is None
    with FakeServer(dialect="roboarena", needs={"image_resolution": [224, 224]}) as server:
        policy = client(server.uri, "roboarena", inputs=WRIST)
        _, why = seconds(policy.load)
        assert "pictures of 224x224 (height x width); 'observation/wrist_image_left' is 48x64" in why
        policy.close()


def test_a_key_comes_from_the_environment_and_only_from_there(monkeypatch: pytest.MonkeyPatch):
    given = {"server": 'api_key_env = "TEST_POLICY_KEY"'}
    with FakeServer() as server:
        policy = client(server.uri, **given)
        _, why = seconds(policy.load)
        assert "TEST_POLICY_KEY (api_key_env) is not set" in why
        monkeypatch.setenv("TEST_POLICY_KEY", "secret")
        policy = client(server.uri, **given)
        policy.load()
        policy.close()


MISTAKES = {
    "no card": ({"card": None}, "card must be a policy card"),
    "an option too many": ({"endpint": "x"}, "no option 'endpint'"),
    "no endpoint": ({"endpoint": 3}, "endpoint must be the server's address"),
    "no websocket": ({"endpoint": "http://127.0.0.1:1"}, "like ws://127.0.0.1:8000"),
    "no port": ({"endpoint": "ws://127.0.0.1:x"}, "like ws://127.0.0.1:8000"),
    "another dialect": ({"card": card("roboarena")}, "speaks openpi, its card says 'roboarena'"),
    "a camera that is not there": (
        {"card": card(inputs=CAMERA.format(key="k", camera="ceiling"))},
        "reads camera 'ceiling'; this cell has: over_shoulder, wrist",
    ),
    "a scale of another width": ({"card": card(action="scale = [1.0]")}, "scale has 1 values; joint_position needs 7"),
}


@pytest.mark.parametrize(("options", "says"), MISTAKES.values(), ids=MISTAKES)
def test_what_this_cell_could_not_run_is_refused_before_anything_connects(options: dict, says: str):
    with pytest.raises(InputError) as caught:
        client("ws://127.0.0.1:1", options=options)
    assert says in str(caught.value)


def test_steps_on_what_is_measured_need_a_cell_that_measures_as_often():
    made = card(rate=15.0)
    made["action"] |= {"space": "droid_joint_velocity"}
    simulated = {**GIVEN, "cell": changed(GIVEN["cell"], {"cell": {"clock": "manual"}})}
    with pytest.raises(InputError, match="15 steps a second; this cell measures 10 times: raise its observe_hz"):
        load("policy_openpi", {"card": made, "endpoint": "ws://127.0.0.1:1"}, **simulated)


def test_a_cell_in_real_time_measures_as_often_as_the_arm_is_visited_so_the_shipped_card_fits_the_shipped_cell():
    """observe_hz is "at least": in real time a robot is visited, and measured, every 20 ms (`tick_ns`)."""
    assert GIVEN["cell"].cell.clock == "monotonic" and GIVEN["cell"].robot.observe_hz == 10.0
    made = card(rate=15.0)
    made["action"] |= {"space": "droid_joint_velocity"}
    client("ws://127.0.0.1:1", options={"card": made}).close()
    with pytest.raises(InputError, match="this cell measures 50 times"):
        client("ws://127.0.0.1:1", options={"card": {**made, "timing": {**made["timing"], "rate_hz": 60.0}}})


def test_a_socket_may_be_closed_while_the_call_that_holds_it_lets_go_of_it() -> None:
    held = PolicySocket("ws://127.0.0.1:1")
    cut = list[int]()
    held._connection = SimpleNamespace(socket=SimpleNamespace(shutdown=cut.append))
    with held._busy, after_the_first_read(held, "_connection", lambda: setattr(held, "_connection", None)):
        held.close()
    assert len(cut) == 1
