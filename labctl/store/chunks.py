"""Trace chunks as bytes: about one second of one stream, compressed, readable with numpy and zlib alone.

May not: touch a database or know which episode a chunk belongs to.

Format of a payload, version 1:

    {"v":1,"n":100,"k":29,"dtype":"<f8"}\\n     one line of JSON: rows, columns, little-endian numpy dtype of the values
    zlib(times ‖ columns)                      times: n int64 ns; columns: k x n values, column after column
    both parts byte-shuffled                   all first bytes, then all second bytes, …; smooth data compresses

To read one without labctl:

    header, body = payload.split(b"\\n", 1); h = json.loads(header); raw = zlib.decompress(body)
    n, k, dt = h["n"], h["k"], np.dtype(h["dtype"])
    t_ns = np.frombuffer(raw[:8 * n], np.uint8).reshape(8, n).T.copy().view("<i8").ravel()
    values = np.frombuffer(raw[8 * n:], np.uint8).reshape(dt.itemsize, n * k).T.copy().view(dt).reshape(k, n).T
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np

from labctl.errors import BrokenRecord
from labctl.messages.body_parts import StreamEntry
from labctl.streams import StreamSpec

MOST_BYTES = 1 << 28  # of a chunk, unpacked: 10 s of a stream of 300 columns at 10 kHz
LEVEL = 1  # of zlib: level 6 takes four times as long and saves a few percent on joint data
_TIME = np.dtype("<i8")
NUMBERS = "biuf"
"""Kinds of numpy's types that a stream's values may have."""
Samples: TypeAlias = tuple[np.ndarray, np.ndarray]  # t_ns (n,) int64 and values (n, columns)


@dataclass(slots=True)
class Chunk:
    """Samples of one stream: t_ns (n,) int64 ascending, values (n, columns). `seq` counts from 0 in every episode."""

    stream: str
    seq: int
    t_ns: np.ndarray
    values: np.ndarray


def encode_chunk(spec: StreamSpec, t_ns: np.ndarray, values: np.ndarray) -> bytes:
    """The payload of samples t_ns (n,) int64 ns, values (n, k) with k = len(spec.columns), stored as spec.dtype.

    Raises ValueError when the shapes do not fit the declared stream.
    """
    n, k = len(t_ns), len(spec.columns)
    values = np.asarray(values)
    if values.shape != (n, k):
        raise ValueError(f"stream {spec.name}: {n} times and {k} declared columns, but values of shape {values.shape}")
    dtype = np.dtype(spec.dtype).newbyteorder("<")
    columns = np.ascontiguousarray(values.T, dtype=dtype)
    header = json.dumps({"v": 1, "n": n, "k": k, "dtype": dtype.str}, separators=(",", ":")).encode()
    body = _shuffle(np.ascontiguousarray(t_ns, dtype=_TIME)) + _shuffle(columns)
    return header + b"\n" + zlib.compress(body, LEVEL)


def decode_chunk(payload: bytes) -> Samples:
    """(t_ns (n,) int64, values (n, k)) of a payload. Raises BrokenRecord when it is not one."""
    n, k, dtype, raw = _unpacked(payload)
    cut = n * _TIME.itemsize
    return _unshuffle(raw[:cut], _TIME), _unshuffle(raw[cut:], dtype).reshape(k, n).T


def together(spec: StreamSpec, chunks: Sequence[Samples]) -> Samples:
    """Those of a stream from those of its chunks in order."""
    if not chunks:
        return np.empty(0, np.int64), np.empty((0, len(spec.columns)), np.dtype(spec.dtype))
    return np.concatenate([t_ns for t_ns, _ in chunks]), np.concatenate([values for _, values in chunks])


def chunk_times(payload: bytes) -> np.ndarray:
    """The times of a payload alone, (n,) int64 ns; all of it is unpacked and fits its header. Raises BrokenRecord."""
    n, _, _, raw = _unpacked(payload)
    return _unshuffle(raw[: n * _TIME.itemsize], _TIME)


def _unpacked(payload: bytes) -> tuple[int, int, np.dtype, bytes]:
    """Rows, columns, type of the values, and the shuffled bytes."""
    try:
        line, body = bytes(payload).split(b"\n", 1)
        n, k, dtype, size = _announced(line)
        unpacking = zlib.decompressobj()
        raw = unpacking.decompress(body, size + 1)  # not one byte more is unpacked, whatever is in it
        if len(raw) != size or not unpacking.eof:
            raise ValueError("its length does not fit its header")
        return n, k, dtype, raw
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError, SyntaxError, zlib.error) as error:
        raise BrokenRecord(f"a trace chunk cannot be decoded: {error}") from error


@lru_cache(maxsize=256)  # most chunks of a stream have the same header
def _announced(line: bytes) -> tuple[int, int, np.dtype, int]:
    """Rows, columns, type of the values and bytes in all that a header announces."""
    header = json.loads(line)
    n, k, dtype = int(header["n"]), int(header["k"]), np.dtype(header["dtype"])
    if dtype.kind not in NUMBERS:
        raise ValueError(f"its values are said to be {header['dtype']!r}, which are no numbers")
    size = n * (_TIME.itemsize + k * dtype.itemsize)
    if n < 0 or k < 0 or size > MOST_BYTES:
        raise ValueError(f"its header announces {size} bytes; {MOST_BYTES} are the most")
    return n, k, dtype, size


def summary(chunks: Sequence[tuple[int, int, int, str]]) -> StreamEntry:
    """What a seal says of one stream (`TraceStore.seal`), from (t0_ns, t1_ns, n, sha256) of its chunks in order."""
    root = root_of(sha256 for *_, sha256 in chunks)
    first, last = (chunks[0][0], chunks[-1][1]) if chunks else (None, None)
    n = sum(n for _, _, n, _ in chunks)
    return {"n": n, "chunks": len(chunks), "root": root, "t0_ns": first, "t1_ns": last}


def root_of(digests: Iterable[str]) -> str:
    """sha256 hex over the sha256 of chunks in order, raw bytes."""
    return hashlib.sha256(b"".join(bytes.fromhex(digest) for digest in digests)).hexdigest()


def _shuffle(array: np.ndarray) -> bytes:
    return array.reshape(-1).view(np.uint8).reshape(-1, array.dtype.itemsize).T.tobytes()


def _unshuffle(raw: bytes, dtype: np.dtype) -> np.ndarray:
    return np.ascontiguousarray(np.frombuffer(raw, np.uint8).reshape(dtype.itemsize, -1).T).view(dtype).reshape(-1)
