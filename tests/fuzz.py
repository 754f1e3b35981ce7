"""`make fuzz`: parsers under spoilt input for as long as one likes. What fails is kept, made as short as it can be, in
tests/support/fuzzing/finds.

python -P tests/fuzz.py [--seconds 600] [--inputs 100000] [--seed 1] [PARSER ...]
"""

from __future__ import annotations

import argparse
import fcntl
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import TypedDict

sys.path.insert(0, str(Path(__file__).parent))

from support.fuzzing.holding import FINDS, held, inputs, shortened
from support.fuzzing.targets import TARGETS

MOST_FINDS = 5
OFTEN = 1000  # inputs, after which they are counted: a run that is killed counts too
TRIED = Path(__file__).parent / "support" / "fuzzing" / "tried.json"
"""How many inputs each parser has had and how long it took, in all runs whose table was committed. After a change of a
parser they still count: what it was tried with before says less then.
"""
PAGE = Path(__file__).parents[1] / "docs" / "fuzzing.md"
MADE, END = "<!-- made by: python -P tests/fuzz.py --page -->", "<!-- end -->"


class Had(TypedDict):
    """What a parser has had: inputs, and seconds of CPU (not counted before 2026-11-26)."""

    inputs: int
    cpu_s: float


NOTHING = Had(inputs=0, cpu_s=0.0)


def count(name: str, inputs: int, cpu_s: float) -> None:
    """Add to what a parser has had; several runs may do so at once."""
    with TRIED.open("r+", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        tried: dict[str, Had] = json.load(file)
        had = tried.get(name, NOTHING)
        tried[name] = Had(inputs=had["inputs"] + inputs, cpu_s=round(had["cpu_s"] + cpu_s, 3))
        file.seek(0)
        file.write(json.dumps(tried, indent=1, sort_keys=True) + "\n")
        file.truncate()


def table() -> str:
    """A line for each parser: what it has had."""
    tried: dict[str, Had] = json.loads(TRIED.read_text("utf-8"))
    had = [(tried.get(name, NOTHING), name) for name in TARGETS]
    return "\n".join(f"{one['inputs']:>10,}  {one['cpu_s']:>7,.0f} s  {name}" for one, name in had)


def write_page() -> None:
    """Put the table into the documentation's page."""
    tried: dict[str, Had] = json.loads(TRIED.read_text("utf-8"))
    rows = [
        f"| {name} | {one['inputs']:,} | {one['cpu_s']:,.0f} |"
        for name in TARGETS
        for one in [tried.get(name, NOTHING)]
    ]
    before, made, rest = PAGE.read_text("utf-8").partition(MADE)
    end = rest.index(END)
    text = "\n".join(["", "| parser | inputs | s of CPU |", "|---|--:|--:|", *rows, ""])
    PAGE.write_text(before + made + text + rest[end:], "utf-8")


def run(name: str, seed: int, least_inputs: int, least_s: float) -> dict[str, bytes]:
    """A parser until both its seconds of CPU and its inputs are used up, or it failed in MOST_FINDS ways; an input for
    each way in which it failed.
    """
    begun = counted = time.process_time()
    done, found = 0, dict[str, bytes]()
    for data in inputs(name, seed):
        try:
            held(TARGETS[name], data)
        except AssertionError as error:
            found.setdefault(str(error)[:60], data)
        done += 1
        now = time.process_time()
        if done % OFTEN == 0:
            count(name, OFTEN, now - counted)
            counted = now
        if (done >= least_inputs and now - begun >= least_s) or len(found) >= MOST_FINDS:
            break
    count(name, done % OFTEN, time.process_time() - counted)
    took = f"{time.process_time() - begun:.0f} s of CPU"
    print(f"{name}: {done} inputs, {took}, {len(found)} kinds of failure, seed {seed}", flush=True)
    return found


def main() -> int:
    """Exit 1 where a parser failed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("parsers", nargs="*", metavar="PARSER", help=f"of: {', '.join(TARGETS)} [default: all]")
    asked.add_argument("--seconds", type=float, default=600.0, help="of CPU for a parser, at least [600]")
    asked.add_argument("--inputs", type=int, default=100_000, help="for a parser, at least [100000]")
    asked.add_argument("--seed", type=int, default=int(time.time()), help="of the draw [the time]")
    asked.add_argument("--tried", action="store_true", help="print what each parser has had, and end")
    asked.add_argument("--page", action="store_true", help="write that into docs/fuzzing.md, and end")
    given = asked.parse_args()
    if given.page:
        write_page()
        return 0
    if given.tried:
        print(table())
        return 0
    failed = 0
    for name in given.parsers or TARGETS:
        found = run(name, given.seed, given.inputs, given.seconds)
        for text, whole in found.items():
            data = shortened(TARGETS[name], whole)
            path = FINDS / name.replace(" ", "-") / hashlib.sha256(data).hexdigest()[:16]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"  {text}\n  kept: {path.relative_to(FINDS.parents[3])}", flush=True)
        failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
