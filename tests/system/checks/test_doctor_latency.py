"""`labctl doctor CELL.toml --latency` from the command line: a page, a camera that films it, a line for the cell."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from support.cameras.filmed_screen import RemotePage, Screen
from support.json_documents import judged
from support.machine.postgres import free_port

from labctl.config.cell_schema import parse_cell

pytestmark = [pytest.mark.real_time, pytest.mark.thorough]

ROOT = Path(__file__).parents[3]
LABCTL = [str(Path(sys.executable).with_name("labctl")), "doctor"]
LATENCY_S = 0.06


def cell(folder: Path, start_ns: int) -> Path:
    """The simulated cell, its wrist camera one that films a screen which began to count at start_ns."""
    text = (ROOT / "hw_configs/sim_fr3.toml").read_text()
    wrist = r'driver = "sim_camera"(\n(?!\[\[).*)*view = "wrist"'
    options = f"[camera.options]\nlatency_s = {LATENCY_S}\nstart_ns = {start_ns}"
    new = f'driver = "support.cameras.filmed_screen:build"\nwidth = 320\nheight = 240\nrate_hz = 30.0\n{options}'
    path = folder / "cell.toml"
    changed, found = re.subn(wrist, new, text[(start := text.index('name = "wrist"')) :], count=1)
    assert found == 1
    path.write_text(text[:start] + changed)
    return path


@pytest.fixture
def port() -> int:
    return free_port()


def doctor(*words: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "tests")}
    return subprocess.run([*LABCTL, *words], capture_output=True, text=True, timeout=120, env=env)


def test_a_camera_that_films_the_page_gets_the_line_for_its_cell(tmp_path: Path, port: int) -> None:
    with Screen(RemotePage(f"http://127.0.0.1:{port}/")) as screen:
        path = cell(tmp_path, screen.start_ns)
        done = doctor(str(path), "--latency", "--camera", "wrist", "--port", str(port))
    assert done.returncode == 0, done.stderr
    assert f"http://127.0.0.1:{port}/" in done.stderr
    line = re.search(r"^ +(latency_s = (\S+)) +# ", done.stdout, re.MULTILINE)
    assert line is not None and abs(float(line[2]) - LATENCY_S) <= 0.006
    said = r"camera wrist: \d+ ms from screen to receipt \(median; p95 \d+ ms, n \d+, the page's clock within"
    assert re.search(said, done.stdout)
    filled = path.read_text().replace("rate_hz = 30.0\n", f"rate_hz = 30.0\n{line[1]}\n")
    assert parse_cell(filled, "c.toml").camera[1].latency_s == float(line[2])


def test_a_simulated_camera_fails_beside_one_that_was_measured_and_both_are_told(tmp_path: Path, port: int) -> None:
    with Screen(RemotePage(f"http://127.0.0.1:{port}/")) as screen:
        done = doctor(str(cell(tmp_path, screen.start_ns)), "--latency", "--json", "--port", str(port))
    assert done.returncode == 1
    found = judged(done.stdout)
    assert [one["camera"] for one in found["cameras"]] == ["wrist"]
    assert abs(found["cameras"][0]["median_s"] - LATENCY_S) <= 0.006 and found["cameras"][0]["n"] >= 100
    assert found["failed"] == ["camera over_shoulder is simulated and films no screen; its latency is 0"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--latency"], "--latency needs a cell file"),
        (["CELL", "--camera", "wrist"], "--camera and --port go with --latency"),
        (["none.toml", "--latency"], "no such file"),
    ],
)
def test_bad_words_are_one_line(tmp_path: Path, words: list[str], message: str) -> None:
    words = [str(cell(tmp_path, 0)) if word == "CELL" else word for word in words]
    done = doctor(*words)
    assert done.returncode == 2 and message in done.stderr and "Traceback" not in done.stderr
