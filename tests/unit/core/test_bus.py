"""A message comes off the wire as it went on."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labctl.bus import Message, decode, encode, joined, parted

pytestmark = pytest.mark.usefixtures("no_collector")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)
DTYPES = st.sampled_from(["<f8", ">f8", "<f4", "<i8", ">i4", "|u1", "|b1"])
ARRAYS = st.dictionaries(
    st.text(min_size=1, max_size=6),
    DTYPES.flatmap(lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=4))),
    max_size=3,
)


@given(st.text(max_size=8), st.text(max_size=8), st.dictionaries(st.text(max_size=5), JSON, max_size=3), ARRAYS)
def test_a_message_comes_off_the_wire_as_it_went_on(to, kind, body, arrays):
    sent = Message(to, kind, body, arrays, "someone")
    got = decode(encode(sent))
    assert (got.to, got.kind, got.body, got.sender) == (to, kind, body, "someone")
    assert list(got.arrays) == list(arrays)
    for name, value in arrays.items():
        assert got.arrays[name].shape == value.shape
        np.testing.assert_array_equal(got.arrays[name], value)


def test_arrays_travel_little_endian_and_contiguous():
    column = np.arange(12, dtype=">i4").reshape(3, 4)[:, 1]
    header, raw = encode(Message("arm", "target", {}, {"column": column}))
    assert b'"<i4"' in header
    assert raw == np.array([1, 5, 9], "<i4").tobytes()


def test_a_message_that_lost_an_array_is_refused():
    frames = encode(Message("arm", "target", {}, {"a": np.zeros(2), "b": np.ones(2)}))
    with pytest.raises(ValueError, match="announced 2 arrays and carried 1"):
        decode(frames[:-1])


HEADER = {"to": "run", "kind": "note", "from": "x", "body": {}, "arrays": []}
GARBAGE: list[list[bytes]] = [
    [],
    [b"\x80\x01"],
    [b"7"],
    [b"{}"],
    [b"[" * 100_000],
    *([json.dumps({**HEADER, **wrong}).encode()] for wrong in ({"to": 7}, {"kind": None}, {"from": "\ud800"})),
    *([json.dumps({**HEADER, **wrong}).encode()] for wrong in ({"body": [1]}, {"arrays": 3}, {"arrays": ["abc"]})),
    [json.dumps({**HEADER, "arrays": [["a", "no dtype", [1]]]}).encode(), b"1"],
    [json.dumps({**HEADER, "arrays": [["a", "<f8", [2]]]}).encode(), b"1"],
]


@pytest.mark.parametrize("frames", GARBAGE, ids=lambda frames: repr(frames)[:40])
def test_garbage_is_refused(frames):
    with pytest.raises(ValueError):
        decode(frames)


@given(st.text(max_size=8), st.dictionaries(st.text(max_size=5), JSON, max_size=3), ARRAYS)
def test_a_message_in_one_block_is_the_same_message(kind, body, arrays):
    got = decode(parted(joined(encode(Message("@frames", kind, body, arrays, "camera:wrist")))))
    assert (got.to, got.kind, got.body, got.sender) == ("@frames", kind, body, "camera:wrist")
    assert {name: value.tobytes() for name, value in got.arrays.items()} == {
        name: np.ascontiguousarray(value, value.dtype.newbyteorder("<")).tobytes() for name, value in arrays.items()
    }


def test_a_block_that_is_cut_short_is_no_message():
    block = joined(encode(Message("@frames", "frame", {}, {"image": np.zeros((2, 2, 3), np.uint8)})))
    with pytest.raises(ValueError, match="announced"):
        parted(block[:-1])
