"""A protocol of four tasks, one of each measure, and the campaign of it in the simulated cell.

Conditions: a base with three that perturb it (language, clutter, stress) and one of each other task.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from labctl.clock import ManualClock, MonotonicClock
from labctl.runtime import review_writer
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Opened, open_campaign
from labctl.store.pictures import encode_png
from support.policies.planner_stand_in import MODEL
from support.runs.campaigns import HUMAN, ROOT, arms_toml, cell_toml, policy, unblind
from support.runs.recordings import copied

ARMS = (policy("zebra", skill="swift"), policy("otter", skill="swift"))
TASKS = """
[protocol]
name = "tasks"
question = "a test"
fixture = "../fixtures/two_totes.toml"
[trial]
arming_s = 4.0
early_end = "forbidden"
failure_tags = ["dropped"]
[design]
blocks_per_condition = 1
[analysis]
tau_s = 16.0

[[task]]
name = "over"
instruction = "Put the towel into the empty tote."
objects = ["towels", "scissors"]
layout = "layout-1"
measure = "success"
budget_s = 16.0
failure_tags = ["wrong object"]

[[task]]
name = "in order"
instruction = "Put both over."
objects = ["towels"]
layout = "layout-1"
measure = "stages"
items_staged = 2
budget_s = 30.0
[[task.stages]]
name = "first over"
points = 1.0
definition = "one towel lies in the target tote, out of the fingers"
[[task.stages]]
name = "second over"
points = 3.0
definition = "both lie there"

[[task]]
name = "neatly"
instruction = "Put both over, folded."
objects = ["towels"]
layout = "layout-1"
measure = "score"
items_staged = 2
budget_s = 30.0
[[task.rubric]]
score = 0
text = "nothing moved"
[[task.rubric]]
score = 0.5
text = "one over, or both crumpled"
[[task.rubric]]
score = 1
text = "both over and folded"

[[task]]
name = "many"
instruction = "Move the items."
objects = ["towels"]
layout = "layout-1"
items_staged = 2
budget_s = 30.0

[[condition]]
name = "over-base"
task = "over"
object = "towels"
tags = ["bin"]

[[condition]]
name = "over-lang"
task = "over"
object = "towels"
base = "over-base"
instruction = "The cloth belongs into the other tote."
axes = ["S-LANG"]
split = "test"

[[condition]]
name = "over-noun"
task = "over"
object = "scissors"
base = "over-base"
axes = ["VSB-NOBJ"]
difficulty = "hard"

[[condition]]
name = "over-dim"
task = "over"
object = "towels"
base = "over-base"
family = "light"
stress = "v1"

[[condition]]
name = "stages"
task = "in order"

[[condition]]
name = "score"
task = "neatly"

[[condition]]
name = "items"
task = "many"

[pools.test]
instructions = ["The cloth belongs into the other tote."]
"""


def open_tasks(
    lab: Path,
    arms: Sequence[dict[str, Any]] = ARMS,
    *,
    entropy: bytes | None = None,
    protocol: Mapping[str, str] | None = None,
    name: str | None = None,
    conditions: Sequence[str] = (),
    cell: Mapping[str, str] | None = None,
    durable: bool = False,
    live: bool = False,
    cameras: bool = False,
    files: Mapping[str, bytes] | None = None,
) -> Opened:
    """Open the campaign in a lab of its own; `protocol` and `cell` replace pieces of the texts, `conditions` are those
    kept; live: it is run in real time; cameras: the cell has its two; files: by name, put beside the protocol.
    """
    for folder in ("protocols", "fixtures", "cells", "campaigns"):
        (lab / folder).mkdir(exist_ok=True, parents=True)
    (lab / "lab.toml").touch()
    for file, content in (files or {}).items():
        (lab / "protocols" / file).write_bytes(content)
    (lab / "fixtures/two_totes.toml").write_text((ROOT / "fixtures/two_totes.toml").read_text("utf-8"), "utf-8")
    text = tasks_text(protocol)
    for table in ("[[condition]]" + part for part in text.split("[pools")[0].split("[[condition]]")[1:]):
        if conditions and table.split('"')[1] not in conditions:
            text = text.replace(table, "")
    (lab / "protocols/p.toml").write_text(text + arms_toml(arms), "utf-8")
    cell_text = cell_toml(cameras=cameras, durable=durable)
    for old, new in (cell or {}).items():
        assert old in cell_text, f"the cell file does not say {old!r}"
        cell_text = cell_text.replace(old, new)
    (lab / "cells/c.toml").write_text(cell_text, "utf-8")
    return open_campaign(
        lab / "protocols/p.toml",
        lab / "cells/c.toml",
        lab,
        entropy=entropy or hashlib.sha256(b"tasks").digest(),
        anchor=MonotonicClock().anchor() if live else ManualClock(0).anchor(),
        who="tester",
        name=name,
    )


def run_filmed_tasks(lab: Path) -> Path:
    """Six small filmed episodes of a person and zebra: a block each of success, of it in other words and of stages. A
    model is named as witness, at an address where nobody listens.
    """
    witness = f'[witness]\nmodel = "{MODEL}"\nurl = "http://127.0.0.1:9/v1"\npictures = 3\nkey_env = "A_KEY"\n'
    opened = open_tasks(
        lab,
        [HUMAN, ARMS[0]],
        conditions=["over-base", "over-lang", "stages"],
        protocol={"[analysis]\n": witness + "[analysis]\n"},
        cameras=True,
        cell={"width = 320": "width = 96", "height = 240": "height = 72", "rate_hz = 10.0": "rate_hz = 4.0"},
    )
    run_campaign(opened.folder, lambda line: None, manual=True)
    review_writer.register(opened.folder, "tim")
    return opened.folder


def unblinded_tasks(lab: Path, blinded: str) -> Path:
    """A copy of those, closed, frozen and unblinded."""
    made = Path(blinded)
    folder = copied(made.parents[1], lab) / "campaigns" / made.name
    unblind(folder)
    return folder


PICTURED = {'text = "one over, or both crumpled"\n': 'text = "one over, or both crumpled"\npicture = "half.png"\n'}
"""Changes of the protocol by which an anchor of `neatly` has a picture, half.png."""


def striped(width: int = 80, height: int = 60) -> bytes:
    """A picture of coloured stripes, as PNG."""
    image = np.zeros((height, width, 3), np.uint8)
    image[:, ::2] = (200, 40, 40)
    image[:, 1::2] = (40, 40, 200)
    return encode_png(np.repeat(image[:, : width // 8], 8, axis=1))


def tasks_text(changes: Mapping[str, str] | None = None) -> str:
    """The protocol without its arms, with pieces replaced."""
    text = TASKS
    for old, new in (changes or {}).items():
        assert old in text, f"the protocol does not say {old!r}"
        text = text.replace(old, new)
    return text
