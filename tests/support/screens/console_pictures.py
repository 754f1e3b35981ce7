"""The console's pictures in docs/pictures, drawn anew by `make pictures`: keys on the bench, Textual's own SVG of each
screen, and Chromium to make a PNG of it.

May not: be looked at instead of the console; nobody but a person sees whether a picture is right.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance

from labctl.bus import Message
from labctl.core.reviewed import queue
from labctl.store.campaign import Campaign
from labctl.ui.review.filmstrip import Filmstrip
from labctl.ui.review.review import Review
from support.runs.run_bench import Bench
from support.runs.scene_pictures import Stage, arranged
from support.screens.browser import browsing
from support.screens.console_bench import Desk, at_console, evening

PICTURES = Path(__file__).resolve().parents[3] / "docs" / "pictures"
SIZE = (120, 36)
PLACE = {"shift_px": [0.0, 0.0], "rotation_deg": 0.0, "moved_px": 0.1, "note": "", "ssim": 0.9}
DIFFERS = {**PLACE, "score": 78.0, "changed": 0.02, "regions": [{"box": [40, 30, 60, 50], "share": 0.02}]}
CAMERAS = {"over_shoulder": "over_shoulder", "wrist": "wrist"}  # of the bench's cell -> the view that is drawn
FONT = re.compile(r"@font-face \{.*?\}", re.S)  # it would be fetched from elsewhere


def drawn(app: Review | object) -> str:
    """The screen of an app as SVG, which asks nobody for a font."""
    return FONT.sub("", app.export_screenshot()).replace("Fira Code", "DejaVu Sans Mono")  # type: ignore[attr-defined]


@cache
def seen(view: str, *, n: int = 4, seed: int = 1) -> np.ndarray:
    """What a camera sees of a staged scene, (h, w, 3) uint8."""
    return np.asarray(Image.fromarray(Stage(view).look(arranged(n=n, seed=seed))).resize((320, 240)))


def ghost(view: str) -> np.ndarray:
    """A view over its reference: what does not lie where it lay is there twice."""
    both = Image.blend(Image.fromarray(seen(view)), Image.fromarray(seen(view, seed=2)), 0.5)
    return np.asarray(ImageEnhance.Contrast(both).enhance(1.2))


async def pictured(desk: Desk, kind: str = "preview") -> None:
    """The cameras' pictures and the joints arrive."""
    at_ns = desk.bench.now_ns
    for turn in np.linspace(0, 1, 40):
        q = np.array([0.4, -0.2, 0.1, -2.2, 0.0, 2.0, 0.8]) + 0.15 * np.sin(6 * turn + np.arange(7))
        desk.bench.sent.append(Message("@obs", "obs", {"t_ns": at_ns}, {"q": q, "gripper": np.array([0.04])}))
        desk.bench.clock.sleep_until(desk.bench.now_ns + 50_000_000)
        await desk.draw()
    for name, view in (*CAMERAS.items(), *CAMERAS.items()):  # the first makes room for itself
        image = ghost(view) if kind == "ghost" else seen(view)
        body = {"camera": name, "t_ns": at_ns, "scene": DIFFERS}
        desk.bench.sent.append(Message("@preview", kind, body, {"image": image}))
        await desk.draw()
    await desk.wait(0.2)
    await desk.still()


def shots(folder: Path) -> Iterator[tuple[str, str]]:
    """(name, SVG) of every picture of the console."""
    found: dict[str, str] = {}

    async def trial(desk: Desk) -> None:
        episode = await desk.running()
        await desk.event("success", episode)
        await desk.press("m")
        await pictured(desk)
        found["run"] = drawn(desk.app)
        await desk.press("e", "e")
        await desk.sealed(episode)
        await desk.press("enter")
        await desk.still()
        found["score"] = drawn(desk.app)
        await desk.press("a", "ctrl+s", "enter")
        await desk.home()
        for camera in CAMERAS:
            desk.bench.compared(camera, scene=DIFFERS)
        await pictured(desk, "ghost")
        found["staging"] = drawn(desk.app)

    async def stopped(desk: Desk) -> None:
        await desk.running()
        await desk.press("space")
        await pictured(desk)
        found["hold"] = drawn(desk.app)

    async def by_hand(desk: Desk) -> None:
        episode = await desk.armed()
        gaps = [0.05, 0.12, 0.71, 0.2, 0.08, 0.31, 0.02]
        await desk.hand(episode, waits="bring the leader to the robot: joint 3 is 0.71 rad away", gap_rad=gaps)
        await desk.press("d")
        await desk.still()
        found["hand"] = drawn(desk.app)

    for name, play in {"trial": trial, "stopped": stopped, "by_hand": by_hand}.items():
        with evening(folder / name, cameras=True) as bench:
            at_console(bench, play, size=SIZE)
            if play is trial:
                found["review"] = asyncio.run(_review(bench))
    yield from found.items()


async def _review(bench: Bench) -> str:
    """The queue of an assessor: the operator counted two, the devices saw one."""

    def look(episode: str, camera: int, at_s: list[float], width: int) -> tuple[str, list[tuple[float, np.ndarray]]]:
        return "over_shoulder", [(at, seen("over_shoulder", seed=1 + n // 3)) for n, at in enumerate(at_s)]

    with Campaign.open(bench.campaign.folder) as opened:
        episodes = queue(opened.record())
    for n in (1, 2):
        seen("over_shoulder", seed=n)  # it is waited for by a thread
    app = Review(lambda: episodes, lambda *_: None, lambda *_: None, lambda _: None, look)
    async with app.run_test(size=SIZE) as pilot:
        while "▲" not in drawn(app):
            await pilot.pause(0.05)
        app.query_one(Filmstrip).refresh(layout=True)
        await pilot.pause(0.3)
        return drawn(app)


def main() -> None:
    """Draw all of them into docs/pictures."""
    with tempfile.TemporaryDirectory() as folder:
        for name, svg in shots(Path(folder)):
            high, wide = (int(float(n)) for n in reversed(re.findall(r'viewBox="0 0 (\S+) (\S+)"', svg)[0]))
            page = Path(folder) / f"{name}.html"
            page.write_text(f'<body style="margin:0"><style>svg{{width:1200px}}</style>{svg}</body>', "utf-8")
            with browsing(1200, round(1200 * high / wide)) as tab:
                tab.open(page.as_uri())
                tab.rest(0.5)
                tab.shot(PICTURES / f"console_{name}.png")
            sys.stdout.write(f"docs/pictures/console_{name}.png\n")


if __name__ == "__main__":
    main()
