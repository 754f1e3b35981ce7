"""pyarrow, which says no types of its own, by what exports use of it.

May not: write a file, or wrap a call: what is handed out is the library itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import numpy as np

from labctl.errors import MissingExtra
from labctl.plain import Json

Columns = Mapping[str, "Array | Sequence[Json]"]  # by name, all of one length


class Kind(Protocol):
    """The type of a column. list_size: values in an entry, where it is one of lists of one length."""

    @property
    def list_size(self) -> int: ...


class Array(Protocol):
    """A column in one piece."""

    @property
    def type(self) -> Kind: ...
    def cast(self, kind: Kind, /) -> Array: ...
    def flatten(self) -> Array: ...
    def to_numpy(self, *, zero_copy_only: bool) -> np.ndarray: ...


class Pieces(Protocol):
    """A column of a table."""

    def combine_chunks(self) -> Array: ...


class Field(Protocol):
    """What a schema says of a column."""

    @property
    def name(self) -> str: ...
    def with_metadata(self, metadata: Mapping[str, str], /) -> Field: ...


class Schema(Protocol):
    """The columns of a table, in order."""

    @property
    def names(self) -> list[str]: ...
    def __iter__(self) -> Iterator[Field]: ...


class Table(Protocol):
    """Columns of one length."""

    @property
    def schema(self) -> Schema: ...
    def cast(self, schema: Schema, /) -> Table: ...
    def __getitem__(self, name: str, /) -> Pieces: ...


class Tables(Protocol):
    """How tables are made."""

    def from_pylist(self, rows: Sequence[Mapping[str, Json]], /) -> Table: ...
    def from_arrays(self, columns: Sequence[Array], /, *, schema: Schema) -> Table: ...


class CodedArrays(Protocol):
    """How a column is made whose values are numbers into a list."""

    def from_arrays(self, places: np.ndarray, values: Sequence[str], /) -> Array: ...


class ListArrays(Protocol):
    """How a column of lists of one length is made of all their values."""

    def from_arrays(self, values: Array, size: int, /) -> Array: ...


class Kinds(Protocol):
    """What can be asked of a column's type."""

    def is_fixed_size_list(self, kind: Kind, /) -> bool: ...


class Arrow(Protocol):
    """The module `pyarrow`."""

    @property
    def Table(self) -> Tables: ...
    @property
    def DictionaryArray(self) -> CodedArrays: ...
    @property
    def FixedSizeListArray(self) -> ListArrays: ...
    @property
    def types(self) -> Kinds: ...
    def array(self, values: np.ndarray | Sequence[Json], kind: Kind | None = None, /) -> Array: ...
    def table(self, columns: Columns, /, *, schema: Schema | None = None) -> Table: ...
    def schema(
        self, fields: Sequence[Field] | Sequence[tuple[str, Kind]], /, *, metadata: Mapping[str, str] | None = None
    ) -> Schema: ...
    def field(self, name: str, kind: Kind, /, *, metadata: Mapping[str, str] | None = None) -> Field: ...
    def string(self) -> Kind: ...
    def int32(self) -> Kind: ...
    def int64(self) -> Kind: ...
    def float64(self) -> Kind: ...
    def timestamp(self, unit: str, /, *, tz: str) -> Kind: ...
    def dictionary(self, places: Kind, values: Kind, /) -> Kind: ...
    def from_numpy_dtype(self, dtype: np.dtype, /) -> Kind: ...


class Writer(Protocol):
    """An open file that takes a row group after the other."""

    @property
    def schema(self) -> Schema: ...
    def write_table(self, table: Table, /, *, row_group_size: int) -> None: ...
    def close(self) -> None: ...


class Parquet(Protocol):
    """The module `pyarrow.parquet`."""

    def ParquetWriter(self, path: Path, schema: Schema, /, *, compression: str) -> Writer: ...
    def write_table(self, table: Table, path: Path, /, *, compression: str = "snappy") -> None: ...
    def read_table(self, path: Path, /, *, columns: Sequence[str]) -> Table: ...
    def read_schema(self, path: Path, /) -> Schema: ...


def arrow(what: str) -> tuple[Arrow, Parquet]:
    """Both modules. what: what they are wanted for, as MissingExtra says it where there is no pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MissingExtra("parquet", what) from error
    return pyarrow, pyarrow.parquet
