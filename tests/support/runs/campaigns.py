"""Small simulated campaigns for tests, opened through the functions behind the command line."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from labctl.clock import ManualClock, MonotonicClock
from labctl.runtime.campaign_run import run_campaign
from labctl.store.campaign import Campaign, Opened, close_campaign, freeze_campaign, open_campaign, unblind_campaign
from support.machine.processes import end_with_parent
from support.machine.warm import Forked, Warm
from support.runs.recordings import copied

ROOT = Path(__file__).resolve().parents[3]
PROTOCOL = """
[protocol]
name = "{name}"
question = "a test"
fixture = "../fixtures/two_totes.toml"
[trial]
items_staged = {items}
budget_s_per_item = {budget}
arming_s = {arming}
max_voids = {max_voids}
process_lost = "{process_lost}"
camera_lost = "{camera_lost}"
instruction = "Move the items."
[design]
objects = ["towels"]
layouts = ["layout-1"]
blocks_per_condition = {blocks}
[analysis]
tau_s = {budget}
[estimand]
crash = "{crash}"
"""
# For the cell of a campaign whose operator is not to be waited for.
PROMPT = {'operator = "sim_operator"': 'operator = "sim_operator_prompt"'}
# For that of each in real time: nor is what drives the robot to be ready within a time that a busy machine makes long.
READY = {'operator = "sim_operator"': 'operator = "support.runs.ready_operator:build"'}
# For the cell of a campaign whose arms are meant to die: nobody is asked first, and no row of like voids is a hold.
NEVER_HELD = {"ask_arms = true ": "ask_arms = false ", "like_voids = 2 ": "like_voids = 0 "}
HUMAN = {"name": "human", "kind": "human", "controller": "sim_person", "options": {}}


def policy(name: str, **options: Any) -> dict[str, Any]:
    """An arm of the protocol."""
    return {"name": name, "kind": "policy", "controller": "sim_policy", "options": options}


def arms_toml(arms: Sequence[dict[str, Any]]) -> str:
    """The [[arm]] tables."""
    lines = []
    for arm in arms:
        lines += ["[[arm]]", *(f'{key} = "{arm[key]}"' for key in ("name", "kind", "controller")), "[arm.options]"]
        lines += [
            f'{key} = "{value}"' if isinstance(value, str) else f"{key} = {value}"
            for key, value in arm["options"].items()
        ]
    return "\n".join(lines) + "\n"


def cell_toml(*, cameras: bool, durable: bool = False, name: str = "test-cell", base: str = "sim_fr3") -> str:
    """A shipped cell, with or without its cameras."""
    text = (ROOT / "hw_configs" / f"{base}.toml").read_text("utf-8")
    text = text.replace(f'name = "{base.replace("_", "-")}"', f'name = "{name}"')
    text = text.replace("min_free_gb = 1.0", "min_free_gb = 0.01")
    if not durable:
        text = text.replace("durable = true ", "durable = false ")
    if not cameras:
        start, end = text.index("[[camera]]"), text.index("[video]")
        text = text[:start] + text[end:]
    return text


def make_campaign(
    lab: Path,
    arms: Sequence[dict[str, Any]] = (HUMAN, policy("policy-a", skill="swift")),
    *,
    name: str = "trial-run",
    cameras: bool = False,
    durable: bool = False,
    live: bool = False,
    blocks: int = 1,
    items: int = 1,
    budget: float = 4.0,
    arming: float | None = None,
    max_voids: int | None = None,
    process_lost: str = "void",
    camera_lost: str = "mark",
    crash: str = "void",
    entropy: bytes | None = None,
    cell: Mapping[str, str] | None = None,
    protocol: Mapping[str, str] | None = None,
    fixture: str | None = None,
    base: str = "sim_fr3",
    extends: Path | None = None,
    anchors: Sequence[str] = (),
    link: str = "",
    faults: bool = False,
) -> Opened:
    """Open a campaign in the folder `lab`, which becomes a lab. `cell` and `protocol` replace pieces of their files;
    faults: what fails in it is meant to, so that no number of like voids is a hold;
    live: for real time, where its simulated operator is prompt and lets a trial start once what drives the robot is
    ready; no number of like voids is a hold, `max_voids` is 40 unless given, else 3, and `arming` 0.5 s, else 4;
    `fixture` is another text of the two totes; `link` is text of [[link]] tables, `extends` and `anchors` as
    `open_campaign` has them.
    """
    for folder in ("protocols", "fixtures", "cells", "campaigns"):
        (lab / folder).mkdir(exist_ok=True, parents=True)
    (lab / "lab.toml").touch()
    plain = (ROOT / "fixtures/two_totes.toml").read_text("utf-8")
    (lab / "fixtures/two_totes.toml").write_text(plain if fixture is None else fixture, "utf-8")
    text = PROTOCOL.format(
        name=name,
        items=items,
        budget=budget,
        arming=(0.5 if live else 4.0) if arming is None else arming,
        max_voids=max_voids or (40 if live else 3),
        process_lost=process_lost,
        camera_lost=camera_lost,
        crash=crash,
        blocks=blocks,
    )
    for old, new in (protocol or {}).items():
        assert old in text, f"the protocol does not say {old!r}"
        text = text.replace(old, new)
    (lab / "protocols/p.toml").write_text(text + arms_toml(arms) + link, "utf-8")
    cell_text = cell_toml(cameras=cameras, durable=durable, base=base)
    for old, new in (cell or {}).items():
        assert old in cell_text, f"the cell file does not say {old!r}"
        cell_text = cell_text.replace(old, new)
    for old, new in READY.items() if live else ():
        cell_text = cell_text.replace(old, new)
    faults = faults or live
    if faults and "[readiness]" in cell_text:
        cell_text = cell_text.replace("like_voids = 2 ", "like_voids = 0 ")
    elif faults:
        cell_text += "\n[readiness]\nlike_voids = 0\n"
    (lab / "cells/c.toml").write_text(cell_text, "utf-8")
    anchor = MonotonicClock().anchor() if live else ManualClock(0).anchor()
    entropy = entropy or hashlib.sha256(name.encode()).digest()
    protocol_path, cell_path = lab / "protocols/p.toml", lab / "cells/c.toml"
    linked = {"extends": extends, "anchors": anchors}
    return open_campaign(protocol_path, cell_path, lab, entropy=entropy, anchor=anchor, who="tester", **linked)


def recorded_with_cameras(lab: Path) -> Path:
    """A small campaign of a person and a policy that was run to its end, with videos and photos; nobody closed it."""
    folder = make_campaign(lab, [HUMAN, policy("zebra", skill="swift")], items=1, budget=6.0, cameras=True).folder
    run_campaign(folder, lambda line: None, manual=True)
    return folder


def unblind(folder: Path) -> None:
    """Close, freeze (without a review) and unblind a campaign, as one does before its report."""
    close_campaign(folder, who="tester")
    freeze_campaign(folder, who="tester", unreviewed=True)
    unblind_campaign(folder, who="tester")


def unblinded_copy(lab: Path, blinded: str) -> Path:
    """A campaign in a copy of its lab, closed, frozen and unblinded; the original, a path, stays as it is."""
    original = Path(blinded)
    copied(original.parent.parent, lab)
    unblind(lab / "campaigns" / original.name)
    return lab / "campaigns" / original.name


def events_of(folder: Path) -> list[Any]:
    """All events of a campaign."""
    with Campaign.open(folder) as campaign:
        return campaign.events()


def start_run(folder: Path, *, live: bool, log: Path, warm: Warm | None = None) -> subprocess.Popen[bytes] | Forked:
    """`labctl run --headless` as its own process, its output in a file; warm: whose fork it is."""
    words = ["run", str(folder), "--headless", "--real-time" if live else "--simulated-time"]
    if warm is not None:
        return warm.start(words, log)
    words = [str(Path(sys.executable).with_name("labctl")), *words]
    with log.open("ab") as out:
        return subprocess.Popen(
            words, stdout=out, stderr=out, env=with_tests(), start_new_session=True, preexec_fn=end_with_parent
        )


def with_tests() -> dict[str, str]:
    """The environment of a process that finds drivers of these tests by their names."""
    paths = [str(ROOT / "tests"), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
