"""The two msgpack dialects that policy servers speak: openpi's (also RoboArena's) and GR00T's.

May not: open a socket, load a pickle, or hand out an array that its bytes do not fill.

openpi: an array is a map with byte keys, its raw C-order bytes, dtype and shape; a numpy scalar is one too. That is not
what the package msgpack-numpy writes. GR00T: an array is the bytes of a .npy file. Decoded arrays are read-only views.
"""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from labctl.errors import DeviceRefused, MissingExtra

ANSWER_BYTES = 16 << 20  # of one answer; a chunk of actions is some thousand
PLAIN = frozenset("biuf")  # kinds of dtype an observation or an action may have
ZIP, PICKLE = b"PK\x03\x04", b"\x80"  # msgpack has no such beginning, but a lone 0x80 is its empty table


def pack(value: Any) -> bytes:
    """Bytes of plain values and arrays in openpi's dialect. Raises ValueError for an array of objects, text or
    complex numbers.
    """
    return _msgpack().packb(value, default=_openpi)


def unpack(data: bytes) -> Any:
    """The values that bytes of openpi's dialect hold. Raises DeviceRefused when they are something else."""
    return _unpack(data, _from_openpi)


def pack_npy(value: Any) -> bytes:
    """Bytes of plain values and arrays in GR00T's dialect. Raises ValueError like `pack`."""
    return _msgpack().packb(value, default=_npy)


def unpack_npy(data: bytes) -> Any:
    """The values that bytes of GR00T's dialect hold; a ModalityConfig is its JSON, as text (N1.5) or a map (N1.6 on).

    Raises DeviceRefused when they are something else, naming a torch pickle, which labctl never loads.
    """
    if data.startswith((ZIP, PICKLE)) and data != PICKLE:
        raise DeviceRefused(
            "the server answers in torch pickles (GR00T N1 and early N1.5), which run code when read; labctl never "
            "loads one: update the server to a version that speaks msgpack"
        )
    return _unpack(data, _from_npy)


def _unpack(data: bytes, hook: Any) -> Any:
    try:
        return _msgpack().unpackb(data, object_hook=hook)
    except DeviceRefused:
        raise
    except Exception as error:  # msgpack has several, and an array may lie about itself in as many ways
        raise DeviceRefused(
            f"an answer of {len(data)} bytes cannot be read ({type(error).__name__}: {error})"
        ) from None


def _openpi(value: Any) -> Any:
    if isinstance(value, np.ndarray | np.generic):
        _refuse_odd(value.dtype)
        if isinstance(value, np.ndarray):
            body = {b"data": value.tobytes(), b"dtype": value.dtype.str, b"shape": value.shape}
            return {b"__ndarray__": True, **body}
        return {b"__npgeneric__": True, b"data": value.item(), b"dtype": value.dtype.str}
    raise ValueError(f"a {type(value).__name__} cannot be sent to a policy")


def _from_openpi(found: dict[Any, Any]) -> Any:
    is_array = b"__ndarray__" in found
    if not is_array and b"__npgeneric__" not in found:
        return found
    dtype = np.dtype(found[b"dtype"])
    _refuse_odd(dtype)
    return np.frombuffer(found[b"data"], dtype).reshape(found[b"shape"]) if is_array else dtype.type(found[b"data"])


def _npy(value: Any) -> Any:
    if isinstance(value, np.generic):
        value = np.asarray(value)
    if not isinstance(value, np.ndarray):
        raise ValueError(f"a {type(value).__name__} cannot be sent to a policy")
    _refuse_odd(value.dtype)
    file = io.BytesIO()
    np.save(file, value, allow_pickle=False)
    return {"__ndarray_class__": True, "as_npy": file.getvalue()}


def _from_npy(found: dict[Any, Any]) -> Any:
    if "__ndarray_class__" in found:
        return np.load(io.BytesIO(found["as_npy"]), allow_pickle=False)
    if "__ModalityConfig_class__" in found:
        return found["as_json"]
    return found


def _refuse_odd(dtype: np.dtype[Any]) -> None:
    if dtype.kind not in PLAIN:
        raise ValueError(f"arrays of dtype {dtype} are not sent")


def _msgpack() -> Any:
    try:
        import msgpack
    except ModuleNotFoundError as error:
        raise MissingExtra("policy", "talking to a policy server") from error
    return msgpack
