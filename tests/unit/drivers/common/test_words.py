"""Every state of a controller is one line that says what it is and what to do."""

import itertools

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
    for mode, bit, runtime in itertools.product(range(-1, 9), [None, 2, 4, 5, 6, 7, 8, 9], range(6)):
        bits = 1 if bit is None else 1 << bit
        status = ur_words.what_is_wrong(mode, bits, runtime, attached=True, power_on=True)
        case = f"mode {mode}, bit {bit}, runtime {runtime}: {status}"
        assert (status.mode == "idle") == (mode == 7 and bit is None and runtime == 2), case
        assert status.mode == "idle" or status.reason, case


def test_a_gripper_that_is_active_and_sound_has_no_words_and_all_others_do() -> None:
    assert fault_words(3, 0) == ""
    assert all(fault_words(state, 0) for state in (0, 1, 2)) and fault_words(3, 10) == "undervoltage"
