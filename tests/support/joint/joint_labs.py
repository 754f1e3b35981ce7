"""Joint campaigns for tests: a seal host's lab, a lab for each cell, all with the same files."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from labctl.clock import MonotonicClock
from labctl.joint.asking import SealLink
from labctl.joint.cell import join, opening_of, tell
from labctl.joint.door import Door
from labctl.joint.making import Made, make_joint
from labctl.store.campaign import close_campaign, freeze_campaign, unblind_campaign
from support.machine.postgres import free_port
from support.runs.campaigns import HUMAN, NEVER_HELD, PROMPT, PROTOCOL, ROOT, arms_toml, cell_toml, policy

SECRET = bytes(range(32))
PATIENCE_S = 120.0


@dataclass(frozen=True)
class Labs:
    """The seal host's lab and each cell's, by name; `made` is the joint campaign "two"."""

    host: Path
    cells: dict[str, Path]
    made: Made

    def invitation(self, cell: str) -> Path:
        return self.made.folder / f"{cell}.invitation.toml"

    def join(self, cell: str, part: int = 1) -> Path:
        """The campaign folder of a cell's part."""
        lab, now = self.cells[cell], MonotonicClock().anchor()
        files = (self.invitation(cell), lab / "protocols/two.toml", lab / "cells/cell.toml", lab)
        return join(*files, entropy=os.urandom(32), anchor=now, who="lee", part=part)[0].folder


def make_labs(
    root: Path,
    *,
    cells: Sequence[str] = ("a", "b"),
    blocks: int = 4,
    address: str = "",
    durable: bool = False,
    cameras: bool = False,
    arming: float = 4.0,
    changed: Mapping[str, str] = MappingProxyType({}),
    further: Mapping[str, str] = MappingProxyType({}),
) -> Labs:
    """The labs, and the joint campaign sealed from SECRET. address: where cells find its host [a free port]; changed:
    what stands otherwise in each cell's file; further: what is put behind the protocol ("two.toml"), and files beside
    it, in each lab.
    """
    host, labs = _lab(root / "host", "host", cells, blocks, arming, changed, durable=durable, cameras=cameras), {}
    for cell in cells:
        labs[cell] = _lab(root / cell, f"cell-{cell}", cells, blocks, arming, changed, durable=durable, cameras=cameras)
    for lab in (host, *labs.values()):
        for file, text in further.items():
            with (lab / "protocols" / file).open("a", encoding="utf-8") as there:
                there.write(text)
    where = address or f"tcp://127.0.0.1:{free_port()}"
    made = make_joint(
        host / "protocols/two.toml", host, address=where, entropy=SECRET, anchor=MonotonicClock().anchor(), who="lee"
    )
    return Labs(host, labs, made)


def _lab(
    lab: Path,
    cell: str,
    cells: Sequence[str],
    blocks: int,
    arming: float,
    changed: Mapping[str, str],
    *,
    durable: bool,
    cameras: bool,
) -> Path:
    for folder in ("protocols", "fixtures", "cells", "campaigns"):
        (lab / folder).mkdir(parents=True)
    (lab / "lab.toml").touch()
    (lab / "fixtures/two_totes.toml").write_text((ROOT / "fixtures/two_totes.toml").read_text("utf-8"), "utf-8")
    rules = {"arming": arming, "max_voids": 9, "process_lost": "void", "camera_lost": "mark", "crash": "void"}
    text = PROTOCOL.format(name="two", items=1, budget=4.0, blocks=blocks, **rules)
    text += arms_toml((HUMAN, policy("policy-a", skill="swift")))
    named = ", ".join(f'"{name}"' for name in cells)
    (lab / "protocols/two.toml").write_text(f"{text}\n[cells]\nnames = [{named}]\n", "utf-8")
    text = cell_toml(cameras=cameras, durable=durable, name=cell)
    for old, new in {**PROMPT, **NEVER_HELD, **changed}.items():
        text = text.replace(old, new)
    (lab / "cells/cell.toml").write_text(text, "utf-8")
    return lab


@contextmanager
def answering(labs: Labs) -> Iterator[None]:
    """The seal host's door, in a thread; cells of this process wait for its answers longer than a lab's would, on a
    machine that has no time for either.
    """
    over, patient = threading.Event(), partial(SealLink, patience_s=PATIENCE_S)
    with patch("labctl.joint.cell.SealLink", patient), Door(labs.made.folder).open() as door:

        def turn() -> None:
            while not over.is_set():
                door.turn(20)

        thread = threading.Thread(target=turn)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


def finish(folder: Path) -> None:
    """Close and freeze a cell's part, and tell the seal host."""
    close_campaign(folder, who="lee", reason="over")
    freeze_campaign(folder, who="lee", unreviewed=True)
    tell(folder)


def unblind(folder: Path) -> None:
    """A cell's part, once the seal host has opened it."""
    unblind_campaign(folder, who="lee", opening=opening_of(folder))
