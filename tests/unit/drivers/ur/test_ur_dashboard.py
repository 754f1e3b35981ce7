"""The dashboard of a UR: the driver's client of it, and what stands for a controller."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from support.robots.emulators import address

from labctl.devices import load
from labctl.drivers.common.robot_tables import UR5E
from labctl.drivers.ur.emulator.body import POWER_OFF, PROTECTIVE, RUNNING, Body
from labctl.drivers.ur.emulator.controller import UrController
from labctl.drivers.ur.emulator.dashboard import LOCAL, Connection, Dashboard
from labctl.drivers.ur.words import IDLE
from labctl.errors import DeviceRefused
from labctl.testing.given import FIXTURE


class Served:
    """A client of an emulated controller that runs in this process."""

    def __init__(self, host: str, controller: UrController) -> None:
        pytest.importorskip("dashboard_client")
        from labctl.drivers.ur.dashboard import Dashboard

        self.body, self.client = controller.body, Dashboard(host, remote=True)
        self.refusals, self.texts = controller._dashboard.refusals, controller._texts

    def cut(self) -> None:
        """As the controller's software ends every connection, when it is started again."""
        for server in self.texts:
            for sock in server.sockets()[1:]:
                sock.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def served() -> Iterator[Served]:
    host, ends = address(), threading.Event()
    controller = load("labctl.drivers.ur.emulator.models:ur5e", {}, host=host, fixture=FIXTURE)
    loop = threading.Thread(target=controller.run, args=(ends.is_set,))
    loop.start()
    try:
        yield Served(host, controller)
    finally:
        ends.set()
        loop.join()
        controller.close()


def test_a_robot_that_was_in_local_control_obeys_once_a_person_has_switched(served: Served) -> None:
    """Its one connection went on being refused, as users of real robots tell, until labctl was started again."""
    served.body.remote = False
    assert served.client.in_remote_control() is False and served.client.serial() == "20195500001"
    served.body.protective_stop()
    with pytest.raises(DeviceRefused, match="switch robot to Remote Control mode"):
        served.client.unlock()
    assert served.body.safety_mode == PROTECTIVE
    served.body.remote = True
    assert served.client.in_remote_control() is True
    served.client.unlock()
    assert served.body.safety_mode != PROTECTIVE


def test_a_connection_that_was_in_local_control_is_refused_what_controls_until_it_is_made_anew() -> None:
    body = Body(UR5E, 0.002)
    dashboard = Dashboard(body, "UR5", "5.11.0", "20195500001", lambda: None)
    before = Connection(dashboard, body)
    body.remote = False
    assert before.answer("power off\n") == LOCAL and before.answer("is in remote control\n") == "false"
    body.remote = True
    assert before.answer("Power Off\n") == LOCAL and before.answer("robotmode\n") == "Robotmode: RUNNING"
    assert body.robot_mode == RUNNING and Connection(dashboard, body).answer("power off\n") == "Powering off"


@pytest.mark.parametrize(("verb", "mode"), [("power on", POWER_OFF), ("brake release", IDLE)])
def test_what_a_dashboard_does_not_obey_is_said_in_its_words(served: Served, verb: str, mode: int) -> None:
    """ur_rtde hears no answer to these: an operator acknowledged for ever, and nothing said why."""
    served.body.robot_mode = mode
    command = {"power on": served.client.power_on, "brake release": served.client.release_brakes}[verb]
    served.refusals[verb] = "Command is not allowed due to safety reasons"
    with pytest.raises(DeviceRefused, match=f"dashboard, {verb}: Command is not allowed due to safety reasons"):
        command()
    served.refusals.clear()
    command()


def test_a_dashboard_that_ended_its_connections_is_asked_again(served: Served) -> None:
    """Its client counts as connected after that, and failed at each question with a broken pipe."""
    assert served.client.in_remote_control() is True
    served.cut()
    assert served.client.in_remote_control() is True


def test_a_dashboard_that_is_switched_off_is_said_with_where_it_is_enabled() -> None:
    pytest.importorskip("dashboard_client")
    from labctl.drivers.ur.dashboard import Dashboard

    with pytest.raises(DeviceRefused, match=r"dashboard, remote control: it cannot be reached; .* Security, Services"):
        Dashboard(address(), remote=True).in_remote_control()


def test_a_dashboard_that_hears_and_says_nothing_is_no_answer() -> None:
    """ur_rtde says "Operation canceled" of it, which nobody had asked for."""
    pytest.importorskip("dashboard_client")
    from labctl.drivers.ur.dashboard import Dashboard

    with socket.create_server((address(), 29999)) as server:
        server.settimeout(60)
        client = Dashboard(server.getsockname()[0], remote=True)
        said = list[str]()

        def ask() -> None:
            with pytest.raises(DeviceRefused) as refused:
                client.release_brakes()
            said.append(str(refused.value))

        asking = threading.Thread(target=ask)
        asking.start()
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"Connected: Universal Robots Dashboard Server\n")
            asking.join()
    assert said == ["dashboard, brake release: no answer"]


@pytest.mark.parametrize(
    ("mode", "bits", "does"), [(POWER_OFF, 1, "power_on"), (IDLE, 1, "release_brakes"), (7, 1 << 2 | 1 << 10, "unlock")]
)
def test_a_robot_in_local_control_is_asked_for_nothing_and_a_person_for_remote_control(
    mode: int, bits: int, does: str
) -> None:
    pytest.importorskip("rtde_control")
    from labctl.drivers.ur.robot import UrLink

    remote, asked = [False], list[str]()
    link: Any = SimpleNamespace(
        _receive=SimpleNamespace(getSafetyStatusBits=lambda: bits, getRobotMode=lambda: mode),
        _options=SimpleNamespace(power_on=True),
        _switches=SimpleNamespace(
            in_remote_control=lambda: remote[0],
            **{name: lambda name=name: asked.append(name) for name in ("power_on", "release_brakes", "unlock")},
        ),
    )
    with pytest.raises(DeviceRefused, match="local control: switch it to remote control at the pendant"):
        UrLink.recover(link)
    assert asked == []
    remote[0] = True
    assert UrLink.recover(link) is False and asked == [does]
