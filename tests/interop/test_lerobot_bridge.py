"""The LeRobot bridge in a real LeRobot: a small random ACT, saved as a checkpoint, answers with its own actions.

Set LEROBOT to the Python of an environment with lerobot 0.4 or later, msgpack and websockets, in which
`import lerobot.policies.act.modeling_act` works.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.policies.cards import CAMERA, card
from support.policies.observations import GIVEN, Q

from labctl.devices import Observation, Picture, load
from labctl.errors import DeviceRefused

pytestmark = [pytest.mark.interop, pytest.mark.limit(600)]
IMAGE = np.random.default_rng(4).integers(0, 255, (48, 64, 3), dtype=np.uint8)
SEEN = Observation(
    5,
    {"q": Q, "dq": np.zeros(7), "tcp": np.array([0.4, 0, 0.3, 1, 0, 0, 0.0]), "gripper": np.array([0.04])},
    "Move.",
    {"wrist": (Picture(IMAGE, 5),)},
)
# A checkpoint whose normalisation matters: without it the answers would be far off.
MAKE = """
import sys, torch
from lerobot.configs.types import FeatureType, PolicyFeature
from lerobot.policies.act.configuration_act import ACTConfig
from lerobot.policies.act.modeling_act import ACTPolicy
from lerobot.policies.factory import make_pre_post_processors
torch.manual_seed(0)
reads = {"observation.state": PolicyFeature(FeatureType.STATE, (8,)),
         "observation.images.wrist": PolicyFeature(FeatureType.VISUAL, (3, 48, 64))}
config = ACTConfig(input_features=reads, output_features={"action": PolicyFeature(FeatureType.ACTION, (8,))},
    chunk_size=12, n_action_steps=12, dim_model=32, n_heads=2, dim_feedforward=64, n_encoder_layers=1,
    n_decoder_layers=1, n_vae_encoder_layers=1, pretrained_backbone_weights=None, device="cpu", latent_dim=8)
stats = {"observation.state": {"mean": torch.zeros(8), "std": torch.full((8,), 2.0)},
         "action": {"mean": torch.arange(8.0) / 10, "std": torch.full((8,), 0.1)},
         "observation.images.wrist": {"mean": torch.full((3, 1, 1), 0.5), "std": torch.full((3, 1, 1), 0.25)}}
before, after = make_pre_post_processors(config, dataset_stats=stats)
for part in (ACTPolicy(config), before, after):
    part.save_pretrained(sys.argv[1])
"""
# The same question as LeRobot's own evaluation asks it (lerobot.utils.control_utils.predict_action), action by action.
ASK = """
import json, sys, numpy as np, torch
from lerobot.configs.policies import PreTrainedConfig
from lerobot.policies.factory import get_policy_class, make_pre_post_processors
path, given = sys.argv[1], json.load(sys.stdin)
config = PreTrainedConfig.from_pretrained(path)
policy = get_policy_class(config.type).from_pretrained(path, config=config).eval()
before, after = make_pre_post_processors(policy_cfg=config, pretrained_path=path)
image = torch.tensor(given["image"], dtype=torch.uint8).type(torch.float32) / 255
batch = {"observation.state": torch.tensor(given["state"], dtype=torch.float32)[None],
         "observation.images.wrist": image.permute(2, 0, 1)[None], "task": "Move.", "robot_type": ""}
policy.reset()
with torch.inference_mode():
    actions = [after(policy.select_action(before(batch)))[0].tolist() for _ in range(12)]
print(json.dumps(actions))
"""


def lerobot() -> str:
    python = os.environ.get("LEROBOT")
    assert python, "set LEROBOT to the Python of an environment with lerobot"
    return python


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("act") / "pretrained_model"
    done = subprocess.run([lerobot(), "-c", MAKE, str(path)], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return path


@pytest.fixture(scope="module")
def uri(checkpoint: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where a copy of the bridge serves the checkpoint."""
    script = tmp_path_factory.mktemp("bridge") / "serve_lerobot.py"
    subprocess.run([sys.executable, "-m", "labctl.drivers.bridges", "lerobot", str(script)], check=True)
    words = [lerobot(), str(script), str(checkpoint), "--port", "0", "--device", "cpu"]
    server = subprocess.Popen(words, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    said = ""
    for line in server.stderr:
        said += line
        if line.startswith("serving act at "):
            break
    else:
        pytest.fail(said)
    yield said.splitlines()[-1].split()[3].rstrip(";")
    server.terminate()
    server.wait(20)
    server.stderr.close()


def client(uri: str, state: tuple[str, ...] = ("joint_position", "gripper")) -> Any:
    made = card(inputs=CAMERA.format(key="observation.images.wrist", camera="wrist"), ready=60.0, give_up=30.0)
    made["input"][0] |= {"key": "observation.state", "state": list(state)}
    made["gripper"] |= {"state": "width_m", "action": "width_m", "binarise_at": None}
    return load("policy_openpi", {"card": made, "endpoint": uri}, **GIVEN)


def test_our_client_gets_the_actions_that_lerobot_itself_would_take(uri: str, checkpoint: Path) -> None:
    policy = client(uri)
    policy.load()
    policy.warm(SEEN)
    policy.reset(1)
    answer = policy._link.ask(
        {"observation.state": np.append(Q, 0.04), "observation.images.wrist": IMAGE, "task": "Move."}, 30.0
    )
    chunk = policy.infer(SEEN)
    policy.close()
    given = json.dumps({"image": IMAGE.tolist(), "state": [*Q.tolist(), 0.04]})
    done = subprocess.run(
        [lerobot(), "-c", ASK, str(checkpoint)], input=given, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    theirs = np.array(json.loads(done.stdout.splitlines()[-1]))
    assert theirs.shape == (12, 8) and np.ptp(theirs) > 0.1, "answers that could be told apart"
    assert np.allclose(answer["actions"], theirs, atol=1e-5)
    assert np.allclose(chunk.values, theirs[:, :7], atol=1e-5), "our card read the same state and the same picture"
    assert chunk.server_s > 0


def test_a_question_that_does_not_fit_comes_back_in_words(uri: str) -> None:
    policy = client(uri, state=("joint_position",))
    policy.load()
    with pytest.raises(DeviceRefused, match="the policy server failed"):
        policy.infer(SEEN)
    policy.close()
