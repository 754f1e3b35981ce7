"""LeRobot's own loader reads our datasets frame by frame: the right picture at every index, values as they were put.

Set LEROBOT_PYTHON (v3.0: lerobot 0.4.4) and LEROBOT_V21_PYTHON (v2.1: lerobot 0.3.3 with datasets 3.6.0) to
interpreters of environments of their own; a CPU build of torch and a system FFmpeg do:

    python -m venv v && v/bin/pip install torch==2.13.0
    v/bin/pip install --no-deps lerobot==0.4.4 torchvision==0.28.0 torchcodec==0.13.0
    v/bin/pip install 'datasets>=4,<5' 'av>=15,<16' accelerate 'packaging<26' pillow
    export LEROBOT_PYTHON=v/bin/python
"""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.runs.campaigns import unblind
from support.runs.coded_campaign import PERSON, run_coded

from labctl.cli import call
from labctl.store.campaign import Campaign

pytestmark = [pytest.mark.interop, pytest.mark.limit(1200)]
TESTS = Path(__file__).parents[1]
READER = Path(__file__).with_name("lerobot_reader.py")
PEERS = {"lerobot-v3": ("LEROBOT_PYTHON", "v3.0"), "lerobot-v2.1": ("LEROBOT_V21_PYTHON", "v2.1")}


@pytest.fixture(scope="module")
def campaign(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = run_coded(tmp_path_factory.mktemp("lerobot"))
    unblind(folder)
    return folder


def load(form: str, dataset: Path) -> dict[str, Any]:
    """What the loader of this version sees of a dataset."""
    variable, _ = PEERS[form]
    python = os.environ.get(variable)
    assert python, f"set {variable} to the interpreter of an environment with lerobot; see this file's beginning"
    offline = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(dataset.parent / "hf"), "PYTHONPATH": ""}
    command = [python, str(READER), str(dataset), str(TESTS)]
    done = subprocess.run(command, capture_output=True, text=True, env=offline)
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("form", PEERS)
def test_the_real_loader_shows_the_picture_taken_nearest_to_each_frame(
    campaign: Path, tmp_path: Path, form: str
) -> None:
    out = tmp_path / "dataset"
    words = ["export", str(campaign), "--to", form, "--out", str(out), "--where", "outcome=success"]
    assert call(words) == 0
    with Campaign.open(campaign) as opened:
        go_ns = {trial.episode: trial.go_ns for trial in opened.state.trials.values()}
    told = json.loads((out / "labctl.json").read_text())["contents"]
    seen = load(form, out)
    assert seen["version"] == PEERS[form][1]
    assert len(seen["frames"]) == told["frames"] > 300
    ids = [row["labctl.episode"] for row in seen["episodes"]]
    looked = 0
    for frame in seen["frames"]:
        go = go_ns[ids[frame["episode"]]]
        at_ns = go + frame["labctl.since_go"][0] * 1e9
        for taken_s, (camera, mark) in zip(frame["labctl.capture_time"], frame["marks"].items(), strict=True):
            assert mark is not None, f"{camera} shows no mark"
            # The loader hands numbers on as float32, which at a minute is exact to 4 us.
            assert abs((mark[1] - go) / 1e9 - taken_s) < 5e-6, f"{camera} shows a picture of another time"
            assert abs(mark[1] - at_ns) / 1e6 <= told["max_error_ms"] + 0.01
            looked += 1
    assert looked == 2 * told["frames"]


@pytest.mark.parametrize("form", PEERS)
def test_values_windows_and_episodes_come_out_as_they_were_put_in(campaign: Path, tmp_path: Path, form: str) -> None:
    out = tmp_path / "dataset"
    words = ["export", str(campaign), "--to", form, "--out", str(out), "--for-arm", PERSON]
    assert call(words) == 0
    seen = load(form, out)
    assert {row["labctl.arm"] for row in seen["episodes"]} == {PERSON}
    assert [row["labctl.success"] for row in seen["episodes"]] == [True, True]
    assert {frame["task"] for frame in seen["frames"]} == {"Move the items."}
    state = np.array([frame["observation.state"] for frame in seen["frames"]])
    action = np.array([frame["action"] for frame in seen["frames"]])
    np.testing.assert_allclose(seen["mean"], state.mean(axis=0), atol=1e-4)
    episode = np.array([frame["episode"] for frame in seen["frames"]])
    within = episode[1:] == episode[:-1]
    assert np.abs(action[:-1] - state[1:])[within].max() < 0.05, "an action leads to the next state"
    assert seen["batch"]["action"] == [4, 2, 8] and seen["batch"]["observation.state"] == [4, 2, 8]
    assert seen["batch"]["observation.images.wrist"] == [4, 3, 192, 256]
    assert seen["alone"] == seen["episodes"][1]["length"]
    # What a policy is offered to learn from: nothing of ours is taken for an observation or an action.
    images = [f"observation.images.{camera}" for camera in ("over_shoulder", "wrist")]
    assert seen["policy_features"] == ["action", *images, "observation.state"]
    assert all(0.2 < level < 0.8 for level in seen["image_mean"])
