"""Where the hours went as OpenTelemetry has it: nothing of a trial before unblinding, each second once after it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from labctl.cli import call
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.errors import InputError
from labctl.reporting.times.hours import hours
from labctl.reporting.times.spans import send, spans_of
from labctl.store.journal import events_of

EXAMPLE = Path(__file__).resolve().parents[3] / "docs/published/simulated-cell/campaigns/simulated-cell"
ARMS = ("human", "swift", "steady")


def spans(events: Any) -> list[dict[str, Any]]:
    (resource,) = spans_of(record_of(events))["resourceSpans"]  # type: ignore[index,call-overload]
    return resource["scopeSpans"][0]["spans"]  # type: ignore[index,return-value,call-overload]


def seconds(one: dict[str, Any]) -> float:
    return (int(one["endTimeUnixNano"]) - int(one["startTimeUnixNano"])) / 1e9


def test_each_second_of_a_trial_is_a_span_below_its_trial_block_and_campaign() -> None:
    events = events_of(EXAMPLE)
    found = spans(events)
    by_id = {one["spanId"]: one for one in found}
    assert len(by_id) == len(found) and len({one["traceId"] for one in found}) == 1
    (top,) = (one for one in found if "parentSpanId" not in one)
    assert top["name"] == "campaign simulated-cell"
    stretches = [one for one in found if one["name"] in ("reset", "staging", "arming", "running", "scoring", "hold")]
    lines = hours(record_of(events))["blocks"]
    assert sum(map(seconds, stretches)) == pytest.approx(sum(one["total_s"] for one in lines if one["of"].isdigit()))
    for one in found:
        above = by_id.get(one.get("parentSpanId", ""), one)
        assert int(above["startTimeUnixNano"]) <= int(one["startTimeUnixNano"])
        assert int(one["endTimeUnixNano"]) <= int(above["endTimeUnixNano"])
    assert spans(events) == found, "a collector that is told twice has it once"
    assert all(arm in json.dumps(found) for arm in ARMS), "arms are open"


def test_while_arms_are_sealed_finished_blocks_are_told_as_wholes_and_no_arm_at_all() -> None:
    events = [one for one in events_of(EXAMPLE) if one.kind not in (Kind.CAMPAIGN_FROZEN, Kind.CAMPAIGN_UNBLINDED)]
    found = spans(events)
    assert [one["name"] for one in found] == ["campaign simulated-cell", *(f"block {n}" for n in range(1, 5))]
    text = json.dumps(found)
    assert not [arm for arm in ARMS if arm in text] and 'labctl.trial"' not in text and "t-" not in text
    unfinished = events[: next(n for n, one in enumerate(events) if one.kind == Kind.OUTCOME_RECORDED) + 1]
    assert spans(unfinished) == [], "a block under way is not told"


@pytest.fixture
def headers() -> list[Mapping[str, str]]:
    return []


@pytest.fixture
def collector(headers: list[Mapping[str, str]]) -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    taken: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            headers.append(self.headers)
            taken.append((self.path, self.headers["Content-Type"], data))
            self.send_response(200 if self.path == "/v1/traces" else 400)
            self.end_headers()
            if self.path != "/v1/traces":  # as MLflow 3.17.2 says what it wants
                self.wfile.write(b'{"detail":[{"type":"missing","loc":["header",\n"x-mlflow-experiment-id"]}]}')

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", taken
    server.shutdown()
    server.server_close()


def test_a_collector_is_given_what_a_file_has_and_one_that_refuses_is_named(
    collector: tuple[str, list[tuple[str, str, bytes]]], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    url, taken = collector
    file = tmp_path / "spans.json"
    assert call(["status", str(EXAMPLE), "--spans", str(file)]) == 0
    assert call(["status", str(EXAMPLE), "--spans", url]) == 0
    assert taken == [("/v1/traces", "application/json", file.read_bytes())]
    assert f"sent to {url}" in capsys.readouterr().out
    assert call(["status", str(EXAMPLE), "--spans", f"{url}/elsewhere"]) == 69
    said = capsys.readouterr().err
    assert "did not take it: status 400 (" in said and '"header", "x-mlflow-experiment-id"' in said
    assert "does it take JSON, and does OTEL_EXPORTER_OTLP_HEADERS name what it wants?" in said
    assert said.count("\n") == 1
    assert call(["status", str(EXAMPLE), "--spans", "http://127.0.0.1:9"]) == 69
    assert "did not take it: Connection refused; is its OTLP/HTTP receiver on?\n" in capsys.readouterr().err
    assert call(["status", str(EXAMPLE), "--spans", "ftp://host"]) == 2
    assert call(["status", "--spans", str(file)]) == 2


def test_a_collector_is_told_the_headers_that_every_exporter_reads(
    collector: tuple[str, list[tuple[str, str, bytes]]], headers: list[Mapping[str, str]]
) -> None:
    both = {"OTEL_EXPORTER_OTLP_HEADERS": "x-mlflow-experiment-id=0, authorization = Basic%20a%2Cb==,"}
    send(b"{}", collector[0], both)
    assert (headers[-1]["x-mlflow-experiment-id"], headers[-1]["authorization"]) == ("0", "Basic a,b==")
    send(b"{}", collector[0], both | {"OTEL_EXPORTER_OTLP_TRACES_HEADERS": "content-type=text/plain,a=1"})
    assert headers[-1]["a"] == "1" and "authorization" not in headers[-1], "those of traces stand instead of the others"
    assert headers[-1].get_all("content-type") == ["application/json"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("wrong", ["secret", "a b=secret", "=secret", "a=secret%0d%0aHost: x", "a=secret%C3%A4"])
def test_what_is_no_header_is_refused_and_not_repeated(wrong: str) -> None:
    with pytest.raises(InputError, match=r"OTEL_EXPORTER_OTLP_HEADERS: its part 2 is no header") as found:
        send(b"{}", "http://127.0.0.1:9", {"OTEL_EXPORTER_OTLP_HEADERS": f"x=1,{wrong}"})
    assert "secret" not in str(found.value) and "\n" not in str(found.value)


@pytest.mark.parametrize("url", ["http://[::1", "http://a]b:4318", "ftp://collector"])
def test_what_is_no_address_of_a_collector_is_refused_in_a_line(url: str) -> None:
    with pytest.raises(InputError, match="is no address of a collector"):
        send(b"{}", url, {})
