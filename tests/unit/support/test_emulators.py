"""An emulated controller has a computer of its own, as far as one machine can give it that."""

from __future__ import annotations

import os
from pathlib import Path

from harness.pools import AUTOGROUP
from support.robots.emulators import Emulator

TESTS = Path(__file__).resolve().parents[2]
VERB = '"emul' + 'ate"'
# as a person types it, which is what is tried there: these end at once
TYPED = {
    "system/cli/test_json_contract.py",
    "system/devices/test_emulate.py",
    "unit/cli/test_completing.py",
    "unit/cli/test_refused_values.py",
    "unit/test_listening.py",
}


def test_an_emulator_has_a_session_of_its_own_and_so_the_weight_of_one_program() -> None:
    """In that of the worker that started it it shared a core's half with all that this ran: its time stood still."""
    emulator = Emulator("fr3")
    try:
        pid = emulator.process.pid
        assert os.getsid(pid) == pid != os.getsid(0)
        if AUTOGROUP.exists():
            assert Path(f"/proc/{pid}/autogroup").read_text() != AUTOGROUP.read_text()
    finally:
        emulator.end()


def test_no_test_starts_one_otherwise() -> None:
    said = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if VERB in path.read_text("utf-8")}
    assert said == {"support/robots/emulators.py", *TYPED}
