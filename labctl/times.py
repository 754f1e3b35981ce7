"""Times as people read them: where the lab is, with the offset from UTC. The one place that makes them.

May not: touch what is recorded or printed as JSON, which is UTC. The zone is `timezone` of lab.toml, else this
computer's; processes started from here have the same.
"""

from __future__ import annotations

import os
import re
import time
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from labctl.clock import SECOND, Anchor, wall_ns

Written = datetime  # a time as a TOML file has it, with an offset or without
ZONE = "LABCTL_TIMEZONE"  # set by `use`, for this process and those started from here
_LEAD = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:\+00:00|Z))(?=:? )")


def zone_named(name: str) -> ZoneInfo:
    """A zone of the IANA database, such as "Europe/Berlin". Raises ValueError for one that is not there."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError(
            f"{name!r} is no time zone known here; give one as IANA names it, such as Europe/Berlin"
        ) from None


def use(name: str | None) -> None:
    """From here on times are said in this zone; None: in this computer's."""
    if name is None:
        os.environ.pop(ZONE, None)
    else:
        os.environ[ZONE] = name


def zone_words() -> str:
    """Which zone that is, for a report."""
    name = os.environ.get(ZONE)
    return name or f"{time.tzname[0]}, of the computer that made this; lab.toml can name the lab's (timezone)"


def local(wall: str | None, *, seconds: bool = False) -> str:
    """A recorded time (ISO 8601) as "2026-10-25 02:30 +02:00", "UTC" in place of no offset; "" where there is none."""
    if not wall:
        return ""
    there = _there(datetime.fromisoformat(wall))
    return f"{there:%Y-%m-%d %H:%M:%S} {_offset(there)}" if seconds else f"{there:%Y-%m-%d %H:%M} {_offset(there)}"


def minutes(seconds: float) -> str:
    """A time that passes: 0:31, 12:40 or 1:02:05."""
    whole, rest = divmod(int(seconds), 60)
    return f"{whole // 60}:{whole % 60:02}:{rest:02}" if whole >= 60 else f"{whole}:{rest:02}"


def day(wall: str) -> str:
    """The day of a recorded time."""
    return f"{_there(datetime.fromisoformat(wall)):%Y-%m-%d}"


def time_of_day(at: Anchor, later_ns: float = 0) -> str:
    """Hours and minutes, `later_ns` after an anchor: "02:30 +02:00", a weekday before it on another day. In a night
    whose clocks are put back both hours of one name tell themselves apart by the offset.
    """
    began = datetime.fromisoformat(at.wall).astimezone(UTC)
    now, then = _there(began), _there(began + timedelta(seconds=later_ns / SECOND))
    hour = f"{then:%H:%M} {_offset(then)}"
    return hour if then.date() == now.date() else f"{then:%a} {hour}"


def in_line(line: str) -> str:
    """A line of the record that begins with a time, with that time as people read it."""
    found = _LEAD.match(line)
    return f"{local(found[1])}{line[found.end() :]}" if found else line


def written_ns(at: Written) -> int:
    """A time as somebody wrote it, ns since 1970-01-01 UTC: without an offset it is of where the lab is. Raises
    ValueError for a lab's zone that is not known here, and for a time that is beyond all calendars.
    """
    name = os.environ.get(ZONE)
    if at.tzinfo is None and name:
        at = at.replace(tzinfo=zone_named(name))
    try:
        return wall_ns(at.astimezone(UTC).isoformat())
    except OverflowError:
        raise ValueError(f"{at} is out of range; correct its year") from None


def _there(at: datetime) -> datetime:
    name = os.environ.get(ZONE)
    try:
        return at.astimezone(zone_named(name) if name else None)
    except ValueError:  # a database of zones that lacks it: rather a time of this computer than none
        return at.astimezone()


def _offset(at: datetime) -> str:
    text = f"{at:%z}"
    return f"{text[:3]}:{text[3:5]}" if at.utcoffset() else "UTC"
