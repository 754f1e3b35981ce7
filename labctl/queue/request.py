"""A request from outside: what its file says, signed by a key that the lab knows (Ed25519, RFC 8032).

May not: know a lab's folder or its queue, look an address up, or keep a private key anywhere but in its owner's file.

What is signed is the text of the request as it lies in the file, byte for byte, behind the name of the form; nothing is
parsed before the signature holds, but the envelope itself.
"""

from __future__ import annotations

import json
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, Field, StringConstraints, ValidationError, model_validator

from labctl.clock import SECOND, wall_ns, wall_of
from labctl.config.policy_card import Name
from labctl.config.toml_text import Table
from labctl.errors import InputError, StateError
from labctl.extras import wanted_for
from labctl.store.atomic_files import replace_file

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

FORM = "labctl.request/1"
LARGEST = 256 << 10  # bytes of a request's file
LARGEST_CARD = 64 << 10
MAKE_KEY = "labctl submit key NEW.pem --who NAME --contact TEXT"
LONGEST_DAYS = 90
OWNER_ONLY = 0o600
DAY_NS = 86_400 * SECOND
CLOCKS_APART_NS = 600 * SECOND


def _printable(text: str) -> str:
    if not text.isprintable():
        raise ValueError("it has characters that cannot be printed in a line")
    return text


def _moment(text: str) -> str:
    try:
        wall_ns(text)
    except (ValueError, TypeError):
        raise ValueError("it is no time with its offset from UTC, such as 2026-12-01T12:00:00+00:00") from None
    return text


Words = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_printable)]
Short = Annotated[Name, StringConstraints(max_length=80)]
Moment = Annotated[str, StringConstraints(max_length=40), AfterValidator(_moment)]
Public = Annotated[str, StringConstraints(pattern=r"^[a-f0-9]{64}$")]
Image = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9._/:-]{0,200}@sha256:[0-9a-f]{64}$"),
]


class Envelope(Table):
    """The file: `request` is the signed text."""

    schema_: Annotated[str, Field(alias="schema")]
    key: Public
    signature: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{128}$")]
    request: Annotated[str, StringConstraints(max_length=LARGEST)]


class Asked(Table):
    """What is asked for. lab: for which lab it is; campaign: the campaign or protocol wished; policy: what its owner
    calls it; card: a policy card's text; one of endpoint (where the policy answers) and container (an image under its
    digest, which the lab's people start themselves). Times are ISO 8601 with their offset.
    """

    lab: Short
    nonce: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    made: Moment
    expires: Moment
    who: Words
    contact: Words
    campaign: Short
    policy: Words
    card: Annotated[str, StringConstraints(min_length=1, max_length=LARGEST_CARD)]
    endpoint: Annotated[str, StringConstraints(max_length=300), AfterValidator(_printable)] | None = None
    container: Image | None = None
    note: Annotated[str, StringConstraints(max_length=1000), AfterValidator(_printable)] = ""

    @model_validator(mode="after")
    def _whole(self) -> Asked:
        if (self.endpoint is None) == (self.container is None):
            raise ValueError("give one of endpoint and container")
        days = (wall_ns(self.expires) - wall_ns(self.made)) / DAY_NS
        if not 0 < days <= LONGEST_DAYS:
            raise ValueError(f"it expires {days:g} days after it was made; allowed are up to {LONGEST_DAYS}")
        return self

    def check_when(self, wall: str, where: str) -> None:
        """Raises StateError for a request that is over, InputError for one from the future. wall: now, ISO 8601."""
        now_ns = wall_ns(wall)
        if now_ns >= wall_ns(self.expires):
            raise StateError(f"{where}: it expired at {self.expires}; its sender signs a new one (labctl submit sign)")
        if wall_ns(self.made) > now_ns + CLOCKS_APART_NS:
            raise InputError(f"it was made at {self.made}, which is still to come; correct that clock", where=where)


@dataclass(frozen=True, slots=True)
class Signed:
    """A request whose signature holds. key: the public key in hexadecimal; text: what was signed."""

    key: str
    signature: str
    text: str

    def asked(self, where: str) -> Asked:
        """What it asks for. Raises InputError."""
        try:
            return Asked.model_validate_json(self.text)
        except (ValidationError, RecursionError) as error:
            raise InputError(first_wrong(error), where=where) from None


def read_signed(path: Path) -> Signed:
    """A request's file whose signature fits the key in it; whether the lab knows that key is not asked here.

    Raises InputError for what is no file, too large, no request, or not signed by that key.
    """
    where = str(path)
    try:
        if not stat.S_ISREG(path.stat().st_mode):
            raise InputError("it is no plain file; give the request's own file", where=where)
        with path.open("rb") as file:
            data = file.read(LARGEST + 1)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", where=where) from None
    if len(data) > LARGEST:
        raise InputError(f"it is larger than {LARGEST >> 10} KiB, the most that a request takes", where=where)
    try:
        found = Envelope.model_validate_json(data)
    except (ValidationError, RecursionError) as error:
        raise InputError(f"it is no request: {first_wrong(error)}", where=where) from None
    if found.schema_ != FORM:
        raise InputError(f"its schema is {found.schema_!r}; this version reads {FORM}", where=where)
    signed = Signed(found.key, found.signature, found.request)
    if not _holds(signed):
        raise InputError(
            "its signature does not fit: it was changed, or another key signed it; have it signed again", where=where
        )
    return signed


def sign(asked: Asked, key: Path) -> bytes:
    """The bytes of a request's file. key: the file that `new_key` wrote. Raises InputError."""
    private = _private(key)
    text = json.dumps(asked.model_dump(exclude_none=True), indent=1, ensure_ascii=False)
    envelope = {
        "schema": FORM,
        "key": private.public_key().public_bytes_raw().hex(),
        "signature": private.sign(_covered(text)).hex(),
        "request": text,
    }
    data = (json.dumps(envelope, indent=1, ensure_ascii=False) + "\n").encode()
    if len(data) > LARGEST:
        raise InputError(
            f"the request would have {len(data) >> 10} KiB; {LARGEST >> 10} are the most: shorten its card"
        )
    return data


def new_nonce() -> str:
    """32 hexadecimal digits that no request had before."""
    return secrets.token_hex(16)


def new_key(path: Path) -> str:
    """Write a new private key, for its owner alone; its public key in hexadecimal. Raises InputError where a file is
    there already, StorageError.
    """
    with wanted_for("signing a request"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
    if path.exists() or path.is_symlink():
        raise InputError(f"{path} is there already; a key is never written over: choose another name")
    key = Ed25519PrivateKey.generate()
    replace_file(path, key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()), mode=OWNER_ONLY)
    return key.public_key().public_bytes_raw().hex()


def _private(path: Path) -> Ed25519PrivateKey:
    with wanted_for("signing a request"):
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    try:
        others = path.stat().st_mode & 0o077
        with path.open("rb") as file:
            found = load_pem_private_key(file.read(LARGEST), None)
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror}); make a key with: {MAKE_KEY}", where=str(path)) from None
    except (ValueError, TypeError):
        raise InputError(
            f"is no private key in PEM without a passphrase; make one with: {MAKE_KEY}", where=str(path)
        ) from None
    if not isinstance(found, Ed25519PrivateKey):
        raise InputError(f"is a key of another kind than Ed25519; make one with: {MAKE_KEY}", where=str(path))
    if others:
        raise InputError("other accounts may read it: chmod 600, or make a new key and tell the lab", where=str(path))
    return found


def _holds(signed: Signed) -> bool:
    with wanted_for("a signed request"):
        from cryptography.exceptions import InvalidSignature
        from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    try:
        public = Ed25519PublicKey.from_public_bytes(bytes.fromhex(signed.key))
        public.verify(bytes.fromhex(signed.signature), _covered(signed.text))
    except (InvalidSignature, ValueError):
        return False
    return True


def _covered(text: str) -> bytes:
    return f"{FORM}\n".encode() + text.encode("utf-8", "surrogatepass")


def first_wrong(error: ValidationError | RecursionError) -> str:
    """What is wrong first, in a line that holds no long piece of the file."""
    if isinstance(error, RecursionError):
        return "lists or tables stand in each other too deeply"
    found = error.errors(include_url=False, include_context=False, include_input=False)[0]
    at = ".".join(str(step) for step in found["loc"]) or "the whole"
    said = found["msg"].removeprefix("Value error, ")
    return f"{at[:80]}: {said[:200]}"


def lasting(days: int, wall: str) -> tuple[str, str]:
    """(made, expires) of a request that is signed now."""
    now_ns = wall_ns(wall)
    return wall_of(now_ns), wall_of(now_ns + days * DAY_NS)
