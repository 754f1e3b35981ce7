"""`make fuzz`: parsers under spoilt input for as long as one likes. What fails is kept in tests/support/fuzzing/finds.

python -P tests/fuzz.py [--seconds 600] [--inputs 100000] [--seed 1] [PARSER ...]
"""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from support.fuzzing.holding import FINDS, held, inputs
from support.fuzzing.targets import TARGETS

MOST_FINDS = 5


def main() -> int:
    """Each parser until both its seconds of CPU and its inputs are used up; exit 1 where one failed."""
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("parsers", nargs="*", metavar="PARSER", help=f"of: {', '.join(TARGETS)} [default: all]")
    asked.add_argument("--seconds", type=float, default=600.0, help="of CPU for a parser, at least [600]")
    asked.add_argument("--inputs", type=int, default=100_000, help="for a parser, at least [100000]")
    asked.add_argument("--seed", type=int, default=int(time.time()), help="of the draw [the time]")
    given = asked.parse_args()
    failed = 0
    for name in given.parsers or TARGETS:
        begun, done, found = time.process_time(), 0, dict[str, bytes]()
        for data in inputs(name, given.seed):
            try:
                held(TARGETS[name], data)
            except AssertionError as error:
                found.setdefault(str(error)[:60], data)
            done += 1
            if (done >= given.inputs and time.process_time() - begun >= given.seconds) or len(found) >= MOST_FINDS:
                break
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
