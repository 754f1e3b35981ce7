"""Keyframes from traces, questions whose answer the record knows, and what comes of answers: with a loopback endpoint
that stands in for a planner.
"""

from __future__ import annotations

import socket

import numpy as np
import pytest
from support.policies.planner_stand_in import MODEL, stand_in

from labctl.analysis.episodes.answers import Answer, table
from labctl.checks.keyframes import Hold, Keyframe, holds_of, keyframes
from labctl.checks.planner import Planner, letter_of, planner_of
from labctl.checks.questions import RecordedTask, questions
from labctl.clock import SECOND
from labctl.errors import DeviceLost, InputError
from labctl.messages.body_parts import Detected

PICTURE = np.zeros((6, 8, 3), np.uint8)


def at(seconds: float) -> int:
    return round(seconds * SECOND)


def told(*, stages: tuple[str, ...] = (), holds: tuple[Hold, ...] = ()) -> RecordedTask:
    reached = (at(4), at(9)) if stages else ()
    moved = () if stages else (at(9),)
    return RecordedTask("Put both over.", 2, stages, reached, moved, holds, ("towels", "scissors"), "scissors")


HELD = Hold(at(6), at(9))


def test_keyframes_stand_before_hands_close_and_open_after_stages_and_where_the_motion_turns():
    t_ns = np.arange(0, at(20), at(0.1))
    s = t_ns / SECOND
    turn = np.column_stack([np.where(s < 14, s, 28 - s) * 0.1, 0 * s, 0 * s])  # turns back at 14 s
    found = keyframes(0, at(20), [HELD], [at(4)], t_ns, turn)
    assert [(one.mark, one.t_ns / SECOND) for one in found] == [
        ("go", 0.5),
        ("stage", 4.5),
        ("grasp", 5.5),
        ("release", 8.5),
        ("change", pytest.approx(14.0, abs=0.1)),
    ]


def test_a_keyframe_near_another_or_outside_the_episode_is_left_out():
    still = np.zeros((2, 3))
    found = keyframes(at(10), at(20), [Hold(at(10.2), at(11.2))], [at(19.8)], np.array([at(10), at(20)]), still)
    assert [(one.mark, one.t_ns / SECOND) for one in found] == [("go", 10.5)], (
        "release at 10.7, stage at 20.3, no motion"
    )


def test_what_was_held_at_the_target_tote_is_not_clear():
    one: Detected = {
        "t_ns": at(9),
        "edge": "release",
        "zone": "left",
        "result": "success",
        "held_s": 3.0,
        "moved_m": 0.4,
    }
    again: Detected = {**one, "result": "neutral", "grasped_ns": at(5)}
    back: Detected = {**again, "zone": "right"}
    order: Detected = {**one, "edge": "ordered grasp", "result": "unknown", "held_s": 0.0, "moved_m": 0.0}
    assert holds_of([one, again, order, back], "left") == [HELD, Hold(at(5), at(9), clear=False), Hold(at(5), at(9))]


def test_the_record_answers_what_is_next_what_is_seen_and_how_far_it_is():
    of = told(stages=("open", "put in", "close"), holds=(HELD,))

    def right(seconds: float) -> list[tuple[str, str]]:
        return [(q.kind, q.options[q.right]) for q in questions(of, Keyframe(at(seconds), "go"))]

    assert right(3) == [("plan", "open"), ("perception", "nothing"), ("stage", "none")]
    assert right(7) == [("plan", "put in"), ("perception", "scissors"), ("stage", "open")]
    assert right(10) == [("plan", "close"), ("perception", "nothing"), ("stage", "open; put in")]


def test_of_items_it_is_whether_one_is_held_and_how_many_were_moved():
    of = told(holds=(HELD,))
    for seconds, expected in (
        (3, ["take hold", "nothing", "0"]),
        (7, ["bring what", "scissors", "0"]),
        (10, ["take hold", "nothing", "1"]),
    ):
        found = [q.options[q.right] for q in questions(of, Keyframe(at(seconds), "go"))]
        assert all(one.startswith(start) for one, start in zip(found, expected, strict=True))
    unclear = told(holds=(Hold(at(6), at(9), clear=False),))
    assert [q.kind for q in questions(unclear, Keyframe(at(7), "go"))] == ["stage"], "nobody knows what it holds"


def test_a_planner_is_shown_the_picture_and_the_options_and_its_letter_is_read():
    question = questions(told(holds=(HELD,)), Keyframe(at(7), "go"))[1]
    words = (("A hand holds it: B", 1), ("I think it is C", 2), ("A. nothing", 0), ("A robot at work", None))
    for said, place in (("C", 2), ("C. scissors", 2), ("The answer is B", 1), ("no idea", None), ("Z", None), *words):
        with stand_in(lambda text, image, said=said: said) as server:
            assert Planner(MODEL, server.url).answer(question, PICTURE) == place
        ((text, shape),) = server.asked
        assert shape == (6, 8, 3) and "A. nothing\nB. towels\nC. scissors\nAnswer with one letter" in text


@pytest.mark.parametrize(
    ("said", "letter"),
    [
        ("A because nothing was moved", "A"),
        ("A is right", "A"),
        ("Answer: A since no item lies there", "A"),
        ("Option A is right, not B", "A"),
        ("A nothing", "A"),
        ("A", "A"),
        ("**A**", "A"),
        ("(A) 0", "A"),
        ("I because eight lie there", "I"),
        ("I is right", "I"),
        ("B because one was moved", "B"),
        ("A hand holds it: B", "B"),
        ("I think it is C", "C"),
        ("I am sure it's D", "D"),
        ("It is not A but B", "B"),
        ("Neither A nor B", None),
        ("A robot at work", None),
        ("I'd say that it cannot be told", None),
        ("A robot's hand", None),
    ],
)
def test_a_letter_counts_whatever_stands_behind_it_and_a_word_does_not(said: str, letter: str | None):
    """ "A because …" was no answer, and "Option A is right, not B" was B: the lowest option alone was lost."""
    assert letter_of(said) == letter


def test_an_endpoint_that_is_none_is_told_in_one_line():
    question = questions(told(), Keyframe(at(7), "go"))[0]
    with stand_in(lambda *_: "A", status=404) as server, pytest.raises(DeviceLost, match=r"answered 404; is it up"):
        Planner(MODEL, server.url).answer(question, PICTURE)
    with stand_in(lambda *_: "A", whole={"text": "A"}) as server, pytest.raises(DeviceLost, match="OpenAI-compatible"):
        Planner(MODEL, server.url).answer(question, PICTURE)
    with socket.socket() as mute, pytest.raises(DeviceLost, match="does not answer"):
        mute.bind(("127.0.0.1", 0))  # so that nobody else gets the port, and nobody listens there
        Planner(MODEL, f"http://127.0.0.1:{mute.getsockname()[1]}/v1").answer(question, PICTURE)
    for text in ("qwen", "=http://127.0.0.1:1/v1", "qwen=file:///etc/passwd", "qwen=http://[::1"):
        with pytest.raises(InputError, match="must be MODEL=URL"):
            planner_of(text)


def test_shares_stand_beside_chance_and_the_best_constant_answer_by_view():
    """Of four: right 3; chance 1/2; the answer 0 always 3 of 4. Above the better floor: (3/4 - 3/4) / (1/4) = 0."""
    answers = [
        Answer("m", "plan", view, "go", "e", ("x", "y"), right, given)
        for view, right, given in (("a", 0, 0), ("a", 0, 0), ("b", 0, 1), ("b", 1, 1))
    ]
    found = {
        (cell["kind"], cell["view"]): cell
        for cell in table([*answers, Answer("m", "stage", "a", "go", "e", ("x", "y", "z"), 2, None)])
    }
    plan = found["plan", "all"]
    assert (plan["asked"], plan["right"], plan["share"], plan["chance"], plan["same"]) == (4, 3, 0.75, 0.5, 0.75)
    assert plan["above"] == 0 and found["plan", "b"]["share"] == 0.5
    stage = found["stage", "all"]
    assert (stage["unread"], stage["share"], stage["chance"]) == (1, 0.0, pytest.approx(1 / 3))
    assert stage["above"] is None, "one question: always the right answer is a floor of all"
    assert found["all", "all"]["asked"] == 5 and found["all", "all"]["same"] == pytest.approx(0.8)
