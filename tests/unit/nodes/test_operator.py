"""The headless operator says one thing per published state, after the time a person takes."""

from labctl.bus import Message
from labctl.nodes.operator import OperatorNode


class Script:
    def __init__(self, *wanted) -> None:
        self.wanted = list(wanted)
        self.saw: list[dict] = []

    def decide(self, state):
        self.saw.append(dict(state))
        return self.wanted.pop(0) if self.wanted else None

    def delay_ns(self, verb: str) -> int:
        return 100


COMMIT = {"verb": "commit", "role": "operator", "who": "x", "args": {}}


def state(version: int, moment: int = 0, **more) -> Message:
    return Message("@state", "state", {"run": 4, "version": version, "moment": moment, **more})


def test_a_command_comes_after_the_persons_delay_with_the_version_that_was_shown():
    node = OperatorNode(Script(COMMIT))
    step = node.step(50, [state(7)])
    assert (step.out, step.due_ns) == ([], 150)
    (command,) = node.step(150, []).out
    assert (command.to, command.kind) == ("run", "command")
    assert command.body == {"id": "operator-4-1", "version": 7, **COMMIT}
    assert node.step(151, []).out == []


def test_a_state_shown_twice_is_answered_once():
    script = Script(COMMIT, COMMIT)
    node = OperatorNode(script)
    node.step(0, [state(7)])
    node.step(10, [state(7)])
    assert len(script.saw) == 1


def test_a_newer_state_replaces_a_command_not_yet_given():
    node = OperatorNode(Script(COMMIT, None))
    node.step(0, [state(7)])
    node.step(10, [state(8)])
    assert node.step(1000, []).out == []


def test_every_command_has_an_id_of_its_own():
    node = OperatorNode(Script(COMMIT, COMMIT))
    ids = []
    for moment in (0, 1):
        node.step(moment * 1000, [state(7, moment)])
        ids += [message.body["id"] for message in node.step(moment * 1000 + 100, []).out]
    assert ids == ["operator-4-1", "operator-4-2"]


def test_nothing_is_said_before_a_state_was_shown():
    script = Script(COMMIT)
    step = OperatorNode(script).step(0, [Message("operator", "reply", {"ok": True})])
    assert (step.out, step.due_ns, script.saw) == ([], None, [])


def test_who_has_nothing_to_say_yet_is_shown_the_same_state_again():
    """One that waits for what no screen shows, as whether an arm is ready, would else wait for ever."""
    node = OperatorNode(Script(None, COMMIT))
    assert node.step(0, [state(7)]).due_ns is None
    assert node.step(10, [state(7)]).due_ns == 110
