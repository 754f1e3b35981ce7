"""The unit of each column of a stream, from what its declaration says and how columns are named.

May not: convert anything.
"""

from __future__ import annotations

import re

from labctl.streams import StreamSpec

# The first name that fits wins. Prefixes as robots and cameras declare them; see docs/exports.md.
_NAMED = (
    (re.compile(r"dq\..*"), "rad/s"),
    (re.compile(r"q\..*"), "rad"),
    (re.compile(r"tau\..*"), "N.m"),
    (re.compile(r"tcp\.[xyz]|gripper|(requested|limited|sent)\.gripper|[xyz]"), "m"),
    (re.compile(r"tcp\.q[xyzw]|visible|in_target|lost|held"), "1"),
    (re.compile(r"(requested|limited|sent)\..*|yaw"), "rad"),
    (re.compile(r".*_ns"), "ns"),
    (re.compile(r".*_us"), "us"),
    (re.compile(r".*_ms"), "ms"),
    (re.compile(r".*_mb"), "MB"),
    (re.compile(r".*_s"), "s"),
    (re.compile(r"item|frame|actions|executed|late|domain|number|.*count"), "1"),
)


def column_units(spec: StreamSpec) -> tuple[str, ...]:
    """A unit for each of the stream's columns; "" where neither its name nor the declaration tells."""
    declared = [part for part in re.split(r"[\s,]+", spec.unit.strip()) if part]
    if len(declared) == len(spec.columns) and (len(declared) > 1 or spec.name.startswith("sensor/")):
        return tuple(declared)
    alone = declared[0] if len(declared) == 1 else ""
    return tuple(next((unit for name, unit in _NAMED if name.fullmatch(column)), alone) for column in spec.columns)
