"""What is done with submissions: taken in, tried dry, approved or refused, read, written into a protocol as an arm.

May not: start anything but a dry run, open a campaign, or say to anybody but who acts whose a submission is.
"""

from __future__ import annotations

import hashlib
import ipaddress
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from labctl.clock import Clock
from labctl.config.policy_card import Card, parse_card
from labctl.core.trial import Phase
from labctl.errors import InputError, LabctlError, StateError
from labctl.plain import Json
from labctl.queue import book
from labctl.queue.dry_run import DryRun, dry_run
from labctl.queue.endpoints import Network, check_card, check_endpoint
from labctl.queue.entries import USUAL, Did, Step, Submission, may
from labctl.queue.estimates import names_in
from labctl.queue.lab_files import Keys, read_keys
from labctl.queue.observed import source_of
from labctl.queue.opened import opened_from, takes_no_arm
from labctl.queue.request import OWNER_ONLY, Asked, read_signed
from labctl.store.atomic_files import replace_file
from labctl.store.journal import DuplicateCommand
from labctl.store.lab_folder import campaigns, read_plan, read_text
from labctl.store.verifying.verified import JOURNAL_ALONE, arms_of, verified

ANY = "any"
LOOPBACK: tuple[Network, ...] = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1/128"))


@dataclass(frozen=True, slots=True)
class Done:
    """What was done to what: a submission's id or an entry's name, and the head of the queue's chain after it."""

    name: str
    head: str


def take_in(lab: Path, path: Path, clock: Clock, who: str) -> Done:
    """Take a request in: its form, signature, key, lab, time, nonce, card and endpoint are right.

    Raises InputError for a request that is wrong, StateError for one that is unknown, revoked, over or here already.
    """
    where = str(path)
    signed = read_signed(path)
    keys = read_keys(lab)
    keys.known(signed.key, where)
    asked = signed.asked(where)
    if asked.lab != keys.lab:
        raise InputError(
            f"it is for lab {asked.lab!r}, and this one is {keys.lab!r}; its sender signs one for here", where=where
        )
    asked.check_when(clock.anchor().wall, where)
    card = card_of(asked, where)
    if asked.endpoint is not None:
        check_endpoint(asked.endpoint, card.policy.dialect, keys.nets(), where)
    _check_wished(lab, asked.campaign, where)
    once = hashlib.sha256(f"{signed.key} {asked.nonce}".encode()).hexdigest()
    with book.writing(lab, "submit", clock, who) as writer:
        id = _unused("s-", 3, writer.queue.submissions)
        content: dict[str, Json] = {
            "alias": f"arm-{secrets.token_hex(4)}",
            "key": signed.key,
            "signature": signed.signature,
            "request": signed.text,
            "taken_in_by": who,
        }
        sealed = writer.seal(f"{id}.request.json", content)
        body: dict[str, Json] = {"id": id, "wished": asked.campaign, "expires": asked.expires, "sealed": sealed}
        try:
            head = writer.log(Did.RECEIVED, body, once=f"request {once}")
        except DuplicateCommand:
            writer.unseal(sealed)
            raise StateError(f"{where}: this request was taken in before; its sender signs a new one") from None
    return Done(id, head)


def _check_wished(lab: Path, wished: str, where: str) -> None:
    """What is wished stands in the queue, where an operator reads it: only a word of the lab's own may. Raises
    InputError that lists them.
    """
    there = sorted({ANY, *names_in(lab), *(folder.name for folder in campaigns(lab))})
    if wished not in there:
        raise InputError(f"campaign {wished!r} is none of this lab's; allowed: {', '.join(there)}", where=where)


def card_of(asked: Asked, where: str) -> Card:
    """The card of a request. Raises InputError."""
    card = parse_card(asked.card, f"{where} (card)")
    check_card(card, where)
    return card


@dataclass(frozen=True, slots=True)
class Sealed:
    """What is sealed of a submission. alias: the arm's name in a protocol."""

    alias: str
    key: str
    asked: Asked


def sealed_of(found: book.Book, id: str) -> Sealed:
    """Raises StateError, BrokenRecord."""
    raw = found.sealed(id)
    return Sealed(str(raw["alias"]), str(raw["key"]), Asked.model_validate_json(str(raw["request"])))


def try_dry(
    lab: Path,
    id: str,
    observations: Path,
    clock: Clock,
    who: str,
    *,
    endpoint: str | None,
    questions: int,
    within_s: float,
) -> tuple[DryRun, Done]:
    """Ask a submitted policy about recorded observations and keep what it came to in the seal; the queue says whether
    it passed. endpoint: of a container that the lab's people started.

    Raises StateError, InputError, BrokenRecord before anything is asked; an answer that is wrong is a dry run that
    failed.
    """
    found = book.read(lab)
    may(found.queue.submission(id), Did.DRY_RUN)
    sealed, keys = sealed_of(found, id), read_keys(lab)
    _still_good(sealed, keys, clock, id)
    where = f"submission {id}"
    card = card_of(sealed.asked, where)
    there, networks = _place(sealed.asked, endpoint, keys, id)
    check_endpoint(there, card.policy.dialect, networks, where)
    source = source_of(observations)
    result = dry_run(source, card, there, networks, questions=questions, within_s=within_s)
    with book.writing(lab, "dry-run", clock, who) as writer:
        may(writer.queue.submission(id), Did.DRY_RUN)
        number = sum("dry-run" in name for name in writer.queue.submission(id).sealed) + 1
        content = {"endpoint": there, "by": who, "result": json.dumps(result)}
        kept = writer.seal(f"{id}.dry-run-{number:03d}.json", content)
        head = writer.log(Did.DRY_RUN, {"id": id, "passed": result["passed"], "read": True, "sealed": kept})
    return result, Done(id, head)


def approve(lab: Path, id: str, reason: str, clock: Clock, who: str, priority: int = USUAL) -> Done:
    """A named person lets a submission that passed its dry run wait for the rig. The reason is sealed: it may say whose
    it is. Raises StateError.
    """
    with book.writing(lab, "approve", clock, who) as writer:
        may(writer.queue.submission(id), Did.APPROVED)
        _still_good(sealed_of(writer.book, id), read_keys(lab), clock, id)
        kept = writer.seal(f"{id}.approval.json", {"reason": reason, "by": who})
        body: dict[str, Json] = {"id": id, "priority": priority, "read": True, "sealed": kept}
        return Done(id, writer.log(Did.APPROVED, body))


def refuse(lab: Path, id: str, reason: str, clock: Clock, who: str) -> Done:
    """A named person refuses a submission; the reason is sealed. Raises StateError."""
    with book.writing(lab, "refuse", clock, who) as writer:
        may(writer.queue.submission(id), Did.REFUSED)
        kept = writer.seal(f"{id}.refusal.json", {"reason": reason, "by": who})
        return Done(id, writer.log(Did.REFUSED, {"id": id, "read": True, "sealed": kept}))


def read_seal(lab: Path, id: str, clock: Clock, who: str) -> tuple[Sealed, dict[str, dict[str, Json]], Done]:
    """Whose a submission is and what became of it: what was sealed of it by part. That somebody reads it is an entry of
    the queue first. Raises StateError while it is an arm of a campaign that is not unblinded, also of one from a copy
    of the protocol that it was taken out of.
    """
    with book.writing(lab, "read", clock, who) as writer:
        submission, found = writer.queue.submission(id), writer.book
        sealed = sealed_of(found, id)
        if submission.entered is not None and not _unblinded(lab, sealed.alias):
            is_or_was = "is" if submission.step == Step.ENTERED else "was"
            raise StateError(
                f"submission {id} {is_or_was} an arm of {submission.entered}, and no campaign that has it is "
                "unblinded; whose it is stays sealed until then"
            )
        parts = {name.split(".")[1]: book.unsealed(lab, name, digest) for name, digest in submission.sealed.items()}
        return sealed, parts, Done(id, writer.log(Did.READ, {"id": id, "read": True}))


def enter(lab: Path, id: str, protocol: Path, clock: Clock, who: str) -> tuple[str, Done]:
    """Write an approved submission into a protocol as an arm, under the name that was sealed, with its card beside it;
    that name. Written twice, as after a kill, it is there once.

    Raises StateError, InputError: nothing is half written. One that expired since it was approved is not written, and
    none into a protocol that a campaign was opened from: that one would never have it.
    """
    with book.writing(lab, "arm", clock, who) as writer:
        may(writer.queue.submission(id), Did.ARM_WRITTEN)
        found = writer.book
        sealed = sealed_of(found, id)
        read_keys(lab).known(sealed.key, f"submission {id}")
        plan = read_plan(protocol)
        name = plan.protocol.protocol.name
        if all(arm.name != sealed.alias for arm in plan.protocol.arm):
            sealed.asked.check_when(clock.anchor().wall, f"submission {id}")
            if (opened := opened_from(lab, name)) is not None:
                raise StateError(f"{protocol}: {takes_no_arm(opened, name)}")
            endpoint = sealed.asked.endpoint or str(found.sealed(id, "dry-run")["endpoint"])
            _write_arm(protocol, sealed, endpoint)
        inside = protocol.resolve().is_relative_to(lab)
        path = str(protocol.resolve().relative_to(lab) if inside else protocol.resolve())
        body: dict[str, Json] = {"id": id, "protocol": name, "path": path, "read": True}
        return sealed.alias, Done(id, writer.log(Did.ARM_WRITTEN, body))


def withdraw(lab: Path, name: str, reason: str, clock: Clock, who: str) -> Done:
    """Take an entry or a submission out of the queue. Of a submission the reason is sealed; one that is an arm already
    is taken out of its protocol first. Raises StateError, also where a campaign was opened from that.
    """
    with book.writing(lab, "withdraw", clock, who) as writer:
        submission = writer.queue.submissions.get(name)
        if submission is None:
            return Done(name, writer.log(Did.WITHDRAWN, {"name": name, "reason": reason}))
        may(submission, Did.WITHDRAWN)
        if submission.step == Step.ENTERED:
            _take_out(lab, submission, writer.book)
        kept = writer.seal(f"{name}.withdrawal.json", {"reason": reason, "by": who})
        return Done(name, writer.log(Did.WITHDRAWN, {"name": name, "sealed": kept}))


def _place(asked: Asked, given: str | None, keys: Keys, id: str) -> tuple[str, tuple[Network, ...]]:
    """Where a policy is asked, and in which networks it may be: one that the lab started may be on this computer."""
    if asked.endpoint is not None:
        if given is not None:
            raise InputError(
                f"submission {id} names its own endpoint; --endpoint is for a container that the lab started"
            )
        return asked.endpoint, keys.nets()
    if given is None:
        raise InputError(
            f"submission {id} is a container: start it by the lab's own rules, then say where with --endpoint"
        )
    return given, (*keys.nets(), *LOOPBACK)


def _still_good(sealed: Sealed, keys: Keys, clock: Clock, id: str) -> None:
    """Raises StateError for a request that has expired since, or whose key was revoked."""
    where = f"submission {id}"
    keys.known(sealed.key, where)
    sealed.asked.check_when(clock.anchor().wall, where)


def _write_arm(protocol: Path, sealed: Sealed, endpoint: str) -> None:
    from labctl.config.protocol_schema import parse_protocol

    after = f"{read_text(protocol).rstrip()}\n\n{_arm_table(sealed, endpoint)}"
    parse_protocol(after, str(protocol))
    card = protocol.parent / _card(sealed)
    card.parent.mkdir(exist_ok=True)
    replace_file(card, sealed.asked.card.encode(), mode=OWNER_ONLY)
    replace_file(protocol, after.encode())


def _arm_table(sealed: Sealed, endpoint: str) -> str:
    lines = [
        "[[arm]]",
        f'name = "{sealed.alias}"',
        'kind = "policy"',
        f'controller = "policy_{card_of(sealed.asked, sealed.alias).policy.dialect}"',
        "[arm.options]",
        f"endpoint = {json.dumps(endpoint)}",
        f'card = "{_card(sealed)}"',
    ]
    return "\n".join(lines) + "\n"


def _card(sealed: Sealed) -> str:
    """Its file, from the protocol's folder."""
    return f"cards/{sealed.alias}.toml"


def _take_out(lab: Path, submission: Submission, found: book.Book) -> None:
    """Take an arm out of its protocol, as text that was written there. Done again, as after a kill, it does nothing.
    Raises StateError where a campaign was opened from the protocol, and where a person has changed the arm's lines.
    """
    id, name = submission.id, str(submission.entered)
    if (opened := opened_from(lab, name)) is not None:
        raise StateError(
            f"submission {id} is an arm of campaign {opened}, opened from protocol {name!r}: what is opened stays as "
            "it is"
        )
    protocol = lab / submission.path if submission.path is not None else names_in(lab).get(name)
    sealed = sealed_of(found, id)
    if protocol is None or not protocol.is_file() or sealed.alias not in (text := read_text(protocol)):
        return  # who leads the campaign has taken it out
    table = _arm_table(sealed, sealed.asked.endpoint or str(found.sealed(id, "dry-run")["endpoint"]))
    if table not in text:
        line = text[: text.index(sealed.alias)].count("\n") + 1
        raise StateError(
            f"{protocol}:{line}: the arm that submission {id} became was changed by hand, and stays; take it out by "
            "hand, then give the same command again"
        )
    replace_file(protocol, text.replace(f"\n{table}", "", 1).encode())
    (protocol.parent / _card(sealed)).unlink(missing_ok=True)


def _unblinded(lab: Path, alias: str) -> bool:
    """Whether some unblinded campaign of the lab has this arm."""
    for folder in campaigns(lab):
        try:
            with verified(folder, JOURNAL_ALONE) as shown:
                if shown.campaign.state.phase == Phase.UNBLINDED and alias in arms_of(shown.campaign):
                    return True
        except LabctlError:
            continue
    return False


def _unused(begins: str, size: int, there: Mapping[str, Submission]) -> str:
    while (id := begins + secrets.token_hex(size)) in there:
        pass
    return id
