"""Requests from outside for tests: keys, signed files, and a lab that knows the key."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from labctl.clock import SECOND, ManualClock
from labctl.queue import lab_files
from labctl.queue.acts import take_in
from labctl.queue.making import request_of
from labctl.queue.request import FORM, new_key, sign
from support.policies.cards import card_toml
from support.runs.campaigns import HUMAN, PROTOCOL, arms_toml, policy

DAY_NS = 86_400 * SECOND
WORDS = {
    "campaign": "trial-run",
    "policy": "zebra-policy-3",
    "who": "Okapi Robotics",
    "contact": "lab@okapi.example",
    "note": "the giraffe checkpoint",
}
RULES = {"name": "trial-run", "items": 1, "budget": 4.0, "arming": 4.0, "max_voids": 3, "process_lost": "void"}
RULES |= {"camera_lost": "mark", "crash": "void", "blocks": 1}
ENDPOINT = "wss://gnu.okapi.example:8443"


@dataclass
class Outside:
    """Somebody outside, with a key that a lab knows, under a clock that the lab has too."""

    folder: Path
    lab: Path
    clock: ManualClock
    public: str = ""
    number: int = 0

    @property
    def key(self) -> Path:
        return self.folder / "ours.pem"

    def request(self, *, card: str | None = None, days: int = 14, lab: str = "lab", **given: Any) -> Path:
        """A signed request, another one at each call."""
        endpoint = None if "container" in given else ENDPOINT
        asked = request_of(
            card_toml() if card is None else card,
            "card.toml",
            self.clock.anchor().wall,
            days,
            {**WORDS, "lab": lab, "endpoint": endpoint, **given},
        )
        return self.written(sign(asked, self.key))

    def written(self, data: bytes) -> Path:
        """These bytes as a file."""
        self.number += 1
        path = self.folder / f"request-{self.number}.json"
        path.write_bytes(data)
        return path

    def taken_in(self, **given: Any) -> str:
        """The id of a request that the lab took in."""
        return take_in(self.lab, self.request(**given), self.clock, "p01").name


def outside(folder: Path, networks: str = "") -> Outside:
    """A lab in `folder` that knows one key; networks: of queue-keys.toml, as TOML has them."""
    lab = folder / "lab"
    lab.mkdir(exist_ok=True)
    (lab / "lab.toml").touch()
    (lab / "protocols").mkdir(exist_ok=True)
    (lab / "protocols" / "p.toml").write_text(PROTOCOL.format(**RULES) + arms_toml([HUMAN, policy("a")]), "utf-8")
    found = Outside(folder, lab, ManualClock(DAY_NS))
    found.public = new_key(found.key)
    table = folder / "ours.toml"
    table.write_text(lab_files.key_table(found.public, WORDS["who"], WORDS["contact"]), "utf-8")
    lab_files.trust(lab, table)
    keys = lab / lab_files.KEYS
    keys.write_text(keys.read_text("utf-8").replace("networks = []", f"networks = [{networks}]"), "utf-8")
    return found


def unopened(lab: Path) -> Path:
    """A protocol of the lab from which no campaign was opened: its p.toml, by another name."""
    text = (lab / "protocols/p.toml").read_text("utf-8")
    path = lab / "protocols/next.toml"
    path.write_text(text.replace('name = "trial-run"', 'name = "next"', 1), "utf-8")
    return path


def changed(path: Path, **said: Any) -> bytes:
    """A request's file with another envelope, signature as it was."""
    return json.dumps({**json.loads(path.read_text("utf-8")), **said}).encode()


def resigned(found: Outside, path: Path, **said: Any) -> bytes:
    """A request's file whose inner text says something else, signed by the same key: what a hostile sender can do."""
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    envelope = json.loads(path.read_text("utf-8"))
    text = json.dumps({**json.loads(envelope["request"]), **said})
    private = load_pem_private_key(found.key.read_bytes(), None)
    envelope |= {"request": text, "signature": private.sign(f"{FORM}\n{text}".encode()).hex()}  # type: ignore[union-attr,call-arg]
    return json.dumps(envelope).encode()
