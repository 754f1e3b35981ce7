"""Reads a dataset with LeRobot's own loader, in its own environment, and prints what it saw as JSON.

Run by tests/interop/test_lerobot.py with the interpreter of that environment: lerobot_reader.py DATASET TESTS_FOLDER
"""

import json
import sys
from pathlib import Path


def without_nms() -> None:
    """torchvision from PyPI is linked against CUDA; on a CPU build of torch its import asks for two operators."""
    import torch

    operators = torch.library.Library("torchvision", "DEF")
    operators.define("nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    operators.define("qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    without_nms.kept = operators  # they vanish with it


def main(root: Path) -> None:
    without_nms()
    import torch
    from lerobot.datasets.lerobot_dataset import LeRobotDataset
    from lerobot.datasets.utils import dataset_to_policy_features
    from support.cameras.barcode import (
        read,  # of the picture's upper left quarter, as support.cameras.coded_camera paints it
    )

    given = {"repo_id": "labctl/export", "root": root, "video_backend": "torchcodec"}
    dataset = LeRobotDataset(**given)
    frames = []
    for index in range(len(dataset)):
        item = dataset[index]
        marks = {}
        for key in dataset.meta.video_keys:
            image = (item[key].permute(1, 2, 0) * 255).round().to(torch.uint8).numpy()
            mark = read(image[: image.shape[0] // 2, : image.shape[1] // 2])
            marks[key] = None if mark is None else [mark.number, mark.t_ns]
        single = {k: v for k, v in item.items() if k.startswith(("labctl", "observation.state", "action"))}
        frames.append(
            {
                "marks": marks,
                "task": item["task"],
                "episode": int(item["episode_index"]),
                "timestamp": float(item["timestamp"]),
                **{key: torch.as_tensor(value).double().flatten().tolist() for key, value in single.items()},
            }
        )
    window = {"action": [0.0, 1 / dataset.fps], "observation.state": [-1 / dataset.fps, 0.0]}
    loader = torch.utils.data.DataLoader(LeRobotDataset(**given, delta_timestamps=window), batch_size=4, shuffle=True)
    batch = next(iter(loader))
    alone = LeRobotDataset(**given, episodes=[1])
    rows = dataset.meta.episodes
    rows = list(rows.values()) if isinstance(rows, dict) else [rows[i] for i in range(len(rows))]
    print(
        json.dumps(
            {
                "version": str(dataset.meta.info["codebase_version"]),
                "frames": frames,
                "episodes": rows,
                "policy_features": sorted(dataset_to_policy_features(dataset.features)),
                "batch": {key: list(value.shape) for key, value in batch.items() if hasattr(value, "shape")},
                "alone": len(alone),
                "mean": dataset.meta.stats["observation.state"]["mean"].tolist(),
                "image_mean": dataset.meta.stats["observation.images.wrist"]["mean"].flatten().tolist(),
            }
        ).replace("NaN", "null")
    )


if __name__ == "__main__":
    sys.path.insert(0, sys.argv[2])
    main(Path(sys.argv[1]))
