"""What listens for others: only these files, each on loopback or where its line says."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from labctl.cli.emulate import emulate
from labctl.errors import InputError, LabctlError
from labctl.loopback import LOOPBACK
from labctl.software import FOLDERS

ROOT = Path(__file__).resolve().parents[2]
LISTENS = frozenset(
    {
        "bind",
        "create_server",
        "start_server",
        "run_app",
        "TCPSite",
        "SockSite",
        "HTTPServer",
        "ThreadingHTTPServer",
        "QuietServer",
        "Listening",
    }
)
# file -> where it listens
WHERE = {
    "labctl/runtime/hosting/transport.py": "sockets that are files",
    "labctl/doors.py": "where one of the others says",
    "labctl/joint/door.py": "loopback unless its address says otherwise; CURVE: tests/system/joint/test_joint_door.py",
    "labctl/checks/clock_page.py": "LOOPBACK",
    "labctl/pages/server.py": "LOOPBACK",
    "ui/rerun/viewer_page.py": "LOOPBACK",
    "ui/rerun/viewer_process.py": "LOOPBACK",
    "labctl/cli/console.py": "looks for a free port of the console",
    "ui/console/web.py": "loopback, elsewhere TLS and a pairing code: tests/unit/ui/test_console_web.py",
    "drivers/franka/emulator/one_client.py": "emulate",
    "drivers/ur/emulator/rtde_server.py": "emulate",
    "drivers/ur/emulator/text.py": "emulate",
}


def listens(tree: ast.AST) -> bool:
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    names = {f.attr if isinstance(f, ast.Attribute) else getattr(f, "id", "") for f in calls}
    return bool(names & LISTENS)


@pytest.mark.thorough
def test_only_these_files_listen_and_each_where_it_says():
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")]
    assert {str(path.relative_to(ROOT)) for path in files if listens(ast.parse(path.read_text()))} == set(WHERE)
    for name in (name for name, where in WHERE.items() if where == "LOOPBACK"):
        text = (ROOT / name).read_text()
        assert "(LOOPBACK, " in text and re.search(r"^from .* import .*\bLOOPBACK\b", text, re.M), name
    assert LOOPBACK == "127.0.0.1"


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.7", "::"])
def test_an_emulated_controller_is_on_loopback_alone(host):
    error = CliRunner().invoke(emulate, ["fr3", "--host", host]).exception
    assert isinstance(error, LabctlError) and "loopback" in str(error), error
    assert isinstance(error, InputError)
