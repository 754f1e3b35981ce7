"""Where the hours went as OpenTelemetry has it: nothing of a trial before unblinding, each second once after it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from labctl.cli import call
from labctl.core.events import Kind
from labctl.core.record_fold import record_of
from labctl.reporting.times.hours import hours
from labctl.reporting.times.spans import spans_of
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
def collector() -> Iterator[tuple[str, list[tuple[str, str, bytes]]]]:
    taken: list[tuple[str, str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers["Content-Length"]))
            taken.append((self.path, self.headers["Content-Type"], data))
            self.send_response(200 if self.path == "/v1/traces" else 400)
            self.end_headers()
            if self.path != "/v1/traces":  # as the receiver of MLflow 3 says it (mlflow/server/otel_api.py)
                self.wfile.write(
                    b'{"detail":"Invalid Content-Type: application/json.\nExpected: application/x-protobuf"}'
                )

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
    assert "did not take it: status 400 (" in said and "Expected: application/x-protobuf" in said
    assert "does it take JSON" in said and said.count("\n") == 1
    assert call(["status", str(EXAMPLE), "--spans", "ftp://host"]) == 2
    assert call(["status", "--spans", str(file)]) == 2
