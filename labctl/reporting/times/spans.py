"""Where the hours went as spans of OpenTelemetry: OTLP/JSON, as a collector takes it from a file or by HTTP.

    campaign › block › trial › reset, staging, arming, running, scoring, hold

May not: name an arm, or tell a trial's times, while arms are sealed: then each finished block is one span, with sums.

Format: OTLP 1.x, JSON encoding (opentelemetry.io/docs/specs/otlp): ids in hex, whole numbers as text, times in ns
since 1970 UTC. The same record gives the same ids, so that a collector that receives it twice stores it once.
What a receiver wants beside it (a token; MLflow: an experiment) is in the variables that every exporter of
OpenTelemetry reads (opentelemetry.io/docs/specs/otel/protocol/exporter): name=value, by commas, values percent-encoded.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from urllib.parse import unquote, urlsplit

from labctl.clock import SECOND, wall_ns
from labctl.core.record import Record
from labctl.errors import InputError, Unreachable, in_words
from labctl.plain import Json
from labctl.reporting.times.hours import hours
from labctl.reporting.times.timeline import Stretch, timeline, trials_of
from labctl.requesting import answer_of
from labctl.version import version

PATH = "/v1/traces"
HEADERS = ("OTEL_EXPORTER_OTLP_TRACES_HEADERS", "OTEL_EXPORTER_OTLP_HEADERS")  # the first that is set
HEADER = re.compile(r"([A-Za-z0-9!#$%&'*+.^_`|~-]+)=([\x20-\x7e]*)")  # RFC 9110, 5.1 and 5.5, in ASCII
PATIENCE_S = 30.0
MOST_SAID = 200  # bytes of a refusal
INTERNAL = 1  # SPAN_KIND_INTERNAL
Attributes = Mapping[str, str | int | float]


@dataclass(frozen=True, slots=True)
class _Span:
    """place: its names from the campaign down; its parent has all but the last. Times in ns since 1970."""

    place: tuple[str, ...]
    name: str
    begin_ns: int
    end_ns: int
    attributes: Attributes


def spans_of(record: Record) -> Json:
    """The document (ExportTraceServiceRequest) of a campaign's runs; without spans where nothing was run."""
    campaign, commitment = str(record.state.opened["campaign"]), str(record.state.opened["commitment"])
    made = list(_of_trials(record) if record.unblinding else _of_blocks(record))
    if made:
        begin, end = min(one.begin_ns for one in made), max(one.end_ns for one in made)
        made.insert(0, _Span((), f"campaign {campaign}", begin, end, {"labctl.trials": len(record.scored)}))
    resource = {"service.name": "labctl", "labctl.campaign": campaign, "labctl.commitment": commitment}
    scope = {"name": "labctl.hours", "version": version()}
    spans = [_span(one, commitment) for one in made]
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": _attributes(resource)},
                "scopeSpans": [{"scope": scope, "spans": spans}],
            }
        ]
    }


def document(record: Record) -> bytes:
    """The same as a line of JSON, which a file receiver reads."""
    return json.dumps(spans_of(record), ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def send(data: bytes, url: str, environment: Mapping[str, str] = os.environ) -> None:
    """Give a document to a collector (OTLP over HTTP, port 4318 by custom). Raises InputError for what is no address
    or no header, Unreachable where it does not take it.
    """
    wrong = InputError(f"{url} is no address of a collector; give http://HOST:4318, or a file")
    try:
        parts = urlsplit(url)
    except ValueError:  # a [ without its ]
        raise wrong from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise wrong
    whole = url if parts.path not in ("", "/") else url.rstrip("/") + PATH
    asked = urllib.request.Request(whole, data, {**_headers(environment), "Content-Type": "application/json"})
    try:
        with answer_of(asked, PATIENCE_S) as answer:
            answer.read(1 << 16)
    except (OSError, ValueError, OverflowError, HTTPException) as error:  # HTTPError is an OSError
        said, remedy = in_words(error), "is its OTLP/HTTP receiver on?"
        if isinstance(error, urllib.error.HTTPError):
            said, remedy = _refusal(error), f"does it take JSON, and does {HEADERS[1]} name what it wants?"
        elif isinstance(error, urllib.error.URLError) and isinstance(error.reason, OSError):
            said = error.reason.strerror or in_words(error.reason)
        raise Unreachable(f"the collector at {whole} did not take it: {said}; {remedy}") from error


def _headers(environment: Mapping[str, str]) -> dict[str, str]:
    """What the variables add to a request. A value may be a token, and no message has it."""
    found: dict[str, str] = {}
    name = next((name for name in HEADERS if environment.get(name)), "")
    for number, part in enumerate(environment.get(name, "").split(","), 1):
        if not part.strip():
            continue
        key, equals, value = part.partition("=")
        header = HEADER.fullmatch(f"{key.strip()}{equals}{unquote(value.strip())}")
        if header is None:
            raise InputError(
                f"{name}: its part {number} is no header; give NAME=VALUE, several by commas, "
                "and in a value %2C for a comma and no other letters than those of ASCII"
            )
        found[header[1]] = header[2]
    return found


def _refusal(error: urllib.error.HTTPError) -> str:
    """A status, and in whose words: some receivers take the binary form alone, and say so."""
    try:
        text = " ".join(error.read(MOST_SAID).decode(errors="replace").split())
    except (OSError, HTTPException):
        text = ""
    return f"status {error.code}{f' ({text})' if text else ''}"


def _of_trials(record: Record) -> Iterator[_Span]:
    for line in timeline(record):
        block = f"block {line.block}"
        yield _around((block,), block, line.stretches, {"labctl.block": line.block, "labctl.cost_s": line.seconds})
        for trial, position, stretches in trials_of(line):
            about = {"labctl.trial": trial, "labctl.position": position}
            about |= {"labctl.condition": record.state.trials[trial].condition, "labctl.arm": record.arms[trial]}
            yield _around((block, trial), f"trial {position}", stretches, about)
            for number, one in enumerate(stretches):
                held = {"labctl.hold": one.hold} if one.hold else {}
                begin = wall_ns(one.wall)
                yield _Span((block, trial, str(number)), one.doing, begin, begin + _whole(one.seconds), held)


def _around(place: tuple[str, ...], name: str, stretches: Sequence[Stretch], about: Attributes) -> _Span:
    begin = min(wall_ns(one.wall) for one in stretches)
    end = max(wall_ns(one.wall) + _whole(one.seconds) for one in stretches)
    return _Span(place, name, begin, end, about)


def _of_blocks(record: Record) -> Iterator[_Span]:
    """Finished blocks, each as a whole."""
    for line in hours(record)["blocks"]:
        if not line["of"].isdigit():
            continue
        number, name = int(line["of"]), f"block {line['of']}"
        own = [
            (wall_ns(one.began.wall), _whole(one.seconds))
            for one in record.spent
            if one.trial is not None and record.state.trials[one.trial].block + 1 == number
        ]
        sums = {f"labctl.{doing}_s": seconds for doing, seconds in line["by"].items()}
        about = {"labctl.block": number, "labctl.cost_s": line["total_s"], **sums}
        yield _Span((name,), name, min(own)[0], max(begin + took for begin, took in own), about)


def _whole(seconds: float) -> int:
    return round(seconds * SECOND)


def _span(one: _Span, commitment: str) -> dict[str, Json]:
    made: dict[str, Json] = {
        "traceId": hashlib.sha256(commitment.encode()).hexdigest()[:32],
        "spanId": _id(commitment, one.place),
        "name": one.name,
        "kind": INTERNAL,
        "startTimeUnixNano": str(one.begin_ns),
        "endTimeUnixNano": str(one.end_ns),
        "attributes": _attributes(one.attributes),
    }
    if one.place:
        made["parentSpanId"] = _id(commitment, one.place[:-1])
    return made


def _id(commitment: str, place: Sequence[str]) -> str:
    return hashlib.sha256("/".join((commitment, *place)).encode()).hexdigest()[:16]


def _attributes(found: Attributes) -> list[Json]:
    return [{"key": key, "value": _value(value)} for key, value in found.items()]


def _value(value: str | float) -> dict[str, Json]:
    if isinstance(value, str):
        return {"stringValue": value}
    return {"intValue": str(value)} if isinstance(value, int) else {"doubleValue": value}
