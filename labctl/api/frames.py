"""Data frames in and out: pandas, polars or Arrow, of which none is needed by labctl itself.

May not: check what a row says; the tables do.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any, TypeAlias

from labctl.analysis.table import Row, Value
from labctl.errors import InputError, MissingExtra

LIBRARIES = ("pandas", "polars", "pyarrow")
Foreign: TypeAlias = Any
"""A data frame, or a value in one, of a library that labctl does not need."""


def rows_of(frame: Foreign) -> list[Row]:
    """The rows of a pandas or polars data frame, an Arrow table, a mapping of columns, a sequence of mappings, or
    whatever speaks Arrow's stream or the interchange protocol (these two need pyarrow). NaN and NA are None.

    Raises InputError for anything else, for columns of one name, and for columns of unequal length.
    """
    if isinstance(frame, Mapping):
        columns = {str(name): list(values) for name, values in frame.items()}
        if len({len(values) for values in columns.values()}) > 1:
            sizes = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
            raise InputError(f"the columns are of unequal length ({sizes}); each row has a value in every column")
        return _clean([dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)])
    if isinstance(frame, Sequence) and not isinstance(frame, str | bytes):
        if not all(isinstance(row, Mapping) for row in frame):
            raise InputError("a sequence of rows holds mappings, column name to value")
        return _clean([dict(row) for row in frame])
    for method in ("to_dicts", "to_pylist"):  # polars; pyarrow
        if hasattr(frame, method):
            _apart(_names(frame))
            return _clean(getattr(frame, method)())
    if hasattr(frame, "to_dict") and hasattr(frame, "columns") and not isinstance(frame, str | bytes):  # pandas
        _apart([str(name) for name in frame.columns])
        return _clean(frame.to_dict("records"))
    if hasattr(frame, "__arrow_c_stream__") or hasattr(frame, "__dataframe__"):
        return rows_of(_by_arrow(frame))
    raise _no_table(frame)


def frame_of(rows: Sequence[Mapping[str, Value]], library: str | None = None) -> Foreign:
    """Rows as a data frame of `library`, else of the first that is installed: pandas, polars, pyarrow; each column
    that some row has.

    Raises InputError where it is not installed, where none is, and for another name.
    """
    if library is not None and library not in LIBRARIES:
        raise InputError(f"library is {library!r}; known are {', '.join(LIBRARIES)}")
    for name in LIBRARIES if library is None else (library,):
        try:
            module: ModuleType = importlib.import_module(name)
        except ImportError:
            continue
        if name == "pandas":
            return module.DataFrame.from_records(rows)
        names = dict.fromkeys(name for row in rows for name in row)  # a row has what there is to say of it
        columns = {name: [row.get(name) for row in rows] for name in names}
        return module.DataFrame(columns, strict=False) if name == "polars" else module.table(columns)
    raise InputError(f"a data frame needs {library or 'pandas, polars or pyarrow'}: pip install {library or 'pandas'}")


def _no_table(frame: Foreign) -> InputError:
    text = "give a data frame (pandas, polars, Arrow), a mapping of columns or a list of rows"
    return InputError(f"a {type(frame).__name__} is no table: {text}")


def _names(frame: Foreign) -> list[str]:
    return list(getattr(frame, "column_names", None) or frame.columns)


def _apart(names: Sequence[str]) -> None:
    repeated = sorted(name for name, count in Counter(names).items() if count > 1)
    if repeated:
        raise InputError(f"the data frame has column {repeated[0]!r} {names.count(repeated[0])} times; keep one")


def _by_arrow(frame: Foreign) -> Foreign:
    try:
        arrow: ModuleType = importlib.import_module("pyarrow")
        interchange: ModuleType = importlib.import_module("pyarrow.interchange")
    except ImportError as error:
        raise MissingExtra(
            "parquet", f"reading a {type(frame).__name__}, which is neither pandas nor polars,"
        ) from error
    try:
        return arrow.table(frame) if hasattr(frame, "__arrow_c_stream__") else interchange.from_dataframe(frame)
    except arrow.ArrowInvalid as error:  # a stream of one column, as a Series is
        raise _no_table(frame) from error


def _clean(rows: Sequence[Mapping[str, Foreign]]) -> list[Row]:
    return [{str(name): _plain(value) for name, value in row.items()} for row in rows]


def _plain(value: Foreign) -> Foreign:
    if hasattr(value, "item") and not isinstance(value, str):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        if math.isnan(value):
            return None
        return int(value) if value.is_integer() else value
    if value is None or isinstance(value, str | int) or type(value).__name__ not in ("NAType", "NaTType"):
        return value
    return None
