"""[store] of lab.toml: the PostgreSQL server that gets a copy of what the lab records.

May not: hold a password, or read the file or the environment that does.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from labctl.config.toml_text import Table

SCHEME = "postgresql+psycopg://"
_USER = re.compile(r"[^/?#@]*@")  # what stands before the host, in the part after the scheme
_SECRET = re.compile(r"[?&](password|sslpassword|passphrase)=", re.IGNORECASE)


def check_url(url: str) -> str:
    """The URL of a server as it was given. Raises ValueError, never with the URL in it: it may hold a password."""
    if not url.startswith(SCHEME):
        raise ValueError(f"the lab's store is a PostgreSQL server: {SCHEME}USER@HOST:PORT/DATABASE")
    rest = url.removeprefix(SCHEME)
    if not rest or re.search(r"\s", rest):
        raise ValueError(f"the address names no server: {SCHEME}USER@HOST:PORT/DATABASE, or {SCHEME}?service=NAME")
    user = _USER.match(rest)
    if (user is not None and ":" in user[0]) or rest.count("@") > 1 or _SECRET.search(rest):
        raise ValueError(
            "the address holds a password; put it into a password file ($PGPASSFILE, ~/.pgpass), a service file or "
            "$PGPASSWORD, and take it out of here"
        )
    return url


class StoreTable(Table):
    """[store]: url: of the server's database, without a password; timeout_s: how long an answer is waited for, and
    within which a megabyte has to arrive.
    """

    url: Annotated[str, AfterValidator(check_url)]
    timeout_s: Annotated[float, Field(ge=1, le=120)] = 10.0
