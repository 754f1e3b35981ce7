"""Every state of a controller is one line that says what it is and what to do."""

import itertools
import re

import pytest

from labctl.drivers.franka import words as franka_words
from labctl.drivers.robotiq.scales import fault_words
from labctl.drivers.ur import words as ur_words

MODES = ("Idle", "Move", "Guiding", "Reflex", "UserStopped", "AutomaticErrorRecovery", "Other")


@pytest.mark.parametrize("mode", MODES)
def test_every_mode_of_the_fci_has_its_words(mode: str) -> None:
    status = franka_words.what_is_wrong(mode, [])
    assert (status.mode == "idle") == (mode in ("Idle", "Move"))
    assert "\n" not in status.reason and (status.reason or mode in ("Idle", "Move"))


def test_a_latched_reflex_without_an_error_is_a_stop_all_the_same() -> None:
    status = franka_words.what_is_wrong("Reflex", [])
    assert status.mode == "safety_stop" and "names no cause" in status.reason


def test_a_ur_is_idle_only_when_it_runs_our_program_in_a_normal_state() -> None:
    for mode, bit, runtime in itertools.product(range(-1, 9), [None, *range(2, 11)], range(6)):
        bits = 1 if bit is None else 1 << bit
        status = ur_words.what_is_wrong(mode, bits, runtime, attached=True, power_on=True)
        case = f"mode {mode}, bit {bit}, runtime {runtime}: {status}"
        assert (status.mode == "idle") == (mode == 7 and bit is None and runtime == 2), case
        assert status.mode == "idle" or status.reason, case


@pytest.mark.parametrize(
    ("bits", "said"),
    [
        (1 << 3, "recovery mode: .* move it back at the pendant"),
        (1 << 10, "safety stop \\(an enabling device, or the safeguard"),
        (1 << 10 | 1 << 2, "protective stop"),
        (1 << 10 | 1 << 4, "safeguard stop"),
        (1 << 10 | 1 << 7, "emergency stop"),
    ],
)
@pytest.mark.parametrize("attached", [True, False])
def test_a_ur_that_its_safety_system_holds_says_so_and_not_that_its_program_is_missing(
    bits: int, said: str, *, attached: bool
) -> None:
    """The bits are of RTDE's safety_status_bits; 10, "stopped due to safety", stands beside most of the others."""
    status = ur_words.what_is_wrong(7, bits, 1, attached=attached, power_on=True)
    assert re.search(said, status.reason) and "program" not in status.reason


@pytest.mark.parametrize(
    ("mode", "bit", "kind"), [(7, 8, "safety_stop"), (7, 3, "safety_stop"), (7, 9, "fault"), (3, None, "fault")]
)
def test_a_ur_beyond_its_safety_limits_has_stopped_itself_and_one_that_is_broken_or_off_has_a_fault(
    mode: int, bit: int | None, kind: str
) -> None:
    """Whoever led it there is scored by it, as for a protective stop; of a fault an episode is void."""
    status = ur_words.what_is_wrong(mode, 1 if bit is None else 1 << bit, 1, attached=True, power_on=True)
    assert status.mode == kind


def test_a_gripper_that_is_active_and_sound_has_no_words_and_all_others_do() -> None:
    assert fault_words(3, 0) == ""
    assert all(fault_words(state, 0) for state in (0, 1, 2)) and fault_words(3, 10) == "undervoltage"
