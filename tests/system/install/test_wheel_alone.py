"""The wheel, in an environment that holds nothing else of labctl: what somebody does first in a notebook."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest

from labctl.software import FOLDERS, code_digest

pytestmark = pytest.mark.thorough
ROOT = Path(__file__).resolve().parents[3]
VERSION = "9.9.9"
TABLE = "episode,arm,object,kind,time_s\n" + "".join(
    f"{arm}{i},{arm},cup,success,{(i + 1) * factor}\n" for factor, arm in enumerate("ab", 1) for i in range(6)
)
CELL = """
from labctl import api
table = api.load("operations.csv")
result = table.analyze(tau=9, boot=99, perm=99)
axes = result.plot()
axes.figure.savefig("curve.png")
"""
ASKED = """
import labctl
from pathlib import Path
from labctl.software import code_digest, collect_pins
print(Path(labctl.__file__).resolve().parent)
print(code_digest(Path(labctl.__file__).resolve().parent))
print(collect_pins()["labctl"], collect_pins()["git"], result.analysed_by)
print(result.cell("a", "cup").curve.at(3.0))
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    """Built of a copy of the package's folders, with the setuptools that is here."""
    tree = tmp_path / "tree"
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, tree / folder, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree / name)
    command = [
        sys.executable,
        "-m",
        "build",
        "--wheel",
        "--no-isolation",
        "--outdir",
        str(tmp_path / "dist"),
        str(tree),
    ]
    pretended = {**os.environ, "SETUPTOOLS_SCM_PRETEND_VERSION": VERSION}
    done = subprocess.run(command, capture_output=True, text=True, env=pretended, timeout=300)
    assert done.returncode == 0, done.stderr
    (made,) = (tmp_path / "dist").glob("*.whl")
    return made


def test_a_wheel_loads_a_table_and_draws_its_survival_curve_and_is_digested_as_its_source_tree(
    wheel: Path, tmp_path: Path
) -> None:
    """Its requirements are those of this environment, by their folders alone: what an editable labctl left there is
    not looked at.
    """
    place = tmp_path / "empty"
    venv.create(place, with_pip=False)
    python = place / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(place), "platbase": str(place)}))
    shutil.unpack_archive(wheel, packages, "zip")
    there = [path for path in (*site.getsitepackages(), *sys.path) if Path(path).name == "site-packages"]
    (packages / "requirements.pth").write_text("".join(f"{path}\n" for path in dict.fromkeys(there)))
    notebook = tmp_path / "notebook"
    notebook.mkdir()
    (notebook / "operations.csv").write_text(TABLE)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    command = [str(python), "-P", "-c", CELL + ASKED]
    plain = {**environment, "MPLBACKEND": "agg"}
    done = subprocess.run(command, cwd=notebook, capture_output=True, text=True, env=plain, timeout=300)
    assert done.returncode == 0, done.stderr
    where, digest, said, share = done.stdout.splitlines()
    assert where == str((packages / "labctl").resolve())
    assert digest == code_digest(ROOT / "labctl")
    assert said.startswith(f"{VERSION} None labctl {VERSION}, code {digest[:12]}")
    assert float(share) == 0.5, "three of six at 1, 2, 3, 4, 5, 6 s are done by then"
    assert (notebook / "curve.png").stat().st_size > 0
    assert len(CELL.strip().splitlines()) == 5
