"""`labctl emulate` as a person types it, and its control port as a test uses it."""

from __future__ import annotations

import json
import socket
import subprocess
import sys

import pytest
from support.json_documents import judged
from support.robots.emulators import Emulator, address
from support.runs.live_campaign import end_of

from labctl.drivers.sim.control_link import MOST_BYTES, PORT
from labctl.errors import DeviceRefused

pytestmark = pytest.mark.real_time


@pytest.fixture(params=["fr3", "ur5e"])
def emulator(request):
    made = Emulator(request.param)
    yield made
    made.end()


def typed(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-P", "-c", "from labctl.cli import main; main()", "emulate", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def test_an_evening_with_an_emulator(emulator: Emulator) -> None:
    at = (emulator.name, "--host", emulator.host)
    stats = typed(*at, "--stats", "--json")
    assert judged(stats.stdout)["stats"]["robot_time_s"] >= 0
    fault = "reflex" if emulator.name == "fr3" else "protective_stop"
    assert typed(*at, "--inject", fault).stdout == f"{fault}: injected\n"
    unknown = typed(*at, "--inject", "earthquake")
    assert unknown.returncode == 2 and "no fault 'earthquake'; known:" in unknown.stderr
    assert "Traceback" not in unknown.stderr and len(unknown.stderr.splitlines()) == 1
    fault, key, value = ("silence", "seconds", "2s") if emulator.name == "fr3" else ("speed_slider", "fraction", "half")
    for wrong, says in ((f"{key}={value}", f"{key} must be a number from 0"), ("second=10", "no argument 'second'")):
        refused = typed(*at, "--inject", fault, "--arg", wrong)
        assert (refused.returncode, refused.stdout) == (2, "") and says in refused.stderr
        assert len(refused.stderr.splitlines()) == 1
    cleared = typed(*at, "--clear", "--stats")
    assert cleared.returncode == 0 and "standing faults cleared\nstates_sent: " in cleared.stdout
    second = typed(*at)
    assert second.returncode == 2 and second.stderr.endswith(
        "cannot be bound (Address already in use); another emulator runs there: end it, or give another --host "
        "(127.x.y.z)\n"
    )
    said = emulator.end()
    assert emulator.process.returncode == 0
    assert "Not a robot" in said and "of robot time" in said
    gone = typed(*at, "--stats")
    assert gone.returncode == 69 and "no emulator answers" in gone.stderr


@pytest.mark.parametrize("words", [("fr3", "--host", "192.0.2.1"), ("fr3", "--host", "0.0.0.0"), ("atlas",)])
def test_what_it_will_not_do_is_one_line(words: tuple[str, ...]) -> None:
    done = typed(*words)
    assert done.returncode == 2 and len(done.stderr.splitlines()) == 1, done.stderr
    assert "loopback" in done.stderr or "no emulator named" in done.stderr


def test_the_side_door_survives_garbage_and_serves_two_at_once() -> None:
    emulator = Emulator("ur5")
    try:
        with socket.create_connection((emulator.host, PORT), 60) as rude:
            for line in (b"\xff\xfe\n", b"[]\n", b'{"do": "dance"}\n', b'{"do": "stage"}\n'):
                rude.sendall(line)
                assert json.loads(rude.recv(65536))["ok"] is False
            assert emulator.stats()["program"] == "none"
            rude.sendall(b"x" * (MOST_BYTES + 1))  # what it leaves unread would reset the connection
            assert b"at most" in rude.recv(65536)
        with pytest.raises(DeviceRefused, match="has no object"):
            condition = {"object": "elephants", "layout": "layout-1", "items": 1}
            emulator.link.ask({"do": "stage", "condition": condition, "seed": 1})
        emulator.link.ask({"do": "quit"})
        assert end_of(emulator.process) == 0
    finally:
        emulator.end()


def test_an_unknown_address_is_told_from_a_refusal() -> None:
    done = typed("fr3", "--host", address(), "--stats")
    assert done.returncode == 69 and "labctl emulate" in done.stderr
