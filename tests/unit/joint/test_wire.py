"""What comes through the door is a question of the known form, or is refused in one line; the host goes on."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.joint.joint_labs import make_labs

from labctl.clock import MonotonicClock
from labctl.errors import BrokenRecord, InputError, StateError
from labctl.joint.door import Door, answer
from labctl.joint.keys import read_host_keys, read_invitation
from labctl.joint.wire import Compared, Head, Question, RevealAnswer, read_answer, read_question, refused
from labctl.store.journal import events_of

pytestmark = pytest.mark.usefixtures("no_collector")

WHOLE = Question(
    id="q1",
    asks="reveal",
    part=2,
    trial="t-abc234",
    head=Head(seq=3, hash="0" * 64),
    clock=Compared(offset_s=-0.5, bound_s=0.0),
    skipped=("t-abc235",),
)
RAW = WHOLE.model_dump_json(exclude_defaults=True).encode()


def test_a_question_is_read_as_it_was_asked() -> None:
    assert read_question(RAW) == WHOLE


@pytest.mark.parametrize(
    "change",
    [
        {"asks": "arms"},
        {"asks": 3},
        {"id": ""},
        {"id": "x\ny"},
        {"part": 0},
        {"part": True},
        {"head": {"seq": 1}},
        {"head": {"seq": 1, "hash": "zz"}},
        {"clock": {"offset_s": 1e99, "bound_s": 0}},
        {"clock": {"offset_s": 0.0, "bound_s": -1.0}},
        {"skipped": "t-abc"},
        {"phase": "over"},
        {"cell": "b"},
    ],
)
def test_another_form_is_refused(change: dict[str, object]) -> None:
    raw = json.dumps({**json.loads(RAW), **change}).encode()
    with pytest.raises(InputError) as refusal:
        read_question(raw)
    assert "\n" not in str(refusal.value)


@settings(max_examples=300, deadline=None)
@given(raw=st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)))
def test_no_bytes_are_more_than_refused(raw: bytes) -> None:
    with suppress(InputError):
        read_question(raw)
    with suppress(BrokenRecord, StateError, InputError):
        read_answer(raw, RevealAnswer)


def test_what_the_host_raises_is_raised_at_the_cell() -> None:
    with pytest.raises(StateError, match="the seal host refuses: not now"):
        read_answer(refused("q1", StateError("not now")), RevealAnswer)


def test_whatever_a_cell_sends_is_answered_and_writes_nothing(tmp_path: Path) -> None:
    labs, clock = make_labs(tmp_path, address="tcp://127.0.0.1:7441"), MonotonicClock()
    for raw in (b"", b"\xff", b"{}", b"[" * 5000, json.dumps({"id": "q", "asks": "reveal"}).encode(), RAW):
        assert "error" in json.loads(answer(labs.made.folder, "a", raw, clock))
    assert len(events_of(labs.made.folder)) == 1


def test_a_key_that_others_may_read_is_refused_with_the_remedy(tmp_path: Path) -> None:
    labs = make_labs(tmp_path, address="tcp://127.0.0.1:7441")
    for path, read in ((labs.invitation("a"), read_invitation), (labs.made.folder / "keys.toml", read_host_keys)):
        path.chmod(0o640)
        with pytest.raises(InputError, match="other accounts may read this key; chmod 600"):
            read(path)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("tcp://", "udp://", "give tcp://HOST:PORT"),
        ("secret_key = ", "key = ", "'key' is not as the seal host writes it"),
        ("cell = ", "cell = [", "not a TOML file"),
        ('secret_key = "', 'secret_key = "x', "'secret_key' is not as the seal host writes it"),
    ],
)
def test_a_file_that_is_no_invitation_is_refused_by_name(tmp_path: Path, old: str, new: str, said: str) -> None:
    path = make_labs(tmp_path, address="tcp://127.0.0.1:7441").invitation("a")
    path.write_text(path.read_text().replace(old, new, 1))
    with pytest.raises(InputError, match=said) as refusal:
        read_invitation(path)
    assert str(path) in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize("key", ["public_key", "secret_key", "b"])
def test_a_key_that_was_damaged_is_named_before_a_socket_is_opened_with_it(tmp_path: Path, key: str) -> None:
    folder = make_labs(tmp_path, address="tcp://127.0.0.1:7441").made.folder
    keys = folder / "keys.toml"
    keys.write_text(keys.read_text().replace(f'{key} = "', f'{key} = "x').replace(f'"{key}" = "', f'"{key}" = "x'))
    with pytest.raises(InputError, match=rf"the seal host's keys are damaged \('{key}'\); restore the file") as refusal:
        Door(folder)
    assert str(keys) in str(refusal.value)
