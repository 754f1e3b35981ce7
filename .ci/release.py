"""Makes a release of labctl: `make release VERSION=0.2.0`. Publishes nothing.

Everything is done in a clone, and brought here only when all of it went well: the tests, the fragments of changelog.d
collected into CHANGELOG.md, the version in CITATION.cff, a commit, a tag, a source archive and a wheel that twine finds
in order and that say the tag's version. May not: release a tree with changes, or one whose tests fail.
"""

from __future__ import annotations

import datetime
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from labctl.deprecation import overdue

ROOT = Path(__file__).resolve().parents[1]
CHECKS = (("make", "test-all"),)
VERSION = re.compile(r"^\d+\.\d+\.\d+$")


class Refused(Exception):
    """Why there is no release, in a line."""


def release(root: Path, version: str, checks: Sequence[Sequence[str]] = CHECKS, today: str = "") -> list[Path]:
    """Release what is committed in `root` as `version`; the files in dist/. today: YYYY-MM-DD.

    checks: commands that must succeed on the commit that is released. Raises Refused; then nothing has changed.
    """
    if not VERSION.match(version):
        raise Refused(f"VERSION is {version!r}; give three numbers: make release VERSION=0.2.0")
    changed = git(root, "status", "--porcelain")
    if changed:
        raise Refused(f"the tree has changes; commit or drop them first:\n{changed}")
    later = [tag for tag in git(root, "tag", "--list", "v*").split() if numbers(tag[1:]) >= numbers(version)]
    if later:
        raise Refused(f"{', '.join(later)} is there already; a release needs a higher number than {version}")
    if overdue(version):
        late = ", ".join(overdue(version))
        raise Refused(f"{late} ought to be gone by {version}: remove it, and its line in labctl/deprecation.py")
    for command in checks:
        if subprocess.run(command, cwd=root).returncode:
            raise Refused(f"`{' '.join(command)}` failed; nothing was released")
    with tempfile.TemporaryDirectory() as scratch:
        clone = Path(scratch) / "labctl"
        git(root, "clone", "-q", ".", str(clone))
        who = {name: git(root, "config", name) for name in ("user.name", "user.email")}
        for name, value in who.items():
            git(clone, "config", name, value)
        commit(clone, version, today or datetime.datetime.now(datetime.UTC).date().isoformat())
        made = build(clone, version)
        git(root, "pull", "-q", "--ff-only", "--tags", str(clone), "HEAD")
        (root / "dist").mkdir(exist_ok=True)
        # a folder for what is temporary often lies on another file system
        return [Path(shutil.move(path, root / "dist" / path.name)) for path in made]


def commit(clone: Path, version: str, today: str) -> None:
    """The commit that is released, and its tag."""
    run(clone, sys.executable, "-m", "towncrier", "build", "--yes", "--version", version, "--date", today)
    citation = clone / "CITATION.cff"
    text = re.sub(r"^version: .*$", f"version: {version}", citation.read_text(), flags=re.MULTILINE)
    text = re.sub(r"^date-released: .*\n", "", text, flags=re.MULTILINE)
    citation.write_text(re.sub(r"^(version: .*)$", rf"\1\ndate-released: {today}", text, flags=re.MULTILINE))
    run(clone, sys.executable, "-P", "tests/support/install/release_fixture.py", version)
    git(clone, "add", "--all")
    git(clone, "commit", "-qm", f"Release {version}")
    git(clone, "tag", "-a", f"v{version}", "-m", f"labctl {version}")


def build(clone: Path, version: str) -> list[Path]:
    """A source archive, and the wheel that is built from it."""
    run(clone, sys.executable, "-m", "build", "--no-isolation", "--outdir", "dist", ".")
    made = sorted((clone / "dist").iterdir())
    expected = {f"labctl-{version}-py3-none-any.whl", f"labctl-{version}.tar.gz"}
    if {path.name for path in made} != expected:
        raise Refused(f"built {', '.join(path.name for path in made)}, not {', '.join(sorted(expected))}")
    run(clone, sys.executable, "-m", "twine", "check", "--strict", *(str(path) for path in made))
    return made


def numbers(version: str) -> tuple[int, ...]:
    """A version that compares; () for a tag that is none."""
    return tuple(map(int, version.split("."))) if VERSION.match(version) else ()


def git(folder: Path, *words: str) -> str:
    """What git says. Raises Refused with its own words."""
    done = subprocess.run(["git", "-C", str(folder), *words], capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"git {words[0]}: {done.stderr.strip() or 'nothing set'}")
    return done.stdout.strip()


def run(folder: Path, *command: str) -> None:
    """Raises Refused with what the command said."""
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        raise Refused(f"{' '.join(command[1:4])}: {done.stdout}{done.stderr}")


if __name__ == "__main__":
    try:
        for file in release(ROOT, sys.argv[1] if len(sys.argv) > 1 else ""):
            print(f"dist/{file.name}")
    except Refused as refusal:
        sys.exit(f"no release: {refusal}")
    print("tagged and built; publish with: git push --follow-tags && python -m twine upload dist/labctl-*")
