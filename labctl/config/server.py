"""[store] of lab.toml: the PostgreSQL server that gets a copy of what the lab records.

May not: hold a password, or read the file or the environment that does.
"""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from labctl.config.toml_text import Table

SCHEME = "postgresql+psycopg://"
_USER = re.compile(r"(.*)@")  # what stands before the host, in the part after the scheme and before "?"
_PLAIN = re.compile(r"[A-Za-z0-9._-]*")  # a name of a login; a colon, plain or encoded, begins a password
_PARAMETER = re.compile(r"[a-z_]+=[^&]*")
_UNREADABLE = re.compile(r"%(?![0-9A-Fa-f]{2})|%00|\[[^]]*$")  # libpq has more to refuse: `Server` says that
_SECRETS = ("password", "sslpassword")


def check_url(url: str) -> str:
    """The URL of a server as it was given. Raises ValueError, never with the URL in it: it may hold a password."""
    if not url.startswith(SCHEME):
        raise ValueError(f"the lab's store is a PostgreSQL server: {SCHEME}USER@HOST:PORT/DATABASE")
    rest = url.removeprefix(SCHEME)
    if not rest or re.search(r"\s", rest):
        raise ValueError(f"the address names no server: {SCHEME}USER@HOST:PORT/DATABASE, or {SCHEME}?service=NAME")
    if _UNREADABLE.search(rest):
        raise ValueError("the address has a % that begins no code (%2F), or a [ without its ]; libpq cannot read it")
    place, _, after = rest.partition("?")
    user, parameters = _USER.match(place), [one for one in after.split("&") if one]
    plain = all(_PARAMETER.fullmatch(one) and one.partition("=")[0] not in _SECRETS for one in parameters)
    if (user is not None and not _PLAIN.fullmatch(user[1])) or not plain:
        raise ValueError(
            "the address holds a password, or a login or parameter that is not plain; put a password into a password "
            "file ($PGPASSFILE, ~/.pgpass), a service file or $PGPASSWORD, and take it out of here"
        )
    return url


class StoreTable(Table):
    """[store]: url: of the server's database, without a password; timeout_s: how long an answer is waited for, and
    within which a megabyte has to arrive.
    """

    url: Annotated[str, AfterValidator(check_url)]
    timeout_s: Annotated[float, Field(ge=1, le=120)] = 10.0
