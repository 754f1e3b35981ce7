"""`python -m labctl.drivers.bridges lerobot serve_lerobot.py` writes a bridge to a file, to be run elsewhere.

May not: run a bridge (it needs the other environment), or write over a file.
"""

from __future__ import annotations

import sys
from pathlib import Path

BRIDGES = {"lerobot": "lerobot_openpi.py"}


def main(words: list[str]) -> int:
    """Write the bridge named first to the file named second; exit code 2 with one line when that cannot be done."""
    if len(words) != 2 or words[0] not in BRIDGES:
        sys.stderr.write(f"usage: python -m labctl.drivers.bridges {{{','.join(BRIDGES)}}} FILE.py\n")
        return 2
    source, target = Path(__file__).with_name(BRIDGES[words[0]]), Path(words[1])
    try:
        with target.open("x", encoding="utf-8") as file:
            file.write(source.read_text(encoding="utf-8"))
    except OSError as error:
        sys.stderr.write(f"{target}: {error.strerror}; nothing was written\n")
        return 2
    sys.stdout.write(f"{target}: run it with the Python of your {words[0]} environment; --help says how\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
