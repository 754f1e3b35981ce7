"""People elsewhere are told of the queue by the lab's alerts: an id and what was done, and no name."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.submissions.outside import WORDS, Outside, outside

from labctl.alerts.sending import Send
from labctl.alerts.watch import Alert
from labctl.config.alerts import AlertsTable
from labctl.errors import StateError
from labctl.queue import book, telling
from labctl.queue.acts import Done, sealed_of

WEBHOOK = '[alerts.webhook]\naddress = "https://chat.example/hook"\n'


@pytest.fixture
def theirs(tmp_path: Path) -> Outside:
    found = outside(tmp_path)
    (found.lab / "lab.toml").write_text(WEBHOOK)
    return found


def sent(monkeypatch: pytest.MonkeyPatch) -> list[Alert]:
    """What goes out from here on."""
    got: list[Alert] = []
    monkeypatch.setattr(telling, "ways", lambda table, environment: {"webhook": got.append})
    return got


def test_an_alert_has_the_id_and_what_was_done_and_no_name(theirs: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    got = sent(monkeypatch)
    id = theirs.taken_in()
    assert telling.tell(theirs.lab, Done(id, "2:0"), "is taken in") == []
    alias = sealed_of(book.read(theirs.lab), id).alias
    assert [(one.kind, one.text) for one in got] == [("queue", f"{id} is taken in")]
    said = repr(got).lower()
    named = [word for word in (*WORDS.values(), alias, theirs.public) if word != WORDS["campaign"]]
    assert not [word for word in named if word.lower() in said]


def test_what_the_lab_does_not_want_to_hear_is_not_sent(theirs: Outside, monkeypatch: pytest.MonkeyPatch) -> None:
    got = sent(monkeypatch)
    (theirs.lab / "lab.toml").write_text('[alerts]\non = ["stop"]\n' + WEBHOOK)
    assert telling.tell(theirs.lab, Done("s-1", "2:0"), "is taken in") == []
    (theirs.lab / "lab.toml").write_text("")
    assert telling.tell(theirs.lab, Done("s-1", "2:0"), "is taken in") == [] and got == []


def test_an_alert_that_does_not_arrive_is_a_line_and_fails_no_act(
    theirs: Outside, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(alert: Alert) -> None:
        raise StateError("it cannot be reached (ConnectionRefusedError)")

    by: dict[str, Send] = {"webhook": down}

    def ways(table: AlertsTable, environment: object) -> dict[str, Send]:
        return by

    monkeypatch.setattr(telling, "ways", ways)
    found = telling.tell(theirs.lab, Done("s-1", "2:0"), "is taken in")
    assert found == ["no alert was sent by webhook: it cannot be reached (ConnectionRefusedError)"]
    monkeypatch.undo()
    (theirs.lab / "lab.toml").write_text('[alerts.webhook]\naddress_env = "NOT_SET"\n')
    assert "NOT_SET" in telling.tell(theirs.lab, Done("s-1", "2:0"), "is taken in")[0]
