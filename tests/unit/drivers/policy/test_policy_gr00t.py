"""GR00T over real sockets: both calling conventions, a description that is compared, and every fault in its time."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from support.policies.cards import CAMERA, card
from support.policies.gr00t_servers import TASK, FakeGr00t
from support.policies.observations import ARRAYS, GIVEN, Q
from support.policies.policy_servers import closed_port

from labctl.clock import SECOND, MonotonicClock
from labctl.devices import Observation, Picture, load
from labctl.errors import DeviceError, DeviceLost, DeviceRefused, InputError

pytestmark = pytest.mark.real_time

PICTURES = tuple(Picture(np.full((48, 64, 3), i, np.uint8), i * SECOND // 20) for i in range(4))
SEEN = Observation(
    5,
    ARRAYS,
    "Move the items.",
    {"wrist": PICTURES},
)
CLOCK = MonotonicClock()
GIVEN_UP = {"deadline": 0.3, "give_up": 0.5}  # of a server that never answers; any other has LONG_S
LONG_S = 60.0  # of nothing here a wait; beyond what a busy machine makes of a fraction of a second
PATIENT = {"ready": LONG_S, "deadline": 0.3, "give_up": LONG_S}
SILENT = ("block", "huge")
PROMPT = '[[input]]\nkey = "{key}"\nprompt = true\n'
LANGUAGE = {"n1.5": PROMPT.format(key=TASK["n1.5"]), "n1.6": PROMPT.format(key=f"language.{TASK['n1.6']}")}


def client(uri: str, convention: str = "n1.6", inputs: str = "", tail: str = "", **given: Any) -> Any:
    made = card("gr00t", inputs=LANGUAGE[convention] + inputs, server=given.pop("server", "") + tail, **given)
    return load("policy_gr00t", {"card": made, "endpoint": uri}, **GIVEN)


def seconds(call: Any) -> tuple[float, str]:
    """How long a call took to fail, and its words."""
    began = CLOCK.now_ns()
    with pytest.raises(DeviceError) as caught:
        call()
    return (CLOCK.now_ns() - began) / SECOND, str(caught.value)


@pytest.mark.parametrize("convention", ["n1.5", "n1.6"])
def test_each_generation_is_called_as_it_wants_to_be(convention: str):
    with FakeGr00t(convention) as server:
        policy = client(server.uri, convention)
        policy.load()
        policy.reset(1)
        policy.warm(SEEN)
        policy.reset(1)
        chunk = policy.infer(SEEN)
        policy.close()
    assert chunk.space == "joint_position" and np.allclose(chunk.values, Q, atol=1e-6) and len(chunk.values) == 16
    assert chunk.gripper == pytest.approx(np.full(16, 0.08)) and chunk.execute == 4
    assert len(server.heard) == 3 and server.resets == (2 if convention == "n1.6" else 0)


def test_what_stands_beside_the_actions_is_what_the_server_tells():
    info = {"policy_timing": {"infer_ms": 61.5}, "gpu_memory_gb": 6, "joint_position": "no action", "mask": np.ones(2)}
    with FakeGr00t("n1.6", info=info) as server:
        policy = client(server.uri, "n1.6")
        policy.load()
        policy.warm(SEEN)
        chunk = policy.infer(SEEN)
        policy.close()
    assert np.allclose(chunk.values, Q, atol=1e-6)
    assert (chunk.server_s, chunk.gpu_memory_mb) == (pytest.approx(0.0615), 6000.0)
    assert policy.told == {"gpu_memory_mb": 6000.0}


def test_pictures_have_a_batch_and_a_time_axis():
    eyes = CAMERA.format(key="video.front", camera="wrist") + "steps = [-2, 0]\n"
    with FakeGr00t(video=("front",), steps=(-2, 0)) as server:
        policy = client(server.uri, inputs=eyes)
        policy.load()
        policy.infer(SEEN)
        policy.close()
    video = server.heard[0]["video"]["front"]
    assert video.shape == (1, 2, 48, 64, 3) and video[0, :, 0, 0, 0].tolist() == [1, 3]


def test_one_picture_has_a_time_axis_too():
    with FakeGr00t(video=("front",)) as server:
        policy = client(server.uri, inputs=CAMERA.format(key="video.front", camera="wrist"))
        policy.load()
        policy.infer(SEEN)
        policy.close()
    assert server.heard[0]["video"]["front"].shape == (1, 1, 48, 64, 3)


def test_an_answer_in_the_older_style_is_understood():
    with FakeGr00t(fault="flat_reply") as server:
        policy = client(server.uri)
        policy.load()
        assert np.allclose(policy.infer(SEEN).values, Q, atol=1e-6)
        policy.close()


ON_THE_CLOCK = {
    "block": "did not answer within 1.0 s",
    "error": "the policy server failed: Tried to allocate 2.00 GiB",
    "huge": "did not answer within 1.0 s",
    "bare_error": "says no more than ERROR",
    "wrong_shape": "joint_position (16, 5), gripper_position (16, 5); joint_position and a gripper need (n, 8)",
    "nan": "not finite",
    "no_gripper": "no 'gripper_position'; it has: joint_position",
    "torch": "torch pickles",
    "garbage": "cannot be read",
    "text": "no table of actions but str",
}


@pytest.mark.parametrize("fault", ON_THE_CLOCK)
def test_what_goes_wrong_on_the_clock_is_told_in_its_own_words_and_in_time(fault: str):
    port = closed_port()
    with FakeGr00t(fault=fault, after=2, port=port) as server:
        policy = client(server.uri, **(PATIENT | (GIVEN_UP if fault in SILENT else {})))
        policy.load()
        policy.warm(SEEN)
        took, why = seconds(lambda: policy.infer(SEEN))
        assert ON_THE_CLOCK[fault] in why and "\n" not in why and took < LONG_S
        policy.close()
    with FakeGr00t(port=port) as server:
        after = client(server.uri)
        after.load()
        assert np.allclose(after.infer(SEEN).values, Q, atol=1e-6), "who comes next finds a server that answers"
        after.close()


def test_a_request_that_timed_out_leaves_a_client_that_can_ask_again():
    """A request socket that waits for an answer refuses to send (EFSM); ours is a fresh one."""
    port = closed_port()
    with FakeGr00t(fault="silent", port=port) as server:
        policy = client(server.uri, ready=0.6)
        took, why = seconds(policy.load)
        assert "no policy server within 0.6 s: the policy server did not answer" in why and took < LONG_S
    with FakeGr00t(port=port):
        server = policy._card.server.model_copy(update={"ready_s": LONG_S})
        policy._card = policy._card.model_copy(update={"server": server})
        policy.load()
        assert np.allclose(policy.infer(SEEN).values, Q, atol=1e-6)
        policy.close()


def test_a_server_that_is_not_there_is_asked_for_until_it_was_to_be_ready():
    policy = client(f"tcp://127.0.0.1:{closed_port()}", ready=0.6)
    took, why = seconds(policy.load)
    assert "no policy server within 0.6 s" in why and 0.6 <= took < LONG_S
    policy.close()


def test_a_question_ends_when_it_is_closed():
    with FakeGr00t(fault="block") as server:
        policy = client(server.uri, **PATIENT)
        policy.load()
        timer = threading.Timer(0.2, policy.close)
        timer.start()
        took, why = seconds(lambda: policy.infer(SEEN))
        timer.join()
        assert took < LONG_S and "closed" in why


FRONT = CAMERA.format(key="video.front", camera="wrist")
PLACE = '[[input]]\nkey = "state.eef"\nstate = ["tcp_position"]\n[tool]\nframe = "tcp"\n'
DESCRIBED = {
    "a picture the card has not": ({"video": ("front",)}, "", "reads video: front; the card has: none"),
    "a picture nobody reads": ({}, FRONT, "reads video: none; the card has: front"),
    "other steps": (
        {"video": ("front",), "steps": (-15, 0)},
        FRONT,
        "reads 'video.front' at the steps [-15, 0]; the card gives [0]",
    ),
    "a state too many": ({}, PLACE, "reads state: joint_position; the card has: eef, joint_position"),
}


@pytest.mark.parametrize("convention", ["n1.5", "n1.6"])
@pytest.mark.parametrize(("server", "inputs", "says"), DESCRIBED.values(), ids=DESCRIBED)
def test_what_the_server_describes_is_compared_with_the_card_before_the_clock(
    convention: str, server: dict, inputs: str, says: str
):
    with FakeGr00t(convention, **server) as found:
        policy = client(found.uri, convention, inputs)
        took, why = seconds(policy.load)
        assert says in why and took < LONG_S
        policy.close()


def test_actions_that_the_server_does_not_answer_with_are_noticed_before_the_clock():
    with FakeGr00t() as server:
        policy = client(server.uri, action='keys = ["eef_9d", "gripper_position"]')
        with pytest.raises(DeviceRefused, match="reads eef_9d from the answer; the server answers with joint_position"):
            policy.load()
        policy.close()


def test_a_server_that_does_not_describe_itself_needs_a_word_in_the_card():
    with FakeGr00t(fault="nameless") as server:
        policy = client(server.uri)
        _, why = seconds(policy.load)
        assert "set the card's [gr00t] convention" in why
        policy.close()
        policy = client(server.uri, tail='\n[gr00t]\nconvention = "n1.6"\n')
        policy.load()
        assert np.allclose(policy.infer(SEEN).values, Q, atol=1e-6)
        policy.close()


def test_a_token_comes_from_the_environment(monkeypatch: pytest.MonkeyPatch):
    with FakeGr00t(fault="token") as server:
        policy = client(server.uri)
        _, why = seconds(policy.load)
        assert "Unauthorized" in why and "see api_key_env" in why
        policy.close()
        monkeypatch.setenv("TEST_GR00T_TOKEN", "secret")
        policy = client(server.uri, server='api_key_env = "TEST_GR00T_TOKEN"')
        policy.load()
        policy.close()


@pytest.mark.parametrize("endpoint", ["ws://127.0.0.1:1", "tcp://127.0.0.1", "127.0.0.1:5555", "tcp://127.0.0.1:x", 5])
def test_an_endpoint_that_is_none_is_refused_before_anything_connects(endpoint: Any):
    with pytest.raises(InputError, match=r"tcp://127\.0\.0\.1:5555"):
        client(endpoint)


def test_closing_twice_is_no_error_and_a_closed_client_asks_nothing():
    with FakeGr00t() as server:
        policy = client(server.uri)
        policy.load()
        policy.close()
        policy.close()
        with pytest.raises(DeviceLost):
            policy.infer(SEEN)
