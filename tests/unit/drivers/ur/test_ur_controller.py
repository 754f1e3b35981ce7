"""Claims about the emulated UR controller that need no client."""

from __future__ import annotations

import sys
import threading
import tomllib

from support.robots.cells import ROOT
from support.robots.emulators import address

from labctl.devices import load


def test_it_can_be_asked_for_its_counts_while_it_goes_on_counting() -> None:
    fixture = tomllib.loads((ROOT / "fixtures" / "two_totes.toml").read_text())
    controller = load("labctl.drivers.ur.emulator.ur5e", {}, host=address(), fixture=fixture)
    controller._unsent.extend(range(controller._unsent.maxlen or 0))
    end, interval = threading.Event(), sys.getswitchinterval()

    def count() -> None:
        while not end.is_set():
            controller._unsent.append(1)

    loop = threading.Thread(target=count)
    sys.setswitchinterval(1e-6)
    loop.start()
    try:
        for _ in range(50):
            assert len(controller.stats()["unsent_s"]) == controller._unsent.maxlen
    finally:
        end.set()
        loop.join()
        sys.setswitchinterval(interval)
        controller.close()
