"""Options of a sensor that speaks in lines of text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from labctl.config.options import SensorOptions
from labctl.config.values import Lax, Text, Texts
from labctl.streams import StreamSpec

Numbers = Annotated[tuple[float, ...], Lax]
ENDS = {"lf": b"\n", "cr": b"\r", "crlf": b"\r\n"}
MANY = re.compile(r"(.+)\*(\d{1,4})")
MOST = 1024


class LinesOptions(SensorOptions):
    """A sensor that says its values in lines of text, on a serial line or over TCP."""

    port: Text = Field(
        description='its serial adapter, best a "/dev/serial/by-id/…", which does not change; or "socket://HOST:PORT"'
    )
    baud: int = Field(9600, ge=300, le=4_000_000, description="of a serial line; 8N1")
    ask: Text | None = Field(
        None, description="what it is asked, rate_hz times a second; left out, it speaks by itself"
    )
    end: Literal["lf", "cr", "crlf"] = Field("crlf", description="what ends the question")
    columns: Texts = Field(description='what a line holds, in order; "taxel*16" is taxel1 to taxel16')
    units: Texts = Field(description="a unit for each column, or one for all")
    pattern: Text | None = Field(
        None, description="a regular expression with a group for each column; left out, a line is as many numbers"
    )
    factors: Numbers = Field((1.0,), description="from what it says to the unit: one for each column, or one for all")
    words: dict[str, float] = Field(default_factory=dict, description="what a word in the place of a number stands for")
    open: Texts = Field((), description="columns that a blind role may see: those that no arm can be told by")
    silence_s: float = Field(2.0, ge=0.2, le=60.0, description="without a line that fits for so long, it is lost")

    @model_validator(mode="after")
    def _fits(self) -> Self:
        names = self.names()
        if not names or len(names) > MOST or len(set(names)) != len(names):
            raise ValueError(f"columns are {len(names)}; give 1 to {MOST}, each by a name of its own")
        for key, given in (("units", self.units), ("factors", self.factors)):
            if len(given) not in (1, len(names)):
                raise ValueError(f"{key} are {len(given)}; give one for all, or one for each of {len(names)} columns")
        if any(" " in unit for unit in self.units):
            raise ValueError("a unit has no space in it; m/s2, N.m, degC")
        if unknown := [name for name in self.open if name not in names]:
            raise ValueError(f"open names {unknown[0]!r}, which is no column; columns are {', '.join(names[:12])}")
        if self.pattern is not None:
            try:
                groups = re.compile(self.pattern).groups
            except re.error as error:
                raise ValueError(f"pattern is no regular expression ({error})") from None
            if groups != len(names):
                raise ValueError(f"pattern has {groups} groups; give one in brackets for each of {len(names)} columns")
        return self

    def names(self) -> tuple[str, ...]:
        """Every column."""
        made: list[str] = []
        for name in self.columns:
            many = MANY.fullmatch(name)
            made += [name] if many is None else [f"{many[1]}{i}" for i in range(1, int(many[2]) + 1)]
        return tuple(made)

    def factor_of_each(self) -> Sequence[float]:
        """By what each column's number is multiplied."""
        return self.factors * len(self.names()) if len(self.factors) == 1 else self.factors

    def ending(self) -> bytes:
        """What ends a question."""
        return ENDS[self.end]

    def device(self) -> str | None:
        of_network = self.port.startswith("socket://")  # whose host is one however it is written
        return f"port = {self.port.lower().partition('?')[0].rstrip('/') if of_network else self.port}"

    def stream(self) -> StreamSpec:
        names = self.names()
        private = tuple(name for name in names if name not in self.open)
        return StreamSpec(
            "lines", names, " ".join(self.units), self.rate_hz, private_columns=private, public_columns=self.open
        )
