"""`make fuzz`: parsers under spoilt input for as long as one likes. What fails is kept in tests/support/fuzzing/finds.

python -P tests/fuzz.py [--seconds 600] [--inputs 100000] [--seed 1] [PARSER ...]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.fuzzing.holding import FINDS, held, inputs
from support.fuzzing.targets import TARGETS

MOST_FINDS = 5
OFTEN = 1000  # inputs, after which they are counted: a run that is killed counts too
TRIED = Path(__file__).parent / "support" / "fuzzing" / "tried.json"
"""How many inputs each parser has had, in all runs whose table was committed. After a change of a parser they still
count: what it was tried with before says less then.
"""


def count(name: str, inputs: int) -> None:
    """Add to what a parser has had."""
    tried: dict[str, int] = json.loads(TRIED.read_text("utf-8")) if TRIED.is_file() else {}
    tried[name] = tried.get(name, 0) + inputs
    TRIED.write_text(json.dumps(tried, indent=1, sort_keys=True) + "\n", "utf-8")


def main() -> int:
    """Each parser until both its seconds of CPU and its inputs are used up; exit 1 where one failed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("parsers", nargs="*", metavar="PARSER", help=f"of: {', '.join(TARGETS)} [default: all]")
    asked.add_argument("--seconds", type=float, default=600.0, help="of CPU for a parser, at least [600]")
    asked.add_argument("--inputs", type=int, default=100_000, help="for a parser, at least [100000]")
    asked.add_argument("--seed", type=int, default=int(time.time()), help="of the draw [the time]")
    asked.add_argument("--tried", action="store_true", help="print how many inputs each parser has had, and end")
    given = asked.parse_args()
    if given.tried:
        tried: dict[str, int] = json.loads(TRIED.read_text("utf-8"))
        print("\n".join(f"{tried.get(name, 0):>9,}  {name}" for name in TARGETS))
        return 0
    failed = 0
    for name in given.parsers or TARGETS:
        begun, done, found = time.process_time(), 0, dict[str, bytes]()
        for data in inputs(name, given.seed):
            try:
                held(TARGETS[name], data)
            except AssertionError as error:
                found.setdefault(str(error)[:60], data)
            done += 1
            if done % OFTEN == 0:
                count(name, OFTEN)
            if (done >= given.inputs and time.process_time() - begun >= given.seconds) or len(found) >= MOST_FINDS:
                break
        count(name, done % OFTEN)
        took = f"{time.process_time() - begun:.0f} s of CPU"
        print(f"{name}: {done} inputs, {took}, {len(found)} kinds of failure, seed {given.seed}", flush=True)
        for text, data in found.items():
            path = FINDS / name.replace(" ", "-") / hashlib.sha256(data).hexdigest()[:16]
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
            print(f"  {text}\n  kept: {path.relative_to(FINDS.parents[3])}", flush=True)
        failed += bool(found)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
