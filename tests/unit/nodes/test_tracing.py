"""What a producer adds is what a recorder gets, whatever is lost and sent again."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labctl.bus import Message, decode, encode
from labctl.clock import SECOND
from labctl.devices import Batch
from labctl.messages.recording import Ack
from labctl.messages.typed import read
from labctl.nodes.tracing import TraceSender
from labctl.streams import StreamSpec, spec_of

ROBOT = StreamSpec("robot", ("x", "y"), "m", 100.0)
INDEX = StreamSpec("camera/wrist", ("frame",), "1", 10.0, dtype="<i8")


def sender(**options) -> TraceSender:
    return TraceSender("arm", (ROBOT, INDEX), **options)


def samples(start_ns: int, n: int, step_ns: int = 10_000_000) -> Batch:
    t_ns = start_ns + np.arange(n, dtype=np.int64) * step_ns
    return Batch("robot", t_ns, np.stack([t_ns * 1e-9, np.arange(n)], axis=1))


class Recorder:
    """Keeps the first of each (episode, stream, seq), as the recorder must."""

    def __init__(self) -> None:
        self.chunks: dict[tuple[str, str, int], Message] = {}

    def take(self, message: Message) -> None:
        if message.kind == "chunk":
            body = message.body
            self.chunks.setdefault((body["episode"], body["stream"], body["seq"]), decode(encode(message)))

    def read(self, episode: str, stream: str) -> tuple[np.ndarray, np.ndarray]:
        keys = sorted(key for key in self.chunks if key[:2] == (episode, stream))
        assert [key[2] for key in keys] == list(range(len(keys)))
        found = [self.chunks[key].arrays for key in keys]
        return np.concatenate([a["t_ns"] for a in found]), np.concatenate([a["values"] for a in found])


def test_streams_are_declared_before_their_samples():
    messages = sender().open("e1")
    assert [(m.to, m.kind, m.sender) for m in messages] == [("recorder", "declare", "arm")]
    assert [spec_of(body) for body in decode(encode(messages[0])).body["specs"]] == [ROBOT, INDEX]


def test_a_chunk_is_cut_when_a_second_of_samples_waits():
    trace = sender()
    trace.open("e1")
    trace.add(samples(0, 99))
    assert trace.poll(SECOND - 1) == []
    trace.add(samples(990_000_000, 1))
    (chunk,) = trace.poll(SECOND)
    assert chunk.body == {"episode": "e1", "stream": "robot", "seq": 0, "n": 100}
    assert chunk.arrays["t_ns"].dtype == np.dtype("<i8")
    assert chunk.arrays["values"].shape == (100, 2)


def test_the_end_counts_what_was_sent():
    trace = sender()
    trace.open("e1")
    trace.add(samples(0, 30))
    chunk, end = trace.close(SECOND)
    assert (chunk.kind, end.kind) == ("chunk", "end")
    assert end.body["sent"] == {"robot": {"chunks": 1, "n": 30}, "camera/wrist": {"chunks": 0, "n": 0}}
    assert trace.close(SECOND) == []


def test_a_sample_outside_an_episode_belongs_to_no_trace():
    trace = sender()
    trace.add(samples(0, 10))
    trace.open("e1")
    assert [m.kind for m in trace.close(5 * SECOND)] == ["end"]


def test_opening_the_same_episode_again_loses_nothing():
    trace = sender()
    trace.open("e1")
    trace.add(samples(0, 10))
    assert [m.kind for m in trace.open("e1")] == ["declare"]
    assert [m.kind for m in trace.close(0)] == ["chunk", "end"]


def test_opening_the_next_episode_ends_the_one_left_open():
    trace = sender()
    trace.open("e1")
    trace.add(samples(0, 10))
    assert [(m.kind, m.body["episode"]) for m in trace.open("e2")] == [
        ("chunk", "e1"),
        ("end", "e1"),
        ("declare", "e2"),
    ]


def test_numbers_start_again_with_each_episode():
    trace = sender()
    for episode in ("e1", "e2"):
        trace.open(episode)
        trace.add(samples(0, 10))
        assert trace.close(0)[0].body["seq"] == 0


def test_an_acknowledged_chunk_is_not_sent_again():
    trace = sender()
    trace.open("e1")
    for start in range(3):
        trace.add(samples(start * SECOND, 100))
        trace.poll((start + 1) * SECOND)
    trace.ack(Ack("e1", "robot", 1))
    trace.ack(Ack("e1", "robot", 1))
    assert [m.body["seq"] for m in trace.resend() if m.kind == "chunk"] == [0, 2]


def test_memory_is_bounded_and_the_loss_is_told_once():
    trace = sender(limit_chunks=2)
    trace.open("e1")
    for start in range(3):
        trace.add(samples(start * SECOND, 100))
        trace.poll((start + 1) * SECOND)
    assert [m.body["seq"] for m in trace.resend() if m.kind == "chunk"] == [1, 2]
    (gap,) = trace.close(0)[-1].body["gaps"]
    assert {k: gap[k] for k in ("episode", "stream", "seq", "lost")} == {
        "episode": "e1", "stream": "robot", "seq": 0, "lost": 100
    }  # fmt: skip
    assert (gap["from_ns"], gap["to_ns"]) == (0, 990_000_000)
    assert trace.gaps() == []


def test_the_caller_may_reuse_its_arrays():
    trace = sender()
    trace.open("e1")
    batch = samples(0, 3)
    trace.add(batch)
    batch.values[:] = -1.0
    assert trace.close(0)[0].arrays["values"].min() >= 0.0


@pytest.mark.parametrize("values", [np.zeros((3, 3)), np.zeros((2, 2)), np.zeros(3)])
def test_values_that_do_not_fit_the_columns_are_refused(values):
    trace = sender()
    trace.open("e1")
    with pytest.raises(ValueError, match="robot"):
        trace.add(Batch("robot", np.arange(3), values))


def test_a_stream_that_was_never_declared_is_refused():
    trace = sender()
    trace.open("e1")
    with pytest.raises(KeyError):
        trace.add(Batch("other", np.arange(3), np.zeros((3, 2))))


LOSSY = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 150)),
        st.tuples(st.just("lose next"), st.booleans()),
        st.tuples(st.just("resend"), st.booleans()),
        st.tuples(st.just("next episode"), st.booleans()),
        st.tuples(st.just("swap"), st.booleans()),
    ),
    max_size=40,
)


@settings(max_examples=60, deadline=None)
@given(LOSSY)
def test_losses_and_resends_in_any_order_change_nothing(script):
    trace, recorder = sender(), Recorder()
    added: dict[str, list[Batch]] = {"e0": []}
    now_ns, losing, swapping = 0, False, False
    trace.open("e0")

    def deliver(messages: list[Message]) -> None:
        """To the recorder, some lost, some out of order; what arrives is acknowledged, or the ack is lost."""
        for message in reversed(messages) if swapping else messages:
            if not losing:
                recorder.take(message)
            if not losing and message.kind == "chunk" and message.body["seq"] % 3:
                trace.ack(read(Ack, message))

    for act, value in script:
        if act == "add":
            batch = samples(now_ns, value)
            added[trace.episode].append(batch)
            trace.add(batch)
            now_ns += value * 10_000_000
            deliver(trace.poll(now_ns))
        elif act == "lose next":
            losing = value
        elif act == "swap":
            swapping = value
        elif act == "resend":
            deliver(trace.resend())
        else:
            deliver(trace.close(now_ns))
            added[f"e{len(added)}"] = []
            deliver(trace.open(f"e{len(added) - 1}"))
    losing = False
    deliver(trace.close(now_ns))
    deliver(trace.resend())

    for episode, batches in added.items():
        if batches:
            t_ns, values = recorder.read(episode, "robot")
            assert np.array_equal(t_ns, np.concatenate([b.t_ns for b in batches]))
            assert np.array_equal(values, np.concatenate([b.values for b in batches]))
