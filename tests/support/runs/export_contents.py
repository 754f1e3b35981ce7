"""What an export holds, decoded, as a digest of each part: the same for the same content, whichever version of a
library wrote the file and on whichever machine.

Bytes of a Parquet or MCAP file are their writer's: compression, row groups, indices and its name and version change
with pyarrow and mcap. So columns are read back, and messages topic by topic.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mcap.reader import make_reader

Parts = Iterator[tuple[str, str]]


def contents(out: Path) -> dict[str, str]:
    """{"file part": digest} of all that a folder holds; `labctl.json`, which says where it came from, is left out."""
    return {
        f"{path.relative_to(out)} {part}": digest
        for path in sorted(out.rglob("*"))
        if path.suffix in PARTS
        for part, digest in PARTS[path.suffix](path)
    }


def _arrays(path: Path) -> Parts:
    with np.load(path) as arrays:
        for name in sorted(arrays.files):
            array = arrays[name]
            yield name, _digest([f"{array.dtype.str} {array.shape}".encode(), np.ascontiguousarray(array).tobytes()])


def _columns(path: Path) -> Parts:
    table = pq.read_table(path)
    for field in table.schema:
        plain = table[field.name]
        if pa.types.is_dictionary(field.type):
            plain = plain.cast(field.type.value_type)
        elif pa.types.is_timestamp(field.type):
            plain = plain.cast(pa.int64())
        unit = (field.metadata or {}).get(b"unit", b"")
        values = (repr(value).encode() for value in plain.to_pylist())
        yield field.name, _digest([str(field.type).encode(), unit, *values])


def _topics(path: Path) -> Parts:
    said: defaultdict[str, list[bytes]] = defaultdict(list)
    with path.open("rb") as file:
        for schema, channel, message in make_reader(file).iter_messages():
            body = json.dumps(json.loads(message.data), sort_keys=True)  # how a number is spelt is the writer's, too
            said[channel.topic] += [str(schema and schema.name).encode(), str(message.log_time).encode(), body.encode()]
    for topic in sorted(said):
        yield topic, _digest(said[topic])


def _digest(parts: Iterable[bytes]) -> str:
    whole = hashlib.sha256()
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.hexdigest()[:16]


PARTS: dict[str, Callable[[Path], Parts]] = {".npz": _arrays, ".parquet": _columns, ".mcap": _topics}
