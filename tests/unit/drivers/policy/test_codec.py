"""What goes over a policy's wire comes back as it was, and nothing that could run code or lie about itself is read."""

from __future__ import annotations

import io
import pickle
import zipfile

import msgpack
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from labctl.drivers.policy.codec import pack, pack_npy, unpack, unpack_npy
from labctl.errors import DeviceRefused

CODECS = {"openpi": (pack, unpack), "gr00t": (pack_npy, unpack_npy)}
DTYPES = st.sampled_from(["<f4", "<f8", "|u1", "<i8", "|b1", "<u2", ">f4", "<f2"])
ARRAYS = DTYPES.flatmap(
    lambda d: npst.arrays(np.dtype(d), npst.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
)


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@given(array=ARRAYS, text=st.text(), number=st.integers(-(2**63), 2**63 - 1))
def test_arrays_and_plain_values_come_back_bit_for_bit(codec, array: np.ndarray, text: str, number: int):
    pack_one, unpack_one = codec
    back = unpack_one(pack_one({"array": {"of": array}, f"key {text}": [number, True, None, text]}))
    assert back[f"key {text}"] == [number, True, None, text]
    found = back["array"]["of"]
    assert (found.dtype, found.shape, found.tobytes()) == (array.dtype, array.shape, array.tobytes())


@given(array=ARRAYS.filter(lambda a: a.ndim > 1))
def test_an_array_that_is_a_view_goes_as_what_it_shows(array: np.ndarray):
    turned = array.T
    for back in (unpack(pack(turned)), unpack_npy(pack_npy(turned))):
        assert back.shape == turned.shape and back.tobytes() == turned.tobytes()


def test_a_numpy_scalar_is_a_scalar_in_openpis_dialect():
    back = unpack(pack(np.float32(0.1)))
    assert back == np.float32(0.1) and back.dtype == np.float32


def test_openpis_array_is_the_map_its_own_client_writes():
    """The bytes of a (1, 2) uint8 array: a map of four byte keys (openpi_client.msgpack_numpy, version 0.1.2)."""
    wanted = {b"__ndarray__": True, b"data": b"\x01\x02", b"dtype": "|u1", b"shape": (1, 2)}
    assert pack(np.array([[1, 2]], np.uint8)) == msgpack.packb(wanted)


def test_gr00ts_array_is_a_npy_file_under_text_keys():
    file = io.BytesIO()
    np.save(file, np.arange(3.0))
    assert pack_npy(np.arange(3.0)) == msgpack.packb({"__ndarray_class__": True, "as_npy": file.getvalue()})


@pytest.mark.parametrize("codec", CODECS.values(), ids=CODECS)
@pytest.mark.parametrize(
    "value",
    [np.array([None]), np.array(["a"]), np.array([1j]), np.array(["2000"], "M8[D]"), object()],
    ids=["objects", "text", "complex", "dates", "an object"],
)
def test_what_no_policy_reads_is_not_sent(codec, value: object):
    with pytest.raises(ValueError, match=r"not sent|cannot be sent"):
        codec[0]({"a": value})


LIES = {
    "cut short": pack({"a": np.zeros(8)})[:-3],
    "text after it": pack({"a": 1}) + b"more",
    "no msgpack": b"\xc1 hello",
    "nothing": b"",
    "fewer bytes than its shape": msgpack.packb({b"__ndarray__": True, b"data": b"1", b"dtype": "<f8", b"shape": [3]}),
    "an array of objects": msgpack.packb({b"__ndarray__": True, b"data": b"12345678", b"dtype": "|O", b"shape": [1]}),
    "no dtype": msgpack.packb({b"__ndarray__": True, b"data": b"12345678", b"shape": [1]}),
    "a scalar of any number of bytes": msgpack.packb({b"__npgeneric__": True, b"data": 10**9, b"dtype": "|V8"}),
    "a dtype nobody knows": msgpack.packb({b"__npgeneric__": True, b"data": 1, b"dtype": "quaternion"}),
}


@pytest.mark.parametrize("data", LIES.values(), ids=LIES)
def test_bytes_that_lie_about_themselves_are_refused_in_one_line(data: bytes):
    with pytest.raises(DeviceRefused, match="cannot be read") as caught:
        unpack(data)
    assert "\n" not in str(caught.value)


def test_a_npy_file_of_objects_is_not_loaded():
    file = io.BytesIO()
    np.save(file, np.array([{}], dtype=object))
    with pytest.raises(DeviceRefused, match="cannot be read"):
        unpack_npy(msgpack.packb({"__ndarray_class__": True, "as_npy": file.getvalue()}))


class Bomb:
    """Unpickling it would fail the test."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was loaded",))


def torch_blob() -> bytes:
    """What torch.save writes: a zip of a pickle."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("archive/data.pkl", pickle.dumps(Bomb()))
    return file.getvalue()


@pytest.mark.parametrize("blob", [torch_blob(), pickle.dumps(Bomb())], ids=["zip", "bare"])
def test_a_torch_pickle_is_named_and_never_loaded(blob: bytes):
    with pytest.raises(DeviceRefused, match=r"torch pickles .*update the server"):
        unpack_npy(blob)


def test_an_empty_table_is_no_pickle():
    """One byte, 0x80, with which a pickle of protocol 2 or later begins."""
    assert pack_npy({}) == b"\x80" and unpack_npy(b"\x80") == {}


def test_a_modality_config_is_its_json_as_text_or_as_a_map():
    """Text in N1.5, a map in N1.6 and later: it tells the calling conventions apart."""
    for json in ('{"modality_keys": ["a"]}', {"modality_keys": ["a"]}):
        assert unpack_npy(msgpack.packb({"video": {"__ModalityConfig_class__": True, "as_json": json}})) == {
            "video": json
        }
