"""What the thorough run does not import has nothing that it would run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[2]
MARKED = "import pytest\n\n@pytest.mark.thorough\ndef test_long(): pass\n\ndef test_short(): pass\n"
PLAIN = "def test_short(): pass\n"
UNSEEN = "import pytest\nfrom marks import long\n\n@long\ndef test_long(): pass\n"


def run(folder: Path, marker: str) -> tuple[int, str]:
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    thorough: x\n    alone: x\n")
    words = ["-q", "-p", "harness.left_out", "-p", "no:cacheprovider", "--collect-only", "-m", marker]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), str(folder)])}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *words], cwd=folder, capture_output=True, text=True, env=environment
    )
    return done.returncode, done.stdout + done.stderr


def test_of_the_thorough_run_only_files_with_a_thorough_test_are_imported(tmp_path: Path) -> None:
    (tmp_path / "test_marked.py").write_text(MARKED)
    (tmp_path / "test_plain.py").write_text(f"raise SystemExit('imported')\n{PLAIN}")
    code, said = run(tmp_path, "thorough and not privileged")
    assert code == 0 and "test_marked.py::test_long" in said and "test_plain" not in said, said
    code, said = run(tmp_path, "not thorough and not privileged")
    assert code != 0 and "imported" in said


@pytest.mark.parametrize("marker", ["", "not thorough", "thorough"])
def test_a_thorough_test_in_a_file_that_would_be_left_out_ends_every_run_that_sees_it(
    tmp_path: Path, marker: str
) -> None:
    (tmp_path / "marks.py").write_text("import pytest\nlong = pytest.mark.thorough\n")
    (tmp_path / "test_unseen.py").write_text(UNSEEN)
    code, said = run(tmp_path, marker)
    if marker == "thorough":
        assert "test_long" not in said and code == 5, "which is why the others say so"
    else:
        assert code == 4 and "thorough tests that `make test-rest` would not see" in said and "test_unseen.py" in said
