"""What a model is asked as a witness: by each measure, at which moments, and at which addresses."""

from __future__ import annotations

import pytest
from support.runs.task_campaign import tasks_text

from labctl.checks.keyframes import Hold
from labctl.checks.witness import UNKNOWN, moments, question
from labctl.clock import SECOND
from labctl.config.protocol_schema import parse_protocol
from labctl.core.task import ITEMS, SCORE, STAGES, SUCCESS, Task
from labctl.errors import InputError, StateError

STEPS = (
    {"name": "open", "points": 1.0, "definition": "the lid stands"},
    {"name": "close", "points": 1.0, "definition": "no gap"},
)
RUBRIC = ({"score": 0.0, "text": "nothing moved"}, {"score": 1.0, "text": "folded"})
ARMS = """
[[arm]]
name = "a"
kind = "policy"
controller = "sim_policy"
[[arm]]
name = "b"
kind = "policy"
controller = "sim_policy"
"""


@pytest.mark.parametrize(
    ("task", "options", "values"),
    [
        (Task("t", ITEMS, 2, 9.0, ""), ["0", "1", "2"], [0, 1, 2]),
        (Task("t", STAGES, 1, 9.0, "", STEPS), ["none of them", "open: the lid stands", "close: no gap"], [0, 1, 2]),
        (Task("t", SUCCESS, 1, 9.0, "", STEPS[1:]), ["no", "yes, no gap"], [0, 1]),
        (Task("t", SCORE, 1, 9.0, "", rubric=RUBRIC), ["nothing moved", "folded"], [0, 1]),
    ],
)
def test_the_question_is_of_the_measure_and_unknown_is_an_answer(
    task: Task, options: list[str], values: list[float]
) -> None:
    text, put, worth = question(task, "Put it away.")
    assert text.startswith('A robot was told: "Put it away."')
    assert (put, worth) == ([*options, UNKNOWN], [*values, None])


def test_a_task_with_more_items_than_letters_is_refused() -> None:
    with pytest.raises(StateError, match="a task of 25 items is too long a list"):
        question(Task("t", ITEMS, 25, 9.0, ""), "")


def test_its_moments_are_the_end_the_go_the_holds_and_evenly_between() -> None:
    second = SECOND
    found = moments(0, 20 * second, [Hold(5 * second, 9 * second)], 6)
    assert [(one.mark, one.t_ns / second) for one in found] == [
        ("go", 0.5),
        ("even", pytest.approx(3.75, abs=0.1)),
        ("grasp", 4.5),
        ("even", pytest.approx(7.0, abs=0.1)),
        ("release", 8.5),
        ("end", 20.0),
    ]
    many = [Hold(n * second, (n + 0.9) * second) for n in range(1, 19)]
    assert len(moments(0, 20 * second, many, 4)) == 4 and moments(0, 20 * second, many, 4)[-1].mark == "end"


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ('model = "m"\nurl = "http://cell.example/v1"', "url leads to another machine without https"),
        ('model = "m"\nurl = "https://me:secret@cell.example/v1"', "a key stands in the variable that key_env names"),
        ('model = "m"\nurl = "https://cell.example/v1?key=x"', "a key stands in the variable that key_env names"),
        ('model = "m"\nurl = "cell.example"', "url"),
        ('url = "http://127.0.0.1:8000/v1"', "model"),
        ('model = "m"\nurl = "http://127.0.0.1:8000/v1"\nkey_env = "sk-123"', "key_env"),
        ('model = "m"\nurl = "http://127.0.0.1:8000/v1"\npictures = 1', "pictures"),
    ],
)
def test_an_address_or_a_key_that_may_not_be_is_refused_with_its_line(said: str, wrong: str) -> None:
    with pytest.raises(InputError, match=rf"p.toml:\d+: .*{wrong}"):
        parse_protocol(f"{tasks_text()}\n[witness]\n{said}\n{ARMS}", "p.toml")


@pytest.mark.parametrize("url", ["http://127.0.0.1:8000/v1", "http://[::1]:8000/v1", "https://models.example/v1"])
def test_a_model_is_on_this_machine_or_behind_https(url: str) -> None:
    text = f'{tasks_text()}\n[witness]\nmodel = "m"\nurl = "{url}"\n{ARMS}'
    found = parse_protocol(text, "p.toml").witness
    assert found is not None and found.url == url
