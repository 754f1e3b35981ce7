"""Alerts on loopback: what an ntfy topic, a webhook and a mail server get, and that no failure says a secret."""

from __future__ import annotations

import json
import queue
import re
import socket
import socketserver
import threading
import urllib.error
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from support.json_documents import judged
from support.runs.campaigns import make_campaign

from labctl import cli
from labctl.alerts import courier
from labctl.alerts.sending import mailbox, ways
from labctl.alerts.watch import Alert, Brief, HoldSeen
from labctl.clock import MonotonicClock
from labctl.config.alerts import AlertsTable
from labctl.config.cell_schema import parse_lab
from labctl.errors import InputError, StateError
from labctl.runtime.campaign_run import run_campaign

SECRET = "s3cr3t-topic"
ALERT = Alert("stop", "labctl fr3, first: stop", "somebody stopped the robot")
PATIENCE_S = 60.0


class Got:
    """A loopback HTTP server: what it got, and what it answers."""

    def __init__(self) -> None:
        self.requests: queue.Queue[tuple[str, dict[str, str], bytes]] = queue.Queue()
        self.status, got = 200, self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                got.requests.put((self.path, dict(self.headers), body))
                self.send_response(got.status)
                if got.status == 302:
                    self.send_header("Location", f"http://127.0.0.1:{got.port}/elsewhere")
                self.end_headers()
                self.wfile.write(SECRET.encode())

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_address[1]
        self.address = f"http://127.0.0.1:{self.port}/{SECRET}"


@pytest.fixture
def got() -> Iterator[Got]:
    found = Got()
    thread = threading.Thread(target=found.server.serve_forever, args=(0.02,))
    thread.start()
    yield found
    found.server.shutdown()
    found.server.server_close()
    thread.join()


class Mailbox(socketserver.StreamRequestHandler):
    """As much of SMTP as a client needs to hand over a message."""

    def handle(self) -> None:
        box: queue.Queue[list[str]] = self.server.box  # type: ignore[attr-defined]
        said: list[str] = []
        self.wfile.write(b"220 loopback\r\n")
        while line := self.rfile.readline().decode().rstrip():
            said.append(line)
            if line.upper() == "DATA":
                self.wfile.write(b"354 go on\r\n")
                while (text := self.rfile.readline().decode().rstrip("\r\n")) != ".":
                    said.append(text)
                box.put(said)
            self.wfile.write(b"221 bye\r\n" if line.upper() == "QUIT" else b"250 ok\r\n")


@pytest.fixture
def mail() -> Iterator[tuple[int, queue.Queue[list[str]]]]:
    server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Mailbox)
    server.box = queue.Queue()  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    yield server.server_address[1], server.box  # type: ignore[attr-defined]
    server.shutdown()
    server.server_close()
    thread.join()


def table(**named: Any) -> AlertsTable:
    return AlertsTable.model_validate({"timeout_s": 30.0, **named})


def test_an_ntfy_topic_gets_text_with_title_priority_and_token(got: Got):
    by = ways(table(ntfy={"address_env": "TOPIC", "token_env": "TOKEN"}), {"TOPIC": got.address, "TOKEN": "t0k3n"})
    by["ntfy"](ALERT)
    path, headers, body = got.requests.get(timeout=PATIENCE_S)
    assert (path, body.decode()) == (f"/{SECRET}", ALERT.text)
    assert (headers["Title"], headers["Priority"], headers["Authorization"]) == (ALERT.title, "urgent", "Bearer t0k3n")


def test_a_webhook_gets_json(got: Got):
    ways(table(webhook={"address": got.address}), {})["webhook"](ALERT)
    _, headers, body = got.requests.get(timeout=PATIENCE_S)
    assert headers["Content-Type"] == "application/json"
    expected = {"schema": "labctl.alert/1", "kind": "stop", "title": ALERT.title, "text": ALERT.text}
    assert json.loads(body) == expected


def test_a_mail_server_gets_a_message(mail: tuple[int, queue.Queue[list[str]]]):
    port, box = mail
    email = {"server": "127.0.0.1", "port": port, "security": "none", "sender": "rig@lab", "to": ["a@lab", "b@lab"]}
    ways(table(email=email), {})["email"](ALERT)
    said = box.get(timeout=PATIENCE_S)
    assert f"Subject: {ALERT.title}" in said and ALERT.text in said
    assert [line.lower() for line in said if line.upper().startswith("RCPT")] == ["rcpt to:<a@lab>", "rcpt to:<b@lab>"]


@pytest.mark.parametrize("status", [302, 403, 500])
def test_a_refusal_says_its_number_and_no_secret(got: Got, status: int):
    got.status = status
    by = ways(table(ntfy={"address": got.address, "token_env": "TOKEN"}), {"TOKEN": "t0k3n"})
    with pytest.raises(StateError) as refused:
        by["ntfy"](ALERT)
    assert str(refused.value) == f"the server answered {status}"
    assert got.requests.get(timeout=PATIENCE_S)[0] == f"/{SECRET}" and got.requests.empty(), "no redirect is followed"
    answer = refused.value.__context__
    assert isinstance(answer, urllib.error.HTTPError) and answer.closed, "the connection is not left open"


def test_who_is_not_there_is_said_without_an_address():
    with socket.socket() as mute:  # bound, so that nobody else gets the port, and nobody listens there
        mute.bind(("127.0.0.1", 0))
        port = mute.getsockname()[1]
        address = f"http://127.0.0.1:{port}/{SECRET}"
        email = {"server": "127.0.0.1", "port": port, "security": "none", "sender": "rig@lab", "to": ["a@lab"]}
        by = ways(table(webhook={"address": address}, email=email), {})
        for send in by.values():
            with pytest.raises(StateError, match="ConnectionRefusedError") as refused:
                send(ALERT)
            assert SECRET not in str(refused.value) and str(port) not in str(refused.value)


def test_a_variable_that_is_not_set_is_named():
    with pytest.raises(InputError, match="environment variable NO_TOPIC, which is not set"):
        ways(table(ntfy={"address_env": "NO_TOPIC"}), {})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[alerts]\n", "give [alerts.ntfy], [alerts.webhook] or [alerts.email]"),
        ("[alerts.ntfy]\n", "give one of address and address_env"),
        ('[alerts.ntfy]\naddress = "ftp://x"\n', "address"),
        ('[alerts]\non = ["supper"]\n[alerts.ntfy]\naddress = "http://x"\n', "'night'"),
        ('[alerts.email]\nserver = "x"\nsender = "r@x"\nto = ["a@x"]\nuser = "u"\n', "user and password_env go"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_line(text: str, said: str):
    with pytest.raises(InputError) as refused:
        parse_lab(text, "lab.toml")
    assert said in str(refused.value) and str(refused.value).startswith("lab.toml")


@pytest.mark.parametrize("key", ["sender", "to"])
@pytest.mark.parametrize(
    "wrong", ["Cell 3 <", "lab@[192.168.1.5", "lab(at)x.de", "Lab, Cell 3 <lab@x.de>", '"Lab <lab@x.de>', "@"]
)
def test_a_mail_address_that_cannot_be_read_is_said_where_it_is_sent_and_not_repeated(key: str, wrong: str):
    """The first two ended the thread that sends mail; the others went out as an address without a domain. The lab's
    other verbs, which send no mail, go on.
    """
    keys = {"server": ["x"], "sender": ["r@x"], "to": ["a@x"], key: [wrong]}
    listed = "".join(f"{name} = {json.dumps(one if name == 'to' else one[0])}\n" for name, one in keys.items())
    alerts = parse_lab(f"[alerts.email]\n{listed}", "lab.toml").alerts
    assert alerts is not None
    with pytest.raises(StateError, match=rf"{key} of \[alerts.email\] in lab.toml is no mail address") as refused:
        ways(alerts, {})["email"](ALERT)
    assert wrong not in str(refused.value) or wrong == "@"


@pytest.mark.parametrize(
    "right",
    [
        "lab@x.de",
        "Cell 3 <lab@x.de>",
        '"Lab, Cell 3" <lab@x.de>',
        "Jürgen <j@büro.de>",
        "J. Doe <j.doe+lab@x.de>",
        "root@localhost",
        "root",
        "lab@[192.168.1.5]",
        "a@x.de, B <b@x.de>",
        "Smith (night) <a@x.de>",
        "a@x.de (night)",
        '"a b"@x.de',
        "team: a@x.de, b@x.de;",
    ],
)
def test_a_mail_address_that_mail_reads_is_taken(right: str):
    assert mailbox(right)


def test_a_way_that_fails_in_a_manner_nobody_thought_of_goes_on_with_the_next():
    said: list[str] = []

    def send(alert: Alert) -> None:
        if not said:
            raise IndexError(SECRET)

    way = courier.Way("email", send, said.append)
    for _ in range(2):
        way.put(ALERT)
    way.close()
    assert said == ["email: not sent: stop: IndexError, a bug in labctl", "email: sent: stop"]


def lines(*briefs: Brief | dict[str, bool]) -> list[bytes]:
    return [json.dumps(one).encode() for one in briefs]


def a_brief(*holds: str, done: int = 0) -> Brief:
    standing: list[HoldSeen] = [{"code": code, "text": f"why {code}", "personal": True} for code in holds]
    return {
        "holds": standing,
        "campaign": "first",
        "cell": "fr3",
        "session": "s-1",
        "block": 0,
        "blocks": 3,
        "progress": [done, 12],
    }


def test_every_way_gets_what_was_asked_for_though_another_is_dead(got: Got):
    asked = table(on=["stop", "night"], ntfy={"address": "http://127.0.0.1:1/"}, webhook={"address": got.address})
    said: list[str] = []
    heard = lines(a_brief(), a_brief("unacknowledged:operator_stop"), a_brief("cell_faulted"), courier.OVER)
    courier.serve([b"{\n", *heard], asked, ways(asked, {}), said.append, MonotonicClock())
    bodies = [json.loads(got.requests.get(timeout=PATIENCE_S)[2]) for _ in range(2)]
    assert [body["kind"] for body in bodies] == ["stop", "night"], "no fault was asked for"
    assert said[0] == "a change that cannot be read was left out"
    assert sum(line.startswith("ntfy: not sent: ") for line in said) == 2
    assert "webhook: sent: stop" in said and SECRET not in str(said)


def test_a_slow_network_drops_what_waits_beyond_its_queue_and_says_so():
    going, may_go, said = threading.Event(), threading.Event(), []

    def send(alert: Alert) -> None:
        going.set()
        assert may_go.wait(PATIENCE_S)

    way = courier.Way("slow", send, said.append)
    way.put(ALERT)
    assert going.wait(PATIENCE_S), "one is on its way"
    for _ in range(courier.WAITING + 3):
        way.put(ALERT)
    assert said == [f"slow: dropped, {courier.WAITING} wait already: stop"] * 3
    may_go.set()
    way.close()
    assert said.count("slow: sent: stop") == courier.WAITING + 1


def a_lab(tmp_path: Path, settings: str) -> Path:
    folder = tmp_path / "campaigns" / "first"
    folder.mkdir(parents=True)
    (tmp_path / "lab.toml").write_text(settings, "utf-8")
    return folder


def test_a_process_that_reads_nothing_never_holds_up_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = a_lab(tmp_path, '[alerts.ntfy]\naddress = "http://127.0.0.1:1/"\n')
    monkeypatch.setattr(courier, "MAIN", "import signal; signal.pause()")
    monkeypatch.setattr(courier, "brief_of", lambda state: state)
    alerts = courier.Alerts(folder)
    process = alerts._process
    assert process is not None
    try:
        for number in range(2000):
            alerts.hear({"number": number, "text": "x" * 200})  # type: ignore[arg-type, typeddict-item]
        assert alerts._missed > 1000, "the pipe was full, and nobody waited"
        alerts.close()
    finally:
        process.kill()
        process.wait()


def test_a_lab_without_alerts_starts_nothing(tmp_path: Path):
    alerts = courier.Alerts(a_lab(tmp_path, ""))
    assert alerts._process is None
    alerts.close()


def test_doctor_sends_a_test_by_every_way(
    tmp_path: Path, got: Got, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("OUR_HOOK", got.address)
    settings = '[alerts.webhook]\naddress_env = "OUR_HOOK"\n[alerts.ntfy]\naddress = "http://127.0.0.1:1/"\n'
    a_lab(tmp_path, settings)
    assert cli.call(["doctor", "--alerts", "--lab", str(tmp_path)]) == 1
    told = capsys.readouterr().out
    assert "ok    webhook: the server took a test" in told
    assert "FAIL  ntfy: it cannot be reached (ConnectionRefusedError)" in told and SECRET not in told
    assert "a test" in json.loads(got.requests.get(timeout=PATIENCE_S)[2])["title"]
    assert cli.call(["doctor", "--alerts", "--lab", str(tmp_path), "--json"]) == 1
    ways = judged(capsys.readouterr().out)["ways"]
    assert ways["webhook"]["error"] is None and "cannot be reached" in ways["ntfy"]["error"]


def test_the_process_sends_what_a_run_told_and_ends_with_it(tmp_path: Path, got: Got):
    folder = a_lab(tmp_path, f'[alerts.webhook]\naddress = "{got.address}"\n')
    alerts = courier.Alerts(folder)
    process = alerts._process
    assert process is not None
    for told in (a_brief(), a_brief("unacknowledged:operator_stop")):
        alerts._write(json.dumps(told).encode())
    alerts.close()
    kinds = [json.loads(got.requests.get(timeout=PATIENCE_S)[2])["kind"] for _ in range(2)]
    assert kinds == ["stop", "night"] and process.wait(PATIENCE_S) == 0
    log = (folder / courier.LOG).read_text("utf-8")
    assert re.search(r"^[-\d]+T[:.\d]+Z INFO    alerts: webhook: sent: stop$", log, re.M) and SECRET not in log
    assert (folder / courier.LOG).stat().st_mode & 0o077 == 0, "its owner alone reads it"


def test_a_run_in_simulated_time_says_that_it_sends_none(tmp_path: Path) -> None:
    folder, said = make_campaign(tmp_path).folder, list[str]()
    (tmp_path / "lab.toml").write_text('[alerts.ntfy]\naddress = "http://127.0.0.1:9/never"\n')
    assert run_campaign(folder, said.append, manual=True)
    assert [line for line in said if "alert" in line] == [
        "[alerts] of lab.toml: nobody is told of this run, which is in simulated time; "
        "labctl doctor --alerts sends a test"
    ]
    assert not (folder / courier.LOG).exists()


def test_a_run_in_simulated_time_says_nothing_of_alerts_where_nobody_wants_any(tmp_path: Path) -> None:
    folder, said = make_campaign(tmp_path).folder, list[str]()
    assert run_campaign(folder, said.append, manual=True)
    assert not [line for line in said if "alert" in line]
