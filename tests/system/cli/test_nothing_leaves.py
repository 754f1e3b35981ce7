"""Nothing of the lab leaves its machine unasked: a campaign, its report, its pictures and the checks, each process and
its children watched for where they connect to.
"""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import pytest
from support.machine.preloading import preloaded
from support.runs.campaigns import ROOT, events_of

from labctl.core.events import Kind

CAMPAIGN = """
import sys
from pathlib import Path
from support.runs.campaigns import make_campaign, policy, unblind
from labctl.runtime.campaign_run import run_campaign

arms = [policy("policy-a"), policy("policy-b")]
folder = make_campaign(Path(sys.argv[1]), arms, cameras=True, budget=3.0, arming=1.0).folder
run_campaign(folder, lambda line: None, manual=True)
unblind(folder)
"""
HERE = {"127.0.0.1", "::1", "localhost", socket.gethostname()}


@pytest.mark.thorough
def test_no_process_connects_anywhere_but_to_this_machine_and_the_kernel_alone_is_kept_at_home(tmp_path: Path) -> None:
    home, seen, lab = tmp_path / "home", tmp_path / "seen", tmp_path / "lab"
    home.mkdir()
    environment = {**preloaded("connections", tmp_path), "CONNECTIONS": str(seen), "HOME": str(home)}
    environment |= {"MPLCONFIGDIR": str(tmp_path / "matplotlib"), "PYTHONPATH": str(ROOT / "tests")}
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "RS2_RUM_CLOUD_ENABLED"):
        environment.pop(name, None)

    def labctl(*words: str) -> None:
        command = [Path(sys.executable).with_name("labctl"), *words]
        done = subprocess.run(command, env=environment, capture_output=True, cwd=tmp_path)
        assert done.returncode in (0, 1), done.stderr.decode()

    subprocess.run([sys.executable, "-c", CAMPAIGN, lab], env=environment, check=True)
    (folder,) = (lab / "campaigns").iterdir()
    episode = next(event.episode for event in events_of(folder) if event.kind == Kind.RECORDING_SEALED)
    labctl("verify", folder.name, "--lab", str(lab))
    labctl("report", folder.name, "--lab", str(lab), "--out", "report", "--boot", "9", "--perm", "9")
    labctl("show", str(episode), "--lab", str(lab), "--save", "episode.rrd")
    shown = [Path(sys.executable).with_name("labctl"), "show", str(episode), "--lab", lab, "--web"]
    with subprocess.Popen(shown, env=environment, stdout=subprocess.PIPE, text=True) as viewer:
        assert viewer.stdout is not None and any(line.startswith("open ") for line in viewer.stdout)
        viewer.terminate()
    labctl("doctor", str(lab / "cells" / "c.toml"))
    assert (tmp_path / "report/report.html").is_file() and (tmp_path / "episode.rrd").is_file()
    loaded = "import labctl.drivers.realsense.librealsense as driver; driver.rs.context().query_devices().size()"
    subprocess.run([sys.executable, "-c", loaded], env=environment, check=True)
    probe = "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('127.0.0.1', 9))"
    subprocess.run([sys.executable, "-c", probe], env=environment, check=True)
    lines = [line.split() for line in seen.read_text().splitlines()]
    assert ["connect", "127.0.0.1"] in lines, "connections are seen at all"
    assert {where for _, where in lines} <= HERE
    written = {str(path.relative_to(home)) for path in home.rglob("*") if path.is_file()}
    kernels = {name for name in written if name.startswith(".cache/labctl/kernel-")}  # docs/decisions/0037
    assert written - kernels <= {".rum/rum.json"}, "librealsense's own count of its use, which nobody can switch off"
