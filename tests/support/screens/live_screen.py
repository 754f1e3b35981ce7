"""A console without a screen, attached to a live run: it orders, and waits for what the run says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from labctl.bus import Message
from labctl.runtime.attach import Attachment
from support.runs.live_campaign import wait_for
from support.runs.ready_operator import is_ready

PEOPLE = [{"id": "ann", "roles": ["operator", "setter", "assessor"]}]


class Screen:
    """What a console knows: the last state, the replies."""

    def __init__(self, folder: Path, **given: Any) -> None:
        self.link, self._folder = Attachment(folder, **given), folder
        self.state: dict[str, Any] = {}
        self.kinds: set[str] = set()
        self.replies: dict[str, dict[str, Any]] = {}

    def look(self) -> dict[str, Any]:
        for message in self.link.poll():
            self.take(message)
        return self.state

    def take(self, message: Message) -> None:
        self.kinds.add(message.kind)
        if message.kind == "state":
            self.state = dict(message.body)
        elif message.kind == "reply":
            self.replies[message.body["id"]] = dict(message.body)

    def order(self, verb: str, role: str = "operator", **args: Any) -> dict[str, Any]:
        version = self.state.get("version")
        sent = self.link.command(verb, who="ann", role=role, version=version, args=args)
        # type: ignore[return-value]
        return wait_for(f"a reply to {verb}", lambda: self.look() and self.replies.get(sent))

    def start(self) -> dict[str, Any]:
        """Order it once what drives the robot is ready, which no screen shows: a busy machine is slow."""
        wait_for("what drives the robot", lambda: is_ready(self._folder, self.look()["episode"]))
        return self.order("start")

    def until(self, what: str, **wanted: Any) -> None:
        wait_for(what, lambda: self.look() and all(self.state.get(key) == value for key, value in wanted.items()))
