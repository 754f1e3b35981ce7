"""What a submitted policy may name: a card that starts nothing and reads nothing here, an endpoint outside of the lab's
own machines or in a network that the lab's owner named.

May not: connect to anything. A name is looked up by the process that will connect, through `only_allowed`, so that what
was checked is what is connected to.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from typing import TypeAlias
from urllib.parse import SplitResult, urlsplit

from labctl.config.policy_card import Card, Server
from labctl.errors import InputError

Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network
Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Place: TypeAlias = tuple[str, int] | tuple[str, int, int, int] | tuple[int, bytes]
Found: TypeAlias = tuple[socket.AddressFamily, socket.SocketKind, int, str, Place]
DIALECTS = {"openpi": ("wss", "ws"), "roboarena": ("wss", "ws"), "gr00t": ("tcp",)}
ENCRYPTED = "wss"
HTTPS, USERS = 443, 1024
# Forms in which an IPv6 address carries an IPv4 address that a gateway takes out again (RFC 4291, 6052, 3056, 4380).
_CARRIERS = tuple(
    ipaddress.ip_network(one)
    for one in ("::/96", "::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32")
)


def check_card(card: Card, where: str) -> None:
    """Raises InputError for a card whose policy would be started here, would run in labctl's own process, or would be
    handed something of this computer's environment.
    """
    dialect = card.policy.dialect
    if dialect not in DIALECTS:
        allowed = ", ".join(DIALECTS)
        raise InputError(
            f"the card's dialect is {dialect!r}; a submitted policy answers over the network: {allowed}", where=where
        )
    theirs = Server(ready_s=card.server.ready_s, stop_s=card.server.stop_s, software=card.server.software)
    if card.server != theirs:
        named = [name for name in Server.model_fields if getattr(card.server, name) != getattr(theirs, name)]
        raise InputError(
            f"the card's [server] has {', '.join(named)}; a submitted card starts nothing here and reads nothing of "
            "this computer: only ready_s, stop_s and software may stand there",
            where=where,
        )


def check_endpoint(endpoint: str, dialect: str, networks: Sequence[Network], where: str) -> SplitResult:
    """The parts of an endpoint that may be asked, as far as it can be told without a look-up. Raises InputError."""
    schemes = DIALECTS[dialect]
    like = "wss://policy.example:443" if ENCRYPTED in schemes else "tcp://10.20.0.7:5555"
    try:
        parts = urlsplit(endpoint)
        host, port = parts.hostname, parts.port
    except ValueError:
        parts, host, port = SplitResult("", "", "", "", ""), None, None
    if parts.scheme not in schemes or not host:
        raise InputError(f"endpoint {endpoint!r} is none of {dialect}'s; give one like {like}", where=where)
    if parts.username is not None or parts.password is not None or parts.query or parts.fragment:
        raise InputError(
            f"endpoint {endpoint.rpartition('@')[2]!r} has a login, a query or a fragment; give only {like}",
            where=where,
        )
    port = port if port is not None else HTTPS if parts.scheme == ENCRYPTED else 0
    if port != HTTPS and port < USERS:
        raise InputError(f"endpoint {endpoint!r}: port {port}; allowed are {HTTPS} and {USERS} to 65535", where=where)
    literal = _literal(host)
    if literal is not None:
        check_address(literal, networks, encrypted=parts.scheme == ENCRYPTED, endpoint=endpoint, where=where)
    return parts


def check_address(address: Address, networks: Sequence[Network], *, encrypted: bool, endpoint: str, where: str) -> None:
    """Raises InputError for an address that a submitted endpoint may not lead to."""
    if allowed(address, networks, encrypted=encrypted):
        return
    if not encrypted and allowed(address, networks, encrypted=True):
        raise InputError(
            f"endpoint {endpoint!r} is not encrypted and outside the lab's networks; give wss://, or have the lab's "
            "owner add its network to networks of queue-keys.toml",
            where=where,
        )
    raise InputError(
        f"endpoint {endpoint!r} leads to {address}, an address inside; allowed are public ones over wss:// and the "
        "networks of queue-keys.toml",
        where=where,
    )


def allowed(address: Address, networks: Sequence[Network], *, encrypted: bool) -> bool:
    """Whether an address is in one of the lab's networks, or, for an encrypted endpoint, in the open internet."""
    if any(address in network for network in networks if network.version == address.version):
        return True
    carried = address.version == 6 and any(address in carrier for carrier in _CARRIERS)
    return encrypted and address.is_global and not address.is_multicast and not carried


def only_allowed(networks: Sequence[Network], *, encrypted: bool, endpoint: str) -> None:
    """From here on this process looks up names and addresses by this rule alone, whoever in it asks: a name that leads
    elsewhere by now, or a server that sends elsewhere, gets no connection.
    """
    plain = socket.getaddrinfo

    def checked(
        host: bytes | str | None, port: bytes | str | int | None, family: int = 0, *kind: int, **more: int
    ) -> Sequence[Found]:
        found = plain(host, port, family, *kind, **more)
        kept = [one for one in found if _may(str(one[4][0]), networks, encrypted=encrypted)]
        if found and not kept:
            where = found[0][4][0]
            raise OSError(f"{endpoint} leads to {where}, an address inside, which a submitted endpoint may not name")
        return kept

    socket.__dict__.update(getaddrinfo=checked)


def _may(host: str, networks: Sequence[Network], *, encrypted: bool) -> bool:
    address = _literal(host.partition("%")[0])
    return address is not None and allowed(address, networks, encrypted=encrypted)


def _literal(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def resolved(endpoint: str) -> str:
    """An endpoint as a client may have it: one whose library looks names up by itself (tcp://) under its address, by
    the rule of `only_allowed`. Raises InputError for a name that leads nowhere.
    """
    parts = urlsplit(endpoint)
    if parts.scheme != "tcp":
        return endpoint
    try:
        address = socket.getaddrinfo(parts.hostname, parts.port)[0][4][0]
    except OSError as error:
        raise InputError(f"{endpoint}: {error}") from None
    return f"tcp://[{address}]:{parts.port}" if ":" in str(address) else f"tcp://{address}:{parts.port}"
