"""What a lab takes in from outside, and each way in which it does not: one line, and nothing is kept."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.policies.cards import card_toml
from support.submissions.outside import DAY_NS, WORDS, Outside, changed, outside, resigned

from labctl.errors import InputError, LabctlError, StateError
from labctl.queue import book, lab_files
from labctl.queue.acts import sealed_of, take_in
from labctl.queue.entries import Step
from labctl.queue.request import LARGEST, new_key, read_signed, sign

pytestmark = pytest.mark.usefixtures("no_collector")

IMAGE = "registry.okapi.example/policy@sha256:" + "0a" * 32


@pytest.fixture
def theirs(tmp_path: Path) -> Outside:
    return outside(tmp_path)


def refused(theirs: Outside, path: Path) -> str:
    """The one line that a request is refused with; the queue has no more than before."""
    before = book.read(theirs.lab).queue.submissions
    with pytest.raises(LabctlError) as error:
        take_in(theirs.lab, path, theirs.clock, "p01")
    said = str(error.value)
    assert "\n" not in said and len(said) < 500
    assert book.read(theirs.lab).queue.submissions == before
    seal = theirs.lab / book.FOLDER / book.SEAL
    assert not seal.is_dir() or len(list(seal.iterdir())) == len(before)
    return said


def test_a_signed_request_is_taken_in_and_its_words_are_sealed_for_the_owner_alone(theirs: Outside) -> None:
    id = theirs.taken_in()
    found = book.read(theirs.lab)
    assert found.queue.submission(id).step == Step.RECEIVED
    assert sealed_of(found, id).asked.policy == WORDS["policy"]
    kept = theirs.lab / book.FOLDER / book.SEAL / f"{id}.request.json"
    assert kept.stat().st_mode & 0o077 == 0
    journal = (theirs.lab / book.FOLDER / book.DATABASE).read_bytes()
    for word in (*WORDS.values(), "okapi", theirs.public, sealed_of(found, id).alias):
        if word != WORDS["campaign"]:
            assert word.encode() not in journal


def test_a_container_under_its_digest_is_taken_in_and_one_without_is_not(theirs: Outside) -> None:
    theirs.taken_in(container=IMAGE)
    with pytest.raises(InputError, match="container"):
        theirs.request(container="policy:latest")


def test_a_request_is_taken_in_once_whatever_is_changed_around_what_was_signed(theirs: Outside) -> None:
    path = theirs.request()
    take_in(theirs.lab, path, theirs.clock, "p01")
    assert "taken in before" in refused(theirs, path)
    again = resigned(theirs, path, note="the same nonce, signed again")
    assert "taken in before" in refused(theirs, theirs.written(again))


def test_a_changed_request_and_a_foreign_signature_do_not_hold(theirs: Outside) -> None:
    path = theirs.request()
    said = json.loads(path.read_text())
    other = theirs.folder / "other.pem"
    public = new_key(other)
    asked = read_signed(path).asked("r")
    for forged in (
        changed(path, request=said["request"].replace("okapi", "zorse")),
        changed(path, key=public),
        changed(path, signature="0" * 128),
        changed(path, signature=json.loads(sign(asked, other))["signature"]),
    ):
        assert "signature does not fit" in refused(theirs, theirs.written(forged))
    assert "is not known here" in refused(theirs, theirs.written(sign(asked, other)))


def test_a_revoked_key_signs_nothing_more(theirs: Outside) -> None:
    lab_files.revoke(theirs.lab, theirs.public[:8], "it was stolen", theirs.clock.anchor().wall)
    assert "was revoked" in refused(theirs, theirs.request())
    with pytest.raises(StateError, match="was revoked"):
        lab_files.revoke(theirs.lab, theirs.public[:8], "again", theirs.clock.anchor().wall)
    with pytest.raises(InputError, match="already, and revoked: have its owner make another"):
        lab_files.trust(theirs.lab, theirs.folder / "ours.toml")


def test_a_request_is_of_its_time_and_for_its_lab(theirs: Outside) -> None:
    late, early, elsewhere = theirs.request(days=1), theirs.request(), theirs.request(lab="another-lab")
    theirs.clock.sleep_until(2 * DAY_NS)
    assert "it expired at" in refused(theirs, late)
    assert "'another-lab'" in refused(theirs, elsewhere)
    far = resigned(theirs, early, made="2031-01-01T00:00:00+00:00", expires="2031-01-02T00:00:00+00:00")
    assert "still to come" in refused(theirs, theirs.written(far))
    for said in (
        {"expires": "2032-01-01T00:00:00+00:00"},
        {"expires": "2020-01-01T00:00:00+00:00"},
        {"expires": "2026-01-09T00:00:00"},
        {"expires": "never"},
    ):
        refused(theirs, theirs.written(resigned(theirs, early, **said)))


HOSTILE_TEXT: dict[str, Any] = {
    "a name with a line end": {"who": "Okapi\nRobotics"},
    "a name with an escape": {"policy": "\x1b[2Jzebra"},
    "a campaign that is a path": {"campaign": "../../etc"},
    "a campaign that names its sender": {"campaign": "okapi-robotics"},
    "a campaign of a megabyte": {"campaign": "a" * 90},
    "a key that nobody knows": {"priority": 1},
    "a number for a name": {"who": 7},
    "no name": {"who": ""},
    "an endpoint and a container": {"container": IMAGE},
    "neither": {"endpoint": None},
    "a nonce that is none": {"nonce": "7"},
    "a card that is no TOML": {"card": "[[["},
    "a card that is nested": {"card": "a = " + "[" * 9000},
    "a card of a hundred kilobytes": {"card": "#" * 100_000},
}


@pytest.mark.parametrize("name", HOSTILE_TEXT)
def test_a_hostile_text_is_refused_in_a_line_though_its_signature_holds(theirs: Outside, name: str) -> None:
    path = theirs.request()
    refused(theirs, theirs.written(resigned(theirs, path, **HOSTILE_TEXT[name])))


CARDS: dict[str, tuple[dict[str, Any], str]] = {
    "starts a program": ({"server": 'start = ["sh", "-c", "id"]'}, "start"),
    "names a folder": ({"server": 'start = ["a"]\nfolder = "/root"'}, "start"),
    "asks for a variable of this computer": ({"server": 'api_key_env = "HOME"'}, "api_key_env"),
    "claims the lab's GPU": ({"server": 'start = ["a"]\ngpu = "0"'}, "gpu"),
    "is a function of this computer": ({"dialect": "callable", "ready": 20.0}, "callable"),
}


@pytest.mark.parametrize("name", CARDS)
def test_a_card_that_does_something_here_is_refused_by_sender_and_lab(theirs: Outside, name: str) -> None:
    given, word = CARDS[name]
    card = card_toml(**given)
    with pytest.raises(InputError, match=word):
        theirs.request(card=card)
    assert word in refused(theirs, theirs.written(resigned(theirs, theirs.request(), card=card)))


def files(theirs: Outside) -> dict[str, Callable[[Path], object]]:
    return {
        "too large": lambda path: path.write_bytes(b" " * (LARGEST + 1)),
        "empty": lambda path: path.write_bytes(b""),
        "no JSON": lambda path: path.write_bytes(b"\xff\xfe\x00"),
        "nested": lambda path: path.write_bytes(b"[" * 100_000),
        "a list": lambda path: path.write_bytes(b"[]"),
        "another form": lambda path: path.write_bytes(changed(theirs.request(), schema="labctl.request/9")),
        "more keys": lambda path: path.write_bytes(changed(theirs.request(), also=1)),
        "a surrogate": lambda path: path.write_bytes(changed(theirs.request(), request="\ud800")),
        "a pipe": lambda path: os.mkfifo(path),
        "a folder": lambda path: path.mkdir(),
        "not there": lambda path: None,
    }


def test_a_hostile_file_is_refused_in_a_line(theirs: Outside) -> None:
    for number, (name, make) in enumerate(files(theirs).items()):
        path = theirs.folder / f"hostile-{number}.json"
        make(path)
        assert refused(theirs, path), name


def test_a_lab_without_keys_takes_nothing(theirs: Outside) -> None:
    path = theirs.request()
    (theirs.lab / lab_files.KEYS).unlink()
    assert "takes no requests" in refused(theirs, path)


def test_a_key_is_its_owners_alone_and_never_written_over(theirs: Outside) -> None:
    assert theirs.key.stat().st_mode & 0o077 == 0
    with pytest.raises(InputError, match="there already"):
        new_key(theirs.key)
    theirs.key.chmod(0o644)
    with pytest.raises(InputError, match="other accounts may read it"):
        theirs.request()


def test_a_table_with_more_than_a_key_is_not_trusted(theirs: Outside, tmp_path: Path) -> None:
    before = (theirs.lab / lab_files.KEYS).read_bytes()
    key = '[[key]]\npublic = "' + "0" * 64 + '"\nwho = "a"\ncontact = "b"\n'
    table = tmp_path / "hostile.toml"
    for text in (key + key, 'networks = ["0.0.0.0/0"]\n' + key, "", key + '[[revoked]]\npublic = "x"\n'):
        table.write_text(text)
        with pytest.raises(InputError):
            lab_files.trust(theirs.lab, table)
    table.write_text(key.replace("contact", "kontact"))
    with pytest.raises(InputError, match=r"hostile\.toml:4: unknown key 'kontact'"):
        lab_files.trust(theirs.lab, table)
    assert (theirs.lab / lab_files.KEYS).read_bytes() == before
