"""PolyScope X's Robot API, asked for power, brakes and unlocking: the client, and what stands for a controller."""

from __future__ import annotations

import http.client
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from support.robots.emulators import address

from labctl.devices import load
from labctl.drivers.common.robot_tables import UR5E
from labctl.drivers.ur.emulator.body import IDLE, NORMAL, PLAYING, POWER_OFF, PROTECTIVE, RUNNING, STOPPED, Body
from labctl.drivers.ur.emulator.dashboard import Dashboard
from labctl.drivers.ur.emulator.robot_api import RobotApiServer, request_end
from labctl.drivers.ur.robot_api import BASE, RobotApi
from labctl.errors import DeviceRefused, InputError
from labctl.testing.given import FIXTURE

Answer = Callable[[str, str, str], tuple[int, dict[str, str], dict[str, str]]]


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever answers shares this machine."""
    monkeypatch.setattr("labctl.drivers.ur.robot_api.QUESTION_S", 60.0)


@contextmanager
def served(answer: Answer) -> Iterator[RobotApi]:
    """A client of `answer(method, path, body)` -> status, head, table."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            size = int(self.headers.get("Content-Length", 0))
            status, head, table = answer(self.command, self.path, self.rfile.read(size).decode())
            text = json.dumps(table).encode()
            self.send_response(status)
            for name, value in {**head, "Content-Length": str(len(text))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text)

        do_PUT = do_GET

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield RobotApi("127.0.0.1", server.server_address[1])
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def done(api: RobotApi) -> None:
    """Wait for the change that is under way."""
    assert api._change is not None
    api._change.join(60)


def body(version: tuple[int, int, int, int] = (10, 12, 0, 0)) -> tuple[Body, RobotApiServer]:
    found = Body(UR5E, 0.002)

    def stop() -> None:
        found.runtime = STOPPED

    return found, RobotApiServer(Dashboard(found, "UR5", "10.12.0", "1", stop), version)


def request(method: str, path: str, table: object = None) -> str:
    text = "" if table is None else json.dumps(table)
    return f"{method} {BASE}{path} HTTP/1.1\r\nHost: a\r\nContent-Length: {len(text)}\r\n\r\n{text}"


def asked(server: RobotApiServer, method: str, path: str, table: object = None) -> tuple[int, dict[str, str]]:
    text = request(method, path, table)
    assert request_end(text + "more") == len(text) and request_end(text[:-1]) == 0
    head, _, said = server.answer(text).partition("\r\n\r\n")
    assert f"Content-Length: {len(said)}" in head
    return int(head.split()[1]), json.loads(said)


# -- the client


def test_the_paths_and_actions_are_those_of_universal_robots_own_client() -> None:
    """Universal_Robots_Client_Library 2.13, src/ur/dashboard_client_implementation_x.cpp."""
    heard: list[tuple[str, str, str]] = []

    def answer(method: str, path: str, text: str) -> tuple[int, dict[str, str], dict[str, str]]:
        heard.append((method, path, text))
        return 200, {}, {"mode": "REMOTE"}

    with served(answer) as api:
        assert api.in_remote_control() is True
        for change in (api.power_on, api.release_brakes, api.unlock):
            change()
            done(api)
        api.end_program()
    root = "/universal-robots/robot-api"
    assert heard == [
        ("GET", f"{root}/system/v1/controlmode", ""),
        ("PUT", f"{root}/robotstate/v1/state", '{"action": "POWER_ON"}'),
        ("PUT", f"{root}/robotstate/v1/state", '{"action": "BRAKE_RELEASE"}'),
        ("PUT", f"{root}/robotstate/v1/state", '{"action": "UNLOCK_PROTECTIVE_STOP"}'),
        ("PUT", f"{root}/program/v1/state", '{"action": "stop"}'),
    ]


def test_a_controller_that_answers_only_when_it_is_done_holds_nobody_up_and_is_asked_once() -> None:
    go, heard = threading.Event(), []

    def answer(method: str, path: str, text: str) -> tuple[int, dict[str, str], dict[str, str]]:
        heard.append(text)
        return (200 if go.wait(60) else 500), {}, {}

    with served(answer) as api:
        for _ in range(5):
            api.power_on()
        go.set()
        done(api)
    assert len(heard) == 1


def test_a_refusal_is_said_in_the_controllers_words_until_it_is_none() -> None:
    answers = iter([409, 409, 200, 200])

    def answer(method: str, path: str, text: str) -> tuple[int, dict[str, str], dict[str, str]]:
        return next(answers), {}, {"message": "short", "details": "wait for 5 s"}

    with served(answer) as api:
        api.unlock()
        done(api)
        with pytest.raises(DeviceRefused, match=r"unlock .*refused \(409, wait for 5 s\)"):
            api.unlock()
        done(api)
        with pytest.raises(DeviceRefused):
            api.unlock()
        done(api)
        api.unlock()
        done(api)


def test_the_refusal_of_one_change_is_not_said_of_another() -> None:
    with served(lambda method, path, text: (409 if "UNLOCK" in text else 200, {}, {})) as api:
        api.unlock()
        done(api)
        api.power_on()
        done(api)


def test_a_path_that_has_moved_is_followed_on_the_same_controller() -> None:
    heard: list[tuple[str, str]] = []

    def answer(method: str, path: str, text: str) -> tuple[int, dict[str, str], dict[str, str]]:
        heard.append((path, text))
        if path.endswith("/v1/state"):
            return 308, {"Location": "http://elsewhere.invalid/universal-robots/robot-api/robotstate/v2/state"}, {}
        return 200, {}, {}

    with served(answer) as api:
        api.power_on()
        done(api)
        api.power_on()
    assert heard[1] == ("/universal-robots/robot-api/robotstate/v2/state", '{"action": "POWER_ON"}')
    with served(lambda method, path, text: (307, {"Location": path}, {})) as api:
        api.power_on()
        done(api)
        with pytest.raises(DeviceRefused, match="on and on"):
            api.power_on()


@pytest.mark.parametrize(("status", "mode", "says"), [(200, "LOCAL", False), (404, "", None), (200, "REMOTE", True)])
def test_remote_control_is_what_the_controller_says_and_unknown_where_it_does_not(
    status: int, mode: str, says: bool | None
) -> None:
    with served(lambda *_: (status, {}, {"mode": mode})) as api:
        assert api.in_remote_control() is says


def test_where_nobody_answers_it_is_said_and_a_program_is_sent_all_the_same() -> None:
    api = RobotApi(address(), 8080)
    assert api.in_remote_control() is None
    api.end_program()
    api.power_on()
    done(api)
    with pytest.raises(DeviceRefused, match=r"port 8080 .*at the pendant"):
        api.power_on()


# -- what stands for a controller


def test_an_emulated_polyscope_x_is_powered_on_released_unlocked_and_its_program_stopped() -> None:
    robot, server = body()
    robot.power_off()
    assert asked(server, "GET", "/robotstate/v1/robotmode") == (200, {"mode": "POWER_OFF"})
    for action, mode in (("POWER_ON", IDLE), ("BRAKE_RELEASE", RUNNING)):
        assert asked(server, "PUT", "/robotstate/v1/state", {"action": action})[0] == 200
        for _ in range(1000):
            robot.cycle()
        assert robot.robot_mode == mode
    robot.runtime = PLAYING
    assert asked(server, "GET", "/program/v1/state") == (200, {"state": "PLAYING"})
    assert asked(server, "PUT", "/program/v1/state", {"action": "stop"})[1]["state"] == "STOPPED"
    robot.protective_stop()
    assert robot.safety_mode == PROTECTIVE
    assert asked(server, "GET", "/robotstate/v1/safetymode") == (200, {"mode": "PROTECTIVE_STOP"})
    assert asked(server, "PUT", "/robotstate/v1/state", {"action": "UNLOCK_PROTECTIVE_STOP"})[0] == 200
    assert robot.safety_mode == NORMAL
    assert asked(server, "PUT", "/robotstate/v1/state", {"action": "UNLOCK_PROTECTIVE_STOP"})[0] == 409
    assert asked(server, "PUT", "/robotstate/v1/state", {"action": "POWER_OFF"})[0] == 200
    assert robot.robot_mode == POWER_OFF


def test_an_emulated_polyscope_x_refuses_what_it_does_not_know_and_everything_in_local_control() -> None:
    robot, server = body()
    assert asked(server, "PUT", "/robotstate/v1/state", {"action": "DANCE"})[0] == 400
    assert asked(server, "PUT", "/robotstate/v1/state", ["POWER_ON"])[0] == 400
    assert asked(server, "GET", "/nothing")[0] == 404
    assert asked(server, "GET", "/system/v1/controlmode") == (200, {"mode": "REMOTE"})
    robot.remote = False
    assert asked(server, "GET", "/system/v1/controlmode") == (200, {"mode": "LOCAL"})
    assert asked(server, "PUT", "/robotstate/v1/state", {"action": "POWER_OFF"})[0] == 403
    assert robot.robot_mode == RUNNING


def test_before_10_12_the_modes_are_not_to_be_asked_for() -> None:
    """The client library refuses to ask below the API's 3.1.4, "PolyScope 10.12.0 or higher"."""
    _, server = body((10, 11, 0, 0))
    assert asked(server, "GET", "/system/v1/controlmode")[0] == 404
    assert asked(server, "GET", "/openapi.json")[1]["info"] == {"title": "Robot API", "version": "3.0.0"}


def test_an_emulator_serves_its_robot_api_over_http() -> None:
    host = address()
    options = {"polyscope": "10.12.0", "robot_api_port": 8080}
    controller = load("labctl.drivers.ur.emulator.models:ur5e", options, host=host, fixture=FIXTURE)
    ends = threading.Event()
    loop = threading.Thread(target=controller.run, args=(ends.is_set,))
    loop.start()
    try:
        assert controller.ports["Robot API"] == 8080 and "dashboard" not in controller.ports
        client = http.client.HTTPConnection(host, 8080, timeout=60)
        for _ in range(2):  # twice on one connection
            client.request("GET", f"{BASE}/robotstate/v1/robotmode")
            answer = client.getresponse()
            assert (answer.status, json.loads(answer.read())) == (200, {"mode": "RUNNING"})
        client.close()
    finally:
        ends.set()
        loop.join()
        controller.close()


def test_an_emulator_that_may_not_serve_port_80_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    from labctl.drivers.ur.emulator import controller

    served = controller.LineServer

    def denied(host: str, port: int, *rest: object) -> object:
        if port == 80:
            raise PermissionError(13, "Permission denied")
        return served(host, port, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(controller, "LineServer", denied)
    with pytest.raises(InputError, match=r"port 80 cannot be bound .*robot_api_port=8080"):
        load("labctl.drivers.ur.emulator.models:ur5e", {"polyscope": "10.12.0"}, host=address(), fixture=FIXTURE)
