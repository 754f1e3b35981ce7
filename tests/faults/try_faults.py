"""Puts faults into a copy of the code, one at a time, and tells which of them the tests find. See README.md.

May not: change the code itself, be collected as a test, or count what fails without a fault too as having found one.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("faults.toml")
TREE = ROOT / "build" / "faults"
WITHIN = (
    "drivers",
    "analysis",
    "ui",
    "fixtures",
    "protocols",
    "hw_configs",
)  # beside labctl here, inside of it when installed
USUAL = "not privileged and not interop and not hardware and not benchmark"  # as in the Makefile
QUICK, REST = f"not thorough and {USUAL}", f"thorough and {USUAL}"
STAGES = ("near", "quick", "all")
TABLE = {"near": "found near", "quick": "found by quick", "all": "found by all"}
SILENT_S = 600.0  # pytest says something after each test, and stops a test after 300 s
PASSED, NOTHING_TO_RUN = 0, 5  # exit codes of pytest


@dataclass(frozen=True)
class Fault:
    """One slip: `find` stands once in `file`, a repository path; `near` are test files or folders."""

    name: str
    file: str
    find: str
    replace: str
    near: tuple[str, ...]


@dataclass(frozen=True)
class Run:
    """How a pytest ended. `by`: what failed first; `how`: "test", "collection" or "hung", "" where all passed."""

    how: str
    by: str
    output: str


@dataclass(frozen=True)
class Result:
    """What became of a fault: the stage that found it ("" for none), by which test, how, and after how long."""

    name: str
    file: str
    found: str
    by: str
    how: str
    seconds: float


def main() -> int:
    """0 when every fault was found, 1 when one was not, 2 when nothing can be said."""
    asked = _arguments()
    signal.signal(signal.SIGTERM, _interrupt)  # a pytest that is under way has to end with this
    try:
        chosen = [fault for fault in read_faults() if asked.only.lower() in fault.name.lower()]
        if not chosen:
            raise SystemExit(f"try_faults: no fault's name has {asked.only!r} in it")
        with _the_tree():
            _check_import()
            if asked.baseline:
                _check_baseline(chosen)
            results = [_tried(fault, asked.stage, number, len(chosen)) for number, fault in enumerate(chosen, 1)]
    except KeyboardInterrupt:
        print("try_faults: interrupted")
        return 2
    except SystemExit as stopped:
        print(stopped.code, file=sys.stderr)
        return 2
    _print_table(results, asked.stage)
    if asked.json is not None:
        asked.json.write_text(json.dumps([asdict(result) for result in results], indent=2, ensure_ascii=False) + "\n")
    return 0 if all(result.found for result in results) else 1


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Put faults into a copy of the code; tell which the tests find.")
    parser.add_argument("--only", default="", metavar="PART", help="faults whose name has this in it")
    stages = parser.add_mutually_exclusive_group()
    words = {
        "near": "the tests near each fault (default)",
        "quick": "then, for what they miss, every quick test",
        "all": "then the thorough ones",
    }
    for stage, text in words.items():
        stages.add_argument(f"--{stage}", dest="stage", action="store_const", const=stage, help=text)
    parser.add_argument("--no-baseline", dest="baseline", action="store_false", help="do not try without a fault first")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the results there too")
    parser.set_defaults(stage="near")
    return parser.parse_args()


def read_faults() -> list[Fault]:
    """The faults of the list. Stops with one line that names the first that cannot be tried."""
    entries = tomllib.loads(LIST.read_text(encoding="utf-8"))["fault"]
    faults = [Fault(**{**entry, "near": tuple(entry["near"])}) for entry in entries]
    names = [fault.name for fault in faults]
    for fault in faults:
        path = ROOT / fault.file
        times = path.read_text(encoding="utf-8").count(fault.find) if path.is_file() else 0
        missing = [near for near in fault.near if not (ROOT / near).exists()]
        if names.count(fault.name) > 1:
            raise SystemExit(f"fault {fault.name!r}: another one has this name")
        if times != 1:
            raise SystemExit(f"fault {fault.name!r}: its text stands {times} times in {fault.file}, not once")
        if missing or not fault.near:
            raise SystemExit(f"fault {fault.name!r}: {', '.join(missing) or 'a near test'} is not there")
    return faults


@contextlib.contextmanager
def _the_tree() -> Iterator[None]:
    """A fresh copy of the code as it is installed, this process's alone."""
    TREE.mkdir(parents=True, exist_ok=True)
    with (TREE / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"another try_faults is at work in {TREE}") from None
        package = TREE / "labctl"
        shutil.rmtree(package, ignore_errors=True)
        shutil.rmtree(TREE / "hypothesis", ignore_errors=True)
        shutil.copytree(ROOT / "labctl", package)
        for name in WITHIN:
            shutil.copytree(ROOT / name, package / name)
        yield


def _place(file: str) -> Path:
    """Where a repository's file lies in the copy."""
    path = Path(file)
    return TREE / "labctl" / path if path.parts[0] in WITHIN else TREE / path


@contextlib.contextmanager
def _faulty(fault: Fault) -> Iterator[None]:
    """The copy has the fault, and nothing else, while this lasts."""
    path = _place(fault.file)
    whole, before = path.read_text(encoding="utf-8"), path.stat()
    if whole.count(fault.find) != 1:
        raise SystemExit(f"fault {fault.name!r}: its text is not once in the copy of {fault.file}")
    path.write_text(whole.replace(fault.find, fault.replace), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(whole, encoding="utf-8")
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _environment() -> dict[str, str]:
    """The copy comes before everything, here and in what tests start; the folder a process stands in does not count."""
    paths = [str(TREE), *filter(None, [os.environ.get("PYTHONPATH")])]
    mine = {"PYTHONPATH": os.pathsep.join(paths), "PYTHONSAFEPATH": "1"}
    kept = {"HYPOTHESIS_STORAGE_DIRECTORY": "hypothesis", "XDG_CACHE_HOME": "cache"}
    return {**os.environ, **mine, **{name: str(TREE / folder) for name, folder in kept.items()}}


def _check_import() -> None:
    """The copy has to be the labctl that is imported, or nothing that follows means anything."""
    parts = ["labctl", *(f"labctl.{name}" for name in WITHIN)]
    code = f"import importlib\nfor name in {parts}: print(importlib.import_module(name).__file__)"
    words = [sys.executable, "-c", code]
    done = subprocess.run(words, cwd=ROOT, env=_environment(), capture_output=True, text=True, check=False)
    wrong = [line for line in done.stdout.split() if not Path(line).is_relative_to(TREE)]
    if wrong or done.returncode:
        said = wrong[0] if wrong else (done.stderr.strip().splitlines() or ["nothing"])[-1]
        raise SystemExit(f"the copy in {TREE} is not what python imports but: {said}")


def _pytest(expression: str, places: Sequence[str], *more: str) -> Run:
    """One pytest over the copy."""
    words = [sys.executable, "-m", "pytest", "-q", "-rfE", "--tb=short", "-p", "no:cacheprovider"]
    words += ["--hypothesis-seed=0", "-m", expression, *more, *places]
    said = TREE / "pytest.txt"
    with said.open("wb") as file:
        child = subprocess.Popen(words, cwd=ROOT, env=_environment(), stdout=file, stderr=file, start_new_session=True)
        try:
            code = _await(child, said)
        finally:
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGKILL)
                child.wait()
    output = said.read_text(encoding="utf-8", errors="replace")
    if code in (PASSED, NOTHING_TO_RUN):
        return Run("", "", output)
    said_so = [line for line in output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    if code is None or (not said_so and "Timeout (" in output):  # the tests' own watch (tests/harness) was first
        return Run("hung", _last_line(output), output)
    first = re.sub(r"^(FAILED|ERROR) | - .*| \((setup|call|teardown)\)$", "", next(iter(said_so), _last_line(output)))
    return Run("test" if "::" in first else "collection", first, output)  # only a test that was collected has ::


def _await(child: subprocess.Popen[bytes], said: Path) -> int | None:
    """The exit code; None for a pytest that said nothing for so long that it hangs."""
    size, since = 0, time.monotonic()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=1.0)
        now = said.stat().st_size
        if now != size:
            size, since = now, time.monotonic()
        elif time.monotonic() - since > SILENT_S:
            return None


def _last_line(output: str) -> str:
    return (output.strip().splitlines() or ["nothing was said"])[-1]


def _check_baseline(faults: Sequence[Fault]) -> None:
    """Without a fault, everything near one has to pass."""
    places = sorted({near for fault in faults for near in fault.near})
    began = time.monotonic()
    run = _pytest(QUICK, places)
    if run.how:
        failed = [line for line in run.output.splitlines() if line.startswith(("FAILED ", "ERROR "))]
        raise SystemExit("\n".join([f"without a fault the near tests do not pass ({run.how}): {run.by}", *failed[1:]]))
    took_s = time.monotonic() - began
    print(f"without a fault the near tests pass: {_last_line(run.output)}; {took_s:.0f} s", flush=True)


def _tried(fault: Fault, last: str, number: int, of: int) -> Result:
    """Try one fault, stage after stage until one finds it."""
    began = time.monotonic()
    result = Result(fault.name, fault.file, "", "", "", 0.0)
    for stage in STAGES[: STAGES.index(last) + 1]:
        run = _hunt(fault, stage)
        if run.how:
            result = Result(fault.name, fault.file, stage, run.by, run.how, 0.0)
            break
    result = Result(**{**asdict(result), "seconds": round(time.monotonic() - began, 1)})
    how = "" if result.how in ("", "test") else f" ({result.how})"
    told = f"found {result.found}{how}: {result.by}" if result.found else "NOT FOUND"
    print(f"{number:2}/{of} {result.seconds:6.1f} s  {fault.name}\n                {told}", flush=True)
    return result


def _hunt(fault: Fault, stage: str) -> Run:
    """The run of one stage. A test outside the near ones has found the fault only if it passes without it."""
    places = fault.near if stage == "near" else ("tests",)
    expression = REST if stage == "all" else QUICK
    ignored: list[str] = []
    while True:
        with _faulty(fault):
            run = _pytest(expression, places, "-x", *(f"--deselect={test}" for test in ignored))
        if stage == "near" or run.how != "test" or run.by in ignored or _pytest("", [run.by]).how != "test":
            return run
        print(f"      left out, it fails without a fault too: {run.by}", flush=True)
        ignored.append(run.by)


def _print_table(results: Sequence[Result], last: str) -> None:
    print()
    width = max(len(result.name) for result in results)
    for result in results:
        how = "" if result.how in ("", "test") else f", {result.how}"
        told = TABLE.get(result.found, "NOT FOUND")
        print(f"{result.name:{width}}  {result.seconds:6.1f} s  {told}{how}")
    counts = [f"{sum(r.found == stage for r in results)} {stage}" for stage in STAGES[: STAGES.index(last) + 1]]
    lost = sum(not result.found for result in results)
    print(f"\n{len(results)} faults, found: {', '.join(counts)}; NOT FOUND: {lost}")


if __name__ == "__main__":
    sys.exit(main())
