"""Run by another interpreter: a site's feed as feedparser reads it, and spans as OpenTelemetry's messages hold them.

Prints JSON: feed (bozo: what is wrong with it, version, entries) and spans (name, parent, seconds).
"""

import base64
import json
import sys
from pathlib import Path

import feedparser
from google.protobuf.json_format import ParseDict
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

feed = feedparser.parse(Path(sys.argv[1]).read_bytes())
entries = [[one.title, one.id, one.updated, one.link] for one in feed.entries]
said = {"bozo": str(feed.get("bozo_exception", "")), "version": feed.version, "entries": entries, "id": feed.feed.id}

document = json.loads(Path(sys.argv[2]).read_text("utf-8"))
for resource in document["resourceSpans"]:
    for scope in resource["scopeSpans"]:
        for span in scope["spans"]:  # OTLP/JSON has ids in hex, where the common encoding of messages has base64
            for key in ("traceId", "spanId", "parentSpanId"):
                if key in span:
                    span[key] = base64.b64encode(bytes.fromhex(span[key])).decode()
request = ParseDict(document, ExportTraceServiceRequest())
spans = [
    [one.name, one.parent_span_id.hex(), (one.end_time_unix_nano - one.start_time_unix_nano) / 1e9]
    for resource in request.resource_spans
    for scope in resource.scope_spans
    for one in scope.spans
]
print(json.dumps({"feed": said, "spans": spans}))
