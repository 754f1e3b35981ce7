"""The Parquet export holds what the trace store and the journal hold: every sample, at its measured time."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from support.runs.coded_campaign import PERSON, ZEBRA

from labctl.cli import call
from labctl.clock import wall_ns
from labctl.core.events import Kind
from labctl.store.campaign import Campaign
from labctl.store.database_backend import sqlite_url
from labctl.store.traces import TraceStore


def export(folder: Path, out: Path, *words: str) -> int:
    return call(["export", str(folder), "--to", "parquet", "--out", str(out), *words])


@pytest.fixture(scope="module")
def exported(unblinded: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("parquet") / "out"
    assert export(unblinded, out) == 0
    return out


def test_every_sample_of_every_stream_is_there_at_its_time(unblinded: Path, exported: Path) -> None:
    store = TraceStore.open(sqlite_url(unblinded / "traces.db"), unblinded.name, readonly=True)
    streams = 0
    for episode in store.episodes():
        for spec in store.streams(episode):
            t_ns, values = store.read(episode, spec.name)
            path = exported / "streams" / f"{spec.name.replace('/', '_')}.parquet"
            table = pq.read_table(path, filters=[("episode", "==", episode)])
            assert (table["t_ns"].to_numpy() == t_ns).all()
            for i, column in enumerate(spec.columns):
                np.testing.assert_array_equal(table[column].to_numpy(), values[:, i])
            streams += 1
    assert streams == 6 * 7, "six episodes of arm/state, arm/action, arm/lease, policy, tracker and two cameras"
    store.close()


def test_wall_time_is_the_anchor_of_the_episodes_start_and_go_is_zero(unblinded: Path, exported: Path) -> None:
    with Campaign.open(unblinded) as campaign:
        started = [event for event in campaign.events() if event.kind == Kind.EPISODE_STARTED]
        go = {event.episode: event.body["go_ns"] for event in campaign.events() if event.kind == Kind.GO}
    for event in started:
        table = pq.read_table(exported / "streams" / "arm_state.parquet", filters=[("episode", "==", event.episode)])
        t_ns = table["t_ns"].to_numpy()
        wall = table["wall"].cast("int64").to_numpy()
        assert (wall - t_ns == wall_ns(event.wall) - event.at_ns).all()
        np.testing.assert_allclose(table["since_go_s"].to_numpy(), (t_ns - go[event.episode]) / 1e9, atol=1e-12)


def test_fields_say_their_unit_and_files_where_they_come_from(unblinded: Path, exported: Path) -> None:
    schema = pq.read_schema(exported / "streams" / "arm_state.parquet")
    units = {field.name: field.metadata[b"unit"].decode() for field in schema if field.metadata}
    assert units["q.fr3_joint1"] == "rad" and units["tcp.x"] == "m" and units["t_ns"] == "ns"
    told = json.loads(schema.metadata[b"labctl"])
    whole = json.loads((exported / "labctl.json").read_text())
    assert whole == {**told, "format": "parquet", "contents": whole["contents"]}
    with Campaign.open(unblinded) as campaign:
        seq, head = campaign.journal.head()
    assert told["head"] == f"{seq} {head}" and told["campaign"] == unblinded.name
    assert json.loads(schema.metadata[b"labctl.stream"])["rate_hz"] == 100.0


def test_episodes_events_and_operations_are_tables_beside(unblinded: Path, exported: Path) -> None:
    episodes = pq.read_table(exported / "episodes.parquet").to_pylist()
    assert [row["outcome"] for row in episodes].count("success") == 2 and len(episodes) == 6
    assert {row["arm"] for row in episodes if row["outcome"] == "success"} == {PERSON}
    with Campaign.open(unblinded) as campaign:
        events = [event for event in campaign.events() if event.episode]
    rows = pq.read_table(exported / "events.parquet").to_pylist()
    assert [(row["episode"], row["seq"]) for row in rows] == [(event.episode, event.seq) for event in events]
    assert [json.loads(row["body"]) for row in rows] == [event.body for event in events]
    assert pq.read_table(exported / "operations.parquet").num_rows == 10


def test_one_row_group_an_episode_so_that_one_can_be_read_alone(exported: Path) -> None:
    file = pq.ParquetFile(exported / "streams" / "arm_state.parquet")
    assert file.metadata.num_row_groups == 6


def test_failures_alone_can_be_had(unblinded: Path, tmp_path: Path) -> None:
    words = ["--where", "outcome=failure", "--where", "block=1", "--where", "end_reason=budget"]
    assert export(unblinded, tmp_path / "out", *words) == 0
    rows = pq.read_table(tmp_path / "out" / "episodes.parquet").to_pylist()
    assert {(row["block"], row["outcome"], row["end_reason"]) for row in rows} == {(1, "failure", "budget")}
    assert len(rows) == 2
    streamed = pq.read_table(tmp_path / "out" / "streams" / "arm_state.parquet")["episode"].unique().to_pylist()
    assert streamed == [row["episode"] for row in rows]


def test_a_taken_place_needs_force_and_says_so(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    assert export(unblinded, out, "--where", "outcome=success") == 0
    assert export(unblinded, out) == 2
    assert "--force" in capsys.readouterr().err
    assert pq.read_table(out / "episodes.parquet").num_rows == 2
    assert export(unblinded, out, "--force", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert told["episodes"] == 6 and told["rows_of"]["episodes"] == 6 and not told["masked"]
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--to", "xlsx"], 2, "unknown format 'xlsx'"),
        (["--to", "parquet", "--where", "colour=red"], 2, "give COLUMN=VALUE"),
        (["--to", "parquet", "--where", "block=7"], 2, "no episode of zebra-or-quagga has block=7"),
        (["--to", "parquet", "--for-arm", "okapi"], 2, f"its arms are: {PERSON}, quagga-policy, {ZEBRA}"),
        (
            ["--to", "parquet", "--for-arm", ZEBRA, "--where", "outcome=success"],
            2,
            f"no scored episode of arm {ZEBRA} has",
        ),
    ],
)
def test_what_cannot_be_is_one_line_and_leaves_nothing(
    unblinded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], words: list[str], code: int, said: str
) -> None:
    assert call(["export", str(unblinded), "--out", str(tmp_path / "out"), *words]) == code
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
    assert list(tmp_path.iterdir()) == []
