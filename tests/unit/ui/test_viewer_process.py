"""The viewer is a child that says why it failed, ends when asked to, and is never started where it cannot show."""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from labctl.errors import InputError, LabctlError, MissingExtra, StateError
from labctl.loopback import LOOPBACK
from labctl.ui.rerun import viewer_page, viewer_process
from labctl.ui.rerun.viewer_data import LARGEST, data_handed_on
from labctl.ui.rerun.viewer_page import listening

ARGUMENTS = "import json, sys; json.dump(sys.argv[1:], open('{seen}', 'w'))"


@pytest.fixture
def viewer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Make a stand-in for the viewer from a line of Python."""

    def make(line: str) -> None:
        path = tmp_path / "stand-in"
        path.write_text(f"#!{sys.executable}\n{line}\n")
        path.chmod(0o700)
        monkeypatch.setattr(viewer_process, "binary", lambda: path)

    return make


def test_a_window_is_given_its_recordings_and_listens_on_loopback_alone(viewer, tmp_path):
    viewer(ARGUMENTS.format(seen=tmp_path / "seen.json"))
    with viewer_process.window([Path("a.rrd"), Path("b.rrd")], tmp_path) as child:
        viewer_process.outcome(child, tmp_path)
    said = json.loads((tmp_path / "seen.json").read_text())
    assert said[said.index("--bind") + 1] == "127.0.0.1" and said[-2:] == ["a.rrd", "b.rrd"]
    assert 1024 <= int(said[said.index("--port") + 1]) <= 65535


def test_a_viewer_that_fails_says_why_in_one_line(viewer, tmp_path):
    viewer(
        "import sys; print('\\x1b[2mone\\x1b[0m', file=sys.stderr); sys.exit('\\x1b[31mERROR\\x1b[0m no graphics card')"
    )
    with viewer_process.window([], tmp_path) as child, pytest.raises(LabctlError) as failure:
        viewer_process.outcome(child, tmp_path)
    text = str(failure.value)
    assert "ERROR no graphics card" in text and "--web" in text and "\x1b" not in text and "\n" not in text


def test_who_waits_for_a_viewer_ends_by_a_signal_whose_exception_was_lost(viewer, tmp_path):
    """It waited for ever beside a viewer that went on: Python ignores what is raised in a finaliser."""
    viewer("import signal; signal.pause()")
    with viewer_process.window([], tmp_path) as child, pytest.raises(KeyboardInterrupt):
        viewer_process.outcome(child, tmp_path, lambda: True)


def test_a_page_whose_viewer_dies_is_refused_with_its_words(viewer, tmp_path):
    viewer("import sys; sys.exit('Error: port is taken')")
    with (
        pytest.raises(LabctlError, match="did not start: Error: port is taken"),
        viewer_process.web([], viewer_process.web_ports(None), tmp_path),
    ):
        raise AssertionError("a dead viewer was served")


def test_a_viewer_that_will_not_end_is_killed(viewer, tmp_path, monkeypatch):
    monkeypatch.setattr(viewer_process, "STOP_S", 0.3)
    viewer(
        "import signal, pathlib; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
        f"pathlib.Path('{tmp_path}/up').touch(); signal.pause(); signal.pause()"
    )
    with viewer_process.window([], tmp_path) as child:
        while not (tmp_path / "up").exists():
            assert child.poll() is None
    assert child.returncode == -9


def test_its_settings_say_that_it_reports_nothing_and_the_net_is_out_of_reach(tmp_path, monkeypatch):
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    made = viewer_process.environment(tmp_path)
    assert (
        json.loads((Path(made["XDG_CONFIG_HOME"]) / "rerun/analytics.json").read_text())["analytics_enabled"] is False
    )
    assert {made[name] for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "https_proxy")} == {"http://127.0.0.1:9"}
    assert "127.0.0.1" in made["NO_PROXY"] and made["PATH"] == os.environ["PATH"]


def test_where_there_is_no_display_or_no_rerun_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    with pytest.raises(StateError, match="--web"):
        viewer_process.need_display()
    monkeypatch.setenv("WAYLAND_DISPLAY", "wayland-0")
    viewer_process.need_display()
    monkeypatch.setattr(viewer_process.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"labctl\[rerun\]"):
        viewer_process.binary()


def test_a_port_that_is_taken_is_refused():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(InputError, match="cannot be used"):
            viewer_process.web_ports(taken.getsockname()[1])
    assert len(set(viewer_process.web_ports(None))) == 2


@contextmanager
def serving(body: bytes, **headers: str) -> Iterator[int]:
    """A web server that gives one answer to everything; its port."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            for name, value in {"Content-Length": str(len(body)), **headers}.items():
                self.send_header(name.replace("_", "-"), value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def asked(port: int, path: str = "/", **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_a_page_is_handed_on_as_it_is_under_the_rule():
    wasm = bytes(range(256)) * 64
    with serving(wasm, Content_Type="application/wasm", Content_Encoding="gzip", Set_Cookie="a=b") as inner:
        port = viewer_process.free_port()
        with viewer_page.handed_on(inner, port, 4321):
            answer, body = asked(port, "/re_viewer_bg.wasm?x=1")
            assert (answer.status, body) == (200, wasm)
            assert answer.headers["Content-Type"] == "application/wasm" and answer.headers["Content-Encoding"] == "gzip"
            assert "Set-Cookie" not in answer.headers
            rule = answer.headers["Content-Security-Policy"]
            assert rule.endswith("http://127.0.0.1:4321") and "*" not in rule and "https:" not in rule
            assert asked(port, Host="localhost:" + str(port))[0].status == 200
            assert asked(port, Host="evil.example")[0].status == 403
        with pytest.raises(ConnectionRefusedError):
            asked(port)


def test_a_viewer_that_is_gone_is_said():
    with socket.socket() as mute:  # bound, so that nobody else gets the port, and nobody listens there
        mute.bind(("127.0.0.1", 0))
        port = viewer_process.free_port()
        with viewer_page.handed_on(mute.getsockname()[1], port, 1):
            assert asked(port)[0].status == 502


FOREIGN = "http://evil.example"


class Viewer:
    """A stand-in for the viewer: its port, what it was asked, and an answer of two parts, the second when let."""

    def __init__(self) -> None:
        self.port = viewer_process.free_port()
        self.asked: list[tuple[str, str, bytes, dict[str, str]]] = []
        self.go_on = threading.Event()

    @contextmanager
    def serving(self) -> Iterator[None]:
        viewer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
                headers = {name.lower(): value for name, value in self.headers.items()}
                viewer.asked.append((self.command, self.path, body, headers))
                self.send_response_only(200)
                self.send_header("Access-Control-Allow-Origin", f"of {self.headers['Origin']}")
                self.send_header("Transfer-Encoding", "chunked")
                self.end_headers()
                self.wfile.write(b"3\r\none\r\n")
                viewer.go_on.wait(60)
                self.wfile.write(b"3\r\ntwo\r\n0\r\n\r\n")

            do_OPTIONS = do_POST

            def log_message(self, format: str, *args: object) -> None: ...

        with listening(self.port, Handler):
            yield


@pytest.fixture
def handed() -> Iterator[Viewer]:
    made = Viewer()
    with made.serving():
        yield made


def answer(port: int, method: str, body: bytes | None = None, **headers: str) -> http.client.HTTPResponse:
    asking = http.client.HTTPConnection(LOOPBACK, port, timeout=60)
    asking.request(method, "/Service/Read", body=body, headers={k.replace("_", "-"): v for k, v in headers.items()})
    return asking.getresponse()


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_a_question_and_each_part_of_its_answer_are_handed_on_with_what_is_said_of_other_pages(
    handed: Viewer, method: str
) -> None:
    """A live view's answer ends with the run: its parts do not wait for its end."""
    port = viewer_process.free_port()
    with data_handed_on(handed.port, port):
        got = answer(port, method, b"\0which\xff", Origin="http://127.0.0.1:1", X_Grpc_Web="1")
        assert got.status == 200 and got.headers["Access-Control-Allow-Origin"] == "of http://127.0.0.1:1"
        assert got.read(3) == b"one", "before there is more"
        handed.go_on.set()
        assert got.read() == b"two"
        ((command, path, body, headers),) = handed.asked
        assert (command, path, body) == (method, "/Service/Read", b"\0which\xff")
        assert headers["x-grpc-web"] == "1" and headers["host"] == f"{LOOPBACK}:{handed.port}"


@pytest.mark.parametrize("method", ["POST", "OPTIONS"])
def test_a_site_whose_name_was_led_here_is_refused_and_the_viewer_not_asked(handed: Viewer, method: str) -> None:
    """Its page is of the same origin then: no browser asks for leave (CORS)."""
    port = viewer_process.free_port()
    with data_handed_on(handed.port, port):
        for host in (f"evil.example:{port}", f"{LOOPBACK}:{port + 1}", "", "["):
            assert answer(port, method, b"", Host=host, Origin=FOREIGN).status == 403, host
        assert handed.asked == []
        handed.go_on.set()
        assert answer(port, method, b"", Host=f"localhost:{port}").status == 200


def test_a_question_that_no_page_asks_and_a_viewer_that_is_gone_are_said() -> None:
    port = viewer_process.free_port()
    with data_handed_on(viewer_process.free_port(), port):
        assert answer(port, "POST", b"").status == 502
        for length in (str(LARGEST + 1), "-1", "many"):
            assert answer(port, "POST", None, Content_Length=length).status == 413, length
