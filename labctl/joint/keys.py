"""The keys by which a seal host and its cells know each other (CurveZMQ), in files that only their owner may read.

May not: open a socket, or print a secret.

A seal host draws a pair for itself and one for each cell, keeps the public halves, and writes each cell's pair into an
invitation, once: a file that a person carries to that cell.
"""

from __future__ import annotations

import re
import shlex
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from labctl.errors import InputError
from labctl.plain import Json
from labctl.store.atomic_files import file_errors, replace_file

PRIVATE = 0o600
_PORT = re.compile(r"[1-9][0-9]{0,4}")
_KEY = re.compile(r"[0-9A-Za-z.:+=^!/*?&<>()\[\]{}@%$#-]{40}")  # Z85 (ZeroMQ RFC 32) of 32 bytes
HOST_KEYS = "keys.toml"


@dataclass(frozen=True, slots=True)
class Invitation:
    """What a cell needs to reach its seal host. address: tcp://HOST:PORT; host_key: the host's public key; public and
    secret: the cell's own; commitment: of the whole schedule, by which the cell knows that it is the one agreed on.
    """

    joint: str
    cell: str
    address: str
    commitment: str
    host_key: str
    public_key: str
    secret_key: str


@dataclass(frozen=True, slots=True)
class HostKeys:
    """A seal host's own pair, where it is reached, and the public key of each cell."""

    address: str
    public_key: str
    secret_key: str
    cells: dict[str, str]


def new_pair() -> tuple[str, str]:
    """A public and a secret key, as 40 characters of Z85 each."""
    import zmq

    public, secret = zmq.curve_keypair()
    return public.decode(), secret.decode()


def write_invitation(path: Path, invitation: Invitation) -> None:
    """Raises InputError where there is such a file, StorageError."""
    if path.exists():
        raise InputError(f"{path} is there already; a cell has one invitation: move it away")
    head = "# An invitation to a joint campaign: who has it is that cell. Carry it to the cell, keep it at mode 600.\n"
    replace_file(path, (head + _toml(asdict(invitation))).encode(), mode=PRIVATE)


def read_invitation(path: Path) -> Invitation:
    """Raises InputError for a file that others may read or that is no invitation, StorageError."""
    found = _read(path)
    texts = {name: value for name, value in found.items() if isinstance(value, str) and value}
    given = {name: value for name, value in texts.items() if not name.endswith("_key") or _KEY.fullmatch(value)}
    wanted = Invitation.__dataclass_fields__
    wrong = sorted((set(wanted) | set(found)) - (set(wanted) & set(given)))
    if wrong:
        raise InputError(f"{path}: no invitation to a joint campaign: {wrong[0]!r} is not as the seal host writes it")
    check_address(given["address"], str(path))
    return Invitation(**given)


def write_host_keys(path: Path, keys: HostKeys) -> None:
    """Raises StorageError."""
    cells = "".join(f'"{name}" = "{key}"\n' for name, key in keys.cells.items())
    own = _toml({"address": keys.address, "public_key": keys.public_key, "secret_key": keys.secret_key})
    replace_file(path, f"{own}[cells]\n{cells}".encode(), mode=PRIVATE)


def read_host_keys(path: Path) -> HostKeys:
    """Raises InputError for a file that others may read or that is damaged, StorageError."""
    found = _read(path)
    cells = found.get("cells")
    try:
        if not isinstance(cells, Mapping):
            raise KeyError("cells")
        known = {name: str(key) for name, key in cells.items()}
        address, public, secret = (str(found[name]) for name in ("address", "public_key", "secret_key"))
        for name, key in {"public_key": public, "secret_key": secret, **known}.items():
            if not _KEY.fullmatch(key):
                raise KeyError(name)
        return HostKeys(address, public, secret, known)
    except KeyError as error:
        raise InputError(f"{path}: the seal host's keys are damaged ({error}); restore the file from a copy") from None


def check_address(address: str, where: str) -> None:
    """Raises InputError for what is no tcp://HOST:PORT."""
    scheme, _, rest = address.partition("://")
    host, _, port = rest.rpartition(":")
    if scheme != "tcp" or not host or not _PORT.fullmatch(port) or int(port) > 65535:
        raise InputError(f"{where}: address {address!r}; give tcp://HOST:PORT")


def _read(path: Path) -> dict[str, Json]:
    with file_errors(str(path)):
        if not path.is_file():
            raise InputError(f"{path}: there is no such file")
        others, text = path.stat().st_mode & 0o077, path.read_text("utf-8", errors="replace")
    if others:
        remedy = f"chmod 600 {shlex.quote(str(path))}, unless somebody has read it"
        raise InputError(f"{path}: other accounts may read this key; {remedy}")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not a TOML file: {error}") from None


def _toml(values: dict[str, str]) -> str:
    return "".join(f'{name} = "{value}"\n' for name, value in values.items())
