"""Recorded states as files that numpy alone reads."""

from pathlib import Path

import numpy as np
import pytest

from labctl.devices import StreamSpec
from labctl.errors import StateError
from labctl.export_traces import write_states
from labctl.traces import Chunk, TraceStore

SPEC = StreamSpec("arm/state", ("q.j1", "gripper"), "rad m", 100.0)


@pytest.fixture
def store(tmp_path: Path):
    made = TraceStore.create(f"sqlite:///{tmp_path / 'traces.db'}", "c")
    yield made
    made.close()


def test_an_episode_comes_back_from_its_file_bit_for_bit(store: TraceStore, tmp_path: Path) -> None:
    t_ns, values = np.arange(5, dtype=np.int64) * 10, np.random.default_rng(0).normal(size=(5, 2))
    store.declare("e-1", [SPEC])
    store.write("e-1", [Chunk("arm/state", 0, t_ns, values)])
    (path,) = write_states(store, ["e-1"], tmp_path / "out")
    with np.load(path) as found:
        assert (found["t_ns"] == t_ns).all() and (found["values"] == values).all()
        assert found["columns"].tolist() == list(SPEC.columns)


def test_an_episode_without_states_is_refused_by_name(store: TraceStore, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="e-2 has no recorded arm/state"):
        write_states(store, ["e-2"], tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []
