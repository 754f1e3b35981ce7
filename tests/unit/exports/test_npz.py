"""Recorded states as files that numpy alone reads."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from labctl.clock import Anchor
from labctl.core.record import Episode
from labctl.errors import StateError
from labctl.exports.npz import write_states
from labctl.exports.recordings import Recording
from labctl.store.traces import Chunk, TraceStore
from labctl.streams import StreamSpec

SPEC = StreamSpec("arm/state", ("q.j1", "dq.j1", "gripper"), "rad rad/s m", 100.0)


@pytest.fixture
def store(tmp_path: Path):
    made = TraceStore.create(f"sqlite:///{tmp_path / 'traces.db'}", "c")
    yield made
    made.close()


def recording(store: TraceStore, episode: str, *specs: StreamSpec, columns: list[int]) -> Recording:
    chosen: Any = SimpleNamespace(episode=episode)
    own = Episode(episode, "t", Anchor(0, "", "b"))
    return Recording(chosen, specs, {}, own, (), 0, 0, (0, 0), store, {"arm/state": columns})


def test_an_episode_comes_back_from_its_file_bit_for_bit(store: TraceStore, tmp_path: Path) -> None:
    t_ns, values = np.arange(5, dtype=np.int64) * 10, np.random.default_rng(0).normal(size=(5, 3))
    store.declare("e-1", [SPEC])
    store.write("e-1", [Chunk("arm/state", 0, t_ns, values)])
    write_states(recording(store, "e-1", SPEC, columns=[0, 1, 2]), tmp_path / "e-1.npz")
    with np.load(tmp_path / "e-1.npz") as found:
        assert (found["t_ns"] == t_ns).all() and (found["values"] == values).all()
        assert found["columns"].tolist() == list(SPEC.columns)


def test_hidden_columns_are_not_in_the_file(store: TraceStore, tmp_path: Path) -> None:
    values = np.arange(6.0).reshape(2, 3)
    store.declare("e-1", [SPEC])
    store.write("e-1", [Chunk("arm/state", 0, np.arange(2, dtype=np.int64), values)])
    shown = StreamSpec("arm/state", ("q.j1", "gripper"), SPEC.unit, 100.0)
    write_states(recording(store, "e-1", shown, columns=[0, 2]), tmp_path / "e-1.npz")
    with np.load(tmp_path / "e-1.npz") as found:
        assert found["columns"].tolist() == ["q.j1", "gripper"] and (found["values"] == values[:, [0, 2]]).all()


def test_an_episode_without_states_is_refused_by_name(store: TraceStore, tmp_path: Path) -> None:
    with pytest.raises(StateError, match="e-2 has no recorded arm/state"):
        write_states(recording(store, "e-2", columns=[]), tmp_path / "e-2.npz")
    assert not (tmp_path / "e-2.npz").exists()
