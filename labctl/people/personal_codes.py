"""Personal codes of a lab: what only one person knows, kept as a salted hash in a file of the lab's owner.

May not: print, log or keep a code, or tell who somebody is to whoever may write the lab's folder: that account can
replace the file, which is why each code has the time at which it was set.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from labctl.clock import Clock
from labctl.errors import InputError, StateError
from labctl.people.acting import check_person_name
from labctl.store.atomic_files import replace_file
from labctl.store.locks import lab_lock

FILE = "personal-codes.json"
OWNER_ONLY = 0o600
SHORTEST, LONGEST = 4, 64  # characters
# scrypt (RFC 7914): 16 MiB and some hundredths of a second a try
N, R, P, SALT_BYTES = 2**14, 8, 1, 16


class Kept(BaseModel):
    """What is kept of a person's code: salt and hash in hexadecimal, what scrypt was asked for, when it was set (ISO
    8601).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")
    salt: str
    scrypt: str
    n: int
    r: int
    p: int
    set: str

    def fits(self, code: str) -> bool:
        found = _hash(code, bytes.fromhex(self.salt), self.n, self.r, self.p)
        return hmac.compare_digest(found, bytes.fromhex(self.scrypt))


_FILE: TypeAdapter[dict[str, Kept]] = TypeAdapter(dict[str, Kept])


def codes_of(lab: Path | None) -> Mapping[str, Kept]:
    """Person -> what is kept of that person's code; empty for a lab without codes, and where there is no lab.

    Raises StateError for a file that cannot be read, or that another account can.
    """
    if lab is None:
        return {}
    path = lab / FILE
    try:
        others = path.stat().st_mode & 0o077
        text = path.read_bytes()
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise StateError(f"{path}: cannot be read ({error.strerror}); it is of the lab's owner alone") from None
    if others:
        raise StateError(
            f"{path}: other accounts may read it; chmod 600 {shlex.quote(str(path))}, and have everybody set a new code"
        )
    try:
        return _FILE.validate_json(text)
    except ValidationError:
        raise StateError(f"{path}: is no file of personal codes; take it away, and set them anew") from None


def check_code(code: str) -> None:
    """Raises InputError, which does not have the code in it, for one that cannot be typed or is too short."""
    if not SHORTEST <= len(code) <= LONGEST:
        raise InputError(f"a personal code has {SHORTEST} to {LONGEST} characters; this one has {len(code)}")
    if not code.isprintable() or code != code.strip():
        raise InputError("a personal code has characters that can be typed in a line, no blank at its ends")


def set_code(lab: Path, person: str, code: str | None, clock: Clock, *, old: str | None = None) -> None:
    """Set or (None) take away a person's code. `old`: the code that stands, which is asked for.

    Raises InputError for a code that cannot be one, StateError for a wrong old one and while another is being set.
    """
    check_person_name(person)
    with lab_lock(lab, "people", "people code", what="the lab's personal codes", clock=clock):
        codes = dict(codes_of(lab))
        standing = codes.pop(person, None)
        if standing is not None and not standing.fits(old or ""):
            raise StateError(
                f"that is not the code of {person}; nothing was changed. Who owns the lab ends one that "
                f"is forgotten: delete its entry in {lab / FILE}"
            )
        if code is None and standing is None:
            raise InputError(f"{person} has no personal code; there is nothing to take away")
        if code is not None:
            check_code(code)
            salt = os.urandom(SALT_BYTES)
            hashed = _hash(code, salt, N, R, P).hex()
            codes[person] = Kept(salt=salt.hex(), scrypt=hashed, n=N, r=R, p=P, set=clock.anchor().wall)
        text = json.dumps({name: codes[name].model_dump() for name in sorted(codes)}, indent=1)
        replace_file(lab / FILE, f"{text}\n".encode(), mode=OWNER_ONLY)


def _hash(code: str, salt: bytes, n: int, r: int, p: int) -> bytes:
    return hashlib.scrypt(code.encode(), salt=salt, n=n, r=r, p=p, maxmem=2 * 128 * n * r)
