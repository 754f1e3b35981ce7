"""Everything an export says, raw and decoded, so that a search cannot miss what compression hides."""

from __future__ import annotations

import importlib.util
import subprocess
from pathlib import Path

import numpy as np
import pyarrow.parquet
from mcap.reader import make_reader


def all_text(out: Path) -> dict[str, str]:
    """{what: text} of every file of an export: its bytes as they are, its name, and what its format holds, decoded."""
    found = {}
    for path in sorted(out.rglob("*")) if out.is_dir() else [out]:
        name = str(path.relative_to(out.parent))
        found[f"{name} (name)"] = name
        if path.is_file():
            found[f"{name} (bytes)"] = path.read_bytes().decode("latin-1")
            if path.suffix in DECODE:
                found[f"{name} (decoded)"] = DECODE[path.suffix](path)
    return found


def _parquet(path: Path) -> str:
    table = pyarrow.parquet.read_table(path)
    texts = [field.name for field in table.schema]
    texts += [str(field.metadata) for field in table.schema] + [str(table.schema.metadata)]
    for column in table.columns:
        if pyarrow.types.is_dictionary(column.type) or pyarrow.types.is_string(column.type):
            texts += [str(value) for value in column.unique().to_pylist()]
    return "\n".join(texts)


def _mcap(path: Path) -> str:
    texts = []
    with path.open("rb") as file:
        reader = make_reader(file)
        for record in reader.iter_metadata():
            texts += [record.name, str(record.metadata)]
        for schema, channel, message in reader.iter_messages():
            texts += [schema.name, schema.data.decode(), channel.topic, str(channel.metadata)]
            texts.append(message.data.decode("utf-8", "replace"))  # CDR has its texts as they are
    return "\n".join(texts)


def _rrd(path: Path) -> str:
    rerun = Path(str(importlib.util.find_spec("rerun_cli").origin)).with_name("rerun")
    assert subprocess.run([rerun, "rrd", "verify", path], capture_output=True).returncode == 0
    return subprocess.run([rerun, "rrd", "print", "-vvv", path], capture_output=True, text=True, check=True).stdout


def _npz(path: Path) -> str:
    with np.load(path) as arrays:
        return "\n".join([*arrays.files, *(str(a.tolist()) for a in arrays.values() if a.dtype.kind in "US")])


DECODE = {".parquet": _parquet, ".mcap": _mcap, ".rrd": _rrd, ".npz": _npz}


def hits(out: Path, words: list[str]) -> list[tuple[str, str]]:
    """(where, word) for each word that stands anywhere, in any case."""
    return [(where, word) for where, text in all_text(out).items() for word in words if word.lower() in text.lower()]
