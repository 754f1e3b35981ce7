"""The seal host's door: encrypted, for invited keys alone, and it goes on whatever comes through it."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import zmq
from support.joint.joint_labs import Labs, answering, make_labs
from support.joint.relay import relay
from support.machine.postgres import free_port

from labctl.errors import Unreachable
from labctl.joint.asking import SealLink
from labctl.joint.door import EACH
from labctl.joint.keys import new_pair, read_host_keys, read_invitation


def link(labs: Labs, **changes: str) -> SealLink:
    invitation = replace(read_invitation(labs.invitation("a")), **changes)
    return SealLink(invitation, patience_s=0.6 if changes else 60.0, try_s=0.3 if changes else 20.0)


def test_a_key_that_was_not_invited_gets_no_answer_and_neither_does_one_without(tmp_path: Path) -> None:
    labs = make_labs(tmp_path)
    public, secret = new_pair()
    with answering(labs):
        with pytest.raises(Unreachable, match="this cell's key is the one it invited"):
            link(labs, public_key=public, secret_key=secret).hello()
        with pytest.raises(Unreachable):
            link(labs, host_key=public).hello()
        with zmq.Context() as context, context.socket(zmq.DEALER) as plain:
            plain.linger = 0
            plain.connect(read_host_keys(labs.made.folder / "keys.toml").address)
            plain.send(b'{"id": "q", "asks": "hello"}')
            assert not plain.poll(300)
        assert link(labs).hello().parts == 1


def test_bytes_that_are_no_question_are_refused_and_the_next_question_is_answered(tmp_path: Path) -> None:
    labs = make_labs(tmp_path)
    invitation = read_invitation(labs.invitation("b"))
    with answering(labs):
        with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
            socket.linger = 0
            socket.curve_serverkey = invitation.host_key.encode()
            socket.curve_publickey, socket.curve_secretkey = (
                invitation.public_key.encode(),
                invitation.secret_key.encode(),
            )
            socket.connect(invitation.address)
            socket.send_multipart([b"two", b"frames"])
            socket.send(b"\xff" * 1000)
            assert socket.poll(60_000) and b"not a question" in socket.recv()
        found = link(labs).hello()
    assert abs(found.clock["offset_s"]) <= found.clock["bound_s"]


def test_connections_that_say_nothing_keep_no_cell_waiting_and_end_none_that_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """1,024 of them kept every cell from its next trial, and the seal host said nothing."""
    labs = make_labs(tmp_path)
    invitation = read_invitation(labs.invitation("b"))
    there = urlsplit(invitation.address)
    with answering(labs), zmq.Context() as context, context.socket(zmq.DEALER) as asked, ExitStack() as idle:
        asked.linger = 0
        asked.curve_serverkey = invitation.host_key.encode()
        asked.curve_publickey, asked.curve_secretkey = invitation.public_key.encode(), invitation.secret_key.encode()
        asked.setsockopt(zmq.RECONNECT_IVL, -1)
        asked.connect(invitation.address)
        for _ in range(2):
            asked.send(b'{"id": "q", "asks": "hello"}')
            assert asked.poll(60_000) and b'"parts"' in asked.recv()
            strangers = [socket.create_connection((str(there.hostname), there.port or 0)) for _ in range(EACH + 2)]
            for one in strangers:
                idle.enter_context(one)
            for one in strangers[:2]:
                one.settimeout(60)
                while one.recv(100):  # ZeroMQ's greeting
                    pass
        assert link(labs).hello().parts == 1
    said = [record.getMessage() for record in caplog.records if "were not let in" in record.getMessage()]
    assert len(said) == 1 and said[0].startswith(f"{EACH} connections from 127.0.0.1 wait")


def test_over_a_link_on_which_every_answer_takes_longer_than_a_try_it_comes_all_the_same(tmp_path: Path) -> None:
    # seen of the code before: greeting a host takes some six ways there and back, each try began them anew
    labs, own = make_labs(tmp_path), free_port()
    there = urlsplit(read_host_keys(labs.made.folder / "keys.toml").address)
    with answering(labs), relay(("127.0.0.1", own), (str(there.hostname), there.port or 0)) as slow:
        slow.say("delay 0.1")
        invitation = replace(read_invitation(labs.invitation("a")), address=f"tcp://127.0.0.1:{own}")
        found = SealLink(invitation, patience_s=60.0, try_s=0.3).hello()
    assert abs(found.clock["offset_s"]) <= found.clock["bound_s"] and found.clock["bound_s"] > 0.15


def test_the_address_is_loopback_unless_one_is_named(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from labctl.cli.keeping.joint import joint

    labs = make_labs(tmp_path)
    found = CliRunner().invoke(
        joint, ["open", str(labs.host / "protocols/two.toml"), "--name", "three", "--lab", str(labs.host)]
    )
    assert found.exit_code == 0, found.output
    keys = read_host_keys(labs.host / "joint/three/keys.toml")
    assert keys.address == "tcp://127.0.0.1:7441"
    assert keys.secret_key not in found.output and "policy-a" not in found.output
